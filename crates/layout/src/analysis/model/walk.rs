//! Walks of the page table, and the entries that they read.
//!
//! # Source
//! The four levels of tables with 512 entries of 8 bytes, and the caches of entries that lead to
//! tables, follow the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3,
//! sections 4.5 and 4.10.3. The sizes of these caches are not published. Up to Ivy Bridge, four
//! entries lead to page directories (van Schaik et al., `RevAnC`, `EuroSec` 2017, and its tool's
//! manual). Three assumptions: 32 entries lead to page tables, none leads further up, and other
//! machines have as many.

use super::cache::Lru;
use super::tlb::PageSize;

/// The levels of tables: level 0 maps pages of 4 KiB, level 1 those of 2 MiB.
const LEVELS: usize = 4;
const ENTRY_BYTES: usize = 8;
/// The bits of an address that select an entry of a table.
const INDEX_BITS: usize = 9;
/// The number of entries of level 1 that are kept, and the ways of their sets.
const DIRECTORY: (usize, usize) = (32, 4);
/// The number of entries of level 2 that are kept, and the ways of their sets.
const POINTERS: (usize, usize) = (4, 4);

/// The address of the tables, beyond all addresses of programs. Those of a level lie one after the
/// other in the order of the pages they map, so that neighbouring pages have neighbouring entries.
pub(super) const TABLES: usize = 1 << 62;
const OF_A_LEVEL: usize = 1 << 56;

/// The cached entries that lead to tables.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    /// The kept entries of levels 1 and 2, by their numbers.
    kept: [Lru; 2],
}

impl Walker {
    pub(super) fn new() -> Self {
        Self { kept: [DIRECTORY, POINTERS].map(|(entries, ways)| Lru::new(entries / ways, ways)) }
    }

    /// Translates an address. Returns the addresses of the entries that this reads, from the top
    /// down.
    pub(super) fn walk(
        &mut self,
        address: usize,
        page: PageSize,
    ) -> impl Iterator<Item = usize> + use<> {
        let leaf = match page {
            PageSize::Small => 0,
            PageSize::Huge => 1,
        };
        let number = move |level: usize| address >> (12 + INDEX_BITS * level);
        // The walk begins at the lowest entry that is kept.
        let mut top = LEVELS;
        for level in leaf + 1..=self.kept.len() {
            let kept = &mut self.kept[level - 1];
            let set = kept.modulo(number(level));
            if kept.hit(set, number(level)).is_some() {
                top = level;
                break;
            }
            kept.insert(set, number(level), false);
        }
        (leaf..top).rev().map(move |level| {
            TABLES + level * OF_A_LEVEL + number(level) % (OF_A_LEVEL / ENTRY_BYTES) * ENTRY_BYTES
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PageSize::{Huge, Small};

    /// The entries that a walk reads, each as its level and its byte from the start of that level.
    fn walk(walker: &mut Walker, address: usize, page: PageSize) -> Vec<(usize, usize)> {
        let entries = walker.walk(address, page);
        entries.map(|entry| ((entry - TABLES) / OF_A_LEVEL, entry % OF_A_LEVEL)).collect()
    }

    #[test]
    fn a_walk_reads_what_is_not_kept() {
        let mut walker = Walker::new();
        let address = (5 << 39) + (6 << 30) + (7 << 21) + (8 << 12) + 9;
        let at = |level: usize, entry: usize| (level, 8 * entry);
        let (pointer, directory) = (5 * 512 + 6, (5 * 512 + 6) * 512 + 7);
        let page = at(0, directory * 512 + 8);
        let whole = [at(3, 5), at(2, pointer), at(1, directory), page];
        assert_eq!(walk(&mut walker, address, Small), whole);
        assert_eq!(walk(&mut walker, address, Small), [page]);
        // The directory maps 2 MiB pages, and its entries for such pages are not kept.
        assert_eq!(walk(&mut walker, address, Huge), [at(1, directory)]);
        assert_eq!(walk(&mut walker, address + (1 << 21), Huge), [at(1, directory + 1)]);
        let next = [at(1, directory + 1), at(0, (directory + 1) * 512 + 8)];
        assert_eq!(walk(&mut walker, address + (1 << 21), Small), next);
    }

    #[test]
    fn so_many_entries_are_kept() {
        let mut walker = Walker::new();
        let mut reads = |count: usize, apart: usize, page| {
            let mut round =
                || (0..count).map(|n| walk(&mut walker, n * apart, page).len()).sum::<usize>();
            round();
            round()
        };
        // 32 tables of 512 pages, and one more: five entries in a set of four.
        assert_eq!(reads(32, 1 << 21, Small), 32);
        assert_eq!(reads(33, 1 << 21, Small), 33 + 5);
        // Four directories, and one more.
        assert_eq!(reads(4, 1 << 30, Huge), 4);
        assert_eq!(reads(5, 1 << 30, Huge), 5 * 3);
    }
}

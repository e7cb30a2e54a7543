//! The pages where objects lie.

use super::COLUMNS;
use crate::Census;
use crate::census::Kind;

/// The pages that hold objects, as a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap {
    /// The bytes of a cell: those of a 4 KiB page, times a power of two.
    pub unit: usize,
    /// Cells of a row.
    pub columns: usize,
    /// Those with objects, by ascending address.
    pub rows: Vec<PageRow>,
    /// The 4 KiB pages that hold objects of the kinds that were asked for …
    pub pages: usize,
    /// … and those kinds' bytes in them.
    pub bytes: usize,
}

/// Neighbouring cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// Of its first byte, a multiple of its length.
    pub address: usize,
    /// What each cell holds.
    pub cells: Vec<PageCell>,
}

/// What memory holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCell {
    /// Of the kinds that were asked for.
    pub of_kinds: usize,
    /// Of what was given back, whatever it was.
    pub freed: usize,
    /// Of all others.
    pub beside: usize,
}

/// The bytes of a page.
const PAGE: usize = 4096;
/// Rows that are shown, at most.
const ROWS: usize = 64;

impl Census {
    /// Maps the pages that hold objects, with a share for the kinds `of`. O(n log n).
    pub fn page_map(&mut self, of: &[&str]) -> PageMap {
        let (kinds, objects) = self.sorted();
        let part = |kind: &Kind, cell: &mut PageCell, bytes| {
            let part = match kind {
                _ if of.contains(&kind.name.as_str()) => &mut cell.of_kinds,
                Kind { freed: Some(_), .. } => &mut cell.freed,
                _ => &mut cell.beside,
            };
            *part += bytes;
        };
        let mut held: Vec<(usize, PageCell)> = Vec::new();
        for object in objects {
            for page in object.start() / PAGE..=object.last() / PAGE {
                let start = object.start().max(page * PAGE);
                let bytes = object.last().min(page * PAGE + (PAGE - 1)) + 1 - start;
                if held.last().is_none_or(|(last, _)| *last < page) {
                    held.push((page, PageCell::default()));
                }
                // Objects that overlap others may begin in a page before the last.
                let Ok(at) = held.binary_search_by_key(&page, |(page, _)| *page) else { continue };
                part(&kinds[object.kind as usize], &mut held[at].1, bytes);
            }
        }
        let rows = |pages: usize| {
            let mut rows: Vec<usize> =
                held.iter().map(|(page, _)| page / pages / COLUMNS).collect();
            rows.dedup();
            rows
        };
        let mut pages = 1;
        while rows(pages).len() > ROWS {
            pages *= 2;
        }
        let (unit, mut map) = (pages * PAGE, Vec::new());
        for (page, cell) in &held {
            let address = page / pages / COLUMNS * COLUMNS * unit;
            if map.last().is_none_or(|row: &PageRow| row.address != address) {
                map.push(PageRow { address, cells: vec![PageCell::default(); COLUMNS] });
            }
            if let Some(row) = map.last_mut() {
                let sum = &mut row.cells[page / pages % COLUMNS];
                sum.of_kinds += cell.of_kinds;
                sum.freed += cell.freed;
                sum.beside += cell.beside;
            }
        }
        let of_kinds = held.iter().map(|(_, cell)| cell.of_kinds).filter(|bytes| *bytes > 0);
        PageMap {
            unit,
            columns: COLUMNS,
            rows: map,
            pages: of_kinds.clone().count(),
            bytes: of_kinds.sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLD, NODE, START, in_turns};
    use super::*;

    #[test]
    fn a_page_has_the_bytes_that_lie_in_it() {
        let mut census = in_turns(&[&NODE, &COLD], 48);
        let row = census.kind("row", Some(Vec::new()));
        // From the middle of the second page to the middle of the third.
        census.add_sized(row, START + 6144, 4096);
        let map = census.page_map(&["node", "none"]);
        assert_eq!((map.unit, map.columns, map.rows.len()), (4096, 64, 1));
        assert_eq!((map.pages, map.bytes), (2, 48 * 64));
        assert_eq!(map.rows[0].address, START);
        let cell = |of_kinds, beside| PageCell { of_kinds, freed: 0, beside };
        let cells = [cell(2048, 2048), cell(1024, 1024 + 2048), cell(0, 2048), cell(0, 0)];
        assert_eq!(map.rows[0].cells[..4], cells);
        let freed = census.freed("descriptor");
        census.add_sized(freed, START + 4 * 4096, 64);
        let map = census.page_map(&["node"]);
        assert_eq!(map.rows[0].cells[4], PageCell { of_kinds: 0, freed: 64, beside: 0 });
        assert_eq!(Census::default().page_map(&["node"]).rows, []);
    }

    #[test]
    fn many_pages_share_cells_and_gaps_are_left_out() {
        let mut census = Census::default();
        // 100 MiB, a node per page, and as much 1 TiB away.
        for page in 0..25_600 {
            census.add(&NODE, START + page * 4096);
            census.add(&NODE, START + (1 << 40) + page * 4096);
        }
        let map = census.page_map(&["node"]);
        // 800 rows of pages, 50 of sixteen pages per cell.
        assert_eq!((map.unit, map.rows.len(), map.pages), (16 * 4096, 50, 51_200));
        assert!(map.rows.iter().flat_map(|row| &row.cells).all(|cell| cell.of_kinds == 16 * 64));
        let addresses: Vec<usize> = map.rows.iter().map(|row| row.address - START).collect();
        assert_eq!((addresses[24], addresses[25]), (96 << 20, 1 << 40));
    }

    #[test]
    fn objects_that_overlap_are_counted_each() {
        let (mut census, mut bytes) = (Census::default(), 0);
        let row = census.kind("row", None);
        for (address, size) in [(0x1000, 0x3000), (0x1800, 0x10), (0x2000, 0x20)] {
            census.add_sized(row, address, size);
            bytes += size;
        }
        let map = census.page_map(&["row"]);
        assert_eq!((map.pages, map.bytes), (3, bytes));
    }
}

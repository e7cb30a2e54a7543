//! Sets of tags in the order of their last use, and the caches made of them.

use super::machine::{Inclusion, Level, Machine};
use crate::{SetHash, Sets};

/// A way without a line. No tag is that large, thanks to [`Machine::check`] and `tlb.rs`.
const EMPTY: usize = usize::MAX;

/// Sets with true LRU replacement. A tag is a key and, in the lowest bit, a mark that a hit clears.
///
/// # Invariants
/// R1: a set's tags are in the order of their last use, the latest first, and empty ways are last.
/// R2: no key is twice in a set: callers `insert` only keys that are absent.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    sets: usize,
    /// `sets - 1` if `sets` is a power of two: masking is faster than a division, which takes
    /// longer than a hit.
    mask: Option<usize>,
    ways: usize,
    tags: Box<[usize]>,
}

impl Lru {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        let mask = sets.is_power_of_two().then_some(sets - 1);
        Self { sets, mask, ways, tags: vec![EMPTY; sets * ways].into() }
    }

    /// `number` modulo the number of sets.
    #[inline]
    pub(super) fn modulo(&self, number: usize) -> usize {
        self.mask.map_or_else(|| number % self.sets, |mask| number & mask)
    }

    #[inline]
    fn set(&mut self, set: usize) -> &mut [usize] {
        &mut self.tags[set * self.ways..][..self.ways]
    }

    /// Uses a key. Returns whether it was marked, or `None` if it is absent.
    #[inline]
    pub(super) fn hit(&mut self, set: usize, key: usize) -> Option<bool> {
        let tags = self.set(set);
        let first = tags[0];
        if first >> 1 == key {
            tags[0] = key << 1;
            return Some(first & 1 == 1);
        }
        Self::hit_behind(tags, key)
    }

    /// The slow path of `hit`, for a key that is not at the front.
    fn hit_behind(tags: &mut [usize], key: usize) -> Option<bool> {
        let at = tags.iter().position(|tag| tag >> 1 == key)?;
        let marked = tags[at] & 1 == 1;
        tags.copy_within(..at, 1);
        tags[0] = key << 1;
        Some(marked)
    }

    /// Inserts a key at the front. Returns the evicted key and whether it was marked.
    pub(super) fn insert(&mut self, set: usize, key: usize, mark: bool) -> Option<(usize, bool)> {
        let tags = self.set(set);
        let last = tags[tags.len() - 1];
        tags.copy_within(..tags.len() - 1, 1);
        tags[0] = key << 1 | usize::from(mark);
        (last != EMPTY).then_some((last >> 1, last & 1 == 1))
    }

    /// Removes a key. Returns whether it was marked, or `None` if it is absent.
    pub(super) fn remove(&mut self, set: usize, key: usize) -> Option<bool> {
        let tags = self.set(set);
        let at = tags.iter().position(|tag| tag >> 1 == key)?;
        let marked = tags[at] & 1 == 1;
        tags.copy_within(at + 1.., at);
        tags[tags.len() - 1] = EMPTY;
        Some(marked)
    }

    /// Whether a key is present. This does not count as a use.
    pub(super) fn holds(&mut self, set: usize, key: usize) -> bool {
        self.set(set).iter().any(|tag| tag >> 1 == key)
    }

    /// Sets or clears a key's mark. This does not count as a use.
    pub(super) fn mark(&mut self, set: usize, key: usize, mark: bool) {
        if let Some(tag) = self.set(set).iter_mut().find(|tag| **tag >> 1 == key) {
            *tag = key << 1 | usize::from(mark);
        }
    }
}

/// A cache of lines, by their numbers. A mark means that the line was prefetched and not read
/// since.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) inclusion: Inclusion,
    /// The mapping of lines to sets, if it is not modulo.
    hashed: Option<Sets>,
    lru: Lru,
}

impl Lines {
    pub(super) fn new(machine: &Machine, level: Level) -> Self {
        let (cache, sets) = (machine.cache(level), machine.sets(level));
        Self {
            inclusion: cache.inclusion,
            hashed: (sets.hash != SetHash::Modulo).then_some(sets),
            lru: Lru::new(sets.sets, cache.ways),
        }
    }

    #[inline]
    fn set_of(&self, line: usize) -> usize {
        self.hashed.map_or_else(|| self.lru.modulo(line), |sets| sets.of(line))
    }

    /// Reads a line. Returns whether it was marked, or `None` if it is absent.
    #[inline]
    pub(super) fn hit(&mut self, line: usize) -> Option<bool> {
        self.lru.hit(self.set_of(line), line)
    }

    /// Reads a line on behalf of the level above. A hit removes the line from an exclusive cache.
    pub(super) fn find(&mut self, line: usize) -> Option<bool> {
        match self.inclusion {
            Inclusion::Exclusive => self.remove(line),
            Inclusion::Inclusive | Inclusion::Neither => self.hit(line),
        }
    }

    /// Removes a line. Returns whether it was marked, or `None` if it is absent.
    pub(super) fn remove(&mut self, line: usize) -> Option<bool> {
        self.lru.remove(self.set_of(line), line)
    }

    /// Inserts an absent line. Returns the line it evicts and whether that was marked.
    #[inline]
    pub(super) fn insert(&mut self, line: usize, mark: bool) -> Option<(usize, bool)> {
        self.lru.insert(self.set_of(line), line, mark)
    }

    /// Whether a line is present.
    pub(super) fn holds(&mut self, line: usize) -> bool {
        self.lru.holds(self.set_of(line), line)
    }

    /// Sets or clears a line's mark.
    pub(super) fn mark(&mut self, line: usize, mark: bool) {
        self.lru.mark(self.set_of(line), line, mark);
    }

    /// The lines that are present.
    pub(super) fn lines(&self) -> impl Iterator<Item = usize> {
        self.lru.tags.iter().filter(|tag| **tag != EMPTY).map(|tag| tag >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_key_goes() {
        let mut lru = Lru::new(2, 3);
        for key in [1, 2, 3] {
            assert_eq!((lru.hit(1, key), lru.insert(1, key, false)), (None, None));
        }
        // The order of use is 1 2 3, then 1 again: 2 is the oldest, then 3.
        assert_eq!(lru.hit(1, 1), Some(false));
        assert_eq!(lru.insert(1, 4, false), Some((2, false)));
        assert_eq!(lru.insert(1, 5, false), Some((3, false)));
        assert_eq!(lru.insert(1, 6, false), Some((1, false)));
        // Neither `holds` nor clearing a mark is a use: 4 is still the oldest.
        assert!(lru.holds(1, 4) && !lru.holds(1, 1) && !lru.holds(0, 4));
        lru.mark(1, 4, false);
        assert_eq!(lru.insert(1, 7, false), Some((4, false)));
        // The other set did not change.
        assert_eq!(lru.insert(0, 7, false), None);
    }

    #[test]
    fn a_removed_key_leaves_room_and_the_order_of_the_others() {
        let mut lru = Lru::new(1, 3);
        for key in [1, 2, 3] {
            lru.insert(0, key, false);
        }
        assert_eq!((lru.remove(0, 2), lru.remove(0, 2)), (Some(false), None));
        assert_eq!(lru.insert(0, 4, false), None);
        assert_eq!(lru.insert(0, 5, false), Some((1, false)));
        assert_eq!(lru.insert(0, 6, false), Some((3, false)));
    }

    #[test]
    fn a_mark_is_wiped_off_by_the_first_use() {
        let mut lru = Lru::new(1, 2);
        lru.insert(0, 1, true);
        lru.insert(0, 2, true);
        assert_eq!((lru.hit(0, 1), lru.hit(0, 1)), (Some(true), Some(false)));
        assert_eq!(lru.insert(0, 3, true), Some((2, true)));
        lru.mark(0, 3, false);
        assert_eq!((lru.remove(0, 3), lru.remove(0, 1)), (Some(false), Some(false)));
        // A hit at the front finds the mark, and so does an eviction.
        lru.insert(0, 4, true);
        assert_eq!((lru.hit(0, 4), lru.hit(0, 4)), (Some(true), Some(false)));
        lru.insert(0, 5, true);
        assert_eq!(lru.remove(0, 5), Some(true));
    }

    #[test]
    fn a_line_lies_in_the_set_that_facts_say() {
        for name in ["haswell", "zen4", "sapphire-rapids"] {
            let machine = Machine::named(name).unwrap();
            for level in [Level::L1, Level::L2, Level::Llc] {
                let (lines, sets) = (Lines::new(&machine, level), machine.sets(level));
                let mut line = 0;
                while line < 1 << 58 {
                    assert_eq!(lines.set_of(line), sets.of(line), "{name} {level:?} {line}");
                    line = line * 3 + 1;
                }
            }
        }
    }
}

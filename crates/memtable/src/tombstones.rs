//! The tombstones of ranges of a table.
//!
//! # Algorithm
//! The tombstones are in *runs*. A run never changes: it is an array in the order of the ranges'
//! starts, and a balanced tree over it, as an interval tree: each part of the array has the
//! greatest end and the greatest sequence number of its tombstones. A new tombstone makes a run of
//! its own. Then runs of similar size are merged, as in a binary counter, so n tombstones are in at
//! most log2(n) runs, unless the table has no room for a merge.
//! ```text
//! covering(k, s): the greatest sequence number, at most s, of a tombstone with start ≤ k < end:
//!                 in each run, descend into the halves whose greatest end is behind k, and whose
//!                 greatest number is above the best one found
//! ```
//! A writer makes the new set of runs aside and publishes it by one store. Replaced sets stay until
//! the table is dropped, so a reader needs no pin, and writes nothing. In all they have O(n log n)
//! tombstones; a table has few.
//!
//! # Invariants
//! * R1: `runs` is null or leads to a set of runs in `kept`, which stays until the drop.
//! * R2: a run is sorted by start, and the sums of its parts are those of their tombstones.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `runs` | load | Acquire | store | the set is initialised |
//! | `runs` | store | Release | load | publishes the set; writers hold the mutex |

use crate::key::{Comparator, Seqno};
use silvics_pool::{AllocError, Budget};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicPtr, Ordering as Memory};
use std::cmp::Ordering;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

/// A tombstone of the user keys from `start` up to `end`, which is excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The first user key that is deleted.
    pub start: Arc<[u8]>,
    /// The first user key behind the range.
    pub end: Arc<[u8]>,
    /// The sequence number. Entries with smaller numbers are deleted.
    pub seqno: Seqno,
}

/// A tombstone as the middle of a part of its run, with the sums of the part.
#[derive(Clone)]
struct Slot {
    tombstone: Tombstone,
    /// The greatest end in the part.
    end: Arc<[u8]>,
    /// The greatest sequence number in the part.
    seqno: Seqno,
}

type Run = Arc<[Slot]>;

/// The runs at one moment, the largest first.
struct Runs(Vec<Run>);

/// The tombstones of ranges in a table: see the [module](self).
pub(crate) struct Tombstones {
    runs: AtomicPtr<Runs>,
    /// All sets of runs that were ever published.
    kept: Mutex<Kept>,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Kept {
    /// Boxes, as pointers because readers have references to what is in them.
    sets: Vec<*mut Runs>,
    bytes: usize,
}

// SAFETY: the sets are owned, and what they have may be dropped on any thread.
unsafe impl Send for Kept {}

impl Tombstones {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { runs: AtomicPtr::new(null_mut()), kept: Mutex::default(), budget }
    }

    /// The present runs.
    #[inline(always)]
    fn runs(&self) -> &[Run] {
        let runs = self.runs.load(Memory::Acquire);
        // SAFETY: R1: the set stays until `self` is dropped, which the borrow excludes.
        unsafe { runs.as_ref() }.map_or(&[], |runs| &runs.0)
    }

    /// Whether there is no tombstone.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.load(Memory::Acquire).is_null()
    }

    /// Adds a tombstone. The bytes of the set that it makes are taken from the budget. If there are
    /// too few for a merge, the tombstone stays in a run of its own.
    pub(crate) fn add(
        &self,
        tombstone: Tombstone,
        comparator: &dyn Comparator,
    ) -> Result<(), AllocError> {
        let mut kept = self.kept.lock();
        let strings = tombstone.start.len() + tombstone.end.len();
        let mut runs = self.runs().to_vec();
        let merged = |runs: &[Run]| {
            let sizes = runs.iter().rev().map(|run| run.len());
            sizes.fold(
                (0, 1),
                |(of, sum), len| if len <= sum { (of + 1, sum + len) } else { (of, sum) },
            )
        };
        let (mut taken, mut len) = merged(&runs);
        let bytes = |taken: usize, len: usize| {
            let words = len * size_of::<Slot>() + (runs.len() - taken + 1) * size_of::<Run>();
            strings + words + size_of::<Runs>()
        };
        if taken > 0 && self.budget.left() < bytes(taken, len) {
            (taken, len) = (0, 1);
        }
        let bytes = bytes(taken, len);
        self.budget.take(bytes)?;
        let mut merged = Vec::with_capacity(len);
        merged.push(tombstone);
        for run in runs.drain(runs.len() - taken..) {
            merged.extend(run.iter().map(|slot| slot.tombstone.clone()));
        }
        merged.sort_by(|a, b| comparator.compare(&a.start, &b.start).then(a.seqno.cmp(&b.seqno)));
        runs.push(run_of(merged, comparator));
        kept.bytes += bytes;
        let set = Box::into_raw(Box::new(Runs(runs)));
        kept.sets.push(set);
        self.runs.store(set, Memory::Release); // R1
        Ok(())
    }

    /// The greatest sequence number of a tombstone that covers a user key and that a snapshot sees,
    /// or 0.
    #[inline(always)]
    pub(crate) fn covering(
        &self,
        user: &[u8],
        snapshot: Seqno,
        comparator: &dyn Comparator,
    ) -> Seqno {
        let runs = self.runs();
        if runs.is_empty() {
            return 0;
        }
        let asked = Asked { user, snapshot, comparator };
        runs.iter().fold(0, |best, run| asked.in_part(run, best))
    }

    /// All tombstones, by start, then from the newest to the oldest.
    pub(crate) fn all(&self, comparator: &dyn Comparator) -> Vec<Tombstone> {
        let mut all: Vec<Tombstone> = self
            .runs()
            .iter()
            .flat_map(|run| run.iter().map(|slot| slot.tombstone.clone()))
            .collect();
        all.sort_by(|a, b| comparator.compare(&a.start, &b.start).then(b.seqno.cmp(&a.seqno)));
        all
    }
}

impl Drop for Tombstones {
    fn drop(&mut self) {
        let mut kept = self.kept.lock();
        for set in kept.sets.drain(..) {
            // SAFETY: R1: each set was made by a box, and nobody reads it any more.
            drop(unsafe { Box::from_raw(set) });
        }
        self.budget.give(kept.bytes);
    }
}

impl fmt::Debug for Tombstones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tombstones({})", self.runs().iter().map(|run| run.len()).sum::<usize>())
    }
}

/// The middle of a part: its root.
fn middle(part: &[Slot]) -> usize {
    part.len() / 2
}

/// The run of sorted tombstones.
fn run_of(tombstones: Vec<Tombstone>, comparator: &dyn Comparator) -> Run {
    let alone = |tombstone: Tombstone| {
        let (end, seqno) = (Arc::clone(&tombstone.end), tombstone.seqno);
        Slot { tombstone, end, seqno }
    };
    let mut slots: Vec<Slot> = tombstones.into_iter().map(alone).collect();
    sum_up(&mut slots, comparator);
    slots.into()
}

/// Computes the sums of a part from those of its halves (R2).
fn sum_up(part: &mut [Slot], comparator: &dyn Comparator) {
    if part.len() <= 1 {
        return;
    }
    let at = middle(part);
    let (left, rest) = part.split_at_mut(at);
    let (root, right) = rest.split_first_mut().expect("the part is not empty");
    for half in [left, right] {
        if half.is_empty() {
            continue;
        }
        sum_up(half, comparator);
        let below = &half[middle(half)];
        if comparator.compare(&below.end, &root.end).is_gt() {
            root.end = Arc::clone(&below.end);
        }
        root.seqno = root.seqno.max(below.seqno);
    }
}

/// A question to a run.
struct Asked<'a> {
    user: &'a [u8],
    snapshot: Seqno,
    comparator: &'a dyn Comparator,
}

impl Asked<'_> {
    /// The greatest visible number of a tombstone of a part that covers the key, or `best` if that
    /// is greater.
    fn in_part(&self, mut part: &[Slot], mut best: Seqno) -> Seqno {
        while !part.is_empty() {
            let at = middle(part);
            let root = &part[at];
            let compare = |key: &[u8]| self.comparator.compare(key, self.user);
            if root.seqno <= best || compare(&root.end).is_le() {
                return best;
            }
            best = self.in_part(&part[..at], best);
            let Tombstone { start, end, seqno } = &root.tombstone;
            if compare(start) == Ordering::Greater {
                return best; // so do all starts in the right half
            }
            if (best + 1..=self.snapshot).contains(seqno) && compare(end).is_gt() {
                best = *seqno;
            }
            part = &part[at + 1..];
        }
        best
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::key::{Bytewise, ReverseBytewise};
    use proptest::prelude::*;

    fn check(comparator: &dyn Comparator, ranges: &[(Vec<u8>, Vec<u8>)]) {
        let budget = Arc::new(Budget::new(None));
        let tombstones = Tombstones::new(Arc::clone(&budget));
        let mut model: Vec<Tombstone> = Vec::new();
        for (i, (a, b)) in ranges.iter().enumerate() {
            let (start, end) = if comparator.compare(a, b).is_le() { (a, b) } else { (b, a) };
            let (start, end): (Arc<[u8]>, Arc<[u8]>) = (start[..].into(), end[..].into());
            let tombstone = Tombstone { start, end, seqno: i as u64 + 1 };
            model.push(tombstone.clone());
            tombstones.add(tombstone, comparator).unwrap();
            assert!(tombstones.runs().len() <= model.len().ilog2() as usize + 1);
        }
        for user in (0u8..8).map(|i| vec![i]).chain((0u8..8).map(|i| vec![i, 1])).chain([vec![]]) {
            for snapshot in 0..=ranges.len() as u64 + 1 {
                let covers = |t: &&Tombstone| {
                    t.seqno <= snapshot
                        && comparator.compare(&t.start, &user).is_le()
                        && comparator.compare(&user, &t.end).is_lt()
                };
                let wanted = model.iter().filter(covers).map(|t| t.seqno).max().unwrap_or(0);
                assert_eq!(tombstones.covering(&user, snapshot, comparator), wanted, "{user:?}");
            }
        }
        assert_eq!(tombstones.all(comparator).len(), model.len());
        assert_eq!(
            (tombstones.is_empty(), budget.held() == 0),
            (ranges.is_empty(), ranges.is_empty())
        );
        drop(tombstones);
        assert_eq!(budget.held(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]
        #[test]
        fn the_newest_visible_cover_is_found(
            ranges in prop::collection::vec(
                (prop::collection::vec(0u8..8, 0..2), prop::collection::vec(0u8..8, 0..2)), 0..20)
        ) {
            check(&Bytewise, &ranges);
            check(&ReverseBytewise, &ranges);
        }
    }

    #[test]
    fn a_refused_tombstone_changes_nothing() {
        let budget = Arc::new(Budget::new(Some(10)));
        let tombstones = Tombstones::new(Arc::clone(&budget));
        let tombstone = Tombstone { start: (*b"a").into(), end: (*b"b").into(), seqno: 1 };
        assert!(tombstones.add(tombstone, &Bytewise).is_err());
        assert!(tombstones.is_empty() && budget.held() == 0);
    }
}

//! Maps that read ranges: two contention adapting trees, and others to compare them with.
//!
//! # Definitions
//! Keys are the numbers below a key range, and half of them are present. The value of a key is the
//! key, so each lookup and each entry of a range is checked.
//!
//! The contention adapting trees and the lock return the entries of a range as they were at one
//! moment, as a list. A skip list and `words` show one entry after the other, so their ranges are
//! not atomic, and need no list.

use crate::drive::draws::Draws;
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::reproduce::turns::Ended;
use silvics::{
    AllocError, AtomicRanges, CaTree, Domain, Guard, LfcaTree, Lookup, Options, OrderedIndex,
    OrderedScan, SkipList, WordTree,
};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A map that reads ranges. The guard is that of [`Ranged::pin`].
pub trait Ranged: Send + Sync {
    /// Keeps memory that threads read from being freed.
    fn pin(&self) -> Guard;
    /// The value of a key.
    fn get(&self, key: u64, guard: &Guard) -> Option<u64>;
    /// Inserts a key, and returns whether it was absent.
    fn insert(&self, key: u64, guard: &Guard) -> Result<bool, AllocError>;
    /// Removes a key, and returns whether it was present.
    fn remove(&self, key: u64, guard: &Guard) -> Result<bool, AllocError>;
    /// Reads the entries of a range.
    fn read(&self, range: Range<u64>, guard: &Guard) -> Result<Seen, AllocError>;
}

/// The entries of a range, summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub entries: u64,
    /// Whether each entry is in the range, behind the one before, with its value.
    pub right: bool,
}

impl Seen {
    fn of(range: &Range<u64>, entries: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (mut next, mut seen) = (range.start, Self { entries: 0, right: true });
        for (key, value) in entries {
            seen.right &= key == value && key >= next;
            seen.entries += 1;
            next = key + 1;
        }
        seen.right &= next <= range.end;
        seen
    }
}

/// The methods of an index that are alike for all of them.
macro_rules! points {
    () => {
        fn pin(&self) -> Guard {
            self.0.domain().pin()
        }

        fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
            self.0.get(key, guard)
        }

        fn insert(&self, key: u64, guard: &Guard) -> Result<bool, AllocError> {
            Ok(self.0.insert(key, key, guard)?.is_none())
        }

        fn remove(&self, key: u64, guard: &Guard) -> Result<bool, AllocError> {
            Ok(self.0.remove(key, guard)?.is_some())
        }
    };
}

/// An index whose ranges are atomic.
pub struct Atomic<I>(pub I);

impl<I: AtomicRanges + Lookup<Key = u64>> Ranged for Atomic<I> {
    points!();

    fn read(&self, range: Range<u64>, guard: &Guard) -> Result<Seen, AllocError> {
        Ok(Seen::of(&range, self.0.collect_range(range.clone(), guard)?))
    }
}

/// An index whose ranges are scans.
struct Scanned<I>(I);

impl<I: OrderedIndex + OrderedScan + Lookup<Key = u64>> Ranged for Scanned<I> {
    points!();

    fn read(&self, range: Range<u64>, guard: &Guard) -> Result<Seen, AllocError> {
        Ok(Seen::of(&range, self.0.range(range.clone(), guard)))
    }
}

/// A map of the standard library under a readers–writer lock. If an allocation fails, the process
/// ends.
pub struct Locked {
    map: RwLock<BTreeMap<u64, u64>>,
    domain: Domain,
}

impl Locked {
    /// An empty map.
    pub fn new() -> Self {
        Self { map: RwLock::default(), domain: Domain::new() }
    }

    fn read_lock(&self) -> RwLockReadGuard<'_, BTreeMap<u64, u64>> {
        // A thread that has panicked has ended the command's run, so nobody uses the content.
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map, for a writer.
    pub fn write_lock(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, u64>> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ranged for Locked {
    fn pin(&self) -> Guard {
        self.domain.pin()
    }

    fn get(&self, key: u64, _guard: &Guard) -> Option<u64> {
        self.read_lock().get(&key).copied()
    }

    fn insert(&self, key: u64, _guard: &Guard) -> Result<bool, AllocError> {
        Ok(self.write_lock().insert(key, key).is_none())
    }

    fn remove(&self, key: u64, _guard: &Guard) -> Result<bool, AllocError> {
        Ok(self.write_lock().remove(&key).is_some())
    }

    fn read(&self, range: Range<u64>, _guard: &Guard) -> Result<Seen, AllocError> {
        let read = |map: &BTreeMap<u64, u64>| -> Vec<(u64, u64)> {
            map.range(range.clone()).map(|(key, value)| (*key, *value)).collect()
        };
        let entries = read(&self.read_lock());
        Ok(Seen::of(&range, entries))
    }
}

/// The options of an index with a domain of its own.
pub fn apart() -> Options {
    Options { domain: Some(Domain::new()), ..Options::default() }
}

/// The lock-based tree.
pub const CA: &str = "ca-tree";
/// The lock-free tree.
pub const LFCA: &str = "lfca-tree";
/// The related lock-free structure.
pub const SKIPLIST: &str = "skiplist";
/// The only other map whose ranges are atomic.
pub const LOCKED: &str = "RwLock<BTreeMap>";

/// A map with its name.
pub struct Subject {
    pub name: &'static str,
    pub map: Box<dyn Ranged>,
}

/// All maps, each with half of the keys below `keys`.
pub fn all(keys: u64, seed: u64) -> Result<Vec<Subject>, Error> {
    type Make = fn(&Options) -> Result<Box<dyn Ranged>, AllocError>;
    let makes: [(&'static str, Make); 5] = [
        (CA, |options| Ok(Box::new(Atomic(CaTree::<u64>::with_options(options)?)))),
        (LFCA, |options| Ok(Box::new(Atomic(LfcaTree::<u64>::with_options(options)?)))),
        (SKIPLIST, |options| Ok(Box::new(Scanned(SkipList::<u64>::with_options(options)?)))),
        ("words", |options| Ok(Box::new(Scanned(WordTree::<u64>::with_options(options)?)))),
        (LOCKED, |_| Ok(Box::new(Locked::new()))),
    ];
    let subjects = makes.into_iter().map(|(name, make)| {
        let failed = |error| Error::Alloc { index: name.into(), error };
        let map = make(&apart()).map_err(failed)?;
        fill(&*map, keys, seed).map_err(failed)?;
        Ok(Subject { name, map })
    });
    subjects.collect()
}

/// Inserts half of the keys below `keys`, chosen at random, in random order.
pub fn fill(map: &dyn Ranged, keys: u64, seed: u64) -> Result<(), AllocError> {
    let mut draws = Draws::new(seed, 0, 0);
    let (mut guard, mut there) = (map.pin(), 0);
    while there < keys / 2 {
        there += u64::from(map.insert(draws.below(keys), &guard)?);
        guard.repin();
    }
    Ok(())
}

/// The shares of operations, in percent. The rest are lookups.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Inserts and removals, equally often.
    pub updates: u64,
    /// Ranges.
    pub ranges: u64,
}

/// The operations between two renewals of a pin.
const OPS_OF_A_PIN: u64 = 32;

/// Operations on random keys.
pub struct Driver<'a> {
    pub map: &'a dyn Ranged,
    /// The end of the keys.
    pub keys: u64,
    pub mix: Mix,
    /// The most keys of a range. Each length up to this one is equally likely.
    pub longest: &'a AtomicU64,
}

/// The work of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub ops: u64,
    /// The entries that ranges have returned.
    pub entries: u64,
}

impl Driver<'_> {
    /// Works until the run is over.
    pub fn drive(&self, mut draws: Draws, ended: &Ended) -> Result<Done, Failure> {
        let (mut guard, mut done) = (self.map.pin(), Done::default());
        while !ended.is_over() {
            let op = self.op(&mut draws, &guard);
            done.entries += op.map_err(|refused| refused.of(done.ops))?;
            done.ops += 1;
            if done.ops % OPS_OF_A_PIN == 0 {
                guard.repin();
            }
        }
        Ok(done)
    }

    /// Does one operation. Returns the number of entries that a range returned.
    #[inline]
    fn op(&self, draws: &mut Draws, guard: &Guard) -> Result<u64, Refused> {
        let Self { map, keys, mix: Mix { updates, ranges }, longest } = *self;
        let (choice, key) = (draws.below(200), draws.below(keys));
        if choice < 2 * updates {
            _ = if choice % 2 == 0 { map.insert(key, guard)? } else { map.remove(key, guard)? };
        } else if choice < 2 * (updates + ranges) {
            let longest = longest.load(Ordering::Relaxed); // Relaxed: only the number counts
            let end = key + 1 + draws.below(longest);
            let seen = map.read(key..end, guard)?;
            return if seen.right { Ok(seen.entries) } else { Err(Refused::Range(key..end)) };
        } else if map.get(key, guard).is_some_and(|value| value != key) {
            return Err(Refused::Value(key));
        }
        Ok(0)
    }
}

/// The reason why an operation has no result.
enum Refused {
    Alloc(AllocError),
    Range(Range<u64>),
    Value(u64),
}

impl From<AllocError> for Refused {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl Refused {
    fn of(self, ops: u64) -> Failure {
        match self {
            Self::Alloc(error) => Failure::Alloc { error, done: ops as usize },
            Self::Range(Range { start, end }) => {
                Failure::Wrong(format!("the range {start}..{end} has wrong entries"))
            }
            Self::Value(key) => Failure::Wrong(format!("key {key} has another key's value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_range_are_checked() {
        let seen = |entries: &[(u64, u64)]| Seen::of(&(3..6), entries.iter().copied());
        assert_eq!(seen(&[]), Seen { entries: 0, right: true });
        assert_eq!(seen(&[(3, 3), (5, 5)]), Seen { entries: 2, right: true });
        for wrong in [[(3, 3), (3, 3)], [(5, 5), (4, 4)], [(3, 3), (6, 6)], [(3, 4), (5, 5)]] {
            assert!(!seen(&wrong).right, "{wrong:?}");
        }
        assert!(!seen(&[(2, 2)]).right);
    }

    #[test]
    fn all_maps_read_the_same_ranges() {
        let maps = all(1000, 1).unwrap();
        let seen = |range: Range<u64>| {
            let seen = maps.iter().map(|one| one.map.read(range.clone(), &one.map.pin()).unwrap());
            seen.collect::<Vec<_>>()
        };
        assert_eq!(seen(0..1000), [Seen { entries: 500, right: true }; 5]);
        let some = seen(300..400);
        assert!(some.iter().all(|one| one == &some[0] && one.right), "{some:?}");
    }
}

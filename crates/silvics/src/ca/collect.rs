//! Atomic reads and updates of ranges.
//!
//! # Algorithm
//! ```text
//! collect(range), without locks, at most twice:
//!     for each base node of the range, ascending: read the version of its lock, then its entries
//!     validate all versions; if one has changed, the entries do not belong together
//! collect(range), with locks; update(range, new):
//!     lock the base nodes of the range, ascending, and keep all locks
//!     read their entries; an update also computes all new values, then puts them
//!     count the operation in the statistics of each base node; unlock; adapt one of them
//! ```
//! Each base node leads to the next by the bound between them, which does not change while the one
//! before it is locked, or while its version stays the same (R4). So there is no key of the range
//! between them.
//!
//! # One moment
//! A `SeqCst` fence stands after the last version was read, or after the last lock was taken, and
//! before the versions are validated and the locks are released. The operation takes effect there.
//! A writer that takes a lock of the range earlier in the order of all `SeqCst` accesses has
//! released it when the operation reads its version or takes it. One that takes it later changes
//! the version after it was validated, or finds it released.

use super::build::{Build, Form, Lock};
use super::key::{CaKey, Slots};
use super::node::NodeRef;
use super::ops::{Hold, Share, Way, goes_right};
use super::search::{Locked, Seen, Torn, Valid, follow, order, rank};
use super::word::Word;
use super::{Ca, NEVER_TORN, avl};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::{AllocError, reserved};
use crate::frame::{AlgorithmBounds, afterwards};
use silvics_pool::Placement;
use silvics_sync::atomic::{Ordering, fence};
use std::cmp::Ordering as Order;
use std::ops::Bound;

/// The attempts to read a range without locks.
const ATTEMPTS: u32 = 2;

/// The entries of a range, while its keys may not be looked at.
type Entries<K> = Vec<(<K as Slots>::Slot, u64)>;

/// A bound of a range, and whether its key is part of the range.
type Edge<'k, K> = Option<(<K as Slots>::Probe<'k>, bool)>;

/// The reason why a range could not be read.
enum Failed {
    /// A writer has changed it meanwhile.
    Torn,
    Memory(AllocError),
}

impl Failed {
    /// The reason why a range could not be read under a lock.
    fn under_lock(self) -> AllocError {
        match self {
            Self::Memory(error) => error,
            Self::Torn => unreachable!("{NEVER_TORN}"),
        }
    }
}

impl From<Torn> for Failed {
    fn from(Torn: Torn) -> Self {
        Self::Torn
    }
}

impl From<AllocError> for Failed {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

/// The keys of a range.
struct Within<'k, K: CaKey + ?Sized> {
    low: Edge<'k, K>,
    high: Edge<'k, K>,
}

impl<'k, K: CaKey + ?Sized> Within<'k, K> {
    fn new((low, high): (Bound<K::Ref<'k>>, Bound<K::Ref<'k>>)) -> Self {
        let edge = |bound| match bound {
            Bound::Unbounded => None,
            Bound::Included(key) => Some((K::probe(key), true)),
            Bound::Excluded(key) => Some((K::probe(key), false)),
        };
        Self { low: edge(low), high: edge(high) }
    }

    /// The positions in a node of the entries of the range, or of the children that may have some.
    fn positions(
        &self,
        node: NodeRef<'_, K>,
        valid: impl Valid,
    ) -> Result<std::ops::Range<usize>, Torn> {
        let (len, first) = (node.len(), usize::from(!node.is_leaf()));
        let low = match &self.low {
            None => 0,
            Some((key, included)) => {
                let or_equal = first == 1 || !included;
                rank(node, (first, len), key, or_equal, valid)? - first
            }
        };
        let high = match &self.high {
            None => len,
            Some((key, included)) => rank(node, (first, len), key, *included, valid)?,
        };
        Ok(low..high)
    }

    /// Whether keys of the range may lie behind a bound. The bound's object is not reclaimed.
    fn goes_beyond(&self, bound: K::Slot) -> bool {
        self.high.as_ref().is_none_or(|(key, included)| match order::<K>(bound, key, Locked) {
            Ok(Order::Equal) => *included,
            order => matches!(order, Ok(Order::Less)),
        })
    }
}

/// A base node of a range, with its lock.
struct Held<'g, K: CaKey + ?Sized> {
    way: Way<'g, K>,
    hold: Hold<'g>,
    contended: bool,
}

/// Calls `each` for the leaves of a container that may have keys of a range, with the positions of
/// these keys.
///
/// # Safety
/// That of [`follow`].
unsafe fn leaves<'g, K: CaKey + ?Sized, V: Valid, E: From<Torn>>(
    word: Word,
    within: &Within<'_, K>,
    valid: V,
    each: &mut impl FnMut(NodeRef<'g, K>, std::ops::Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: our contract.
    let Some(node) = (unsafe { follow::<'g, K>(word, valid)? }) else { return Ok(()) };
    let positions = within.positions(node, valid)?;
    if node.is_leaf() {
        return each(node, positions);
    }
    for at in positions {
        // SAFETY: the child was read from a node of the container after the version, too.
        unsafe { leaves(node.child(at), within, valid, each)? };
    }
    Ok(())
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// Calls `each` for the leaves of a base node that the caller has locked, or shares, as
    /// [`leaves`] does. The nodes of an AVL tree are leaves of one entry.
    fn leaves_under_lock<'g, E: From<Torn>>(
        way: &Way<'g, K>,
        within: &Within<'_, K>,
        each: &mut impl FnMut(NodeRef<'g, K>, std::ops::Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let word = way.base.get().container.word();
        if B::FORM == Form::Blocks {
            // SAFETY: the word was read from the container under its lock.
            return unsafe { leaves(word, within, Locked, each) };
        }
        let is_before = |node: NodeRef<'g, K>| {
            within.low.as_ref().is_some_and(|(key, included)| {
                match order::<K>(node.key(0), key, Locked) {
                    Ok(Order::Equal) => !included,
                    order => matches!(order, Ok(Order::Less)),
                }
            })
        };
        let mut each = |node: NodeRef<'g, K>| {
            let is_within = within.goes_beyond(node.key(0));
            if is_within {
                each(node, 0..1)?;
            }
            Ok(is_within)
        };
        // SAFETY: the word was read from the container under its lock.
        unsafe { avl::walk(word, false, is_before, &mut each) }
    }

    /// The way to the first base node of a range, or to that behind a bound.
    fn way_into<'g>(
        &'g self,
        within: &Within<'_, K>,
        behind: Option<K::Slot>,
        guard: &'g Guard,
    ) -> Way<'g, K> {
        if let Some(behind) = behind {
            // SAFETY: R2: the bound was read under the guard.
            let probe = unsafe { K::probe_slot(behind, &()) };
            return self.way_to(&probe, guard);
        }
        let low = within.low.as_ref();
        self.way(|bound| low.is_some_and(|(key, _)| goes_right::<K>(bound, key)), guard)
    }

    /// Calls `visit` with the way to each base node of a range, ascending. It returns the bound
    /// above the base node, or nothing if the way was old, and then the way is searched again.
    fn base_nodes<'g, E>(
        &'g self,
        within: &Within<'_, K>,
        guard: &'g Guard,
        mut visit: impl FnMut(Way<'g, K>) -> Result<Option<Option<K::Slot>>, E>,
    ) -> Result<(), E> {
        let mut behind = None;
        loop {
            let Some(bound) = visit(self.way_into(within, behind, guard))? else { continue };
            behind = bound.filter(|bound| within.goes_beyond(*bound));
            if behind.is_none() {
                return Ok(());
            }
        }
    }

    /// See [`AtomicRanges::collect_range`](crate::AtomicRanges::collect_range).
    pub(super) fn collect<'g>(
        &'g self,
        bounds: AlgorithmBounds<'_, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        let within = Within::<K>::new(bounds);
        let mut slots = Vec::new();
        let mut is_read = false;
        if B::LOCK == Lock::Shared {
            self.read_range_shared(&within, &mut slots, guard)?;
            is_read = true;
        }
        let attempts = if B::LOCK == Lock::Version { ATTEMPTS } else { 0 };
        for _ in 0..attempts {
            match self.read_range(&within, &mut slots, guard) {
                Ok(()) => is_read = true,
                Err(Failed::Torn) => continue,
                Err(Failed::Memory(error)) => return Err(error),
            }
            break;
        }
        if !is_read {
            self.read_range_locked(&within, &mut slots, guard)?;
        }
        let mut entries = Vec::new();
        reserved(&mut entries, slots.len())?;
        // SAFETY: N3: the entries were in the tree under the guard.
        entries.extend(slots.iter().map(|(slot, value)| (unsafe { K::key(*slot) }, *value)));
        Ok(entries)
    }

    /// Reads the entries of a range without locks.
    fn read_range<'g>(
        &'g self,
        within: &Within<'_, K>,
        slots: &mut Entries<K>,
        guard: &'g Guard,
    ) -> Result<(), Failed> {
        slots.clear();
        let mut all: Vec<Seen<'g>> = Vec::new();
        self.base_nodes(within, guard, |way| {
            let lock = &way.base.get().lock;
            let version = lock.read().map_err(|_| Torn)?;
            let seen = Seen { lock, version };
            reserved(&mut all, 1)?.push(seen);
            // SAFETY: the word was read from the container after the version, under the guard.
            unsafe {
                leaves(way.base.get().container.word(), within, seen, &mut |leaf, positions| {
                    let entries = positions.map(|at| (leaf.key(at), leaf.value(at)));
                    reserved(slots, entries.len())?.extend(entries);
                    Ok::<_, Failed>(())
                })?;
            }
            let bound = way.bound(true)?;
            if !seen.is_valid() {
                return Err(Failed::Torn); // soon, and not after the whole range
            }
            Ok(Some(bound))
        })?;
        if all.len() > 1 {
            fence(Ordering::SeqCst); // LP(collect_range)
        }
        if all.iter().all(|seen| seen.is_valid()) || planted(Canary::RangeNotValidated) {
            Ok(())
        } else {
            Err(Failed::Torn)
        }
    }

    /// Reads the entries of a range with shares of the locks of its base nodes.
    fn read_range_shared<'g>(
        &'g self,
        within: &Within<'_, K>,
        slots: &mut Entries<K>,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let mut all: Vec<Share<'g>> = Vec::new();
        self.base_nodes(within, guard, |way| {
            reserved(&mut all, 1)?;
            let Some(share) = Share::new::<B>(way.base) else { return Ok(None) };
            let Ok(bound) = way.bound(true) else { return Ok(None) };
            all.push(share);
            let read = Self::leaves_under_lock(&way, within, &mut |leaf, positions| {
                let entries = positions.map(|at| (leaf.key(at), leaf.value(at)));
                reserved(slots, entries.len())?.extend(entries);
                Ok::<_, Failed>(())
            });
            read.map_err(Failed::under_lock)?;
            Ok::<_, AllocError>(Some(bound))
        })?;
        if all.len() > 1 {
            fence(Ordering::SeqCst); // LP(collect_range)
            if B::ADAPTS {
                for share in &all {
                    share.note::<B>(-B::LIMITS.range);
                }
            }
        }
        Ok(())
    }

    /// Locks the base nodes of a range.
    fn lock_range<'g>(
        &'g self,
        within: &Within<'_, K>,
        guard: &'g Guard,
    ) -> Result<Vec<Held<'g, K>>, AllocError> {
        let mut all = Vec::new();
        self.base_nodes(within, guard, |way| {
            reserved(&mut all, 1)?;
            let Some((hold, contended)) = Hold::new::<B>(way.base) else { return Ok(None) };
            let Ok(bound) = way.bound(true) else { return Ok(None) };
            all.push(Held { way, hold, contended });
            Ok(Some(bound))
        })?;
        if all.len() > 1 {
            fence(Ordering::SeqCst); // LP(collect_range, update_range)
        }
        Ok(all)
    }

    /// Reads the entries of a range with the locks of its base nodes.
    #[cold]
    fn read_range_locked<'g>(
        &'g self,
        within: &Within<'_, K>,
        slots: &mut Entries<K>,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        slots.clear();
        let all = self.lock_range(within, guard)?;
        Self::entries(&all, within, |leaf, at| {
            reserved(slots, 1)?.push((leaf.key(at), leaf.value(at)));
            Ok(())
        })?;
        afterwards(|| self.release(all, guard));
        Ok(())
    }

    /// See [`RangeUpdates::update_range`](crate::RangeUpdates::update_range).
    pub(super) fn update_all(
        &self,
        bounds: AlgorithmBounds<'_, Self>,
        new: &mut dyn FnMut(K::Ref<'_>, u64) -> u64,
        guard: &Guard,
    ) -> Result<usize, AllocError> {
        let within = Within::<K>::new(bounds);
        let mut all = self.lock_range(&within, guard)?;
        let mut values: Vec<(NodeRef<'_, K>, usize, u64)> = Vec::new();
        // If the closure panics, or there is no memory, no value has changed.
        Self::entries(&all, &within, |leaf, at| {
            // SAFETY: N3: the entry is in the container, which is locked.
            let key = unsafe { K::key(leaf.key(at)) };
            let value = new(key, leaf.value(at));
            reserved(&mut values, 1)?.push((leaf, at, value));
            Ok(())
        })?;
        if planted(Canary::RangeUnlockedEarly) {
            self.release(std::mem::take(&mut all), guard);
        }
        for (leaf, at, value) in &values {
            leaf.set_value(*at, *value);
        }
        afterwards(|| self.release(all, guard));
        Ok(values.len())
    }

    /// Calls `each` with the leaf and the position of each entry of a range.
    fn entries<'g>(
        all: &[Held<'g, K>],
        within: &Within<'_, K>,
        mut each: impl FnMut(NodeRef<'g, K>, usize) -> Result<(), AllocError>,
    ) -> Result<(), AllocError> {
        for held in all {
            let found = Self::leaves_under_lock(&held.way, within, &mut |leaf, mut positions| {
                positions.try_for_each(|at| each(leaf, at)).map_err(Failed::Memory)
            });
            found.map_err(Failed::under_lock)?;
        }
        Ok(())
    }

    /// Counts an operation in the statistics of its base nodes, unlocks them, and splits or joins
    /// one of them if its statistics say so.
    fn release<'g>(&'g self, mut all: Vec<Held<'g, K>>, guard: &'g Guard) {
        let off = if all.len() > 1 { B::LIMITS.range } else { 0 };
        let Some(first) = all.first() else { return };
        let chosen = first.way.base.get().writes() as usize % all.len();
        let chosen = all.swap_remove(chosen);
        for Held { way, hold, contended } in all {
            Self::note(way.base, contended, off);
            drop(hold);
        }
        self.adapt(&chosen.way, chosen.hold, (chosen.contended, off), guard);
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::super::CaTree;
    use super::super::build::Restless;
    use super::*;
    use crate::adaptation::Adapts;
    use crate::index::{Lookup, Options, OrderedIndex};
    use silvics_pool::Pooled;
    use std::ops::RangeBounds;

    /// A range is read alike with the locks of its base nodes and without, for bounds of each kind.
    #[test]
    fn locks_make_no_difference() {
        let tree = CaTree::<u64, Pooled, Restless>::with_options(&Options::default()).unwrap();
        let guard = tree.domain().pin();
        // Splits and joins come by chance in this build.
        let mut n = 0;
        while n < 3001 || tree.adaptation(&guard).base_nodes.len() < 6 {
            tree.insert(n * 7919 % 3001 * 2, n, &guard).unwrap();
            n += 1;
        }
        let kinds = |key| [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded];
        let all =
            tree.0.lock_range(&Within::<u64>::new((Bound::Unbounded, Bound::Unbounded)), &guard);
        assert!(all.unwrap().len() > 5, "the range has several base nodes");
        for (from, to) in [(0, 6000), (17, 4001), (400, 400), (400, 402), (900, 100)] {
            for low in kinds(from) {
                for high in kinds(to) {
                    let within = Within::<u64>::new((low, high));
                    let (mut free, mut locked) = (Vec::new(), Vec::new());
                    assert!(tree.0.read_range(&within, &mut free, &guard).is_ok());
                    tree.0.read_range_locked(&within, &mut locked, &guard).unwrap();
                    assert_eq!(free, locked, "{low:?} {high:?}");
                    let wanted = (0..3001).map(|n| 2 * n).filter(|key| (low, high).contains(key));
                    assert!(free.iter().map(|(key, _)| *key).eq(wanted), "{low:?} {high:?}");
                }
            }
        }
    }
}

//! Steps along a map from both ends, without a pin between them.
//!
//! A step behaves as a search for the next entry does: it finds the one that is in the map at that
//! moment. To do so without a search, it looks some entries ahead and adds counts to each. They lie
//! in one base node, whose address in the tree it keeps: as long as the base node is linked, no
//! entry was added or removed there.
//!
//! Should the address be that of another base node after all (the numbers in it wrap around), the
//! step returns an entry that was in the map before, or misses a new one.

use super::object::{EntrySlot, Header, Shape, address, header, quietly};
use super::{Entry, InNodes, Map, Sought, sought_number};
use crate::ca::build::{Adaptive, Build};
use crate::ca::key::Slots;
use crate::domain::Guard;
use crate::lfca::{Address, Scan, from_bound};
use crate::map::ord::numbers::{self, is_number};
use crate::map::ord::slot::Probe;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::mem::replace;
use std::ops::{Bound, RangeBounds};

/// The most entries that a step looks ahead.
const MOST_AHEAD: usize = 32;

/// The two ends of a range that is being taken.
pub struct Ends<'m, K, V, B: Build = Adaptive> {
    front: Steps<'m, K, V, B, false>,
    back: Steps<'m, K, V, B, true>,
}

/// Steps from the front, or from the back if they are in descending order.
struct Steps<'m, K, V, B: Build, const DESCENDS: bool> {
    /// The last entry that was returned.
    last: Option<Last<'m, K, V, B>>,
    /// Entries behind it.
    ahead: Ahead<'m, K, V, B>,
    /// The number of entries to look ahead.
    most: usize,
}

/// An entry that was the last one. If its destructor panics, the step goes on.
struct Quiet<T>(Option<T>);

impl<T> Drop for Quiet<T> {
    fn drop(&mut self) {
        quietly(|| drop(self.0.take()));
    }
}

/// The counts that the steps have of an entry before they return it: that of the result, and unless
/// the key is a number, that of [`Last`].
fn counts<K>() -> u32 {
    if is_number::<K>() { 1 } else { 2 }
}

/// An entry whose key is kept.
enum Last<'m, K, V, B: Build> {
    Number(u64),
    Entry(Entry<'m, K, V, B>),
}

impl<'m, K, V, B: Build> Last<'m, K, V, B> {
    /// Keeps the key of an entry, with one of its counts unless it is a number.
    #[inline(always)]
    fn new(map: &'m Map<K, V, B>, slot: EntrySlot) -> Self {
        if is_number::<K>() {
            Self::Number(slot.head())
        } else {
            Self::Entry(Entry::new(map, slot))
        }
    }

    fn sought(&self) -> Sought<'_> {
        match self {
            Self::Number(number) => sought_number(*number),
            Self::Entry(entry) => entry.map.sought(entry.slot, None),
        }
    }

    /// The place behind it, in either direction.
    #[allow(clippy::unnecessary_wraps)] // an end of the tree has no place
    fn behind(&self) -> Place<'_> {
        Some((self.sought(), false))
    }
}

/// A place in the order of the keys.
type Place<'q> = Option<(Sought<'q>, bool)>;

/// Entries that follow each other in one base node.
struct Ahead<'m, K, V, B: Build> {
    map: &'m Map<K, V, B>,
    /// The next one last. The list has `counts` of each.
    slots: Vec<EntrySlot>,
    /// The address of their base node.
    address: Address,
}

impl<K, V, B: Build> Drop for Ahead<'_, K, V, B> {
    fn drop(&mut self) {
        let memory = self.map.objects().memory();
        for slot in self.slots.drain(..) {
            for _ in 0..counts::<K>() {
                // SAFETY: the list has this count.
                quietly(|| unsafe { memory.release(address(slot.word)) });
            }
        }
    }
}

impl<'m, K, V, B: Build> Ahead<'m, K, V, B> {
    fn nothing(map: &'m Map<K, V, B>) -> Self {
        Self { map, slots: Vec::new(), address: Address::default() }
    }

    /// The next entry between two places, and at most `most` others.
    fn find<const DESCENDS: bool>(
        map: &'m Map<K, V, B>,
        places: (&Place<'_>, &Place<'_>),
        most: usize,
        guard: &Guard,
    ) -> Option<Self> {
        let mut scan = Scan::<'_, _, _, _, DESCENDS>::new(&map.tree, guard);
        let (first, _) = scan.next(places)?;
        let mut slots = Vec::with_capacity(1 + most);
        slots.push(first);
        while slots.len() <= most
            && let Some((slot, _)) = scan.next_here(places.1)
        {
            map.objects().memory().fetch(address(slot.word));
            slots.push(slot);
        }
        // Nothing panics from here on.
        for slot in &slots {
            // SAFETY: E1: it was found under the guard.
            unsafe { header(slot.word) }.hold(counts::<K>());
        }
        slots.reverse();
        Some(Self { map, slots, address: scan.address() })
    }
}

impl<'m, K, V, B: Build, const DESCENDS: bool> Steps<'m, K, V, B, DESCENDS> {
    fn new(map: &'m Map<K, V, B>) -> Self {
        Self { last: None, ahead: Ahead::nothing(map), most: 0 }
    }

    /// The next entry. `others` are the steps from the other end, which have gone up to here.
    fn step<Q: Ord + ?Sized, const ASCENDS: bool>(
        &mut self,
        others: &Steps<'m, K, V, B, ASCENDS>,
        (from, to): (Bound<&Q>, Bound<&Q>),
    ) -> Option<Entry<'m, K, V, B>>
    where
        K: Borrow<Q>,
    {
        let (map, other) = (self.ahead.map, others.last.as_ref());
        // Both may run destructors when they are dropped: after the guard.
        let (_behind, _last);
        let guard = map.guard();
        let slot = if let Some(slot) = self.next_ahead(other, &guard) {
            slot
        } else {
            _behind = replace(&mut self.ahead, Ahead::nothing(map));
            let found = Map::<K, V, B>::with_place(from, !DESCENDS, |start| {
                Map::<K, V, B>::with_place(to, DESCENDS, |end| {
                    let start = self.last.as_ref().map_or(*start, Last::behind);
                    let end = other.map_or(*end, Last::behind);
                    Ahead::find::<DESCENDS>(map, (&start, &end), self.most, &guard)
                })
            });
            self.ahead = found?;
            self.most = (2 * self.most).clamp(4, MOST_AHEAD);
            self.ahead.slots.pop()?
        };
        _last = Quiet(self.last.replace(Last::new(map, slot)));
        Some(Entry::new(map, slot))
    }

    /// The next entry, if the map has not changed there.
    #[inline]
    fn next_ahead(
        &mut self,
        other: Option<&Last<'m, K, V, B>>,
        guard: &Guard,
    ) -> Option<EntrySlot> {
        let slot = *self.ahead.slots.last()?;
        if !self.ahead.map.tree.is_linked(self.ahead.address, guard) {
            self.most /= 4;
            return None;
        }
        let is_between = other.is_none_or(|other| is_before::<K, V, B, DESCENDS>(slot, other));
        is_between.then(|| self.ahead.slots.pop()).flatten()
    }
}

/// Whether an entry comes before another one, in the direction of the steps.
fn is_before<K, V, B: Build, const DESCENDS: bool>(
    slot: EntrySlot,
    other: &Last<'_, K, V, B>,
) -> bool {
    let other = other.sought();
    // SAFETY: the caller has a count of the object.
    let order = InNodes::order(slot, &other)
        .unwrap_or_else(|| unsafe { InNodes::order_by_object(slot, &other) });
    order == if DESCENDS { Ordering::Greater } else { Ordering::Less }
}

impl<K, V, B: Build> Map<K, V, B> {
    /// Calls `then` with a bound as a place: the low one, or the high one.
    fn with_place<Q: Ord + ?Sized, R>(
        bound: Bound<&Q>,
        is_low: bool,
        then: impl FnOnce(&Place<'_>) -> R,
    ) -> R
    where
        K: Borrow<Q>,
    {
        if is_number::<K>() {
            let bound = numbers::bound(bound.map(Self::position), is_low);
            return then(&from_bound(bound.map(sought_number)));
        }
        let (Bound::Included(asked) | Bound::Excluded(asked)) = bound else { return then(&None) };
        let compare = |other: &Header| {
            let word = std::ptr::from_ref(other).addr() as u64;
            // SAFETY: E2, and the caller's guard keeps the object (E1).
            unsafe { Shape::<K, V>::key(word) }.borrow().cmp(asked)
        };
        let probe = Probe::asked(Self::asked_head(asked), &compare, None);
        then(&Some((probe, matches!(bound, Bound::Included(_)))))
    }

    /// The first entry at or behind a bound, or the last one at or before it if `DESCENDS`.
    pub fn beside<Q: Ord + ?Sized, const DESCENDS: bool>(
        &self,
        bound: Bound<&Q>,
    ) -> Option<Entry<'_, K, V, B>>
    where
        K: Borrow<Q>,
    {
        let guard = self.guard();
        let mut scan = Scan::<'_, _, _, _, DESCENDS>::new(&self.tree, &guard);
        let (slot, _) = Self::with_place(bound, !DESCENDS, |from| scan.next((from, &None)))?;
        Some(Entry::held(self, slot))
    }
}

impl<'m, K, V, B: Build> Ends<'m, K, V, B> {
    /// A range of which nothing is taken yet.
    pub fn new(map: &'m Map<K, V, B>) -> Self {
        Self { front: Steps::new(map), back: Steps::new(map) }
    }

    /// Takes an entry from the front. Each call gets the same range.
    pub fn next<Q: Ord + ?Sized>(
        &mut self,
        range: &impl RangeBounds<Q>,
    ) -> Option<Entry<'m, K, V, B>>
    where
        K: Borrow<Q>,
    {
        self.front.step(&self.back, (range.start_bound(), range.end_bound()))
    }

    /// Takes an entry from the back. Each call gets the same range.
    pub fn next_back<Q: Ord + ?Sized>(
        &mut self,
        range: &impl RangeBounds<Q>,
    ) -> Option<Entry<'m, K, V, B>>
    where
        K: Borrow<Q>,
    {
        self.back.step(&self.front, (range.end_bound(), range.start_bound()))
    }
}

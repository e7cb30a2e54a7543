//! Steps along a map from both ends, without a pin between them.
//!
//! A step behaves as a search for the next entry does: it finds the one that is in the map at that
//! moment. To do so without a search, it looks some entries ahead and adds counts to each. They lie
//! in one base node, whose address in the tree it keeps: as long as the base node is linked, no
//! entry was added or removed there.
//!
//! Should the address be that of another base node after all (the numbers in it wrap around), the
//! step returns an entry that was in the map before, or misses a new one.

use super::object::{EntrySlot, Header, Shape, address, header};
use super::{Entry, InNodes, Map, Sought, sought_number};
use crate::ca::build::{Adaptive, Build};
use crate::ca::key::Slots;
use crate::domain::Guard;
use crate::lfca::{Address, Scan, from_bound};
use crate::map::ord::numbers::{self, is_number};
use crate::map::ord::slot::Probe;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::{Bound, RangeBounds};

/// The most entries that a step looks ahead.
const MOST_AHEAD: usize = 32;

/// The two ends of a range that is being taken.
pub struct Ends<'m, K, V, B: Build = Adaptive> {
    front: Steps<'m, K, V, B, false>,
    back: Steps<'m, K, V, B, true>,
}

/// Steps from one end, in descending order if they `DESCEND`.
struct Steps<'m, K, V, B: Build, const DESCENDS: bool> {
    map: &'m Map<K, V, B>,
    /// The last entry that was returned.
    last: Option<Last<'m, K, V, B>>,
    /// Entries behind it, the next one last. The steps have `counts` of each.
    ahead: Vec<EntrySlot>,
    /// The address of their base node.
    address: Address,
    /// The number of entries to look ahead.
    most: usize,
}

/// The counts of an entry that is about to be returned: one for the result, and one for [`Last`].
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
}

/// A place in the order of the keys.
type Place<'q> = Option<(Sought<'q>, bool)>;

impl<'m, K, V, B: Build, const DESCENDS: bool> Steps<'m, K, V, B, DESCENDS> {
    fn new(map: &'m Map<K, V, B>) -> Self {
        Self { map, last: None, ahead: Vec::new(), address: Address::default(), most: 0 }
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
        let (map, other) = (self.map, others.last.as_ref());
        let guard = map.guard();
        if let Some(slot) = self.next_ahead(other, &guard) {
            return Some(self.taken(slot));
        }
        let found = Map::<K, V, B>::with_place(from, !DESCENDS, |start| {
            Map::<K, V, B>::with_place(to, DESCENDS, |end| {
                let start = self.last.as_ref().map_or(*start, |last| Some((last.sought(), false)));
                let end = other.map_or(*end, |other| Some((other.sought(), false)));
                search::<_, _, _, DESCENDS>(map, (&start, &end), self.most, &guard)
            })
        })?;
        (self.ahead, self.address) = (found.slots, found.address);
        self.most = (2 * self.most).clamp(4, MOST_AHEAD);
        let slot = self.ahead.pop()?;
        Some(self.taken(slot))
    }

    /// Takes an entry, of which the steps have all counts.
    #[inline(always)]
    fn taken(&mut self, slot: EntrySlot) -> Entry<'m, K, V, B> {
        self.last = Some(Last::new(self.map, slot));
        Entry::new(self.map, slot)
    }

    /// The next entry, if the map has not changed there.
    #[inline]
    fn next_ahead(
        &mut self,
        other: Option<&Last<'m, K, V, B>>,
        guard: &Guard,
    ) -> Option<EntrySlot> {
        let slot = *self.ahead.last()?;
        let is_same = self.map.tree.is_linked(self.address, guard);
        if is_same && other.is_none_or(|other| is_before::<K, V, B, DESCENDS>(slot, other)) {
            return self.ahead.pop();
        }
        if !is_same {
            self.most /= 4;
        }
        self.look_back();
        None
    }

    /// Forgets the entries ahead.
    fn look_back(&mut self) {
        while let Some(slot) = self.ahead.pop() {
            for _ in 0..counts::<K>() {
                // SAFETY: the steps have this count.
                unsafe { self.map.objects().memory().release(address(slot.word)) };
            }
        }
    }
}

impl<K, V, B: Build, const DESCENDS: bool> Drop for Steps<'_, K, V, B, DESCENDS> {
    fn drop(&mut self) {
        self.look_back();
    }
}

/// An entry and those behind it in the same base node, the first one last. They have their counts.
struct Found {
    slots: Vec<EntrySlot>,
    address: Address,
}

/// Finds the next entry between two places, and at most `most` others.
fn search<K, V, B: Build, const DESCENDS: bool>(
    map: &Map<K, V, B>,
    places: (&Place<'_>, &Place<'_>),
    most: usize,
    guard: &Guard,
) -> Option<Found> {
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
    Some(Found { slots, address: scan.address() })
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

//! The first and the last entry.
//!
//! A leaf becomes the first only under the lock `growth`, and under that of the leaf that was the
//! first before; so for the last. A walk finds a leaf and locks it. If the version of `growth` is
//! still that from before the walk, the leaf is the first one, as long as its lock is held. In it,
//! all places before the first value are closed. So the value is that of the first entry.

use super::Words;
use super::edit::{Hold, Leaf, Spot};
use super::key::WordKey;
use super::order::NO_ORDER;
use super::slots::SLOTS;
use super::value::Content;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::{Ordering, fence};
use silvics_sync::backoff::Backoff;

impl<K: WordKey, P: Placement> Words<K, P> {
    /// The first entry, or the last one if `LAST`. Removes it if it `takes`.
    pub(super) fn end_entry<const LAST: bool>(
        &self,
        takes: bool,
        guard: &Guard,
    ) -> Option<(K, u64)> {
        let mut backoff = Backoff::new();
        loop {
            let Ok(version) = self.growth.read() else { unreachable!("it is never obsolete") };
            let Some((spot, leaf)) = self.leaf_from(K::ENDS[usize::from(LAST)], LAST, guard) else {
                fence(Ordering::SeqCst); // pairs with that in `plant`
                if self.growth.validate(version) {
                    return None; // LP: no leaf has come since the walk began
                }
                continue;
            };
            let hold = Hold::new(leaf.lock());
            fence(Ordering::SeqCst); // pairs with that in `plant`
            if let Some(hold) = hold
                && (self.growth.validate(version) || planted(Canary::EndNotChecked))
            {
                if let Some((key, value)) = Self::end_in::<LAST>(leaf, spot, takes) {
                    drop(hold);
                    if takes {
                        self.removed(leaf.word(), key, guard);
                    }
                    return Some((key, value));
                }
                self.unlink(leaf, hold, spot.places.start(spot.at), guard);
                continue;
            }
            backoff.wait();
        }
    }

    /// The first entry of a leaf that the caller has locked, or the last one.
    fn end_in<const LAST: bool>(
        leaf: Leaf<'_, K>,
        spot: Spot<'_, K>,
        takes: bool,
    ) -> Option<(K, u64)> {
        match leaf {
            Leaf::Block(block) => {
                if !planted(Canary::EndNotClosed) {
                    block.close();
                }
                let (mut order, top) = (NO_ORDER, spot.places.start(spot.at).top());
                let len = block.ordered(&mut order, top).0;
                let at = |rank: usize| order[if LAST { len - 1 - rank } else { rank }];
                (0..len).find_map(|rank| {
                    let value = Self::end_at(leaf, at(rank), takes)?;
                    Some((block.entry(at(rank), top).0, value))
                })
            }
            Leaf::Slots(slots) => {
                let at = |rank: usize| (if LAST { SLOTS - 1 - rank } else { rank }) as u8;
                (0..SLOTS).find_map(|rank| {
                    let value = Self::end_at(leaf, at(rank), takes)?;
                    Some((slots.key(at(rank).into()), value))
                })
            }
        }
    }

    /// The value of a place, which is removed if it is taken. A place without a value is closed.
    fn end_at(leaf: Leaf<'_, K>, at: u8, takes: bool) -> Option<u64> {
        let value = leaf.value(at);
        loop {
            let word = value.word(); // LP(first, last)
            match value.marks.content(word) {
                Content::Closed | Content::Moved => return None,
                Content::Absent => {
                    if planted(Canary::EndNotClosed) || value.close() {
                        return None;
                    }
                }
                Content::Value(word) if !takes => return Some(word),
                Content::Value(word) => {
                    let (place, closed) = (value.place, value.marks.closed());
                    let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                    // LP(pop_first, pop_last)
                    if place.compare_exchange(word, closed, success, failure).is_ok() {
                        return Some(word);
                    }
                }
            }
        }
    }
}

//! The first and the last entry.
//!
//! The base node at the end of the tree usually has an entry. Then the first entry of the tree is
//! that of its container, when its word is read, and when a removal replaces it. If it is empty, a
//! search collects base nodes until one has an entry, as a snapshot does. A removal joins the empty
//! base node first.

use super::Lfca;
use super::adapt::Joined;
use super::edit::Found;
use super::node::Base;
use super::ops::Way;
use crate::ca::build::Build;
use crate::ca::key::Slots;
use crate::ca::word::Word;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use silvics_pool::{Budget, Placement};
use silvics_sync::backoff::Backoff;

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// The first entry of a container, or the last one.
    ///
    /// # Safety
    /// That of [`Found::new`].
    unsafe fn end_of<const LAST: bool>(container: Word) -> Option<(K::Slot, u64)> {
        // SAFETY: our contract.
        unsafe { Found::<K>::at_end(container, LAST) }?.entry()
    }

    /// Whether a base node has an entry.
    fn has_entry(way: &Way<'_, K>) -> bool {
        !way.base().container.is_none()
    }

    /// The first entry, or the last one.
    pub(crate) fn end_entry<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<(K::Slot, u64)> {
        let mut backoff = Backoff::new();
        loop {
            let way = self.way(|_| LAST, guard); // LP(first, last)
            // SAFETY: Q1: the base node was read under the guard.
            if let Some(found) = unsafe { Self::end_of::<LAST>(way.base().container) } {
                return Some(found);
            }
            if way.parent.is_none() && way.free().is_some() {
                return None;
            }
            // Without memory for the list of base nodes, another attempt may find an entry.
            let Ok(ways) = self.collect_all::<LAST>((&None, &None), Self::has_entry, guard) else {
                backoff.wait();
                continue;
            };
            // SAFETY: Q1: likewise.
            return unsafe { Self::end_of::<LAST>(ways.last()?.base().container) };
        }
    }

    /// Removes the first entry, or the last one, and returns it.
    pub(crate) fn pop_entry<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Slot, u64)>, AllocError> {
        let (mut backoff, mut contended) = (Backoff::new(), false);
        loop {
            let mut way = self.way(|_| LAST, guard);
            let Some(base) = way.free() else {
                Self::help(way.place, way.word, guard);
                contended = true;
                continue;
            };
            // SAFETY: Q1: the base node was read under the guard.
            let Some(found) = (unsafe { Found::at_end(base.container, LAST) }) else {
                let ways = self.collect_all::<LAST>((&None, &None), Self::has_entry, guard)?;
                if !ways.last().is_some_and(Self::has_entry) {
                    return Ok(None); // LP(popped nothing): see `collect`
                }
                if planted(Canary::PopsBehindEmpty) {
                    way = *ways.last().unwrap_or(&way);
                    // SAFETY: likewise.
                    let found = unsafe { Found::at_end(way.base().container, LAST) };
                    let Some(found) = found else { continue };
                    if self.take_out(&way, &found, contended, guard)? {
                        return Ok(found.entry());
                    }
                    continue;
                }
                let mut joined = self.join(&way, guard);
                if joined == Joined::NoMemory {
                    joined = Budget::with_reserves(|| self.join(&way, guard));
                }
                match joined {
                    Joined::NoMemory => return Err(self.no_memory()),
                    Joined::Disturbed => backoff.wait(),
                    Joined::Done | Joined::Alone => {}
                }
                continue;
            };
            if self.take_out(&way, &found, contended, guard)? {
                return Ok(found.entry());
            }
            contended = true;
        }
    }

    /// The error of a pop that could not join an empty base node.
    fn no_memory(&self) -> AllocError {
        let budget = &self.objects.frame().config.budget;
        let requested = size_of::<Base>();
        match budget.limit() {
            Some(limit) => AllocError::Limit { requested, held: budget.held(), limit },
            None => AllocError::System { requested },
        }
    }
}

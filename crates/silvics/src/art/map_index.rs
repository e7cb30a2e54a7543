//! The tree below a map: why it keeps the contract of [`MapIndex`].

use super::{ArtKey, ArtTree};
use crate::domain::Guard;
use crate::error::BulkLoadError;
use crate::index::{KeyRef, OrderedScan};
use crate::map::MapIndex;
use silvics_pool::Placement;
use std::num::NonZeroUsize;
use std::ops::Bound;

// SAFETY: the clauses of `MapIndex`, by the invariants of the module docs.
// 1. A value word gets into a place or a leaf only from a verb or from `load`. Copies of nodes and
//    leaves are made under the lock that their words change under (I3, I5), so they hold the same words.
// 2. A search ends at a value of its own key (I1, I2, and leaves compare whole keys). The table of
//    linearization points names a moment at which that value was the key's: the load, or, if the node
//    or leaf had been replaced by then, the moment of that replacement. Both come after the search
//    reached the node, hence after the guard was taken.
// 3. A value ends by one store, which its writer makes under the lock of the node that leads to it
//    while the node is not obsolete (I3, I5). The writer reads the old word under the same lock and
//    returns it; no other writer can end that value.
// 4. A writer allocates before its one store, and returns success if and only if it has stored.
// 5. Integers are copied. A byte string is memory of its leaf, which never changes (I1) and is retired
//    to the domain, so the guard protects it. A scan takes keys from leaves and never from its bounds.
unsafe impl<K: ArtKey + ?Sized, P: Placement> MapIndex for ArtTree<K, P> {
    type Placement = P;

    fn load(&mut self, entries: &[(KeyRef<'_, Self>, u64)]) -> Option<Result<(), BulkLoadError>> {
        Some(self.bulk_load(entries, NonZeroUsize::MIN))
    }

    fn read_ahead<'g>(
        &'g self,
        (from, descends): (Bound<KeyRef<'g, Self>>, bool),
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        if descends {
            self.range_rev((Bound::Unbounded, from), guard).read_some(most, each);
        } else {
            self.range((from, Bound::Unbounded), guard).read_some(most, each);
        }
    }
}

//! The cursor: a position that owns what it needs.
//!
//! A cursor stands at a node by holding one of its references, as a level that links it does, so
//! that the node is not retired while the cursor stands there (I4). Between calls it holds no pin.
//! A move pins, goes on from the node if it is still in the list, or else searches for its key.

use super::key::SkipKey;
use super::node::{Node, NodeRef};
use super::{Skip, SkipList};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::index::{Cursor, Lookup};
use silvics_pool::{Placement, Pooled};
use std::fmt;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;

/// A cursor over a [`SkipList`]; see [`Cursor`].
///
/// Moving to the next entry is O(1) while the entry it stands at is present, everything else
/// O(log n).
pub struct SkipCursor<K: SkipKey + ?Sized, P: Placement = Pooled> {
    list: Arc<SkipList<K, P>>,
    at: Position<K>,
}

enum Position<K: ?Sized> {
    BeforeFirst,
    At(NonNull<Node<K>>),
    AfterLast,
}

// SAFETY: the cursor owns a reference to the node it stands at, and nodes are shared by threads.
unsafe impl<K: SkipKey + ?Sized, P: Placement> Send for SkipCursor<K, P> {}
// SAFETY: `&SkipCursor` only reads the key and value of a node that does not change.
unsafe impl<K: SkipKey + ?Sized, P: Placement> Sync for SkipCursor<K, P> {}

impl<K: SkipKey + ?Sized, P: Placement> fmt::Debug for SkipCursor<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipCursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl<K: SkipKey + ?Sized, P: Placement> SkipCursor<K, P> {
    pub(super) fn new(list: Arc<SkipList<K, P>>) -> Self {
        Self { list, at: Position::BeforeFirst }
    }

    fn node(&self) -> Option<NodeRef<'_, K>> {
        match self.at {
            // SAFETY: our reference keeps the node, at least as long as `self` stands there.
            Position::At(node) => Some(unsafe { NodeRef::from_ptr(node) }),
            _ => None,
        }
    }

    /// Stands at `at` and gives up the old position. Whether it is an entry.
    fn stand(&mut self, at: Position<K>, guard: &Guard) -> bool {
        if let Position::At(old) = std::mem::replace(&mut self.at, at) {
            // SAFETY: it was our reference that kept it.
            self.list.0.unrefer(unsafe { NodeRef::from_ptr(old) }, 1, guard);
        }
        matches!(self.at, Position::At(_))
    }

    /// Stands at the first entry from `start`, or after the last.
    fn stand_at_first(
        &mut self,
        list: &Skip<K, P>,
        start: Bound<K::Ref<'_>>,
        guard: &Guard,
    ) -> bool {
        loop {
            let mut next = list.first_from(start, &mut [], guard);
            if let Ok(at) = Self::refer_first(&mut next) {
                return self.stand(at, guard);
            }
        }
    }

    /// Refers to the first unmarked node from `next` on.
    fn refer_first(next: &mut Option<NodeRef<'_, K>>) -> Result<Position<K>, Gone> {
        while let Some(node) = *next {
            let onward = node.next(0);
            if !onward.is_marked() {
                return if node.try_refer() {
                    Ok(Position::At(node.as_non_null()))
                } else {
                    Err(Gone)
                };
            }
            *next = onward.node();
        }
        Ok(Position::AfterLast)
    }

    /// Stands at the last entry before `end`, or before the first.
    fn stand_at_last(&mut self, list: &Skip<K, P>, end: Bound<K::Ref<'_>>, guard: &Guard) -> bool {
        loop {
            if let Bound::Included(key) = end
                && let Some(node) = list.find(K::shorten(key), guard)
            {
                if node.try_refer() {
                    return self.stand(Position::At(node.as_non_null()), guard);
                }
                continue; // replaced or removed meanwhile: look again
            }
            let end = match end {
                Bound::Included(key) | Bound::Excluded(key) => Bound::Excluded(K::shorten(key)),
                Bound::Unbounded => Bound::Unbounded,
            };
            let node = list.last_before(end, 0, guard);
            if node == list.head() {
                return self.stand(Position::BeforeFirst, guard);
            }
            if !node.next(0).is_marked() && node.try_refer() {
                return self.stand(Position::At(node.as_non_null()), guard);
            }
        }
    }
}

/// The node's last reference is gone.
struct Gone;

impl<K: SkipKey + ?Sized, P: Placement> Cursor for SkipCursor<K, P> {
    type Key = K;

    fn seek(&mut self, key: K::Ref<'_>) -> bool {
        let list = Arc::clone(&self.list);
        let guard = list.domain().pin();
        self.stand_at_first(&list.0, Bound::Included(key), &guard)
    }

    fn seek_rev(&mut self, key: K::Ref<'_>) -> bool {
        let list = Arc::clone(&self.list);
        let guard = list.domain().pin();
        self.stand_at_last(&list.0, Bound::Included(key), &guard)
    }

    fn next(&mut self) -> bool {
        let list = Arc::clone(&self.list);
        let guard = list.domain().pin();
        let start = match self.at {
            Position::AfterLast => return false,
            Position::BeforeFirst => Bound::Unbounded,
            Position::At(node) => {
                // SAFETY: our reference keeps the node until `stand` gives it up.
                let node = unsafe { NodeRef::from_ptr(node) };
                let onward = node.next(0);
                // Only an unmarked link says what follows now; a frozen one may lead to nodes
                // reclaimed long ago.
                if !onward.is_marked() || planted(Canary::CursorFollowsFrozenLink) {
                    let mut next = onward.node();
                    if let Ok(at) = Self::refer_first(&mut next) {
                        return self.stand(at, &guard);
                    }
                }
                Bound::Excluded(node.key())
            }
        };
        self.stand_at_first(&list.0, start, &guard)
    }

    fn prev(&mut self) -> bool {
        let list = Arc::clone(&self.list);
        let guard = list.domain().pin();
        let end = match self.at {
            Position::BeforeFirst => return false,
            Position::AfterLast => Bound::Unbounded,
            // SAFETY: our reference keeps the node until `stand` gives it up.
            Position::At(node) => Bound::Excluded(unsafe { NodeRef::from_ptr(node) }.key()),
        };
        self.stand_at_last(&list.0, end, &guard)
    }

    fn key(&self) -> Option<K::Ref<'_>> {
        self.node().map(NodeRef::key)
    }

    fn value(&self) -> Option<u64> {
        self.node().map(NodeRef::value)
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Drop for SkipCursor<K, P> {
    fn drop(&mut self) {
        if matches!(self.at, Position::At(_)) {
            let guard = self.list.domain().pin();
            self.stand(Position::BeforeFirst, &guard);
        }
    }
}

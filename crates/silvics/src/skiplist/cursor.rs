//! The cursor: a position that owns what it needs.
//!
//! A cursor stands at a node by holding one of its references, as a level that links the node does.
//! So the node is not retired while the cursor stands there (I4). Between calls the cursor holds no
//! pin. A move pins, and continues from the node if it is still in the list; otherwise it searches
//! for the node's key.

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
/// Moving to the next entry is O(1) while the entry that the cursor stands at is present. Every
/// other move is O(log n).
pub struct SkipCursor<K: SkipKey + ?Sized, P: Placement = Pooled> {
    list: Arc<SkipList<K, P>>,
    at: Position<K>,
}

enum Position<K: ?Sized> {
    BeforeFirst,
    At(NonNull<Node<K>>),
    AfterLast,
}

// SAFETY: the cursor owns a reference to its node (I4), and all threads may use nodes.
unsafe impl<K: SkipKey + ?Sized, P: Placement> Send for SkipCursor<K, P> {}
// SAFETY: `&SkipCursor` only reads the key and value of its node, which never change (I1).
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
            // SAFETY: I4: our reference keeps the node while `self` stands there.
            Position::At(node) => Some(unsafe { NodeRef::from_ptr(node) }),
            _ => None,
        }
    }

    /// Moves to `at`, gives up the old position, and returns whether `at` is an entry.
    fn stand(&mut self, at: Position<K>, guard: &Guard) -> bool {
        if let Position::At(old) = std::mem::replace(&mut self.at, at) {
            // SAFETY: I4: our reference has kept the node until now.
            self.list.0.unrefer(unsafe { NodeRef::from_ptr(old) }, 1, guard);
        }
        matches!(self.at, Position::At(_))
    }

    /// Moves to the first entry from `start` on, or after the last entry, and returns whether there
    /// is such an entry.
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

    /// Takes a reference to the first unmarked node from `next` on. Fails if its last reference is
    /// gone.
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

    /// Moves to the last entry before `end`, or before the first entry, and returns whether there
    /// is such an entry.
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

/// Whether a cursor follows a link that is or is not `frozen`: only if it is not.
#[inline(always)]
fn is_followed(frozen: bool) -> bool {
    !frozen || planted(Canary::CursorFollowsFrozenLink)
}

/// The error of taking a reference to a node whose last reference is gone.
struct Gone;

impl<K: SkipKey + ?Sized, P: Placement> Cursor for SkipCursor<K, P> {
    type Key = K;

    fn seek(&mut self, key: K::Ref<'_>) -> bool {
        let list = Arc::clone(&self.list);
        let guard = list.domain().pin();
        self.stand_at_first(&list.0, Bound::Included(key), &guard)
    }

    fn seek_for_prev(&mut self, key: K::Ref<'_>) -> bool {
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
                // SAFETY: I4: our reference keeps the node until `stand` gives it up.
                let node = unsafe { NodeRef::from_ptr(node) };
                let onward = node.next(0);
                // Only an unmarked link leads to the node that follows now; a frozen link may lead
                // to nodes that were reclaimed long ago.
                if is_followed(onward.is_marked()) {
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
            // SAFETY: I4: our reference keeps the node until `stand` gives it up.
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

//! The cursor of indexes for which a search by key is the fastest way back to a position.

use crate::encoding::IndexKey;
use crate::index::{Cursor, KeyRef, OrderedScan, OwnedKey};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// A [`Cursor`] that stands at a key. Each move pins, and searches the nearest entry beyond the key
/// by a range.
pub struct KeyCursor<I: OrderedScan> {
    index: Arc<I>,
    at: Position<OwnedKey<I>>,
}

enum Position<K> {
    BeforeFirst,
    /// At a key, with the value that it had at the move.
    At(K, u64),
    AfterLast,
}

impl<I: OrderedScan> fmt::Debug for KeyCursor<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// Returns the first entry from `start` on.
fn first<I: OrderedScan>(index: &I, start: Bound<KeyRef<'_, I>>) -> Option<(OwnedKey<I>, u64)> {
    let guard = index.domain().pin();
    let start = start.map(<I::Key as IndexKey>::shorten);
    let found = index.range((start, Bound::Unbounded), &guard).next();
    found.map(|(key, value)| (<I::Key as IndexKey>::to_owned(key), value))
}

/// Returns the last entry up to `end`.
fn last<I: OrderedScan>(index: &I, end: Bound<KeyRef<'_, I>>) -> Option<(OwnedKey<I>, u64)> {
    let guard = index.domain().pin();
    let end = end.map(<I::Key as IndexKey>::shorten);
    let found = index.range_rev((Bound::Unbounded, end), &guard).next();
    found.map(|(key, value)| (<I::Key as IndexKey>::to_owned(key), value))
}

impl<I: OrderedScan> KeyCursor<I> {
    pub(crate) fn new(index: Arc<I>) -> Self {
        Self { index, at: Position::BeforeFirst }
    }

    fn stand(
        &mut self,
        found: Option<(OwnedKey<I>, u64)>,
        otherwise: Position<OwnedKey<I>>,
    ) -> bool {
        self.at = found.map_or(otherwise, |(key, value)| Position::At(key, value));
        matches!(self.at, Position::At(..))
    }
}

impl<I: OrderedScan> Cursor for KeyCursor<I> {
    type Key = I::Key;

    fn seek(&mut self, key: KeyRef<'_, I>) -> bool {
        let found = first(&*self.index, Bound::Included(key));
        self.stand(found, Position::AfterLast)
    }

    fn seek_for_prev(&mut self, key: KeyRef<'_, I>) -> bool {
        let found = last(&*self.index, Bound::Included(key));
        self.stand(found, Position::BeforeFirst)
    }

    fn next(&mut self) -> bool {
        let start = match &self.at {
            Position::BeforeFirst => Bound::Unbounded,
            Position::At(key, _) => Bound::Excluded(<I::Key as IndexKey>::borrow(key)),
            Position::AfterLast => return false,
        };
        let found = first(&*self.index, start);
        self.stand(found, Position::AfterLast)
    }

    fn prev(&mut self) -> bool {
        let end = match &self.at {
            Position::BeforeFirst => return false,
            Position::At(key, _) => Bound::Excluded(<I::Key as IndexKey>::borrow(key)),
            Position::AfterLast => Bound::Unbounded,
        };
        let found = last(&*self.index, end);
        self.stand(found, Position::BeforeFirst)
    }

    fn key(&self) -> Option<KeyRef<'_, I>> {
        match &self.at {
            Position::At(key, _) => Some(<I::Key as IndexKey>::borrow(key)),
            _ => None,
        }
    }

    fn value(&self) -> Option<u64> {
        match self.at {
            Position::At(_, value) => Some(value),
            _ => None,
        }
    }
}

//! The entries of a leaf that is to be made.

use super::{LeafKey, LeafOf, MOST_KEYS};
use silvics_sync::atomic::Ordering;

/// Ascending entries, at most one more than a leaf takes.
pub(in super::super) struct Entries<'k, K: LeafKey + ?Sized> {
    entries: [(K::Ref<'k>, u64); MOST_KEYS + 1],
    len: usize,
}

impl<K: LeafKey + ?Sized> Clone for Entries<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: LeafKey + ?Sized> Copy for Entries<'_, K> {}

impl<'k, K: LeafKey + ?Sized> Entries<'k, K> {
    pub(in super::super) fn one(key: K::Ref<'k>, value: u64) -> Self {
        Self { entries: [(key, value); MOST_KEYS + 1], len: 1 }
    }

    /// The entries of a leaf. The caller holds the lock of the node that leads to the leaf, so that
    /// its values do not change.
    pub(in super::super) fn of(leaf: K::Leaf<'k>) -> Self {
        let mut places = leaf.places();
        let mut entry = || {
            let at = places.next()?;
            Some((leaf.key(at), leaf.value(at).load(Ordering::SeqCst)))
        };
        let first = entry().expect("a leaf has an entry");
        let mut entries = Self::one(first.0, first.1);
        while let Some((key, value)) = entry() {
            entries.push(key, value);
        }
        entries
    }

    /// Appends an entry whose key is greater than all others.
    pub(in super::super) fn push(&mut self, key: K::Ref<'k>, value: u64) {
        self.entries[self.len] = (key, value);
        self.len += 1;
    }

    /// Inserts an entry in order.
    #[must_use]
    pub(in super::super) fn with(mut self, key: K::Ref<'k>, value: u64) -> Self {
        let at = self.as_slice().partition_point(|entry| entry.0 < key);
        self.entries.copy_within(at..self.len, at + 1);
        self.entries[at] = (key, value);
        self.len += 1;
        self
    }

    /// Removes the entry of a key that is present.
    #[must_use]
    pub(in super::super) fn without(mut self, key: K::Ref<'_>) -> Self {
        let at = self.as_slice().partition_point(|entry| K::shorten(entry.0) < K::shorten(key));
        self.entries.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self
    }

    pub(in super::super) fn as_slice(&self) -> &[(K::Ref<'k>, u64)] {
        &self.entries[..self.len]
    }
}

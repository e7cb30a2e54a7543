//! The memtable: a map from versions of user keys to values. It is the part that stood on a
//! `SkipMap` before; `docs/migrate-from-crossbeam.md` compares the calls.

use silvics::map::OwnedRange;
use silvics::{AllocError, Budget, Key, Map};
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::Arc;

/// A version of a user key. Keys are sorted by `user`, then from the newest version to the oldest.
/// The derive also makes `InternalKeyRef`, which borrows the user key, and implements `Ord`.
#[derive(Key, Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalKey {
    pub(crate) user: Vec<u8>,
    #[key(reverse)]
    pub(crate) sequence: u64,
}

/// The value of a version, or `None` for a tombstone, which deletes the user key. `Arc`, because a
/// range copies values: a copy then shares the bytes.
pub(crate) type Value = Option<Arc<[u8]>>;

/// The first version of `user` that `snapshot` sees. Versions of `u64::MAX` come first, those of 0
/// last.
fn version(user: &[u8], snapshot: u64) -> InternalKeyRef<'_> {
    InternalKeyRef { user: user.into(), sequence: snapshot }
}

pub(crate) struct Memtable {
    pub(crate) map: Arc<Map<InternalKey, Value>>,
    /// The bytes of the map, and those of the values that its slots point to.
    budget: Arc<Budget>,
    /// All versions in this memtable have at least this sequence number.
    pub(crate) first: u64,
}

impl Memtable {
    pub(crate) fn new(limit: usize, first: u64) -> Result<Self, AllocError> {
        let budget = Arc::new(Budget::new(Some(limit)));
        let map = Arc::new(Map::builder().budget(Arc::clone(&budget)).build()?);
        Ok(Self { map, budget, first })
    }

    /// Inserts a version. If it does not fit below the limit, nothing changes.
    pub(crate) fn insert(
        &self,
        user: &[u8],
        sequence: u64,
        value: Option<&[u8]>,
    ) -> Result<(), AllocError> {
        // The map counts its own bytes in the budget. The value is on the heap, with two counters.
        let bytes = value.map_or(0, |value| value.len() + 2 * size_of::<usize>());
        self.budget.take(bytes)?;
        let inserted = self.map.try_upsert(version(user, sequence), value.map(Arc::from));
        inserted.map(drop).map_err(|rejected| {
            self.budget.give(bytes);
            rejected.error
        })
    }

    /// The newest version of a user key that a snapshot sees. `Some(None)` is a tombstone. No write
    /// can change the result, because new versions have greater sequence numbers.
    pub(crate) fn get(&self, user: &[u8], snapshot: u64) -> Option<Value> {
        let view = self.map.pin();
        let (key, value) = view.lower_bound(Included(version(user, snapshot)))?;
        (*key.user == *user).then(|| value.clone())
    }

    /// The live entries of a range of user keys that a snapshot sees.
    pub(crate) fn range(
        &self,
        users: (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: u64,
    ) -> SnapshotRange {
        let (from, to) = users;
        let from = match from {
            Included(user) => Included(version(user, u64::MAX)),
            Excluded(user) => Excluded(version(user, 0)),
            Unbounded => Unbounded,
        };
        let to = match to {
            Included(user) => Included(version(user, 0)),
            Excluded(user) => Excluded(version(user, u64::MAX)),
            Unbounded => Unbounded,
        };
        let versions = self.map.range_owned((from, to));
        SnapshotRange { versions, snapshot, decided: None, ahead: None }
    }

    /// All bytes of the memtable, exactly: nodes, keys, slots, free memory and values.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.held()
    }
}

/// The newest visible version of each user key, without tombstones. The range is double-ended, can
/// be sent to another thread, keeps its memtable alive, and holds no pin between steps.
pub(crate) struct SnapshotRange {
    versions: OwnedRange<InternalKey, Value>,
    snapshot: u64,
    /// The user key that the front decided last. Older versions of it may follow.
    decided: Option<Vec<u8>>,
    /// A version that the back has read too far. It is the last one that is left.
    ahead: Option<(InternalKey, Value)>,
}

impl Iterator for SnapshotRange {
    type Item = (Vec<u8>, Arc<[u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, value) = self.versions.next().or_else(|| self.ahead.take())?;
            let is_decided = self.decided.as_ref() == Some(&key.user);
            if is_decided || key.sequence > self.snapshot {
                continue;
            }
            self.decided = Some(key.user.clone());
            if let Some(value) = value {
                return Some((key.user, value));
            }
        }
    }
}

impl DoubleEndedIterator for SnapshotRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            // From the back, the oldest version of a user key comes first.
            let (InternalKey { user, sequence }, value) =
                self.ahead.take().or_else(|| self.versions.next_back())?;
            let mut visible = if sequence <= self.snapshot { value } else { None };
            while let Some((key, value)) = self.versions.next_back() {
                if key.user != user {
                    self.ahead = Some((key, value));
                    break;
                }
                if key.sequence <= self.snapshot {
                    visible = value;
                }
            }
            let is_decided = self.decided.as_ref() == Some(&user);
            if let Some(value) = visible.filter(|_| !is_decided) {
                return Some((user, value));
            }
        }
    }
}

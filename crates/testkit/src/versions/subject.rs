//! The maps whose histories are recorded, with keys that are numbers.

use super::call::{Answer, Expected, Found, Unreadable, Write};
use crate::failure::ensure;
use crate::{Failure, Outcome};
use silvics::index::Check;
use silvics::key::Key;
use silvics::map::MapIndex;
use silvics::versions::{
    BatchError, Clock, Drawn, Given, PutError, ReadError, Retain, Snapshot, VersionedMap,
};
use silvics::{AsKey, Domain, Options};
use std::ops::Bound;
use std::sync::Arc;

/// A map with versions. Keys are numbers; a larger number is a larger key.
pub trait Subject: Send + Sync {
    /// Makes a write. `given` is the number of its version, if the caller gives it.
    fn write(&self, write: &Write, given: Option<u64>) -> Result<Answer, Failure>;
    /// Commits writes of several keys at once.
    fn commit(&self, writes: &[Write]) -> Result<Answer, Failure>;
    /// Returns the newest version of a key.
    fn get_latest(&self, key: u32) -> Found;
    /// Returns the version of a key at a number.
    fn get_at(&self, key: u32, at: u64) -> Result<Found, Unreadable>;
    /// Returns the entries between two keys at a number. Fails if it finds a key that has no
    /// number.
    fn range_at(
        &self,
        at: u64,
        keys: (u32, u32),
    ) -> Result<Result<Vec<(u32, u64)>, Unreadable>, Failure>;
    /// Begins a snapshot, at a number if there is one.
    fn snapshot(&self, at: Option<u64>) -> Result<Box<dyn Reader>, Unreadable>;
    /// Returns the versions of a key, the newest first.
    fn history(&self, key: u32) -> Vec<(u64, Option<u64>)>;
    /// Returns the number at which new snapshots read.
    fn now(&self) -> u64;
    /// Drops versions that no reader at a number or later sees. Fails with the present number.
    fn prune(&self, number: u64) -> Result<(), u64>;
    /// Sets the watermark. Fails with the present one.
    fn publish(&self, number: u64) -> Result<(), u64>;
    /// Checks a map that no thread uses any more and that was pruned up to the present, which has
    /// entries for `present` keys.
    fn at_rest(self: Box<Self>, present: usize) -> Outcome;
}

/// A snapshot.
pub trait Reader: Send + Sync {
    /// The number at which it reads.
    fn number(&self) -> u64;
    /// Returns the version of a key.
    fn get(&self, key: u32) -> Found;
    /// Returns the entries between two keys in ascending order; `descending` reads them from the
    /// last one on. Fails if it finds a key that has no number.
    fn range(&self, keys: (u32, u32), descending: bool) -> Result<Vec<(u32, u64)>, Failure>;
    /// Begins another snapshot at the same number.
    fn again(&self) -> Box<dyn Reader>;
}

/// A type of keys with numbers.
pub trait NumberedKey: Key + Clone + Ord + Send + Sync + AsKey<Self> + 'static {
    /// The `n`-th key: `a < b` if and only if `nth(a) < nth(b)`.
    fn nth(n: u32) -> Self;
}

impl NumberedKey for u64 {
    fn nth(n: u32) -> Self {
        // Neighbours share all bytes but the last.
        u64::from(n) << 1
    }
}

impl NumberedKey for u128 {
    fn nth(n: u32) -> Self {
        u128::from(n) << 61
    }
}

impl NumberedKey for String {
    /// A shared prefix, and behind some keys a filler, so that the key before it is its prefix.
    fn nth(n: u32) -> Self {
        let filler = ".".repeat((n % 2) as usize * (1 + (n / 2 % 5) as usize * 7));
        format!("silvics/{:04}{filler}", n / 2)
    }
}

impl NumberedKey for Vec<u8> {
    fn nth(n: u32) -> Self {
        <[u8] as crate::TestKey>::nth(u64::from(n)).into_vec()
    }
}

/// The writes that depend on the source of numbers.
pub trait Numbering<K: NumberedKey, I: MapIndex<Key = K::Form>>: Clock + Sized {
    #[doc(hidden)]
    const DRAWS: bool;

    #[doc(hidden)]
    fn write(
        map: &VersionedMap<K, u64, Self, I>,
        key: &K,
        write: &Write,
        given: Option<u64>,
    ) -> Result<Answer, PutError<u64>>;

    #[doc(hidden)]
    fn commit(
        map: &VersionedMap<K, u64, Self, I>,
        keys: &[K],
        writes: &[Write],
    ) -> Result<Answer, Failure>;

    #[doc(hidden)]
    fn publish(map: &VersionedMap<K, u64, Self, I>, number: u64) -> Result<(), u64>;
}

impl<K: NumberedKey, I: MapIndex<Key = K::Form>> Numbering<K, I> for Drawn {
    const DRAWS: bool = true;

    fn write(
        map: &VersionedMap<K, u64, Self, I>,
        key: &K,
        write: &Write,
        _: Option<u64>,
    ) -> Result<Answer, PutError<u64>> {
        let number = match (write.value, write.expected) {
            (Some(value), Expected::Any) => map.put(key, value)?,
            (Some(value), Expected::Latest(latest)) => map.put_if_latest(key, latest, value)?,
            (None, Expected::Latest(Some(latest))) => map.delete_if_latest(key, latest)?,
            (None, _) => return Ok(map.delete(key)?.map_or(Answer::Nothing, Answer::Done)),
        };
        Ok(Answer::Done(number))
    }

    fn commit(
        map: &VersionedMap<K, u64, Self, I>,
        keys: &[K],
        writes: &[Write],
    ) -> Result<Answer, Failure> {
        let mut batch = map.batch();
        for write in writes {
            let key = &keys[write.key as usize];
            match (write.value, write.expected) {
                (Some(value), Expected::Any) => batch.put(key, value),
                (Some(value), Expected::Latest(latest)) => batch.put_if_latest(key, latest, value),
                (None, Expected::Latest(Some(latest))) => batch.delete_if_latest(key, latest),
                (None, _) => batch.delete(key),
            }
        }
        match batch.commit() {
            Ok(number) => Ok(Answer::Done(number)),
            Err(BatchError::Conflict { latest }) => Ok(Answer::Conflict(latest)),
            Err(BatchError::Alloc(error)) => Err(error.into()),
            Err(error) => Err(Failure::new(format!("commit: {error}"))),
        }
    }

    fn publish(_: &VersionedMap<K, u64, Self, I>, _: u64) -> Result<(), u64> {
        unreachable!("the map draws its numbers")
    }
}

impl<K: NumberedKey, I: MapIndex<Key = K::Form>> Numbering<K, I> for Given {
    const DRAWS: bool = false;

    fn write(
        map: &VersionedMap<K, u64, Self, I>,
        key: &K,
        write: &Write,
        given: Option<u64>,
    ) -> Result<Answer, PutError<u64>> {
        let number = given.unwrap_or_else(|| unreachable!("the caller gives the numbers"));
        match (write.value, write.expected) {
            (Some(value), Expected::Any) => map.put(key, number, value)?,
            (Some(value), Expected::Latest(latest)) => {
                map.put_if_latest(key, latest, number, value)?;
            }
            (None, Expected::Latest(Some(latest))) => map.delete_if_latest(key, latest, number)?,
            (None, _) => map.delete(key, number)?,
        }
        Ok(Answer::Done(number))
    }

    fn commit(_: &VersionedMap<K, u64, Self, I>, _: &[K], _: &[Write]) -> Result<Answer, Failure> {
        unreachable!("only a map that draws its numbers has batches")
    }

    fn publish(map: &VersionedMap<K, u64, Self, I>, number: u64) -> Result<(), u64> {
        map.publish(number).map_err(|error| error.now)
    }
}

/// A [`VersionedMap`] with the keys of a history.
struct Versioned<K: NumberedKey, C: Clock, I: MapIndex<Key = K::Form>> {
    map: Arc<VersionedMap<K, u64, C, I>>,
    keys: Arc<[K]>,
}

/// The passes by which a map takes back what was retired, before objects count as leaked.
const PASSES: usize = 64;

/// Makes an empty map for histories. It has a domain of its own unless the options name one: its
/// objects are counted at its end, and other threads may pin a domain that maps share.
pub fn versioned<K, C, I>(options: &Options, retain: Retain) -> Result<Box<dyn Subject>, Failure>
where
    K: NumberedKey,
    C: Numbering<K, I>,
    I: MapIndex<Key = K::Form> + Check + 'static,
{
    let mut options = options.clone();
    options.domain.get_or_insert_with(Domain::new);
    let map = Arc::new(VersionedMap::<K, u64, C, I>::with_options(&options, retain)?);
    let keys = (0..super::KEYS).map(K::nth).collect();
    Ok(Box::new(Versioned { map, keys }))
}

/// The reason for which a number could not be read.
fn unreadable(error: ReadError) -> Unreadable {
    match error {
        ReadError::Pruned { horizon, .. } => Unreadable::Pruned(horizon),
        ReadError::Future { now, .. } => Unreadable::Future(now),
        error => panic!("{error}"),
    }
}

/// The numbers of keys that a range has found.
fn numbered<K: NumberedKey>(
    keys: &[K],
    found: impl Iterator<Item = (K, u64)>,
) -> Result<Vec<(u32, u64)>, Failure> {
    let number = |(key, value): (K, u64)| match keys.binary_search(&key) {
        Ok(number) => Ok((number as u32, value)),
        Err(_) => Err(Failure::new("a range has a key that no call has written")),
    };
    found.map(number).collect()
}

/// The keys from the first to the last number.
fn bounds<K>(keys: &[K], (low, high): (u32, u32)) -> (Bound<&K>, Bound<&K>) {
    (Bound::Included(&keys[low as usize]), Bound::Included(&keys[high as usize]))
}

impl<K, C, I> Subject for Versioned<K, C, I>
where
    K: NumberedKey,
    C: Numbering<K, I>,
    I: MapIndex<Key = K::Form> + Check + 'static,
{
    fn write(&self, write: &Write, given: Option<u64>) -> Result<Answer, Failure> {
        let answer = match C::write(&self.map, &self.keys[write.key as usize], write, given) {
            Ok(answer) => answer,
            Err(PutError::Conflict { latest, .. }) => Answer::Conflict(latest),
            Err(PutError::Exists { number, .. }) => Answer::Exists(number),
            Err(PutError::NotNewer { newest, .. }) => Answer::NotNewer(newest),
            Err(PutError::TooLate { watermark, .. }) => Answer::TooLate(watermark),
            Err(PutError::Alloc { error, .. }) => return Err(error.into()),
            Err(error) => return Err(Failure::new(format!("{write}: {error}"))),
        };
        Ok(answer)
    }

    fn commit(&self, writes: &[Write]) -> Result<Answer, Failure> {
        C::commit(&self.map, &self.keys, writes)
    }

    fn get_latest(&self, key: u32) -> Found {
        let view = self.map.pin();
        view.get_latest(&self.keys[key as usize]).map(|version| (version.number, *version))
    }

    fn get_at(&self, key: u32, at: u64) -> Result<Found, Unreadable> {
        let view = self.map.pin();
        let version = view.get_at(&self.keys[key as usize], at).map_err(unreadable)?;
        Ok(version.map(|version| (version.number, *version)))
    }

    fn range_at(
        &self,
        at: u64,
        keys: (u32, u32),
    ) -> Result<Result<Vec<(u32, u64)>, Unreadable>, Failure> {
        match self.map.range_at(at, bounds(&self.keys, keys)) {
            Ok(range) => Ok(Ok(numbered(&self.keys, range)?)),
            Err(error) => Ok(Err(unreadable(error))),
        }
    }

    fn snapshot(&self, at: Option<u64>) -> Result<Box<dyn Reader>, Unreadable> {
        let snapshot = match at {
            None => self.map.snapshot_owned(),
            Some(at) => {
                // The iterator of a range owns a snapshot, whose copy outlives it.
                let first = bounds(&self.keys, (0, 0));
                self.map.range_at(at, first).map_err(unreadable)?.snapshot().clone()
            }
        };
        Ok(Box::new(Held { snapshot, keys: Arc::clone(&self.keys) }))
    }

    fn history(&self, key: u32) -> Vec<(u64, Option<u64>)> {
        let view = self.map.pin();
        let versions = view.history(&self.keys[key as usize]).into_iter();
        versions.map(|(number, value)| (number, value.copied())).collect()
    }

    fn now(&self) -> u64 {
        self.map.now()
    }

    fn prune(&self, number: u64) -> Result<(), u64> {
        self.map.prune(number).map(drop).map_err(|error| error.now)
    }

    fn publish(&self, number: u64) -> Result<(), u64> {
        C::publish(&self.map, number)
    }

    fn at_rest(self: Box<Self>, present: usize) -> Outcome {
        let Some(mut map) = Arc::into_inner(self.map) else {
            return Err(Failure::new("something keeps the map that nobody uses any more"));
        };
        let snapshots = map.snapshot_count();
        ensure!(snapshots == 0, "{snapshots} snapshots live that were dropped");
        let keys = map.check().map_err(Failure::from)?;
        ensure!(keys == present, "check: {keys} keys have versions, and {present} have a value");
        // A first version that has got an older one lies behind an object of its own.
        let most = if C::DRAWS { present } else { 2 * present };
        let mut live = usize::MAX;
        // Each pass takes back some of what ended threads have retired.
        for _ in 0..PASSES {
            map.settle_memory();
            live = map.pool_stats().pop().map_or(0, |stats| stats.live_slots);
            if live <= most {
                break;
            }
        }
        ensure!(
            (present..=most).contains(&live),
            "{live} objects of versions are live, and {present} keys have a value"
        );
        Ok(())
    }
}

/// A snapshot of a [`VersionedMap`].
struct Held<K: NumberedKey, C: Clock, I: MapIndex<Key = K::Form>> {
    snapshot: Snapshot<Arc<VersionedMap<K, u64, C, I>>>,
    keys: Arc<[K]>,
}

impl<K, C, I> Reader for Held<K, C, I>
where
    K: NumberedKey,
    C: Clock,
    I: MapIndex<Key = K::Form> + 'static,
{
    fn number(&self) -> u64 {
        self.snapshot.number()
    }

    fn get(&self, key: u32) -> Found {
        let found = self.snapshot.get_version(&self.keys[key as usize]);
        found.map(|(number, value)| (number, *value))
    }

    fn range(&self, keys: (u32, u32), descending: bool) -> Result<Vec<(u32, u64)>, Failure> {
        let range = self.snapshot.range(bounds(&self.keys, keys));
        let range = range.map(|(key, value)| (key, *value));
        if !descending {
            return numbered(&self.keys, range);
        }
        let mut found = numbered(&self.keys, range.rev())?;
        found.reverse();
        Ok(found)
    }

    fn again(&self) -> Box<dyn Reader> {
        Box::new(Self { snapshot: self.snapshot.clone(), keys: Arc::clone(&self.keys) })
    }
}

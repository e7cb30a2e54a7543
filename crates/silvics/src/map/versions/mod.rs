//! Maps whose keys have versions, and snapshots that read all keys at one moment.
//!
//! Begin with [`VersionedMap`]; [`Snapshot`] reads it at one moment, and [`Batch`] writes many keys
//! at once. The rest of this page is about the implementation.
//!
//! # Sources
//! Reed, "Naming and Synchronization in a Decentralized Computer System", MIT 1978 (versions of
//! objects, and readers at a number); Wei, Ben-David, Blelloch, Fatourou, Ruppert and Sun,
//! "Constant-time snapshots with applications to concurrent data structures", PPoPP 2021 (a version
//! gets its number after it is in its chain, and readers help); Böttcher, Leis, Neumann and Kemper,
//! "Scalable garbage collection for in-memory MVCC systems", VLDB 2019 (versions between snapshots
//! are dropped).
//!
//! # Algorithm
//! The index of a [`Map`](crate::Map) leads from each key to its newest version, and each version
//! to the next older one.
//! ```text
//! put(k, v):    make a version, tentative
//!               put it into the index if k is absent, or over the newest one, by an exchange
//!               settle it: it gets its number, and is final
//!               drop the versions below it that nobody can see
//! get_at(k, s): from the newest version of k on, settle each; take the first with a number <= s
//! snapshot:     announce that a snapshot may read now; s := now
//! commit:       put all versions of the batch, in the order of keys, with the batch as their stamp
//!               mark the batch as ready; draw its number; replace the stamps by the number
//! ```
//! `clock.rs` says how versions get numbers, and `chain.rs` what is dropped.
//!
//! # Departures
//! 1. A key's first version has no link, and takes eight bytes beside its value. A key with one
//!    version costs no more misses than in a [`Map`](crate::Map) with values behind the words.
//! 2. Writers draw a number each, so that the number of a version identifies it
//!    ([`VersionedMap::put_if_latest`]). In the paper, snapshots count, and versions share numbers.
//! 3. A batch holds up writers of its keys from its first version on until it is complete, and
//!    nobody else. Batches put their versions in the order of keys, so none waits for itself.
//! 4. Numbers may be given by the caller, and arrive in any order above a watermark. Such a version
//!    goes into the middle of its chain, under the latch of its key.
//!
//! # Invariants
//! N1 to N3 (`chain.rs`), S1 to S3 (`clock.rs`), and:
//! * B1: The versions of a batch become visible at once: their number is that of the batch, which
//!   is drawn after all of them are in their chains.
//! * B2: A batch is retired after none of its versions has it as its stamp.
//! * U1: Code of the user (encodings, destructors, closures) runs while no latch is held and no
//!   batch is open.
//!
//! # Progress
//! Readers never wait, but a snapshot takes a lock when it begins and when it ends, under which
//! writers copy the list of snapshots. A writer waits for an open batch that has written its key.
//! Writers that put a version into the middle of a chain, and those that drop versions (each
//! overwrite does), take the latch of the key; several keys share one. No code of the user
//! runs meanwhile.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `node.rs` | objects, words and stamps |
//! | `clock.rs` | numbers of versions and of snapshots |
//! | `chain.rs`, `sweep.rs` | reading a chain, and dropping versions; passes over all keys |
//! | `ops.rs`, `batch.rs` | writes of one key, and of many at once |
//! | `view.rs`, `snapshot.rs`, `range.rs` | reading: under a pin, at a snapshot, in key order |
//! | `outcome.rs` | errors |

mod batch;
mod chain;
mod clock;
mod node;
mod ops;
mod outcome;
mod range;
mod snapshot;
mod sweep;
mod view;

pub use batch::Batch;
pub use clock::{Clock, Drawn, Given, MAX_VERSION, Retain};
pub use outcome::{BatchError, PutError, ReadError, WatermarkError};
pub use range::{OwnedVersionRange, VersionRange};
pub use snapshot::{HoldsVersions, Snapshot};
pub use view::{Version, VersionedView};

use super::builder::Builder;
use super::kept::{Kept, Objects};
use super::key::{DefaultIndex, Key};
use super::outcome::OrPanic;
use super::{MapIndex, Value};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::{Check, KeyRef, Options};
use chain::Latches;
use clock::Time;
use node::{Node, NodeMemory, Word};
use silvics_pool::{Budget, PoolStats};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;
use sweep::Sweep;

/// The use of the bytes of a [`VersionedMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionedMemory {
    /// All bytes: [`VersionedMap::bytes`].
    pub bytes: usize,
    /// The bytes of nodes and keys of the index, retired ones included.
    pub index: usize,
    /// The bytes of the newest versions of keys, if these are not deleted.
    pub live: usize,
    /// The bytes of older versions and of deletions.
    pub retained: usize,
    /// The bytes of versions that were dropped and that a pin may still protect, of free slots and
    /// the ends of slots, and of bookkeeping. If maps share a budget, this includes the bytes of
    /// the other maps.
    pub slack: usize,
}

/// A concurrent ordered map that keeps older versions of its entries, for readers that see all keys
/// at one moment.
///
/// Each key has versions: values or deletions, each with a number, the newest first. A [`Snapshot`]
/// reads every key as it was at one number, whatever is written meanwhile, and keeps what it can
/// see.
///
/// * `C` says who numbers versions: the map ([`Drawn`]), or the caller ([`Given`]).
/// * Keys and values have the types that a [`Map`](crate::Map) takes, and `I` is its index. A value
///   keeps its address until its version is dropped.
///
/// ```
/// use silvics::VersionedMap;
///
/// let map: VersionedMap<String, u64> = VersionedMap::new();
/// map.put("oak", 1)?;
/// map.put("elm", 1)?;
/// let before = map.snapshot();
/// let version = map.put("oak", 2)?;
/// map.delete("elm")?;
/// assert_eq!((before.get("oak"), before.get("elm")), (Some(&1), Some(&1)));
/// let now = map.snapshot();
/// assert_eq!((now.get("oak"), now.get("elm")), (Some(&2), None));
/// assert!(now.range(..).eq([("oak".to_string(), &2)]));
///
/// // Optimistic concurrency: write if nobody has written meanwhile.
/// assert!(map.put_if_latest("oak", Some(version), 3).is_ok());
/// assert!(map.put_if_latest("oak", Some(version), 4).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Guarantees under concurrency
/// Any number of threads may call any methods that take `&self` concurrently. A write of one key is
/// linearizable. A [`Batch`] is atomic: each reader sees all of its writes or none. All reads of a
/// snapshot see the versions up to its number, and no others. Reads of the latest version are
/// linearizable, one by one.
///
/// # Memory
/// By default, writers drop versions that no snapshot can see: at once, or when they sweep the map,
/// in passes, after a snapshot has ended. [`VersionedMap::prune`] drops all of them. With
/// [`Retain::All`], nothing is dropped before `prune`. A first version takes eight bytes beside its
/// value, a newer one sixteen, a deletion sixteen. Versions are dropped as values of a
/// [`Map`](crate::Map#when-values-are-dropped) are.
pub struct VersionedMap<
    K: Key,
    V: Value,
    C: Clock = Drawn,
    I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>,
> {
    index: I,
    nodes: Kept<NodeMemory<V, I::Placement>>,
    time: Time,
    latches: Latches,
    sweep: Sweep<OwnedKey<K>>,
    budget: Arc<Budget>,
    keys: PhantomData<fn(K) -> C>,
}

// Implemented by hand: the auto traits would recurse for a map whose value type contains the map.
// SAFETY: the index and its domain are `Send` and `Sync`, and so are the values.
unsafe impl<K, V, C, I> Send for VersionedMap<K, V, C, I>
where
    K: Key,
    V: Send + Sync + 'static,
    C: Clock,
    I: MapIndex<Key = K::Form>,
{
}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl<K, V, C, I> Sync for VersionedMap<K, V, C, I>
where
    K: Key,
    V: Send + Sync + 'static,
    C: Clock,
    I: MapIndex<Key = K::Form>,
{
}

impl<K: Key, V: Value> VersionedMap<K, V> {
    /// An empty map that numbers its versions, without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> Default for VersionedMap<K, V, C, I> {
    fn default() -> Self {
        Self::with_options(&Options::default(), Retain::default()).or_panic()
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedMap<K, V, C, I> {
    /// An empty map with these options: see [`Builder::build_versioned`]. Fails if the first nodes
    /// cannot be allocated.
    pub fn with_options(options: &Options, retain: Retain) -> Result<Self, AllocError> {
        let mut options = options.clone();
        let budget = options.shared_budget();
        let index = I::with_options(&options)?;
        let memory = NodeMemory::new(options.prepare().1);
        let nodes = Kept::new(memory, index.domain(), &budget);
        let (time, latches, sweep) = (Time::new(retain), Latches::default(), Sweep::default());
        Ok(Self { index, nodes, time, latches, sweep, budget, keys: PhantomData })
    }

    /// Pins the map, to read the latest versions.
    #[inline]
    pub fn pin(&self) -> VersionedView<'_, K, V, C, I> {
        VersionedView::new(self, self.guard())
    }

    /// The number of keys that have a version. Keys whose newest version is a deletion count, too,
    /// until it is dropped. O(threads).
    pub fn key_count(&self) -> usize {
        self.index.len()
    }

    /// The number up to which snapshots see: that of the last write, or the watermark.
    pub fn now(&self) -> u64 {
        self.time.now()
    }

    /// The number of live snapshots.
    pub fn snapshot_count(&self) -> usize {
        self.time.snapshot_count()
    }

    /// The bytes that the map holds from the system, exactly: see [`Map::bytes`](crate::Map::bytes).
    /// [`VersionedMap::memory`] divides them.
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// One entry for each pool; that of the versions comes last. O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        let mut stats = self.index.pool_stats();
        stats.push(self.nodes.memory().stats());
        stats
    }

    /// The use of the map's bytes, apart for live and for retained versions. It reads all keys, and
    /// is exact while no thread writes. O(n).
    pub fn memory(&self) -> VersionedMemory {
        let (mut live, mut retained) = (0, 0);
        self.each_chain(|_, newest, _| {
            let bytes = |node: Node<'_, V>| NodeMemory::<V, I::Placement>::bytes(node);
            let mut next = Some(newest);
            if self.is_live(newest) {
                live += bytes(newest);
                next = newest.older();
            }
            while let Some(node) = next {
                retained += bytes(node);
                next = node.older();
            }
        });
        let index = self.index.pool_stats().iter().map(|stats| stats.live_bytes).sum();
        let bytes = self.bytes();
        let slack = bytes.saturating_sub(index + live + retained);
        VersionedMemory { bytes, index, live, retained, slack }
    }

    /// Whether the newest object of a key is a value that readers can see.
    fn is_live(&self, newest: Node<'_, V>) -> bool {
        newest.has_value() && matches!(self.settle(newest), chain::Settled::Final(_))
    }

    /// Drops values that no pin protects, of versions that were dropped: see
    /// [`Map::flush`](crate::Map::flush).
    pub fn flush(&self) {
        self.nodes.flush();
        self.index.domain().flush();
    }

    /// Calls [`VersionedMap::flush`], and returns the slabs without a used slot to the system: see
    /// [`Map::shrink`](crate::Map::shrink). Returns the number of bytes that it returned.
    pub fn shrink(&self) -> usize {
        self.flush();
        self.nodes.memory().shrink() + self.index.shrink()
    }

    /// Drops all versions that nobody can see: neither a snapshot, nor a reader at `number` or
    /// later. Readers without a snapshot cannot read before `number` afterwards. Returns the number
    /// of versions that it has dropped. O(n).
    ///
    /// With [`Retain::Snapshots`], readers without a snapshot can read at [`VersionedMap::now`]
    /// only, whatever `number` is.
    pub fn prune(&self, number: u64) -> Result<usize, WatermarkError> {
        let now = self.now();
        if number > now {
            return Err(WatermarkError { number, now });
        }
        self.time.raise_horizon(number);
        let mut dropped = 0;
        self.each_chain(|form, _, guard| {
            dropped += self.prune_key(form, None, guard).objects;
        });
        self.nodes.drop_some();
        Ok(dropped)
    }

    /// Takes a guard for a call, after it has dropped some values.
    #[inline(always)]
    fn guard(&self) -> Guard {
        self.nodes.drop_some();
        self.index.domain().pin()
    }

    /// Reads the next `most` keys in ascending order, and the words of their newest objects.
    /// Returns the last key, unless there are no more.
    fn next_keys(
        &self,
        after: Option<&OwnedKey<K>>,
        most: usize,
        found: &mut Vec<(OwnedKey<K>, Word)>,
        guard: &Guard,
    ) -> Option<OwnedKey<K>> {
        found.clear();
        let last = after.map(<K::Form as IndexKey>::borrow);
        let bounds = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        self.index.read_ahead(bounds, false, most, guard, |key, word| {
            Word(word).prefetch();
            found.push((<K::Form as IndexKey>::to_owned(key), Word(word)));
        });
        if found.len() < most { None } else { found.last().map(|(key, _)| key.clone()) }
    }

    /// Calls `each` with the keys that are there throughout, and their newest objects, under a
    /// guard.
    fn each_chain(&self, mut each: impl FnMut(KeyRef<'_, I>, Node<'_, V>, &Guard)) {
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let guard = self.index.domain().pin();
            after = self.next_keys(after.as_ref(), AT_ONCE, &mut found, &guard);
            for (key, word) in &found {
                // SAFETY: N2: the word was put by this map, and read under the guard.
                let node = unsafe { Node::new(*word) };
                each(<K::Form as IndexKey>::borrow(key), node, &guard);
            }
            if after.is_none() {
                return;
            }
        }
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Builder<K, V, I> {
    /// Makes an empty [`VersionedMap`] whose versions the clock `C` numbers, and which keeps these
    /// versions. Fails if the first nodes cannot be allocated.
    ///
    /// ```
    /// use silvics::versions::{Given, Retain};
    /// use silvics::{Map, VersionedMap};
    ///
    /// let builder = Map::<String, u64>::builder().memory_limit(1 << 20);
    /// let log: VersionedMap<String, u64, Given> = builder.build_versioned(Retain::All)?;
    /// log.put("oak", 10, 1)?;
    /// log.publish(10)?;
    /// assert_eq!(log.snapshot().get("oak"), Some(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_versioned<C: Clock>(
        self,
        retain: Retain,
    ) -> Result<VersionedMap<K, V, C, I>, AllocError> {
        VersionedMap::with_options(&self.options, retain)
    }
}

/// The number of keys that a walk over all of them reads at once.
const AT_ONCE: usize = 64;

/// A key of the index that owns its bytes.
type OwnedKey<K> = <<K as Key>::Form as IndexKey>::Owned;

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form> + Check> VersionedMap<K, V, C, I> {
    /// Verifies the index, and that the numbers of each chain descend (S3). Returns the number of
    /// keys. O(versions).
    pub fn check(&mut self) -> Result<usize, crate::error::Violation> {
        let mut wrong = None;
        self.each_chain(|_, newest, _| {
            let (mut next, mut above) = (Some(newest), u64::MAX);
            while let Some(node) = next {
                next = node.older();
                if let chain::Settled::Final(number) = self.settle(node) {
                    if number >= above {
                        wrong = Some(format!("version {number} is below {above} in its chain"));
                    }
                    above = number;
                }
            }
        });
        match wrong {
            Some(detail) => Err(crate::error::Violation { invariant: "S3", detail }),
            None => self.index.check(),
        }
    }

    /// Drops what [`VersionedMap::flush`] drops, whichever thread has dropped the version.
    pub fn settle_memory(&mut self) {
        self.index.settle();
        self.nodes.settle();
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> fmt::Debug
    for VersionedMap<K, V, C, I>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VersionedMap({} keys, now {})", self.key_count(), self.now())
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> Drop for VersionedMap<K, V, C, I> {
    fn drop(&mut self) {
        if self.nodes.memory().releases_whole() {
            return;
        }
        let (mut after, mut found, mut words) = (None, Vec::new(), Vec::new());
        loop {
            words.clear();
            {
                let guard = self.index.domain().pin();
                after = self.next_keys(after.as_ref(), AT_ONCE, &mut found, &guard);
                for (_, word) in &found {
                    // SAFETY: N2; access is exclusive.
                    let mut next = Some(unsafe { Node::<V>::new(*word) });
                    while let Some(node) = next {
                        next = node.older();
                        if node.version().word != node.word {
                            words.push(node.version().word);
                        }
                        words.push(node.word);
                    }
                }
            }
            // Destructors run without a pin, which would hold back what other maps free.
            for word in &words {
                // SAFETY: access is exclusive, and each object of a chain comes once.
                unsafe {
                    Node::<V>::new(*word).drop_value();
                    self.nodes.memory().free(*word);
                }
            }
            if after.is_none() {
                return;
            }
        }
    }
}

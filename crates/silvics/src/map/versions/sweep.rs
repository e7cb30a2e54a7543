//! Passes over all keys, which drop versions that snapshots have held.
//!
//! # Algorithm
//! A write that leaves an object behind, beside one for its key, counts it. Once there are many,
//! writes sweep the map together: each looks after the next few keys. A pass begins when the count
//! has grown by an eighth of the keys since the last one ended, so a write that leaves an object
//! behind pays for about eight keys. A pass counts what is left anew.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `left`, `begins_at` | all | Relaxed | – | hints: a wrong count begins a pass earlier or later |
//! | `is_taken` | swap, store | Acquire, Release | each other | the pass is as the last thread left it |
//! | `is_taken` | load | Relaxed | – | a hint that spares the swap |

use super::chain::Dropped;
use super::clock::Clock;
use super::node::{Kind, Node, Word};
use super::{OwnedKey, Value, VersionedMap};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::map::MapIndex;
use crate::map::key::Key;
use silvics_sync::Mutex;
use silvics_sync::atomic::Ordering::{Acquire, Relaxed, Release};
use silvics_sync::atomic::{AtomicBool, AtomicI64};

/// The objects that may be left before the first pass.
const FEW: i64 = 64;
/// The keys that a write looks after, during a pass.
const KEYS: usize = 8;

/// See the [module](self). The counts are hints.
pub(super) struct Sweep<Q> {
    /// Objects of chains, beside one for each key.
    left: AtomicI64,
    /// The count at which a pass begins; during a pass, a count that is always reached.
    begins_at: AtomicI64,
    /// Whether a thread looks after keys now.
    is_taken: AtomicBool,
    pass: Mutex<Pass<Q>>,
}

struct Pass<Q> {
    /// The last key that was looked after.
    after: Option<Q>,
    keys: i64,
    left: i64,
}

impl<Q> Default for Sweep<Q> {
    fn default() -> Self {
        let pass = Pass { after: None, keys: 0, left: 0 };
        Self {
            left: AtomicI64::new(0),
            begins_at: AtomicI64::new(FEW),
            is_taken: AtomicBool::new(false),
            pass: Mutex::new(pass),
        }
    }
}

impl<Q> Sweep<Q> {
    /// Counts the objects that a write has left behind. It has put one over others, or as the first
    /// one of its key, and dropped some.
    #[inline(always)]
    pub(super) fn note(&self, is_over: bool, dropped: Dropped) {
        let more = i64::from(is_over) + i64::from(dropped.key) - dropped.objects as i64;
        if more != 0 {
            self.left.fetch_add(more, Relaxed);
        }
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedMap<K, V, C, I> {
    /// Goes on with a pass, or begins one, if there is much to drop.
    #[inline(always)]
    pub(super) fn sweep_on(&self, guard: &Guard) {
        let Sweep { left, begins_at, .. } = &self.sweep;
        if left.load(Relaxed) >= begins_at.load(Relaxed) && self.time.prunes() {
            self.sweep_some(guard);
        }
    }

    #[cold]
    fn sweep_some(&self, guard: &Guard) {
        // Others only read while a thread has the pass.
        if self.sweep.is_taken.load(Relaxed) || self.sweep.is_taken.swap(true, Acquire) {
            return;
        }
        self.sweep_next(&mut self.sweep.pass.lock(), guard);
        self.sweep.is_taken.store(false, Release);
    }

    fn sweep_next(&self, pass: &mut Pass<OwnedKey<K>>, guard: &Guard) {
        self.sweep.begins_at.store(i64::MIN, Relaxed);
        let mut found: Vec<(OwnedKey<K>, Word)> = Vec::new();
        let next = self.next_keys(pass.after.as_ref(), KEYS, &mut found, guard);
        for (key, word) in &found {
            // SAFETY: N2: the word was put by this map, and read under the guard.
            let node = unsafe { Node::<V>::new(*word) };
            // A key with one value needs no look.
            let is_clean = word.kind() == Kind::First
                || node.has_value() && word.kind() != Kind::Joint && node.older().is_none();
            if !is_clean {
                pass.left += self.prune_key_counting(<K::Form as IndexKey>::borrow(key), guard);
            }
        }
        pass.keys += found.len() as i64;
        pass.after = next;
        if pass.after.is_none() {
            self.sweep.left.store(pass.left, Relaxed);
            self.sweep.begins_at.store(pass.left + FEW.max(pass.keys / 8), Relaxed);
            (pass.keys, pass.left) = (0, 0);
        }
    }
}

//! The chain of a key's versions: reading it, and dropping what nobody needs.
//!
//! # Algorithm
//! The index leads from a key to its newest object, and each object to the next older one.
//! ```text
//! find(s):   from the newest object on, settle each version, until one is final with a number up
//!            to s
//! prune:     take the latch of the key
//!            the readers are the horizon, and the snapshots below it
//!            a version is needed if it is tentative or in an open batch, if its number is above
//!            the horizon, or if a reader is at its number or later, and before the next newer one
//!            leave out tombstones with nothing older
//!            link each object that is left to the next one; if none is, remove the key
//!            retire the others
//! ```
//!
//! # Invariants
//! * N1: Only a holder of the key's latch changes a link, or removes an object from a chain. Others
//!   put objects over the newest one, by an exchange of the index's word.
//! * N2: An object leaves its chain once, and is retired then. An object that is out of its chain
//!   keeps its link. The next object left at the same time or later, so a guard that protects the
//!   one protects the other. A joint and its first version leave together.
//! * N3: A version that a live snapshot can see stays in its chain (S1, S2), so references to its
//!   value need no pin.

use super::clock::Clock;
use super::node::{ABORTED, BATCH, BatchState, FINAL, Kind, Node, NodeMemory, STATE, Word};
use super::{Value, VersionedMap};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::{AllocError, reserved};
use crate::index::KeyRef;
use crate::map::MapIndex;
use crate::map::key::{Form, FormRef, Key};
use crate::update::Update;
use silvics_sync::atomic::Ordering::SeqCst;
use silvics_sync::{Mutex, MutexGuard};

/// The state of a version for readers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Settled {
    Final(u64),
    /// It is none, or not yet.
    Hidden,
    /// It is in a batch that is not complete.
    Open,
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedMap<K, V, C, I> {
    /// The state of a version, which this decides if it is tentative. Then it is in its chain.
    #[inline(always)]
    pub(super) fn settle(&self, node: Node<'_, V>) -> Settled {
        let stamp = node.stamp().load(SeqCst);
        if stamp & STATE == FINAL { Settled::Final(stamp) } else { self.settle_now(node, stamp) }
    }

    #[cold]
    fn settle_now(&self, node: Node<'_, V>, mut stamp: u64) -> Settled {
        loop {
            let settled = match stamp & STATE {
                FINAL => return Settled::Final(stamp),
                ABORTED => return Settled::Hidden,
                BATCH => {
                    // SAFETY: the caller has read the stamp under its guard.
                    let batch = unsafe { BatchState::of_stamp(stamp) };
                    match self.decide(batch) {
                        BatchState::OPEN => return Settled::Open,
                        BatchState::FAILED => return Settled::Hidden,
                        number => number - BatchState::FAILED,
                    }
                }
                _ if C::IS_DRAWN => self.time.draw(),
                // The caller has given the number, and a snapshot may be at it already. The fence
                // orders the link to the version before the load of `now`: see `Time::read_now`.
                _ if self.time.is_above(stamp & !STATE) || planted(Canary::LateVersionKept) => {
                    stamp & !STATE
                }
                _ => ABORTED | stamp & !STATE,
            };
            match node.stamp().compare_exchange(stamp, settled, SeqCst, SeqCst) {
                Ok(_) => stamp = settled,
                Err(now) => stamp = now,
            }
        }
    }

    /// Draws the number of a batch that is complete and has none. Returns its state: open, failed,
    /// or the number plus [`BatchState::FAILED`].
    pub(super) fn decide(&self, batch: &BatchState) -> u64 {
        let state = batch.0.load(SeqCst);
        if state != BatchState::READY {
            return state;
        }
        let number = self.time.draw() + BatchState::FAILED;
        batch.0.compare_exchange(state, number, SeqCst, SeqCst).map_or_else(|now| now, |_| number)
    }

    /// The newest object of a key.
    #[inline(always)]
    pub(super) fn newest<'g>(&self, form: KeyRef<'_, I>, guard: &'g Guard) -> Option<Node<'g, V>> {
        // SAFETY: the word was put by this map, and read under the guard (N2).
        self.index.get(form, guard).map(|word| unsafe { Node::new(Word(word)) })
    }

    /// The newest version from an object on with a number up to `at`, and its number.
    #[inline(always)]
    pub(super) fn find<'g>(&self, from: Node<'g, V>, at: u64) -> Option<(u64, Node<'g, V>)> {
        let mut node = from;
        loop {
            let settled = self.settle(node);
            match settled {
                Settled::Final(number) if number <= at => return Some((number, node)),
                Settled::Final(_) => node = node.older()?,
                Settled::Hidden | Settled::Open => {
                    let older = node.older();
                    // If the version has become final meanwhile, those below it may be dropped.
                    if self.settle(node) == settled || planted(Canary::OpenPassedOnce) {
                        node = older?;
                    }
                }
            }
        }
    }

    /// Drops the versions of a key that nobody needs: all of them, or those below `from`, which the
    /// caller has put.
    pub(super) fn prune_key<'g>(
        &self,
        form: KeyRef<'_, I>,
        from: Option<Node<'g, V>>,
        guard: &'g Guard,
    ) -> Dropped {
        let _latch = self.latches.lock::<K>(form);
        let horizon = self.time.horizon();
        let mut needed = Needed::default();
        let known = self.needed(form, from, horizon, guard, &mut needed);
        if known.is_err() {
            return Dropped::default(); // the next writer tries again
        }
        self.unlink(form, &mut needed, guard)
    }

    /// Drops the versions below one that a writer has put, if nobody needs them, and counts what is
    /// left.
    #[inline]
    pub(super) fn prune_below<'g>(
        &self,
        form: KeyRef<'_, I>,
        node: Node<'g, V>,
        settled: Settled,
        guard: &'g Guard,
    ) {
        let is_over = node.older().is_some();
        let dropped = match settled {
            Settled::Final(number) if node.has_value() => {
                if self.time.horizon() < number {
                    // Versions that are not published are needed, and so are those below.
                    Dropped::default()
                } else if self.time.has_snapshot_below(number) {
                    self.prune_key(form, Some(node), guard)
                } else {
                    self.prune_all_below(form, node, guard)
                }
            }
            // Only the newest object can be taken out of the index.
            _ => self.prune_key(form, None, guard),
        };
        self.sweep.note(is_over, dropped);
    }

    /// Drops all versions below one that each reader sees.
    fn prune_all_below(&self, form: KeyRef<'_, I>, node: Node<'_, V>, guard: &Guard) -> Dropped {
        let _latch = self.latches.lock::<K>(form);
        let mut dropped = Dropped::default();
        if node.is_out() && !planted(Canary::OutOfChainTrusted) {
            return dropped;
        }
        let mut next = node.older();
        node.set_older(Word::NONE);
        while let Some(node) = next {
            next = node.older();
            node.set_out();
            // SAFETY: N1, N2: this thread has removed the object from the chain, under the latch.
            unsafe { self.retire(node, guard) };
            dropped.objects += 1;
        }
        dropped
    }

    /// Drops the versions of a key that nobody needs. Returns the number of objects that are left,
    /// beside one.
    pub(super) fn prune_key_counting(&self, form: KeyRef<'_, I>, guard: &Guard) -> i64 {
        self.prune_key(form, None, guard);
        let mut left = 0;
        let mut next = self.newest(form, guard).filter(|newest| newest.older().is_some());
        while let Some(node) = next {
            next = node.older();
            left += 1;
        }
        (left - 1).max(0)
    }

    /// Finds out which objects of a chain are needed.
    fn needed<'g>(
        &self,
        form: KeyRef<'_, I>,
        from: Option<Node<'g, V>>,
        horizon: u64,
        guard: &'g Guard,
        needed: &mut Needed<'g, V>,
    ) -> Result<(), AllocError> {
        let start = match from {
            Some(node) if node.is_out() => return Ok(()),
            Some(node) => Some(node),
            None => self.newest(form, guard),
        };
        needed.is_newest = from.is_none();
        let mut readers = Readers::new(horizon);
        if self.time.has_snapshot_below(horizon) {
            self.time.snapshots_below(horizon, &mut readers.snapshots)?;
        }
        let mut above = u64::MAX;
        let mut next = start;
        while let Some(node) = next {
            next = node.older();
            let is_needed = match self.settle(node) {
                Settled::Open => true,
                // Its owner may not have noted that it is aborted. The link stays for readers here.
                Settled::Hidden => {
                    planted(Canary::FailedVersionKept) && node.stamp().load(SeqCst) & STATE == BATCH
                }
                Settled::Final(number) => {
                    let is_needed = number > horizon || readers.any_between(number, above);
                    above = number;
                    is_needed
                }
            };
            reserved(&mut needed.nodes, 1)?.push((node, is_needed));
        }
        // A tombstone over nothing is as good as nothing.
        for (node, is_needed) in needed.nodes.iter_mut().rev() {
            let number = match self.settle(*node) {
                Settled::Final(number) => number,
                Settled::Hidden if !*is_needed => continue,
                _ => break,
            };
            if *is_needed && (node.has_value() || number > horizon) {
                break;
            }
            *is_needed = false;
        }
        Ok(())
    }

    /// Removes the objects that are not needed from a chain. The caller has the latch.
    fn unlink(&self, form: KeyRef<'_, I>, needed: &mut Needed<'_, V>, guard: &Guard) -> Dropped {
        let mut dropped = Dropped::default();
        let Some((first, first_is_needed)) = needed.nodes.first_mut() else { return dropped };
        if !*first_is_needed {
            // An object that is known to be in the chain, and no more, may have newer ones. One
            // without a version, or a tombstone, waits for the next call.
            let first = *first;
            let next = needed.nodes.iter().find(|(_, is_needed)| *is_needed);
            let new = next.map(|(node, _)| node.word.0);
            let verb = Update::CompareExchange { expected: Some(first.word.0), new };
            let is_done = needed.is_newest
                && self.index.update(form, verb, guard).is_ok_and(|now| now == Some(first.word.0));
            if is_done {
                dropped.key = new.is_none();
            } else {
                needed.nodes[0].1 = true;
            }
        }
        let mut last: Option<Node<'_, V>> = None;
        for (node, _) in needed.nodes.iter().filter(|(_, is_needed)| *is_needed) {
            if let Some(last) = last.replace(*node)
                && last.older().is_none_or(|older| older.word != node.word)
            {
                last.set_older(node.word);
            }
        }
        if let Some(last) = last.filter(|last| last.older().is_some()) {
            last.set_older(Word::NONE);
        }
        for (node, _) in needed.nodes.iter().filter(|(_, is_needed)| !*is_needed) {
            node.set_out();
            // SAFETY: N1, N2: this thread has removed the object from the chain, under the latch.
            unsafe { self.retire(*node, guard) };
            dropped.objects += 1;
        }
        dropped
    }

    /// Retires an object that has left its chain, and its first version if it is a joint.
    ///
    /// # Safety
    /// The caller removed the object, and calls this once.
    pub(super) unsafe fn retire(&self, node: Node<'_, V>, guard: &Guard) {
        let retire = |word: Word| {
            let bytes = NodeMemory::<V, I::Placement>::size(word.kind());
            // SAFETY: our contract; no new reader can reach it.
            unsafe { self.nodes.retire_only(word.tagged(), bytes, guard) };
        };
        if node.word.kind() == Kind::Joint {
            retire(node.version().word);
        }
        retire(node.word);
    }
}

/// The objects that have left a chain.
#[derive(Clone, Copy, Default)]
pub(super) struct Dropped {
    /// Their number.
    pub(super) objects: usize,
    /// Whether the key has left the index.
    pub(super) key: bool,
}

/// The readers that a pruner knows.
struct Readers {
    horizon: u64,
    /// In ascending order, below the horizon.
    snapshots: Vec<u64>,
}

impl Readers {
    fn new(horizon: u64) -> Self {
        Self { horizon, snapshots: Vec::new() }
    }

    /// Whether a reader is at `number` or later, and before `above`.
    fn any_between(&self, number: u64, above: u64) -> bool {
        let at = self.snapshots.partition_point(|at| *at < number);
        let next = self.snapshots.get(at).copied().unwrap_or(self.horizon);
        [next, self.horizon].iter().any(|at| (number..above).contains(at))
    }
}

/// The objects of a chain, and which of them are needed.
struct Needed<'g, V> {
    nodes: Vec<(Node<'g, V>, bool)>,
    /// Whether the first one was the newest of its key.
    is_newest: bool,
}

impl<V> Default for Needed<'_, V> {
    fn default() -> Self {
        Self { nodes: Vec::new(), is_newest: false }
    }
}

/// The latches of keys. Several keys share one.
#[derive(Default)]
pub(super) struct Latches([Mutex<()>; 16]);

impl Latches {
    /// The latch of a key, for a writer that changes a link.
    pub(super) fn lock<K: Key>(&self, form: FormRef<'_, K>) -> MutexGuard<'_, ()> {
        self.0[K::Form::spread(form) % self.0.len()].lock()
    }
}

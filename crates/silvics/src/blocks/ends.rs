//! The first and the last entry.
//!
//! A block becomes the first only under the lock of the block that was the first before, and so for
//! the last. A walk from the root finds a block; then the block is locked, or its version is read.
//! If a second walk meets the same words as the first (`trail.rs`), the block was the first one in
//! between, and is as long as its lock is held or its version stays. Its first entry is the first
//! of all, unless the block is empty, which happens if a node without it could not be allocated.
//! Then the next block is locked, too.

use super::Blocks;
use super::block::BlockRef;
use super::edit::Step;
use super::key::BlockKey;
use super::lock::Locked;
use super::trail::Trail;
use super::word::Leads;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::afterwards;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;
use silvics_sync::backoff::Backoff;

/// A key and a value.
type Entry<'g, K> = (<K as crate::IndexKey>::Ref<'g>, u64);

impl<K: BlockKey + ?Sized> BlockRef<'_, K> {
    /// The first or last entry that is present.
    fn end<const LAST: bool>(self) -> Option<usize> {
        let order = self.bare_order();
        let live = self.live();
        let is_live = |number: &&u8| live >> **number & 1 == 1;
        let mut numbers = order.numbers().iter();
        let found = if LAST { numbers.rfind(is_live) } else { numbers.find(is_live) };
        found.map(|number| usize::from(*number))
    }
}

/// The locked blocks from an end of the tree to the first entry there.
struct Held<'g, K: BlockKey + ?Sized> {
    /// Blocks without an entry.
    empty: Vec<Locked<'g, K>>,
    /// The block of the entry, and its number.
    entry: Option<(Locked<'g, K>, usize)>,
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// See [`OrderedEnds::first`](crate::OrderedEnds::first). The guard is of the tree's domain.
    pub(super) fn look_at_end<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<Entry<'g, K>> {
        const ATTEMPTS: usize = 8;
        let (mut before, mut after) = (Trail::new(), Trail::new());
        for _ in 0..ATTEMPTS {
            // LP, if there is no root: the load of its word.
            let block = Self::edge::<LAST>(self.root.word(), &mut before, guard)?;
            let Ok(version) = block.lock().read() else { continue };
            Self::edge::<LAST>(self.root.word(), &mut after, guard);
            if before != after {
                continue;
            }
            let Some(at) = block.end::<LAST>() else { break };
            let value = block.value(at).load(Ordering::SeqCst); // LP: this load, if valid
            if block.lock().validate(version) || planted(Canary::FirstNotValidated) {
                return Some((block.key(at), value));
            }
        }
        let held = self.hold_end::<LAST>(guard)?;
        let (locked, at) = held.entry.as_ref()?;
        let value = locked.block.value(*at).load(Ordering::SeqCst); // LP
        Some((locked.block.key(*at), value))
    }

    /// Removes the first or last entry.
    pub(super) fn pop_end<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<Entry<'g, K>> {
        let held = self.hold_end::<LAST>(guard)?;
        let entry = held.entry.map(|(mut locked, at)| {
            locked.bar();
            let key = locked.block.key(at);
            let value = locked.block.value(at).load(Ordering::SeqCst);
            // The blocks without an entry stay locked until the entry is gone.
            self.remove_entry(&locked, at); // LP
            (locked, key, value)
        });
        for locked in held.empty {
            let key = locked.block.key(0);
            afterwards(|| self.unlink(locked, key, guard));
        }
        entry.map(|(locked, key, value)| {
            self.tidy(locked, K::shorten(key), guard);
            (key, value)
        })
    }

    /// Locks the blocks from an end to the first entry there. Nothing if the tree has no root.
    fn hold_end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<Held<'g, K>> {
        let (mut before, mut after) = (Trail::new(), Trail::new());
        let mut backoff = Backoff::new();
        loop {
            let block = Self::edge::<LAST>(self.root.word(), &mut before, guard)?;
            let Ok(locked) = block.locked() else { continue };
            Self::edge::<LAST>(self.root.word(), &mut after, guard);
            if before != after {
                continue;
            }
            if let Some(at) = block.end::<LAST>() {
                return Some(Held { empty: Vec::new(), entry: Some((locked, at)) });
            }
            if let Some(held) = self.hold_on::<LAST>(locked, guard) {
                return Some(held);
            }
            backoff.wait();
        }
    }

    /// Goes on from an empty block at the end. The lock of each next block is tried, since another
    /// thread may come from the other end.
    #[cold]
    fn hold_on<'g, const LAST: bool>(
        &'g self,
        first: Locked<'g, K>,
        guard: &'g Guard,
    ) -> Option<Held<'g, K>> {
        let (mut before, mut after) = (Trail::new(), Trail::new());
        let mut empty = vec![first];
        loop {
            let next = self.after::<LAST>(empty.len(), &mut before, guard);
            let Some(block) = next else { return Some(Held { empty, entry: None }) };
            let locked = block.try_locked()?;
            self.after::<LAST>(empty.len(), &mut after, guard);
            if before != after {
                return None;
            }
            if let Some(at) = block.end::<LAST>() {
                return Some(Held { empty, entry: Some((locked, at)) });
            }
            empty.push(locked);
        }
    }

    /// The block after the first `skipped` ones from an end, and the words on the way.
    fn after<'g, const LAST: bool>(
        &'g self,
        mut skipped: usize,
        trail: &mut Trail,
        _guard: &'g Guard,
    ) -> Option<BlockRef<'g, K>> {
        trail.clear();
        let mut word = self.root.word();
        let mut path: Vec<Step<'g>> = Vec::new();
        if word.is_none() {
            return None;
        }
        loop {
            trail.push(word);
            // SAFETY: I3: the word was read under the guard.
            match unsafe { word.leads::<K>() } {
                Leads::Node(node) => path.push(Step { node, at: 0 }),
                Leads::Block(block) if skipped == 0 => return Some(block),
                Leads::Block(_) => {
                    skipped -= 1;
                    while path.last().is_some_and(|step| step.at + 1 == step.node.len()) {
                        path.pop();
                    }
                    path.last_mut()?.at += 1;
                }
            }
            let Step { node, at } = *path.last()?;
            word = node.child(if LAST { node.len() - 1 - at } else { at }).word();
        }
    }
}

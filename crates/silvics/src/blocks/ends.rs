//! The first and the last entry.
//!
//! A block becomes the first only under the lock of the block that was the first before, and so for
//! the last. So the block that a walk from the root finds first, while its lock is held or its
//! version stays, is the first one at that time. Its first entry is the first of all, unless the
//! block is empty, which happens if a node without it could not be allocated. Then the next block
//! is locked, too.

use super::Blocks;
use super::block::BlockRef;
use super::key::BlockKey;
use super::lock::Locked;
use super::seek::{Next, Way};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;
use silvics_sync::backoff::Backoff;

/// A key and a value.
type Entry<'g, K> = (<K as crate::IndexKey>::Ref<'g>, u64);

impl<'g, K: BlockKey + ?Sized> BlockRef<'g, K> {
    /// The first or last entry that is present.
    fn end<const LAST: bool>(self) -> Option<usize> {
        let (order, entries) = self.sorted();
        let live = self.live();
        let is_live = |number: &&u8| live >> **number & 1 == 1;
        let order = &order[..entries];
        let found =
            if LAST { order.iter().rev().find(is_live) } else { order.iter().find(is_live) };
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
        for _ in 0..ATTEMPTS {
            let block = self.edge::<LAST>(self.root.word(), guard)?; // LP, if there is no root
            let Ok(version) = block.lock().read() else { continue };
            if self.edge::<LAST>(self.root.word(), guard) != Some(block) {
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
        let (mut locked, at) = held.entry?;
        locked.bar();
        let (key, value) = (locked.block.key(at), locked.block.value(at).load(Ordering::SeqCst));
        self.remove_entry(&locked, at); // LP
        drop(held.empty);
        self.tidy(locked, K::shorten(key), guard);
        Some((key, value))
    }

    /// Locks the blocks from an end to the first entry there. Nothing if the tree has no root.
    fn hold_end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<Held<'g, K>> {
        let mut backoff = Backoff::new();
        loop {
            let mut way = Way::new();
            let block =
                if LAST { self.begin::<true>(&mut way)? } else { self.begin::<false>(&mut way)? };
            let Ok(locked) = block.locked() else { continue };
            if self.edge::<LAST>(self.root.word(), guard) != Some(block) {
                continue;
            }
            if let Some(at) = block.end::<LAST>() {
                return Some(Held { empty: Vec::new(), entry: Some((locked, at)) });
            }
            if let Some(held) = self.hold_on::<LAST>(locked, &mut way, guard) {
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
        way: &mut Way<'g>,
        guard: &'g Guard,
    ) -> Option<Held<'g, K>> {
        let mut empty = vec![first];
        loop {
            // The blocks between are locked, so they stay in the tree, in this order. A block that
            // is put between two of them needs the lock of one.
            let last = empty.last()?.block;
            self.way_to(last.key(0), way, guard);
            let next = if LAST { Self::next::<true>(way) } else { Self::next::<false>(way) };
            let block = match next {
                Next::Block(block) => block,
                Next::End => return Some(Held { empty, entry: None }),
                Next::Lost => return None,
            };
            let locked = block.try_locked()?;
            self.way_to(last.key(0), way, guard);
            let again = if LAST { Self::next::<true>(way) } else { Self::next::<false>(way) };
            if !matches!(again, Next::Block(again) if again == block) {
                return None;
            }
            if let Some(at) = block.end::<LAST>() {
                return Some(Held { empty, entry: Some((locked, at)) });
            }
            empty.push(locked);
        }
    }
}

//! Batches: the misses of several keys overlap.
//!
//! The index is mostly in the cache, and each key then misses in its block. So a group of keys goes
//! down the index one after the other, and each asks for the first lines of its block. When all
//! have done so, each asks for the lines of its entry, and then all are compared.

use super::Blocks;
use super::block::{BlockRef, tag};
use super::key::BlockKey;
use crate::domain::Guard;
use silvics_pool::Placement;

/// The number of keys of a group. It is the number of line fill buffers of a core, 10 to 16.
const GROUP: usize = 16;

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// See [`Batches::get_many`](crate::Batches::get_many).
    pub(super) fn find_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            let blocks = self.group(keys.len(), |at| K::shorten(keys[at]), guard);
            for (block, tag) in blocks.iter().flatten() {
                block.prefetch_entry(*tag);
            }
            for ((key, value), found) in keys.iter().zip(values).zip(&blocks) {
                // LP(absent), if the tree is empty: the load of the root.
                let entry =
                    found.and_then(|(block, tag)| self.get_in(block, K::shorten(*key), tag));
                *value = entry.map(|(_, value)| value);
            }
        }
    }

    /// Brings the lines that upserts of some keys need first into the cache.
    pub(super) fn warm_up(&self, entries: &[(K::Ref<'_>, u64)], guard: &Guard) {
        for entries in entries.chunks(GROUP) {
            let blocks = self.group(entries.len(), |at| K::shorten(entries[at].0), guard);
            for (block, tag) in blocks.iter().flatten() {
                block.prefetch_entry(*tag);
                block.prefetch_insert();
            }
        }
    }

    /// The blocks that the keys of a group lead to, and the tags of the keys.
    #[inline]
    fn group<'g, 'k>(
        &'g self,
        len: usize,
        key: impl Fn(usize) -> K::Ref<'k>,
        guard: &'g Guard,
    ) -> [Option<(BlockRef<'g, K>, u8)>; GROUP] {
        std::array::from_fn(|at| {
            let (block, _) = (at < len).then(|| self.block_of(key(at), guard))??;
            Some((block, tag(K::hash(key(at)))))
        })
    }
}

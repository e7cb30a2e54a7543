//! Lookups of many keys at once.

use super::hot::sampler::Sampler;
use super::node::{LINE, line_of};
use super::search::Next;
use super::word::{Kind, Word};
use super::{Art, ArtKey};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::prefetch;

/// The number of descents that are under way at once. It exceeds the number of line fill buffers of
/// a core, 10 to 16.
const GROUP: usize = 16;

/// A descent of a batch.
#[derive(Clone, Copy)]
struct Lane {
    /// The position of its key in the batch.
    at: usize,
    /// The word of the node or leaf that has been prefetched for it.
    word: Word,
    /// The depth of the node that leads there.
    above: usize,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Looks up `len` keys and passes the position and value of each to `found`, in any order. The
    /// guard is of the tree's domain.
    ///
    /// A group of keys is under way at once. Each in turn makes a step, and prefetches the lines of
    /// its next one, which arrive while the others make theirs (asynchronous memory access
    /// chaining; Kocberber, Falsafi, Grot, VLDB 2015).
    pub(super) fn find_many<'k>(
        &self,
        len: usize,
        key: impl Fn(usize) -> K::Ref<'k>,
        _guard: &Guard,
        mut found: impl FnMut(usize, Option<u64>),
    ) {
        let mut lanes = [Lane { at: 0, word: Word::NONE, above: 0 }; GROUP];
        let mut busy = len.min(GROUP);
        for (at, lane) in lanes[..busy].iter_mut().enumerate() {
            *lane = self.enter(at, key(at));
        }
        let mut next = busy;
        while busy > 0 {
            let mut lane = 0;
            while lane < busy {
                let Lane { at, word, above } = lanes[lane];
                // SAFETY: I8: the word was read under the guard.
                match unsafe { Self::step::<true>(word, above, key(at)) } {
                    Next::At(next) => {
                        Self::prefetch(next, word.depth_for::<K, true>(), key(at));
                        lanes[lane] = Lane { at, word: next, above: word.depth_for::<K, true>() };
                        lane += 1;
                    }
                    Next::Ends(value) => {
                        found(at, value);
                        if next < len {
                            lanes[lane] = self.enter(next, key(next));
                            next += 1;
                            lane += 1;
                        } else {
                            busy -= 1;
                            lanes[lane] = lanes[busy];
                        }
                    }
                }
            }
        }
    }

    /// Begins a descent.
    #[inline(always)]
    fn enter(&self, at: usize, key: K::Ref<'_>) -> Lane {
        let word = self.first(key);
        Self::prefetch(word, 0, key);
        Lane { at, word, above: 0 }
    }

    /// Prefetches the lines that `step` will read.
    #[inline(always)]
    fn prefetch(word: Word, above: usize, key: K::Ref<'_>) {
        if word.kind() == Kind::Leaf {
            let object = word.leaf_object().cast::<u8>();
            // If there is no leaf this prefetches address 0, which does no harm.
            prefetch(object);
            prefetch(object.wrapping_add(LINE - 1));
            return;
        }
        let (object, depth) = (word.node_object().cast::<u8>(), word.depth_for::<K, true>());
        if K::DIRECT && depth > above + 1 {
            prefetch(object);
        }
        prefetch(object.wrapping_add(line_of(word.kind(), K::digit(key, depth))));
    }
}

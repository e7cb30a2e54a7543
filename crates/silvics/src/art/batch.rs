//! Lookups of many keys at once.

use super::ArtKey;
use super::ArtTree;
use super::node::{LINE, line_of};
use super::search::Next;
use super::word::{Kind, Word};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::prefetch;

/// How many descents of a batch are under way at once: more than a core has line fill buffers (10 to 16).
pub(super) const GROUP: usize = 16;

/// A descent of a batch.
#[derive(Clone, Copy)]
struct Lane {
    /// Which key it is for.
    at: usize,
    /// What has been prefetched for it, and the depth of the node that leads there.
    word: Word,
    above: usize,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Looks up many keys, a group of them at once: each in turn makes a step, and asks for the lines of its
    /// next one, which come while the others make theirs (asynchronous memory access chaining; Kocberber,
    /// Falsafi, Grot, VLDB 2015).
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
                // SAFETY: read under the guard.
                match unsafe { Self::step(word, above, key(at)) } {
                    Next::At(next) => {
                        Self::prefetch(next, word.depth(), key(at));
                        lanes[lane] = Lane { at, word: next, above: word.depth() };
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

    /// Asks for the lines that `step` will read.
    #[inline(always)]
    fn prefetch(word: Word, above: usize, key: K::Ref<'_>) {
        let object = word.object().cast::<u8>();
        if word.kind() == Kind::Leaf {
            // None leads to address 0, which does no harm.
            prefetch(object);
            prefetch(object.wrapping_add(LINE - 1));
            return;
        }
        let depth = word.depth();
        if K::DIRECT && depth > above + 1 {
            prefetch(object);
        }
        prefetch(object.wrapping_add(line_of(word.kind(), K::digit(key, depth))));
    }
}

//! Blocks of entries under a trie of bits.

mod batch;
mod block;
mod check;
mod edit;
mod ends;
mod grow;
pub mod key;
mod lock;
mod merge;
mod node;
mod objects;
mod ops;
mod order;
mod plan;
mod scan;
mod seek;
mod state;
mod tags;
mod word;

pub use key::BlockKey;
pub use scan::{Range, RangeRev};

use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Ended, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use objects::Objects;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use silvics_sync::version::VersionLock;
use std::sync::Arc;
use word::{Place, Word};

/// Blocks of entries under a trie of bits. See the [module](self).
pub type BlockTree<K, P = Pooled> = Index<Blocks<K, P>>;

/// The algorithm of [`BlockTree`].
pub struct Blocks<K: BlockKey + ?Sized, P: Placement> {
    root: Place,
    /// The lock of `root`.
    root_lock: VersionLock,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    avx2: Option<node::Avx2>,
    objects: Objects<K, P>,
    frame: Frame,
}

const OBJECTS: &[NodeLayout] = &[node::NODE, block::BLOCK, objects::LONG_KEY];

// SAFETY: the linearization points of the module docs give A2 to A5. A6: keys are read from blocks,
// or from long keys, which the guard protects (I3, I5). A1: nodes and blocks are shared (I1, I2),
// and there is no other state but atomics and pools. A7: no other algorithm is called.
unsafe impl<K: BlockKey + ?Sized, P: Placement> Algorithm for Blocks<K, P> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Blocks<K, Q>;
    const NAME: &'static str = "BlockTree";
    const OBJECTS: &'static [NodeLayout] =
        if K::FIXED == 0 { OBJECTS } else { OBJECTS.split_at(2).0 };

    fn new(frame: Frame) -> Result<Self, AllocError> {
        Ok(Self {
            root: Place::new(Word::NONE),
            root_lock: VersionLock::new(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            avx2: node::Avx2::detect(),
            objects: Objects::new(&frame),
            frame,
        })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.look_up(key, guard)
    }

    #[inline]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.change(key, verb, guard)
    }

    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        self.find_many(keys, values, guard);
    }

    const WARMED: usize = 64;

    fn warm(&self, entries: &[(K::Ref<'_>, u64)], guard: &Guard) {
        self.warm_up(entries, guard);
    }

    fn memory(&self) -> &dyn Memory {
        &self.objects
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.objects
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if !P::RELEASES_WHOLE {
            // SAFETY: access is exclusive. I4: each object is linked once, or retired.
            unsafe { self.objects.free_all(self.root.word()) };
        }
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Ordered for Blocks<K, P> {
    type Range<'g> = Range<'g, K, P>;
    type RangeRev<'g> = RangeRev<'g, K, P>;
    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> Self::Range<'g> {
        Range::new(self, bounds, guard)
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        Range::new(self, bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> Self::Cursor {
        KeyCursor::new(index)
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Ended for Blocks<K, P> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        self.look_at_end::<LAST>(guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        Ok(self.pop_end::<LAST>(guard))
    }
}

//! Making a key absent.

use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::{Entries, LeafOf};
use super::node::{AnySize, Visit};
use super::ops::Attempt;
use super::resize::is_large;
use super::word::Word;
use super::{Art, ArtKey};
use silvics_pool::Placement;

impl Attempt {
    /// The outcome after a place of a locked node has been emptied.
    #[inline]
    pub(super) fn taken(at: Visit<'_>, state: Option<u64>) -> Self {
        if is_large(at, at.header().live()) { Self::Shrunk(state) } else { Self::Done(state) }
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Makes a key absent that is at a place of a leaf. The caller holds the lock of the node that
    /// leads to the leaf, at `digit`. Returns the leaf's word if the leaf is no longer linked.
    ///
    /// This needs no memory: if a smaller leaf cannot be allocated, the leaf stays, with a word
    /// that says that the entry is gone.
    pub(super) fn take(
        &self,
        node: AnySize<'_, Word>,
        digit: Digit,
        (word, place): (Word, usize),
    ) -> Word {
        // SAFETY: I7: the caller has found the key in a leaf. The leaf is linked while the lock is
        // held (I3), so it is not reclaimed (I8).
        let leaf = unsafe { K::Leaf::from_word(word) };
        let mut unlinked = word;
        if leaf.places().count() > 1 {
            let rest = Entries::<K>::of(leaf).without(leaf.key(place));
            let rest = self.alloc.leaf_at_hand(rest.as_slice()).unwrap_or_else(|| {
                unlinked = Word::NONE;
                K::Leaf::without(word, place)
            });
            node.replace(digit, rest); // LP(removed)
        } else {
            node.take(digit); // LP(removed)
        }
        self.alloc.frame().len.add(-1);
        unlinked
    }
}

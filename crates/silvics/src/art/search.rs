//! Lookups.

use super::ArtKey;
use super::ArtTree;
use super::kinds::layout;
use super::leaf::{LeafKey, LeafOf};
use super::node::{AnyPlace, LINE, Node, PREFIX, full, header, place};
use super::word::{ABSENT, Content, Kind, Word};
use crate::domain::Guard;
use silvics_layout::record::{Read, Why};
use silvics_pool::Placement;

/// What a search reads of a node: the place it comes to, and the keys in its line.
pub(super) fn reads<K: LeafKey + ?Sized, A>(
    word: Word,
    place: Option<&A>,
    why: Why,
) -> impl Iterator<Item = Read> + use<K, A> {
    let (layout, object) = (layout::<K>(word), word.object());
    let place = place.map(|place| std::ptr::from_ref(place).addr() - object.addr());
    let keys = match word.kind() {
        Kind::Node256 | Kind::Values256 => None,
        Kind::Node4 => Some(layout.search[0].offset),
        // Where there is no place the search has read keys of a line, of which it is not told.
        _ => place.map(|offset| offset / LINE * LINE),
    };
    let keys = keys.map(|offset| layout.read(object, offset, 8, Why::Step));
    keys.into_iter().chain(place.map(|offset| layout.read(object, offset, 8, why)))
}

/// What a search for a key reads of the leaf where it ends.
fn leaf_reads<K: LeafKey + ?Sized>(word: Word, key: K::Ref<'_>) -> impl Iterator<Item = Read> {
    // SAFETY: read under the guard.
    let leaf = unsafe { K::Leaf::from_word(word) };
    let (layout, object) = (layout::<K>(word), word.object());
    let value = leaf.find(K::shorten(key)).map(|at| (leaf.value_offset(at), 8));
    let parts = [leaf.looked_at(key), value];
    parts
        .into_iter()
        .flatten()
        .map(move |(offset, bytes)| layout.read(object, offset, bytes, Why::Found))
}

/// What comes of a step of a lookup.
pub(super) enum Next {
    Ends(Option<u64>),
    /// It goes on at a node or leaf.
    At(Word),
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// The value of a key.
    ///
    /// Where a leaf has the whole key at the end, what is skipped on the way is not looked at: a key that is
    /// elsewhere, or nowhere, is not in the leaf.
    #[inline(always)]
    pub(super) fn find(&self, key: K::Ref<'_>, _guard: &Guard) -> Option<u64> {
        let (mut word, mut above) = (self.first(key), 0);
        loop {
            // SAFETY: read under the guard.
            match unsafe { Self::step(word, above, key) } {
                Next::Ends(value) => return value,
                Next::At(next) => (word, above) = (next, word.depth()),
            }
        }
    }

    /// The same under a guard of its own.
    #[cold]
    #[inline(never)]
    pub(super) fn find_apart(&self, key: K::Ref<'_>) -> Option<u64> {
        self.find(key, &self.domain.pin())
    }

    /// What the root leads to.
    #[inline(always)]
    pub(super) fn first(&self, key: K::Ref<'_>) -> Word {
        // SAFETY: it lives as long as the tree.
        let place = unsafe { self.root.as_ref() }.find(K::digit(key, 0));
        P::saw(|| reads::<K, _>(self.root_word(), place, Why::Step));
        place.map_or(Word::NONE, Word::load)
    }

    /// Looks for a key at a node or leaf, or at none, that a node of depth `above` leads to.
    ///
    /// # Safety
    /// What the word leads to is not reclaimed meanwhile.
    #[inline(always)]
    pub(super) unsafe fn step(word: Word, above: usize, key: K::Ref<'_>) -> Next {
        // The most frequent kind first: what is at its place can be loaded without another branch.
        if word.kind() == Kind::Node256 {
            // SAFETY: the caller's promise.
            let node = unsafe {
                if Self::parts(word, above, key) {
                    return Next::Ends(None);
                }
                full(word)
            };
            let place = node.find(K::digit(key, word.depth()));
            P::saw(|| reads::<K, _>(word, place, Why::Step));
            return Next::At(place.map_or(Word::NONE, Word::load));
        }
        if word.kind() == Kind::Leaf {
            if word.is_none() {
                return Next::Ends(None); // LP(get): the load of the word
            }
            P::saw(|| leaf_reads::<K>(word, key));
            // SAFETY: the caller's promise.
            return Next::Ends(unsafe { K::Leaf::from_word(word) }.get(key)); // LP(get)
        }
        let depth = word.depth();
        // SAFETY: the caller's promise.
        if unsafe { Self::parts(word, above, key) } {
            return Next::Ends(None);
        }
        // SAFETY: the caller's promise.
        match unsafe { place(word, K::digit(key, depth)) } {
            AnyPlace::Value(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Found));
                // Not decided by a branch: the next lookup can begin while this one waits for memory.
                let value = place.map_or(ABSENT, u64::load); // LP(get)
                Next::Ends((value != ABSENT).then_some(value))
            }
            AnyPlace::Word(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Step));
                Next::At(place.map_or(Word::NONE, Word::load))
            }
        }
    }

    /// Whether a key is seen to part from those below a node before its depth, where one of depth `above` leads to it.
    ///
    /// # Safety
    /// As for `step`.
    #[inline(always)]
    unsafe fn parts(word: Word, above: usize, key: K::Ref<'_>) -> bool {
        let depth = word.depth();
        if !K::DIRECT || depth <= above + 1 {
            return false;
        }
        P::saw(|| [layout::<K>(word).read(word.object(), PREFIX, 8, Why::Step)]);
        // SAFETY: the caller's promise.
        K::before(key, depth) != unsafe { header(word) }.prefix
    }
}

//! Lookups.

use super::hot::sampler::Sampler;
use super::kinds::layout;
use super::leaf::{LeafKey, LeafOf};
use super::node::{AnyPlace, LINE, Node, NodeRef, PREFIX, full, header, place};
use super::word::{ABSENT, Content, Kind, Word};
use super::{Art, ArtKey};
use crate::domain::Guard;
use silvics_layout::record::{Read, Why};
use silvics_pool::Placement;

/// The reads of a search in a node: the place that it comes to, and the keys in the place's line.
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
        // If the digit has no place, the search still read the keys of a line. We do not know
        // which, so that read is not recorded.
        _ => place.map(|offset| offset / LINE * LINE),
    };
    let keys = keys.map(|offset| layout.read(object, offset, 8, Why::Step));
    keys.into_iter().chain(place.map(|offset| layout.read(object, offset, 8, why)))
}

/// The reads of a search for a key in the leaf where it ends.
///
/// # Safety
/// The word leads to a leaf, which is not reclaimed meanwhile.
unsafe fn leaf_reads<K: LeafKey + ?Sized>(
    word: Word,
    key: K::Ref<'_>,
) -> impl Iterator<Item = Read> {
    // SAFETY: our contract is that of `from_word`.
    let leaf = unsafe { K::Leaf::from_word(word) };
    let (layout, object) = (layout::<K>(word), word.object());
    let value = leaf.find(K::shorten(key)).map(|at| (leaf.value_offset(at), 8));
    let parts = [leaf.looked_at(key), value];
    parts
        .into_iter()
        .flatten()
        .map(move |(offset, bytes)| layout.read(object, offset, bytes, Why::Found))
}

/// The outcome of one step of a lookup.
pub(super) enum Next {
    Ends(Option<u64>),
    /// The lookup goes on at this node or leaf, or ends if there is none.
    At(Word),
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// The value of a key. The guard is of the tree's domain.
    ///
    /// If the lookup ends at a leaf, the leaf has the whole key. So bytes that are skipped on the
    /// way are not compared: a leaf that does not belong to the key does not contain it.
    ///
    /// For the same reason a lookup of a short key takes the hints of words for depths. They are
    /// wrong for deep nodes, which have longer keys only below (I2). So the lookup does not find
    /// the key there, whatever child it goes on at.
    #[inline(always)]
    pub(super) fn find(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        if K::is_long(K::shorten(key)) {
            return self.find_long(key, guard);
        }
        self.find_as::<false>(key, guard)
    }

    #[cold]
    #[inline(never)]
    fn find_long(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.find_as::<true>(key, guard)
    }

    #[inline(always)]
    fn find_as<const LONG: bool>(&self, key: K::Ref<'_>, _guard: &Guard) -> Option<u64> {
        let (mut word, mut above) = (self.first(key), 0);
        loop {
            // SAFETY: I8: the word was read under the guard.
            match unsafe { Self::step::<LONG>(word, above, key) } {
                Next::Ends(value) => return value,
                Next::At(next) => (word, above) = (next, word.depth_for::<K, LONG>()),
            }
        }
    }

    /// The child of the root for a key.
    #[inline(always)]
    pub(super) fn first(&self, key: K::Ref<'_>) -> Word {
        let Some(root) = self.root.full() else { return self.first_of_few(key) };
        let place = root.find(K::digit(key, 0));
        P::saw(|| reads::<K, _>(self.root.word(), place, Why::Step));
        place.map_or(Word::NONE, Word::load)
    }

    /// The child of a root that is not a `Node256`, or of none.
    #[inline(never)]
    fn first_of_few(&self, key: K::Ref<'_>) -> Word {
        let Some(root) = self.root() else { return Word::NONE };
        let NodeRef::Words(node) = root.node else { unreachable!("the root is a node of words") };
        let place = node.find(K::digit(key, 0));
        P::saw(|| reads::<K, _>(root.word, place, Why::Step));
        place.map_or(Word::NONE, Word::load)
    }

    /// Looks for a key in a node or leaf, or in none. `above` is the depth of the node that leads
    /// there. Long keys need `LONG`.
    ///
    /// # Safety
    /// The object that the word leads to, if any, is not reclaimed meanwhile.
    #[inline(always)]
    pub(super) unsafe fn step<const LONG: bool>(word: Word, above: usize, key: K::Ref<'_>) -> Next {
        // The most frequent kind comes first: its place can be loaded without another branch.
        if word.kind() == Kind::Node256 {
            // SAFETY: the word's kind is `Node256`, and the node is not reclaimed (our contract).
            let node = unsafe {
                if Self::parts::<LONG>(word, above, key) {
                    return Next::Ends(None);
                }
                full(word)
            };
            let place = node.find(K::digit(key, word.depth_for::<K, LONG>()));
            P::saw(|| reads::<K, _>(word, place, Why::Step));
            return Next::At(place.map_or(Word::NONE, Word::load));
        }
        if word.kind() == Kind::Leaf {
            if word.is_none() {
                return Next::Ends(None); // LP(get): the load of the word
            }
            // SAFETY: I7: the word leads to a leaf, which is not reclaimed (our contract).
            P::saw(|| unsafe { leaf_reads::<K>(word, key) });
            // SAFETY: I7: the word leads to a leaf, which is not reclaimed (our contract).
            return Next::Ends(unsafe { K::Leaf::from_word(word) }.get(key)); // LP(get)
        }
        let depth = word.depth_for::<K, LONG>();
        // SAFETY: I7: the word's kind is a node's, and the node is not reclaimed (our contract).
        if unsafe { Self::parts::<LONG>(word, above, key) } {
            return Next::Ends(None);
        }
        // SAFETY: I7: the word's kind is a node's, and the node is not reclaimed (our contract).
        match unsafe { place(word, K::digit(key, depth)) } {
            AnyPlace::Value(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Found));
                // No branch decides this: the next lookup can begin while this one waits for
                // memory.
                let value = place.map_or(ABSENT, u64::load); // LP(get)
                Next::Ends((value != ABSENT).then_some(value))
            }
            AnyPlace::Word(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Step));
                Next::At(place.map_or(Word::NONE, Word::load))
            }
        }
    }

    /// Whether a node's prefix shows that the node does not have `key` below it. `above` is the
    /// depth of the node that leads to it. Only trees with nodes of values need to know.
    ///
    /// # Safety
    /// The word leads to a node, not to a leaf, and the node is not reclaimed meanwhile.
    #[inline(always)]
    unsafe fn parts<const LONG: bool>(word: Word, above: usize, key: K::Ref<'_>) -> bool {
        let depth = word.depth_for::<K, LONG>();
        if !K::DIRECT || depth <= above + 1 {
            return false;
        }
        P::saw(|| [layout::<K>(word).read(word.object(), PREFIX, 8, Why::Step)]);
        // SAFETY: our contract is that of `header`.
        K::before(key, depth) != unsafe { header(word) }.prefix
    }
}

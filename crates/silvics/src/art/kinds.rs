//! The kinds of a tree's objects: the layout, number and size of the object that a word leads to.

use super::leaf::{LeafKey, LeafOf, integers};
use super::word::{Kind, Word};
use silvics_layout::NodeLayout;

/// The layout of the object that a word leads to.
pub(super) fn layout<K: LeafKey + ?Sized>(word: Word) -> &'static NodeLayout {
    &K::OBJECTS[kind_number::<K>(word)]
}

/// The position of that layout in [`LeafKey::OBJECTS`].
pub(super) fn kind_number<K: LeafKey + ?Sized>(word: Word) -> usize {
    match word.kind() {
        Kind::Leaf if K::LEAF_KEYS == 1 => K::OBJECTS.len() - 1,
        Kind::Leaf => K::OBJECTS.len() - K::LEAF_KEYS + integers(word) - 1,
        kind => kind as usize - 1,
    }
}

/// The size in bytes of the object that a word leads to.
///
/// # Safety
/// The object is not reclaimed meanwhile.
pub(super) unsafe fn bytes<K: LeafKey + ?Sized>(word: Word) -> usize {
    match word.kind() {
        // SAFETY: I7: the word leads to a leaf. It is not reclaimed meanwhile (our contract).
        Kind::Leaf => unsafe { K::Leaf::from_word(word) }.bytes(),
        _ => layout::<K>(word).size,
    }
}

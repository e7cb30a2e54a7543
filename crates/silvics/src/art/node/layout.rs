//! The layouts of nodes: where a search reads, how many digits a kind takes.

use super::keys::IN_WORD;
use super::{Header, Node, Node4, Node14, Node56, Node256};
use crate::art::key::Digit;
use crate::art::word::{Kind, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::prefetch;
use std::mem::offset_of;

/// The size of a cache line in bytes.
pub(in super::super) const LINE: usize = 64;

/// The most digits that a node of a kind takes. A leaf's place counts as one of the smallest node.
pub(in super::super) const fn places(kind: Kind) -> usize {
    match kind {
        Kind::Leaf | Kind::Node4 => <Node4<Word> as Node<Word>>::LIMIT,
        Kind::Node14 | Kind::Values14 => <Node14<Word> as Node<Word>>::LIMIT,
        Kind::Node56 | Kind::Values56 => <Node56<Word> as Node<Word>>::LIMIT,
        Kind::Node256 | Kind::Values256 => <Node256<Word> as Node<Word>>::LIMIT,
    }
}

/// The offset of the line that a search for a digit usually reads, in a node of a kind.
#[inline(always)]
pub(in super::super) fn line_of(kind: Kind, digit: Digit) -> usize {
    let byte = digit.unwrap_or(0);
    match kind {
        Kind::Leaf | Kind::Node4 => 0,
        Kind::Node14 | Kind::Values14 => LINE * (1 + Node14::<Word>::line(byte)),
        Kind::Node56 | Kind::Values56 => LINE * (1 + Node56::<Word>::line(byte)),
        Kind::Node256 | Kind::Values256 => LINE + 8 * usize::from(byte),
    }
}

/// Prefetches what a scan reads of a child first: a leaf, whose length is not known yet, or the
/// keys of a node.
#[inline(always)]
pub(in super::super) fn prefetch_whole(word: Word) {
    let object = word.object().cast::<u8>();
    prefetch(object);
    match word.kind() {
        Kind::Node4 => {}
        Kind::Leaf => {
            prefetch(object.wrapping_add(LINE));
            prefetch(object.wrapping_add(2 * LINE - 1));
        }
        _ => {
            prefetch(object.wrapping_add(LINE));
            prefetch(object.wrapping_add(2 * LINE));
        }
    }
}

const fn layout<N>(kind: &'static str, search: &'static [Field]) -> NodeLayout {
    NodeLayout { kind, size: size_of::<N>(), align: align_of::<N>(), search, found: &[] }
}

/// The offset of a node's prefix.
pub(in super::super) const PREFIX: usize = offset_of!(Header, prefix);

const FOUR: &[Field] = &[
    Field::new("keys", offset_of!(Node4<Word>, keys), 8),
    Field::links("places", offset_of!(Node4<Word>, places), 4),
];
/// A search reads one line of a node of lines. This is the first one.
const ONE_LINE: &[Field] = &[
    Field::new("keys", Node14::<Word>::OFFSET, 8),
    Field::links("places", Node14::<Word>::OFFSET + 8, IN_WORD),
];
const PLACES: &[Field] = &[Field::links("places", offset_of!(Node256<Word>, places), 256)];

/// The layouts of nodes, in the order of [`Kind`].
pub(in super::super) const NODES: [NodeLayout; 7] = [
    layout::<Node4<Word>>("node4", FOUR),
    layout::<Node14<Word>>("node14", ONE_LINE),
    layout::<Node56<Word>>("node56", ONE_LINE),
    layout::<Node256<Word>>("node256", PLACES),
    layout::<Node14<u64>>("values14", ONE_LINE),
    layout::<Node56<u64>>("values56", ONE_LINE),
    layout::<Node256<u64>>("values256", PLACES),
];

#[cfg(not(silvics_loom))] // loom's atomics are larger
const _: () = {
    assert!(size_of::<Node4<Word>>() == 64);
    assert!(size_of::<Node14<Word>>() == 3 * 64);
    assert!(size_of::<Node56<Word>>() == 9 * 64);
    assert!(size_of::<Node256<Word>>() == 33 * 64);
};

//! The node that a word leads to, whatever its kind.

use super::{Header, Node, Node4, Node14, Node56, Node256};
use crate::art::digits::{Digits, number};
use crate::art::key::{Digit, DigitKey};
use crate::art::word::{Content, Kind, Word};
use silvics_sync::model::touch;

/// A node of any size that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(in super::super) enum AnySize<'g, C: Content> {
    Four(&'g Node4<C>),
    Fourteen(&'g Node14<C>),
    FiftySix(&'g Node56<C>),
    Full(&'g Node256<C>),
}

macro_rules! each {
    ($node:expr, $of:ident => $do:expr) => {
        match $node {
            AnySize::Four($of) => $do,
            AnySize::Fourteen($of) => $do,
            AnySize::FiftySix($of) => $do,
            AnySize::Full($of) => $do,
        }
    };
}

impl<'g, C: Content + 'static> AnySize<'g, C>
where
    C::Atomic: Send,
{
    /// Which of the sixteen bytes from a multiple of sixteen on have something, if the node has a
    /// place for each byte.
    #[inline(always)]
    pub(in super::super) fn present(self, from: usize) -> Option<u16> {
        let Self::Full(node) = self else { return None };
        Some(node.present(from))
    }

    #[inline(always)]
    pub(in super::super) fn header(self) -> &'g Header {
        each!(self, node => node.header())
    }
    /// The place of a digit, if it has one.
    #[inline(always)]
    pub(in super::super) fn find(self, digit: Digit) -> Option<&'g C::Atomic> {
        each!(self, node => node.find(digit))
    }
    /// The content of a digit's place.
    #[inline(always)]
    pub(in super::super) fn at(self, digit: Digit) -> C {
        self.find(digit).map_or(C::EMPTY, C::load)
    }
    /// The digits that may have a place that is not empty.
    pub(in super::super) fn digits(self) -> Digits {
        each!(self, node => node.digits())
    }
    /// The contents of all places that are not empty, ascending by digit.
    pub(in super::super) fn all(self) -> impl Iterator<Item = (Digit, C)> + use<'g, C> {
        let (digits, mut from) = (self.digits(), 0);
        let all = std::iter::from_fn(move || {
            let digit = digits.first_from(from)?;
            from = number(digit) + 1;
            Some((digit, self.at(digit)))
        });
        all.filter(|(_, content)| *content != C::EMPTY)
    }
    /// Fills the place of a digit that has nothing. Returns false if no place is left. The caller
    /// holds the lock.
    pub(in super::super) fn put(self, digit: Digit, content: C) -> bool {
        let Some(place) = self.find(digit) else { return self.add(digit, content) };
        content.store(place);
        self.came(digit);
        true
    }
    /// Gives a place to a digit that has none. Returns false if no place is left. The caller holds
    /// the lock.
    pub(in super::super) fn add(self, digit: Digit, content: C) -> bool {
        let added = each!(self, node => node.add::<true>(digit, content));
        if added {
            self.came(digit);
        }
        added
    }
    /// Counts a place that has been filled. The caller holds the lock.
    #[inline]
    pub(in super::super) fn came(self, digit: Digit) {
        self.count(digit, 1);
    }
    /// Counts a place that has been emptied. The caller holds the lock.
    #[inline]
    pub(in super::super) fn went(self, digit: Digit) {
        self.count(digit, -1);
    }
    #[inline]
    fn count(self, digit: Digit, change: isize) {
        if let (Self::Full(node), Some(byte)) = (self, digit) {
            node.note(byte, change > 0);
        }
        self.header().count(change);
    }
    /// Empties the place of a digit that has something. The caller holds the lock.
    pub(in super::super) fn take(self, digit: Digit) {
        if let Some(place) = self.find(digit) {
            self.went(digit);
            C::EMPTY.store(place);
        }
    }
    /// Replaces the content of a digit's place. The caller holds the lock.
    pub(in super::super) fn replace(self, digit: Digit, content: C) {
        if let Some(place) = self.find(digit) {
            content.store(place);
        }
    }
}

/// A node whose places hold words or values.
#[derive(Clone, Copy)]
pub(in super::super) enum NodeRef<'g> {
    Words(AnySize<'g, Word>),
    Values(AnySize<'g, u64>),
}

/// The place that a search comes to in a node, if the node has one for the digit.
pub(in super::super) enum AnyPlace<'g> {
    Word(Option<&'g <Word as Content>::Atomic>),
    Value(Option<&'g <u64 as Content>::Atomic>),
}

/// The place of a digit in the node that a word leads to. Every step of a search calls this, so it
/// has one branch.
///
/// # Safety
/// The word leads to a node, not to a leaf, and the node is not reclaimed during `'g`.
#[inline(always)]
pub(in super::super) unsafe fn place<'g>(word: Word, digit: Digit) -> AnyPlace<'g> {
    use AnyPlace::{Value, Word};
    type W = crate::art::word::Word;
    let object = touch(word.node_object());
    // SAFETY: I7: the node is of the word's kind. It is not reclaimed (our contract).
    unsafe {
        match word.kind() {
            Kind::Leaf | Kind::Node4 => Word((*object.cast::<Node4<W>>()).find(digit)),
            Kind::Node14 => Word((*object.cast::<Node14<W>>()).find(digit)),
            Kind::Node56 => Word((*object.cast::<Node56<W>>()).find(digit)),
            Kind::Node256 => Word((*object.cast::<Node256<W>>()).find(digit)),
            Kind::Values14 => Value((*object.cast::<Node14<u64>>()).find(digit)),
            Kind::Values56 => Value((*object.cast::<Node56<u64>>()).find(digit)),
            Kind::Values256 => Value((*object.cast::<Node256<u64>>()).find(digit)),
        }
    }
}

/// The node that a word of kind `Node256` leads to.
///
/// # Safety
/// The word's kind is `Node256`, and its node is not reclaimed during `'g`.
#[inline(always)]
pub(in super::super) unsafe fn full<'g>(word: Word) -> &'g Node256<Word> {
    debug_assert!(word.kind() == Kind::Node256);
    // SAFETY: I7: the word leads to a node of its kind, which is not reclaimed (our contract).
    unsafe { &*touch(word.node_object()).cast() }
}

/// The header of the node that a word leads to.
///
/// # Safety
/// The word leads to a node, not to a leaf, and the node is not reclaimed during `'g`.
#[inline(always)]
pub(in super::super) unsafe fn header<'g>(word: Word) -> &'g Header {
    // SAFETY: a node of any kind begins with a header (`repr(C)`), and it is not reclaimed (our
    // contract).
    unsafe { &*touch(word.node_object()).cast() }
}

impl<'g> NodeRef<'g> {
    /// # Safety
    /// The word leads to a node, not to a leaf, and the node is not reclaimed during `'g`.
    #[inline(always)]
    pub(in super::super) unsafe fn from_word(word: Word) -> Self {
        let object = touch(word.node_object());
        // SAFETY: I7: the node is of the word's kind. It is not reclaimed (our contract).
        unsafe {
            match word.kind() {
                Kind::Leaf | Kind::Node4 => Self::Words(AnySize::Four(&*object.cast())),
                Kind::Node14 => Self::Words(AnySize::Fourteen(&*object.cast())),
                Kind::Node56 => Self::Words(AnySize::FiftySix(&*object.cast())),
                Kind::Node256 => Self::Words(AnySize::Full(&*object.cast())),
                Kind::Values14 => Self::Values(AnySize::Fourteen(&*object.cast())),
                Kind::Values56 => Self::Values(AnySize::FiftySix(&*object.cast())),
                Kind::Values256 => Self::Values(AnySize::Full(&*object.cast())),
            }
        }
    }

    pub(in super::super) fn digits(self) -> Digits {
        match self {
            Self::Words(node) => node.digits(),
            Self::Values(node) => node.digits(),
        }
    }

    #[inline(always)]
    pub(in super::super) fn header(self) -> &'g Header {
        match self {
            Self::Words(node) => node.header(),
            Self::Values(node) => node.header(),
        }
    }
}

/// A node on a path, with the word that led to it.
#[derive(Clone, Copy)]
pub(in super::super) struct Visit<'g> {
    pub(in super::super) node: NodeRef<'g>,
    pub(in super::super) word: Word,
}

impl<'g> Visit<'g> {
    /// # Safety
    /// The word leads to a node, not to a leaf, and the node is not reclaimed during `'g`.
    #[inline(always)]
    pub(in super::super) unsafe fn of(word: Word) -> Self {
        // SAFETY: our contract is that of `NodeRef::from_word`.
        Self { node: unsafe { NodeRef::from_word(word) }, word }
    }

    #[inline(always)]
    pub(in super::super) fn depth(self) -> usize {
        self.word.depth()
    }

    /// The depth of a node in a tree of keys `K`: one step from the word if keys are integers.
    #[inline(always)]
    pub(in super::super) fn depth_for<K: DigitKey + ?Sized>(self) -> usize {
        self.word.depth_for::<K, true>()
    }

    #[inline(always)]
    pub(in super::super) fn header(self) -> &'g Header {
        self.node.header()
    }
}

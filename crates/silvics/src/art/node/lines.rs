//! Nodes whose places lie in lines with their keys: `Node4`, `Node14` and `Node56`.

use super::keys::{IN_WORD, Keys};
use super::{Header, Node};
use crate::art::digits::Digits;
use crate::art::key::Digit;
use crate::art::word::{Content, Kind, Word};
use silvics_sync::model::touch;
use std::array;
use std::mem::offset_of;

/// A node of four places, in one line.
#[repr(C, align(64))]
pub(in super::super) struct Node4<C: Content> {
    header: Header,
    pub(super) keys: Keys,
    pub(super) places: [C::Atomic; 4],
}

impl<C: Content + 'static> Node<C> for Node4<C>
where
    C::Atomic: Send,
{
    const LIMIT: usize = 4;

    fn new(prefix: u64) -> Self {
        let places = array::from_fn(|_| C::EMPTY.place());
        Self { header: Header::new(prefix), keys: Keys::new(), places }
    }
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.header
    }
    #[inline(always)]
    fn find(&self, digit: Digit) -> Option<&C::Atomic> {
        self.keys.place(digit, &self.places)
    }
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool {
        let add = || self.keys.add::<C, SHARED>(digit, content, &self.places);
        self.header.use_another(Self::LIMIT, add)
    }
    fn digits(&self) -> Digits {
        let mut digits = Digits::default();
        self.keys.load().add_to(&mut digits);
        digits
    }
}

impl Node4<Word> {
    /// Calls `call` with each child and the number of its digit, in no order.
    #[inline(always)]
    pub(in super::super) fn each_child(&self, mut call: impl FnMut(u16, Word)) {
        self.keys.load().each(self.places.len(), |number, place| {
            let word = Word::load(&self.places[place]);
            if !word.is_none() {
                call(number, word);
            }
        });
    }
}

/// The node that a word of kind `Node4` leads to.
///
/// # Safety
/// The word's kind is `Node4`, and its node is not reclaimed during `'g`.
#[inline(always)]
pub(in super::super) unsafe fn four<'g>(word: Word) -> &'g Node4<Word> {
    debug_assert!(word.kind() == Kind::Node4);
    // SAFETY: I7: the word leads to a node of its kind, which is not reclaimed (our contract).
    unsafe { &*touch(word.node_object()).cast() }
}

/// A line with some of the places of a larger node, and their keys.
#[repr(C, align(64))]
struct Line<C: Content> {
    keys: Keys,
    places: [C::Atomic; IN_WORD],
}

/// A node whose places are in `L` lines, a power of two.
///
/// The place of a byte is in the line that [`Lines::line`] says, or if that is full in one of the
/// next. So a search usually reads one line. The place of the end is in the first line.
#[repr(C)]
pub(in super::super) struct Lines<C: Content, const L: usize> {
    header: Header,
    lines: [Line<C>; L],
}

impl<C: Content, const L: usize> Lines<C, L> {
    /// The offset of the first line.
    pub(super) const OFFSET: usize = offset_of!(Self, lines);

    /// The number of a byte's line. Neighbours have different ones, as have the multiples of a
    /// power of two.
    #[inline(always)]
    pub(super) const fn line(byte: u8) -> usize {
        (byte ^ byte >> 4) as usize % L
    }
}

impl<C: Content + 'static, const L: usize> Node<C> for Lines<C, L>
where
    C::Atomic: Send,
{
    /// A node of two lines uses all places. A larger one uses six places of each line on average,
    /// so that few lines are full.
    const LIMIT: usize = if L <= 2 { IN_WORD * L } else { 6 * L };

    fn new(prefix: u64) -> Self {
        let places = || array::from_fn(|_| C::EMPTY.place());
        let lines = array::from_fn(|_| Line { keys: Keys::new(), places: places() });
        Self { header: Header::new(prefix), lines }
    }
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.header
    }
    #[inline(always)]
    fn find(&self, digit: Digit) -> Option<&C::Atomic> {
        let Some(byte) = digit else {
            let line = &self.lines[0];
            return line.keys.place(None, &line.places);
        };
        let first = Self::line(byte);
        for step in 0..L {
            let line = &self.lines[(first + step) % L];
            let held = line.keys.load();
            if let Some(place) = held.place(byte, &line.places) {
                return Some(place);
            }
            if !held.fills(IN_WORD) {
                break;
            }
        }
        None
    }
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool {
        self.header.use_another(Self::LIMIT, || {
            let Some(byte) = digit else {
                return self.lines[0].keys.add::<C, SHARED>(None, content, &self.lines[0].places);
            };
            let first = Self::line(byte);
            let mut lines = (first..first + L).map(|line| &self.lines[line % L]);
            lines.any(|line| line.keys.add::<C, SHARED>(digit, content, &line.places))
        })
    }
    fn digits(&self) -> Digits {
        let mut digits = Digits::default();
        self.lines.iter().for_each(|line| line.keys.load().add_to(&mut digits));
        digits
    }
}

/// A node of two lines of places.
pub(in super::super) type Node14<C> = Lines<C, 2>;
/// A node of eight lines of places.
pub(in super::super) type Node56<C> = Lines<C, 8>;

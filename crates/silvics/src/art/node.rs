//! Nodes of the four sizes, over what their places hold.

use super::digits::{Digits, number};
use super::key::Digit;
use super::key_bytes::{IN_WORD, Keys};
use super::word::{Content, Kind, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::version::VersionLock;
use std::array;
use std::mem::offset_of;

/// The depth of the last byte of a `u64`, whose nodes hold values.
pub(super) const LAST: usize = 7;

/// What every node begins with.
#[repr(C)]
pub(super) struct Header {
    pub(super) lock: VersionLock,
    /// What all keys below have before the node's depth, as far as a word holds it: see `Parts::before`.
    pub(super) prefix: u64,
    /// Places that are not empty; under the lock.
    live: AtomicU32,
    /// Places that belong to a digit; under the lock. Of no meaning in a `Node256`.
    used: AtomicU32,
}

impl Header {
    fn new(prefix: u64) -> Self {
        Self { lock: VersionLock::new(), prefix, live: AtomicU32::new(0), used: AtomicU32::new(0) }
    }

    /// Under the lock: so many places are not empty.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed) as usize
    }

    /// Under the lock.
    pub(super) fn count(&self, change: isize) {
        let live = self.live().wrapping_add_signed(change);
        self.live.store(live as u32, Ordering::Relaxed);
    }

    /// Under the lock.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) as usize
    }

    /// Under the lock: `add` gives a place to a digit, unless so many have one.
    fn use_another(&self, limit: usize, add: impl FnOnce() -> bool) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let added = (used as usize) < limit && add();
        if added {
            self.used.store(used + 1, Ordering::Relaxed);
        }
        added
    }
}

/// A node of one of the sizes.
pub(super) trait Node<C: Content>: Sized + Send + 'static {
    fn new(prefix: u64) -> Self;
    fn header(&self) -> &Header;
    /// The place of a digit, if it has one.
    fn find(&self, digit: Digit) -> Option<&C::Atomic>;
    /// Gives a place to a digit that has none, under the lock, or unless `SHARED` before the node is linked;
    /// false if there are no more.
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool;
    /// The digits that may have a place that is not empty.
    fn digits(&self) -> Digits;
}

/// A node of four places: a line.
#[repr(C, align(64))]
pub(super) struct Node4<C: Content> {
    header: Header,
    keys: Keys,
    places: [C::Atomic; 4],
}

impl<C: Content + 'static> Node<C> for Node4<C>
where
    C::Atomic: Send,
{
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
        self.header.use_another(4, || self.keys.add::<C, SHARED>(digit, content, &self.places))
    }
    fn digits(&self) -> Digits {
        let mut digits = Digits::default();
        self.keys.load().add_to(&mut digits);
        digits
    }
}

impl Node4<Word> {
    /// All children, each with the number of its digit, in no order.
    #[inline(always)]
    pub(super) fn each_child(&self, mut call: impl FnMut(u16, Word)) {
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
/// As for [`NodeRef::from_word`].
#[inline(always)]
pub(super) unsafe fn four<'g>(word: Word) -> &'g Node4<Word> {
    debug_assert!(word.kind() == Kind::Node4);
    // SAFETY: the caller's promise.
    unsafe { &*touch(word.object()).cast() }
}

/// Bytes of a line.
pub(super) const LINE: usize = 64;

/// Some of the places of a larger node, with their keys: a line.
#[repr(C, align(64))]
struct Line<C: Content> {
    keys: Keys,
    places: [C::Atomic; IN_WORD],
}

/// A node whose places are in `L` lines, a power of two. A byte's place is in the line of its number, or
/// if that is full in one of the next: so a search reads one line, mostly. The end's is in the first.
#[repr(C)]
pub(super) struct Lines<C: Content, const L: usize> {
    header: Header,
    lines: [Line<C>; L],
}

/// Of two lines all places are used; of more so many as leave few lines full.
const fn limit(lines: usize) -> usize {
    if lines <= 2 { IN_WORD * lines } else { 6 * lines }
}

impl<C: Content, const L: usize> Lines<C, L> {
    /// The number of a byte's line: neighbours have different ones, as have multiples of a power of two.
    #[inline(always)]
    const fn line(byte: u8) -> usize {
        (byte ^ byte >> 4) as usize % L
    }
}

impl<C: Content + 'static, const L: usize> Node<C> for Lines<C, L>
where
    C::Atomic: Send,
{
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
        self.header.use_another(limit(L), || {
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
pub(super) type Node14<C> = Lines<C, 2>;
/// A node of eight.
pub(super) type Node56<C> = Lines<C, 8>;

/// A node with a place for each byte, from the second line on.
#[repr(C, align(64))]
pub(super) struct Node256<C: Content> {
    header: Header,
    end: C::Atomic,
    /// A bit for each byte: whether its place is not empty. Under the lock.
    held: [AtomicU64; 4],
    places: [C::Atomic; 256],
}

impl<C: Content> Node256<C> {
    /// The places of all bytes.
    #[inline(always)]
    pub(super) fn places(&self) -> &[C::Atomic; 256] {
        &self.places
    }

    #[inline(always)]
    pub(super) fn prefix(&self) -> u64 {
        self.header.prefix
    }

    /// Whether the place of a byte is not empty, told by the line of the lock: under the lock it is so, else
    /// it was at some time.
    #[inline(always)]
    pub(super) fn holds(&self, byte: u8) -> bool {
        self.held[usize::from(byte / 64)].load(Ordering::Relaxed) >> (byte % 64) & 1 != 0
    }

    /// Under the lock, or before the node is linked: the place of a byte is empty now, or is not.
    #[inline]
    fn note(&self, byte: u8, holds: bool) {
        let word = &self.held[usize::from(byte / 64)];
        let others = word.load(Ordering::Relaxed) & !(1 << (byte % 64));
        word.store(others | u64::from(holds) << (byte % 64), Ordering::Relaxed);
    }
}

impl<C: Content + 'static> Node<C> for Node256<C>
where
    C::Atomic: Send,
{
    fn new(prefix: u64) -> Self {
        let places = array::from_fn(|_| C::EMPTY.place());
        let held = array::from_fn(|_| AtomicU64::new(0));
        Self { header: Header::new(prefix), end: C::EMPTY.place(), held, places }
    }
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.header
    }
    #[inline(always)]
    fn find(&self, digit: Digit) -> Option<&C::Atomic> {
        Some(digit.map_or(&self.end, |byte| &self.places[usize::from(byte)]))
    }
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool {
        let store = if SHARED { C::store } else { C::store_unshared };
        if let Some(byte) = digit {
            self.note(byte, true);
        }
        self.find(digit).map(|place| store(content, place)).is_some()
    }
    fn digits(&self) -> Digits {
        Digits::all(C::load(&self.end) != C::EMPTY)
    }
}

/// Where in a node of a kind the line is that a search for a digit reads, mostly.
#[inline(always)]
pub(super) fn line_of(kind: Kind, digit: Digit) -> usize {
    let byte = digit.unwrap_or(0);
    match kind {
        Kind::Leaf | Kind::Node4 => 0,
        Kind::Node14 | Kind::Values14 => LINE * (1 + Node14::<Word>::line(byte)),
        Kind::Node56 | Kind::Values56 => LINE * (1 + Node56::<Word>::line(byte)),
        Kind::Node256 | Kind::Values256 => LINE + 8 * usize::from(byte),
    }
}

/// A node that is not reclaimed as long as `'g` lasts.
#[derive(Clone, Copy)]
pub(super) enum AnySize<'g, C: Content> {
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
    /// Which of the sixteen bytes from a multiple of sixteen on have something, of a node with a place for
    /// each byte. Without a branch: what is there is nothing that a processor can guess.
    #[inline(always)]
    pub(super) fn present(self, from: usize) -> Option<u16> {
        let Self::Full(node) = self else { return None };
        let places = node.places[from..from + 16].iter().enumerate();
        Some(places.fold(0, |set, (at, place)| set | u16::from(C::load(place) != C::EMPTY) << at))
    }

    #[inline(always)]
    pub(super) fn header(self) -> &'g Header {
        each!(self, node => node.header())
    }
    #[inline(always)]
    pub(super) fn find(self, digit: Digit) -> Option<&'g C::Atomic> {
        each!(self, node => node.find(digit))
    }
    /// What is at the place of a digit.
    #[inline(always)]
    pub(super) fn at(self, digit: Digit) -> C {
        self.find(digit).map_or(C::EMPTY, C::load)
    }
    /// The digits that may have a place that is not empty.
    pub(super) fn digits(self) -> Digits {
        each!(self, node => node.digits())
    }
    /// All that is there, ascending.
    pub(super) fn all(self) -> impl Iterator<Item = (Digit, C)> + use<'g, C> {
        let (digits, mut from) = (self.digits(), 0);
        let all = std::iter::from_fn(move || {
            let digit = digits.first_from(from)?;
            from = number(digit) + 1;
            Some((digit, self.at(digit)))
        });
        all.filter(|(_, content)| *content != C::EMPTY)
    }
    /// Under the lock: puts something at a digit, where there is nothing; false if there is no place left.
    pub(super) fn put(self, digit: Digit, content: C) -> bool {
        let Some(place) = self.find(digit) else { return self.add(digit, content) };
        content.store(place);
        self.came(digit);
        true
    }
    /// The same, at a digit that has no place yet.
    pub(super) fn add(self, digit: Digit, content: C) -> bool {
        let added = each!(self, node => node.add::<true>(digit, content));
        if added {
            self.came(digit);
        }
        added
    }
    /// Under the lock: something has come to an empty place.
    #[inline]
    pub(super) fn came(self, digit: Digit) {
        self.count(digit, 1);
    }
    /// Under the lock: a place has been emptied.
    #[inline]
    pub(super) fn went(self, digit: Digit) {
        self.count(digit, -1);
    }
    #[inline]
    fn count(self, digit: Digit, change: isize) {
        if let (Self::Full(node), Some(byte)) = (self, digit) {
            node.note(byte, change > 0);
        }
        self.header().count(change);
    }
    /// Under the lock: empties the place of a digit, where there is something.
    pub(super) fn take(self, digit: Digit) {
        if let Some(place) = self.find(digit) {
            self.went(digit);
            C::EMPTY.store(place);
        }
    }
    /// Under the lock: puts something in the place of something else.
    pub(super) fn replace(self, digit: Digit, content: C) {
        if let Some(place) = self.find(digit) {
            content.store(place);
        }
    }
}

/// A node of either sort.
#[derive(Clone, Copy)]
pub(super) enum NodeRef<'g> {
    Words(AnySize<'g, Word>),
    Values(AnySize<'g, u64>),
}

/// The place that a search comes to in a node, if there is one.
pub(super) enum Place<'g> {
    Word(Option<&'g <Word as Content>::Atomic>),
    Value(Option<&'g <u64 as Content>::Atomic>),
}

/// The place of a digit in the node that a word leads to: what a search does at each step, in one branch.
///
/// # Safety
/// As for [`NodeRef::from_word`].
#[inline(always)]
pub(super) unsafe fn place<'g>(word: Word, digit: Digit) -> Place<'g> {
    let object = touch(word.object());
    // SAFETY: the kind is that of the object (the caller's promise).
    unsafe {
        match word.kind() {
            Kind::Leaf | Kind::Node4 => Place::Word((*object.cast::<Node4<Word>>()).find(digit)),
            Kind::Node14 => Place::Word((*object.cast::<Node14<Word>>()).find(digit)),
            Kind::Node56 => Place::Word((*object.cast::<Node56<Word>>()).find(digit)),
            Kind::Node256 => Place::Word((*object.cast::<Node256<Word>>()).find(digit)),
            Kind::Values14 => Place::Value((*object.cast::<Node14<u64>>()).find(digit)),
            Kind::Values56 => Place::Value((*object.cast::<Node56<u64>>()).find(digit)),
            Kind::Values256 => Place::Value((*object.cast::<Node256<u64>>()).find(digit)),
        }
    }
}

/// The node that a word of kind `Node256` leads to.
///
/// # Safety
/// As for [`NodeRef::from_word`].
#[inline(always)]
pub(super) unsafe fn full<'g>(word: Word) -> &'g Node256<Word> {
    debug_assert!(word.kind() == Kind::Node256);
    // SAFETY: the caller's promise.
    unsafe { &*touch(word.object()).cast() }
}

/// What the node begins with that a word leads to.
///
/// # Safety
/// As for [`NodeRef::from_word`].
#[inline(always)]
pub(super) unsafe fn header<'g>(word: Word) -> &'g Header {
    // SAFETY: every node begins with one.
    unsafe { &*touch(word.object()).cast() }
}

impl<'g> NodeRef<'g> {
    /// # Safety
    /// The word leads to a node, not to a leaf, which is not reclaimed as long as `'g` lasts.
    #[inline(always)]
    pub(super) unsafe fn from_word(word: Word) -> Self {
        let object = touch(word.object());
        // SAFETY: the kind is that of the object (the caller's promise).
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

    pub(super) fn digits(self) -> Digits {
        match self {
            Self::Words(node) => node.digits(),
            Self::Values(node) => node.digits(),
        }
    }

    #[inline(always)]
    pub(super) fn header(self) -> &'g Header {
        match self {
            Self::Words(node) => node.header(),
            Self::Values(node) => node.header(),
        }
    }
}

const fn layout<N>(kind: &'static str, search: &'static [Field]) -> NodeLayout {
    NodeLayout { kind, size: size_of::<N>(), align: align_of::<N>(), search, found: &[] }
}

/// Where a node remembers its prefix.
pub(super) const PREFIX: usize = offset_of!(Header, prefix);

const FOUR: &[Field] = &[
    Field::new("keys", offset_of!(Node4<Word>, keys), 8),
    Field::links("places", offset_of!(Node4<Word>, places), 4),
];
/// Of a node of lines a search reads one: here the first.
const ONE_LINE: &[Field] = &[
    Field::new("keys", offset_of!(Node14<Word>, lines), 8),
    Field::links("places", offset_of!(Node14<Word>, lines) + 8, IN_WORD),
];
const PLACES: &[Field] = &[Field::links("places", offset_of!(Node256<Word>, places), 256)];

/// The layouts of nodes, in the order of [`Kind`].
pub(super) const NODES: [NodeLayout; 7] = [
    layout::<Node4<Word>>("node4", FOUR),
    layout::<Node14<Word>>("node14", ONE_LINE),
    layout::<Node56<Word>>("node56", ONE_LINE),
    layout::<Node256<Word>>("node256", PLACES),
    layout::<Node14<u64>>("values14", ONE_LINE),
    layout::<Node56<u64>>("values56", ONE_LINE),
    layout::<Node256<u64>>("values256", PLACES),
];

#[cfg(not(silvics_loom))] // whose atomics are larger
const _: () = {
    assert!(size_of::<Node4<Word>>() == 64);
    assert!(size_of::<Node14<Word>>() == 3 * 64);
    assert!(size_of::<Node56<Word>>() == 9 * 64);
    assert!(size_of::<Node256<Word>>() == 33 * 64);
};

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    /// Every order of digits finds its places, up to the node's limit.
    fn takes_any_digits<N: Node<u64>>(most: usize) {
        for step in [1_u8, 3, 16, 17, 64, 85, 255] {
            for end in [0, most / 2, most] {
                let node = N::new(0);
                let mut taken = Vec::new();
                let mut byte = 7_u8;
                let take = |digit: Digit, taken: &mut Vec<Digit>| {
                    let added =
                        node.find(digit).is_none() && node.add::<true>(digit, number(digit) as u64);
                    taken.extend(added.then_some(digit));
                    added
                };
                while taken.len() < most {
                    // A full first line has no place for the end.
                    if taken.len() == end && !taken.contains(&None) && take(None, &mut taken) {
                        continue;
                    }
                    if !take(Some(byte), &mut taken) {
                        byte = byte.wrapping_add(1);
                    }
                    byte = byte.wrapping_add(step);
                }
                let more = (0..=255).find(|byte| node.find(Some(*byte)).is_none()).unwrap();
                assert!(!node.add::<true>(Some(more), 1));
                for digit in (0..=255).map(Some).chain([None]) {
                    let found = node.find(digit).map(u64::load);
                    let wanted = taken.contains(&digit).then_some(number(digit) as u64);
                    assert_eq!(found, wanted, "{digit:?} of {taken:?}");
                }
                assert!(end > 0 || taken[0].is_none());
            }
        }
    }

    #[test]
    fn nodes_take_any_digits() {
        takes_any_digits::<Node4<u64>>(4);
        takes_any_digits::<Node14<u64>>(limit(2));
        takes_any_digits::<Node56<u64>>(limit(8));
    }
}

//! Nodes of the four sizes, over what their places hold.

use super::word::{Content, Kind, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::version::VersionLock;
use std::array;
use std::mem::offset_of;

/// The byte of a key at a depth.
#[inline(always)]
pub(super) fn byte_at(key: u64, depth: usize) -> u8 {
    (key >> (56 - 8 * depth)) as u8
}

/// Whether two keys agree in the bytes before a depth of at least 1.
#[inline(always)]
pub(super) fn agree(a: u64, b: u64, depth: usize) -> bool {
    (a ^ b) >> (64 - 8 * depth) == 0
}

/// The first byte in which two different keys differ.
pub(super) fn parting(a: u64, b: u64) -> usize {
    ((a ^ b).leading_zeros() / 8) as usize
}

/// The depth at which a key's last byte is.
pub(super) const LAST: usize = 7;

/// What every node begins with.
#[repr(C)]
pub(super) struct Header {
    pub(super) lock: VersionLock,
    /// A key with the bytes that all keys below have before the node's depth, and zeros behind.
    pub(super) prefix: u64,
    /// Places that are not empty; under the lock.
    live: AtomicU32,
    /// Places with a key byte; under the lock. Of no meaning in a `Node256`.
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

    /// Under the lock: one more place has a key, unless all `limit` have.
    fn use_another(&self, limit: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let left = (used as usize) < limit;
        if left {
            self.used.store(used + 1, Ordering::Relaxed);
        }
        left
    }
}

/// A set of bytes.
pub(super) type Bytes = [u64; 4];

fn add_byte(bytes: &mut Bytes, byte: u8) {
    bytes[usize::from(byte / 64)] |= 1 << (byte % 64);
}

/// The first byte of a set from `from` on.
#[inline(always)]
pub(super) fn first_from(bytes: &Bytes, from: usize) -> Option<u8> {
    let mut at = from / 64;
    let mut word = bytes.get(at)? & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = *bytes.get(at)?;
    }
    Some((64 * at) as u8 + word.trailing_zeros() as u8)
}

/// The last byte of a set before `to`.
#[inline(always)]
pub(super) fn last_before(bytes: &Bytes, to: usize) -> Option<u8> {
    let last = to.checked_sub(1)?;
    let mut at = last / 64;
    let mut word = bytes[at] & (u64::MAX >> (63 - last % 64));
    while word == 0 {
        at = at.checked_sub(1)?;
        word = bytes[at];
    }
    Some((64 * at) as u8 + 63 - word.leading_zeros() as u8)
}

/// A node of one of the sizes.
pub(super) trait Node<C: Content>: Sized + Send + 'static {
    fn new(prefix: u64) -> Self;
    fn header(&self) -> &Header;
    /// The place of a byte, if it has one.
    fn find(&self, byte: u8) -> Option<&C::Atomic>;
    /// Gives a place to a byte that has none, under the lock or before the node is linked; false if there
    /// are no more.
    fn add(&self, byte: u8, content: C) -> bool;
    /// The bytes that may have a place that is not empty.
    fn bytes(&self) -> Bytes;
}

/// The key bytes of up to seven places in a word, the first place's lowest, and above them how many
/// there are: one load tells both.
struct Keys(AtomicU64);

/// What such a word holds.
#[derive(Clone, Copy)]
struct Held(u64);

impl Held {
    #[inline(always)]
    fn len(self) -> usize {
        (self.0 >> 56) as usize
    }

    /// The place of a byte.
    #[inline(always)]
    fn find(self, byte: u8) -> Option<usize> {
        const LOW: u64 = 0x0101_0101_0101_0101;
        // A zero byte borrows; what is above it may be wrong, and the lowest is right (Warren, "Hacker's
        // delight", section 6-1).
        let different = self.0 ^ (LOW * u64::from(byte));
        let zeros = different.wrapping_sub(LOW) & !different & (LOW << 7);
        let at = (zeros.trailing_zeros() / 8) as usize;
        // What is no key has the number of a place that is not used.
        (at < self.len()).then_some(at)
    }

    fn with(self, byte: u8) -> Self {
        Self((self.0 | u64::from(byte) << (8 * self.len())) + (1 << 56))
    }

    fn add_to(self, bytes: &mut Bytes) {
        (0..self.len()).for_each(|at| add_byte(bytes, (self.0 >> (8 * at)) as u8));
    }
}

impl Keys {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline(always)]
    fn load(&self) -> Held {
        Held(self.0.load(Ordering::SeqCst))
    }

    /// Under the lock.
    fn store(&self, held: Held) {
        self.0.store(held.0, Ordering::SeqCst);
    }
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
    fn find(&self, byte: u8) -> Option<&C::Atomic> {
        self.places.get(self.keys.load().find(byte)?)
    }
    fn add(&self, byte: u8, content: C) -> bool {
        if !self.header.use_another(4) {
            return false;
        }
        let held = self.keys.load();
        content.store_unshared(&self.places[held.len()]);
        self.header.count(1);
        self.keys.store(held.with(byte));
        true
    }
    fn bytes(&self) -> Bytes {
        let mut bytes = [0; 4];
        self.keys.load().add_to(&mut bytes);
        bytes
    }
}

/// Bytes of a line, and its places.
pub(super) const LINE: usize = 64;
const IN_LINE: usize = 7;

/// Some of the places of a larger node, with their keys: a line.
#[repr(C, align(64))]
struct Line<C: Content> {
    keys: Keys,
    places: [C::Atomic; IN_LINE],
}

/// A node whose places are in `L` lines, a power of two. A byte's place is in the line of its number, or
/// if that is full in one of the next: so a search reads one line, mostly.
#[repr(C)]
pub(super) struct Lines<C: Content, const L: usize> {
    header: Header,
    lines: [Line<C>; L],
}

/// Of two lines all places are used; of more so many as leave few lines full.
const fn limit(lines: usize) -> usize {
    if lines <= 2 { IN_LINE * lines } else { 6 * lines }
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
    fn find(&self, byte: u8) -> Option<&C::Atomic> {
        let first = Self::line(byte);
        for step in 0..L {
            let line = &self.lines[(first + step) % L];
            let held = line.keys.load();
            if let Some(at) = held.find(byte) {
                return line.places.get(at);
            }
            if held.len() < IN_LINE {
                break;
            }
        }
        None
    }
    fn add(&self, byte: u8, content: C) -> bool {
        if !self.header.use_another(limit(L)) {
            return false;
        }
        let first = Self::line(byte);
        let lines = (first..first + L).map(|line| &self.lines[line % L]);
        for line in lines {
            let held = line.keys.load();
            if let Some(place) = line.places.get(held.len()) {
                content.store_unshared(place);
                self.header.count(1);
                line.keys.store(held.with(byte));
                return true;
            }
        }
        false
    }
    fn bytes(&self) -> Bytes {
        let mut bytes = [0; 4];
        self.lines.iter().for_each(|line| line.keys.load().add_to(&mut bytes));
        bytes
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
    /// Up to the second line.
    _pad: [u8; 40],
    places: [C::Atomic; 256],
}

impl<C: Content + 'static> Node<C> for Node256<C>
where
    C::Atomic: Send,
{
    fn new(prefix: u64) -> Self {
        let places = array::from_fn(|_| C::EMPTY.place());
        Self { header: Header::new(prefix), _pad: [0; 40], places }
    }
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.header
    }
    #[inline(always)]
    fn find(&self, byte: u8) -> Option<&C::Atomic> {
        Some(&self.places[usize::from(byte)])
    }
    fn add(&self, byte: u8, content: C) -> bool {
        self.header.count(1);
        content.store(&self.places[usize::from(byte)]);
        true
    }
    fn bytes(&self) -> Bytes {
        [u64::MAX; 4]
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
    #[inline(always)]
    pub(super) fn header(self) -> &'g Header {
        each!(self, node => node.header())
    }
    #[inline(always)]
    pub(super) fn find(self, byte: u8) -> Option<&'g C::Atomic> {
        each!(self, node => node.find(byte))
    }
    /// What is at the place of a byte.
    #[inline(always)]
    pub(super) fn at(self, byte: u8) -> C {
        self.find(byte).map_or(C::EMPTY, C::load)
    }
    /// The bytes that may have a place that is not empty.
    pub(super) fn bytes(self) -> Bytes {
        each!(self, node => node.bytes())
    }
    /// All that is there, ascending.
    pub(super) fn all(self) -> impl Iterator<Item = (u8, C)> + use<'g, C> {
        let (bytes, mut from) = (self.bytes(), 0);
        let all = std::iter::from_fn(move || {
            let byte = first_from(&bytes, from)?;
            from = usize::from(byte) + 1;
            Some((byte, self.at(byte)))
        });
        all.filter(|(_, content)| *content != C::EMPTY)
    }
    /// Under the lock: puts something at a byte, where there is nothing; false if there is no place left.
    pub(super) fn put(self, byte: u8, content: C) -> bool {
        let Some(place) = self.find(byte) else {
            return each!(self, node => node.add(byte, content));
        };
        self.header().count(1);
        content.store(place);
        true
    }
    /// Under the lock: empties the place of a byte, where there is something.
    pub(super) fn take(self, byte: u8) {
        if let Some(place) = self.find(byte) {
            self.header().count(-1);
            C::EMPTY.store(place);
        }
    }
    /// Under the lock: puts something in the place of something else.
    pub(super) fn replace(self, byte: u8, content: C) {
        if let Some(place) = self.find(byte) {
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

    pub(super) fn bytes(self) -> Bytes {
        match self {
            Self::Words(node) => node.bytes(),
            Self::Values(node) => node.bytes(),
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
    Field::links("places", offset_of!(Node14<Word>, lines) + 8, IN_LINE),
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

    #[test]
    fn bytes_are_found_in_words() {
        for len in 0..=IN_LINE {
            for byte in 0..=255_u8 {
                let others = (0..len).map(|at| byte.wrapping_add(1 + 31 * at as u8));
                let held = others.clone().fold(Held(0), Held::with);
                assert_eq!((held.len(), held.find(byte)), (len, None), "{others:?}");
                for place in 0..len {
                    let keys = others.clone().enumerate();
                    let keys = keys.map(|(at, other)| if at == place { byte } else { other });
                    assert_eq!(keys.fold(Held(0), Held::with).find(byte), Some(place));
                }
            }
        }
    }

    #[test]
    fn sets_of_bytes_are_walked_both_ways() {
        let mut bytes = [0; 4];
        for byte in [0, 63, 64, 200, 255] {
            add_byte(&mut bytes, byte);
        }
        let firsts = [0, 1, 64, 65, 201, 256].map(|from| first_from(&bytes, from));
        assert_eq!(firsts, [Some(0), Some(63), Some(64), Some(200), Some(255), None]);
        let lasts = [256, 255, 200, 64, 63, 0].map(|to| last_before(&bytes, to));
        assert_eq!(lasts, [Some(255), Some(200), Some(64), Some(63), Some(0), None]);
    }

    /// Every order of bytes finds its places, up to the node's limit.
    #[test]
    fn nodes_of_lines_take_any_bytes() {
        for step in [1_u8, 3, 16, 17, 64, 85, 255] {
            let node = Node56::<u64>::new(0);
            let mut keys = Vec::new();
            let mut byte = 7_u8;
            while keys.len() < limit(8) {
                if node.find(byte).is_none() {
                    assert!(node.add(byte, u64::from(byte)));
                    keys.push(byte);
                } else {
                    byte = byte.wrapping_add(1);
                }
                byte = byte.wrapping_add(step);
            }
            let more = (0..=255).find(|byte| node.find(*byte).is_none()).unwrap();
            assert!(!node.add(more, 1));
            for byte in 0..=255 {
                let found = node.find(byte).map(u64::load);
                assert_eq!(found, keys.contains(&byte).then_some(u64::from(byte)));
            }
        }
    }

    #[test]
    fn keys_part_where_they_differ() {
        assert_eq!(parting(0, 1), 7);
        assert_eq!(parting(0, u64::MAX), 0);
        assert!(agree(0x1234_0000_0000_0000, 0x12ff_0000_0000_0000, 1));
        assert!(!agree(0x1234_0000_0000_0000, 0x12ff_0000_0000_0000, 2));
        assert_eq!(byte_at(0x0102_0304_0506_0708, 3), 4);
    }
}

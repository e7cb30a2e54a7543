//! Blocks: entries of neighbouring keys, in groups of a cache line.
//!
//! # Layout
//! ```text
//! 0   lock
//! 8   the successor
//! 16  the entries in the order of their keys, as far as they are known: a byte each
//! 64  the groups. A group of 64-bit keys is a line of four keys and four values; one of 128-bit
//!     keys has two lines, with five low words, five high words and five values.
//! ```

use super::key::{Stored, WordKey};
use super::order::{NO_ORDER, ORDER_WORDS};
use super::value::{Marks, ValuePlace};
use super::word::{ALIGN, LINE, Place, Word};
use crate::canary::{Canary, planted};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

/// The most entries that a block is made with.
pub(super) const MAX_ENTRIES: usize = if cfg!(silvics_shuttle) { 3 } else { 48 };
/// The most places of a block.
pub(super) const MAX_PLACES: usize = 56;
/// The low word of a place that has no key yet.
const EMPTY: u64 = 0;
/// The low word of a place that has no key, and gets one only under the lock.
const CLOSED: u64 = 4;
/// The bit of a low word that says that the place has a key.
const KEY: u64 = 1;
/// The bit of a low word that says that a key which has passed the full group has chosen this place
/// by its hash. A search for a key whose place in a group has no such bit ends there.
const PASSED: u64 = 2;

/// A new block has room for this many more entries before it is crowded.
const MORE: usize = if cfg!(silvics_shuttle) { 1 } else { 2 };

/// At this number of groups from its own, and beyond, a key is not put into a crowded block.
const FAR: usize = 2;

/// The fields before the groups.
#[repr(C)]
pub(super) struct Head {
    lock: VersionLock,
    successor: Place,
    order: [AtomicU64; ORDER_WORDS],
}

/// The layout of the smallest block. Arrays of slots are of the same kind.
pub(super) const BLOCK: NodeLayout = NodeLayout {
    kind: "leaf",
    size: 2 * LINE,
    align: ALIGN,
    search: &[],
    found: &[Field::new("keys", LINE, 32), Field::new("values", LINE + 32, 32)],
};

/// The most groups of a block.
pub(super) const fn max_groups<K: WordKey>() -> usize {
    if cfg!(silvics_shuttle) { 2 } else { MAX_PLACES / K::PER_GROUP }
}

/// The least groups of a block of some entries that has room for a few more.
pub(super) fn exact_groups_for<K: WordKey>(entries: usize) -> usize {
    let most = max_groups::<K>();
    (1..most).find(|groups| crowded::<K>(*groups) >= entries + MORE).unwrap_or(most)
}

/// The groups of a block that is made with some entries and gets many more.
///
/// There are four sizes, so that a load copies each entry a few times only: a block of the largest
/// size that is split leaves two of the same size, and later blocks are put where such blocks were.
/// With a size between the two largest ones, a block has fewer bytes for each key; but a load
/// leaves free slots of both sizes behind, and the pool holds as much.
pub(super) fn groups_for<K: WordKey>(entries: usize) -> usize {
    const SIZES: [usize; 4] = [1, 3, 6, 14];
    const LARGEST: usize = SIZES[SIZES.len() - 1];
    let most = max_groups::<K>();
    let sizes = SIZES.iter().map(|size| (size * most).div_ceil(LARGEST));
    let mut fit = sizes.filter(|groups| crowded::<K>(*groups) >= entries + MORE);
    fit.next().unwrap_or(most)
}

/// The number of keys from which on a block is crowded.
fn crowded<K: WordKey>(groups: usize) -> usize {
    let places = groups * K::PER_GROUP;
    places - places / 8
}

/// The bytes of a block with the given number of groups.
pub(super) const fn bytes<K: WordKey>(groups: usize) -> usize {
    size_of::<Head>() + 8 * K::GROUP_WORDS * groups
}

/// A block that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(super) struct BlockRef<'g, K> {
    word: Word,
    marker: PhantomData<(&'g Head, K)>,
}

/// The outcome of a search for the place of a key.
#[derive(Clone, Copy)]
pub(super) enum Probe {
    /// The place has the key.
    At(usize),
    /// The place has no key, and is the given number of groups from the key's own.
    Free(usize, usize),
    /// All places have other keys.
    Full,
}

/// The outcome of an attempt to give a place to a key.
pub(super) enum Claim {
    /// The place has the key. It is the first word of the place.
    At(usize),
    /// The caller must have the lock.
    Closed,
    /// The block has no room.
    Full,
}

impl<'g, K: WordKey> BlockRef<'g, K> {
    /// # Safety
    /// The word leads to a block of such keys that is initialised and not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    /// Initialises a block without entries.
    ///
    /// # Safety
    /// `block` has `bytes(groups)` bytes, aligned to [`ALIGN`], which nobody else has.
    pub(super) unsafe fn init(block: NonNull<u8>, groups: usize, marks: Marks) {
        const { assert!(size_of::<Head>() == LINE || cfg!(any(silvics_loom, silvics_shuttle))) };
        let order = std::array::from_fn(|_| AtomicU64::new(0));
        let (lock, successor) = (VersionLock::new(), Place::new(Word::NONE));
        // SAFETY: our contract: there is room for the head and the groups.
        unsafe {
            block.cast::<Head>().write(Head { lock, successor, order });
            let words = block.byte_add(size_of::<Head>()).cast::<AtomicU64>();
            for group in 0..groups {
                for at in 0..K::GROUP_WORDS {
                    let is_value = at >= Self::VALUE;
                    let word = if is_value { marks.absent() } else { EMPTY };
                    words.add(K::GROUP_WORDS * group + at).write(AtomicU64::new(word));
                }
            }
        }
    }

    /// The distance from the low word of a key to its value.
    const VALUE: usize = K::WORDS * K::PER_GROUP;

    pub(super) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: I1: a block begins with its head, and is not reclaimed during `'g` (contract of
        // `new`).
        unsafe { &*touch(self.word.address()).cast::<Head>() }
    }

    #[inline(always)]
    pub(super) fn order(self) -> &'g [AtomicU64; ORDER_WORDS] {
        &self.head().order
    }

    pub(super) fn lock(self) -> &'g VersionLock {
        &self.head().lock
    }

    /// The word that leads to the successors of the block, when its entries have moved.
    pub(super) fn successor(self) -> &'g Place {
        &self.head().successor
    }

    #[inline(always)]
    fn words(self, at: usize) -> &'g AtomicU64 {
        debug_assert!(at < K::GROUP_WORDS * self.word.groups());
        // SAFETY: I1: a block has the words of its groups, and is not reclaimed during `'g`.
        // `at` is in one of them: it is made of a group and a place, or was read from the order.
        unsafe {
            let words = touch(self.word.address()).byte_add(size_of::<Head>());
            &*words.cast::<AtomicU64>().add(at)
        }
    }

    /// The value of the place whose low word is `at`.
    #[inline(always)]
    pub(super) fn value(self, at: usize) -> ValuePlace<'g> {
        ValuePlace { place: self.words(at + Self::VALUE), marks: self.word.marks() }
    }

    /// The group where the search for a key begins.
    #[inline(always)]
    fn home(self, key: K) -> usize {
        ((u64::from(key.hash()) * self.word.groups() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn group_after(self, group: usize) -> usize {
        if group + 1 == self.word.groups() { 0 } else { group + 1 }
    }

    /// Whether the place whose low word is `at` has a key. `low` is that word, but for `PASSED`.
    #[inline(always)]
    fn is(self, at: usize, low: u64, stored: Stored) -> bool {
        let same = low == stored.0;
        if K::WORDS == 1 {
            return same;
        }
        same && self.words(at + K::PER_GROUP).load(Ordering::Relaxed) == stored.1
    }

    /// Whether a place has a key that is not smaller than the first of two stored ones and not
    /// larger than the second one. The three have the same first two bits.
    #[inline(always)]
    pub(super) fn is_within(self, at: usize, (low, high): (Stored, Stored)) -> bool {
        let stored = self.low(at);
        let is_key = stored & KEY != 0;
        let stored = stored & !PASSED;
        if K::WORDS == 1 {
            return is_key & (stored.wrapping_sub(low.0) <= high.0.wrapping_sub(low.0));
        }
        let key = (self.words(at + K::PER_GROUP).load(Ordering::Relaxed), stored);
        is_key && ((low.1, low.0)..=(high.1, high.0)).contains(&key)
    }

    /// Looks a key up in a group: the place of the group that has it and whether one has, whether
    /// the search goes on in the next group, and the number of keys.
    #[inline(always)]
    fn search(self, group: usize, key: K) -> (usize, bool, bool, usize) {
        let (first, stored) = (K::GROUP_WORDS * group, key.stored());
        let (mut found, mut any, mut keys) = (0, false, 0);
        let passed = self.low(first + Self::passed_place(key)) & PASSED;
        for at in 0..K::PER_GROUP {
            let low = self.low(first + at);
            let is_key = self.is(first + at, low & !PASSED, stored);
            found |= if is_key { at } else { 0 };
            any |= is_key;
            keys += (low & KEY) as usize;
        }
        // Not two conditions: whether a key is present is hard to predict.
        let goes_on = passed & u64::from(any).wrapping_sub(1) != 0;
        (first + found, any, goes_on, keys)
    }

    /// The place of a group where a key says that it has passed.
    #[inline(always)]
    fn passed_place(key: K) -> usize {
        if K::PER_GROUP.is_power_of_two() {
            return key.hash() as usize & (K::PER_GROUP - 1);
        }
        ((key.hash() as usize & 0xffff) * K::PER_GROUP) >> 16
    }

    /// The value word of a key: absent if no place has the key.
    #[inline(always)]
    pub(super) fn look_up(self, key: K) -> u64 {
        let absent = self.word.marks().absent();
        let mut group = self.home(key);
        for _ in 0..self.word.groups() {
            let (at, any, goes_on, _) = self.search(group, key);
            let word = self.words(at + Self::VALUE).load(Ordering::SeqCst); // LP(found, absent)
            let goes_on = goes_on & !planted(Canary::PassedIgnored);
            if !goes_on {
                return std::hint::select_unpredictable(any, word, absent);
            }
            group = self.group_after(group);
        }
        absent
    }

    /// The place of a key, if one has it.
    #[inline(always)]
    pub(super) fn find(self, key: K) -> Option<usize> {
        let mut group = self.home(key);
        for _ in 0..self.word.groups() {
            let (at, any, goes_on, _) = self.search(group, key);
            if !goes_on {
                return any.then_some(at);
            }
            group = self.group_after(group);
        }
        None
    }

    /// The place of a key, or the first place without a key that it may have.
    #[inline(always)]
    pub(super) fn probe(self, key: K) -> Probe {
        let mut group = self.home(key);
        for distance in 0..self.word.groups() {
            let (at, any, _, keys) = self.search(group, key);
            if any {
                return Probe::At(at);
            }
            if keys < K::PER_GROUP {
                return Probe::Free(K::GROUP_WORDS * group + keys, distance);
            }
            group = self.group_after(group);
        }
        Probe::Full
    }

    /// Gives a place to a key that has none: the one that `probe` has found. The caller has the
    /// lock if it is `locked`.
    ///
    /// A key takes the first place without a key, from its own group on. Places of a group get keys
    /// one after the other, and never lose them, so two threads that put the same key meet at the
    /// same place.
    #[inline]
    pub(super) fn claim(self, key: K, mut probe: Probe, locked: bool) -> Claim {
        loop {
            let (at, distance) = match probe {
                Probe::At(at) => return Claim::At(at),
                Probe::Free(at, distance) => (at, distance),
                Probe::Full => return Claim::Full,
            };
            let (low, stored) = (self.low(at), key.stored());
            if low & KEY == 0 {
                if !locked && (low == CLOSED || K::WORDS > 1) {
                    return Claim::Closed;
                }
                if distance >= FAR && self.is_crowded() {
                    return Claim::Full;
                }
                if distance > 0 && !planted(Canary::PassedNotNoted) {
                    self.note_passed(key, distance);
                }
                if K::WORDS > 1 {
                    self.words(at + K::PER_GROUP).store(stored.1, Ordering::Relaxed);
                }
                let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                if self.words(at).compare_exchange(low, stored.0, success, failure).is_ok() {
                    return Claim::At(at);
                }
            }
            probe = self.probe(key);
        }
    }

    /// Notes in the first groups of a key that it has passed them.
    #[inline(never)]
    fn note_passed(self, key: K, groups: usize) {
        let mut group = self.home(key);
        for _ in 0..groups {
            let passed = self.words(K::GROUP_WORDS * group + Self::passed_place(key));
            if passed.load(Ordering::SeqCst) & PASSED == 0 {
                passed.fetch_or(PASSED, Ordering::SeqCst);
            }
            group = self.group_after(group);
        }
    }

    /// Whether an eighth of the places or less has no key.
    fn is_crowded(self) -> bool {
        self.keys() >= crowded::<K>(self.word.groups())
    }

    /// The low words of all places.
    pub(super) fn places(self) -> impl Iterator<Item = usize> + Clone {
        let groups = 0..self.word.groups();
        groups.flat_map(|group| (0..K::PER_GROUP).map(move |at| K::GROUP_WORDS * group + at))
    }

    #[inline(always)]
    fn low(self, at: usize) -> u64 {
        self.words(at).load(Ordering::SeqCst)
    }

    /// The number of places with a key.
    #[inline(always)]
    pub(super) fn keys(self) -> usize {
        let mut keys = 0;
        for group in 0..self.word.groups() {
            let first = K::GROUP_WORDS * group;
            keys += (0..K::PER_GROUP).map(|at| self.low(first + at) & KEY).sum::<u64>();
        }
        keys as usize
    }

    /// The key of a place that has one. `top` is that of the key.
    #[inline(always)]
    pub(super) fn known_key(self, at: usize, top: K) -> K {
        self.key_of(at, self.low(at), top)
    }

    /// Whether a place has a key.
    #[inline(always)]
    pub(super) fn has_key(self, at: usize) -> bool {
        self.low(at) & KEY != 0
    }

    /// The key and the value word of a place of the order.
    #[inline(always)]
    pub(super) fn entry(self, place: u8, top: K) -> (K, u64) {
        let at = low_of::<K>(place);
        (self.known_key(at, top), self.words(at + Self::VALUE).load(Ordering::SeqCst))
    }

    #[inline(always)]
    fn key_of(self, at: usize, low: u64, top: K) -> K {
        let high =
            if K::WORDS == 1 { 0 } else { self.words(at + K::PER_GROUP).load(Ordering::Relaxed) };
        K::restored(Stored(low, high), top)
    }

    /// Closes all places without a key or a value. Returns whether no value was left. The caller
    /// has the lock.
    pub(super) fn close(self) -> bool {
        let mut is_empty = true;
        for at in self.places() {
            let (place, mut low) = (self.words(at), self.low(at));
            if low == EMPTY {
                let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
                low = place
                    .compare_exchange(EMPTY, CLOSED, success, failure)
                    .unwrap_or_else(|low| low);
            }
            if low & KEY != 0 {
                is_empty &= self.value(at).close();
            }
        }
        is_empty
    }

    /// Opens what `close` has closed. The caller has the lock.
    pub(super) fn open(self) {
        for at in self.places() {
            match self.low(at) {
                CLOSED => self.words(at).store(EMPTY, Ordering::SeqCst),
                low if low & KEY != 0 => self.value(at).open(),
                _ => {}
            }
        }
    }

    /// Whether no place in the group of this one has a value.
    pub(super) fn is_group_empty(self, at: usize) -> bool {
        use super::value::Content;
        let first = at - at % K::GROUP_WORDS;
        (first..first + K::PER_GROUP)
            .all(|at| !matches!(self.value(at).content(), Content::Value(_)))
    }

    /// Puts entries into an empty block that nobody else has, which has room for them. Tells
    /// `place` the places that they get.
    #[inline]
    pub(super) fn fill<'e>(
        self,
        entries: impl Iterator<Item = (&'e K, u64)>,
        mut place: impl FnMut(usize, u8),
    ) where
        K: 'e,
    {
        let (mut taken, mut order, mut len) = ([0_u8; MAX_PLACES], NO_ORDER, 0);
        for (number, (key, value)) in entries.enumerate() {
            debug_assert!(number < K::PER_GROUP * self.word.groups(), "there is room");
            let stored = key.stored();
            let mut group = self.home(*key);
            while usize::from(taken[group]) == K::PER_GROUP {
                let passed = self.words(K::GROUP_WORDS * group + Self::passed_place(*key));
                passed.store(passed.load(Ordering::Relaxed) | PASSED, Ordering::Relaxed);
                group = self.group_after(group);
            }
            let at = K::GROUP_WORDS * group + usize::from(taken[group]);
            taken[group] += 1;
            self.words(at).store(stored.0, Ordering::Relaxed);
            if K::WORDS > 1 {
                self.words(at + K::PER_GROUP).store(stored.1, Ordering::Relaxed);
            }
            self.words(at + Self::VALUE).store(value, Ordering::Relaxed);
            (order[number], len) = (place_byte::<K>(at), number + 1);
            place(number, order[number]);
        }
        self.set_order(&order[..len]);
    }

    /// Prefetches the lines of all entries.
    #[inline(always)]
    pub(super) fn prefetch_whole(self) {
        for line in (0..bytes::<K>(self.word.groups())).step_by(LINE) {
            prefetch(self.word.address().wrapping_add(line));
        }
    }

    /// Prefetches the lines that a search for a key reads first.
    #[inline(always)]
    pub(super) fn prefetch(self, key: K) {
        let group = 8 * K::GROUP_WORDS * self.home(key);
        let group = self.word.address().wrapping_add(size_of::<Head>() + group);
        prefetch(group);
        if K::WORDS > 1 {
            prefetch(group.wrapping_add(LINE));
        }
    }

    /// The reads of a lookup of a key.
    pub(super) fn looked_at(self, key: K) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &BLOCK;
        let block = self.word.address().cast_const();
        let read =
            move |at, words| layout.read(block, size_of::<Head>() + 8 * at, 8 * words, Why::Found);
        let (mut group, mut left) = (self.home(key), self.word.groups());
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let (at, _, goes_on, _) = self.search(group, key);
            let keys = read(K::GROUP_WORDS * group, K::WORDS * K::PER_GROUP);
            if !goes_on {
                left = 0;
            }
            group = self.group_after(group);
            Some([keys, read(at + Self::VALUE, 1)])
        })
        .flatten()
    }

    pub(super) fn placed(self) -> Placed {
        let address = self.word.address().addr();
        let bytes = bytes::<K>(self.word.groups());
        Placed { layout: &BLOCK, address, before: 0, bytes }
    }
}

/// The byte of the order for the place whose low word is `at`.
#[inline(always)]
fn place_byte<K: WordKey>(at: usize) -> u8 {
    (at / K::GROUP_WORDS * 8 + at % K::GROUP_WORDS) as u8
}

/// The low word of a place of the order.
#[inline(always)]
pub(super) fn low_of<K: WordKey>(place: u8) -> usize {
    let place = usize::from(place);
    place / 8 * K::GROUP_WORDS + place % 8
}

const _: () = assert!(offset_of!(Head, order) == 16 || cfg!(silvics_loom));

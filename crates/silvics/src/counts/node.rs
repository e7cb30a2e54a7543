//! Nodes of the directory: the root, sections and groups.
//!
//! # Layout
//! ```text
//! 0    the bytes of the node, the number of its parts, the bytes of the common prefix of its
//!      separators but the first, and its level
//! 16   the marks: a bit for each part
//!      the sums: the number of keys in each 16 parts
//!      the counts: the number of keys of each part
//!      the head of each separator
//!      the child of each part; none in groups
//!      where the bytes of each separator begin, and the bytes; none if the head is the key
//! ```
//! The separator of a part is the lower bound of its keys: a key, or the first bytes of one. That
//! of the very first part is not used.

use super::key::CountedKey;
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

const LINE: usize = 64;
/// The bytes of a word and of a pointer, which are larger under a model checker.
const WORD: usize = size_of::<AtomicU64>();
const LINK: usize = size_of::<AtomicPtr<u8>>();
/// The parts that share a sum.
const SUMMED: usize = 16;
/// The marks in a word.
const MARKS: usize = 64;

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Its parts are buckets.
    Group,
    /// Its parts are groups.
    Section,
    /// Its parts are sections.
    Root,
}

/// The fields before the arrays.
#[repr(C)]
struct Head {
    bytes: u32,
    len: u32,
    prefix: u32,
    level: Level,
}

/// The layout of the smallest node.
pub(super) const NODE: NodeLayout = NodeLayout {
    kind: "counts",
    size: LINE,
    align: 8,
    search: &[],
    found: &[Field::new("head", 0, size_of::<Head>())],
};

/// A lower bound: the first bytes of a key.
#[derive(Debug)]
pub(super) struct Separator<'a, K: CountedKey + ?Sized> {
    pub(super) key: K::Ref<'a>,
    pub(super) bytes: usize,
}

impl<K: CountedKey + ?Sized> Clone for Separator<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: CountedKey + ?Sized> Copy for Separator<'_, K> {}

/// A part of a node that is made.
#[derive(Debug)]
pub(super) struct Part<'a, K: CountedKey + ?Sized> {
    pub(super) from: Separator<'a, K>,
    /// The keys below the part.
    pub(super) keys: u64,
    /// The child, unless the part is a bucket.
    pub(super) child: Option<NonNull<u8>>,
    /// Whether keys may have come or gone since they were counted.
    pub(super) is_marked: bool,
}

impl<K: CountedKey + ?Sized> Clone for Part<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: CountedKey + ?Sized> Copy for Part<'_, K> {}

/// The places of the arrays in a node.
#[derive(Clone, Copy)]
struct Shape {
    sums: usize,
    counts: usize,
    heads: usize,
    children: usize,
    starts: usize,
    text: usize,
}

impl Shape {
    const MARKS: usize = size_of::<Head>();

    #[inline(always)]
    fn new(level: Level, len: usize) -> Self {
        let sums = Self::MARKS + WORD * len.div_ceil(MARKS);
        let counts = sums + WORD * len.div_ceil(SUMMED);
        let heads = counts + WORD * len;
        let children = heads + 8 * len;
        let starts = children + if level == Level::Group { 0 } else { LINK * len };
        Self { sums, counts, heads, children, starts, text: starts + 4 * (len + 1) }
    }
}

/// Whether nodes have the bytes of separators beside the heads.
const fn has_text<K: CountedKey + ?Sized>() -> bool {
    !matches!(K::FIXED, Some(8))
}

/// The number of first bytes that all separators but the first have in common.
fn common_prefix<K: CountedKey + ?Sized>(parts: &[Part<'_, K>]) -> usize {
    match parts {
        [_, first, .., last] if K::FIXED.is_none() => {
            let (first, last) = (first.from, last.from);
            let differ = K::separates(K::shorten(first.key), K::shorten(last.key));
            (differ - 1).min(first.bytes).min(last.bytes)
        }
        _ => 0,
    }
}

/// The number of first heads of which a condition holds. It holds of no head behind them.
///
/// It looks at every 64th head, at every eighth between two of these, and at the others between two
/// of those. So a search waits for the cache three times, and for no branch that depends on a head.
#[inline(always)]
fn count_to(heads: &[u64], holds: impl Fn(u64) -> bool) -> usize {
    let mut rest = heads;
    let mut pass = |step: usize| {
        let ends = rest.chunks_exact(step).map(|heads| usize::from(holds(heads[step - 1])));
        rest = &rest[step * ends.sum::<usize>()..];
        rest = &rest[..rest.len().min(step)];
    };
    pass(64);
    pass(8);
    let passed = rest.as_ptr().addr().wrapping_sub(heads.as_ptr().addr()) / size_of::<u64>();
    passed + rest.iter().map(|head| usize::from(holds(*head))).sum::<usize>()
}

/// The bytes of a node.
pub(super) fn bytes_of<K: CountedKey + ?Sized>(level: Level, parts: &[Part<'_, K>]) -> usize {
    let shape = Shape::new(level, parts.len());
    let text = parts.iter().map(|part| part.from.bytes).sum::<usize>();
    let bytes = if has_text::<K>() { shape.text + text } else { shape.starts };
    bytes.next_multiple_of(LINE)
}

/// A node that is not reclaimed during `'g`.
pub(super) struct NodeRef<'g, K: ?Sized> {
    address: NonNull<u8>,
    keys: PhantomData<fn(&K)>,
    marker: PhantomData<&'g Head>,
}

impl<K: ?Sized> Clone for NodeRef<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized> Copy for NodeRef<'_, K> {}

impl<K: ?Sized> PartialEq for NodeRef<'_, K> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<'g, K: CountedKey + ?Sized> NodeRef<'g, K> {
    /// # Safety
    /// `address` is that of an initialised node for keys of type `K`, which is not reclaimed during
    /// `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(address: NonNull<u8>) -> Self {
        Self { address, keys: PhantomData, marker: PhantomData }
    }

    #[inline(always)]
    pub(super) fn address(self) -> NonNull<u8> {
        self.address
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: contract of `new`: a node begins with its head.
        unsafe { self.address.cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.head().len as usize
    }

    #[inline(always)]
    pub(super) fn level(self) -> Level {
        self.head().level
    }

    #[inline(always)]
    fn shape(self) -> Shape {
        Shape::new(self.level(), self.len())
    }

    /// The array at a place of the node.
    ///
    /// # Safety
    /// The node has `len` initialised objects of type `T` there, which are aligned, and change only
    /// if `T` is atomic.
    #[inline(always)]
    unsafe fn array<T>(self, at: usize, len: usize) -> &'g [T] {
        debug_assert!(at + len * size_of::<T>() <= self.head().bytes as usize);
        // SAFETY: our contract, and that of `new`.
        unsafe { std::slice::from_raw_parts(self.address.byte_add(at).cast().as_ptr(), len) }
    }

    #[inline(always)]
    fn marks(self) -> &'g [AtomicU64] {
        // SAFETY: `init` has written as many words there.
        unsafe { self.array(Shape::MARKS, self.len().div_ceil(MARKS)) }
    }

    #[inline(always)]
    fn sums(self) -> &'g [AtomicU64] {
        // SAFETY: `init` has written as many words there.
        unsafe { self.array(self.shape().sums, self.len().div_ceil(SUMMED)) }
    }

    #[inline(always)]
    fn counts(self) -> &'g [AtomicU64] {
        // SAFETY: `init` has written a word for each part there.
        unsafe { self.array(self.shape().counts, self.len()) }
    }

    #[inline(always)]
    fn heads(self) -> &'g [u64] {
        // SAFETY: `init` has written a head for each part there, which never changes.
        unsafe { self.array(self.shape().heads, self.len()) }
    }

    #[inline(always)]
    fn children(self) -> &'g [AtomicPtr<u8>] {
        let len = if self.level() == Level::Group { 0 } else { self.len() };
        // SAFETY: `init` has written as many pointers there.
        unsafe { self.array(self.shape().children, len) }
    }

    /// The bytes of a separator. Numbers of eight bytes have none.
    #[inline(always)]
    fn text(self, at: usize) -> &'g [u8] {
        if !has_text::<K>() {
            return &[];
        }
        let Shape { starts, text, .. } = self.shape();
        // SAFETY: `init` has written the start of each separator there, and the end of the last
        // one, then as many bytes. They never change.
        unsafe {
            let starts: &[u32] = self.array(starts, self.len() + 1);
            let (start, end) = (starts[at] as usize, starts[at + 1] as usize);
            self.array(text + start, end - start)
        }
    }

    /// The lower bound of a part.
    pub(super) fn separator(self, at: usize) -> Separator<'g, K> {
        if let Some(key) = K::of_head(self.heads()[at]) {
            return Separator { key: K::shorten(key), bytes: 8 };
        }
        let text = self.text(at);
        Separator { key: K::of_bytes(text), bytes: text.len() }
    }

    /// The node below a part.
    #[inline(always)]
    pub(super) fn child(self, at: usize) -> NodeRef<'g, K> {
        let child = self.children()[at].load(Ordering::SeqCst);
        // SAFETY: C2: a child is a node. This node was linked at some moment since the guard was
        // taken, under which it was reached, and so was its child, which is then not reclaimed
        // while the guard lives.
        unsafe { NodeRef::new(NonNull::new_unchecked(child)) }
    }

    /// Replaces the node below a part. The caller has the latch.
    pub(super) fn set_child(self, at: usize, child: NodeRef<'_, K>) {
        self.children()[at].store(child.address.as_ptr(), Ordering::SeqCst);
    }

    /// The last part whose lower bound is not larger than a key, or the first one.
    #[inline]
    pub(super) fn search(self, key: K::Ref<'_>) -> usize {
        let heads = &self.heads()[1..];
        let prefix = self.head().prefix as usize;
        if prefix > 0 {
            match K::compare_start(K::shorten(key), &self.text(1)[..prefix]) {
                Order::Less => return 0,
                Order::Greater => return heads.len(),
                Order::Equal => {}
            }
        }
        let head = K::head(K::shorten(key), prefix);
        if !has_text::<K>() {
            return count_to(heads, |separator| separator <= head);
        }
        // The separators that have this head are compared as a whole.
        let mut low = count_to(heads, |separator| separator < head);
        let mut high = low + count_to(&heads[low..], |separator| separator == head);
        while low < high {
            let middle = low.midpoint(high);
            match K::compare(K::shorten(key), self.text(middle + 1), prefix) {
                Order::Less => high = middle,
                _ => low = middle + 1,
            }
        }
        low
    }

    /// Marks a part, unless it is marked. Returns whether it was not.
    #[inline(always)]
    pub(super) fn mark(self, at: usize) -> bool {
        let (word, bit) = (&self.marks()[at / MARKS], 1 << (at % MARKS));
        word.load(Ordering::SeqCst) & bit == 0 && word.fetch_or(bit, Ordering::SeqCst) & bit == 0
    }

    /// Marks all parts.
    pub(super) fn mark_all(self) {
        (0..self.len()).for_each(|at| _ = self.mark(at));
    }

    /// Whether a part is marked.
    #[inline(always)]
    pub(super) fn is_marked(self, at: usize) -> bool {
        self.marks()[at / MARKS].load(Ordering::SeqCst) >> (at % MARKS) & 1 != 0
    }

    /// Takes the mark of a part away.
    pub(super) fn unmark(self, at: usize) {
        self.marks()[at / MARKS].fetch_and(!(1 << (at % MARKS)), Ordering::SeqCst);
    }

    /// The first marked part from one on.
    pub(super) fn next_marked(self, from: usize) -> Option<usize> {
        let words = self.marks().iter().enumerate().skip(from / MARKS);
        let mut marks = words.map(|(number, word)| {
            let behind = if number == from / MARKS { u64::MAX << (from % MARKS) } else { u64::MAX };
            (number, word.load(Ordering::SeqCst) & behind)
        });
        let (number, marks) = marks.find(|(_, marks)| *marks != 0)?;
        Some(MARKS * number + marks.trailing_zeros() as usize)
    }

    /// The number of marked parts.
    pub(super) fn marked(self) -> usize {
        self.marks().iter().map(|word| word.load(Ordering::SeqCst).count_ones() as usize).sum()
    }

    /// Whether a part before one is marked.
    #[inline(always)]
    pub(super) fn is_marked_before(self, at: usize) -> bool {
        let load = |word: &AtomicU64| word.load(Ordering::SeqCst);
        let (whole, rest) = (at / MARKS, at % MARKS);
        let mut marks = self.marks()[..whole].iter().fold(0, |all, word| all | load(word));
        if rest > 0 {
            marks |= load(&self.marks()[whole]) & ((1 << rest) - 1);
        }
        marks != 0
    }

    /// The number of keys of a part when it was last counted.
    #[inline(always)]
    pub(super) fn count(self, at: usize) -> u64 {
        self.counts()[at].load(Ordering::SeqCst)
    }

    /// Sets the number of keys of a part. The caller has the latch.
    pub(super) fn set_count(self, at: usize, keys: u64) {
        let before = self.counts()[at].swap(keys, Ordering::SeqCst);
        let sum = &self.sums()[at / SUMMED];
        sum.fetch_add(keys.wrapping_sub(before), Ordering::SeqCst);
    }

    /// The number of keys of some parts.
    #[inline(always)]
    pub(super) fn count_in(self, parts: Range<usize>) -> u64 {
        let sum = |words: &[AtomicU64]| {
            words.iter().fold(0, |sum: u64, word| sum.wrapping_add(word.load(Ordering::SeqCst)))
        };
        let whole = parts.start.div_ceil(SUMMED)..parts.end / SUMMED;
        if whole.start >= whole.end {
            return sum(&self.counts()[parts]);
        }
        let first = sum(&self.counts()[parts.start..whole.start * SUMMED]);
        let last = sum(&self.counts()[whole.end * SUMMED..parts.end]);
        first.wrapping_add(sum(&self.sums()[whole])).wrapping_add(last)
    }

    /// The number of keys of all parts.
    pub(super) fn count_all(self) -> u64 {
        self.count_in(0..self.len())
    }

    /// The part that has the key with a number, and the number of the key there. If there are fewer
    /// keys, it is the last part.
    #[inline]
    pub(super) fn part_of(self, mut number: u64) -> (usize, u64) {
        let (mut whole, last) = (0, self.len() - 1);
        for sum in &self.sums()[..last / SUMMED] {
            let sum = sum.load(Ordering::SeqCst);
            if number < sum {
                break;
            }
            (whole, number) = (whole + 1, number - sum);
        }
        let mut at = whole * SUMMED;
        while at < last {
            let keys = self.count(at);
            if number < keys {
                break;
            }
            (at, number) = (at + 1, number - keys);
        }
        (at, number)
    }

    /// Initialises a node.
    ///
    /// # Safety
    /// `node` has `bytes_of(level, parts)` bytes, aligned to a word, which nobody else has.
    pub(super) unsafe fn init(node: NonNull<u8>, level: Level, parts: &[Part<'_, K>]) {
        let (bytes, prefix) = (bytes_of(level, parts), common_prefix(parts));
        let (bytes32, len) = (bytes as u32, parts.len() as u32);
        let head = Head { bytes: bytes32, len, prefix: prefix as u32, level };
        let shape = Shape::new(level, parts.len());
        // SAFETY: our contract: the node has room for all of this.
        unsafe {
            node.cast().write(head);
            for (number, parts) in parts.chunks(MARKS).enumerate() {
                let marks = parts
                    .iter()
                    .rev()
                    .fold(0, |marks, part| marks << 1 | u64::from(part.is_marked));
                node.byte_add(Shape::MARKS + WORD * number).cast().write(AtomicU64::new(marks));
            }
            for (number, parts) in parts.chunks(SUMMED).enumerate() {
                let sum = parts.iter().map(|part| part.keys).sum();
                node.byte_add(shape.sums + WORD * number).cast().write(AtomicU64::new(sum));
            }
            let mut start = 0;
            for (at, part) in parts.iter().enumerate() {
                let mut key = K::shorten(part.from.key);
                let count = AtomicU64::new(part.keys);
                node.byte_add(shape.counts + WORD * at).cast().write(count);
                if let Some(child) = part.child {
                    let child = AtomicPtr::new(child.as_ptr());
                    node.byte_add(shape.children + LINK * at).cast().write(child);
                }
                if has_text::<K>() {
                    node.byte_add(shape.starts + 4 * at).cast().write(start as u32);
                    let text = node.byte_add(shape.text + start);
                    text.write_bytes(0, part.from.bytes);
                    let text = std::slice::from_raw_parts_mut(text.as_ptr(), part.from.bytes);
                    K::copy(K::shorten(part.from.key), text);
                    start += part.from.bytes;
                    key = K::of_bytes(text);
                }
                let head = K::head(key, prefix);
                node.byte_add(shape.heads + 8 * at).cast().write(head);
            }
            if has_text::<K>() {
                node.byte_add(shape.starts + 4 * parts.len()).cast().write(start as u32);
            }
        }
    }

    pub(super) fn placed(self) -> Placed {
        let bytes = self.head().bytes as usize;
        Placed { layout: &NODE, address: self.address.addr().get(), before: 0, bytes }
    }

    /// The bytes of the node.
    pub(super) fn bytes(self) -> usize {
        self.head().bytes as usize
    }
}

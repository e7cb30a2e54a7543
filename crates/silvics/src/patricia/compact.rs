//! The build `compact`: nodes that are as large as what they hold.
//!
//! ```text
//! leaf:  [lock 8][value 8][length 4, byte strings][key]
//! inner: [lock 8][state 4][start 4][digits 8, 16 or 40][value 8, if any][slot 8 × children][label]
//! ```
//! A leaf has its whole key. So has an inner node with an entry, as its label; the label of another
//! inner node begins at the byte of its first character. A child's slot is found by its digit
//! (`digit_set.rs`). All but the value, the slots and one bit of the state never
//! change: a change of the shape replaces the node by a copy.
//!
//! If a copy that a removal needs cannot be allocated, the slot becomes empty, or the bit of the
//! entry is cleared. The place stays for a later entry.

use super::build::{Alphabet, AlphabetSize};
use super::digit_set::DigitSet;
use super::digits::{Label, Path, bytes_to, chars, label_bytes};
use super::key::PatriciaKey;
use super::node::{Change, Draft, KeyOf, Made, Node, Nodes, Place, Slot};
use super::sync::NodeLock;
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::{Frame, See, violation};
use crate::memory::Blobs;
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::Placement;
use silvics_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use std::marker::PhantomData;
use std::mem::{needs_drop, offset_of};
use std::ptr::NonNull;

/// The head of a leaf. The length follows, if keys have different ones, and then the key.
#[repr(C)]
struct Leaf<L> {
    lock: L,
    value: AtomicU64,
}

/// The head of an inner node. The value follows, if there is one, then the slots and the label.
#[repr(C)]
struct Inner<L, D> {
    lock: L,
    /// The end of the label, and the bits below. Only `ENTRY` changes.
    state: AtomicU32,
    /// The position in the key of the label's first byte.
    start: u32,
    /// The digits that have a slot.
    digits: D,
}

const END: u32 = (1 << 23) - 1;
/// The node has an entry.
const ENTRY: u32 = 1 << 31;
/// The node has a place for a value.
const VALUE: u32 = 1 << 30;

/// The nodes of the build, for keys `K`, locks `L` and `A` characters.
pub struct CompactNodes<K: ?Sized, L, const A: usize>(PhantomData<fn(&K, L)>);

/// The digits that have a slot.
type DigitsOf<const A: usize> = <Alphabet<A> as AlphabetSize>::Digits;

/// The children of a node by digits.
type Children<const A: usize> = [*mut u8; A];

/// The parts of an inner node or a leaf that is to be made.
struct Parts<'p, const A: usize> {
    path: Path<'p>,
    from: u32,
    end: u32,
    value: Option<u64>,
    children: &'p Children<A>,
}

impl<K: PatriciaKey + ?Sized, L: NodeLock, const A: usize> CompactNodes<K, L, A>
where
    Alphabet<A>: AlphabetSize,
{
    /// Nodes are aligned to eight bytes, and freed without a destructor.
    const LOCK_FITS: () = assert!(
        align_of::<L>() <= 8 && !needs_drop::<L>(),
        "a lock of a compact trie is aligned to 8 bytes at most, and has no destructor"
    );
    const INNER_HEAD: usize = size_of::<Inner<L, DigitsOf<A>>>();
    /// The offset of a leaf's key.
    const KEY: usize = size_of::<Leaf<L>>() + if K::FIXED.is_some() { 0 } else { 4 };

    const INNER: NodeLayout = NodeLayout {
        kind: "inner",
        size: Self::INNER_HEAD,
        align: 8,
        search: &[Field::new("lock, state, digits", 0, Self::INNER_HEAD)],
        found: &[Field::new("lock, state", 0, size_of::<L>() + size_of::<AtomicU32>())],
    };

    const LEAF: NodeLayout = NodeLayout {
        kind: "leaf",
        size: Self::KEY + if let Some(bytes) = K::FIXED { bytes } else { 0 },
        align: 8,
        search: &[],
        found: &[
            Field::new("lock", 0, size_of::<L>()),
            Field::new("value", offset_of!(Leaf<L>, value), size_of::<AtomicU64>()),
        ],
    };

    #[inline(always)]
    fn leaf_at(node: Node<'_, Self>) -> &Leaf<L> {
        debug_assert!(node.is_leaf());
        // SAFETY: `Node::new`, with the bit of a leaf: it is an initialised leaf of this build, not
        // reclaimed during `'g`. Its fields are atomics or locks.
        unsafe { &*node.object().cast() }
    }

    #[inline(always)]
    fn inner_at(node: Node<'_, Self>) -> &Inner<L, DigitsOf<A>> {
        debug_assert!(!node.is_leaf());
        // SAFETY: `Node::new`, without the bit of a leaf: it is an initialised inner node of this
        // build, not reclaimed during `'g`. Its fields are atomics or locks, or never change.
        unsafe { &*touch(node.object()).cast() }
    }

    #[inline(always)]
    fn state(node: Node<'_, Self>) -> u32 {
        Self::inner_at(node).state.load(Ordering::Relaxed) // Relaxed: sections validate the lock
    }

    #[inline(always)]
    fn digits(node: Node<'_, Self>) -> &DigitsOf<A> {
        &Self::inner_at(node).digits
    }

    /// The bytes of a leaf's key.
    #[inline(always)]
    fn leaf_key(node: Node<'_, Self>) -> &[u8] {
        debug_assert!(node.is_leaf());
        // SAFETY: `write_leaf` has written the length, if there is one, and as many bytes behind
        // it, before the leaf was published; they never change. `Node::new`: the leaf is not
        // reclaimed during `'g`.
        unsafe {
            let leaf = touch(node.object());
            let len = match K::FIXED {
                Some(bytes) => bytes,
                None => leaf.add(size_of::<Leaf<L>>()).cast::<u32>().read() as usize,
            };
            std::slice::from_raw_parts(leaf.add(Self::KEY), len)
        }
    }

    /// The offset of an inner node's slots.
    #[inline(always)]
    fn slots_at(state: u32) -> usize {
        Self::INNER_HEAD + if state & VALUE != 0 { size_of::<AtomicU64>() } else { 0 }
    }

    /// The slot with a number.
    #[inline(always)]
    fn slot_at(node: Node<'_, Self>, number: usize) -> &Slot {
        debug_assert!(number < Self::digits(node).len());
        let offset = Self::slots_at(Self::state(node)) + size_of::<Slot>() * number;
        // SAFETY: `make_inner` has written a slot for each bit behind the head and the value, and
        // the caller's number is below that of the bits. `Node::new`: the node is not reclaimed
        // during `'g`.
        unsafe { &*node.object().add(offset).cast() }
    }

    /// The place of an inner node's value.
    #[inline(always)]
    fn value_at(node: Node<'_, Self>) -> Option<&AtomicU64> {
        if node.is_leaf() {
            return Some(&Self::leaf_at(node).value);
        }
        // SAFETY: a node whose state has `VALUE`, which never changes, was made with a value behind
        // its head. `Node::new`: it is not reclaimed during `'g`.
        (Self::state(node) & VALUE != 0)
            .then(|| unsafe { &*node.object().add(Self::INNER_HEAD).cast() })
    }

    /// The offset and the length of an inner node's label.
    #[inline]
    fn label_at(node: Node<'_, Self>) -> (usize, usize) {
        let (state, start) = (Self::state(node), Self::inner_at(node).start as usize);
        let slots = size_of::<Slot>() * Self::digits(node).len();
        let len = bytes_to(Self::BITS, state & END).saturating_sub(start);
        (Self::slots_at(state) + slots, len)
    }

    /// The bytes of a node.
    #[inline]
    fn size(node: Node<'_, Self>) -> usize {
        if node.is_leaf() {
            return Self::KEY + Self::leaf_key(node).len();
        }
        let (offset, len) = Self::label_at(node);
        offset + len
    }

    /// The memory of an inner node.
    ///
    /// # Safety
    /// The object is an initialised inner node.
    unsafe fn inner_extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract.
        (object, Self::size(unsafe { Node::new(object) }))
    }

    /// The memory of a leaf.
    ///
    /// # Safety
    /// The object is an initialised leaf.
    unsafe fn leaf_extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        let word = object.map_addr(|address| address | Node::<Self>::LEAF);
        // SAFETY: our contract.
        (object, Self::size(unsafe { Node::new(word) }))
    }

    /// Makes a node: a leaf, if it has no children.
    fn make<'m, P: Placement>(
        memory: &'m (Blobs<P>, Blobs<P>),
        parts: &Parts<'_, A>,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let slots = parts.children.iter().filter(|child| !child.is_null()).count();
        let word = match parts.value {
            Some(value) if slots == 0 => Self::make_leaf(&memory.1, parts, value, guard)?,
            _ => Self::make_inner(&memory.0, parts, slots, guard)?,
        };
        // SAFETY: the node is initialised, and this thread's alone.
        Ok(unsafe { Draft::new(memory, Some(Made::Node(word))) })
    }

    fn make_leaf<P: Placement>(
        leaves: &Blobs<P>,
        parts: &Parts<'_, A>,
        value: u64,
        guard: &Guard,
    ) -> Result<NonNull<u8>, AllocError> {
        const { Self::LOCK_FITS };
        let len = bytes_to(Self::BITS, parts.end);
        let leaf = leaves.alloc(Self::KEY + len, guard)?;
        // SAFETY: the memory has the bytes of a leaf with a key of `len` bytes, is aligned to 8,
        // and is this thread's alone.
        let key = unsafe {
            leaf.cast::<Leaf<L>>().write(Leaf { lock: L::default(), value: AtomicU64::new(value) });
            if K::FIXED.is_none() {
                leaf.add(size_of::<Leaf<L>>()).cast::<u32>().write(len as u32);
            }
            let key = leaf.add(Self::KEY);
            key.write_bytes(0, len);
            std::slice::from_raw_parts_mut(key.as_ptr(), len)
        };
        parts.path.write(Self::BITS, key, 0, parts.end);
        Ok(leaf.map_addr(|address| address | Node::<Self>::LEAF))
    }

    fn make_inner<P: Placement>(
        inners: &Blobs<P>,
        parts: &Parts<'_, A>,
        slots: usize,
        guard: &Guard,
    ) -> Result<NonNull<u8>, AllocError> {
        let end = parts.end;
        let from = if parts.value.is_some() { 0 } else { parts.from };
        let (start, label) = label_bytes(Self::BITS, from, end);
        let state = if parts.value.is_some() { end | ENTRY | VALUE } else { end };
        let present = |digit: &u32| !parts.children[*digit as usize].is_null();
        let digits = DigitsOf::<A>::of((0..A as u32).filter(present));
        let offset = Self::slots_at(state);
        let size = offset + size_of::<Slot>() * slots + label;
        const { Self::LOCK_FITS };
        let node = inners.alloc(size, guard)?;
        let (lock, state) = (L::default(), AtomicU32::new(state));
        // SAFETY: the memory has the bytes of head, value, slots and label, is aligned to 8, and is
        // this thread's alone. Each of them is written at its offset.
        let text = unsafe {
            node.cast().write(Inner { lock, state, start: start as u32, digits });
            if let Some(value) = parts.value {
                node.add(Self::INNER_HEAD).cast().write(AtomicU64::new(value));
            }
            let mut slot = node.add(offset).cast::<Slot>();
            for child in parts.children.iter().filter(|child| !child.is_null()) {
                slot.write(Slot::new(*child));
                slot = slot.add(1);
            }
            let text = slot.cast::<u8>();
            text.write_bytes(0, label);
            std::slice::from_raw_parts_mut(text.as_ptr(), label)
        };
        parts.path.write(Self::BITS, text, start, end);
        Ok(node)
    }

    /// The children of a node.
    fn gather(node: Node<'_, Self>) -> Children<A> {
        let mut children = [std::ptr::null_mut(); A];
        if !node.is_leaf() {
            for (digit, child) in children.iter_mut().enumerate() {
                if let Some(slot) = Self::slot(node, digit as u32) {
                    *child = slot.word();
                }
            }
        }
        children
    }

    fn parts(made: Made) -> NonNull<u8> {
        match made {
            Made::Node(node) => node,
            Made::Label(..) => unreachable!("labels lie in nodes"),
        }
    }
}

// SAFETY: `make` initialises nodes before it returns their words, with the bit of a leaf for a
// leaf. A slot stores words that the algorithm has from `make`, as their memory has been kept.
unsafe impl<K: PatriciaKey + ?Sized, L: NodeLock, const A: usize> Nodes for CompactNodes<K, L, A>
where
    Alphabet<A>: AlphabetSize,
{
    type Key = K;
    type Lock = L;
    type Memory<P: Placement> = (Blobs<P>, Blobs<P>);

    const BITS: u32 = <Alphabet<A> as AlphabetSize>::BITS;
    const SKIPS: bool = true;
    const IN_PLACE: bool = false;
    const OBJECTS: &'static [NodeLayout] = &[Self::INNER, Self::LEAF];

    fn memory<P: Placement>(frame: &Frame) -> (Blobs<P>, Blobs<P>) {
        let pool = |kind, extent| Blobs::new(kind, &frame.config, &frame.domain, extent);
        (
            pool(Self::INNER.kind, Self::inner_extent as unsafe fn(_) -> _),
            pool(Self::LEAF.kind, Self::leaf_extent as unsafe fn(_) -> _),
        )
    }

    #[inline(always)]
    fn lock(node: Node<'_, Self>) -> &L {
        // SAFETY: a leaf and an inner node begin with their lock. `Node::new`: the node is not
        // reclaimed during `'g`.
        unsafe { &*node.object().cast() }
    }

    #[inline(always)]
    fn prefetch(node: Node<'_, Self>) {
        // A leaf's key may end in the next line, and the slots of most inner nodes do.
        let ahead = if node.is_leaf() { Self::KEY } else { 64 };
        prefetch(node.object().wrapping_add(ahead));
    }

    #[inline(always)]
    fn end(node: Node<'_, Self>) -> u32 {
        if node.is_leaf() {
            return chars(Self::BITS, Self::leaf_key(node).len());
        }
        Self::state(node) & END
    }

    #[inline(always)]
    fn value(node: Node<'_, Self>) -> Option<u64> {
        if node.is_leaf() {
            // Relaxed: sections validate the lock.
            return Some(Self::leaf_at(node).value.load(Ordering::Relaxed));
        }
        let value = Self::value_at(node).filter(|_| Self::state(node) & ENTRY != 0);
        value.map(|value| value.load(Ordering::Relaxed)) // Relaxed: validated, too
    }

    #[inline(always)]
    fn has_key(node: Node<'_, Self>, key: &[u8]) -> bool {
        if node.is_leaf() {
            return Self::leaf_key(node) == key;
        }
        Self::state(node) & ENTRY != 0 && Self::label(node, 0).tail == key
    }

    #[inline(always)]
    fn slot(node: Node<'_, Self>, digit: u32) -> Option<&Slot> {
        if node.is_leaf() {
            return None;
        }
        Self::digits(node).number(digit).map(|number| Self::slot_at(node, number))
    }

    #[inline]
    fn child<const DOWN: bool>(node: Node<'_, Self>, digit: i32) -> Option<(u32, Node<'_, Self>)> {
        if node.is_leaf() {
            return None;
        }
        let child = |at: i32| {
            let slot = Self::slot(node, at as u32)?;
            // SAFETY: the slot is in a node that the caller has found under a guard of `'g`.
            unsafe { slot.load() }.map(|child| (at as u32, child))
        };
        if DOWN {
            (0..=digit.min(A as i32 - 1)).rev().find_map(child)
        } else {
            (digit.max(0)..A as i32).find_map(child)
        }
    }

    #[inline]
    fn children(node: Node<'_, Self>) -> usize {
        if node.is_leaf() {
            return 0;
        }
        let slots = (0..Self::digits(node).len()).map(|at| Self::slot_at(node, at));
        slots.filter(|slot| !slot.word().is_null()).take(3).count()
    }

    #[inline]
    fn label(node: Node<'_, Self>, _from: u32) -> Label<'_> {
        if node.is_leaf() {
            return Label::whole(0, Self::leaf_key(node));
        }
        let (offset, len) = Self::label_at(node);
        // SAFETY: `make_inner` has written the label behind the slots; it never changes.
        // `Node::new`: the node is not reclaimed during `'g`.
        let text = unsafe { std::slice::from_raw_parts(node.object().add(offset), len) };
        Label::whole(Self::inner_at(node).start as usize, text)
    }

    #[inline]
    fn keeps_label(node: Node<'_, Self>) -> bool {
        node.is_leaf() || Self::state(node) & ENTRY != 0
    }

    #[inline]
    fn key(node: Node<'_, Self>) -> Option<KeyOf<'_, Self>> {
        Some(K::of_bytes(Self::label(node, 0).tail))
    }

    #[inline]
    fn leaf<'m, P: Placement>(
        memory: &'m (Blobs<P>, Blobs<P>),
        place: Place<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let parts = Parts {
            path: Path { key: place.key, digit: None, label: None },
            from: place.from,
            end: chars(Self::BITS, place.key.len()),
            value: Some(value),
            children: &[std::ptr::null_mut(); A],
        };
        let leaf = Self::make_leaf(&memory.1, &parts, value, guard)?;
        // SAFETY: the leaf is initialised, and this thread's alone.
        Ok(unsafe { Draft::new(memory, Some(Made::Node(leaf))) })
    }

    fn fork<'m, P: Placement>(
        memory: &'m (Blobs<P>, Blobs<P>),
        place: Place<'_>,
        end: u32,
        value: Option<u64>,
        children: &[(u32, NonNull<u8>)],
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let mut all = [std::ptr::null_mut(); A];
        for (digit, child) in children {
            all[*digit as usize] = child.as_ptr();
        }
        let path = Path { key: place.key, digit: None, label: None };
        let parts = Parts { path, from: place.from, end, value, children: &all };
        Self::make(memory, &parts, guard)
    }

    fn prepare<'m, P: Placement>(
        memory: &'m (Blobs<P>, Blobs<P>),
        node: Node<'_, Self>,
        change: Change,
        place: Place<'_>,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let (mut children, mut value) = (Self::gather(node), Self::value(node));
        match change {
            Change::Child(digit, child) => children[digit as usize] = child.as_ptr(),
            Change::NoChild(digit) => children[digit as usize] = std::ptr::null_mut(),
            Change::Entry(new) => value = Some(new),
            Change::NoEntry => value = None,
            Change::Label(_) => {}
        }
        let label = Some(Self::label(node, place.from));
        let path = Path { key: place.key, digit: place.digit, label };
        let (from, end) = (place.from, Self::end(node));
        Self::make(memory, &Parts { path, from, end, value, children: &children }, guard)
    }

    #[inline]
    unsafe fn change(node: Node<'_, Self>, change: Change, _made: Option<Made>) -> Option<Made> {
        match change {
            Change::NoChild(digit) => {
                if let Some(slot) = Self::slot(node, digit) {
                    slot.store(None);
                }
            }
            Change::NoEntry if !node.is_leaf() => {
                let state = Self::state(node) & !ENTRY;
                // Relaxed: published by unlocking.
                Self::inner_at(node).state.store(state, Ordering::Relaxed);
            }
            _ => unreachable!("copies have all other changes"),
        }
        None
    }

    #[inline(always)]
    unsafe fn set_value(node: Node<'_, Self>, value: u64) {
        if let Some(place) = Self::value_at(node) {
            place.store(value, Ordering::Relaxed); // Relaxed: published by unlocking
        }
    }

    unsafe fn discard<P: Placement>(memory: &(Blobs<P>, Blobs<P>), made: Made) {
        // SAFETY: the caller's promise; the word says which kind the node is.
        unsafe {
            let node = Node::<Self>::new(Self::parts(made));
            let pool = if node.is_leaf() { &memory.1 } else { &memory.0 };
            pool.free(NonNull::new_unchecked(node.object()));
        }
    }

    unsafe fn retire<P: Placement>(memory: &(Blobs<P>, Blobs<P>), made: Made, guard: &Guard) {
        // SAFETY: the caller's promise; the word says which kind the node is.
        unsafe {
            let node = Node::<Self>::new(Self::parts(made));
            let pool = if node.is_leaf() { &memory.1 } else { &memory.0 };
            pool.retire(NonNull::new_unchecked(node.object()), guard);
        }
    }

    fn check(node: Node<'_, Self>, from: u32, see: &mut See<'_>) -> Result<(), Violation> {
        let layout: &'static NodeLayout = if node.is_leaf() { &Self::LEAF } else { &Self::INNER };
        see(Placed { layout, address: node.object().addr(), before: 0, bytes: Self::size(node) });
        if node.is_leaf() {
            return Ok(());
        }
        let has_value = Self::state(node) & VALUE != 0;
        let from = if has_value { 0 } else { from };
        let (start, right) =
            (Self::inner_at(node).start as usize, label_bytes(Self::BITS, from, Self::end(node)).0);
        if start != right {
            return violation("I2", format!("label from byte {start} instead of {right}"));
        }
        Ok(())
    }

    fn reads(node: Node<'_, Self>, digit: Option<u32>) -> impl Iterator<Item = Read> {
        let object = node.object();
        let layout: &'static NodeLayout = if node.is_leaf() { &Self::LEAF } else { &Self::INNER };
        let (fields, why) = match digit {
            Some(_) => (layout.search, Why::Step),
            None => (layout.found, Why::Found),
        };
        let slot = digit.and_then(|digit| Self::slot(node, digit)).map(|slot| {
            let offset = std::ptr::from_ref(slot).addr() - object.addr();
            layout.read(object, offset, size_of::<Slot>(), Why::Step)
        });
        let key = node
            .is_leaf()
            .then(|| layout.read(object, Self::KEY, Self::leaf_key(node).len(), Why::Found));
        let fields =
            fields.iter().map(move |field| layout.read(object, field.offset, field.bytes, why));
        fields.chain(slot).chain(key.filter(|read| read.bytes > 0))
    }
}

//! The build `paper`: the paper's nodes.
//!
//! ```text
//! node:  [lock 8][label 8][value 8][state 8][next 8 × alphabet], from the start of a line
//! state: end 23 bits | children 9 | entry 1 | bytes in the node 2 | … | label's first bytes 3 × 8
//! label: [length 1][bytes] for integers, [start 4][length 4][bytes] for byte strings
//! ```
//! The paper's node has a lock, a string (pointer and length), a flag, a count and the pointers.
//! Its authors tested a set, so the paper has no value. Ours has the value in the place of the
//! string's length and padding. The length follows from where a label begins and ends, or is in the
//! label's own object. The first three bytes of an integer's label lie in the node's padding, so
//! most inner nodes have no object beside them, and the sum of nodes and labels is within 2 % of
//! the paper's figures.
//!
//! An entry whose key is a byte string has its whole key as its label, since scans lend keys.

use super::build::{Alphabet, AlphabetSize};
use super::digits::{HEAD, Label, Path, byte_of, bytes_to, chars, label_bytes};
use super::key::PatriciaKey;
use super::node::{Change, Draft, KeyOf, Made, Node, Nodes, Place, Slot};
use super::sync::NodeLock;
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::{Frame, See, violation};
use crate::memory::{Blobs, Memory, Nodes as Pool};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::{Placement, PoolStats};
use silvics_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

/// A node: see the [module](self).
#[repr(C, align(64))]
pub(super) struct PaperNode<L, const A: usize> {
    lock: L,
    label: AtomicPtr<u8>,
    value: AtomicU64,
    state: AtomicU64,
    next: [Slot; A],
}

/// The bytes of a node's content: the paper's figure for locks of up to 8 bytes.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const fn content<L, const A: usize>() -> usize {
    offset_of!(PaperNode<L, A>, next) + size_of::<Slot>() * A
}

#[cfg(not(any(silvics_loom, silvics_shuttle)))]
const _: () = {
    use silvics_sync::version::VersionLock;
    assert!(content::<VersionLock, 2>() == 48 && content::<VersionLock, 4>() == 64);
    assert!(content::<VersionLock, 16>() == 160 && content::<VersionLock, 256>() == 2080);
    assert!(content::<u8, 2>() == 48 && content::<u8, 256>() == 2080);
};

const END: u64 = (1 << 23) - 1;
const CHILD: u64 = 1 << 23;
const CHILDREN: u32 = 23;
const CHILD_BITS: u64 = (1 << 9) - 1;
const ENTRY: u64 = 1 << 32;
const HEADS: u32 = 33;
const HEAD_SHIFT: u32 = 40;

/// The bits of the state for a label's first bytes.
fn head_bits(head: [u8; HEAD], heads: usize) -> u64 {
    let [a, b, c] = head.map(u64::from);
    (heads as u64) << HEADS | (a | b << 8 | c << 16) << HEAD_SHIFT
}

/// The nodes of the build, for keys `K`, locks `L` and `A` characters.
pub struct PaperNodes<K: ?Sized, L, const A: usize>(PhantomData<fn(&K, L)>);

impl<K: PatriciaKey + ?Sized, L: NodeLock, const A: usize> PaperNodes<K, L, A>
where
    Alphabet<A>: AlphabetSize,
{
    const NODE: NodeLayout = NodeLayout {
        kind: "node",
        size: size_of::<PaperNode<L, A>>(),
        align: align_of::<PaperNode<L, A>>(),
        search: &[
            Field::new("lock", 0, size_of::<L>()),
            Field::new("state", offset_of!(PaperNode<L, A>, state), size_of::<AtomicU64>()),
        ],
        found: &[
            Field::new("lock", 0, size_of::<L>()),
            Field::new("state", offset_of!(PaperNode<L, A>, state), size_of::<AtomicU64>()),
            Field::new("value", offset_of!(PaperNode<L, A>, value), size_of::<AtomicU64>()),
        ],
    };

    const LABEL: NodeLayout = NodeLayout {
        kind: "label",
        size: Self::HEADER,
        align: 8,
        search: &[],
        found: &[Field::new("length", 0, Self::HEADER)],
    };

    /// The bytes before those of a label.
    const HEADER: usize = if K::FIXED.is_some() { 1 } else { 8 };

    #[inline(always)]
    fn at(node: Node<'_, Self>) -> &PaperNode<L, A> {
        // SAFETY: `Node::new`: it is an initialised node of this build, not reclaimed during `'g`.
        // Its fields are atomics or locks.
        unsafe { &*node.object().cast() }
    }

    #[inline(always)]
    fn state(node: Node<'_, Self>) -> u64 {
        Self::at(node).state.load(Ordering::Relaxed) // Relaxed: sections validate the lock
    }

    /// The bytes of a label's object, and where they begin in keys that are byte strings.
    ///
    /// # Safety
    /// The object is an initialised label, not reclaimed during `'g`.
    #[inline]
    unsafe fn text<'g>(object: NonNull<u8>) -> (&'g [u8], Option<usize>) {
        // SAFETY: `write_label` has written header and bytes before the object was published; they
        // never change.
        unsafe {
            let object = touch(object.as_ptr());
            let (start, len) = if K::FIXED.is_some() {
                (None, usize::from(object.read()))
            } else {
                let [start, len] = object.cast::<[u32; 2]>().read();
                (Some(start as usize), len as usize)
            };
            (std::slice::from_raw_parts(object.add(Self::HEADER), len), start)
        }
    }

    /// The memory of a label.
    ///
    /// # Safety
    /// As for `text`.
    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract.
        let (text, _) = unsafe { Self::text(object) };
        (object, Self::HEADER + text.len())
    }

    /// Makes the label that ends before character `end` of a path, whole if `whole`.
    fn make_label<'m, P: Placement>(
        memory: &'m PaperMemory<L, P, A>,
        path: Path<'_>,
        (from, end): (u32, u32),
        whole: bool,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let bits = Self::BITS;
        let whole = whole && K::FIXED.is_none();
        let (start, len) = label_bytes(bits, if whole { 0 } else { from }, end);
        let mut head = [0; HEAD];
        let heads = if K::FIXED.is_some() { len.min(HEAD) } else { 0 };
        let mut object = None;
        if len > heads {
            let made = memory.labels.alloc(Self::HEADER + len - heads, guard)?;
            // SAFETY: the object is this thread's alone, has a header and `len - heads` bytes, and
            // is aligned to 8 bytes.
            let text = unsafe {
                if K::FIXED.is_some() {
                    made.write((len - heads) as u8);
                } else {
                    made.cast::<[u32; 2]>().write([start as u32, len as u32]);
                }
                let text = made.add(Self::HEADER);
                text.write_bytes(0, len - heads);
                std::slice::from_raw_parts_mut(text.as_ptr(), len - heads)
            };
            path.write(bits, text, start + heads, end);
            object = Some(made);
        }
        // The head ends where the object begins, or where the label ends.
        let head_end = if len > heads { ((start + heads) * 8) as u32 / bits } else { end };
        path.write(bits, &mut head[..heads], start, head_end);
        // SAFETY: the object is initialised, and this thread's alone.
        Ok(unsafe { Draft::new(memory, Some(Made::Label(head, heads, object))) })
    }

    fn make<'m, P: Placement>(
        memory: &'m PaperMemory<L, P, A>,
        place: Place<'_>,
        end: u32,
        value: Option<u64>,
        children: &[(u32, NonNull<u8>)],
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let path = Path { key: place.key, digit: place.digit, label: None };
        let label = Self::make_label(memory, path, (place.from, end), value.is_some(), guard)?;
        let Some(Made::Label(head, heads, object)) = label.made() else {
            unreachable!("`make_label` makes a label")
        };
        let entry = if value.is_some() { ENTRY } else { 0 };
        let state =
            u64::from(end) | (CHILD * children.len() as u64) | entry | head_bits(head, heads);
        let child = |digit| {
            let of_digit = children.iter().find(|(of, _)| *of as usize == digit);
            Slot::new(of_digit.map_or(std::ptr::null_mut(), |(_, child)| child.as_ptr()))
        };
        let node = PaperNode {
            lock: L::default(),
            label: AtomicPtr::new(object.map_or(std::ptr::null_mut(), NonNull::as_ptr)),
            value: AtomicU64::new(value.unwrap_or(0)),
            state: AtomicU64::new(state),
            next: std::array::from_fn(child),
        };
        let node = memory.nodes.alloc(node, guard)?;
        label.keep();
        // SAFETY: the node is initialised, has the label, and both are this thread's alone.
        Ok(unsafe { Draft::new(memory, Some(Made::Node(node.cast()))) })
    }
}

/// The memory of nodes and labels.
pub struct PaperMemory<L: Send + Sync + 'static, P: Placement, const A: usize> {
    nodes: Pool<PaperNode<L, A>, P>,
    labels: Blobs<P>,
}

impl<L: Send + Sync + 'static, P: Placement, const A: usize> Memory for PaperMemory<L, P, A> {
    fn stats(&self) -> Vec<PoolStats> {
        [self.nodes.stats(), self.labels.stats()].concat()
    }
    fn settle(&mut self) {
        self.nodes.settle();
        self.labels.settle();
    }
    fn shrink(&self) -> usize {
        self.nodes.shrink() + self.labels.shrink()
    }
}

// SAFETY: `make` initialises nodes before it returns their words. A slot stores words that the
// algorithm has from `make`, as their memory has been kept.
unsafe impl<K: PatriciaKey + ?Sized, L: NodeLock, const A: usize> Nodes for PaperNodes<K, L, A>
where
    Alphabet<A>: AlphabetSize,
{
    type Key = K;
    type Lock = L;
    type Memory<P: Placement> = PaperMemory<L, P, A>;

    const BITS: u32 = <Alphabet<A> as AlphabetSize>::BITS;
    const SKIPS: bool = false;
    const IN_PLACE: bool = true;
    const OBJECTS: &'static [NodeLayout] = &[Self::NODE, Self::LABEL];

    fn memory<P: Placement>(frame: &Frame) -> PaperMemory<L, P, A> {
        let labels = Blobs::new(Self::LABEL.kind, &frame.config, &frame.domain, Self::extent);
        PaperMemory { nodes: frame.nodes(&Self::NODE), labels }
    }

    #[inline(always)]
    fn lock(node: Node<'_, Self>) -> &L {
        &Self::at(node).lock
    }

    #[inline(always)]
    fn end(node: Node<'_, Self>) -> u32 {
        (Self::state(node) & END) as u32
    }

    #[inline(always)]
    fn value(node: Node<'_, Self>) -> Option<u64> {
        let has_entry = Self::state(node) & ENTRY != 0;
        has_entry.then(|| Self::at(node).value.load(Ordering::Relaxed)) // Relaxed: as the state
    }

    fn has_key(_node: Node<'_, Self>, _key: &[u8]) -> bool {
        unreachable!("lookups compare labels")
    }

    #[inline(always)]
    fn slot(node: Node<'_, Self>, digit: u32) -> Option<&Slot> {
        Self::at(node).next.get(digit as usize)
    }

    #[inline]
    fn child<const DOWN: bool>(node: Node<'_, Self>, digit: i32) -> Option<(u32, Node<'_, Self>)> {
        let next = &Self::at(node).next;
        // SAFETY: the slot is in a node that the caller has found under a guard of `'g`.
        let child = |at: i32| unsafe { next[at as usize].load() }.map(|child| (at as u32, child));
        if DOWN {
            (0..=digit.min(A as i32 - 1)).rev().find_map(child)
        } else {
            (digit.max(0)..A as i32).find_map(child)
        }
    }

    #[inline]
    fn children(node: Node<'_, Self>) -> usize {
        (Self::state(node) >> CHILDREN & CHILD_BITS).min(3) as usize
    }

    #[inline]
    fn label(node: Node<'_, Self>, from: u32) -> Label<'_> {
        let state = Self::state(node);
        let head = [0, 8, 16].map(|byte| (state >> (HEAD_SHIFT + byte)) as u8);
        let mut label = Label {
            start: byte_of(Self::BITS, from),
            head,
            heads: (state >> HEADS & 3) as usize,
            tail: &[],
        };
        // Acquire: the object is initialised. It is retired to the domain, as nodes are.
        if let Some(object) = NonNull::new(Self::at(node).label.load(Ordering::Acquire)) {
            // SAFETY: I4: the object was in a node that was found under a guard of `'g`.
            let (text, start) = unsafe { Self::text(object) };
            (label.tail, label.start) = (text, start.unwrap_or(label.start));
        }
        label
    }

    #[inline]
    fn keeps_label(node: Node<'_, Self>) -> bool {
        K::FIXED.is_none() && Self::state(node) & ENTRY != 0
    }

    #[inline]
    fn key(node: Node<'_, Self>) -> Option<KeyOf<'_, Self>> {
        K::FIXED.is_none().then(|| K::of_bytes(Self::label(node, 0).tail))
    }

    #[inline]
    fn leaf<'m, P: Placement>(
        memory: &'m PaperMemory<L, P, A>,
        place: Place<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let end = chars(Self::BITS, place.key.len());
        Self::make(memory, place, end, Some(value), &[], guard)
    }

    fn fork<'m, P: Placement>(
        memory: &'m PaperMemory<L, P, A>,
        place: Place<'_>,
        end: u32,
        value: Option<u64>,
        children: &[(u32, NonNull<u8>)],
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        Self::make(memory, place, end, value, children, guard)
    }

    fn prepare<'m, P: Placement>(
        memory: &'m PaperMemory<L, P, A>,
        node: Node<'_, Self>,
        change: Change,
        place: Place<'_>,
        guard: &Guard,
    ) -> Result<Draft<'m, Self, P>, AllocError> {
        let end = Self::end(node);
        let (label, whole) = match change {
            Change::Entry(_) if K::FIXED.is_none() => (None, true),
            // The label's bytes are at their positions, wherever it begins.
            Change::Label(from) => (Some(Self::label(node, from)), false),
            // SAFETY: there is no object.
            _ => return Ok(unsafe { Draft::new(memory, None) }),
        };
        let path = Path { key: place.key, digit: place.digit, label };
        Self::make_label(memory, path, (place.from, end), whole, guard)
    }

    #[inline]
    unsafe fn change(node: Node<'_, Self>, change: Change, made: Option<Made>) -> Option<Made> {
        let (at, mut state) = (Self::at(node), Self::state(node));
        match change {
            Change::Child(digit, child) => {
                at.next[digit as usize].store(Some(child));
                state += CHILD;
            }
            Change::NoChild(digit) => {
                at.next[digit as usize].store(None);
                state -= CHILD;
            }
            Change::Entry(value) => {
                at.value.store(value, Ordering::Relaxed); // Relaxed: published by unlocking
                state |= ENTRY;
            }
            Change::NoEntry => state &= !ENTRY,
            Change::Label(_) => {}
        }
        let mut old = None;
        if let Some(Made::Label(head, heads, object)) = made {
            // Relaxed: we own the lock.
            let before = NonNull::new(at.label.load(Ordering::Relaxed));
            old = before.map(|before| Made::Label([0; HEAD], 0, Some(before)));
            // Release: sections that load the pointer read the object.
            at.label.store(object.map_or(std::ptr::null_mut(), NonNull::as_ptr), Ordering::Release);
            state = state & (ENTRY | (ENTRY - 1)) | head_bits(head, heads);
        }
        at.state.store(state, Ordering::Relaxed); // Relaxed: published by unlocking
        old
    }

    #[inline(always)]
    unsafe fn set_value(node: Node<'_, Self>, value: u64) {
        Self::at(node).value.store(value, Ordering::Relaxed); // Relaxed: published by unlocking
    }

    unsafe fn discard<P: Placement>(memory: &PaperMemory<L, P, A>, made: Made) {
        // SAFETY: the caller's promise; a node's label is its own, and has not been linked either.
        unsafe {
            match made {
                Made::Node(node) => {
                    let label =
                        node.cast::<PaperNode<L, A>>().as_ref().label.load(Ordering::Relaxed);
                    if let Some(label) = NonNull::new(label) {
                        memory.labels.free(label);
                    }
                    memory.nodes.free(node.cast());
                }
                Made::Label(_, _, Some(label)) => memory.labels.free(label),
                Made::Label(..) => {}
            }
        }
    }

    unsafe fn retire<P: Placement>(memory: &PaperMemory<L, P, A>, made: Made, guard: &Guard) {
        // SAFETY: the caller's promise; an unlinked node's label does not change any more (I3).
        unsafe {
            match made {
                Made::Node(node) => {
                    let label =
                        node.cast::<PaperNode<L, A>>().as_ref().label.load(Ordering::Relaxed);
                    if let Some(label) = NonNull::new(label) {
                        memory.labels.retire(label, guard);
                    }
                    memory.nodes.retire(node.cast(), guard);
                }
                Made::Label(_, _, Some(label)) => memory.labels.retire(label, guard),
                Made::Label(..) => {}
            }
        }
    }

    fn check(node: Node<'_, Self>, from: u32, see: &mut See<'_>) -> Result<(), Violation> {
        see(Placed::new(&Self::NODE, node.object().addr()));
        let at = Self::at(node);
        if let Some(object) = NonNull::new(at.label.load(Ordering::Relaxed)) {
            // SAFETY: the label of a linked node is initialised.
            let (_, bytes) = unsafe { Self::extent(object) };
            see(Placed { layout: &Self::LABEL, address: object.addr().get(), before: 0, bytes });
        }
        let (end, label) = (Self::end(node), Self::label(node, from));
        let linked = at.next.iter().filter(|slot| !slot.word().is_null()).count();
        let counted = (Self::state(node) >> CHILDREN & CHILD_BITS) as usize;
        if linked != counted {
            return violation("I5", format!("{linked} children, {counted} counted"));
        }
        // A byte string that was an entry may still be whole.
        let is_whole = K::FIXED.is_none() && label.len() == bytes_to(Self::BITS, end);
        let right = label_bytes(Self::BITS, from, end).1;
        if !is_whole && (label.len() != right || Self::keeps_label(node)) {
            return violation(
                "I2",
                format!("label of {} bytes, from {from} to {end}", label.len()),
            );
        }
        Ok(())
    }

    fn reads(node: Node<'_, Self>, digit: Option<u32>) -> impl Iterator<Item = Read> {
        let object = node.object();
        let label = NonNull::new(Self::at(node).label.load(Ordering::Relaxed)).map(|label| {
            (&Self::LABEL as &'static NodeLayout).read(label.as_ptr(), 0, Self::HEADER, Why::Step)
        });
        let slot = digit.map(|digit| {
            let offset = offset_of!(PaperNode<L, A>, next) + size_of::<Slot>() * digit as usize;
            (&Self::NODE as &'static NodeLayout).read(object, offset, size_of::<Slot>(), Why::Step)
        });
        let (fields, why) = match digit {
            Some(_) => ((&Self::NODE as &'static NodeLayout).search, Why::Step),
            None => ((&Self::NODE as &'static NodeLayout).found, Why::Found),
        };
        let fields = fields.iter().map(move |field| {
            (&Self::NODE as &'static NodeLayout).read(object, field.offset, field.bytes, why)
        });
        label.into_iter().chain(fields).chain(slot)
    }
}

//! Nodes of the index: several levels of a trie of bits in one object.
//!
//! # Layout
//! ```text
//! 0   lock
//! 8   children, windows, height, unused
//! 12  the places of the windows' bits in a path
//! 16  the offset of each window
//! 32  the bits of each window that the node tests
//! 64  for each child, those of these bits that are set on its path; rounded up to 8 paths
//! ..  the children
//! ```
//! All but the lock and the children is written before the node is linked, and never changes (I1).

use super::block::LINE;
use super::key::{Bit, BlockKey};
use super::search::Search;
use super::word::{Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::model::touch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The most children of a node.
pub(super) const MAX_CHILDREN: usize = if cfg!(silvics_shuttle) { 3 } else { 32 };
/// The most bits that a node tests. So no path has all bits of a word, as the paths have that fill
/// up the array.
pub(super) const MAX_BITS: usize = 31;
/// The most windows that a node takes its bits from.
pub(super) const MAX_WINDOWS: usize = 4;
/// Paths are read eight at a time.
pub(super) const GROUP: usize = 8;

/// The fields before the paths.
#[repr(C)]
pub(super) struct Head {
    lock: VersionLock,
    children: u8,
    windows: u8,
    height: u8,
    unused: u8,
    shifts: [u8; MAX_WINDOWS],
    offsets: [u32; MAX_WINDOWS],
    masks: [u64; MAX_WINDOWS],
}

const PATHS: usize = size_of::<Head>();
const _: () = assert!(PATHS == 64 || cfg!(any(silvics_loom, silvics_shuttle)));

/// The layout of the smallest node.
pub(super) const NODE: NodeLayout = NodeLayout {
    kind: "node",
    size: bytes(2),
    align: 8,
    search: &[
        Field::new("windows", 8, PATHS - 8),
        Field::new("paths", PATHS, 4 * GROUP),
        Field::links("children", PATHS + 4 * GROUP, 2),
    ],
    found: &[],
};

/// The offset of the children of a node with `children`.
const fn children_at(children: usize) -> usize {
    PATHS + 4 * children.next_multiple_of(GROUP)
}

/// The bytes of a node with `children`: whole lines, so that it begins at one.
pub(super) const fn bytes(children: usize) -> usize {
    (children_at(children) + size_of::<Place>() * children).next_multiple_of(LINE)
}

/// The windows of a node.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    count: u8,
    shifts: [u8; MAX_WINDOWS],
    offsets: [u32; MAX_WINDOWS],
    masks: [u64; MAX_WINDOWS],
}

impl Windows {
    /// The windows of some bits in ascending order, unless they are too many for a node.
    pub(super) fn of<K: BlockKey + ?Sized>(bits: &[Bit]) -> Option<Self> {
        if bits.len() > MAX_BITS {
            return None;
        }
        let (mut windows, mut count) = (Self::default(), 0);
        for &bit in bits {
            if count == 0 || bit >= 8 * windows.offsets[count - 1] + 64 {
                if count == K::WINDOWS {
                    return None;
                }
                windows.offsets[count] = K::window_of(bit);
                count += 1;
            }
            windows.masks[count - 1] |= 1 << (63 - (bit - 8 * windows.offsets[count - 1]));
        }
        let mut left = bits.len() as u32;
        for at in 0..count {
            left -= windows.masks[at].count_ones();
            windows.shifts[at] = left as u8;
        }
        windows.count = count as u8;
        Some(windows)
    }
}

/// A node that is not reclaimed during `'g`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeRef<'g> {
    node: NonNull<u8>,
    marker: PhantomData<&'g Head>,
}

impl<'g> NodeRef<'g> {
    /// # Safety
    /// `node` leads to a node that is initialised and not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn from_ptr(node: NonNull<u8>) -> Self {
        Self { node, marker: PhantomData }
    }

    /// Initialises a node.
    ///
    /// # Safety
    /// `node` has `bytes(children.len())` bytes, aligned to 8, which nobody else has. There are 2
    /// to [`MAX_CHILDREN`] children.
    pub(super) unsafe fn init(
        node: NonNull<u8>,
        windows: Windows,
        height: u8,
        children: &[(u32, Word)],
    ) {
        let len = children.len();
        debug_assert!((2..=MAX_CHILDREN).contains(&len));
        let Windows { count, shifts, offsets, masks } = windows;
        let (children_count, lock, unused) = (len as u8, VersionLock::new(), 0);
        let head = Head {
            lock,
            children: children_count,
            windows: count,
            height,
            unused,
            shifts,
            offsets,
            masks,
        };
        // SAFETY: our contract: there is room for the head, `len` paths rounded up, and `len`
        // children.
        unsafe {
            node.cast::<Head>().write(head);
            let paths = node.byte_add(PATHS).cast::<u32>();
            let places = node.byte_add(children_at(len)).cast::<Place>();
            for at in 0..len.next_multiple_of(GROUP) {
                paths.add(at).write(children.get(at).map_or(u32::MAX, |child| child.0));
            }
            for (at, (_, child)) in children.iter().enumerate() {
                places.add(at).write(Place::new(*child));
            }
        }
    }

    /// The start of a node's memory, and its bytes.
    ///
    /// # Safety
    /// `node` leads to an initialised node.
    pub(super) unsafe fn extent(node: NonNull<u8>) -> (NonNull<u8>, usize) {
        // SAFETY: our contract.
        let len = unsafe { Self::from_ptr(node) }.len();
        (node, bytes(len))
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: I1: a node begins with its head, and is not reclaimed during `'g` (contract of
        // `from_ptr`).
        unsafe { &*touch(self.node.as_ptr()).cast::<Head>() }
    }

    pub(super) fn as_ptr(self) -> NonNull<u8> {
        self.node
    }

    /// The number of children.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        usize::from(self.head().children)
    }

    /// One more than the height of the highest child, or more. Blocks have height 0.
    pub(super) fn height(self) -> u8 {
        self.head().height
    }

    pub(super) fn lock(self) -> &'g VersionLock {
        &self.head().lock
    }

    /// The most significant bit that the node tests.
    #[inline]
    pub(super) fn first_bit(self) -> Bit {
        let head = self.head();
        8 * head.offsets[0] + head.masks[0].leading_zeros()
    }

    /// All bits that the node tests, in ascending order.
    pub(super) fn bits(self) -> impl Iterator<Item = Bit> {
        let head = self.head();
        let windows = head.offsets.iter().zip(&head.masks).take(usize::from(head.windows));
        windows.flat_map(|(offset, mask)| {
            let set = (0..64).filter(move |at| mask >> (63 - at) & 1 == 1);
            set.map(|at| 8 * *offset + at)
        })
    }

    /// The bits that are set on the path to a child.
    pub(super) fn path(self, at: usize) -> u32 {
        assert!(at < self.len());
        // SAFETY: I1: a node has a path for each child.
        unsafe { self.paths().add(at).read() }
    }

    #[inline(always)]
    fn paths(self) -> *const u32 {
        self.node.as_ptr().wrapping_byte_add(PATHS).cast()
    }

    /// The place of a child.
    #[inline(always)]
    pub(super) fn child(self, at: usize) -> &'g Place {
        let len = self.len();
        assert!(at < len);
        // SAFETY: I1: a node has `len` children, and is not reclaimed during `'g`.
        unsafe { self.node.byte_add(children_at(len)).cast::<Place>().add(at).as_ref() }
    }

    /// The child that a key leads to.
    #[inline(always)]
    pub(super) fn find<K: BlockKey + ?Sized>(
        self,
        probe: &K::Probe<'_>,
        search: impl Search,
    ) -> usize {
        let head = self.head();
        let mut bits = 0;
        for at in 0..usize::from(head.windows).min(K::WINDOWS) {
            let window = K::window(probe, head.offsets[at]);
            bits |= search.gather(window, head.masks[at]) << (head.shifts[at] & 63);
        }
        let groups = self.len().div_ceil(GROUP);
        let (mut within, mut group) = (0, groups);
        while within == 0 && group > 0 {
            group -= 1;
            // SAFETY: I1: a node has `groups` groups of paths.
            within = unsafe { search.within(self.paths().add(GROUP * group), bits as u32) };
        }
        // The first path has no bit, so some path is within.
        GROUP * group + (31 - (within | 1).leading_zeros() as usize)
    }

    /// The first and last child whose paths agree with that of child `at` in all bits before `bit`.
    /// They are the subtree that leaves this path at `bit`.
    #[inline]
    pub(super) fn subtree(self, at: usize, bit: Bit) -> (usize, usize) {
        let count = self.bits().count();
        let before = self.bits().take_while(|other| *other < bit).count();
        let ignored = (1u64 << (count - before)) - 1;
        let agrees = |other: usize| u64::from(self.path(other) ^ self.path(at)) & !ignored == 0;
        let first = (0..at).rev().take_while(|other| agrees(*other)).last().unwrap_or(at);
        let last = (at + 1..self.len()).take_while(|other| agrees(*other)).last().unwrap_or(at);
        (first, last)
    }

    /// The reads of a search that goes on to child `at`.
    pub(super) fn passed(self, at: usize) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &NODE;
        let node = self.node.as_ptr().cast_const();
        let (len, read) =
            (self.len(), move |offset, bytes| layout.read(node, offset, bytes, Why::Step));
        let groups = len.div_ceil(GROUP) - at / GROUP;
        let paths = PATHS + 4 * GROUP * (at / GROUP);
        let child = children_at(len) + size_of::<Place>() * at;
        [read(8, PATHS - 8), read(paths, 4 * GROUP * groups), read(child, 8)].into_iter()
    }

    pub(super) fn placed(self) -> Placed {
        let address = self.node.as_ptr().addr();
        Placed { layout: &NODE, address, before: 0, bytes: bytes(self.len()) }
    }
}

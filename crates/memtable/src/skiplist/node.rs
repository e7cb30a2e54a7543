//! Nodes, and every access to their links.

use crate::entry::Entry;
use silvics_pool::AllocError;
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::{AtomicTagged, Tagged, addressable};
use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::Arena;

/// The tallest tower (RocksDB's `kMaxHeight` of a memtable).
pub(super) const MAX_HEIGHT: usize = 12;

/// One of this many nodes of a level is also in the next one (RocksDB's branching factor).
pub(super) const BRANCHING: u64 = 4;

/// The bytes of a link.
const LINK: usize = 8;
const _: () = assert!(size_of::<AtomicTagged<u8>>() == LINK && MAX_HEIGHT < 1 << 16);

/// The place of an entry relative to its node. The trait is sealed.
///
/// The tower of a node lies below its address, so that the link at a level has a fixed offset.
/// ```text
/// Inline         … [link 1][link 0] | entry
/// BehindPointer  … [link 1][link 0] | address of the entry        entry, allocated for itself
/// ```
pub trait Placing: private::Sealed + Send + Sync + 'static {
    /// Allocates a node with a tower of `height` links and room for an entry of `bytes` bytes.
    #[doc(hidden)]
    fn allocate(arena: &impl Arena, height: usize, bytes: usize) -> Result<Place, AllocError>;

    /// The entry of a node.
    ///
    /// # Safety
    /// S1: the node is initialised, and its arena lives during `'l`.
    #[doc(hidden)]
    unsafe fn entry<'l>(node: NonNull<u8>) -> Entry<'l>;
}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Inline {}
    impl Sealed for super::BehindPointer {}
}

/// The entry follows the links, in one allocation.
#[derive(Debug)]
pub struct Inline;

/// The node has the address of its entry, which is an allocation of its own. It exists for
/// comparison (`reproduce memtable/2.1`).
#[derive(Debug)]
pub struct BehindPointer;

/// Memory for an entry, with a node that is not linked yet.
#[derive(Debug)]
pub struct Place {
    pub(super) node: NonNull<u8>,
    entry: NonNull<u8>,
}

// SAFETY: a place is memory that belongs to its owner alone.
unsafe impl Send for Place {}

impl Place {
    /// The address at which the entry is to be written.
    #[inline(always)]
    pub fn entry(&self) -> NonNull<u8> {
        self.entry
    }

    /// The place whose [`Place::entry`] is this address, for callers that keep only the address.
    ///
    /// # Safety
    /// The address came from a place of an [`InlineSkipList`](super::InlineSkipList), which was not
    /// inserted.
    #[inline(always)]
    pub unsafe fn of_entry(entry: NonNull<u8>) -> Self {
        Self { node: entry, entry }
    }

    /// The height that was drawn when the node was allocated. It is kept in the lowest link until
    /// the node is linked.
    #[inline(always)]
    pub(super) fn height(&self) -> usize {
        // SAFETY: S1: `allocate` has initialised the lowest link, and no other thread has the node.
        let link = unsafe { link_of(self.node, 0) };
        link.load(Ordering::Relaxed).hint() as usize
    }
}

/// Allocates a tower and `body` bytes behind it, and initialises the tower.
fn tower(arena: &impl Arena, height: usize, body: usize) -> Result<NonNull<u8>, AllocError> {
    let too_large = AllocError::System { requested: body };
    let bytes = body.checked_add(LINK * height).ok_or(too_large)?;
    let layout = Layout::from_size_align(bytes, LINK).map_err(|_| too_large)?;
    let start = arena.alloc(layout)?;
    if !addressable(start.as_ptr()) || !addressable(start.as_ptr().wrapping_add(LINK * height)) {
        return Err(AllocError::Address);
    }
    // SAFETY: the arena has given `bytes` bytes, aligned, to this thread alone: first the links,
    // from the top down to level 0, then the body.
    unsafe {
        for level in 0..height {
            let link = start.cast::<AtomicTagged<u8>>().add(level);
            link.write(AtomicTagged::new(Tagged::null_with_hint(height as u16)));
        }
        Ok(start.add(LINK * height))
    }
}

impl Placing for Inline {
    fn allocate(arena: &impl Arena, height: usize, bytes: usize) -> Result<Place, AllocError> {
        let node = tower(arena, height, bytes)?;
        Ok(Place { node, entry: node })
    }

    #[inline(always)]
    unsafe fn entry<'l>(node: NonNull<u8>) -> Entry<'l> {
        // SAFETY: S1: the entry begins where the links end.
        unsafe { Entry::from_raw(node) }
    }
}

impl Placing for BehindPointer {
    fn allocate(arena: &impl Arena, height: usize, bytes: usize) -> Result<Place, AllocError> {
        let layout = Layout::from_size_align(bytes, 1);
        let layout = layout.map_err(|_| AllocError::System { requested: bytes })?;
        let entry = arena.alloc(layout)?;
        let node = tower(arena, height, size_of::<NonNull<u8>>())?;
        // SAFETY: `tower` has left room for a pointer at `node`, aligned like a link.
        unsafe { node.cast::<NonNull<u8>>().write(entry) };
        Ok(Place { node, entry })
    }

    #[inline(always)]
    unsafe fn entry<'l>(node: NonNull<u8>) -> Entry<'l> {
        // SAFETY: S1: `allocate` has written the address of the entry.
        unsafe { Entry::from_raw(node.cast::<NonNull<u8>>().read()) }
    }
}

/// The link of a node at a level.
///
/// # Safety
/// S1: the tower of the node has this level, and its arena lives during `'l`.
#[inline(always)]
unsafe fn link_of<'l>(node: NonNull<u8>, level: usize) -> &'l AtomicTagged<u8> {
    // SAFETY: S1: the link lies `level + 1` words below the node, within its allocation.
    unsafe { node.cast::<AtomicTagged<u8>>().sub(level + 1).as_ref() }
}

/// The tower from which all searches start.
#[repr(align(64))]
pub(super) struct Head([AtomicTagged<u8>; MAX_HEIGHT]);

impl Head {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicTagged::new(Tagged::null())))
    }

    /// The head as a node. It has no entry.
    #[inline(always)]
    pub(super) fn node(&self) -> Node<'_> {
        let end = NonNull::from(&self.0).cast::<AtomicTagged<u8>>();
        // SAFETY: the address behind the array; its links lie below.
        Node { at: unsafe { end.add(MAX_HEIGHT) }.cast(), list: PhantomData }
    }
}

/// A node that is linked, or the head.
///
/// S1: it is initialised, and it lives during `'l`. A search that stands at a node on a level has
/// come to it by a link of that level or of a higher one, so its tower has the level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Node<'l> {
    pub(super) at: NonNull<u8>,
    list: PhantomData<&'l ()>,
}

impl<'l> Node<'l> {
    /// # Safety
    /// S1: the node is initialised, and it lives during `'l`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(at: NonNull<u8>) -> Self {
        Self { at, list: PhantomData }
    }

    #[inline(always)]
    fn link(self, level: usize) -> &'l AtomicTagged<u8> {
        // SAFETY: S1.
        unsafe { link_of(self.at, level) }
    }

    /// The link at a level. A node that it leads to is initialised.
    #[inline(always)]
    pub(super) fn next(self, level: usize) -> Link<'l> {
        Link { word: self.link(level).load(Ordering::Acquire), list: PhantomData }
    }

    /// Sets a link of a node that no other thread can reach by this level.
    #[inline(always)]
    pub(super) fn set_next_unshared(self, level: usize, link: Link<'_>) {
        self.link(level).store(link.word, Ordering::Relaxed);
    }

    /// Publishes a node at a level. No other thread writes this link meanwhile.
    #[inline(always)]
    pub(super) fn set_next(self, level: usize, link: Link<'_>) {
        self.link(level).store(link.word, Ordering::Release);
    }

    /// Publishes a node at a level, unless the link is no longer `from`.
    #[inline(always)]
    pub(super) fn try_link(self, level: usize, from: Link<'_>, to: Link<'_>) -> bool {
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        self.link(level).compare_exchange(from.word, to.word, success, failure).is_ok()
    }

    /// The address of a link, to be prefetched.
    #[inline(always)]
    pub(super) fn line_of(self, level: usize) -> *const u8 {
        self.at.as_ptr().wrapping_sub(LINK * (level + 1))
    }
}

/// The word of a link: a node and the hint on its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link<'l> {
    word: Tagged<u8>,
    list: PhantomData<&'l ()>,
}

impl<'l> Link<'l> {
    /// The end of a level.
    pub(super) const END: Self = Self { word: Tagged::null(), list: PhantomData };

    #[inline(always)]
    pub(super) fn to(node: Node<'l>, hint: u16) -> Self {
        Self { word: Tagged::new(node.at.as_ptr()).with_hint(hint), list: PhantomData }
    }

    #[inline(always)]
    pub(super) fn hint(self) -> u16 {
        self.word.hint()
    }

    #[inline(always)]
    pub(super) fn node(self) -> Option<Node<'l>> {
        NonNull::new(self.word.aligned::<LINK>()).map(|at| Node { at, list: PhantomData })
    }
}

//! Base nodes and route nodes.

use super::key::CaKey;
use super::word::{Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::mem::offset_of;

/// A base node: a container under a lock.
pub(super) struct Base {
    pub(super) lock: VersionLock,
    /// The root of the container, or nothing if it is empty.
    pub(super) container: Place,
    /// The contention that its lock has seen. It changes under the lock.
    statistics: AtomicI64,
    /// The writes since it was made. They are counted under the lock.
    writes: AtomicU64,
}

/// The bytes of a base node: it has a line of its own.
pub(super) const BASE_BYTES: usize = size_of::<Base>().next_multiple_of(64);

/// The layout of a base node.
pub(super) const BASE: NodeLayout = NodeLayout {
    kind: "base",
    size: BASE_BYTES,
    align: 8,
    search: &[
        Field::new("lock", offset_of!(Base, lock), 8),
        Field::links("container", offset_of!(Base, container), 1),
    ],
    found: &[],
};

impl Base {
    pub(super) fn new(container: Word) -> Self {
        Self {
            lock: VersionLock::new(),
            container: Place::new(container),
            statistics: AtomicI64::new(0),
            writes: AtomicU64::new(0),
        }
    }

    /// The contention that the lock has seen.
    pub(super) fn statistics(&self) -> i64 {
        self.statistics.load(Ordering::Relaxed) // Relaxed: it changes under the lock
    }

    pub(super) fn set_statistics(&self, statistics: i64) {
        self.statistics.store(statistics, Ordering::Relaxed); // Relaxed: it changes under the lock
    }

    /// The writes that were counted.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed) // Relaxed: it changes under the lock
    }

    /// Counts a write, and returns the number of those before it.
    pub(super) fn count_write(&self) -> u64 {
        let writes = self.writes();
        self.writes.store(writes.wrapping_add(1), Ordering::Relaxed);
        writes
    }

    /// The bytes that a search reads.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = Read> {
        let (layout, base): (&'static NodeLayout, _) =
            (&BASE, std::ptr::from_ref(self).cast::<u8>());
        layout.search.iter().map(move |of| layout.read(base, of.offset, of.bytes, Why::Step))
    }

    pub(super) fn placed(&self) -> Placed {
        Placed::new(&BASE, std::ptr::from_ref(self).addr())
    }
}

/// A base node that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(super) struct BaseRef<'g> {
    word: Word,
    marker: PhantomData<&'g Base>,
}

impl<'g> BaseRef<'g> {
    /// # Safety
    /// The word leads to a base node that is initialised and not reclaimed during `'g`.
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    pub(super) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    pub(super) fn get(self) -> &'g Base {
        // SAFETY: R1: the contract of `new`.
        unsafe { &*touch(self.word.address()).cast::<Base>() }
    }
}

/// A route node: keys smaller than its bound go left.
pub(super) struct Route<K: CaKey + ?Sized> {
    /// The lock of the children. It is obsolete when the node is no longer linked.
    pub(super) lock: VersionLock,
    pub(super) children: [Place; 2],
    bound: K::Place,
}

/// The layout of a route node of `u64` keys.
pub(super) const ROUTE: NodeLayout = NodeLayout {
    kind: "route",
    size: size_of::<Route<u64>>(),
    align: 8,
    search: &[
        Field::new("bound", offset_of!(Route<u64>, bound), 8),
        Field::links("children", offset_of!(Route<u64>, children), 2),
    ],
    found: &[],
};

impl<K: CaKey + ?Sized> Route<K> {
    pub(super) fn new(left: Word, bound: K::Slot, right: Word) -> Self {
        let children = [Place::new(left), Place::new(right)];
        Self { lock: VersionLock::new(), children, bound: K::place(bound) }
    }
}

/// A route node that is not reclaimed during `'g`.
pub(super) struct RouteRef<'g, K: CaKey + ?Sized> {
    word: Word,
    marker: PhantomData<&'g K>,
}

impl<K: CaKey + ?Sized> Clone for RouteRef<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: CaKey + ?Sized> Copy for RouteRef<'_, K> {}

impl<'g, K: CaKey + ?Sized> RouteRef<'g, K> {
    /// # Safety
    /// The word leads to a route node of such keys that is initialised and not reclaimed during
    /// `'g`.
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    pub(super) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    pub(super) fn get(self) -> &'g Route<K>
    where
        K: 'g,
    {
        // SAFETY: R1: the contract of `new`.
        unsafe { &*touch(self.word.address()).cast::<Route<K>>() }
    }

    #[inline(always)]
    pub(super) fn bound(self) -> K::Slot {
        K::load(&self.get().bound) // it never changes
    }

    #[inline(always)]
    pub(super) fn child(self, right: bool) -> &'g Place
    where
        K: 'g,
    {
        &self.get().children[usize::from(right)]
    }

    /// The bytes that a search reads.
    pub(super) fn passed(self, right: bool) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = &ROUTE;
        let node = self.word.address().cast_const();
        let child = offset_of!(Route<K>, children) + usize::from(right) * size_of::<Place>();
        let bound = layout.read(node, offset_of!(Route<K>, bound), 8, Why::Step);
        [bound, layout.read(node, child, 8, Why::Step)].into_iter()
    }

    pub(super) fn placed(self) -> Placed {
        let (address, bytes) = (self.word.address().addr(), size_of::<Route<K>>());
        Placed { layout: &ROUTE, address, before: 0, bytes }
    }
}

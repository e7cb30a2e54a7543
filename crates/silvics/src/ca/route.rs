//! Base nodes and route nodes. The lock-free tree ([`crate::lfca`]) has route nodes without a
//! lock.

use super::key::Slots;
use super::word::{Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_sync::model::touch;
use silvics_sync::version::{Readers, VersionLock};
use std::marker::PhantomData;
use std::mem::offset_of;

/// A base node: a container under a lock.
pub(crate) struct Base {
    pub(crate) lock: VersionLock,
    /// The readers that have the lock, if they take it.
    pub(crate) readers: Readers,
    /// The root of the container, or nothing if it is empty.
    pub(crate) container: Place,
    /// The contention that its lock has seen. It changes under the lock, which may be shared.
    statistics: AtomicI64,
    /// The writes since it was made. They are counted under the lock.
    writes: AtomicU64,
}

/// The bytes of a base node: it has a line of its own.
pub(crate) const BASE_BYTES: usize = size_of::<Base>().next_multiple_of(64);

/// The layout of a base node.
pub(crate) const BASE: NodeLayout = NodeLayout {
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
    pub(crate) fn new(container: Word) -> Self {
        Self {
            lock: VersionLock::new(),
            readers: Readers::new(),
            container: Place::new(container),
            statistics: AtomicI64::new(0),
            writes: AtomicU64::new(0),
        }
    }

    /// The contention that the lock has seen.
    pub(crate) fn statistics(&self) -> i64 {
        self.statistics.load(Ordering::Relaxed) // Relaxed: it changes under the lock
    }

    pub(crate) fn set_statistics(&self, statistics: i64) {
        self.statistics.store(statistics, Ordering::Relaxed); // Relaxed: it changes under the lock
    }

    /// Changes the statistics under a shared lock. They stay between `most` and its negative.
    pub(super) fn add_statistics(&self, change: i64, most: i64) {
        let add = |old: i64| Some(old.saturating_add(change).clamp(-most, most));
        // Relaxed: they change under the lock. Readers that share it may do so at once.
        let _ = self.statistics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The writes that were counted.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed) // Relaxed: it changes under the lock
    }

    /// Counts a write, and returns the number of those before it.
    pub(crate) fn count_write(&self) -> u64 {
        let writes = self.writes();
        self.writes.store(writes.wrapping_add(1), Ordering::Relaxed);
        writes
    }

    /// The bytes that a search reads.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = Read> {
        let (layout, base): (&'static NodeLayout, _) =
            (&BASE, std::ptr::from_ref(self).cast::<u8>());
        layout.search.iter().map(move |of| layout.read(base, of.offset, of.bytes, Why::Step))
    }

    pub(crate) fn placed(&self) -> Placed {
        Placed::new(&BASE, std::ptr::from_ref(self).addr())
    }
}

/// A base node that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(crate) struct BaseRef<'g> {
    word: Word,
    marker: PhantomData<&'g Base>,
}

impl<'g> BaseRef<'g> {
    /// # Safety
    /// The word leads to a base node that is initialised and not reclaimed during `'g`.
    pub(crate) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    pub(crate) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    pub(crate) fn get(self) -> &'g Base {
        // SAFETY: R1: the contract of `new`.
        unsafe { &*touch(self.word.address()).cast::<Base>() }
    }
}

/// A route node: keys smaller than its bound go left.
pub(crate) struct Route<K: Slots + ?Sized, L = VersionLock> {
    /// The lock of the children. It is obsolete when the node is no longer linked.
    pub(crate) lock: L,
    pub(crate) children: [Place; 2],
    bound: K::Place,
}

/// The layout of a route node of `u64` keys with such a lock.
pub(crate) const fn route_layout<L>() -> NodeLayout {
    NodeLayout {
        kind: "route",
        size: size_of::<Route<u64, L>>(),
        align: 8,
        search: const {
            &[
                Field::new("bound", offset_of!(Route<u64, L>, bound), 8),
                Field::links("children", offset_of!(Route<u64, L>, children), 2),
            ]
        },
        found: &[],
    }
}

/// The layout of a route node of `u64` keys.
pub(crate) const ROUTE: NodeLayout = route_layout::<VersionLock>();

impl<K: Slots + ?Sized, L> Route<K, L> {
    pub(crate) fn new(lock: L, left: Word, bound: K::Slot, right: Word) -> Self {
        let children = [Place::new(left), Place::new(right)];
        Self { lock, children, bound: K::place(bound) }
    }
}

/// A route node has a key and a lock.
type Marker<'g, K, L> = PhantomData<(&'g K, fn(L))>;

/// A route node that is not reclaimed during `'g`.
pub(crate) struct RouteRef<'g, K: Slots + ?Sized, L = VersionLock> {
    word: Word,
    marker: Marker<'g, K, L>,
}

impl<K: Slots + ?Sized, L> Clone for RouteRef<'_, K, L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Slots + ?Sized, L> Copy for RouteRef<'_, K, L> {}

impl<'g, K: Slots + ?Sized, L: 'g> RouteRef<'g, K, L> {
    /// # Safety
    /// The word leads to a route node of such keys, with such a lock, that is initialised and not
    /// reclaimed during `'g`.
    pub(crate) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    pub(crate) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    pub(crate) fn get(self) -> &'g Route<K, L>
    where
        K: 'g,
    {
        // SAFETY: R1: the contract of `new`.
        unsafe { &*touch(self.word.address()).cast::<Route<K, L>>() }
    }

    #[inline(always)]
    pub(crate) fn bound(self) -> K::Slot {
        K::load(&self.get().bound) // it never changes
    }

    #[inline(always)]
    pub(crate) fn child(self, right: bool) -> &'g Place
    where
        K: 'g,
    {
        &self.get().children[usize::from(right)]
    }

    /// The bytes that a search reads.
    pub(crate) fn passed(self, right: bool) -> impl Iterator<Item = Read> {
        let layout: &'static NodeLayout = const { &route_layout::<L>() };
        let node = self.word.address().cast_const();
        let child = offset_of!(Route<K, L>, children) + usize::from(right) * size_of::<Place>();
        let bound = layout.read(node, offset_of!(Route<K, L>, bound), 8, Why::Step);
        [bound, layout.read(node, child, 8, Why::Step)].into_iter()
    }

    pub(crate) fn placed(self) -> Placed {
        let (address, bytes) = (self.word.address().addr(), size_of::<Route<K, L>>());
        Placed { layout: const { &route_layout::<L>() }, address, before: 0, bytes }
    }
}

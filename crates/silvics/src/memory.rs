//! The memory of one kind of objects of one index: allocation, retirement and reclamation.

pub(crate) mod late;

use crate::domain::{Domain, Guard, Reclaim, Retired};
use silvics_pool::{AllocError, BytesAlloc, Config, Placement, Pool, PoolStats, SlotAlloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// The pools of one index, whatever they hold.
pub trait Memory {
    /// The contents of each pool, in the order of [`Objects::OBJECTS`](crate::Objects::OBJECTS).
    fn stats(&self) -> Vec<PoolStats>;
    /// Reclaims every retired object that no guard protects.
    fn settle(&mut self);
    /// See [`OrderedIndex::shrink`](crate::OrderedIndex::shrink).
    fn shrink(&self) -> usize;
    /// Whether there are pools. Makes them before if the caller wants them.
    #[cfg(test)]
    fn has_pools(&self, _make: bool) -> bool {
        true
    }
}

/// Two sets of pools.
impl<A: Memory, B: Memory> Memory for (A, B) {
    fn stats(&self) -> Vec<PoolStats> {
        [self.0.stats(), self.1.stats()].concat()
    }
    fn settle(&mut self) {
        self.0.settle();
        self.1.settle();
    }
    fn shrink(&self) -> usize {
        self.0.shrink() + self.1.shrink()
    }
}

/// The memory of objects of type `T`. It is public only because the builds of trees name it.
pub struct Nodes<T: Send + 'static, P: Placement> {
    slots: Arc<Slots<T, P>>,
    retired: Retired<Slots<T, P>>,
}

struct Slots<T: Send + 'static, P: Placement>(P::Slots<T>);

// SAFETY: any thread may free a slot of an allocator of `P`.
unsafe impl<T: Send + 'static, P: Placement> Reclaim for Slots<T, P> {
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(object.cast()) };
    }
}

impl<T: Send + 'static, P: Placement> Nodes<T, P> {
    pub(crate) fn new(kind: &'static str, config: &Config, domain: &Domain) -> Self {
        const {
            assert!(!std::mem::needs_drop::<T>(), "nodes are freed without being dropped");
            assert!(size_of::<T>() <= Pool::<T>::MAX_SIZE, "a node is too large for slabs");
        };
        let slots = Arc::new(Slots(P::Slots::<T>::new(kind, config)));
        let retired = Retired::new(Arc::clone(&slots), domain.clone(), &config.budget);
        Self { slots, retired }
    }

    /// Allocates a node with `value`, which no other thread can reach yet. If the allocation fails,
    /// it flushes the nodes of this pool that this thread retired, and tries once more.
    #[inline(always)]
    pub(crate) fn alloc(&self, value: T, guard: &Guard) -> Result<NonNull<T>, AllocError> {
        let slot = match self.slots.0.alloc() {
            Ok(slot) => slot,
            Err(_) => self.alloc_after_flush(guard)?,
        };
        // SAFETY: a fresh slot has room for a `T`, and no other thread knows it.
        unsafe { slot.write(value) };
        Ok(slot)
    }

    #[cold]
    fn alloc_after_flush(&self, guard: &Guard) -> Result<NonNull<T>, AllocError> {
        self.retired.flush(guard);
        self.slots.0.alloc()
    }

    /// An empty spare, for an operation that may need a node.
    pub(crate) fn spare(&self) -> Spare<'_, T, P> {
        Spare { nodes: self, node: None }
    }

    /// Frees a node at once.
    ///
    /// # Safety
    /// `alloc` of this pool returned the node, and no other thread ever could reach it, or can
    /// reach it any more.
    pub(crate) unsafe fn free(&self, node: NonNull<T>) {
        // SAFETY: the caller's promise.
        unsafe { self.slots.0.free(node) };
    }

    /// Frees all nodes that can be reached from `root`, unless dropping the pool does so. `links`
    /// returns the nodes that a node leads to.
    ///
    /// # Safety
    /// No other thread can reach the nodes. Each node is of this pool, is not retired, and is
    /// reached by one link.
    pub(crate) unsafe fn free_all<const N: usize>(
        &self,
        root: NonNull<T>,
        links: impl Fn(&T) -> [Option<NonNull<T>>; N],
    ) {
        if P::RELEASES_WHOLE {
            return;
        }
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            // SAFETY: the caller's promise.
            unsafe {
                open.extend(links(node.as_ref()).into_iter().flatten());
                self.free(node);
            }
        }
    }

    /// Retires a node: it is freed when no guard protects it any more.
    ///
    /// # Safety
    /// `alloc` of this pool returned the node. It is unlinked for new readers and retired once.
    /// `guard` is of the index's domain.
    #[inline]
    pub(crate) unsafe fn retire(&self, node: NonNull<T>, guard: &Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.retired.retire(node.cast(), size_of::<T>(), guard) };
    }
}

impl<T: Send + 'static, P: Placement> Memory for Nodes<T, P> {
    fn stats(&self) -> Vec<PoolStats> {
        vec![self.slots.0.stats()]
    }
    fn settle(&mut self) {
        self.retired.drain();
    }
    fn shrink(&self) -> usize {
        self.retired.flush_unpinned();
        self.slots.0.shrink()
    }
}

/// A node that an operation has allocated and not linked yet. It is kept when the operation
/// restarts, and freed at the end.
pub(crate) struct Spare<'n, T: Send + 'static, P: Placement> {
    nodes: &'n Nodes<T, P>,
    node: Option<NonNull<T>>,
}

impl<T: Send + 'static, P: Placement> Spare<'_, T, P> {
    /// Returns the node with `value` in it.
    #[inline(always)]
    pub(crate) fn filled(&mut self, value: T, guard: &Guard) -> Result<NonNull<T>, AllocError> {
        if let Some(node) = self.node {
            // SAFETY: the node was never linked, so no other thread can reach it.
            unsafe { node.write(value) };
            return Ok(node);
        }
        let node = self.nodes.alloc(value, guard)?;
        self.node = Some(node);
        Ok(node)
    }

    /// Gives the node up: it was linked, and the tree owns it now.
    #[inline(always)]
    pub(crate) fn linked(&mut self) {
        self.node = None;
    }
}

impl<T: Send + 'static, P: Placement> Drop for Spare<'_, T, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(node) = self.node {
            // SAFETY: the node was never linked, so no other thread can reach it.
            unsafe { self.nodes.free(node) };
        }
    }
}

/// A function that returns the start and the number of bytes of an initialised object. The pointer
/// to the object, which readers hold, may lead into the middle of that memory.
type Extent = unsafe fn(NonNull<u8>) -> (NonNull<u8>, usize);

/// The memory of objects of many sizes. Each object stores its own size.
pub struct Blobs<P: Placement> {
    bytes: Arc<Bytes<P>>,
    retired: Retired<Bytes<P>>,
}

struct Bytes<P: Placement> {
    bytes: P::Bytes,
    extent: Extent,
}

// SAFETY: any thread may free a slot of an allocator of `P`.
unsafe impl<P: Placement> Reclaim for Bytes<P> {
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: the caller promises that the object is of this pool; it stays initialised until
        // it is reclaimed.
        let (memory, size) = unsafe { (self.extent)(object) };
        // SAFETY: the caller's promise.
        unsafe { self.bytes.free(memory, size) };
    }
}

impl<P: Placement> Blobs<P> {
    /// Memory for objects whose start and size `extent` returns.
    pub(crate) fn new(
        kind: &'static str,
        config: &Config,
        domain: &Domain,
        extent: Extent,
    ) -> Self {
        let bytes = Arc::new(Bytes { bytes: P::Bytes::new(kind, config), extent });
        let retired = Retired::new(Arc::clone(&bytes), domain.clone(), &config.budget);
        Self { bytes, retired }
    }

    /// Allocates `size` uninitialised bytes. If the allocation fails, it flushes the objects of
    /// this pool that this thread retired, and tries once more.
    #[inline(always)]
    pub(crate) fn alloc(&self, size: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        match self.bytes.bytes.alloc(size) {
            Ok(object) => Ok(object),
            Err(_) => self.alloc_after_flush(size, guard),
        }
    }

    #[cold]
    fn alloc_after_flush(&self, size: usize, guard: &Guard) -> Result<NonNull<u8>, AllocError> {
        self.retired.flush(guard);
        self.bytes.bytes.alloc(size)
    }

    /// Frees an object at once.
    ///
    /// # Safety
    /// The contract of [`Nodes::free`] holds for the object, and `extent` may be called for it.
    pub(crate) unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.bytes.reclaim(object) };
    }

    /// Retires an object: it is freed when no guard protects it any more.
    ///
    /// # Safety
    /// The contract of [`Nodes::retire`] holds for the object, and `extent` may be called for it
    /// until it is reclaimed.
    #[inline]
    pub(crate) unsafe fn retire(&self, object: NonNull<u8>, guard: &Guard) {
        // SAFETY: the caller's promise.
        unsafe {
            self.retired.retire(object, (self.bytes.extent)(object).1, guard);
        };
    }
}

impl<P: Placement> Memory for Blobs<P> {
    fn stats(&self) -> Vec<PoolStats> {
        vec![self.bytes.bytes.stats()]
    }
    fn settle(&mut self) {
        self.retired.drain();
    }
    fn shrink(&self) -> usize {
        self.retired.flush_unpinned();
        self.bytes.bytes.shrink()
    }
}

// Real threads, and batches of real size.
#[cfg(all(test, not(silvics_shuttle)))]
mod tests {
    use super::*;
    use crate::domain::BATCH_OBJECTS;
    use silvics_pool::{Pooled, Shared};
    use std::sync::mpsc::channel;

    fn nodes<P: Placement>(domain: &Domain) -> Nodes<[u64; 4], P> {
        Nodes::new("node", &Config::default(), domain)
    }

    /// Retires `count` fresh nodes.
    fn retire<P: Placement>(nodes: &Nodes<[u64; 4], P>, domain: &Domain, count: usize) {
        let guard = domain.pin();
        for _ in 0..count {
            let node = nodes.alloc([0; 4], &guard).unwrap();
            // SAFETY: never linked anywhere, retired once, under the domain's guard.
            unsafe { nodes.retire(node, &guard) };
        }
    }

    /// Runs up to a hundred batches, by the bound in `domain.rs`. Those of a small index are small.
    fn flush(domain: &Domain) {
        (0..5).for_each(|_| domain.flush());
    }

    /// Whether the pool of a dropped index goes while a guard protects a sealed batch of it. It is
    /// gone in any case when the batch has run.
    fn pool_goes_under_a_guard<P: Placement>() -> bool {
        let domain = Domain::new();
        let nodes = nodes::<P>(&domain);
        let pool = Arc::downgrade(&nodes.slots);
        let reader = domain.pin();
        retire(&nodes, &domain, 10 * BATCH_OBJECTS);
        drop(nodes);
        domain.flush();
        let is_gone = pool.strong_count() == 0;
        drop(reader);
        flush(&domain);
        assert_eq!(pool.strong_count(), 0, "all batches have run: the pool must be gone");
        is_gone
    }

    #[test]
    fn a_pool_that_frees_each_object_outlives_its_last_retired_one() {
        assert!(!pool_goes_under_a_guard::<silvics_pool::Shared>());
    }

    /// Nobody reads a dropped index, and the guard may be of another one.
    #[test]
    fn a_pool_that_is_released_as_a_whole_goes_with_its_index() {
        assert!(pool_goes_under_a_guard::<Pooled>());
    }

    #[test]
    fn another_threads_unsealed_batch_goes_with_the_index() {
        let domain = Domain::new();
        let nodes = Arc::new(nodes::<Pooled>(&domain));
        let pool = Arc::downgrade(&nodes.slots);
        let (retired, wait_for_retired) = channel();
        let (go_on, wait_to_go_on) = channel::<()>();
        let other = std::thread::spawn({
            let (domain, nodes) = (domain.clone(), Arc::clone(&nodes));
            move || {
                retire(&nodes, &domain, 3); // too few to be sealed
                drop(nodes);
                retired.send(()).unwrap();
                wait_to_go_on.recv().unwrap();
                domain.flush(); // must not touch what is gone
            }
        });
        wait_for_retired.recv().unwrap();
        drop(nodes);
        assert_eq!(pool.strong_count(), 0, "nothing but the index referred to that batch");
        go_on.send(()).unwrap();
        other.join().unwrap();
    }

    #[test]
    fn settling_runs_other_threads_batches_but_not_what_a_guard_protects() {
        const SEALED: usize = 3 * crate::domain::BATCH_OBJECTS;
        let domain = Domain::new();
        let mut nodes = nodes::<Pooled>(&domain);
        let retire_elsewhere = |nodes: &Nodes<_, _>, count| {
            std::thread::scope(|scope| {
                scope.spawn(|| retire(nodes, &domain, count)).join().unwrap();
            });
        };
        retire_elsewhere(&nodes, 50 * SEALED + 3);
        retire(&nodes, &domain, 5);
        nodes.settle();
        assert_eq!(nodes.stats()[0].live_slots, 0);

        let guard = domain.pin();
        retire_elsewhere(&nodes, SEALED);
        nodes.settle();
        assert_eq!(nodes.stats()[0].live_slots, SEALED, "a guard is held");
        drop(guard);
        nodes.settle();
        assert_eq!(nodes.stats()[0].live_slots, 0);
    }

    /// A pool at its limit seals a small batch each time that an allocation fails. If that happens
    /// under one pin, hundreds of batches wait, and later ones wait behind them.
    #[test]
    fn a_flush_runs_the_batches_of_other_pools_first() {
        const BEFORE: usize = 1000;
        let domain = Domain::new();
        let (nodes, others) = (nodes::<Pooled>(&domain), nodes::<Pooled>(&domain));
        let guard = domain.pin();
        for _ in 0..BEFORE {
            retire(&others, &domain, 1);
            others.retired.flush(&guard);
        }
        drop(guard);
        retire(&nodes, &domain, 5);
        nodes.retired.flush_unpinned();
        assert_eq!(nodes.stats()[0].live_slots, 0);
    }

    #[test]
    fn another_threads_sealed_batches_keep_the_pool_until_they_have_run() {
        let domain = Domain::new();
        let nodes = Arc::new(nodes::<Shared>(&domain));
        let pool = Arc::downgrade(&nodes.slots);
        let (go_on, wait_to_go_on) = channel::<()>();
        let (pinned, wait_for_pin) = channel();
        let other = std::thread::spawn({
            let (domain, nodes) = (domain.clone(), Arc::clone(&nodes));
            move || {
                let guard = domain.pin();
                retire(&nodes, &domain, 1000);
                drop(nodes);
                pinned.send(()).unwrap();
                wait_to_go_on.recv().unwrap();
                drop(guard); // and ends: its registration goes, its batches stay with the domain
            }
        });
        wait_for_pin.recv().unwrap();
        let stats = nodes.stats();
        assert_eq!(stats[0].live_slots, 1000);
        drop(nodes);
        domain.flush();
        assert!(pool.strong_count() > 0);
        go_on.send(()).unwrap();
        other.join().unwrap();
        flush(&domain);
        assert_eq!(pool.strong_count(), 0);
    }

    #[test]
    fn a_foreign_guard_protects_nothing_and_an_adopted_one_does() {
        let (domain, foreign) = (Domain::new(), Domain::new());
        let nodes = nodes::<Shared>(&domain);
        let guard = foreign.pin();
        retire(&nodes, &domain, crate::domain::BATCH_OBJECTS);
        domain.flush();
        assert_eq!(
            nodes.stats()[0].live_slots,
            0,
            "a foreign guard must not hold this domain back"
        );
        let adopted = std::ptr::from_ref(domain.adopt(&guard));
        assert!(std::ptr::eq(adopted, domain.adopt(&guard)), "one for each domain");
        retire(&nodes, &domain, crate::domain::BATCH_OBJECTS);
        domain.flush();
        assert_eq!(nodes.stats()[0].live_slots, crate::domain::BATCH_OBJECTS, "adopted");
        drop(guard);
        domain.flush();
        assert_eq!(nodes.stats()[0].live_slots, 0);
    }

    #[test]
    fn domains_come_and_go_without_confusing_their_threads() {
        let mut held = Vec::new();
        for round in 0..200 {
            let domain = Domain::new();
            let nodes = nodes::<Shared>(&domain);
            let guard = domain.pin();
            retire(&nodes, &domain, crate::domain::BATCH_OBJECTS);
            domain.flush();
            assert_eq!(nodes.stats()[0].live_slots, crate::domain::BATCH_OBJECTS, "pinned");
            if round % 3 == 0 {
                held.push(guard); // outlives its domain
            } else {
                drop(guard);
                domain.flush();
                assert_eq!(nodes.stats()[0].live_slots, 0);
            }
        }
    }
}

//! A heap with faults.
#![allow(dead_code, reason = "each test uses a part")]

use super::support::{Structures, World};
use silvics::{Heap, Options};
use silvics_store::{Policy, StoreOptions};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::sync::Arc;

/// The fault of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails.
    One,
    /// It fails, and so do all later ones.
    Lasting,
    /// It unwinds.
    Unwinds,
}

/// A heap with a fault at its n-th allocation.
#[derive(Debug, Default)]
pub(super) struct Refusing {
    /// The number of the allocation that fails: the next one is 1.
    fault: Mutex<Option<(u64, Fault)>>,
    refused: AtomicU64,
    live: AtomicUsize,
}

impl Refusing {
    pub(super) fn arm(&self, nth: u64, fault: Fault) {
        *self.fault.lock() = Some((nth, fault));
    }

    pub(super) fn disarm(&self) {
        *self.fault.lock() = None;
    }

    /// The faults so far.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The bytes that are allocated.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    fn next(&self) -> Option<Fault> {
        let mut armed = self.fault.lock();
        let (nth, fault) = (*armed)?;
        let is_due = nth == 1;
        *armed = match (is_due, fault) {
            (false, _) => Some((nth - 1, fault)),
            (true, Fault::Lasting) => Some((1, fault)),
            (true, _) => None,
        };
        self.refused.fetch_add(u64::from(is_due), Ordering::Relaxed);
        is_due.then_some(fault)
    }
}

// SAFETY: every allocation is one of the system, with the layout that is asked for, or fails.
unsafe impl Heap for Refusing {
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        match self.next() {
            None => {}
            Some(Fault::Unwinds) => resume_unwind(Box::new("planned")),
            Some(_) => return None,
        }
        self.live.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise: `alloc` returned the object for this layout.
        unsafe { System.dealloc(object.as_ptr(), layout) };
    }
}

/// A store whose rows and indexes are in a heap.
pub(super) fn in_heap<P: Policy>(structures: Structures) -> (World<P>, Arc<Refusing>) {
    let heap = Arc::new(Refusing::default());
    let shared: Arc<dyn Heap> = heap.clone();
    let indexes = Options { heap: Some(shared.clone()), ..Options::default() };
    let options = StoreOptions { indexes, indexes_in_heap: true, rows_in_heap: Some(shared) };
    (World::new(&options, structures).unwrap(), heap)
}

/// Drops a store, and checks that its heap has got everything back.
pub(super) fn end<P: Policy>(world: World<P>, heap: &Refusing) {
    drop(world);
    assert_eq!(heap.live(), 0, "bytes are live behind the store");
}

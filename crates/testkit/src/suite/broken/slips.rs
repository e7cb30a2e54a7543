//! An index whose objects come from [`Faulty`](crate::faulty::Faulty), with mistakes that only show
//! if an allocation fails or user code unwinds. The property of [`crate::faults`] named beside a
//! mistake finds it.

use crate::faulty::FaultySlots;
use silvics::update::Step;
use silvics::{
    AllocError, Batches, Check, Create, Domain, Guard, Lookup, Options, OrderedIndex, PoolStats,
    Update, Violation,
};
use silvics_pool::{Config, SlotAlloc};
use silvics_sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

slips! {
    /// An insertion whose second allocation fails forgets its first object. Found by `nth_fails`
    /// and `among_threads`.
    LeaksSpare,
    /// An insertion links its entry before its second allocation. Found by `nth_fails`,
    /// `nth_panics` and `among_threads`.
    LinksFirst,
    /// Unwinding leaves the lock behind. Found by `nth_panics`.
    KeepsLock,
    /// Unwinding leaves a pin behind. Found by `nth_panics`.
    KeepsPin,
    /// An insertion whose second allocation fails frees its first object twice. Found by
    /// `nth_fails`.
    FreesTwice,
    /// A writer whose allocation fails does not try again. Found by `nth_fails`.
    GivesUpAtOnce,
    /// A failed allocation frees the first object, but unwinding does not. Found by `nth_panics`
    /// and `among_threads`.
    LeaksOnUnwind,
    /// A creation whose second allocation fails forgets its first object. Found by `creation`.
    LeaksRoot,
    /// Dropping the index forgets its root. Found by `nth_fails`.
    LeaksAtDrop,
    /// A failed insertion writes to the object it has freed. Found by `nth_fails`.
    WritesFreed,
    /// A lookup leaves a pin behind. Found by `user_panics`.
    PinningLookup,
}

type Leaf = [u64; 2];

#[derive(Clone, Copy)]
struct Entry {
    leaf: NonNull<Leaf>,
    router: Option<NonNull<u64>>,
}

// SAFETY: the objects are only accessed under the lock.
unsafe impl Send for Entry {}

/// A `BTreeMap` under one lock. Its entries consist of two objects each, as an external tree's do.
pub struct FaultyMap<S: Slip> {
    entries: Mutex<BTreeMap<u64, Entry>>,
    root: Entry,
    leaves: FaultySlots<Leaf>,
    routers: FaultySlots<u64>,
    domain: Domain,
    config: Config,
    slip: PhantomData<S>,
}

// SAFETY: the root is not accessed, only freed when the map is dropped.
unsafe impl<S: Slip> Send for FaultyMap<S> {}
// SAFETY: the root is not accessed, only freed when the map is dropped.
unsafe impl<S: Slip> Sync for FaultyMap<S> {}

impl<S: Slip> fmt::Debug for FaultyMap<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyMap({:?})", S::KIND)
    }
}

/// The lock, or a pin. Maps with the mistake do not release it when they unwind.
struct Kept<T> {
    inner: ManuallyDrop<T>,
    on_unwind: bool,
}

impl<T> Kept<T> {
    fn new(inner: T, on_unwind: bool) -> Self {
        Self { inner: ManuallyDrop::new(inner), on_unwind }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if !(self.on_unwind && std::thread::panicking()) {
            // SAFETY: this is the only place that drops it, and it runs once.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

impl<T: Deref> Deref for Kept<T> {
    type Target = T::Target;
    fn deref(&self) -> &T::Target {
        &self.inner
    }
}
impl<T: DerefMut> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T::Target {
        &mut self.inner
    }
}

/// The first object of an insertion, until it is linked.
struct Spare<'m, S: Slip> {
    map: &'m FaultyMap<S>,
    leaf: Option<NonNull<Leaf>>,
}

impl<S: Slip> Drop for Spare<'_, S> {
    fn drop(&mut self) {
        let Some(leaf) = self.leaf else { return };
        let kept = match S::KIND {
            Kind::LeaksSpare => true,
            Kind::LeaksOnUnwind => std::thread::panicking(),
            _ => false,
        };
        if kept {
            return;
        }
        // SAFETY: never linked, and freed once. A mistaken use is found before the memory is
        // reused.
        unsafe {
            self.map.leaves.free(leaf);
            match S::KIND {
                Kind::FreesTwice => self.map.leaves.free(leaf),
                Kind::WritesFreed => leaf.write([0; 2]),
                _ => {}
            }
        }
    }
}

impl<S: Slip> FaultyMap<S> {
    fn lock(&self) -> Kept<MutexGuard<'_, BTreeMap<u64, Entry>>> {
        Kept::new(self.entries.lock(), S::KIND == Kind::KeepsLock)
    }

    /// Allocates an object, with a second attempt if the first fails.
    fn alloc<T: Send + 'static>(
        &self,
        slots: &FaultySlots<T>,
        value: T,
    ) -> Result<NonNull<T>, AllocError> {
        let object = match slots.alloc() {
            Err(_) if S::KIND != Kind::GivesUpAtOnce => {
                self.domain.flush();
                slots.alloc()?
            }
            first => first?,
        };
        // SAFETY: a new object that is ours alone.
        unsafe { object.write(value) };
        Ok(object)
    }

    fn free(&self, entry: Entry) {
        // SAFETY: unlinked by the caller, which holds the lock or owns the map.
        unsafe {
            self.leaves.free(entry.leaf);
            if let Some(router) = entry.router {
                self.routers.free(router);
            }
        }
    }
}

impl<S: Slip> Create for FaultyMap<S> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        let config = Config::new(options.pages, options.memory_limit);
        let leaves: FaultySlots<Leaf> = FaultySlots::new("leaf", &config);
        let routers: FaultySlots<u64> = FaultySlots::new("router", &config);
        let leaf = leaves.alloc()?;
        let root = match unwinding_too(|| routers.alloc()) {
            Ok(router) => Entry { leaf, router: Some(router) },
            Err(failed) => {
                if S::KIND != Kind::LeaksRoot {
                    // SAFETY: allocated above, and no other thread has seen it.
                    unsafe { leaves.free(leaf) };
                }
                return failed.map_or_else(|panic| std::panic::resume_unwind(panic), Err);
            }
        };
        Ok(Self {
            entries: Mutex::new(BTreeMap::new()),
            root,
            leaves,
            routers,
            domain: options.domain.clone().unwrap_or_default(),
            config,
            slip: PhantomData,
        })
    }
}

impl<S: Slip> Lookup for FaultyMap<S> {
    type Key = u64;
    fn domain(&self) -> &Domain {
        &self.domain
    }
    fn get(&self, key: u64, _: &Guard) -> Option<u64> {
        if S::KIND == Kind::PinningLookup {
            std::mem::forget(self.domain.pin());
        }
        let entries = self.lock();
        // SAFETY: linked entries are initialised, and not freed under the lock.
        entries.get(&key).map(|entry| unsafe { entry.leaf.read() }[1])
    }
    fn len(&self) -> usize {
        self.lock().len()
    }
    fn bytes(&self) -> usize {
        self.config.budget.held()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        vec![self.leaves.stats(), self.routers.stats()]
    }
}

impl<S: Slip> OrderedIndex for FaultyMap<S> {
    fn update(&self, key: u64, verb: Update, _: &Guard) -> Result<Option<u64>, AllocError> {
        let pin = (S::KIND == Kind::KeepsPin).then(|| Kept::new(self.domain.pin(), true));
        let mut entries = self.lock();
        let found = entries.get(&key).copied();
        // SAFETY: linked entries are initialised, and not freed under the lock.
        let present = found.map(|entry| unsafe { entry.leaf.read() }[1]);
        match (verb.step(present), found) {
            (Step::Put(value), None) => {
                let leaf = self.alloc(&self.leaves, [key, value])?;
                let mut spare = Spare { map: self, leaf: Some(leaf) };
                if S::KIND == Kind::LinksFirst {
                    spare.leaf = None;
                    entries.insert(key, Entry { leaf, router: None });
                }
                let router = Some(self.alloc(&self.routers, key)?);
                spare.leaf = None;
                entries.insert(key, Entry { leaf, router });
            }
            (Step::Put(value), Some(old)) => {
                let leaf = self.alloc(&self.leaves, [key, value])?;
                entries.insert(key, Entry { leaf, router: old.router });
                // SAFETY: unlinked above, and all access is under the lock.
                unsafe { self.leaves.free(old.leaf) };
            }
            (Step::Take, Some(old)) => {
                entries.remove(&key);
                self.free(old);
            }
            (Step::Keep | Step::Take, _) => {}
        }
        drop((entries, pin));
        Ok(present)
    }
}

impl<S: Slip> Batches for FaultyMap<S> {}

type Panic = Box<dyn std::any::Any + Send>;

/// Calls `alloc`, and treats a panic as another kind of failure.
fn unwinding_too<T>(
    alloc: impl FnOnce() -> Result<T, AllocError>,
) -> Result<T, Result<AllocError, Panic>> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(alloc)) {
        Ok(result) => result.map_err(Ok),
        Err(panic) => Err(Err(panic)),
    }
}

impl<S: Slip> Check for FaultyMap<S> {
    fn check(&mut self) -> Result<usize, Violation> {
        Ok(self.len())
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let entries = self.lock();
        let routers = entries.values().filter(|entry| entry.router.is_some()).count();
        Ok(vec![("leaf", entries.len() + 1), ("router", routers + 1)]) // including the root's
    }
    fn settle(&mut self) {}
}

impl<S: Slip> Drop for FaultyMap<S> {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut *self.entries.lock());
        for entry in entries.into_values() {
            self.free(entry);
        }
        if S::KIND != Kind::LeaksAtDrop {
            self.free(self.root);
        }
    }
}

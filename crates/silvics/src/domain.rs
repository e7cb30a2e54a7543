//! Reclamation: domains, guards, and the batches in which retired objects wait.
//!
//! # Source
//! Fraser, "Practical lock-freedom", 2004, section 5.2.3 (epochs), in the form of the
//! `crossbeam-epoch` crate, whose collector does the counting here.
//!
//! # Algorithm
//! A thread *pins* a domain before it reads nodes, and unpins when it holds no node any more. A
//! thread that unlinks a node *retires* it: the node goes into the thread's batch of the node's
//! pool (`Retired`). A full batch is *sealed*: the thread hands one deferred call, with one
//! reference to the pool, to the collector, together with the current epoch. Once every thread that
//! was pinned at that moment has unpinned, the collector runs the call on some thread, and the
//! slots return to the pool.
//!
//! # Departures from `crossbeam-epoch` as usually used
//! 1. Batches are kept here, one per pool and thread, and the collector gets one call per batch. A
//!    call per object would need a reference to the pool each, which is a shared write per removal:
//!    the pool must live until its last retired slot is freed.
//! 2. A sealed batch is flushed into the collector's global queue at once. So an unsealed batch is
//!    reachable only through the index, whose drop takes it along. An idle thread holds back fewer
//!    than [`BATCH_OBJECTS`] objects of each pool, and never a pool.
//! 3. Dropping an index releases its memory at once if its pools are released as a whole, also
//!    while other indexes of the domain are pinned. Otherwise the drop runs the sealed batches. A
//!    batch that a guard still protects runs later, after the guard is gone: some thread runs it
//!    when it pins a domain for the first time, makes a domain, or drops an index (`ORPHANS`).
//!
//! # Invariants
//! * D1: an object is in a batch only after it was unlinked for new readers, and once.
//! * D2: a batch is sealed under a guard of its domain, after its last object was retired.
//! * D3: a sealed batch that has not run holds a reference to a pool that takes back object by
//!   object. A pool that is released as a whole goes with its index, and the batch finds it gone.
//!   Readers borrow the index, so none is left then.
//! * D4: a guard protects only nodes of indexes of its own domain. An operation that is given
//!   another domain's guard pins its own domain: for the call (`enter`), or while the given guard
//!   lives if the result borrows it (`adopt`). Either way it goes on with the guard of its own
//!   domain, and retires under that.
//!   An [`Unprotected`] guard protects nothing: its user keeps everything linked that it reads.
//! * D5: a batch cell is touched only by the thread that has or borrows its index (P1 of
//!   `silvics_sync::per_thread`), or under exclusive access to the index.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | count of batches | a batch that has run | Release | fence | it is the drop of an `Arc` |
//! | count of batches | load | Relaxed, then a fence of Acquire | the drop | who finds that a batch has run sees what it did |
//!
//! # Under `--cfg silvics_shuttle`
//! `model_epoch` replaces the collector and runs a call as soon as no guard holds it back.
//!
//! # Bounds
//! While pins are short, a thread's garbage is its unsealed batches and the batches that the
//! collector has not run yet, those of some two epochs. Under a held pin, garbage grows with every
//! removal. After that pin, b sealed batches are run within 128 (⌈b/8⌉ + 2) pins of any thread, or
//! within ⌈(⌈b/8⌉ + 2) / 3⌉ calls of [`Domain::flush`]: the collector looks every 128 pins, runs
//! eight batches at a time, and moves the epoch by one, of which the last batch needs two. The
//! collector itself allocates a few KiB per sealed batch from the global allocator, outside the
//! pools' limits.
//!
//! A writer that reaches its index's limit flushes once. The flush frees nothing that its own pin
//! or another thread's pin still protects. So a thread that removes and inserts at the limit under
//! one long pin may get an error, although the call would succeed under a new pin.

mod garbage;
mod retired;
mod unprotected;

pub use garbage::{Garbage, Owner};
pub use retired::{BATCH_BYTES, BATCH_OBJECTS};
pub(crate) use retired::{Hold, Reclaim, Retired, Sealed};
pub use unprotected::Unprotected;

#[cfg(silvics_shuttle)]
use crate::model_epoch as epoch;
#[cfg(not(silvics_shuttle))]
use crossbeam_epoch as epoch;
use silvics_sync::Mutex;
use silvics_sync::atomic::{Ordering, fence};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock};

/// An epoch collector, which several indexes may share. A clone is another handle to the same
/// domain.
#[derive(Clone)]
pub struct Domain {
    inner: Arc<Inner>,
}

struct Inner {
    collector: epoch::Collector,
    identity: Identity,
    batches: Batches,
}

/// The count of sealed batches that have not run: each of them holds a reference.
type Batches = Arc<()>;

/// The number of sealed batches that have not run.
fn unrun(batches: &Batches) -> usize {
    Arc::strong_count(batches) - 1
}

/// Calls `flush` until the `wanted` batches have run, or until `calls` calls in a row have left no
/// fewer of `all` batches of the domain: guards protect the remaining ones. Batches run in the
/// order in which they were sealed, so those that are wanted may have many others before them.
///
/// If other threads retire objects meanwhile, some batches always wait. So there is a last call: a
/// call runs [`RUN_AT_ONCE`] batches or more, unless guards protect them, and those that are wanted
/// are among the first ones.
fn settle(wanted: &Batches, all: &Batches, calls: usize, flush: impl Fn()) {
    let (mut idle, mut left) = (0, unrun(all));
    for _ in 0..left.div_ceil(RUN_AT_ONCE) + calls {
        if unrun(wanted) == 0 || idle == calls {
            break;
        }
        flush();
        let now = unrun(all);
        idle = if now < left { 0 } else { idle + 1 };
        left = now;
    }
    fence(Ordering::Acquire); // see the table of orderings
}

/// The batches that the collector runs at a time.
const RUN_AT_ONCE: usize = 8;

/// The collectors of dropped domains whose remaining batches a guard protected.
#[cfg(not(silvics_shuttle))]
static ORPHANS: LazyLock<Mutex<Vec<(epoch::Collector, Batches)>>> = LazyLock::new(Mutex::default);

/// Runs batches whose domain was dropped and that no guard protects. Each call visits a few
/// domains, in turn: otherwise one guard that is never dropped would slow every caller down.
#[cfg(not(silvics_shuttle))]
fn run_orphans() {
    const DOMAINS: usize = 2;
    let orphans: Vec<_> = {
        let mut all = ORPHANS.lock();
        let some = all.len().min(DOMAINS);
        all.drain(..some).collect()
    };
    for (collector, batches) in orphans {
        let handle = collector.register();
        // The first moves the epoch, and so does the second, if nothing is pinned.
        settle(&batches, &batches, 3, || handle.pin().flush());
        if unrun(&batches) > 0 {
            ORPHANS.lock().push((collector, batches));
        }
    }
}

/// Does nothing: the model's collector runs every batch in time, and ends with the execution.
#[cfg(silvics_shuttle)]
fn run_orphans() {}

/// The identity of a domain: a slot in every thread's table of handles, which is reused after the
/// domain is dropped, and a serial number, which is not.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    slot: usize,
    serial: u64,
}

/// Free slots, slots ever used, serials ever used.
static IDENTITIES: LazyLock<Mutex<(Vec<usize>, usize, u64)>> = LazyLock::new(Mutex::default);

std::thread_local! {
    /// This thread's registration with each domain it has pinned, by slot.
    static HANDLES: RefCell<Vec<Option<(u64, epoch::LocalHandle)>>> =
        const { RefCell::new(Vec::new()) };
}

impl Drop for Inner {
    fn drop(&mut self) {
        #[cfg(not(silvics_shuttle))]
        if unrun(&self.batches) > 0 {
            ORPHANS.lock().push((self.collector.clone(), Arc::clone(&self.batches)));
        }
        IDENTITIES.lock().0.push(self.identity.slot);
    }
}

/// The domain of the process.
#[cfg(not(silvics_shuttle))]
static SHARED: LazyLock<Domain> = LazyLock::new(Domain::new);

impl Default for Domain {
    /// The domain that the indexes of the process share unless they ask for another:
    /// see [`Domain::shared`].
    fn default() -> Self {
        Self::shared()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({})", self.inner.identity.serial)
    }
}

impl Domain {
    /// The domain that the indexes of the process share, unless their options name another or they
    /// have a memory limit.
    ///
    /// A pin of it protects the objects of all of these indexes. So while any thread keeps one of
    /// them pinned, no object that any of them retires is freed. An index with a domain of its own
    /// depends on no other index's pins, and costs some KiB more.
    pub fn shared() -> Self {
        #[cfg(not(silvics_shuttle))]
        return SHARED.clone();
        #[cfg(silvics_shuttle)]
        Self::new() // a static does not end with an execution of a model
    }

    /// A domain that shares nothing with other domains.
    pub fn new() -> Self {
        run_orphans();
        let identity = {
            let mut identities = IDENTITIES.lock();
            identities.2 += 1;
            let slot = identities.0.pop().unwrap_or_else(|| {
                identities.1 += 1;
                identities.1 - 1
            });
            Identity { slot, serial: identities.2 }
        };
        let collector = epoch::Collector::new();
        Self { inner: Arc::new(Inner { collector, identity, batches: Batches::default() }) }
    }

    /// Pins the domain for this thread: objects that are retired from now on stay readable until
    /// the guard is dropped. Nested pins are cheap.
    #[inline(always)] // else LLVM calls parts of it where the methods of maps pin
    pub fn pin(&self) -> Guard {
        let Identity { slot, serial } = self.inner.identity;
        let inner = match HANDLES.try_with(std::ptr::from_ref) {
            // SAFETY: the thread's table exists, and no destructor of a thread-local runs before
            // this function returns.
            Ok(handles) => match unsafe { &*handles }.try_borrow() {
                Ok(handles) => match handles.get(slot) {
                    Some(Some((owner, handle))) if *owner == serial => Some(handle.pin()),
                    _ => None,
                },
                Err(_) => None,
            },
            Err(_) => None,
        };
        let inner = inner.unwrap_or_else(|| self.register());
        Guard { inner, serial, adopted: Adopted::default() }
    }

    /// Pins the domain until the guard is dropped, on any thread. It registers with the collector,
    /// which takes some hundred nanoseconds; [`Domain::pin`] takes some nanoseconds.
    pub(crate) fn pin_owned(&self) -> OwnedGuard {
        run_orphans();
        let handle = self.inner.collector.register();
        OwnedGuard { _guard: handle.pin(), _handle: handle }
    }

    /// Registers this thread with the collector, and keeps the handle if the thread's table still
    /// exists.
    #[cold]
    fn register(&self) -> epoch::Guard {
        run_orphans();
        let Identity { slot, serial } = self.inner.identity;
        let handle = self.inner.collector.register();
        let guard = handle.pin();
        // The previous domain of the slot was dropped. Its handle is dropped outside the borrow,
        // since dropping it may run deferred calls.
        let previous = HANDLES.try_with(|handles| {
            let mut handles = handles.try_borrow_mut().ok()?;
            if handles.len() <= slot {
                handles.resize_with(slot + 1, || None);
            }
            handles[slot].replace((serial, handle))
        });
        drop(previous);
        guard
    }

    /// Whether the guard is this domain's.
    #[inline(always)]
    pub(crate) fn is_of(&self, guard: &Guard) -> bool {
        guard.serial == self.inner.identity.serial
    }

    /// Returns the given guard if it is of this domain, else a new one (D4).
    #[inline(always)]
    pub(crate) fn enter<'g>(&self, guard: &'g Guard) -> Entered<'g> {
        if self.is_of(guard) { Entered::Given(guard) } else { Entered::Own(self.pin()) }
    }

    /// Returns the given guard if it is of this domain, else one that lives until the given guard
    /// is dropped or pinned again. This is for operations whose results borrow the guard (D4).
    #[inline(always)]
    pub(crate) fn adopt<'g>(&self, guard: &'g Guard) -> &'g Guard {
        if self.is_of(guard) { guard } else { self.adopt_foreign(guard) }
    }

    #[cold]
    fn adopt_foreign<'g>(&self, guard: &'g Guard) -> &'g Guard {
        // Pinned before the list is taken: a registration may run destructors, which may use the
        // guard, too.
        let own = self.pin();
        let mut pins = guard.adopted.0.take().unwrap_or_default();
        let earlier = pins.iter().find(|adopted| self.is_of(adopted.guard()));
        let adopted = if let Some(earlier) = earlier {
            earlier.0
        } else {
            let own = NonNull::from(Box::leak(Box::new(own)));
            pins.push(AdoptedGuard(own));
            own
        };
        guard.adopted.0.set(Some(pins));
        // SAFETY: the guard stays at its address until `Adopted::clear`, which takes the list out
        // of the given guard. That happens when the given guard is dropped or pinned again, which
        // the borrow of `'g` excludes.
        unsafe { adopted.as_ref() }
    }

    /// Frees retired objects that no guard protects: advances the epoch and collects, a few times.
    /// Objects in batches that threads have not filled stay. [`Map::flush`](crate::Map::flush) also
    /// frees those of the calling thread.
    pub fn flush(&self) {
        // A batch of epoch e may run once the epoch is e + 2. The third round runs the rest.
        for _ in 0..3 {
            self.pin().inner.flush();
        }
    }
}

/// A pin of a domain. Dropping the guard unpins. A guard cannot leave its thread.
pub struct Guard {
    inner: epoch::Guard,
    serial: u64,
    adopted: Adopted,
}

/// Guards of other domains, for references that borrow a guard (see [`Domain::adopt`]). They are
/// rare, so a guard has one word for them: the methods of a map move guards.
#[derive(Default)]
struct Adopted(Cell<Option<Box<Pins>>>);

type Pins = Vec<AdoptedGuard>;

/// A guard in a box of its own, which references lead to while the list of guards grows.
struct AdoptedGuard(NonNull<Guard>);

impl AdoptedGuard {
    fn guard(&self) -> &Guard {
        // SAFETY: the guard was leaked from a box, which only the drop of `self` takes back.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for AdoptedGuard {
    fn drop(&mut self) {
        // SAFETY: the guard was leaked from a box, and is dropped once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Adopted {
    /// Drops the pins.
    #[inline(always)]
    fn clear(&self) {
        #[cold]
        #[inline(never)]
        fn clear(pins: Box<Pins>) {
            drop(pins);
        }
        if let Some(pins) = self.0.take() {
            clear(pins);
        }
    }
}

impl Drop for Adopted {
    #[inline(always)]
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard(domain {})", self.serial)
    }
}

impl Guard {
    /// Unpins and pins again. References that were read under the old pin are no longer valid; the
    /// exclusive borrow enforces this. The call has no effect while another guard of the domain
    /// lives on this thread.
    #[inline]
    pub fn repin(&mut self) {
        self.adopted.clear();
        self.inner.repin();
    }

    /// Runs a call on some thread once all guards of this domain that live now are gone. The call
    /// may drop what a structure of the caller has unlinked.
    ///
    /// A later pin of any thread runs it, or [`Domain::flush`]. The collector allocates some bytes
    /// for it from the global allocator.
    ///
    /// The call must not own this domain, or a map or an index that uses it: the domain and the
    /// call would then never be freed.
    ///
    /// ```
    /// use silvics::Domain;
    /// use std::sync::Arc;
    ///
    /// let (domain, kept) = (Domain::new(), Arc::new(5));
    /// let other = Arc::clone(&kept);
    /// domain.pin().defer(move || drop(other));
    /// domain.flush();
    /// assert_eq!(Arc::strong_count(&kept), 1);
    /// ```
    pub fn defer(&self, call: impl FnOnce() + Send + 'static) {
        // SAFETY: the call is `Send` and borrows nothing, so any thread may run it at any time.
        unsafe { self.inner.defer_unchecked(call) };
        self.inner.flush(); // else it would wait for other calls of this thread
    }
}

/// A pin of a domain that may move to other threads.
pub(crate) struct OwnedGuard {
    // Dropped before the handle.
    _guard: epoch::Guard,
    _handle: epoch::LocalHandle,
}

// SAFETY: the guard has a registration of its own, and no part of it is bound to the thread that
// made it. No other object refers to the registration, and only dropping the guard uses it again.
unsafe impl Send for OwnedGuard {}
// SAFETY: a shared reference to the guard has no methods.
unsafe impl Sync for OwnedGuard {}

/// Evidence that a guard lives during `'g`: one of this thread, or an owned one.
#[derive(Clone, Copy)]
pub(crate) struct Under<'g>(PhantomData<&'g ()>);

impl<'g> From<&'g Guard> for Under<'g> {
    #[inline(always)]
    fn from(_guard: &'g Guard) -> Self {
        Self(PhantomData)
    }
}

impl<'g> From<&'g OwnedGuard> for Under<'g> {
    #[inline(always)]
    fn from(_guard: &'g OwnedGuard) -> Self {
        Self(PhantomData)
    }
}

/// A guard that is of the index's domain.
pub(crate) enum Entered<'g> {
    Given(&'g Guard),
    Own(Guard),
}

impl Deref for Entered<'_> {
    type Target = Guard;

    #[inline(always)]
    fn deref(&self) -> &Guard {
        match self {
            Self::Given(guard) => guard,
            Self::Own(guard) => guard,
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    /// Calls [`settle`] for a pool with 20 batches, of which `flush` may run some. Returns the
    /// number of calls of `flush`.
    fn calls(flush: impl FnMut(&mut Vec<Batches>, &Batches)) -> usize {
        let batches = Batches::default();
        let state = RefCell::new((flush, vec![Arc::clone(&batches); 20], 0));
        settle(&batches, &batches, 8, || {
            let (flush, waiting, calls) = &mut *state.borrow_mut();
            *calls += 1;
            assert!(*calls < 1000, "there is no last call");
            flush(waiting, &batches);
        });
        state.into_inner().2
    }

    #[test]
    fn a_flush_ends_when_its_batches_have_run() {
        assert_eq!(calls(|waiting, _| waiting.truncate(waiting.len().saturating_sub(8))), 3);
    }

    #[test]
    fn a_flush_ends_if_guards_protect_the_rest() {
        assert_eq!(calls(|waiting, _| waiting.truncate(19)), 9);
    }

    /// In every other call a batch runs, and in the next one another thread seals one.
    #[test]
    fn a_flush_ends_beside_threads_that_retire() {
        let mut runs = false;
        let flush = |waiting: &mut Vec<Batches>, batches: &Batches| {
            runs = !runs;
            if runs {
                waiting.pop();
            } else {
                waiting.push(Arc::clone(batches));
            }
        };
        assert_eq!(calls(flush), 20_usize.div_ceil(RUN_AT_ONCE) + 8);
    }
}

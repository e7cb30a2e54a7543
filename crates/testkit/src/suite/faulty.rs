//! A placement whose allocations fail or unwind by plan, and that remembers every object.
//!
//! [`under`] runs a piece of work of the calling thread under a [`Plan`]. Allocators made within
//! [`Ledger::record`] enter their objects in one [`Ledger`]. The ledger knows which objects are
//! live, were freed twice, or were written to after they were freed: freed objects are filled with
//! a pattern, and their memory is not reused as long as the ledger lives.
//!
//! ```
//! use silvics::{AllocError, NatarajanTree, Options, OrderedIndex};
//! use silvics_testkit::faulty::{self, Faulty, Ledger, Plan};
//!
//! let (tree, ledger) =
//!     Ledger::record(|| NatarajanTree::<Faulty>::with_options(&Options::default()));
//! let tree = tree?;
//! let before = ledger.mark();
//! // The second allocation of the insertion fails, and so does every later one.
//! let ran = faulty::under(Plan::FailFrom(2), || tree.pin().insert(1, 10));
//! assert!(matches!(ran.outcome, Some(Err(_))) && ran.met == 3); // it has tried again once
//! assert!(ledger.live_since(before).is_empty()); // its first node is free again
//! # Ok::<(), AllocError>(())
//! ```

use crate::failure::{Outcome, ensure};
use crate::rng::Rng;
use silvics_pool::{AllocError, Budget, BytesAlloc, Config, Placement, PoolStats, SlotAlloc};
use silvics_sync::Mutex;
use std::alloc::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

/// Allocates each object from the global allocator, if the calling thread's [`Plan`] allows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faulty;

// SAFETY: `saw` is the default one, which does nothing.
unsafe impl Placement for Faulty {
    const NAME: &'static str = "faulty";
    const RELEASES_WHOLE: bool = false;
    type Slots<T: Send + 'static> = FaultySlots<T>;
    type Bytes = FaultyBytes;
}

/// The plan of a thread: which of its allocations fail or panic. Allocations count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The n-th allocation fails. An operation that tries again gets its memory.
    FailOnce(u64),
    /// The n-th allocation and every later one fail.
    FailFrom(u64),
    /// The n-th allocation panics, as an allocator or user code may.
    Panic(u64),
    /// The n-th allocation fails, and the next one panics.
    FailThenPanic(u64),
    /// Allocations fail and panic by chance.
    Sometimes {
        /// The seed of the random choices.
        seed: u64,
        /// How many of 100 allocations fail.
        fail: u64,
        /// How many of 100 allocations panic.
        panic: u64,
    },
}

/// The fate of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Fails,
    Panics,
}

/// A plan and its progress.
struct Armed {
    plan: Plan,
    rng: Rng,
    met: u64,
    faults: u64,
}

impl Armed {
    fn next(&mut self) -> Fault {
        self.met += 1;
        let met = self.met;
        let fails = |yes: bool| if yes { Fault::Fails } else { Fault::None };
        let fault = match self.plan {
            Plan::FailFrom(nth) => fails(met >= nth),
            Plan::Panic(nth) if met == nth => Fault::Panics,
            Plan::FailThenPanic(nth) if met == nth + 1 => Fault::Panics,
            Plan::FailOnce(nth) | Plan::FailThenPanic(nth) => fails(met == nth),
            Plan::Panic(_) => Fault::None,
            Plan::Sometimes { fail, panic, .. } => match self.rng.below(100) {
                chance if chance < panic => Fault::Panics,
                chance => fails(chance < panic + fail),
            },
        };
        self.faults += u64::from(fault != Fault::None);
        fault
    }
}

std::thread_local! {
    static ARMED: RefCell<Option<Armed>> = const { RefCell::new(None) };
    static RECORDING: RefCell<Option<Arc<Ledger>>> = const { RefCell::new(None) };
}

/// The payload of a planned panic.
struct Planned;

/// Unwinds as panicking user code does, but without a message.
pub(crate) fn strike() -> ! {
    resume_unwind(Box::new(Planned))
}

/// Calls `work`. Returns `None` if [`strike`] unwound it, and passes on any other panic.
pub(crate) fn unwinding<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<Planned>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// The course of a piece of work under a plan.
#[derive(Clone, Copy, Debug)]
pub struct Ran<T> {
    /// The work's result; `None` if a planned panic unwound it.
    pub outcome: Option<T>,
    /// The number of allocations that the work attempted.
    pub met: u64,
    /// The number of attempted allocations that failed or panicked.
    pub faults: u64,
}

/// Runs `work` with the calling thread's allocations from [`Faulty`] under `plan`.
pub fn under<T>(plan: Plan, work: impl FnOnce() -> T) -> Ran<T> {
    let seed = if let Plan::Sometimes { seed, .. } = plan { seed } else { 0 };
    let armed = Armed { plan, rng: Rng::new(seed, 0), met: 0, faults: 0 };
    let outer = ARMED.replace(Some(armed));
    let outcome = unwinding(work);
    let ended = ARMED.replace(outer);
    let (met, faults) = ended.map_or((0, 0), |armed| (armed.met, armed.faults));
    Ran { outcome, met, faults }
}

/// An object in the ledger.
struct Object {
    memory: NonNull<u8>,
    layout: Layout,
    /// The number of its allocator.
    owner: usize,
    serial: u64,
    freed: bool,
}

// SAFETY: the memory is touched only while it is free, under the ledger's lock.
unsafe impl Send for Object {}

/// The byte that fills freed objects.
const FREED: u8 = 0xdd;

/// An allocator in the ledger.
struct Owner {
    kind: &'static str,
    live: usize,
    live_bytes: usize,
}

#[derive(Default)]
struct Book {
    owners: Vec<Owner>,
    objects: HashMap<usize, Object>,
    serial: u64,
    /// The first few errors that were found.
    wrong: Vec<String>,
}

/// All objects of the allocators of one recording. The ledger checks every free. The memory of its
/// objects is deallocated when the ledger and its allocators are gone.
#[derive(Default)]
pub struct Ledger {
    book: Mutex<Book>,
    /// Whether a caller of [`Ledger::record`] will read the errors. If not, a wrong free panics at
    /// once.
    recorded: bool,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("live", &self.live()).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Calls `make`. The allocators that the calling thread makes during the call share the ledger
    /// that is returned.
    pub fn record<T>(make: impl FnOnce() -> T) -> (T, Arc<Self>) {
        let ledger = Arc::new(Self { book: Mutex::default(), recorded: true });
        let outer = RECORDING.replace(Some(Arc::clone(&ledger)));
        let made = catch_unwind(AssertUnwindSafe(make));
        RECORDING.replace(outer);
        (made.unwrap_or_else(|panic| resume_unwind(panic)), ledger)
    }

    /// The ledger of the running recording, or a new ledger.
    fn current() -> Arc<Self> {
        RECORDING.with_borrow(Clone::clone).unwrap_or_default()
    }

    /// A mark for [`Ledger::live_since`]: it separates earlier objects from later ones.
    pub fn mark(&self) -> u64 {
        self.book.lock().serial
    }

    /// The number of objects of each kind that are not yet freed. Retired objects count.
    pub fn live(&self) -> BTreeMap<&'static str, usize> {
        self.live_since(0)
    }

    /// The number of unfreed objects of each kind that were allocated since [`Ledger::mark`]
    /// returned `mark`.
    pub fn live_since(&self, mark: u64) -> BTreeMap<&'static str, usize> {
        let book = self.book.lock();
        let mut live = BTreeMap::new();
        for object in book.objects.values().filter(|o| !o.freed && o.serial >= mark) {
            *live.entry(book.owners[object.owner].kind).or_default() += 1;
        }
        live
    }

    /// Fails if an object was freed twice, was freed to another allocator than its own, or was
    /// written to after it was freed. Fails also if no allocator has entered itself.
    pub fn audit(&self) -> Outcome {
        let book = self.book.lock();
        ensure!(!book.owners.is_empty(), "no allocator is recorded: the index is not on `Faulty`");
        ensure!(book.wrong.is_empty(), "{}", book.wrong.join("; "));
        for object in book.objects.values().filter(|o| o.freed) {
            // SAFETY: the memory of an object, which this ledger keeps and filled when it was
            // freed.
            let bytes =
                unsafe { std::slice::from_raw_parts(object.memory.as_ptr(), object.layout.size()) };
            let touched = bytes.iter().position(|byte| *byte != FREED);
            ensure!(
                touched.is_none(),
                "byte {} of a freed {} was written to",
                touched.unwrap_or(0),
                book.owners[object.owner].kind
            );
        }
        Ok(())
    }

    fn enter(&self, kind: &'static str) -> usize {
        let mut book = self.book.lock();
        book.owners.push(Owner { kind, live: 0, live_bytes: 0 });
        book.owners.len() - 1
    }

    fn add(&self, owner: usize, memory: NonNull<u8>, layout: Layout) {
        let mut book = self.book.lock();
        let serial = book.serial;
        book.serial += 1;
        book.owners[owner].live += 1;
        book.owners[owner].live_bytes += layout.size();
        let object = Object { memory, layout, owner, serial, freed: false };
        book.objects.insert(memory.addr().get(), object);
    }

    /// Marks the object as freed. Returns false if it could not be freed.
    fn free(&self, owner: usize, memory: NonNull<u8>, layout: Layout) -> bool {
        let mut book = self.book.lock();
        let book = &mut *book;
        let kind = book.owners[owner].kind;
        let wrong = match book.objects.get_mut(&memory.addr().get()) {
            None => format!("a {kind} was freed that was never allocated"),
            Some(object) if object.freed => format!("a {kind} was freed twice"),
            Some(object) if object.owner != owner || object.layout != layout => {
                let (from, size) = (book.owners[object.owner].kind, object.layout.size());
                format!("a {from} of {size} bytes was freed as a {kind} of {}", layout.size())
            }
            Some(object) => {
                object.freed = true;
                book.owners[owner].live -= 1;
                book.owners[owner].live_bytes -= layout.size();
                // SAFETY: the object has this size, and the caller of `free` gave it up.
                unsafe { object.memory.write_bytes(FREED, object.layout.size()) };
                return true;
            }
        };
        assert!(self.recorded, "{wrong}");
        if book.wrong.len() < 4 {
            book.wrong.push(wrong);
        }
        false
    }
}

impl Drop for Ledger {
    #[allow(clippy::disallowed_methods)] // this placement is the global allocator's
    fn drop(&mut self) {
        for object in self.book.lock().objects.values() {
            // SAFETY: the object was allocated with this layout and not yet deallocated, and no
            // allocator is left that could use it.
            unsafe { std::alloc::dealloc(object.memory.as_ptr(), object.layout) };
        }
    }
}

/// Allocates objects of any size, 8-byte aligned.
#[derive(Debug)]
pub struct FaultyBytes {
    ledger: Arc<Ledger>,
    number: usize,
    config: Config,
}

impl FaultyBytes {
    fn budget(&self) -> &Budget {
        &self.config.budget
    }

    #[allow(clippy::disallowed_methods)] // this placement is the global allocator's
    fn alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let refused = AllocError::System { requested: layout.size() };
        let fault = ARMED.with_borrow_mut(|armed| armed.as_mut().map_or(Fault::None, Armed::next));
        match fault {
            Fault::None => {}
            Fault::Fails => return Err(refused),
            Fault::Panics => strike(),
        }
        self.budget().take(layout.size())?;
        // SAFETY: no layout here has size zero.
        let Some(memory) = NonNull::new(unsafe { std::alloc::alloc(layout) }) else {
            self.budget().give(layout.size());
            return Err(refused);
        };
        self.ledger.add(self.number, memory, layout);
        Ok(memory)
    }

    fn free_layout(&self, memory: NonNull<u8>, layout: Layout) {
        if self.ledger.free(self.number, memory, layout) {
            self.budget().give(layout.size());
        }
    }

    fn layout(size: usize) -> Result<Layout, AllocError> {
        Layout::from_size_align(size.max(1), 8).map_err(|_| AllocError::System { requested: size })
    }
}

// SAFETY: the objects come from the global allocator, with the layout that is asked for. `free`
// panics only if its caller breaks the contract.
unsafe impl BytesAlloc for FaultyBytes {
    fn new(kind: &'static str, config: &Config) -> Self {
        let ledger = Ledger::current();
        let number = ledger.enter(kind);
        Self { ledger, number, config: config.clone() }
    }

    fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        self.alloc_layout(Self::layout(size)?)
    }

    unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        if let Ok(layout) = Self::layout(size) {
            self.free_layout(object, layout);
        }
    }

    fn shrink(&self) -> usize {
        0
    }

    fn stats(&self) -> PoolStats {
        let book = self.ledger.book.lock();
        let Owner { kind, live, live_bytes } = book.owners[self.number];
        PoolStats {
            kind,
            live_slots: live,
            live_bytes,
            regions: Vec::new(),
            pages: self.config.pages,
            fallback: None,
        }
    }
}

/// Allocates objects of one type.
#[derive(Debug)]
pub struct FaultySlots<T> {
    bytes: FaultyBytes,
    marker: PhantomData<fn() -> T>,
}

// SAFETY: the objects come from the global allocator, with the layout that is asked for. `free`
// panics only if its caller breaks the contract.
unsafe impl<T: Send + 'static> SlotAlloc<T> for FaultySlots<T> {
    fn new(kind: &'static str, config: &Config) -> Self {
        const { assert!(size_of::<T>() > 0) };
        Self { bytes: FaultyBytes::new(kind, config), marker: PhantomData }
    }

    fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        self.bytes.alloc_layout(Layout::new::<T>()).map(NonNull::cast)
    }

    unsafe fn free(&self, object: NonNull<T>) {
        self.bytes.free_layout(object.cast(), Layout::new::<T>());
    }

    fn shrink(&self) -> usize {
        self.bytes.shrink()
    }

    fn stats(&self) -> PoolStats {
        self.bytes.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> (FaultySlots<u64>, Arc<Ledger>) {
        Ledger::record(|| FaultySlots::new("word", &Config::default()))
    }

    #[test]
    fn plans_count_from_one_and_end_with_their_work() {
        let (slots, _ledger) = slots();
        let try_four = || [(); 4].map(|()| slots.alloc().is_ok());
        let given = |plan| under(plan, try_four).outcome;
        assert_eq!(given(Plan::FailOnce(2)), Some([true, false, true, true]));
        assert_eq!(given(Plan::FailFrom(2)), Some([true, false, false, false]));
        assert_eq!(given(Plan::FailThenPanic(4)), Some([true, true, true, false]));
        assert_eq!(given(Plan::Panic(5)), Some([true; 4]));
        let ran = under(Plan::Panic(3), try_four);
        assert_eq!((ran.outcome, ran.met, ran.faults), (None, 3, 1));
        assert_eq!(under(Plan::FailThenPanic(1), try_four).met, 2);
        let all = Plan::Sometimes { seed: 7, fail: 100, panic: 0 };
        assert_eq!(given(all), Some([false; 4]));
        assert_eq!(try_four(), [true; 4]);
    }

    #[test]
    fn the_ledger_knows_what_is_live() {
        let (slots, ledger) = slots();
        let first = slots.alloc().unwrap();
        let mark = ledger.mark();
        slots.alloc().unwrap();
        assert_eq!(ledger.live(), BTreeMap::from([("word", 2)]));
        assert_eq!(ledger.live_since(mark), BTreeMap::from([("word", 1)]));
        // SAFETY: allocated from these slots and not yet freed.
        unsafe { slots.free(first) };
        assert_eq!(ledger.live(), BTreeMap::from([("word", 1)]));
        assert_eq!((slots.stats().live_slots, slots.stats().live_bytes), (1, 8));
        assert_eq!(ledger.audit(), Ok(()));
    }

    #[test]
    fn wrong_frees_and_late_writes_are_found() {
        let (slots, ledger) = slots();
        let object = slots.alloc().unwrap();
        // SAFETY: the second free breaks the contract, which the ledger has to detect. The ledger
        // keeps the memory, so nothing else is affected.
        unsafe {
            slots.free(object);
            slots.free(object);
        }
        assert!(ledger.audit().unwrap_err().reason().contains("freed twice"));

        let (bytes, ledger) = Ledger::record(|| FaultyBytes::new("blob", &Config::default()));
        let object = bytes.alloc(24).unwrap();
        // SAFETY: the wrong size breaks the contract, which the ledger has to detect. It keeps the
        // memory.
        unsafe { bytes.free(object, 16) };
        let stranger = NonNull::from(&mut [0u64; 2]).cast();
        // SAFETY: the foreign address breaks the contract, which the ledger has to detect. It does
        // not touch an object that it does not know.
        unsafe { bytes.free(stranger, 16) };
        let failure = ledger.audit().unwrap_err();
        assert!(failure.reason().contains("24 bytes was freed as a blob of 16"), "{failure}");
        assert!(failure.reason().contains("never allocated"), "{failure}");

        let (bytes, ledger) = Ledger::record(|| FaultyBytes::new("blob", &Config::default()));
        let object = bytes.alloc(24).unwrap();
        // SAFETY: freed once. The write after it breaks the contract, which the ledger has to
        // detect; the memory is still the ledger's.
        unsafe {
            bytes.free(object, 24);
            object.byte_add(5).write(1);
        }
        let failure = ledger.audit().unwrap_err();
        assert!(failure.reason().contains("byte 5 of a freed blob"), "{failure}");
    }
}

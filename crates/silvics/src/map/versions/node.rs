//! The objects of versions, and the words that lead to them.
//!
//! | object | words | for |
//! |---|---|---|
//! | [`Kind::First`] | stamp, value | a key's first version: no older one |
//! | [`Kind::Newer`] | stamp, link, value | a version over an older one |
//! | [`Kind::Tombstone`] | stamp, link | a deletion |
//! | [`Kind::Joint`] | word of a first version, link | a first version that has got an older one |
//!
//! A *word* is the address of an object with its kind in the two lowest bits. A *link* is the word
//! of the next older object, or zero; its third bit says that its own object is [`OUT`] of the
//! chain. An object never moves, so that references to its value stay valid.
//!
//! # Stamps
//! | two highest bits | the rest | the version |
//! |---|---|---|
//! | [`FINAL`] | its number | can be seen by all readers at this number or later |
//! | [`BATCH`] | address of a [`BatchState`] | is one of a batch: its number is that of the batch |
//! | [`TENTATIVE`] | its number, or zero | has no number yet, or may be too late: `clock.rs` |
//! | [`ABORTED`] | its number, or zero | is none: its value was moved out |
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | stamp, state of a batch | all | `SeqCst` | each other, `now` | see `clock.rs` |
//! | link | load, store | Acquire, Release | each other | the object is initialised; cut links: final versions |
//! | link | loads under the latch | Relaxed | – | the latch orders them |
//! | first version of a joint | load | Relaxed | – | it never changes, and the word of the joint was acquired |

use crate::error::AllocError;
use crate::map::kept::Objects;
use silvics_pool::{BytesAlloc, Config, Placement, SMALL_PAGE};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::prefetch;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::{needs_drop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, drop_in_place, with_exposed_provenance_mut};

pub(super) const FINAL: u64 = 0;
pub(super) const BATCH: u64 = 1 << 62;
pub(super) const TENTATIVE: u64 = 2 << 62;
pub(super) const ABORTED: u64 = 3 << 62;
/// The bits of a stamp that say which of these it is.
pub(super) const STATE: u64 = 3 << 62;

/// The bit of a link whose object is not in the chain any more.
const OUT: u64 = 4;

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    First,
    Newer,
    Tombstone,
    Joint,
}

/// The address of an object, and its kind. Zero is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) const NONE: Self = Self(0);

    #[inline(always)]
    fn new(object: NonNull<u8>, kind: Kind) -> Self {
        Self(object.as_ptr().expose_provenance() as u64 | kind as u64)
    }

    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::First,
            1 => Kind::Newer,
            2 => Kind::Tombstone,
            _ => Kind::Joint,
        }
    }

    #[inline(always)]
    fn address(self) -> NonNull<u8> {
        let address = with_exposed_provenance_mut((self.0 & !7) as usize);
        NonNull::new(address).expect("no object is at address 0")
    }

    /// The word as the collector takes it.
    pub(super) fn tagged(self) -> NonNull<u8> {
        NonNull::new(with_exposed_provenance_mut(self.0 as usize)).expect("the word is not none")
    }

    #[inline(always)]
    pub(super) fn prefetch(self) {
        prefetch(with_exposed_provenance_mut::<u8>((self.0 & !7) as usize));
    }
}

#[repr(C)]
struct First<V> {
    stamp: AtomicU64,
    value: V,
}

#[repr(C)]
struct Newer<V> {
    stamp: AtomicU64,
    link: AtomicU64,
    value: V,
}

/// A tombstone. A joint is the same, with the word of a first version in the place of the stamp.
#[repr(C)]
struct Bare {
    stamp: AtomicU64,
    link: AtomicU64,
}

const _: () = assert!(offset_of!(Newer<u64>, link) == offset_of!(Bare, link));

/// An object that is initialised, and not taken back during `'g`.
pub(super) struct Node<'g, V> {
    pub(super) word: Word,
    lent: PhantomData<&'g V>,
}

impl<V> Clone for Node<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Node<'_, V> {}

impl<'g, V> Node<'g, V> {
    /// # Safety
    /// The word leads to an object with values of type `V`, which is not taken back during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, lent: PhantomData }
    }

    #[inline(always)]
    fn word_at(self, offset: usize) -> &'g AtomicU64 {
        // SAFETY: each object has a word there, as the callers know. It is initialised (`new`).
        unsafe { self.word.address().byte_add(offset).cast().as_ref() }
    }

    /// The object with the stamp and the value: that of the first version, if this is a joint.
    #[inline(always)]
    pub(super) fn version(self) -> Self {
        if self.word.kind() != Kind::Joint {
            return self;
        }
        let word = self.word_at(offset_of!(Bare, stamp)).load(Ordering::Relaxed); // never changes
        // SAFETY: N2: the first version goes with its joint, or later.
        unsafe { Self::new(Word(word)) }
    }

    #[inline(always)]
    pub(super) fn stamp(self) -> &'g AtomicU64 {
        self.version().word_at(offset_of!(Bare, stamp))
    }

    /// The address of the stamp, for a batch whose state lies there.
    pub(super) fn stamp_address(self) -> u64 {
        std::ptr::from_ref(self.stamp()).expose_provenance() as u64
    }

    /// The value, or nothing if this is a tombstone.
    ///
    /// # Safety
    /// The stamp is final, or the caller put the version.
    #[inline(always)]
    pub(super) unsafe fn value(self) -> Option<&'g V> {
        let node = self.version();
        // SAFETY: the kind says where the value lies; `new`, and our contract.
        node.value_offset().map(|at| unsafe { node.word.address().byte_add(at).cast().as_ref() })
    }

    #[inline(always)]
    fn value_offset(self) -> Option<usize> {
        match self.word.kind() {
            Kind::First => Some(offset_of!(First<V>, value)),
            Kind::Newer => Some(offset_of!(Newer<V>, value)),
            Kind::Tombstone | Kind::Joint => None,
        }
    }

    /// Whether this is no deletion.
    #[inline(always)]
    pub(super) fn has_value(self) -> bool {
        self.word.kind() != Kind::Tombstone
    }

    /// Moves the value out.
    ///
    /// # Safety
    /// The object has a value, and nobody uses it afterwards.
    pub(super) unsafe fn take_value(self) -> Option<V> {
        // SAFETY: our contract.
        self.value_offset().map(|at| unsafe { self.word.address().byte_add(at).cast().read() })
    }

    /// Moves a value into a new object.
    ///
    /// # Safety
    /// Nobody else has the object, and it has no value yet.
    #[inline(always)]
    pub(super) unsafe fn fill(self, value: V) {
        if let Some(at) = self.value_offset() {
            // SAFETY: our contract; there is room for the value.
            unsafe { self.word.address().byte_add(at).cast().write(value) };
        }
    }

    /// Drops the value, unless it was moved out. A panic of its destructor goes no further.
    ///
    /// # Safety
    /// Nobody uses the object any more.
    pub(super) unsafe fn drop_value(self) {
        let Some(at) = self.value_offset().filter(|_| needs_drop::<V>()) else { return };
        if self.stamp().load(Ordering::SeqCst) & STATE == ABORTED {
            return;
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: our contract; the value is there.
            unsafe { drop_in_place(self.word.address().byte_add(at).cast::<V>().as_ptr()) };
        }));
        dropped.unwrap_or_else(std::mem::forget);
    }

    #[inline(always)]
    fn link(self) -> Option<&'g AtomicU64> {
        (self.word.kind() != Kind::First).then(|| self.word_at(offset_of!(Bare, link)))
    }

    /// Whether there can be an older object.
    pub(super) fn has_link(self) -> bool {
        self.word.kind() != Kind::First
    }

    /// The next older object.
    #[inline(always)]
    pub(super) fn older(self) -> Option<Self> {
        let word = self.link()?.load(Ordering::Acquire) & !OUT;
        // SAFETY: N2: an object that was linked when the guard was taken, or later, leads to others
        // of this kind.
        (word != 0).then(|| unsafe { Self::new(Word(word)) })
    }

    /// Sets the next older object. The caller made the object, or has the latch of its key.
    #[inline(always)]
    pub(super) fn set_older(self, older: Word) {
        let link = self.link().expect("the object has a link");
        link.store(older.0, Ordering::Release);
    }

    /// Notes that the object is out of its chain. It keeps its link, since a reader may be here.
    pub(super) fn set_out(self) {
        if let Some(link) = self.link() {
            // Under the latch. Release: a reader that finds this word follows it.
            link.store(link.load(Ordering::Relaxed) | OUT, Ordering::Release);
        }
    }

    /// Whether the object is out of its chain. The caller has the latch of its key.
    pub(super) fn is_out(self) -> bool {
        self.link().is_some_and(|link| link.load(Ordering::Relaxed) & OUT != 0)
    }
}

/// The state of a batch, which its versions share.
#[repr(transparent)]
pub(super) struct BatchState(pub(super) AtomicU64);

impl BatchState {
    /// The batch is not complete.
    pub(super) const OPEN: u64 = 0;
    /// All versions of the batch are in their chains.
    pub(super) const READY: u64 = 1;
    /// The batch is given up.
    pub(super) const FAILED: u64 = 2;

    /// The stamp of its versions.
    pub(super) fn stamp(&self) -> u64 {
        BATCH | std::ptr::from_ref(self).expose_provenance() as u64
    }

    /// The batch of a stamp.
    ///
    /// # Safety
    /// The stamp was read under a guard that lives during `'g`.
    pub(super) unsafe fn of_stamp<'g>(stamp: u64) -> &'g Self {
        // SAFETY: B2: the batch is retired after its versions have other stamps.
        unsafe { &*with_exposed_provenance_mut::<Self>((stamp & !STATE) as usize) }
    }
}

/// The memory of the objects of one map.
pub(super) struct NodeMemory<V, P: Placement> {
    bytes: P::Bytes,
    values: PhantomData<fn(V) -> V>,
}

impl<V, P: Placement> NodeMemory<V, P> {
    pub(super) fn new(mut config: Config) -> Self {
        const { assert!(align_of::<Newer<V>>() <= SMALL_PAGE, "an alignment beyond 4 KiB") };
        let align = Layout::new::<Newer<V>>().align().max(config.tuning.slot_alignment());
        config.tuning = config.tuning.slot_align(align).unwrap_or(config.tuning);
        Self { bytes: P::Bytes::new("version", &config), values: PhantomData }
    }

    /// The bytes of an object.
    pub(super) fn size(kind: Kind) -> usize {
        match kind {
            Kind::First => size_of::<First<V>>(),
            Kind::Newer => size_of::<Newer<V>>(),
            Kind::Tombstone | Kind::Joint => size_of::<Bare>(),
        }
    }

    /// The bytes of an object, and of its first version if it is a joint.
    pub(super) fn bytes(node: Node<'_, V>) -> usize {
        let first = node.version().word;
        let more = if first == node.word { 0 } else { Self::size(first.kind()) };
        Self::size(node.word.kind()) + more
    }

    /// Makes an object without its value.
    #[inline(always)]
    pub(super) fn make(&self, kind: Kind, stamp: u64, older: Word) -> Result<Word, AllocError> {
        let object = self.bytes.alloc(Self::size(kind))?;
        // SAFETY: fresh memory of this size.
        unsafe {
            object.cast::<AtomicU64>().write(AtomicU64::new(stamp));
            if kind != Kind::First {
                let link = object.byte_add(offset_of!(Bare, link));
                link.cast::<AtomicU64>().write(AtomicU64::new(older.0));
            }
        }
        Ok(Word::new(object, kind))
    }

    /// Frees an object that has no value, or whose value was moved out.
    ///
    /// # Safety
    /// Nobody uses the object any more.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.bytes.free(word.address(), Self::size(word.kind())) };
    }

    pub(super) fn shrink(&self) -> usize {
        self.bytes.shrink()
    }

    pub(super) fn stats(&self) -> silvics_pool::PoolStats {
        self.bytes.stats()
    }
}

// SAFETY: any thread may free objects of the pool. A map whose values are `Send` is the only one
// that several threads use.
unsafe impl<V: 'static, P: Placement> Objects for NodeMemory<V, P> {
    #[inline(always)]
    fn runs_user_code(&self) -> bool {
        needs_drop::<V>()
    }

    #[inline(always)]
    fn releases_whole(&self) -> bool {
        P::RELEASES_WHOLE && !needs_drop::<V>()
    }

    unsafe fn take_back(&self, object: NonNull<u8>) {
        let word = Word(object.as_ptr().addr() as u64);
        // SAFETY: our contract.
        unsafe {
            Node::<V>::new(word).drop_value();
            self.free(word);
        }
    }
}

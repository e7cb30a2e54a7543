//! Arrays of slots: a place for the value of each key of a small range.
//!
//! # Layout
//! ```text
//! 0   lock
//! 8   the successor
//! 16  the smallest key
//! 64  the values
//! ```

use super::key::WordKey;
use super::value::{Marks, ValuePlace};
use super::word::{ALIGN, LINE, Place, Word};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_sync::atomic::AtomicU64;
use silvics_sync::model::touch;
use silvics_sync::prefetch;
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The bits of a key that choose its slot.
pub(super) const SLOT_BITS: u32 = if cfg!(silvics_shuttle) { 2 } else { 6 };
/// The slots of an array.
pub(super) const SLOTS: usize = 1 << SLOT_BITS;
/// The bytes of an array.
pub(super) const BYTES: usize = LINE + size_of::<AtomicU64>() * SLOTS;

/// The fields before the slots.
#[repr(C)]
struct Head {
    lock: VersionLock,
    successor: Place,
    /// Not a key, which may need a larger alignment than the object has.
    base: [u64; 2],
}

/// The layout of an array.
pub(super) const SLOTS_LAYOUT: NodeLayout = NodeLayout {
    kind: "leaf",
    size: BYTES,
    align: ALIGN,
    search: &[],
    found: &[Field::new("values", LINE, 8 * SLOTS)],
};

/// An array of slots that is not reclaimed during `'g`.
#[derive(Clone, Copy)]
pub(super) struct SlotsRef<'g, K> {
    word: Word,
    marker: PhantomData<(&'g Head, K)>,
}

impl<'g, K: WordKey> SlotsRef<'g, K> {
    /// # Safety
    /// The word leads to an array that is initialised and not reclaimed during `'g`.
    #[inline(always)]
    pub(super) unsafe fn new(word: Word) -> Self {
        Self { word, marker: PhantomData }
    }

    /// Initialises an array without values.
    ///
    /// # Safety
    /// `slots` has [`BYTES`] bytes, aligned to [`ALIGN`], which nobody else has.
    pub(super) unsafe fn init(slots: NonNull<u8>, base: K, marks: Marks) {
        const { assert!(size_of::<Head>() <= LINE || cfg!(silvics_loom)) };
        let (lock, successor) = (VersionLock::new(), Place::new(Word::NONE));
        // SAFETY: our contract: there is room for the head and the values.
        unsafe {
            slots.cast::<Head>().write(Head { lock, successor, base: base.words() });
            for at in 0..SLOTS {
                let value = AtomicU64::new(marks.absent());
                slots.byte_add(LINE).cast::<AtomicU64>().add(at).write(value);
            }
        }
    }

    /// The smallest key.
    #[inline(always)]
    fn base(self) -> K {
        K::of_words(self.head().base)
    }

    pub(super) fn word(self) -> Word {
        self.word
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: I1: an array begins with its head, and is not reclaimed during `'g` (contract of
        // `new`).
        unsafe { &*touch(self.word.address()).cast::<Head>() }
    }

    pub(super) fn lock(self) -> &'g VersionLock {
        &self.head().lock
    }

    pub(super) fn successor(self) -> &'g Place {
        &self.head().successor
    }

    /// The key of a slot.
    #[inline(always)]
    pub(super) fn key(self, at: usize) -> K {
        self.base().with(0, at)
    }

    /// The slot of a key.
    #[inline(always)]
    pub(super) fn slot_of(key: K) -> usize {
        key.bits(0, SLOT_BITS)
    }

    #[inline(always)]
    pub(super) fn value(self, at: usize) -> ValuePlace<'g> {
        debug_assert!(at < SLOTS);
        // SAFETY: I1: an array has a value for each slot, and is not reclaimed during `'g`.
        let place = unsafe {
            let values = touch(self.word.address()).byte_add(LINE).cast::<AtomicU64>();
            &*values.add(at & (SLOTS - 1))
        };
        ValuePlace { place, marks: self.word.marks() }
    }

    /// Closes all slots without a value. Returns whether no value was left. The caller has the
    /// lock.
    pub(super) fn close(self) -> bool {
        (0..SLOTS).fold(true, |is_empty, at| is_empty & self.value(at).close())
    }

    /// Opens what `close` has closed. The caller has the lock.
    pub(super) fn open(self) {
        (0..SLOTS).for_each(|at| self.value(at).open());
    }

    /// Whether no slot in the line of this one has a value.
    pub(super) fn is_line_empty(self, at: usize) -> bool {
        use super::value::Content;
        let first = at & !7;
        (first..(first + 8).min(SLOTS))
            .all(|at| !matches!(self.value(at).content(), Content::Value(_)))
    }

    /// Prefetches the lines of all slots.
    pub(super) fn prefetch_whole(self) {
        for line in (0..BYTES).step_by(LINE) {
            prefetch(self.word.address().wrapping_add(line));
        }
    }

    #[inline(always)]
    pub(super) fn prefetch(self, key: K) {
        prefetch(self.word.address().wrapping_add(LINE + 8 * Self::slot_of(key)));
    }

    /// The reads of a lookup of a key.
    pub(super) fn looked_at(self, key: K) -> Read {
        let layout: &'static NodeLayout = &SLOTS_LAYOUT;
        let slots = self.word.address().cast_const();
        layout.read(slots, LINE + 8 * Self::slot_of(key), 8, Why::Found)
    }

    pub(super) fn placed(self) -> Placed {
        let address = self.word.address().addr();
        Placed { layout: &SLOTS_LAYOUT, address, before: 0, bytes: BYTES }
    }
}

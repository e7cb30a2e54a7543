//! Pointers that carry mark bits and a hint.
//!
//! Lock-free structures claim, freeze and mark an edge by setting bits in the word that holds the
//! pointer, so that one compare-and-swap checks both. [`Tagged`] has room for three tag bits below
//! the pointer (objects are 8-byte aligned) and for 16 bits of *hint* above it. A hint describes
//! the object behind the pointer, so that a reader need not touch it. User space addresses of
//! x86-64 and aarch64 fit in 48 bits unless a mapping requests more. The creator of an object
//! checks this once with [`addressable`].
//!
//! Both [`Tagged`] and [`AtomicTagged`] keep the pointer's provenance: the word is a pointer with a
//! mapped address, never an integer.

use crate::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;

/// The number of tag bits below the address.
pub const TAG_BITS: u32 = 3;
/// The number of hint bits above the address.
pub const HINT_BITS: u32 = 16;

const TAG_MASK: usize = (1 << TAG_BITS) - 1;
const HINT_SHIFT: u32 = usize::BITS - HINT_BITS;
const ADDRESS_MASK: usize = !TAG_MASK & (usize::MAX >> HINT_BITS);

const _: () = assert!(usize::BITS == 64, "tagged words need 64-bit pointers");

/// Whether `pointer` leaves the hint and tag bits free.
#[inline]
pub fn addressable<T>(pointer: *const T) -> bool {
    pointer.addr() & !ADDRESS_MASK == 0
}

/// A pointer to `T` with a tag and a hint.
pub struct Tagged<T> {
    word: *mut u8,
    marker: PhantomData<*mut T>,
}

impl<T> Clone for Tagged<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Tagged<T> {}

impl<T> PartialEq for Tagged<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}
impl<T> Eq for Tagged<T> {}

impl<T> std::fmt::Debug for Tagged<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p} tag {:b} hint {:#x}", self.pointer(), self.tag(), self.hint())
    }
}

impl<T> Tagged<T> {
    /// The null pointer without tag and hint.
    #[inline]
    pub const fn null() -> Self {
        Self { word: std::ptr::null_mut(), marker: PhantomData }
    }

    /// The null pointer with a hint.
    #[inline]
    pub const fn null_with_hint(hint: u16) -> Self {
        let word = std::ptr::without_provenance_mut((hint as usize) << HINT_SHIFT);
        Self { word, marker: PhantomData }
    }

    /// `pointer` without tag and hint.
    #[inline]
    pub fn new(pointer: *mut T) -> Self {
        debug_assert!(addressable(pointer), "{pointer:p} uses tag or hint bits");
        Self { word: pointer.cast(), marker: PhantomData }
    }

    /// The whole word, as a pointer that must not be dereferenced.
    #[inline]
    pub fn into_raw(self) -> *mut u8 {
        self.word
    }

    /// The word that [`Tagged::into_raw`] returned.
    #[inline]
    pub fn from_raw(word: *mut u8) -> Self {
        Self { word, marker: PhantomData }
    }

    /// The pointer alone.
    #[inline(always)]
    pub fn pointer(self) -> *mut T {
        self.word.map_addr(|a| a & ADDRESS_MASK).cast()
    }

    /// The pointer to an object that begins at a multiple of `ALIGN` bytes. A word for such objects
    /// may have anything in the bits below.
    ///
    /// It is one step from the word: lookups follow chains of pointers, so each step of an address
    /// delays everything after it.
    #[inline(always)]
    pub fn aligned<const ALIGN: usize>(self) -> *mut T {
        const { assert!(ALIGN.is_power_of_two() && ALIGN > TAG_MASK) };
        self.word.map_addr(|a| a & ADDRESS_MASK & !(ALIGN - 1)).cast()
    }

    /// Whether the pointer is null, whatever its tag.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.word.addr() & ADDRESS_MASK == 0
    }

    /// The tag, in the low [`TAG_BITS`] bits.
    #[inline(always)]
    pub fn tag(self) -> usize {
        self.word.addr() & TAG_MASK
    }

    /// The word with its tag replaced by `tag`.
    #[inline(always)]
    #[must_use]
    pub fn with_tag(self, tag: usize) -> Self {
        debug_assert!(tag <= TAG_MASK);
        Self { word: self.word.map_addr(|a| a & !TAG_MASK | tag), marker: PhantomData }
    }

    /// The hint.
    #[inline(always)]
    pub fn hint(self) -> u16 {
        (self.word.addr() >> HINT_SHIFT) as u16
    }

    /// The word with its hint replaced by `hint`.
    #[inline(always)]
    #[must_use]
    pub fn with_hint(self, hint: u16) -> Self {
        let hint = (hint as usize) << HINT_SHIFT;
        Self {
            word: self.word.map_addr(|a| a & (usize::MAX >> HINT_BITS) | hint),
            marker: PhantomData,
        }
    }
}

/// An atomic [`Tagged`]. The caller chooses the orderings: each structure has named accessors and
/// justifies their orderings in a table.
pub struct AtomicTagged<T> {
    word: AtomicPtr<u8>,
    marker: PhantomData<*mut T>,
}

// SAFETY: the word is atomic. The structure that uses it is responsible for the object behind the
// pointer, and states its own bounds.
unsafe impl<T> Send for AtomicTagged<T> {}
// SAFETY: as for `Send`.
unsafe impl<T> Sync for AtomicTagged<T> {}

impl<T> AtomicTagged<T> {
    /// Makes a word that contains `value`.
    #[inline]
    pub fn new(value: Tagged<T>) -> Self {
        Self { word: AtomicPtr::new(value.word), marker: PhantomData }
    }

    /// Loads the word.
    #[inline(always)]
    pub fn load(&self, ordering: Ordering) -> Tagged<T> {
        Tagged { word: self.word.load(ordering), marker: PhantomData }
    }

    /// Stores the word.
    #[inline(always)]
    pub fn store(&self, value: Tagged<T>, ordering: Ordering) {
        self.word.store(value.word, ordering);
    }

    /// Replaces `current` by `new`. The error is the word found instead of `current`.
    #[inline(always)]
    pub fn compare_exchange(
        &self,
        current: Tagged<T>,
        new: Tagged<T>,
        success: Ordering,
        failure: Ordering,
    ) -> Result<(), Tagged<T>> {
        self.word
            .compare_exchange(current.word, new.word, success, failure)
            .map(|_| ())
            .map_err(|word| Tagged { word, marker: PhantomData })
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_disturb_each_other() {
        let object = Box::into_raw(Box::new(5u64));
        let word = Tagged::new(object).with_tag(0b101).with_hint(0xBEEF);
        assert_eq!((word.pointer(), word.tag(), word.hint()), (object, 0b101, 0xBEEF));
        let word = word.with_hint(1).with_tag(0);
        assert_eq!((word.pointer(), word.tag(), word.hint()), (object, 0, 1));
        assert!(!word.is_null());
        assert_eq!(Tagged::from_raw(word.into_raw()), word);
        assert!(Tagged::<u64>::null().with_tag(7).with_hint(9).is_null());
        // SAFETY: `Box::into_raw` made it above, and the word kept its provenance.
        drop(unsafe { Box::from_raw(word.pointer()) });
    }

    #[test]
    fn addresses_beyond_48_bits_or_misaligned_are_refused() {
        assert!(addressable(std::ptr::without_provenance::<u64>(0x7fff_ffff_fff8)));
        assert!(!addressable(std::ptr::without_provenance::<u64>(1 << 48)));
        assert!(!addressable(std::ptr::without_provenance::<u8>(4)));
    }
}

//! Values: byte strings in a word each, and in a block of memory if they do not fit.
//!
//! # Algorithm
//! The two lowest bits of a word say what its other bits are:
//!
//! | bits | the value | the other bits |
//! |---|---|---|
//! | `01` | up to 7 bytes | the length in three bits, the bytes in the seven upper bytes |
//! | `10` | an integer, as its decimal text | the integer, in 62 bits |
//! | `00` | any other bytes | in 48 bits the address of a block, in the upper 16 bits the length |
//!
//! A block has the length in four bytes, then the bytes. The length in the word is for writers that
//! replace a value: they retire its block without reading it, which would miss the caches.
//!
//! # Invariants
//! * T1: a word with the lowest bits `00` has the address of a block that [`Values::store`] has
//!   made, and that has not been freed. It has the block's length, or `LONG` if that is as large.
//!   A block never changes.
//! * T2: a text becomes an integer only if the integer's decimal form is that text. So the bytes
//!   that come out are those that went in.

use silvics::Heap;
use silvics::domain::Owner;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::Arc;

const FORM: u64 = 0b11;
const BLOCK: u64 = 0b00;
const INLINE: u64 = 0b01;
const INTEGER: u64 = 0b10;

/// The most bytes that are stored in the word itself.
const MAX_INLINE: usize = 7;
/// Integers have less than this magnitude.
const INTEGERS: i64 = 1 << 61;
/// The bits of an address.
const ADDRESS: u64 = (1 << 48) - 1;
/// The length in a word whose block tells it instead.
const LONG: usize = 0xffff;
/// The bytes of the length in a block.
const LENGTH: usize = 4;

// The bytes of an inline value are those behind the first one in memory, and an address is a word.
const _: () = assert!(cfg!(target_endian = "little") && size_of::<usize>() == 8);

/// Memory was not available for a value, or a value has more than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// A place for the text of an integer.
#[derive(Default)]
pub struct Digits(itoa::Buffer);

/// A value as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer of 64 bits.
    Integer(i64),
    /// A finite number with a fraction or an exponent, or beyond 64 bits.
    Float(f64),
}

/// The blocks of the values of one map, from a heap.
#[derive(Debug)]
pub struct Values {
    heap: Arc<dyn Heap>,
    /// The bytes of all blocks, as the heap counts them. Relaxed: it is read as a number alone.
    bytes: AtomicUsize,
}

/// A stored value that no map has yet. Its block is freed if it is dropped.
#[derive(Debug)]
pub struct Draft<'h> {
    word: u64,
    values: &'h Values,
}

/// A value that is borrowed from a map, or that needs no block.
#[derive(Clone, Copy)]
pub struct Value<'v> {
    word: u64,
    lives: PhantomData<&'v ()>,
}

/// The kind of blocks, for the heap.
const KIND: &str = "value";

/// The layout of a block for `len` bytes.
fn layout(len: usize) -> Option<Layout> {
    u32::try_from(len).ok()?;
    Layout::from_size_align(LENGTH + len, 8).ok()
}

fn form(word: u64) -> u64 {
    word & FORM
}

/// The bytes of a block.
///
/// # Safety
/// T1 holds for the word, and the block is not freed during `'v`.
unsafe fn block<'v>(word: u64) -> &'v [u8] {
    debug_assert_eq!(form(word), BLOCK);
    let block = with_exposed_provenance::<u8>((word & ADDRESS) as usize);
    // SAFETY: T1: the block has as many bytes behind its length.
    unsafe { std::slice::from_raw_parts(block.add(LENGTH), length(word)) }
}

/// The length of the value in a block.
///
/// # Safety
/// T1 holds for the word.
unsafe fn length(word: u64) -> usize {
    match (word >> 48) as usize {
        // SAFETY: T1: the block begins with its length.
        LONG => unsafe {
            with_exposed_provenance::<u32>((word & ADDRESS) as usize).read() as usize
        },
        length => length,
    }
}

/// The address and the requested size of the block of a word, if it has one.
///
/// # Safety
/// T1 holds for the word.
pub(crate) unsafe fn block_of(word: u64) -> Option<(NonNull<u8>, usize)> {
    if form(word) != BLOCK {
        return None;
    }
    // SAFETY: the caller's promise.
    let bytes = LENGTH + unsafe { length(word) };
    Some((NonNull::new(with_exposed_provenance_mut((word & ADDRESS) as usize))?, bytes))
}

/// The integer whose decimal form is this text, if its magnitude is small enough.
fn canonical(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !(1..=19).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits[0] == b'0' && text.len() > 1 {
        return None; // zeros in front, or a negative zero
    }
    let integer: i64 = str::from_utf8(text).ok()?.parse().ok()?;
    (-INTEGERS..INTEGERS).contains(&integer).then_some(integer)
}

impl Values {
    /// The blocks of a new map.
    pub fn new(heap: Arc<dyn Heap>) -> Self {
        Self { heap, bytes: AtomicUsize::new(0) }
    }

    /// The bytes of all blocks, as the heap counts them.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Stores a value. Fails if memory for a block cannot be allocated.
    #[inline]
    pub fn store(&self, bytes: &[u8]) -> Result<Draft<'_>, OutOfMemory> {
        let word = if bytes.len() <= MAX_INLINE {
            let mut word = [0; 8];
            word[0] = (INLINE as u8) | ((bytes.len() as u8) << 2);
            word[1..=bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        } else if let Some(integer) = canonical(bytes) {
            ((integer as u64) << 2) | INTEGER
        } else {
            self.allocate(bytes)?
        };
        Ok(Draft { word, values: self })
    }

    fn allocate(&self, bytes: &[u8]) -> Result<u64, OutOfMemory> {
        let layout = layout(bytes.len()).ok_or(OutOfMemory)?;
        let block = self.heap.alloc(KIND, layout).ok_or(OutOfMemory)?;
        // SAFETY: the block is new and has room for the length and the bytes.
        unsafe {
            block.cast::<u32>().write(bytes.len() as u32);
            block.as_ptr().add(LENGTH).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        let address = block.as_ptr().expose_provenance() as u64;
        if address > ADDRESS {
            // SAFETY: allocated above, with this layout.
            unsafe { self.heap.free(KIND, block, layout) };
            return Err(OutOfMemory);
        }
        self.bytes.fetch_add(self.heap.bytes(layout), Ordering::Relaxed);
        Ok(address | (bytes.len().min(LONG) as u64) << 48)
    }
}

// SAFETY: a heap frees on any thread, and does not unwind.
unsafe impl Owner for Values {
    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: T1: the block begins with its length.
        let len = unsafe { object.cast::<u32>().read() } as usize;
        let layout = layout(len).expect("it was allocated with this layout");
        // SAFETY: the caller's promise; `allocate` used the same layout.
        unsafe { self.heap.free(KIND, object, layout) };
        self.bytes.fetch_sub(self.heap.bytes(layout), Ordering::Relaxed);
    }
}

impl Draft<'_> {
    /// The word of the value.
    pub(crate) fn word(&self) -> u64 {
        self.word
    }

    /// The word of the value, whose block belongs to the caller from now on.
    pub(crate) fn placed(self) -> u64 {
        let word = self.word;
        std::mem::forget(self);
        word
    }

    /// The value.
    pub fn value(&self) -> Value<'_> {
        Value { word: self.word, lives: PhantomData }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // SAFETY: T1: the block is that of this draft alone.
        unsafe {
            if let Some((block, _)) = block_of(self.word) {
                self.values.free(block);
            }
        }
    }
}

impl Value<'_> {
    /// # Safety
    /// T1 holds for the word, and its block is not freed during `'v`.
    pub(crate) unsafe fn new(word: u64) -> Self {
        Self { word, lives: PhantomData }
    }

    /// The bytes, for which `digits` is the place if the value is an integer. Takes O(1).
    #[inline]
    pub fn bytes<'a>(&'a self, digits: &'a mut Digits) -> &'a [u8] {
        match form(self.word) {
            // SAFETY: the length is at most 7, and the word has as many bytes behind its first one.
            INLINE => unsafe {
                let first = (&raw const self.word).cast::<u8>();
                std::slice::from_raw_parts(first.add(1), (self.word as usize & 0xff) >> 2)
            },
            INTEGER => digits.0.format(self.integer()).as_bytes(),
            // SAFETY: T1, by the contract of `new`.
            _ => unsafe { block(self.word) },
        }
    }

    fn integer(self) -> i64 {
        debug_assert_eq!(form(self.word), INTEGER);
        (self.word as i64) >> 2
    }

    /// The value as a number. It is one if its text is a decimal integer, or a finite floating
    /// point number as Rust parses it.
    #[inline]
    pub fn number(&self) -> Option<Number> {
        if form(self.word) == INTEGER {
            return Some(Number::Integer(self.integer()));
        }
        let mut digits = Digits::default();
        let text = str::from_utf8(self.bytes(&mut digits)).ok()?;
        if let Ok(integer) = text.parse() {
            return Some(Number::Integer(integer));
        }
        let float: f64 = text.parse().ok()?;
        float.is_finite().then_some(Number::Float(float))
    }
}

impl PartialEq<[u8]> for Value<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        self.bytes(&mut Digits::default()) == other
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes(&mut Digits::default()).escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::testing::Counting;
    use proptest::prelude::*;

    /// Stores a value, reads it, and frees it. Returns its form, and it as a number.
    fn round_trip(bytes: &[u8]) -> (u64, Option<Number>) {
        let heap = Arc::new(Counting::default());
        let values = Values::new(Arc::<Counting>::clone(&heap));
        let draft = values.store(bytes).unwrap();
        let value = draft.value();
        assert_eq!(value.bytes(&mut Digits::default()), bytes);
        let found = (form(draft.word()), value.number());
        assert_eq!(values.bytes(), if found.0 == BLOCK { 16 + LENGTH + bytes.len() } else { 0 });
        assert_eq!(values.bytes(), heap.live());
        drop(draft);
        assert_eq!((values.bytes(), heap.live()), (0, 0));
        found
    }

    #[test]
    fn texts_that_are_nearly_integers_stay_as_they_are() {
        for text in [
            "00000001",
            "+12345678",
            "-0",
            "-00000001",
            "12345678 ",
            " 12345678",
            "1234567.8",
            "2305843009213693952",
            "-2305843009213693953",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "99999999999999999999",
            "--------",
            "",
        ] {
            assert_ne!(round_trip(text.as_bytes()).0, INTEGER, "{text}");
        }
    }

    #[test]
    fn integers_need_no_block() {
        for integer in [12_345_678, -12_345_678, INTEGERS - 1, -INTEGERS, 1_700_000_000_000] {
            let found = round_trip(integer.to_string().as_bytes());
            assert_eq!(found, (INTEGER, Some(Number::Integer(integer))));
        }
    }

    #[test]
    fn numbers_are_finite() {
        let number = |text: &str| round_trip(text.as_bytes()).1;
        assert_eq!(number("17"), Some(Number::Integer(17)));
        assert_eq!(number("00000000017"), Some(Number::Integer(17)));
        assert_eq!(number("-1.5e3"), Some(Number::Float(-1500.0)));
        assert_eq!(number("9223372036854775808"), Some(Number::Float(9_223_372_036_854_775_808.0)));
        for text in ["", "x", "inf", "NaN", "1e999", "1 ", "0x10"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn long_values_tell_their_length_in_the_block() {
        for length in [8, 100, LONG - 1, LONG, LONG + 1, 1 << 20] {
            assert_eq!(round_trip(&vec![b'x'; length]).0, BLOCK);
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let (form, _) = round_trip(&bytes);
            prop_assert_eq!(form == INLINE, bytes.len() <= MAX_INLINE);
        }

        #[test]
        fn every_integer_comes_back(integer: i64) {
            let (_, number) = round_trip(integer.to_string().as_bytes());
            prop_assert_eq!(number, Some(Number::Integer(integer)));
        }
    }
}

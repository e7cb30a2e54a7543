//! The bytes of a key that has several parts: written by [`Encoder`], read by [`Decoder`].
//!
//! # Strings
//! A string's bytes are written as they are, except runs of bytes 0. A run, and the end of the
//! string, is a byte 0 and a token, which is smaller the earlier the string sorts:
//!
//! | token | stands for |
//! |---|---|
//! | *n*, up to 126 | *n* bytes 0, then the end of the string |
//! | 127 | 127 bytes 0; another token follows, which counts the rest of the run |
//! | 255 - *n*, down to 129 | *n* bytes 0, then a byte that is not 0 |
//!
//! The order is that of the strings. Let two strings be equal up to a run of bytes 0, which may be
//! empty in one of them, and let the run be longer in the second one. The first string is smaller
//! if it ends there, and larger otherwise, whatever the second one continues with. If one string
//! has no run and does not end, its next byte is larger than the byte 0 of the other's form.

use std::borrow::Cow;
use std::cell::Cell;
use std::mem::{MaybeUninit, take};

/// Keys of at most this many bytes are encoded on the stack.
const INLINE: usize = 128;

/// A thread keeps its buffer for longer keys if the capacity is at most this many bytes. A key with
/// a string of 65 535 bytes fits, even if its buffer has grown by doubling.
const KEPT: usize = 256 << 10;

/// The byte before a token.
const MARK: u8 = 0;
/// The bytes 0 that the token [`MORE`] stands for. A token with an end counts fewer, and so does
/// one without.
const RUN: usize = 127;
/// The token in the middle of a run. Smaller tokens end the string.
const MORE: u8 = RUN as u8;
/// The token of no byte 0 without an end. It follows [`MORE`] only.
const GOES_ON: u8 = u8::MAX;

/// Complements each byte.
#[inline]
fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

/// The position of the first `byte`, or with `NOT` of the first other byte. The length if there is
/// none.
#[inline(always)]
fn find<const NOT: bool>(bytes: &[u8], byte: u8) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let zeros = u64::from_le_bytes(*chunk) ^ (ONES * u64::from(byte));
        // The lowest bit set is right: only bytes above a byte 0 can be taken for one by mistake.
        let found = if NOT { zeros } else { zeros.wrapping_sub(ONES) & !zeros & (ONES << 7) };
        if found != 0 {
            return 8 * at + found.trailing_zeros() as usize / 8;
        }
    }
    let at = rest.iter().position(|&other| (other == byte) != NOT);
    8 * chunks.len() + at.unwrap_or(rest.len())
}

std::thread_local! {
    /// The buffer for longer keys, kept so that the next key needs no allocation.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The buffer that the encoding of a key is written to.
pub struct Encoder {
    short: [MaybeUninit<u8>; INLINE],
    /// The number of bytes in `short`; without meaning once the bytes are in `long`.
    len: usize,
    long: Vec<u8>,
}

impl Encoder {
    /// Calls `then` with the bytes that `write` writes. Allocates nothing for keys of up to 128
    /// bytes. For longer keys it allocates once in a thread, and again only for a longer key.
    #[inline]
    pub fn encode<R>(write: impl FnOnce(&mut Self), then: impl FnOnce(&[u8]) -> R) -> R {
        let mut encoder =
            Self { short: [const { MaybeUninit::uninit() }; INLINE], len: 0, long: Vec::new() };
        write(&mut encoder);
        then(encoder.bytes())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.long.is_empty() {
            // SAFETY: `push` has written the first `len` bytes.
            return unsafe { std::slice::from_raw_parts(self.short.as_ptr().cast(), self.len) };
        }
        &self.long
    }

    /// Appends bytes unchanged: a part of a fixed length.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > INLINE || !self.long.is_empty() {
            return self.push_long(bytes);
        }
        // SAFETY: `end` is at most `INLINE`, so the bytes fit; `&mut self` owns the array, so it
        // does not overlap `bytes`.
        unsafe {
            let free = self.short.as_mut_ptr().add(self.len).cast();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), free, bytes.len());
        }
        self.len = end;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            let mut room = ROOM.try_with(Cell::take).unwrap_or_default();
            room.clear();
            room.extend_from_slice(self.bytes());
            self.long = room;
        }
        self.long.extend_from_slice(bytes);
    }

    /// Appends a string and its end, so that any part can follow.
    #[inline]
    pub fn push_string(&mut self, bytes: &[u8]) {
        let literal = find::<false>(bytes, 0);
        self.push(&bytes[..literal]);
        if literal == bytes.len() {
            return self.push(&[MARK, 0]);
        }
        self.push_runs(&bytes[literal..]);
    }

    /// Appends the rest of a string, which begins with a byte 0.
    #[inline(never)]
    fn push_runs(&mut self, mut rest: &[u8]) {
        loop {
            self.push(&[MARK]);
            let mut run = find::<true>(rest, 0);
            rest = &rest[run..];
            while run >= RUN {
                self.push(&[MORE]);
                run -= RUN;
            }
            if rest.is_empty() {
                return self.push(&[run as u8]);
            }
            let literal = find::<false>(rest, 0);
            self.push(&[GOES_ON - run as u8]);
            self.push(&rest[..literal]);
            rest = &rest[literal..];
            if rest.is_empty() {
                return self.push(&[MARK, 0]);
            }
        }
    }

    /// Appends the bytes that `write` writes, each complemented. So parts of the same type have the
    /// opposite order.
    #[inline]
    pub fn reversed(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.written();
        write(self);
        if self.long.is_empty() {
            let short = self.short.as_mut_ptr().cast::<u8>();
            // SAFETY: `push` has written the first `len` bytes, and `&mut self` owns the array.
            let written = unsafe { std::slice::from_raw_parts_mut(short, self.len) };
            complement(&mut written[start..]);
        } else {
            complement(&mut self.long[start..]);
        }
    }

    /// The number of bytes.
    fn written(&self) -> usize {
        if self.long.is_empty() { self.len } else { self.long.len() }
    }
}

impl Drop for Encoder {
    #[inline]
    fn drop(&mut self) {
        if (1..=KEPT).contains(&self.long.capacity()) {
            let long = take(&mut self.long);
            let _ = ROOM.try_with(|room| room.set(long)); // an ending thread has no buffer
        }
    }
}

/// The bytes of a key, whose parts are read in the order in which they were written.
pub struct Decoder<'a> {
    rest: &'a [u8],
    /// All bits of this byte are set if the bytes are complemented, else none.
    mask: u8,
}

/// The message of the panic if the bytes of a key cannot be read.
const FOREIGN: &str = "the bytes of a key are not what its type has written: an implementation of silvics::Key \
                       or silvics::AsKey by hand breaks its promise";

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, mask: 0 }
    }

    /// Reads what [`Encoder::reversed`] wrote.
    #[inline]
    pub fn reversed<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.mask = !self.mask;
        let read = read(self);
        self.mask = !self.mask;
        read
    }

    /// Takes the next `len` bytes, as they lie there.
    #[inline]
    fn raw(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(len).expect(FOREIGN);
        self.rest = rest;
        taken
    }

    /// Takes the next `len` bytes, as [`Encoder::push`] wrote them. They are borrowed, unless they
    /// lie in a part that [`Encoder::reversed`] wrote.
    ///
    /// # Panics
    /// If fewer bytes are left. This cannot happen for key types of this crate or derived ones.
    #[inline]
    pub fn take(&mut self, len: usize) -> Cow<'a, [u8]> {
        let taken = self.raw(len);
        if self.mask == 0 {
            return Cow::Borrowed(taken);
        }
        Cow::Owned(taken.iter().map(|byte| !byte).collect())
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Panics
    /// If fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_first_chunk::<N>().expect(FOREIGN);
        self.rest = rest;
        let mut taken = *taken;
        if self.mask != 0 {
            complement(&mut taken);
        }
        taken
    }

    /// Takes a string that [`Encoder::push_string`] wrote.
    ///
    /// # Panics
    /// If the string has no end.
    #[inline]
    pub fn string(&mut self) -> Cow<'a, [u8]> {
        let literal = find::<false>(self.rest, self.mask);
        if self.mask == 0
            && let Some((taken, [MARK, 0, rest @ ..])) = self.rest.split_at_checked(literal)
        {
            self.rest = rest;
            return Cow::Borrowed(taken);
        }
        Cow::Owned(self.string_of_runs())
    }

    /// Takes a string that is not its own form.
    #[inline(never)]
    fn string_of_runs(&mut self) -> Vec<u8> {
        // Parts of other keys may follow, and the runs are longer than their tokens.
        let mut string = Vec::with_capacity(self.rest.len().clamp(64, 256));
        loop {
            let literal = self.raw(find::<false>(self.rest, self.mask));
            let start = string.len();
            string.extend_from_slice(literal);
            if self.mask != 0 {
                complement(&mut string[start..]);
            }
            let [_mark] = self.array();
            let mut zeros = 0;
            let mut token = MORE;
            while token == MORE {
                [token] = self.array();
                zeros += usize::from(token.min(GOES_ON - token));
            }
            string.resize(string.len() + zeros, 0);
            if token < MORE {
                return string;
            }
        }
    }
}

/// The text whose bytes were written.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect(FOREIGN)
}

/// The text of a part whose bytes were written.
pub(crate) fn text_of(part: Cow<'_, [u8]>) -> Cow<'_, str> {
    match part {
        Cow::Borrowed(bytes) => Cow::Borrowed(text(bytes)),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).expect(FOREIGN)),
    }
}

/// Panics: the bytes read are the number of no variant of the enum.
#[doc(hidden)]
#[cold]
pub fn no_variant() -> ! {
    panic!("{FOREIGN}");
}

/// For each discriminant, returns the number of smaller ones.
#[doc(hidden)]
pub const fn ranks<const N: usize>(of: [i128; N]) -> [u16; N] {
    let mut ranks = [0; N];
    let mut at = 0;
    while at < N {
        let mut other = 0;
        while other < N {
            ranks[at] += (of[other] < of[at]) as u16;
            other += 1;
        }
        at += 1;
    }
    ranks
}

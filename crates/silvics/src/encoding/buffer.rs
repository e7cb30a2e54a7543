//! The bytes of a key that has several parts: written by [`Encoder`], read by [`Decoder`].

use std::borrow::Cow;
use std::cell::Cell;
use std::mem::{MaybeUninit, take};

/// Keys of at most this many bytes are encoded on the stack.
const INLINE: usize = 128;

/// A thread keeps its buffer for longer keys if the capacity is at most this many bytes: twice the
/// longest key that indexes take, since the buffer grows by doubling.
const KEPT: usize = 128 << 10;

/// The byte before each byte 0 or 1 of a string; that byte is written as 1 or 2. Without it, the
/// byte would be read as [`END`] or as `ESCAPE`.
const ESCAPE: u8 = 1;
/// The byte behind a string.
const END: u8 = 0;

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
    pub fn push_string(&mut self, mut bytes: &[u8]) {
        while let Some(at) = bytes.iter().position(|&byte| byte <= ESCAPE) {
            self.push(&bytes[..at]);
            self.push(&[ESCAPE, bytes[at] + 1]);
            bytes = &bytes[at + 1..];
        }
        self.push(bytes);
        self.push(&[END]);
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
}

/// The message of the panic if the bytes of a key cannot be read.
const FOREIGN: &str = "the bytes of a key are not what its type has written: an implementation of silvics::Key \
                       or silvics::AsKey by hand breaks its promise";

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes the next `len` bytes, as [`Encoder::push`] wrote them.
    ///
    /// # Panics
    /// If fewer bytes are left. This cannot happen for key types of this crate or derived ones.
    #[inline]
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(len).expect(FOREIGN);
        self.rest = rest;
        taken
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Panics
    /// If fewer bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_first_chunk().expect(FOREIGN);
        self.rest = rest;
        *taken
    }

    /// Takes a string that [`Encoder::push_string`] wrote.
    ///
    /// # Panics
    /// If the string has no end.
    #[inline]
    pub fn string(&mut self) -> Cow<'a, [u8]> {
        let end = self.rest.iter().position(|&byte| byte <= ESCAPE).expect(FOREIGN);
        let taken = self.take(end);
        if self.array() == [END] { Cow::Borrowed(taken) } else { Cow::Owned(self.escaped(taken)) }
    }

    /// The whole string that begins with `start`; the decoder is behind the first [`ESCAPE`].
    #[cold]
    fn escaped(&mut self, start: &[u8]) -> Vec<u8> {
        // The end is the only byte 0 of a written string.
        let rest = self.rest.iter().position(|&byte| byte == END).expect(FOREIGN);
        let mut string = Vec::with_capacity(start.len() + rest);
        string.extend_from_slice(start);
        loop {
            let [byte] = self.array();
            string.push(byte.checked_sub(1).expect(FOREIGN));
            let end = self.rest.iter().position(|&byte| byte <= ESCAPE).expect(FOREIGN);
            string.extend_from_slice(self.take(end));
            if self.array() == [END] {
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

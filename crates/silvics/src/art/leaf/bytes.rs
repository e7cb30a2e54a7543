//! Leaves of one byte string.

use super::{LeafKey, LeafOf, Leaves};
use crate::art::node::NODES;
use crate::art::word::{Object, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats, SlotSize};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The head of a leaf. The key's bytes follow it without a gap.
#[repr(C)]
struct BytesHead {
    value: AtomicU64,
    len: u32,
}

/// The offset of the key's bytes.
const KEY: usize = std::mem::offset_of!(BytesHead, len) + 4;

const BYTES_LEAF: NodeLayout = NodeLayout {
    kind: "leaf",
    size: size_of::<BytesHead>(),
    align: 8,
    search: &[],
    found: &[Field::new("value", 0, 8), Field::new("len", KEY - 4, 4)],
};

impl LeafKey for [u8] {
    const LEAF_KEYS: usize = 1;
    const OBJECTS: &'static [NodeLayout] = &{
        let [a, b, c, d, ..] = NODES;
        [a, b, c, d, BYTES_LEAF]
    };
    type Leaves<P: Placement> = BytesLeaves<P>;
    type Leaf<'g> = BytesLeaf<'g>;
}

/// The fingerprint of a key, kept in its word: keys with different fingerprints are different.
#[inline(always)]
fn fingerprint(key: &[u8]) -> u16 {
    let last = match key.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => key.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    // The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
    ((last ^ key.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
}

/// A leaf of one byte string. Its word has the key's fingerprint.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct BytesLeaf<'g> {
    head: *const BytesHead,
    fingerprint: u16,
    marker: PhantomData<&'g Object>,
}

impl<'g> BytesLeaf<'g> {
    #[inline(always)]
    fn text(self) -> &'g [u8] {
        // SAFETY: `alloc` has written the length and as many bytes behind the head, before the leaf
        // was linked; I1: they never change. The leaf is not reclaimed during `'g` (contract of
        // `from_word`).
        unsafe {
            let head = touch(self.head.cast_mut());
            let len = (&raw const (*head).len).read() as usize;
            std::slice::from_raw_parts(head.byte_add(KEY).cast(), len)
        }
    }
}

impl<'g> LeafOf<'g, [u8]> for BytesLeaf<'g> {
    #[inline(always)]
    unsafe fn from_word(word: Word) -> Self {
        let (head, fingerprint) = (word.leaf_object().cast(), word.hint() as u16);
        Self { head, fingerprint, marker: PhantomData }
    }

    #[inline(always)]
    fn len(self) -> usize {
        1
    }

    #[inline(always)]
    fn is_gone(self, _at: usize) -> bool {
        false
    }

    fn without(_word: Word, _at: usize) -> Word {
        unreachable!("the only entry is the last one")
    }

    #[inline(always)]
    fn key(self, _at: usize) -> &'g [u8] {
        self.text()
    }

    #[inline(always)]
    fn value(self, _at: usize) -> &'g AtomicU64 {
        // SAFETY: a leaf of a byte string begins with its value (`BytesHead`), and is not reclaimed
        // during `'g` (contract of `from_word`).
        unsafe { &*self.head.cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn find(self, key: &[u8]) -> Option<usize> {
        (self.fingerprint == fingerprint(key) && self.text() == key).then_some(0)
    }

    #[inline(always)]
    fn get(self, key: &[u8]) -> Option<u64> {
        self.find(key).map(|at| self.value(at).load(Ordering::SeqCst))
    }

    fn looked_at(self, key: &[u8]) -> Option<(usize, usize)> {
        (self.fingerprint == fingerprint(key)).then(|| (KEY - 4, 4 + self.text().len()))
    }

    fn value_offset(self, _at: usize) -> usize {
        0
    }

    fn bytes(self) -> usize {
        KEY + self.text().len()
    }
}

/// The pool of leaves of byte strings.
#[doc(hidden)]
pub struct BytesLeaves<P: Placement>(P::Bytes);

/// The only entry of a leaf.
#[inline(always)]
fn the<'k>(entries: &[(&'k [u8], u64)]) -> (&'k [u8], u64) {
    let [entry] = *entries else { unreachable!("a leaf has one key") };
    entry
}

impl<P: Placement> Leaves<[u8]> for BytesLeaves<P> {
    fn new(config: &Config) -> Self {
        Self(P::Bytes::new(BYTES_LEAF.kind, config))
    }

    #[inline]
    fn alloc(&self, entries: &[(&[u8], u64)]) -> Result<NonNull<u8>, AllocError> {
        self.0.alloc(KEY + the(entries).0.len())
    }

    fn slot(entries: &[(&[u8], u64)]) -> SlotSize {
        BytesPool::slot(KEY + the(entries).0.len())
    }

    #[inline]
    unsafe fn fill(leaf: NonNull<u8>, entries: &[(&[u8], u64)]) -> Word {
        let (key, value) = the(entries);
        // SAFETY: our contract: the memory has room for the head and the key, and nobody else has
        // it.
        unsafe {
            let head = leaf.cast::<BytesHead>().as_ptr();
            (&raw mut (*head).value).write(AtomicU64::new(value));
            (&raw mut (*head).len).write(key.len() as u32);
            leaf.as_ptr().add(KEY).copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
        Word::leaf(leaf, fingerprint(key))
    }

    unsafe fn free(&self, word: Word) {
        // SAFETY: I7: the word leads to a leaf. It came from this pool, which allocated as many
        // bytes (I1), is freed once, and nobody can reach it (contract of `free`).
        unsafe {
            let bytes = BytesLeaf::from_word(word).bytes();
            self.0.free(word.address(), bytes);
        }
    }

    fn stats(&self) -> impl Iterator<Item = PoolStats> {
        std::iter::once(self.0.stats())
    }

    fn shrink(&self) -> usize {
        self.0.shrink()
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_tell_keys_apart_by_length_and_end() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"a", b"abcdefgh", b"babcdefgh"];
        for a in keys {
            for b in keys {
                assert_eq!(fingerprint(a) == fingerprint(b), a == b, "{a:?} {b:?}");
            }
        }
        assert_ne!(fingerprint(b"directory/file1"), fingerprint(b"directory/file2"));
    }
}

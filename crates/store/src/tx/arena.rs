//! The memory of one transaction: copies of rows and keys, which are released at its end at once.

use crate::key::KeyRef;
use silvics::AllocError;
use std::ptr::NonNull;

/// The words of the first chunk, and the most words of a later one that no single object needs.
const FIRST: usize = 1 << 9;
const LARGEST: usize = 1 << 15;
/// The most words that an arena keeps for the next transaction.
const KEPT: usize = 1 << 17;

/// Memory that is released as a whole. Objects stay at their addresses until then.
#[derive(Default)]
pub(crate) struct Arena {
    /// Owned chunks: their first words and their sizes.
    chunks: Vec<(NonNull<u64>, usize)>,
    /// The chunk that is in use, and its used words.
    at: (usize, usize),
}

// SAFETY: the arena owns its chunks, which are plain words.
unsafe impl Send for Arena {}

/// A position in an arena, to which it can be released.
#[derive(Clone, Copy)]
pub(crate) struct Mark((usize, usize));

impl Arena {
    /// Returns `words` words, which hold no particular values but are initialized.
    #[inline]
    pub(crate) fn alloc(&mut self, words: usize) -> Result<NonNull<u64>, AllocError> {
        let (chunk, used) = self.at;
        if let Some(&(start, size)) = self.chunks.get(chunk)
            && size - used >= words
        {
            self.at.1 += words;
            // SAFETY: within the chunk.
            return Ok(unsafe { start.add(used) });
        }
        self.alloc_next(words)
    }

    #[cold]
    fn alloc_next(&mut self, words: usize) -> Result<NonNull<u64>, AllocError> {
        let mut next = if self.chunks.is_empty() { 0 } else { self.at.0 + 1 };
        while self.chunks.get(next).is_some_and(|&(_, size)| size < words) {
            next += 1;
        }
        if next == self.chunks.len() {
            let size = (FIRST << next.min(16)).min(LARGEST).max(words);
            let failed = |_| AllocError::System { requested: size * 8 };
            self.chunks.try_reserve(1).map_err(failed)?;
            let mut chunk = Vec::new();
            chunk.try_reserve_exact(size).map_err(failed)?;
            chunk.resize(size, 0_u64);
            let chunk = Box::leak(chunk.into_boxed_slice());
            self.chunks.push((NonNull::from(chunk).cast(), size));
        }
        self.at = (next, words);
        Ok(self.chunks[next].0)
    }

    /// Copies a key into the arena.
    pub(crate) fn key(&mut self, key: KeyRef<'_>) -> Result<Stored, AllocError> {
        Ok(match key {
            KeyRef::Word(word) => Stored::Word(word),
            KeyRef::Bytes(bytes) => {
                let start = self.alloc(bytes.len().div_ceil(8))?.cast::<u8>();
                // SAFETY: the arena has just returned as many words for this.
                unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
                Stored::Bytes(start, bytes.len())
            }
        })
    }

    /// The present position.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.at)
    }

    /// Releases what was allocated since the mark was taken.
    ///
    /// # Safety
    /// Nobody uses those objects any more, and no older mark was released meanwhile.
    pub(crate) unsafe fn release(&mut self, mark: Mark) {
        self.at = mark.0;
    }

    /// Releases everything. Large chunks go back to the system.
    ///
    /// # Safety
    /// Nobody uses the objects any more.
    pub(crate) unsafe fn clear(&mut self) {
        self.at = (0, 0);
        let mut words: usize = self.chunks.iter().map(|&(_, size)| size).sum();
        while words > KEPT {
            let Some((start, size)) = self.chunks.pop() else { break };
            words -= size;
            // SAFETY: leaked in `alloc_next`, and dropped once.
            drop(unsafe { Box::from_raw(NonNull::slice_from_raw_parts(start, size).as_ptr()) });
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for &(start, size) in &self.chunks {
            // SAFETY: leaked in `alloc_next`, and dropped once.
            drop(unsafe { Box::from_raw(NonNull::slice_from_raw_parts(start, size).as_ptr()) });
        }
    }
}

/// A key in an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    Word(u64),
    Bytes(NonNull<u8>, usize),
}

impl Stored {
    /// Borrows the key.
    ///
    /// # Safety
    /// The arena has not released the key during `'a`.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> KeyRef<'a> {
        match self {
            Self::Word(word) => KeyRef::Word(word),
            Self::Bytes(start, len) => {
                // SAFETY: `Arena::key` wrote the bytes; the caller's promise.
                KeyRef::Bytes(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_stay_until_they_are_released() {
        let mut arena = Arena::default();
        let mut all = Vec::new();
        for n in 0..3000_usize {
            let words = n % 40 + usize::from(n == 1500) * 100_000;
            let object = arena.alloc(words).unwrap();
            // SAFETY: the arena returned as many words.
            unsafe { (0..words).for_each(|at| object.add(at).write(n as u64)) };
            all.push((object, words));
        }
        for (n, (object, words)) in all.into_iter().enumerate() {
            // SAFETY: not released yet.
            unsafe { (0..words).for_each(|at| assert_eq!(object.add(at).read(), n as u64)) };
        }
        let key = arena.key(KeyRef::Bytes(b"nine bytes")).unwrap();
        // SAFETY: not released yet.
        assert_eq!(unsafe { key.get() }, KeyRef::Bytes(b"nine bytes"));
        let mark = arena.mark();
        let first = arena.alloc(10).unwrap();
        // SAFETY: nobody uses the object; then, nobody uses any.
        unsafe {
            arena.release(mark);
            assert_eq!(arena.alloc(10).unwrap(), first);
            arena.clear();
        }
        assert!(arena.chunks.iter().map(|chunk| chunk.1).sum::<usize>() <= KEPT);
    }
}

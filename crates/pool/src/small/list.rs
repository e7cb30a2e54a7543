//! The small slots of an index, and the chunks that they are cut off.

use super::{LARGEST, LARGEST_ALIGN, SOURCE};
use crate::AllocError;
use crate::budget::Budget;
use crate::bytes;
use crate::magazine::Run;
use silvics_sync::tagged::{HINT_BITS, TAG_BITS, Tagged};
use std::ptr::NonNull;

/// The bytes of the first chunk, unless the first object is larger.
const FIRST_CHUNK: usize = 512;
/// The bytes of later chunks. A larger object has a chunk of its own. A thread has a magazine for
/// each size, so there are two.
const LATER_CHUNK: usize = 1024;
/// An index adds the bytes that it returned to the source's count in portions of this size.
pub(super) const NOTED: usize = 64 << 10;

/// A small slot, with the number of its pool and its bytes, or a chunk.
#[derive(Clone, Copy)]
pub(super) struct Noted(Tagged<u8>);

/// The number of low bits in which a note has the bytes of a slot, in units of [`UNIT`].
const SIZE_BITS: u32 = 10;
const UNIT: usize = 8;
const _: () = assert!(LARGEST / UNIT < 1 << SIZE_BITS);
/// The most pools of one index that start small: the other bits of a note hold their numbers.
pub(super) const POOLS: u32 = (1 << (TAG_BITS + HINT_BITS - SIZE_BITS)) - 1;
/// The number in place of a pool's that says that the note is a chunk's.
pub(super) const CHUNK: u32 = POOLS;

impl Noted {
    pub(super) fn new(slot: NonNull<u8>, pool: u32, bytes: usize) -> Self {
        let word = (pool << SIZE_BITS) as usize | (bytes / UNIT);
        let slot = Tagged::new(slot.as_ptr()).with_tag(word & ((1 << TAG_BITS) - 1));
        Self(slot.with_hint((word >> TAG_BITS) as u16))
    }

    fn word(self) -> usize {
        usize::from(self.0.hint()) << TAG_BITS | self.0.tag()
    }

    pub(super) fn pool(self) -> u32 {
        (self.word() >> SIZE_BITS) as u32
    }

    pub(super) fn bytes(self) -> usize {
        (self.word() & ((1 << SIZE_BITS) - 1)) * UNIT
    }

    pub(super) fn slot(self) -> NonNull<u8> {
        NonNull::new(self.0.pointer()).expect("made of an address")
    }
}

/// The slots and the chunks of an index.
pub(super) struct List {
    /// The live slots and the chunks.
    pub(super) noted: Vec<Noted>,
    /// The slots that were freed.
    pub(super) spare: Vec<Noted>,
    pub(super) chunks: usize,
    /// The bytes of the chunks.
    pub(super) held: usize,
    /// The part of the newest chunk that has not been cut off yet.
    rest: Run,
    /// The bytes returned to the source that its count does not contain yet.
    pub(super) returned: usize,
}

impl Default for List {
    fn default() -> Self {
        let (noted, spare) = Default::default();
        Self { noted, spare, chunks: 0, held: 0, rest: Run::EMPTY, returned: 0 }
    }
}

// SAFETY: the list holds addresses; the slots belong to those who have them, or to the index.
unsafe impl Send for List {}

/// Makes room for more notes, and takes the bytes from the budget.
pub(super) fn reserve(
    notes: &mut Vec<Noted>,
    least: usize,
    budget: &Budget,
) -> Result<(), AllocError> {
    let len = notes.len();
    if len + least <= notes.capacity() {
        return Ok(());
    }
    let more = len.max(8);
    let bytes = (len + more - notes.capacity()) * size_of::<Noted>();
    budget.take(bytes)?;
    if notes.try_reserve_exact(more).is_err() {
        budget.give(bytes);
        return Err(AllocError::System { requested: bytes });
    }
    debug_assert_eq!(notes.capacity(), len + more, "the budget has these bytes (F2)");
    Ok(())
}

/// Makes a slot a spare one. Without memory for the note, nobody uses it again before the chunks go
/// back.
pub(super) fn make_spare(spare: &mut Vec<Noted>, slot: Noted, budget: &Budget) {
    if reserve(spare, 1, budget).is_ok() {
        spare.push(slot);
    }
}

impl List {
    /// A slot of `bytes` bytes, if a spare one fits or the newest chunk has room.
    pub(super) fn cut(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if let Some(at) = self.spare.iter().rposition(|spare| spare.bytes() == bytes) {
            return Some(self.spare.swap_remove(at).slot());
        }
        let Run { next, end } = self.rest;
        let align = (bytes & bytes.wrapping_neg()).min(LARGEST_ALIGN);
        if align == LARGEST_ALIGN {
            let slot = next.map_addr(|next| next.next_multiple_of(align));
            if end.addr().checked_sub(slot.addr())? < bytes {
                return None;
            }
            self.rest.next = slot.wrapping_add(bytes);
            return NonNull::new(slot);
        }
        let slot = end.map_addr(|end| end.wrapping_sub(bytes) & !(align - 1));
        if end.addr() < bytes || slot.addr() < next.addr() {
            return None;
        }
        self.rest.end = slot;
        NonNull::new(slot)
    }

    /// Takes a chunk with room for `bytes` bytes from the source, and its bytes from the budget.
    pub(super) fn add_chunk(&mut self, bytes: usize, budget: &Budget) -> Result<(), AllocError> {
        let usual = if self.chunks == 0 { FIRST_CHUNK } else { LATER_CHUNK };
        let class = bytes::class_of(bytes.max(usual));
        // Near a limit, a chunk has no more room than is needed.
        let least = bytes::class_of(bytes);
        let class = match budget.take(SOURCE.core.size(class)) {
            Ok(()) => class,
            Err(_) => budget.take(SOURCE.core.size(least)).map(|()| least)?,
        };
        let bytes = SOURCE.core.size(class);
        let chunk = SOURCE.core.alloc(class).inspect_err(|_| budget.give(bytes))?;
        self.noted.push(Noted::new(chunk, CHUNK, bytes)); // the caller has made room
        self.chunks += 1;
        self.held += bytes;
        let next = chunk.as_ptr();
        self.rest = Run { next, end: next.wrapping_add(bytes) };
        Ok(())
    }

    /// Returns all chunks to the source. Returns the bytes that its count must grow by.
    ///
    /// # Safety
    /// Nobody uses a slot of the list any more.
    #[must_use]
    pub(super) unsafe fn release(&mut self, budget: &Budget) -> usize {
        for chunk in self.noted.drain(..).filter(|noted| noted.pool() == CHUNK) {
            // SAFETY: F1; the caller's promise.
            unsafe { give_back(chunk.slot(), chunk.bytes()) };
        }
        self.spare.clear();
        budget.give(self.held);
        self.returned += self.held;
        (self.chunks, self.held, self.rest) = (0, 0, Run::EMPTY);
        if self.returned < NOTED { 0 } else { std::mem::take(&mut self.returned) }
    }

    /// Returns all chunks to the source if no slot is live: see [`List::release`].
    pub(super) fn release_if_unused(&mut self, budget: &Budget) -> usize {
        if self.noted.len() > self.chunks || self.chunks == 0 {
            return 0;
        }
        // SAFETY: F1: a slot that somebody uses is in the list, and not spare.
        unsafe { self.release(budget) }
    }

    /// The bytes of the lists themselves.
    pub(super) fn bytes(&self) -> usize {
        (self.noted.capacity() + self.spare.capacity()) * size_of::<Noted>()
    }
}

/// Returns a chunk to the source.
///
/// # Safety
/// The chunk came from the source with these bytes, nobody uses it any more, and it is returned
/// once.
unsafe fn give_back(chunk: NonNull<u8>, bytes: usize) {
    #[cfg(silvics_poison)]
    // SAFETY: the caller's promise. The slots in the chunk may be free or not.
    unsafe {
        crate::poison::forget(chunk, bytes);
        crate::poison::free(chunk, bytes);
    }
    // SAFETY: the caller's promise.
    unsafe { SOURCE.core.free(bytes::class_of(bytes), chunk) };
}

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
/// The bytes of later chunks. A thread has a magazine for each size, so there are two. An object
/// that is larger than half of this, and finds no room, gets a chunk of its own.
const LATER_CHUNK: usize = 1024;
/// An index adds the bytes that it returned to the source's count in portions of this size.
pub(super) const NOTED: usize = 64 << 10;

/// A small slot, live or spare, with the number of its pool and its bytes, or a chunk.
#[derive(Clone, Copy)]
pub(super) struct Noted(Tagged<u8>);

/// The number of low bits in which a note has the bytes of a slot, in units of [`UNIT`].
const SIZE_BITS: u32 = 10;
const UNIT: usize = 8;
const _: () = assert!(LARGEST / UNIT < 1 << SIZE_BITS);
/// The most pools of one index that start small: the other bits of a note hold their numbers.
pub(super) const POOLS: u32 = (1 << (TAG_BITS + HINT_BITS - SIZE_BITS)) - 2;
/// The number in place of a pool's that says that the note is a chunk's.
const CHUNK: u32 = POOLS;
/// The number in place of a pool's that says that the slot is a spare one.
const SPARE: u32 = POOLS + 1;

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
    noted: Vec<Noted>,
    chunks: u32,
    live: u32,
    spare: u32,
    /// The bytes returned to the source that its count does not contain yet.
    pub(super) returned: u32,
    /// The bytes of the chunks.
    pub(super) held: usize,
    /// The part of the newest chunk that has not been cut off yet.
    rest: Run,
}

impl Default for List {
    fn default() -> Self {
        let noted = Vec::new();
        Self { noted, chunks: 0, live: 0, spare: 0, returned: 0, held: 0, rest: Run::EMPTY }
    }
}

// SAFETY: the list holds addresses; the slots belong to those who have them, or to the index.
unsafe impl Send for List {}

impl List {
    /// The number of live slots.
    pub(super) fn live(&self) -> usize {
        self.live as usize
    }

    /// The live slots of a pool.
    pub(super) fn of(&self, pool: u16) -> impl Iterator<Item = Noted> {
        self.noted.iter().copied().filter(move |noted| noted.pool() == pool.into())
    }

    /// A slot of `bytes` bytes for a pool: a spare one of this size, else one cut off the newest
    /// chunk, else off a new chunk, if all chunks then have about `most` bytes or less.
    pub(super) fn alloc(
        &mut self,
        pool: u16,
        bytes: usize,
        most: usize,
        budget: &Budget,
    ) -> Result<Option<NonNull<u8>>, AllocError> {
        if let Some(at) = self.find_spare(bytes) {
            let slot = self.noted[at].slot();
            self.noted[at] = Noted::new(slot, pool.into(), bytes);
            (self.spare, self.live) = (self.spare - 1, self.live + 1);
            return Ok(Some(slot));
        }
        self.reserve(2, budget)?; // the slot, and perhaps a chunk
        let is_large = bytes > LATER_CHUNK / 2;
        let usual = match self.chunks {
            _ if is_large => bytes,
            0 => FIRST_CHUNK,
            _ => LATER_CHUNK,
        };
        let slot = match self.cut(bytes) {
            Some(slot) => slot,
            None if self.held + bytes.max(usual) > most => return Ok(None),
            None => {
                let chunk = self.add_chunk(bytes, usual, budget)?;
                let rest = std::mem::replace(&mut self.rest, chunk);
                let slot = self.cut(bytes).expect("a new chunk has room");
                if is_large {
                    self.rest = rest;
                }
                slot
            }
        };
        self.noted.push(Noted::new(slot, pool.into(), bytes));
        self.live += 1;
        Ok(Some(slot))
    }

    fn find_spare(&self, bytes: usize) -> Option<usize> {
        let fits = |noted: &Noted| noted.pool() == SPARE && noted.bytes() == bytes;
        if self.spare == 0 { None } else { self.noted.iter().rposition(fits) }
    }

    /// Makes a live slot a spare one. Returns its bytes, if there is such a slot.
    pub(super) fn free(&mut self, slot: NonNull<u8>) -> Option<usize> {
        let is_it = |noted: &&mut Noted| noted.slot() == slot && noted.pool() < POOLS;
        let noted = self.noted.iter_mut().rev().find(is_it)?;
        let bytes = noted.bytes();
        *noted = Noted::new(slot, SPARE, bytes);
        (self.live, self.spare) = (self.live - 1, self.spare + 1);
        Some(bytes)
    }

    /// Makes all slots of a pool spare ones.
    pub(super) fn free_all(&mut self, pool: u16) {
        for noted in self.noted.iter_mut().filter(|noted| noted.pool() == pool.into()) {
            *noted = Noted::new(noted.slot(), SPARE, noted.bytes());
            (self.live, self.spare) = (self.live - 1, self.spare + 1);
        }
    }

    /// Makes room for more notes, and takes the bytes from the budget.
    fn reserve(&mut self, least: usize, budget: &Budget) -> Result<(), AllocError> {
        let len = self.noted.len();
        if len + least <= self.noted.capacity() {
            return Ok(());
        }
        let more = (len / 4).max(8);
        let bytes = (len + more - self.noted.capacity()) * size_of::<Noted>();
        budget.take(bytes)?;
        if self.noted.try_reserve_exact(more).is_err() {
            budget.give(bytes);
            return Err(AllocError::System { requested: bytes });
        }
        debug_assert_eq!(self.noted.capacity(), len + more, "the budget has these bytes (F2)");
        Ok(())
    }

    /// A slot of `bytes` bytes, if the newest chunk has room.
    fn cut(&mut self, bytes: usize) -> Option<NonNull<u8>> {
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

    /// Takes a chunk of `usual` bytes from the source, or one with just the room for `bytes` bytes,
    /// and its bytes from the budget.
    fn add_chunk(
        &mut self,
        bytes: usize,
        usual: usize,
        budget: &Budget,
    ) -> Result<Run, AllocError> {
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
        Ok(Run { next, end: next.wrapping_add(bytes) })
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
        budget.give(self.held);
        let returned = self.returned as usize + self.held;
        (self.chunks, self.live, self.spare) = (0, 0, 0);
        (self.held, self.rest) = (0, Run::EMPTY);
        // Below `NOTED`, so it fits.
        self.returned = if returned < NOTED { returned as u32 } else { 0 };
        returned - self.returned as usize
    }

    /// Returns all chunks to the source if no slot is live: see [`List::release`].
    pub(super) fn release_if_unused(&mut self, budget: &Budget) -> usize {
        if self.live > 0 || self.chunks == 0 {
            return 0;
        }
        // SAFETY: F1: a slot that somebody uses is in the list, and not spare.
        unsafe { self.release(budget) }
    }

    /// The bytes of the list itself.
    pub(super) fn bytes(&self) -> usize {
        self.noted.capacity() * size_of::<Noted>()
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

//! The order of a block's keys.
//!
//! A block is made with its entries in order, and notes this order: the number of places, and then
//! the places. A thread that needs the order puts later keys in at their ranks. A walk notes the
//! order that it has found, so that the next one finds it.
//!
//! Each noted order has more places than the one before. So the first word of it, which has their
//! number, changes with each, and a reader that finds the same word before and after its copy has
//! one order (a seqlock; Boehm, "Can seqlocks get along with programming language memory models?",
//! MSPC 2012). A walk that finds another one noting an order does not wait.

use super::block::{BlockRef, MAX_ENTRIES, MAX_PLACES, low_of};
use super::key::WordKey;
use silvics_sync::atomic::{Ordering, fence};

/// Places of a block in the order of their keys. The length is a power of two, so that an index
/// needs no check.
pub(super) type Order = [u8; MAX_PLACES.next_power_of_two()];
pub(super) const NO_ORDER: Order = [0; MAX_PLACES.next_power_of_two()];
/// The words that have the order.
pub(super) const ORDER_WORDS: usize = MAX_ENTRIES.div_ceil(8);
/// The most places that the order has. Its first byte is their number.
const MAX_KNOWN: usize = 8 * ORDER_WORDS - 1;
/// The bits of the first word of the order that have the number of places.
const KNOWN: u64 = 0x7F;
/// The bit of this word that says that a thread is noting an order.
const NOTING: u64 = 0x80;

impl<K: WordKey> BlockRef<'_, K> {
    /// Adds the places that have a key and are not in the order of the first `known` ones. Returns
    /// the number of all.
    #[inline(never)]
    pub(super) fn complete(self, order: &mut Order, known: usize, top: K) -> usize {
        let mut taken = [0_u8; 16];
        for place in &order[..known] {
            taken[usize::from(place / 8)] |= 1 << (place % 8);
        }
        let (mut others, mut len) = ([(top, 0_u8); MAX_PLACES], 0);
        for (group, taken) in taken.iter().enumerate().take(self.word().groups()) {
            for at in (0..K::PER_GROUP).filter(|at| taken >> at & 1 == 0) {
                if !self.has_key(K::GROUP_WORDS * group + at) {
                    break;
                }
                let place = (8 * group + at) as u8;
                let key = self.known_key(low_of::<K>(place), top);
                let mut rank = len;
                while rank > 0 && others[rank - 1].0 > key {
                    others[rank] = others[rank - 1];
                    rank -= 1;
                }
                others[rank] = (key, place);
                len += 1;
            }
        }
        // Both lists are in order. This merges them, from their ends on.
        let (mut ours, mut theirs) = (known, len);
        while theirs > 0 {
            let (key, other) = others[theirs - 1];
            let last = order[ours.saturating_sub(1)];
            let is_ours = ours > 0 && self.known_key(low_of::<K>(last), top) > key;
            let end = ours + theirs - 1;
            order[end] = if is_ours { last } else { other };
            (ours, theirs) = if is_ours { (ours - 1, theirs) } else { (ours, theirs - 1) };
        }
        known + len
    }

    /// The places of all keys in the order of the keys, present or not. Returns their number, and
    /// the number of those whose rank the block knew. `top` is that of the keys.
    #[inline(always)]
    pub(super) fn ordered(self, order: &mut Order, top: K) -> (usize, usize) {
        let known = self.copy_order(order);
        let len = if self.keys() == known { known } else { self.complete(order, known, top) };
        (len, known)
    }

    /// Notes the order of some places in a block that nobody else has.
    pub(super) fn set_order(self, places: &[u8]) {
        let known = places.len().min(MAX_KNOWN);
        let mut bytes = [0; 8 * ORDER_WORDS];
        bytes[0] = known as u8;
        bytes[1..][..known].copy_from_slice(&places[..known]);
        for (word, bytes) in self.order().iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// Notes the order of all keys that a walk has found. If it knows no more than the block, or if
    /// another thread notes an order, it does nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn note_order(self, places: &[u8]) {
        let known = places.len().min(MAX_KNOWN);
        let [first, others @ ..] = self.order();
        let word = first.load(Ordering::Relaxed);
        let busy = word | NOTING;
        // Acquire: with the exchange of the thread that has noted the last order.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        if known <= (word & KNOWN) as usize
            || word & NOTING != 0
            || first.compare_exchange(word, busy, success, failure).is_err()
        {
            return;
        }
        fence(Ordering::Release); // A reader that finds one of the others then finds `NOTING`.
        let mut bytes = [0; 8 * ORDER_WORDS];
        bytes[0] = known as u8;
        bytes[1..][..known].copy_from_slice(&places[..known]);
        let ([own, bytes @ ..], _) = bytes.as_chunks() else { unreachable!("there is a word") };
        for (word, bytes) in others.iter().zip(bytes) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        first.store(u64::from_le_bytes(*own), Ordering::Release);
    }

    /// Copies the places whose order is known, in this order, and returns their number: 0 if
    /// another thread notes an order meanwhile.
    ///
    /// Each order that is noted has more places than the one before, so an equal first word says
    /// that the words are of one order.
    #[inline(always)]
    fn copy_order(self, to: &mut Order) -> usize {
        let [first, others @ ..] = self.order();
        let word = first.load(Ordering::Acquire);
        to[..8].copy_from_slice(&(word >> 8).to_le_bytes());
        for (at, word) in others.iter().enumerate() {
            let word = word.load(Ordering::Relaxed);
            to[8 * at + 7..][..8].copy_from_slice(&word.to_le_bytes());
        }
        fence(Ordering::Acquire);
        let is_one = word & NOTING == 0 && first.load(Ordering::Relaxed) == word;
        if is_one { (word & KNOWN) as usize } else { 0 }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::words::value::Marks;
    use crate::words::word::Word;
    use std::ptr::NonNull;
    use std::sync::Barrier;

    #[derive(Clone, Copy)]
    struct Shared<'g>(BlockRef<'g, u64>);
    // SAFETY: blocks are shared by the threads of a tree.
    unsafe impl Sync for Shared<'_> {}
    // SAFETY: blocks are shared by the threads of a tree.
    unsafe impl Send for Shared<'_> {}

    impl<'g> Shared<'g> {
        fn block(self) -> BlockRef<'g, u64> {
            self.0
        }
    }

    /// Several blocks: an order of `n` places is noted as `n` times the place `n`.
    #[test]
    fn a_copied_order_is_one_order() {
        const GROUPS: usize = 1;
        let rounds = if cfg!(miri) { 3 } else { 2000 };
        for _ in 0..rounds {
            let mut memory = [0_u64; 2 * 8];
            let block = NonNull::from(&mut memory).cast::<u8>();
            // SAFETY: the memory has the bytes of a head and a group, and lives longer than the
            // block.
            let block = unsafe {
                BlockRef::<u64>::init(block, GROUPS, Marks::BOTH[0]);
                Shared(BlockRef::<u64>::new(Word::block(block, GROUPS, Marks::BOTH[0])))
            };
            let start = Barrier::new(3);
            let note = || {
                start.wait();
                (1..=MAX_KNOWN).for_each(|n| block.block().note_order(&vec![n as u8; n]));
            };
            let read = || {
                start.wait();
                let (mut order, mut most) = (NO_ORDER, 0);
                while most < MAX_KNOWN {
                    let known = block.block().copy_order(&mut order);
                    assert!(order[..known].iter().all(|place| usize::from(*place) == known));
                    assert!(known == 0 || known >= most, "{known} after {most}");
                    most = most.max(known);
                }
            };
            std::thread::scope(|scope| {
                let threads = [scope.spawn(note), scope.spawn(note), scope.spawn(read)];
                for thread in threads {
                    thread.join().unwrap();
                }
            });
        }
    }
}

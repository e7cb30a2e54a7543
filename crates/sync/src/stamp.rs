//! Numbers that are given out once.
//!
//! A word that returns to a value it had before deceives a compare-and-swap that expects this value.
//! A pointer is told from its past by epochs: memory that somebody may still compare with is not
//! reused. What is no pointer, as the word of an empty link, is told from its past by a stamp.
//!
//! A thread takes its stamps from a block of its own, so that a stamp costs an increment, and the
//! shared counter a lock per block. Stamps have 60 bits: at one every nanosecond they last for
//! decades.

use std::cell::Cell;
// Not the facade's: a stamp is no scheduling point, and which one it is makes no difference.
use std::sync::{Mutex, PoisonError};

/// Bits of a stamp.
pub const STAMP_BITS: u32 = 60;

/// Stamps of a block.
const BLOCK: u64 = 1 << 16;

/// Blocks given out.
static BLOCKS: Mutex<u64> = Mutex::new(0);

std::thread_local! {
    /// This thread's next stamp; a multiple of [`BLOCK`] if it has none left.
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A number above 0 that nobody else in this process gets.
#[inline]
pub fn stamp() -> u64 {
    let mine = NEXT.with(Cell::get);
    let stamp = if mine.is_multiple_of(BLOCK) { block() } else { mine };
    NEXT.with(|next| next.set(stamp + 1));
    stamp
}

/// The first stamp of a new block. The block's stamp 0 is not given out, so that none is 0 and the
/// one after a block's last tells that there are none left.
#[cold]
fn block() -> u64 {
    let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    *blocks += 1;
    debug_assert!(*blocks < (1 << STAMP_BITS) / BLOCK);
    (*blocks - 1) * BLOCK + 1
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_stamp_is_given_twice() {
        let each = 2 * BLOCK as usize + 100;
        let threads: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(move || (0..each).map(|_| stamp()).collect::<Vec<_>>()))
            .collect();
        let all: Vec<u64> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        let distinct: HashSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len(), 3 * each);
        assert!(!distinct.contains(&0));
    }
}

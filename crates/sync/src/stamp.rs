//! Numbers that are unique in the process.
//!
//! A compare-and-swap is deceived by a word that changes and returns to the expected value (the ABA
//! problem). For pointers, epochs prevent this: memory that somebody may still compare with is not
//! reused. For words that are no pointers, such as that of an empty link, a stamp prevents it.
//!
//! A thread takes its stamps from a block of its own. So a stamp costs an increment, and the shared
//! counter costs a lock per block. Stamps have 60 bits: at one every nanosecond they last for
//! decades.

use std::cell::Cell;
// Not the facade's mutex: a stamp is no scheduling point, and its value makes no difference.
use std::sync::{Mutex, PoisonError};

/// The number of bits of a stamp.
pub const STAMP_BITS: u32 = 60;

/// The number of stamps in a block.
const BLOCK: u64 = 1 << 16;

/// The number of blocks taken so far.
static BLOCKS: Mutex<u64> = Mutex::new(0);

std::thread_local! {
    /// This thread's next stamp, or a multiple of [`BLOCK`] if its block is used up.
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Returns a number above 0 that no other call in this process returns.
#[inline]
pub fn stamp() -> u64 {
    let mine = NEXT.with(Cell::get);
    let stamp = if mine.is_multiple_of(BLOCK) { block() } else { mine };
    NEXT.with(|next| next.set(stamp + 1));
    stamp
}

/// Takes a new block and returns its first stamp.
///
/// The block's stamp 0 is never used. So no stamp is 0, and the number after a block's last stamp
/// marks the block as used up.
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
        let each = if cfg!(miri) { 100 } else { 2 * BLOCK as usize + 100 };
        let threads: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(move || (0..each).map(|_| stamp()).collect::<Vec<_>>()))
            .collect();
        let all: Vec<u64> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        let distinct: HashSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len(), 3 * each);
        assert!(!distinct.contains(&0));
    }
}

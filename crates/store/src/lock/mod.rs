//! Transactional locks: shared and exclusive, held until the end of a transaction.
//!
//! `word.rs` has the state of a lock and its transitions, `table.rs` the locks of absent keys. A
//! row lock is a type, so that its size and padding are a policy:
//!
//! | type | bytes | transitions are made by |
//! |---|---|---|
//! | [`WordLock`] | 8 | exchanges of the word |
//! | [`Latched<SpinLock>`](Latched) | 16 | loads and stores under a spin lock |
//! | [`Latched<PthreadLock>`](Latched) | 48 | loads and stores under the C library's mutex of 40 bytes |
//! | [`Padded<L>`] | 192 if `L` has 48 | `L`; no other lock shares its lines (Arbel-Raviv, Brown and Morrison, ATC 2018) |

pub(crate) mod table;
mod word;

pub(crate) use word::{NO_HOLDER, Refused};
pub use word::{RowLock, WordLock};

use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::lock::RawLock;
use word::{State, Transition};

pub use silvics_sync::lock::SpinLock;
pub use silvics_sync::pthread::PthreadLock;

/// A lock whose state is read and written under a latch, as the study's database does it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Latched<L> {
    latch: L,
    state: AtomicU64,
}

impl<L: RawLock> word::private::Sealed for Latched<L> {}

impl<L: RawLock + 'static> RowLock for Latched<L> {
    fn held_absent(ts: u64) -> Self {
        Self { latch: L::default(), state: AtomicU64::new(State::held_absent(ts).0) }
    }

    #[inline]
    fn change<T>(&self, transition: impl Fn(State) -> Transition<T>) -> T {
        self.latch.lock();
        // Relaxed: the latch orders all accesses of the state, except those of `peek`.
        let (next, result) = transition(State(self.state.load(Ordering::Relaxed)));
        if let Some(next) = next {
            self.state.store(next.0, Ordering::Release);
        }
        // SAFETY: this thread locked the latch above. `transition` does not panic.
        unsafe { self.latch.unlock() };
        result
    }

    fn peek(&self) -> State {
        State(self.state.load(Ordering::Acquire))
    }
}

/// A lock with padding, so that no other lock shares its cache lines or the line beside them.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Padded<L> {
    lock: L,
    padding: [u64; 18],
}

impl<L: RowLock> word::private::Sealed for Padded<L> {}

impl<L: RowLock> RowLock for Padded<L> {
    const USED: usize = L::USED;

    fn held_absent(ts: u64) -> Self {
        Self { lock: L::held_absent(ts), padding: [0; 18] }
    }
    #[inline(always)]
    fn change<T>(&self, transition: impl Fn(State) -> Transition<T>) -> T {
        self.lock.change(transition)
    }
    fn peek(&self) -> State {
        self.lock.peek()
    }
}

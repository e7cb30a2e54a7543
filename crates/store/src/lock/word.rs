//! The state of a transactional lock.
//!
//! # Rules
//! The word contains `ts (48 bits) | readers (14 bits) | absent | writer`.
//!
//! 1. Any number of transactions hold the lock *shared*: `readers` counts their requests. A
//!    transaction that asks twice counts twice.
//! 2. One transaction holds it *exclusive*: `writer` is set and `readers` is 0.
//! 3. `ts` is the smallest timestamp among the transactions that have held the lock since it was
//!    last free. So it is at most the timestamp of each holder: a transaction that takes it for
//!    that of a holder waits for less, and never for an older one. If nobody holds the lock, it has
//!    no meaning.
//! 4. `absent` says that the row is deleted, or not yet committed. Only a holder of the exclusive
//!    lock changes it. An absent row that nobody holds is never locked again.
//! 5. A transaction that alone holds the lock shared can make it exclusive.
//!
//! # Memory ordering
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `change` load | Relaxed | – | decides what the exchange tries, or that the request is refused; a refusal says nothing about the row |
//! | `change` exchange | `AcqRel` / Relaxed | `change` exchange | a new holder sees what the holders before it wrote; a reader has read before a later writer writes |
//! | `peek` load | Acquire | `change` | a row that is seen absent has its last state |
//!
//! A next-key check reads the state after a `SeqCst` fence that follows the insertion into the
//! index; a scan reads the index again after a `SeqCst` fence that follows its locks
//! (`policy/locking.rs`). So one of the two sees the other.

use silvics_sync::atomic::{AtomicU64, Ordering};

pub(crate) mod private {
    pub trait Sealed {}
}

const WRITER: u64 = 1;
const ABSENT: u64 = 2;
const READER: u64 = 4;
const READERS: u64 = (1 << 14) - 1;
const TS_SHIFT: u32 = 16;

/// The timestamp that is older than each transaction: nobody waits for such a holder.
pub(crate) const NO_HOLDER: u64 = 0;

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct State(pub(super) u64);

/// The state that follows, if it differs, and the result of the transition.
#[doc(hidden)]
pub(super) type Transition<T> = (Option<State>, T);

/// Why a lock was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
#[must_use]
pub enum Refused {
    /// The row is absent, and nobody holds it (rule 4).
    Absent,
    /// Other transactions hold the lock. Their timestamps are not below this one.
    Held(u64),
}

impl State {
    /// The state of a new row: its transaction holds it, and it is absent.
    pub(super) fn held_absent(ts: u64) -> Self {
        Self((ts << TS_SHIFT) | ABSENT | WRITER)
    }

    fn readers(self) -> u64 {
        (self.0 / READER) & READERS
    }

    /// Whether a transaction holds the lock exclusive.
    pub(crate) fn is_written(self) -> bool {
        self.0 & WRITER != 0
    }

    /// Whether the row is absent.
    pub(crate) fn is_absent(self) -> bool {
        self.0 & ABSENT != 0
    }

    /// The number of requests that hold the lock, of either kind.
    pub(crate) fn holds(self) -> u64 {
        self.readers() + u64::from(self.is_written())
    }

    /// The least timestamp of the holders, or a smaller one.
    pub(crate) fn oldest(self) -> u64 {
        self.0 >> TS_SHIFT
    }

    #[inline(always)]
    fn shared(self, ts: u64) -> Transition<Result<(), Refused>> {
        if self.0 & (WRITER | ABSENT) != 0 {
            let refused =
                if self.is_written() { Refused::Held(self.oldest()) } else { Refused::Absent };
            return (None, Err(refused));
        }
        let readers = self.readers();
        if readers == READERS {
            return (None, Err(Refused::Held(NO_HOLDER)));
        }
        let ts = if readers == 0 { ts } else { ts.min(self.oldest()) };
        (Some(Self((ts << TS_SHIFT) | ((readers + 1) * READER))), Ok(()))
    }

    #[inline(always)]
    fn exclusive(self, ts: u64, own: u64) -> Transition<Result<(), Refused>> {
        if self.is_written() || self.readers() != own {
            return (None, Err(Refused::Held(self.oldest())));
        }
        if self.is_absent() {
            return (None, Err(Refused::Absent));
        }
        (Some(Self((ts << TS_SHIFT) | WRITER)), Ok(()))
    }
}

/// A lock of rows. The trait is sealed.
pub trait RowLock: private::Sealed + Send + Sync + Sized + 'static {
    /// The bytes that its holders read and write: those without the padding.
    #[doc(hidden)]
    const USED: usize = size_of::<Self>();

    /// Makes the lock of a new row, which a transaction with timestamp `ts` holds.
    #[doc(hidden)]
    fn held_absent(ts: u64) -> Self;

    /// Changes the state in one atomic step. `transition` may be called several times.
    #[doc(hidden)]
    fn change<T>(&self, transition: impl Fn(State) -> Transition<T>) -> T;

    /// Returns the state at one moment.
    #[doc(hidden)]
    fn peek(&self) -> State;

    /// Requests the lock shared.
    #[doc(hidden)]
    #[inline(always)]
    fn lock_shared(&self, ts: u64) -> Result<(), Refused> {
        self.change(|state| state.shared(ts))
    }

    /// Requests the lock exclusive. The caller holds `own` shared requests, which become the
    /// exclusive one.
    #[doc(hidden)]
    #[inline(always)]
    fn lock_exclusive(&self, ts: u64, own: u64) -> Result<(), Refused> {
        self.change(|state| state.exclusive(ts, own))
    }

    /// Releases one shared request of the caller.
    #[doc(hidden)]
    #[inline(always)]
    fn unlock_shared(&self) {
        self.change(|state| (Some(State(state.0 - READER)), ()));
    }

    /// Releases the caller's exclusive lock. The row is absent from now on if `absent`.
    #[doc(hidden)]
    #[inline(always)]
    fn unlock_exclusive(&self, absent: bool) {
        self.change(|_| (Some(State(if absent { ABSENT } else { 0 })), ()));
    }
}

/// A lock of one word.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct WordLock(AtomicU64);

impl private::Sealed for WordLock {}

impl RowLock for WordLock {
    fn held_absent(ts: u64) -> Self {
        Self(AtomicU64::new(State::held_absent(ts).0))
    }

    #[inline(always)]
    fn change<T>(&self, transition: impl Fn(State) -> Transition<T>) -> T {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let (next, result) = transition(State(word));
            let Some(next) = next else { return result };
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange_weak(word, next.0, success, failure) {
                Ok(_) => return result,
                Err(now) => word = now,
            }
        }
    }

    fn peek(&self) -> State {
        State(self.0.load(Ordering::Acquire))
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::super::{Latched, Padded};
    use super::*;
    use silvics_sync::lock::SpinLock;
    use silvics_sync::pthread::PthreadLock;

    fn follows_the_rules<L: RowLock>() {
        let lock = L::held_absent(7);
        assert!(lock.peek().is_written() && lock.peek().is_absent());
        assert_eq!(lock.lock_shared(9), Err(Refused::Held(7)));
        lock.unlock_exclusive(false);
        assert_eq!((lock.lock_shared(9), lock.lock_shared(5)), (Ok(()), Ok(())));
        assert_eq!(lock.lock_exclusive(5, 1), Err(Refused::Held(5)), "9 holds it, too");
        lock.unlock_shared();
        assert_eq!(lock.peek().holds(), 1);
        assert_eq!(lock.lock_exclusive(5, 1), Ok(()), "rule 5");
        assert_eq!(lock.lock_exclusive(4, 0), Err(Refused::Held(5)));
        lock.unlock_exclusive(false);
        assert_eq!(lock.lock_shared(8), Ok(()));
        assert_eq!(lock.lock_exclusive(2, 0), Err(Refused::Held(8)), "rule 3: 5 is gone");
        lock.unlock_shared();
        assert_eq!(lock.lock_exclusive(3, 0), Ok(()));
        lock.unlock_exclusive(true);
        assert_eq!(lock.lock_shared(1), Err(Refused::Absent));
        assert_eq!(lock.lock_exclusive(1, 0), Err(Refused::Absent), "rule 4");
    }

    #[test]
    fn locks_follow_the_rules() {
        follows_the_rules::<WordLock>();
        follows_the_rules::<Latched<SpinLock>>();
        follows_the_rules::<Padded<Latched<PthreadLock>>>();
        let sizes = [
            size_of::<WordLock>(),
            size_of::<Latched<SpinLock>>(),
            size_of::<Latched<PthreadLock>>(),
            size_of::<Padded<Latched<PthreadLock>>>(),
        ];
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        assert_eq!(sizes, [8, 16, 48, 192]);
        let _ = sizes;
    }

    #[test]
    fn too_many_readers_are_refused() {
        let lock = WordLock::default();
        for _ in 0..READERS {
            assert_eq!(lock.lock_shared(3), Ok(()));
        }
        assert_eq!(lock.lock_shared(1), Err(Refused::Held(NO_HOLDER)));
        assert_eq!(lock.peek().oldest(), 3);
    }
}

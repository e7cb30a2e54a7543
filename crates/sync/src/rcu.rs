//! Read-copy-update: readers announce themselves, and a writer waits until all readers that may
//! have seen the state before its change have left.
//!
//! # Source
//! Arbel and Attiya, "Concurrent updates with RCU: search tree as an example", PODC 2014, for the
//! RCU of their tree, whose waiters do not wait for each other. Desnoyers, `McKenney`, Stern,
//! Dagenais and Walpole, "User-level implementations of read-copy update", IEEE TPDS 2012, for the
//! guarantee and the fences.
//!
//! # Protocol
//! Each thread has a cache line of its own with a counter, which is odd while the thread is inside.
//! ```text
//! read():        add one to the own counter; fence … read … ; add one again
//! synchronize(): fence; for each line: read its counter; if that is odd, wait until it changes
//! ```
//! * A reader inside a *section* ([`RcuDomain::read`]) may read data that writers change. It takes
//!   no lock, waits for nobody, and writes no line but its own. Sections should be short, because a
//!   writer may be waiting for their end. They do not nest.
//! * A writer changes something and calls [`RcuDomain::synchronize`]. When that returns, every
//!   section that may have begun before the change has ended. Any number of writers may wait at
//!   once; if there are strangers (departure 3), they take turns. A thread must not call it inside
//!   its own section: it would wait for itself forever.
//!
//! The guarantee (of the literature) holds for each section and each `synchronize`. Either the
//! section's end happens before the return, or all of the section's reads see the writes made
//! before the call.
//!
//! RCU reclaims nothing: nodes belong to a `Domain`, and a guard of a domain is no section. So a
//! thread that holds a guard, for however long, delays no writer here.
//!
//! # Departures
//! 1. Counter and flag are one word.
//! 2. A thread's line is made when it first needs one, charged to an account. The lines of the
//!    first [`PREPARED`] thread indexes are made with the domain. So a read allocates only if more
//!    threads live than ever before; the allocation doubles the number of lines.
//! 3. A thread without a line, because its allocation failed or its thread-local variables are
//!    destroyed, reads as a *stranger*. Strangers are counted in one shared word, in two halves. A
//!    writer that waits for them makes later strangers count in the other half. So it waits only
//!    for the strangers that were inside when its turn came.
//!
//! # Invariants
//! * R1: only the thread whose index a line has writes it, one thread at a time (P1 and P2 of
//!   [`crate::per_thread`]).
//! * R2: a line's word is odd exactly while its thread is in a section, and differs between any two
//!   sections.
//! * R3: a stranger counts in the half that was current when it entered, until it leaves.
//! * R4: when a writer takes `Strangers::turn`, the half that is not current is empty.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | line | `enter` | Release, then the fence | `synchronize`'s fence | one of the two fences comes first: if the reader's, the writer sees the line odd and waits; if the writer's, the reader sees what was written before it. Release: a writer that sees a later section knows that the earlier ones are over |
//! | line | `leave` | Release | `wait` | the section's reads come before the writer's next step |
//! | line | `wait` | Acquire | `enter`, `leave` | the reads of sections seen to be over come before the writer's next step |
//! | `strangers` | `enter` CAS, then the fence | Relaxed | `synchronize`'s fence | the fences are as for a line; all writes of this word are read-modify-writes, and so continue every release sequence |
//! | `strangers` | `leave` | Release | `wait` | the section's reads come before the writer's next step |
//! | `strangers` | `wait` | Acquire | `leave` | the section's reads come before the writer's next step |
//!
//! # Progress
//! `read` is wait-free, except for strangers, whose CAS is lock-free. `synchronize` waits for the
//! readers that were inside when it began, for as long as they stay; a preempted reader delays it.
//! It does not wait for readers that enter later. While there are strangers, it also waits for its
//! turn among writers, which take turns in no particular order.
//!
//! # Checked by
//! The tests below. `tests/loom.rs` explores every execution of readers beside a writer, and weaker
//! twins must fail there. The trees that use RCU check it too.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::backoff::Backoff;
use crate::lock::{RawLock, SpinLock};
use crate::per_thread::{Account, PerThread, thread_index};
use std::marker::PhantomData;

/// The number of threads that have a line from the start. (A model has few threads, which make
/// their own.)
pub const PREPARED: u32 = if cfg!(any(silvics_loom, silvics_shuttle)) { 0 } else { 31 };

/// On x86-64 a locked instruction is a full fence, and cheaper than the fence instruction. The
/// compiler moves no later read before a read-modify-write that acquires.
const SWAP_IS_A_FENCE: bool =
    cfg!(all(target_arch = "x86_64", not(any(silvics_loom, silvics_shuttle, miri))));

/// A domain of readers and of the writers that wait for them: see the [module](self).
///
/// ```
/// use silvics_sync::rcu::RcuDomain;
///
/// let domain: RcuDomain = RcuDomain::new(());
/// {
///     let _section = domain.read();
///     // Data read here stays valid until the section ends.
/// }
/// domain.synchronize(); // Now no section is left that began before the call.
/// ```
pub struct RcuDomain<A: Account = ()> {
    lines: PerThread<Line, A>,
    strangers: Strangers,
}

impl<A: Account> std::fmt::Debug for RcuDomain<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RcuDomain").finish_non_exhaustive()
    }
}

impl<A: Account> RcuDomain<A> {
    /// Makes a domain without readers. `account` is charged for its lines.
    pub fn new(account: A) -> Self {
        let lines = PerThread::new(account);
        lines.prepare(PREPARED);
        Self { lines, strangers: Strangers::default() }
    }

    /// Begins a section of the calling thread, which must not be in one already. The section ends
    /// when the result is dropped.
    #[inline(always)]
    pub fn read(&self) -> ReadSection<'_> {
        match thread_index().and_then(|index| self.lines.get(index)) {
            Some(line) => {
                line.enter();
                ReadSection { place: Place::Line(line), stays: PhantomData }
            }
            None => self.read_elsewhere(),
        }
    }

    #[cold]
    fn read_elsewhere(&self) -> ReadSection<'_> {
        let place = match thread_index().and_then(|index| self.lines.get_or_make(index)) {
            Some(line) => {
                line.enter();
                Place::Line(line)
            }
            None => Place::Stranger(&self.strangers, self.strangers.enter()),
        };
        ReadSection { place, stays: PhantomData }
    }

    /// Waits until every section that was running at the call has ended. Do not call it inside a
    /// section: it would wait for itself forever.
    pub fn synchronize(&self) {
        debug_assert!(!self.is_inside(), "synchronize within a read section waits for itself");
        fence(Ordering::SeqCst);
        for line in self.lines.iter() {
            line.wait();
        }
        self.strangers.wait();
    }

    /// Whether the calling thread is in a section, according to its line.
    fn is_inside(&self) -> bool {
        thread_index().and_then(|index| self.lines.get(index)).is_some_and(Line::is_inside)
    }
}

/// A read section of one thread. It ends when this is dropped.
#[must_use = "dropping this ends the section"]
pub struct ReadSection<'r> {
    place: Place<'r>,
    stays: PhantomData<*const ()>,
}

impl std::fmt::Debug for ReadSection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadSection").finish_non_exhaustive()
    }
}

/// The word in which a section is announced.
enum Place<'r> {
    Line(&'r Line),
    Stranger(&'r Strangers, Half),
}

impl Drop for ReadSection<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        match &self.place {
            Place::Line(line) => line.leave(),
            Place::Stranger(strangers, half) => strangers.leave(*half),
        }
    }
}

/// The counter of one thread.
#[derive(Debug, Default)]
struct Line(AtomicU64);

impl Line {
    #[inline(always)]
    fn enter(&self) {
        let inside = self.0.load(Ordering::Relaxed).wrapping_add(1); // Relaxed: R1
        debug_assert!(inside % 2 == 1, "a read section within another");
        if SWAP_IS_A_FENCE {
            self.0.swap(inside, Ordering::SeqCst);
        } else {
            self.0.store(inside, Ordering::Release);
            fence(Ordering::SeqCst);
        }
    }

    #[inline(always)]
    fn leave(&self) {
        let outside = self.0.load(Ordering::Relaxed).wrapping_add(1); // Relaxed: R1
        self.0.store(outside, Ordering::Release);
    }

    fn is_inside(&self) -> bool {
        self.0.load(Ordering::Relaxed) % 2 == 1
    }

    /// Waits for the end of the thread's current section, if it is in one.
    fn wait(&self) {
        let seen = self.0.load(Ordering::Acquire);
        if seen % 2 == 1 {
            let mut backoff = Backoff::new();
            while self.0.load(Ordering::Acquire) == seen {
                backoff.wait();
            }
        }
    }
}

/// The count of the readers without a line.
#[derive(Debug, Default)]
struct Strangers {
    /// The number of readers inside, in two halves of 31 bits, and a bit that says which half is
    /// current.
    word: AtomicU64,
    /// Held by the writer that waits for them.
    turn: SpinLock,
}

/// One of the two halves in which strangers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Half(u32);

impl Half {
    const BITS: u32 = 31;
    /// The bit that is set while the second half is the current one.
    const SECOND: u64 = 1 << 63;

    fn current(word: u64) -> Self {
        Self(u32::from(word & Self::SECOND != 0))
    }

    /// The value of one reader in this half.
    fn one(self) -> u64 {
        1 << (self.0 * Self::BITS)
    }

    /// The number of readers in this half of `word`.
    fn count(self, word: u64) -> u64 {
        word >> (self.0 * Self::BITS) & ((1 << Self::BITS) - 1)
    }
}

impl Strangers {
    fn enter(&self) -> Half {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let half = Half::current(word);
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.word.compare_exchange(word, word + half.one(), success, failure) {
                Ok(_) => {
                    fence(Ordering::SeqCst);
                    return half;
                }
                Err(now) => word = now,
            }
        }
    }

    fn leave(&self, half: Half) {
        self.word.fetch_sub(half.one(), Ordering::Release);
    }

    /// Waits until all strangers that are inside now have left.
    fn wait(&self) {
        if self.word.load(Ordering::Acquire) & !Half::SECOND == 0 {
            return;
        }
        self.turn.lock();
        // All strangers inside are in the current half (R4). Later ones enter the other half.
        let half = Half::current(self.word.fetch_xor(Half::SECOND, Ordering::Relaxed));
        let mut backoff = Backoff::new();
        while half.count(self.word.load(Ordering::Acquire)) != 0 {
            backoff.wait();
        }
        // SAFETY: `turn` was locked above.
        unsafe { self.turn.unlock() };
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicBool;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    /// An account that admits nothing, so that all readers are strangers.
    struct Refusing;

    impl Account for Refusing {
        fn admit(&self, _bytes: usize) -> bool {
            false
        }
        fn refund(&self, _bytes: usize) {}
    }

    /// A writer waits for a reader that is inside.
    fn waits_for_who_is_inside<A: Account + Send + Sync + 'static>(account: A) {
        let domain = Arc::new(RcuDomain::new(account));
        let (inside, left) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
        let reader = {
            let (domain, inside, left) =
                (Arc::clone(&domain), Arc::clone(&inside), Arc::clone(&left));
            std::thread::spawn(move || {
                let section = domain.read();
                inside.wait();
                std::thread::sleep(Duration::from_millis(20));
                left.store(true, Ordering::Relaxed);
                drop(section);
            })
        };
        inside.wait();
        domain.synchronize();
        assert!(left.load(Ordering::Relaxed), "the reader was still inside");
        reader.join().unwrap();
    }

    /// A writer does not wait for later readers, even if there is always one inside.
    fn waits_for_nobody_else<A: Account + Send + Sync + 'static>(account: A) {
        let domain = Arc::new(RcuDomain::new(account));
        let stop = Arc::new(AtomicBool::new(false));
        let inside = Arc::new(Barrier::new(3));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (domain, stop) = (Arc::clone(&domain), Arc::clone(&stop));
                let inside = Arc::clone(&inside);
                std::thread::spawn(move || {
                    drop(domain.read());
                    inside.wait();
                    while !stop.load(Ordering::Relaxed) {
                        drop(domain.read());
                    }
                })
            })
            .collect();
        inside.wait();
        for _ in 0..100 {
            domain.synchronize();
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    }

    /// Several writers each replace a cell, wait, and then spoil the old one; no reader sees a
    /// spoilt cell.
    fn nobody_reads_what_is_spoilt<A: Account + Send + Sync + 'static>(account: A) {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
        let domain = Arc::new(RcuDomain::new(account));
        // For each writer: the index of its current cell, and its two cells.
        let shared: Arc<[_; 2]> = Arc::new(std::array::from_fn(|_| {
            (AtomicU64::new(0), [AtomicBool::new(true), AtomicBool::new(false)])
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (domain, shared, stop) =
                    (Arc::clone(&domain), Arc::clone(&shared), Arc::clone(&stop));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let _section = domain.read();
                        for (at, cells) in shared.iter() {
                            let at = at.load(Ordering::Acquire) as usize;
                            std::hint::spin_loop();
                            assert!(cells[at].load(Ordering::Relaxed), "read after it was spoilt");
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (domain, shared) = (Arc::clone(&domain), Arc::clone(&shared));
                std::thread::spawn(move || {
                    let (at, cells) = &shared[writer];
                    for round in 1..=ROUNDS {
                        cells[round % 2].store(true, Ordering::Relaxed);
                        at.store(round as u64 % 2, Ordering::Release);
                        domain.synchronize();
                        cells[1 - round % 2].store(false, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    }

    #[test]
    fn a_writer_waits_for_who_is_inside() {
        waits_for_who_is_inside(());
        waits_for_who_is_inside(Refusing);
    }

    #[test]
    fn a_writer_waits_for_nobody_else() {
        waits_for_nobody_else(());
        waits_for_nobody_else(Refusing);
    }

    #[test]
    fn nobody_reads_what_a_writer_spoils_after_waiting() {
        nobody_reads_what_is_spoilt(());
        nobody_reads_what_is_spoilt(Refusing);
    }

    #[test]
    fn lines_are_at_the_accounts_expense() {
        struct Counting(AtomicU64);
        impl Account for &Counting {
            fn admit(&self, bytes: usize) -> bool {
                self.0.fetch_add(bytes as u64, Ordering::Relaxed);
                true
            }
            fn refund(&self, bytes: usize) {
                self.0.fetch_sub(bytes as u64, Ordering::Relaxed);
            }
        }
        let account = Counting(AtomicU64::new(0));
        let domain = RcuDomain::new(&account);
        let line = size_of::<crate::CachePadded<Line>>() as u64;
        assert_eq!(account.0.load(Ordering::Relaxed), PREPARED as u64 * line);
        drop(domain);
        assert_eq!(account.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn strangers_count_by_halves() {
        let strangers = Strangers::default();
        let (first, again) = (strangers.enter(), strangers.enter());
        assert_eq!((first, again), (Half(0), Half(0)));
        strangers.word.fetch_xor(Half::SECOND, Ordering::Relaxed);
        let later = strangers.enter();
        assert_eq!(later, Half(1));
        let word = strangers.word.load(Ordering::Relaxed);
        assert_eq!((first.count(word), later.count(word)), (2, 1));
        strangers.leave(first);
        strangers.leave(again);
        let word = strangers.word.load(Ordering::Relaxed);
        assert_eq!((first.count(word), later.count(word)), (0, 1));
        strangers.leave(later);
        assert_eq!(strangers.word.load(Ordering::Relaxed), Half::SECOND);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "waits for itself")]
    fn who_waits_inside_is_told() {
        let domain = RcuDomain::new(());
        let _section = domain.read();
        domain.synchronize();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "within another")]
    fn who_nests_is_told() {
        let domain = RcuDomain::new(());
        let _section = domain.read();
        let _inner = domain.read();
    }
}

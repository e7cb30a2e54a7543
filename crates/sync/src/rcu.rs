//! Read-copy-update: readers say when they are inside, and who has changed what they read waits
//! until all have left who may have seen it unchanged.
//!
//! # Source
//! Arbel and Attiya, "Concurrent updates with RCU: search tree as an example", PODC 2014: the RCU
//! they made for their tree, whose waiters do not wait for each other; Desnoyers, `McKenney`, Stern,
//! Dagenais and Walpole, "User-level implementations of read-copy update", IEEE TPDS 2012, for the
//! guarantee and the fences.
//!
//! # Protocol
//! Each thread has a line of its own with a counter: odd while the thread is inside.
//! ```text
//! read():        add one to the own counter; fence … read … ; add one again
//! synchronize(): fence; for each line: read its counter; if that is odd, wait until it changes
//! ```
//! * A reader inside a *section* ([`RcuDomain::read`]) may read what writers change. It takes no
//!   lock, waits for nobody, and writes to no line but its own. Sections are short: somebody may be
//!   waiting for their end. They do not nest.
//! * A writer changes something, calls [`RcuDomain::synchronize`], and then knows that no section is
//!   left that may have begun before the change. Any number of writers may wait at once; for
//!   strangers (departure 3) they take turns. A thread must not call it inside a section of its own: it would wait for itself.
//!
//! The guarantee (of the literature): for each section and each `synchronize`, either the section's
//! end happens before the return, or what was written before the call is seen by all of the section's
//! reads.
//!
//! Nothing is reclaimed by this: nodes are a `Domain`'s, and a guard of a domain is no section. So a
//! thread that holds a guard, for however long, holds up no writer here.
//!
//! # Departures
//! 1. Counter and flag are one word.
//! 2. Lines are made when a thread first needs one, at the expense of an account, and those of the
//!    first [`PREPARED`] thread indexes at once: so a read allocates only where more threads are
//!    alive than ever before, the number doubles, and somebody must make room.
//! 3. A thread whose line cannot be had, because memory has run out or its local variables are gone,
//!    reads as a *stranger*: strangers are counted in one shared word, by halves. Who waits for them
//!    makes those who come later count in the other half, so that he waits only for those who were
//!    there when his turn came.
//!
//! # Invariants
//! * R1: a line is written by the thread whose index it has, one at a time (P1 and P2 of
//!   [`crate::per_thread`]).
//! * R2: a line's word is odd exactly while its thread is in a section, and never the same in two.
//! * R3: a stranger counts in the half that was current when it came, until it leaves.
//! * R4: who has `Strangers::turn` finds the half that is not current empty.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | line | `enter` | Release, then the fence | `synchronize`'s fence | one of the two fences is first: if the reader's, the writer sees the line odd and waits; if the writer's, the reader sees what was written before it. Release: who sees a later section knows that the earlier ones are over |
//! | line | `leave` | Release | `wait` | the section's reads come before the writer's next step |
//! | line | `wait` | Acquire | both | as above |
//! | `strangers` | `enter` CAS, then the fence | Relaxed | as `enter` above | all writes of this word are read-modify-writes, and so continue every release sequence |
//! | `strangers` | `leave` | Release | `wait` | as above |
//! | `strangers` | `wait` | Acquire | `leave` | as above |
//!
//! # Progress
//! `read` is wait-free but for strangers, whose CAS is lock-free. `synchronize` waits for readers
//! that were inside when it began, for as long as they stay: a reader that is preempted inside holds
//! it up. It does not wait for readers who come later; but while there are strangers it waits for its
//! turn behind other writers, in no order.
//!
//! # Checked by
//! The tests below; `tests/loom.rs`: every execution of readers beside a writer, in which weaker
//! twins must fail; the trees that use it.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::backoff::Backoff;
use crate::lock::{RawLock, SpinLock};
use crate::per_thread::{Account, PerThread, thread_index};
use std::marker::PhantomData;

/// So many threads have a line from the start. (A model checker's few make theirs.)
pub const PREPARED: u32 = if cfg!(any(silvics_loom, silvics_shuttle)) { 0 } else { 31 };

/// A locked instruction of x86-64 is a full fence, and cheaper than the fence instruction; the
/// compiler moves no later read before a read-modify-write that acquires.
const SWAP_IS_A_FENCE: bool =
    cfg!(all(target_arch = "x86_64", not(any(silvics_loom, silvics_shuttle, miri))));

/// Readers and those who wait for them: see the [module](self).
///
/// ```
/// use silvics_sync::rcu::RcuDomain;
///
/// let domain: RcuDomain = RcuDomain::new(());
/// {
///     let _section = domain.read();
///     // Whatever is read here …
/// }
/// domain.synchronize(); // … nobody is reading any more.
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
    /// A domain without readers, whose lines are at the expense of `account`.
    pub fn new(account: A) -> Self {
        let lines = PerThread::new(account);
        lines.prepare(PREPARED);
        Self { lines, strangers: Strangers::default() }
    }

    /// Begins a section of the calling thread; it ends when the result is dropped. The thread must
    /// not be in one already.
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

    /// Waits until every section is over that was under way at the call. Not to be called in one.
    pub fn synchronize(&self) {
        debug_assert!(!self.is_inside(), "synchronize within a read section waits for itself");
        fence(Ordering::SeqCst);
        for line in self.lines.iter() {
            line.wait();
        }
        self.strangers.wait();
    }

    /// Whether the calling thread is in a section, as far as its line says.
    fn is_inside(&self) -> bool {
        thread_index().and_then(|index| self.lines.get(index)).is_some_and(Line::is_inside)
    }
}

/// A read section: it ends when this is dropped. It belongs to its thread.
#[must_use = "the section is over when this is dropped"]
pub struct ReadSection<'r> {
    place: Place<'r>,
    stays: PhantomData<*const ()>,
}

impl std::fmt::Debug for ReadSection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadSection").finish_non_exhaustive()
    }
}

/// Where a section has announced itself.
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

/// A thread's counter.
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

    /// Waits until the section is over that is under way, if one is.
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

/// The readers without a line.
#[derive(Debug, Default)]
struct Strangers {
    /// How many are inside, in two halves of 31 bits, and which half those count in who come now.
    word: AtomicU64,
    /// Held by the one who waits for them.
    turn: SpinLock,
}

/// One of the halves in which strangers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Half(u32);

impl Half {
    const BITS: u32 = 31;
    /// Set while the second half is the current one.
    const SECOND: u64 = 1 << 63;

    fn current(word: u64) -> Self {
        Self(u32::from(word & Self::SECOND != 0))
    }

    /// One reader in this half.
    fn one(self) -> u64 {
        1 << (self.0 * Self::BITS)
    }

    /// How many are in it.
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

    /// Waits until those have left who are inside.
    fn wait(&self) {
        if self.word.load(Ordering::Acquire) & !Half::SECOND == 0 {
            return;
        }
        self.turn.lock();
        // All who are inside are in the current half (R4). Later ones go to the other.
        let half = Half::current(self.word.fetch_xor(Half::SECOND, Ordering::Relaxed));
        let mut backoff = Backoff::new();
        while half.count(self.word.load(Ordering::Acquire)) != 0 {
            backoff.wait();
        }
        // SAFETY: taken above.
        unsafe { self.turn.unlock() };
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicBool;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    /// Admits nothing: all readers are strangers.
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

    /// A writer does not wait for those who come later, though there always is one inside.
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

    /// What a writer has replaced it may spoil after it has waited; several writers at once.
    fn nobody_reads_what_is_spoilt<A: Account + Send + Sync + 'static>(account: A) {
        const ROUNDS: usize = 2000;
        let domain = Arc::new(RcuDomain::new(account));
        // For each writer: which of its two cells counts, and the cells.
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

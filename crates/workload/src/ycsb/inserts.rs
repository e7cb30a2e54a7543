//! The counter of inserted records, shared by all threads of a run.

use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The records that a run inserts: their numbers, and how many are acknowledged.
///
/// The first insert has number `recordcount`. A record counts as acknowledged once it and all
/// records with lower numbers are. Requests choose among acknowledged records only.
///
/// # Invariants
/// * I1: every number below `next` is acknowledged, returned, or held by an [`Insert`].
/// * I2: every number below `acknowledged` is acknowledged, and none in `pending` is below it. Only
///   the holder of the lock changes either.
///
/// # Memory ordering
/// `acknowledged` is stored with Release and loaded with Acquire. A thread that sees a record as
/// acknowledged therefore also sees all that happened before [`Insert::acknowledge`]. The lock
/// orders acknowledgements by several threads. `next` only hands out numbers, so it is Relaxed.
#[derive(Debug)]
pub struct Inserts {
    first: u64,
    /// The next number, less `first`.
    next: AtomicU64,
    /// How many records are acknowledged.
    acknowledged: AtomicU64,
    /// Whether `returned` may have numbers.
    any_returned: AtomicU64,
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// The acknowledged numbers that wait for a lower one.
    pending: BinaryHeap<Reverse<u64>>,
    /// The numbers of inserts that failed.
    returned: Vec<u64>,
}

impl Inserts {
    /// Makes a counter whose first record has the number `first`.
    pub fn new(first: u64) -> Self {
        Self {
            first,
            next: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            any_returned: AtomicU64::new(0),
            numbers: Mutex::new(Numbers::default()),
        }
    }

    /// The number of the first record.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of acknowledged records: `first..first + acknowledged`.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    /// Takes the number of the next record. It is the number of a failed insert if there is one.
    pub fn begin(&self) -> Insert<'_> {
        // Relaxed: a stale value only delays the use of a returned number.
        let returned = match self.any_returned.load(Ordering::Relaxed) {
            0 => None,
            _ => self.take_returned(),
        };
        let number = returned.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        Insert { inserts: self, number, done: false }
    }

    fn take_returned(&self) -> Option<u64> {
        let mut numbers = self.numbers.lock();
        let number = numbers.returned.pop();
        self.any_returned.store(numbers.returned.len() as u64, Ordering::Relaxed);
        number
    }

    fn acknowledge(&self, number: u64) {
        let mut numbers = self.numbers.lock();
        // Relaxed: only the holder of the lock stores (I2).
        let mut next = self.acknowledged.load(Ordering::Relaxed);
        if number != next {
            numbers.pending.push(Reverse(number));
            return;
        }
        next += 1;
        while numbers.pending.peek() == Some(&Reverse(next)) {
            numbers.pending.pop();
            next += 1;
        }
        self.acknowledged.store(next, Ordering::Release);
    }

    fn give_back(&self, number: u64) {
        let mut numbers = self.numbers.lock();
        numbers.returned.push(number);
        self.any_returned.store(numbers.returned.len() as u64, Ordering::Relaxed);
    }
}

/// An insert that has its number, made by [`Inserts::begin`].
///
/// If it is dropped without an acknowledgement, the insert has failed, and the next
/// [`Inserts::begin`] returns its number again.
#[derive(Debug)]
#[must_use = "an insert that is dropped without an acknowledgement has failed"]
pub struct Insert<'a> {
    inserts: &'a Inserts,
    /// The number of the record, less that of the first.
    number: u64,
    done: bool,
}

impl Insert<'_> {
    /// The number of the record.
    #[inline]
    pub fn record(&self) -> u64 {
        self.inserts.first.wrapping_add(self.number)
    }

    /// Reports that the record is inserted, so that requests may choose it.
    pub fn acknowledge(mut self) {
        self.done = true;
        self.inserts.acknowledge(self.number);
    }
}

impl Drop for Insert<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.inserts.give_back(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_record_waits_for_all_before_it() {
        let inserts = Inserts::new(10);
        let [a, b, c] = [0; 3].map(|_| inserts.begin());
        assert_eq!([&a, &b, &c].map(Insert::record), [10, 11, 12]);
        c.acknowledge();
        assert_eq!(inserts.acknowledged(), 0);
        a.acknowledge();
        assert_eq!(inserts.acknowledged(), 1);
        b.acknowledge();
        assert_eq!((inserts.first(), inserts.acknowledged()), (10, 3));
    }

    #[test]
    fn the_number_of_a_failed_insert_is_used_again() {
        let inserts = Inserts::new(0);
        drop(inserts.begin());
        let (again, next) = (inserts.begin(), inserts.begin());
        assert_eq!((again.record(), next.record()), (0, 1));
        drop(next);
        again.acknowledge();
        assert_eq!(inserts.acknowledged(), 1);
        inserts.begin().acknowledge();
        assert_eq!((inserts.acknowledged(), inserts.begin().record()), (2, 2));
    }

    #[test]
    fn threads_share_the_numbers() {
        const EACH: u64 = 2000;
        let inserts = Inserts::new(5);
        let take = || {
            let mut mine = Vec::new();
            for turn in 0..EACH {
                let insert = inserts.begin();
                if turn % 7 == 3 {
                    continue; // it fails
                }
                mine.push(insert.record());
                let before = inserts.acknowledged();
                insert.acknowledge();
                assert!(inserts.acknowledged() >= before);
            }
            mine
        };
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        // Numbers that failed last may still wait to be used again.
        for _ in 0..4 * EACH {
            if inserts.acknowledged() == all.len() as u64 {
                break;
            }
            let insert = inserts.begin();
            all.push(insert.record());
            insert.acknowledge();
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq(5..5 + inserts.acknowledged()));
    }

    proptest! {
        #[test]
        fn acknowledged_is_the_first_gap(order in Just((0_u64..40).collect::<Vec<_>>()).prop_shuffle()) {
            let inserts = Inserts::new(7);
            let mut held: Vec<_> = (0..40).map(|_| Some(inserts.begin())).collect();
            let mut done = BTreeSet::new();
            for number in order {
                held[number as usize].take().unwrap().acknowledge();
                done.insert(number);
                let gap = (0..40).find(|n| !done.contains(n)).unwrap_or(40);
                prop_assert_eq!(inserts.acknowledged(), gap);
            }
        }
    }
}

//! The YCSB of the ATC'18 study: transactions of several requests, as DBx1000 makes them.

use super::workload::unit;
use super::{EXPONENT_MAX, Zipf};
use crate::Share;
use crate::choice::label;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;

/// The YCSB of the study: each transaction reads or updates a fixed number of different rows, which
/// it chooses by Zipf's law.
///
/// Keys are the numbers `0..rows`. They are not scattered: key k has rank k, so the hottest rows
/// are neighbours in every ordered index.
///
/// Each thread has [`Study::transactions`] transactions. *The run stops when the first thread has
/// finished*, and counts what all threads have committed by then. This is the runner's part.
///
/// # Departures from DBx1000
/// 1. DBx1000 drops a request whose key the transaction already has, so some transactions are
///    shorter. Ours draws another key, so all have the same length.
/// 2. DBx1000 never chooses row 0: its ranks begin with 1. Ours begin with 0.
/// 3. DBx1000 draws from `rand() % 10000000`, which cannot choose every one of ten million rows.
///    Ours draws 53 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Study {
    /// The number of rows, at least 1.
    pub rows: u64,
    /// The number of requests of a transaction, from 1 to `rows`.
    pub requests: usize,
    /// The share of requests that update their row. The others read it.
    pub updates: f64,
    /// The exponent of Zipf's law, from 0 to [`EXPONENT_MAX`].
    pub exponent: f64,
    /// The number of transactions of each thread.
    pub transactions: u64,
}

impl Study {
    /// The number of a row's fields, and the bytes of each. With its key and the lengths of the
    /// fields, a row of the store has 128 bytes of columns, as in the study.
    pub const FIELDS: u32 = 10;
    /// See [`Study::FIELDS`].
    pub const FIELD_BYTES: u32 = 8;
}

/// A request of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// The key of the row.
    pub key: u64,
    /// Whether the request updates the row.
    pub is_update: bool,
}

/// The reason why a [`Study`] cannot be run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StudyError {
    /// The number of requests is 0, above the number of rows, or above 1024.
    Requests(usize, u64),
    /// The share of updates is not from 0 to 1.
    Updates(f64),
    /// The exponent is not from 0 to [`EXPONENT_MAX`].
    Exponent(f64),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(requests, rows) => write!(
                f,
                "a transaction cannot have {requests} requests for different rows of {rows}: choose \
                 from 1 to {} requests",
                (*rows).min(REQUESTS_MAX as u64).max(1)
            ),
            Self::Updates(share) => {
                write!(f, "{share} is no share of updates: choose a number from 0 to 1")
            }
            Self::Exponent(exponent) => write!(
                f,
                "{exponent} is no exponent of this Zipf distribution: choose a number from 0 to \
                 {EXPONENT_MAX}"
            ),
        }
    }
}

impl std::error::Error for StudyError {}

/// The most requests of a transaction: a new key is compared with all keys before it.
const REQUESTS_MAX: usize = 1024;

/// The draws of a key, before the next free key is taken instead.
const DRAWS: usize = 64;

impl Study {
    /// The parameters of the study: 10 million rows, 16 requests, 10 % updates, exponent 0.6, and
    /// 100,000 transactions for each thread.
    pub const ATC18: Self =
        Self { rows: 10_000_000, requests: 16, updates: 0.1, exponent: 0.6, transactions: 100_000 };

    /// The transactions of a thread. They depend on nothing but the parameters, the seed and the
    /// number of the thread.
    pub fn stream(self, seed: u64, share: Share) -> Result<StudyStream, StudyError> {
        let most = self.rows.min(REQUESTS_MAX as u64);
        if !(1..=most).contains(&(self.requests as u64)) {
            return Err(StudyError::Requests(self.requests, self.rows));
        }
        if !(0.0..=1.0).contains(&self.updates) {
            return Err(StudyError::Updates(self.updates));
        }
        let Some(zipf) = Zipf::new(self.rows, self.exponent) else {
            return Err(StudyError::Exponent(self.exponent));
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "study"));
        for _ in 0..share.thread {
            rng.jump(); // by 2^128 words, so that the threads' sequences do not overlap
        }
        Ok(StudyStream { study: self, zipf, rng, left: self.transactions })
    }
}

/// The transactions of one thread, made by [`Study::stream`].
///
/// ```
/// use silvics_workload::Share;
/// use silvics_workload::ycsb::{Request, Study};
///
/// let study = Study { rows: 1000, transactions: 10, ..Study::ATC18 };
/// let mut stream = study.stream(42, Share::ALONE)?;
/// // Room for four transactions at a time.
/// let mut block = vec![Request::default(); 4 * study.requests];
/// let mut transactions = 0;
/// loop {
///     let filled = stream.fill(&mut block);
///     for transaction in block.chunks_exact(study.requests).take(filled) {
///         assert!(transaction.iter().all(|request| request.key < 1000));
///         transactions += 1;
///     }
///     if filled < 4 {
///         break;
///     }
/// }
/// assert_eq!(transactions, 10);
/// # Ok::<(), silvics_workload::ycsb::StudyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StudyStream {
    study: Study,
    zipf: Zipf,
    rng: Xoshiro256PlusPlus,
    left: u64,
}

impl StudyStream {
    /// The parameters.
    pub fn study(&self) -> Study {
        self.study
    }

    /// How many transactions the thread has left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Fills `block` with the requests of the next transactions: as many as fit, and no more than
    /// are left. Returns their number.
    pub fn fill(&mut self, block: &mut [Request]) -> usize {
        let mut filled = 0;
        for transaction in block.chunks_exact_mut(self.study.requests) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.fill_one(transaction);
            filled += 1;
        }
        filled
    }

    fn fill_one(&mut self, transaction: &mut [Request]) {
        for at in 0..transaction.len() {
            let (before, rest) = transaction.split_at_mut(at);
            let key = self.key(before);
            let is_update = unit(self.rng.next_u64()) < self.study.updates;
            rest[0] = Request { key, is_update };
        }
    }

    /// A key that none of the requests before has.
    fn key(&mut self, before: &[Request]) -> u64 {
        let taken = |key| before.iter().any(|request| request.key == key);
        let mut key = 0;
        for _ in 0..DRAWS {
            key = self.zipf.rank(unit(self.rng.next_u64()));
            if !taken(key) {
                return key;
            }
        }
        // There are fewer requests before than rows, so one key is free.
        while taken(key) {
            key = if key + 1 == self.study.rows { 0 } else { key + 1 };
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn all(study: Study, seed: u64, thread: usize) -> Vec<Request> {
        let mut stream = study.stream(seed, Share { thread, threads: 2 }).unwrap();
        let mut block = vec![Request::default(); study.transactions as usize * study.requests];
        assert_eq!(stream.fill(&mut block) as u64, study.transactions);
        assert_eq!((stream.left(), stream.fill(&mut block)), (0, 0));
        block
    }

    #[test]
    fn the_first_transactions_are_fixed() {
        let requests = all(Study { transactions: 2, ..Study::ATC18 }, 1, 0);
        let keys: Vec<u64> = requests[..16].iter().map(|request| request.key).collect();
        assert_eq!(keys, GOLDEN_KEYS);
        let updates: Vec<usize> = (0..32).filter(|&at| requests[at].is_update).collect();
        assert_eq!(updates, GOLDEN_UPDATES);
    }

    const GOLDEN_KEYS: [u64; 16] = [
        612_549, 4_530_613, 5_230_133, 6_272_235, 8_895_222, 1_616_331, 1_608_622, 917_189,
        3_755_162, 2_399_084, 640_216, 22_499, 11_522, 1_207_407, 657_608, 2_560_476,
    ];
    const GOLDEN_UPDATES: [usize; 3] = [17, 22, 25];

    #[test]
    fn shares_and_skew_are_those_of_the_study() {
        let study = Study { rows: 100_000, transactions: 20_000, ..Study::ATC18 };
        let requests = all(study, 3, 0);
        let total = requests.len() as f64;
        let near = |found: usize, share: f64| {
            let expected = share * total;
            assert!((found as f64 - expected).abs() < 5.0 * expected.sqrt(), "{found} {expected}");
        };
        near(requests.iter().filter(|request| request.is_update).count(), 0.1);
        let zeta: f64 = (1..=100_000).map(|k| f64::from(k).powf(-0.6)).sum();
        near(requests.iter().filter(|request| request.key == 0).count(), 1.0 / zeta);
        // The hottest hundredth.
        let head: f64 = (1..=1000).map(|k| f64::from(k).powf(-0.6)).sum();
        near(requests.iter().filter(|request| request.key < 1000).count(), head / zeta);
        // The share of updates does not depend on the rank.
        let hot: Vec<_> = requests.iter().filter(|request| request.key < 1000).collect();
        let updates = hot.iter().filter(|request| request.is_update).count() as f64;
        assert!((updates / hot.len() as f64 - 0.1).abs() < 0.01);
    }

    #[test]
    fn threads_and_seeds_differ() {
        let study = Study { transactions: 10, ..Study::ATC18 };
        let first = all(study, 1, 0);
        assert_eq!(first, all(study, 1, 0));
        assert_ne!(first, all(study, 1, 1));
        assert_ne!(first, all(study, 2, 0));
    }

    #[test]
    fn a_block_has_whole_transactions_only() {
        let study = Study { transactions: 5, ..Study::ATC18 };
        let mut stream = study.stream(1, Share::ALONE).unwrap();
        let mut block = vec![Request { key: u64::MAX, is_update: true }; 2 * 16 + 15];
        assert_eq!(stream.fill(&mut block), 2);
        assert!(block[32..].iter().all(|request| request.key == u64::MAX));
        assert_eq!(
            [stream.fill(&mut block), stream.fill(&mut block), stream.left() as usize],
            [2, 1, 0]
        );
        assert_eq!(stream.study(), study);
    }

    #[test]
    fn parameters_without_a_meaning_are_refused() {
        let wrong = |study: Study| study.stream(0, Share::ALONE).unwrap_err();
        let study = Study::ATC18;
        for (requests, rows) in [(0, 10), (11, 10), (1, 0), (1025, 1 << 20)] {
            let error = wrong(Study { rows, requests, ..study });
            assert_eq!(error, StudyError::Requests(requests, rows));
            assert!(error.to_string().contains(": choose from 1 to "), "{error}");
        }
        for updates in [-0.1, 1.1, f64::NAN] {
            assert!(matches!(wrong(Study { updates, ..study }), StudyError::Updates(_)));
        }
        for exponent in [-0.1, 1.0, f64::NAN] {
            let error = wrong(Study { exponent, ..study });
            assert!(error.to_string().ends_with("from 0 to 0.999"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn keys_of_a_transaction_differ(
            rows in 1_u64..60, requests in 1_usize..60, exponent in 0.0_f64..=EXPONENT_MAX, seed: u64,
        ) {
            prop_assume!(requests as u64 <= rows);
            let study = Study { rows, requests, exponent, transactions: 5, updates: 0.5 };
            for transaction in all(study, seed, 0).chunks_exact(requests) {
                let keys: HashSet<u64> = transaction.iter().map(|request| request.key).collect();
                prop_assert_eq!(keys.len(), requests);
                prop_assert!(keys.iter().all(|&key| key < rows));
            }
        }
    }
}

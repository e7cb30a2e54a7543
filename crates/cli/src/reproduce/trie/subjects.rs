//! The tries of the experiments, and the mix that threads run on them.
//!
//! # Definitions
//! A *key number* stands for a random key of 128 bits. The even numbers below twice the number of
//! keys are in a trie when it is loaded. A key's value is its number, so each lookup is checked.

use crate::drive::draws::Draws;
use crate::drive::run::Failure;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::sync::Sync;
use crate::interrupt;
use crate::reproduce::turns::{Ended, Rounds, in_turns, median, rate, run};
use silvics::patricia::Retries;
use silvics::patricia::build::Build;
use silvics::patricia::policy::{Hardware, Policy, Teleport};
use silvics::{AllocError, Domain, Lookup, Options, OrderedIndex, PatriciaTree, Placement, Pooled};
use silvics_layout::Placed;
use silvics_workload::Share;

/// A trie of keys of 128 bits, whatever its build and its policy.
pub trait Trie: OrderedIndex + Lookup<Key = u128> {
    /// Its retry policy.
    fn retries(&self) -> &Retries;
    /// Calls `see` with each of its objects.
    fn objects(&mut self, see: &mut dyn FnMut(Placed)) -> usize;
}

impl<P: Placement, B: Build, S: Policy> Trie for PatriciaTree<u128, P, B, S> {
    fn retries(&self) -> &Retries {
        self.retries()
    }

    fn objects(&mut self, see: &mut dyn FnMut(Placed)) -> usize {
        let entries = silvics::Objects::census(self, see);
        entries.unwrap_or_else(|violation| unreachable!("a trie at rest is whole: {violation}"))
    }
}

/// A trie with its name.
pub struct Subject {
    pub name: String,
    pub trie: Box<dyn Trie>,
}

/// The key of a number.
pub fn key(number: u64) -> u128 {
    let mixed = |n: u64| {
        let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        n ^ (n >> 31)
    };
    u128::from(mixed(number.wrapping_add(0x9E37_79B9_7F4A_7C15))) << 64 | u128::from(mixed(!number))
}

impl Subject {
    /// An empty trie in pools.
    pub fn new<B: Build, S: Policy>(name: impl Into<String>) -> Result<Self, Error> {
        Self::placed::<Pooled, B, S>(name, Options::default())
    }

    /// An empty trie with these options, in a domain of its own.
    pub fn placed<P: Placement, B: Build, S: Policy>(
        name: impl Into<String>,
        options: Options,
    ) -> Result<Self, Error> {
        let name = name.into();
        let options = Options { domain: Some(Domain::new()), ..options };
        match PatriciaTree::<u128, P, B, S>::with_options(&options) {
            Ok(trie) => Ok(Self { name, trie: Box::new(trie) }),
            Err(error) => Err(Error::Alloc { index: name, error }),
        }
    }

    /// An empty trie with lock teleportation, by hardware transactions if they are requested.
    pub fn teleporting<B: Build>(
        name: impl Into<String>,
        sync: Option<Sync>,
    ) -> Result<Self, Error> {
        if sync == Some(Sync::RTM) {
            Self::new::<B, Hardware>(name)
        } else {
            Self::new::<B, Teleport>(name)
        }
    }

    /// The trie with its first keys, which several threads load.
    pub fn loaded(self, crew: &Crew, keys: usize) -> Result<Self, Error> {
        let load = |share: Share| self.load_part(keys, share.thread, share.threads);
        let done = crew.work(crew.loaders, load, || ());
        let done = done.and_then(|done| done.into_iter().collect::<Result<Vec<()>, _>>());
        done.map_err(|failure| failure.of(&self.name))?;
        Ok(self)
    }

    /// The trie with its first keys, which the calling thread loads.
    pub fn loaded_alone(self, keys: usize) -> Result<Self, Error> {
        self.load_part(keys, 0, 1).map_err(|failure| failure.of(&self.name))?;
        Ok(self)
    }

    fn load_part(&self, keys: usize, thread: usize, threads: usize) -> Result<(), Failure> {
        for (done, number) in (thread..keys).step_by(threads).enumerate() {
            let number = 2 * number as u64;
            let guard = self.trie.domain().pin();
            self.trie.insert(key(number), number, &guard).map_err(failed)?;
            if done.is_multiple_of(4096) && interrupt::pending() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    }
}

fn failed(error: AllocError) -> Failure {
    Failure::Alloc { error, done: 0 }
}

/// One thread's part of the mix: 90 % lookups, 5 % inserts and 5 % removals of random keys, of
/// which half are present. Returns the number of operations.
fn mix(trie: &dyn Trie, keys: usize, mut draws: Draws, ended: &Ended) -> Result<u64, Failure> {
    let mut done = 0;
    let mut guard = trie.domain().pin();
    while !ended.is_over() {
        for _ in 0..64 {
            let number = draws.below(2 * keys as u64);
            match draws.below(20) {
                0 => drop(trie.insert(key(number), number, &guard).map_err(failed)?),
                1 => drop(trie.remove(key(number), &guard).map_err(failed)?),
                _ => {
                    let found = trie.get(key(number), &guard);
                    if let Some(found) = found.filter(|found| *found != number) {
                        return Err(Failure::Wrong(format!("key {number} has the value {found}")));
                    }
                }
            }
            done += 1;
        }
        guard.repin();
    }
    Ok(done)
}

/// Runs in turns.
#[derive(Clone, Copy)]
pub struct Turns<'a> {
    pub crew: &'a Crew,
    /// The number of keys that are present at first, of twice as many.
    pub keys: usize,
    pub rounds: Rounds,
    /// Runs with equal seeds draw equal operations. Repeated operations change nothing.
    pub seed: u64,
}

impl Turns<'_> {
    /// The operations per second of each trie with a number of threads, in turns.
    pub fn speeds(self, subjects: &[(&Subject, usize)]) -> Result<Vec<Vec<f64>>, Error> {
        in_turns(subjects.len(), self.rounds.rounds, |at, round| {
            let (Subject { name, trie }, threads) = subjects[at];
            let run_of = round * subjects.len() as u64 + at as u64;
            let work = |thread: usize, ended: &Ended| {
                mix(&**trie, self.keys, Draws::new(self.seed, run_of, thread), ended)
            };
            let laps = run(self.crew, threads, self.rounds.time, &work);
            Ok(rate(&laps.map_err(|failure| failure.of(name))?))
        })
    }
}

/// The median of rates in millions per second, with the interval that covers it.
pub fn millions(samples: &[f64]) -> String {
    let of = |rate: f64| format!("{:.2}", rate / 1e6);
    match Interval::of(samples) {
        Some(Interval { median, low, high }) => {
            format!("{} ({} – {})", of(median), of(low), of(high))
        }
        None => of(median(samples)),
    }
}

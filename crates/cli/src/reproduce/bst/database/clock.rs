//! Runs that are timed.

use super::engine::Engine;
use super::loaded::together;
use super::model::{requests, study};
use crate::drive::draws::shuffled;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::reproduce::bst::placed::clock::{self, Clocked, Lap, THREADS, Times, until_first};
use crate::reproduce::bst::placed::heap::{Divided, Places};
use crate::reproduce::bst::placed::trees::{Lock, Tree};
use crate::reproduce::lab::Lab;
use crate::reproduce::plan::QUICK;
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_workload::Share;
use silvics_workload::ycsb::{Request, Study};

/// The transactions of a thread.
const TRANSACTIONS: usize = 20_000;

/// A subject of the clock.
#[derive(Clone, Copy)]
pub struct Subject {
    pub tree: Tree,
    pub lock: Lock,
    pub places: Places,
}

/// A subject with its rows.
struct Loaded<'a> {
    tree: Tree,
    engine: Box<dyn Engine>,
    crew: &'a Crew,
    study: Study,
    seed: u64,
    rows: usize,
    /// The updates of committed transactions.
    updates: AtomicU64,
}

/// Measures databases in turns. In each round, all of them get the same requests.
pub fn measure(lab: &Lab, rows: usize, subjects: &[Subject]) -> Result<Vec<Times>, Error> {
    let keys = shuffled(rows as u64, lab.plan.seed);
    let crew = Crew::new();
    let crew = crew.loading(THREADS).running(THREADS);
    let transactions = if lab.plan.quick { TRANSACTIONS / QUICK } else { TRANSACTIONS };
    let loaded = subjects.iter().map(|Subject { tree, lock, places }| {
        let engine = together(&crew, *tree, *lock, Divided::size_class(*places), &keys)?;
        let (study, seed) = (study(rows, transactions), lab.plan.seed);
        let updates = AtomicU64::new(0);
        Ok(Loaded { tree: *tree, engine, crew: &crew, study, seed, rows, updates })
    });
    let loaded = loaded.collect::<Result<Vec<_>, Error>>()?;
    clock::measure(lab, &loaded)
}

impl Clocked for Loaded<'_> {
    fn tree(&self) -> &'static str {
        self.tree.name
    }

    fn run(&self, round: u64) -> Result<Vec<Lap>, Failure> {
        let seed = self.seed.wrapping_add(round << 20);
        let prepare = |share: Share| {
            let requests = requests(self.study, seed, share);
            requests.map_err(|error| Failure::Wrong(error.to_string()))
        };
        until_first(self.crew, prepare, |requests: Vec<Request>, over| {
            let mut updates = 0;
            let transactions = requests.chunks_exact(self.study.requests);
            let lap = Lap::of(transactions, over, |transaction| {
                self.engine.transact(transaction)?;
                updates += transaction.iter().filter(|request| request.is_update).count() as u64;
                Ok(())
            });
            self.updates.fetch_add(updates, Ordering::Relaxed); // a count alone
            lap
        })
    }

    /// Checks that each row is there, and that all rows together have as many updates as
    /// transactions have made.
    fn check(&self) -> Result<(), Failure> {
        let mut found = 0;
        for key in 0..self.rows as u64 {
            found += self.engine.updates(key)?;
        }
        let updates = self.updates.load(Ordering::Relaxed); // all threads have ended
        if found == updates {
            return Ok(());
        }
        Err(Failure::Wrong(format!("transactions made {updates} updates, and rows have {found}")))
    }

    fn aborts(&self) -> u64 {
        self.engine.aborts()
    }
}

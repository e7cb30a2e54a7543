//! Indexes that lie: each check of the benchmark refutes one.

use super::ours::Ours;
use super::plan::Plan;
use super::run;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::YcsbArgs;
use crate::store::engine::Measured as _;
use crate::store::meter::Sample;
use clap::Parser;
use silvics::{AllocError, Guard, Options, Pages, PoolStats};
use silvics_store::index::{Scannable, Search};
use silvics_store::{Optimistic, StoreOptions};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::process::ExitCode;
use std::sync::Arc;

/// A mistake of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// A lookup finds nothing.
    Absent,
    /// A lookup returns the row of another key.
    OtherRow,
    /// A scan leaves out its first key, or all but the first, or all.
    NotFirst,
    OnlyFirst,
    Nothing,
    /// A scan repeats its first key.
    Twice,
    /// There seem to be more records than were loaded.
    More,
    /// Inserted records are not counted.
    NoInserts,
}

/// The calls of an index.
#[derive(Default)]
struct Calls {
    gets: AtomicU64,
    batches: AtomicU64,
}

/// An index with a mistake.
struct Liar {
    map: Mutex<BTreeMap<u64, u64>>,
    lie: Lie,
    calls: Arc<Calls>,
}

impl Liar {
    fn find(&self, key: u64) -> Option<u64> {
        let map = self.map.lock();
        match self.lie {
            Lie::Absent => None,
            Lie::OtherRow => map.range(..key).next_back().map(|(_, word)| *word),
            _ => map.get(&key).copied(),
        }
    }
}

// SAFETY: the words are those of rows in the table, which no test removes, so that each is valid.
// The other promises are broken on purpose: the benchmark must see it.
unsafe impl Search for Liar {
    type Form = u64;

    fn make(_options: &Options) -> Result<Self, AllocError> {
        Ok(Self { map: Mutex::default(), lie: Lie::None, calls: Arc::default() })
    }
    fn structure(&self) -> String {
        format!("{:?}", self.lie)
    }
    fn get(&self, key: u64, _guard: &Guard) -> Option<u64> {
        self.calls.gets.fetch_add(1, Ordering::Relaxed);
        self.find(key)
    }
    fn get_many(&self, keys: &[u64], words: &mut [Option<u64>], _guard: &Guard) {
        self.calls.batches.fetch_add(1, Ordering::Relaxed);
        for (key, word) in keys.iter().zip(words) {
            *word = self.find(*key);
        }
    }
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        _guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut map = self.map.lock();
        let present = map.get(&key).copied();
        map.entry(key).or_insert(word);
        Ok(present)
    }
    unsafe fn replace(&self, key: u64, word: u64, _guard: &Guard) -> Result<(), AllocError> {
        self.map.lock().insert(key, word);
        Ok(())
    }
    unsafe fn remove(&self, key: u64, _guard: &Guard) -> Result<(), AllocError> {
        self.map.lock().remove(&key);
        Ok(())
    }
    fn walk(
        &self,
        bounds: (Bound<u64>, Bound<u64>),
        descending: bool,
        _guard: &Guard,
        visit: &mut dyn FnMut(u64, u64) -> bool,
    ) {
        assert!(!descending, "no scan of YCSB descends");
        let map = self.map.lock();
        let entries = map.range(bounds).map(|(&key, &word)| (key, word));
        let mut entries: Vec<(u64, u64)> = entries.collect();
        drop(map);
        match self.lie {
            Lie::NotFirst => drop(entries.remove(0)),
            Lie::OnlyFirst => entries.truncate(1),
            Lie::Nothing => entries.clear(),
            Lie::Twice => entries.insert(0, entries[0]),
            _ => {}
        }
        let _ = entries.into_iter().all(|(key, word)| visit(key, word));
    }
    fn scans(&self) -> bool {
        true
    }
    fn count(&self) -> usize {
        let count = self.map.lock().len();
        match self.lie {
            Lie::More => count + 1,
            Lie::NoInserts => count.min(RECORDS),
            _ => count,
        }
    }
    fn bytes(&self) -> Option<usize> {
        None
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        Vec::new()
    }
}

impl Scannable for Liar {}

/// The records that are loaded.
const RECORDS: usize = 500;

/// A command line.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: YcsbArgs,
}

/// A plan with few records and operations.
pub fn plan(flags: &str) -> Plan {
    try_plan(flags).unwrap()
}

/// A plan with few records and operations, unless the flags are refused.
pub fn try_plan(flags: &str) -> Result<Plan, Error> {
    let line = format!("ycsb -p recordcount={RECORDS} -p operationcount=2000 --threads 2 {flags}");
    Plan::new(&Line::parse_from(line.split(' ')).args, 2, false)
}

/// Loads and runs the benchmark once. Returns the calls of the run, too.
fn outcome(plan: &Plan, lie: Lie) -> Result<(Sample, u64, u64), Error> {
    let calls = Arc::new(Calls::default());
    let index = Arc::clone(&calls);
    let made =
        move |_: &Options| Ok(Liar { map: Mutex::default(), lie, calls: Arc::clone(&index) });
    let options = StoreOptions::default();
    let engine = Ours::<Optimistic, Liar>::new(&plan.job, (&options, None), Box::new(made))?;
    assert!(engine.times_index());
    let (crew, contender) = (Crew::new(), &plan.contenders[0]);
    run::load(&engine, plan, &crew).map_err(|fault| fault.of(contender))?;
    let count = || [&calls.gets, &calls.batches].map(|calls| calls.load(Ordering::Relaxed));
    let before = count();
    let inserts = plan.job.inserts();
    let sample = run::run(&engine, plan, &inserts, (2, 0, 1), Pages::Small, &crew);
    let sample = sample.map_err(|fault| fault.of(contender))?;
    let [gets, batches] = count();
    Ok((sample, gets - before[0], batches - before[1]))
}

const READS: &str = "-p readproportion=1 -p updateproportion=0";
const UPDATES: &str = "-p readproportion=0 -p updateproportion=1";
const SCANS: &str = "-p readproportion=0 -p updateproportion=0 -p scanproportion=1 \
                     -p maxscanlength=9";
const INSERTS: &str = "-p readproportion=0.5 -p updateproportion=0 -p insertproportion=0.5";

#[test]
fn honest_answers_are_accepted() {
    for flags in [READS, UPDATES, SCANS, INSERTS] {
        let (sample, ..) = outcome(&plan(flags), Lie::None).unwrap();
        assert_eq!(sample.tally.operations, 2000, "{flags}");
    }
}

/// Each lie ends the command with exit code 1 and the name of the index.
#[test]
fn lies_are_refuted() {
    for (flags, lie, part) in [
        (READS, Lie::Absent, "2000 operations have not found their record"),
        (UPDATES, Lie::Absent, "2000 operations have not found their record"),
        (READS, Lie::OtherRow, "has returned the row with key"),
        (SCANS, Lie::NotFirst, "had to begin with key"),
        (SCANS, Lie::OnlyFirst, "has ended at key"),
        (SCANS, Lie::Nothing, "has returned no row"),
        (SCANS, Lie::Twice, "must ascend"),
        (READS, Lie::More, "it has 501 records after the load of 500"),
        (INSERTS, Lie::NoInserts, "it has 500 records after the run, and should have"),
    ] {
        let Err(error) = outcome(&plan(flags), lie) else { panic!("{lie:?} is not refuted") };
        let Error::Wrong { index, what } = &error else { panic!("{lie:?}: {error}") };
        assert!(index == "map" && what.contains(part), "{lie:?}: {error}");
        let code = format!("{:?}", error.exit_code());
        assert_eq!(code, format!("{:?}", ExitCode::from(1)));
    }
}

/// `--get-many` was accepted and its effect not checked.
#[test]
fn batches_are_looked_up_by_get_many_if_asked_for() {
    let flags = format!("{READS} --transaction 16");
    let (_, gets, batches) = outcome(&plan(&flags), Lie::None).unwrap();
    assert_eq!((gets, batches), (2000, 0));
    let flags = format!("{flags} --get-many");
    let (_, gets, batches) = outcome(&plan(&flags), Lie::None).unwrap();
    assert_eq!((gets, batches), (0, 2 * 1000_u64.div_ceil(16)));
    for lie in [Lie::Absent, Lie::OtherRow] {
        assert!(matches!(outcome(&plan(&flags), lie), Err(Error::Wrong { .. })), "{lie:?}");
    }
}

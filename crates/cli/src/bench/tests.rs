//! A wrong index must not win. Every fault that we can think of is caught.

use super::cell::Cell;
use super::plan::Plan;
use super::report::Report;
use crate::catalogue::{Advice, AnyMaker, DEFAULT_VARIANT, Entry, Make, Maker, Nodes, Variant};
use crate::contender::ours::{ByRange, Ours};
use crate::contender::{Contender, Session, Upserts};
use crate::drive::keys::BenchKey;
use crate::drive::nothing::Nothing;
use crate::drive::run::{Failure, Ledger, Limit, RunSpec};
use crate::drive::scans::ScanBy;
use crate::drive::subject::{Change, Crew, Reuse, Subject, Traffic};
use crate::flags::args::{Cli, Verb};
use crate::flags::types::{KeyType, Types};
use crate::host::machine::Machine;
use crate::progress::Progress;
use clap::Parser;
use silvics::{AllocError, IndexKey, Options, Pages, SkipList};
use silvics_sync::Mutex;
use silvics_workload::{Choice, Dist, Mix, Op, Share};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// The fault of a [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Some inserts report success and do not insert.
    LosesInserts,
    /// Some upserts remove the key, and report that it was present.
    LosesUpserts,
    /// Inserts report that the key was present, and insert it.
    DeniesInserts,
    /// Removals report success and do not remove.
    KeepsRemoved,
    /// Lookups return the value of another key.
    MixesValues,
    /// Lookups miss keys that are present.
    Overlooks,
    /// Scans begin at the next key.
    SkipsFirst,
    /// Scans run backwards.
    ScansBackwards,
    /// Scans return more entries than requested.
    ScansOn,
    /// Scans return a wrong number of entries.
    Miscounts,
    /// Removals panic.
    Panics,
    /// Lookups return the value of another key; after that, allocations of the thread fail.
    RunsOutOnceWrong,
}

std::thread_local! {
    /// Whether a lookup of [`Fault::RunsOutOnceWrong`] has returned a wrong value.
    static WRONG: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// A map under a lock that errs on one key out of sixteen.
struct Model {
    map: Mutex<BTreeMap<u64, u64>>,
    fault: Fault,
}

impl Model {
    fn with(fault: Fault) -> Subject<u64> {
        let map = Mutex::default();
        Subject::of(Self { map, fault })
    }

    fn errs(&self, fault: Fault, key: u64) -> bool {
        self.fault == fault && key.is_multiple_of(16)
    }
}

impl Contender for Model {
    type Key = u64;
    type Session<'a> = &'a Model;

    fn session(&self) -> &Model {
        self
    }
}

impl Session for &Model {
    type Key = u64;
    type Lent = u64;

    fn get(&mut self, key: u64) -> Option<u64> {
        let value = self.map.lock().get(&key).copied()?;
        match () {
            () if self.errs(Fault::Overlooks, key) => None,
            () if self.errs(Fault::MixesValues, key) => Some(value + 1),
            () if self.errs(Fault::RunsOutOnceWrong, key) => {
                WRONG.set(true);
                Some(value + 1)
            }
            () => Some(value),
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        if self.errs(Fault::LosesInserts, key) {
            return Ok(!self.map.lock().contains_key(&key));
        }
        if WRONG.get() {
            return Err(AllocError::System { requested: 1 });
        }
        let fresh = self.map.lock().insert(key, value).is_none();
        Ok(fresh && !self.errs(Fault::DeniesInserts, key))
    }

    fn upsert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        if self.errs(Fault::LosesUpserts, key) {
            return Ok(self.map.lock().remove(&key).is_none());
        }
        Ok(self.map.lock().insert(key, value).is_none())
    }

    fn remove(&mut self, key: u64) -> Result<bool, AllocError> {
        if self.errs(Fault::KeepsRemoved, key) {
            return Ok(self.map.lock().contains_key(&key));
        }
        assert!(!self.errs(Fault::Panics, key), "as was planned");
        Ok(self.map.lock().remove(&key).is_some())
    }

    fn scan(&mut self, from: u64, limit: usize, visit: &mut impl FnMut(u64, u64)) -> usize {
        let limit = limit + usize::from(self.fault == Fault::ScansOn);
        let map = self.map.lock();
        let mut entries: Vec<(u64, u64)> =
            map.range(from..).map(|(k, v)| (*k, *v)).take(limit).collect();
        match self.fault {
            Fault::ScansBackwards => entries.reverse(),
            Fault::SkipsFirst if !entries.is_empty() => _ = entries.remove(0),
            _ => {}
        }
        for &(key, value) in &entries {
            visit(key, value);
        }
        entries.len() + usize::from(self.fault == Fault::Miscounts)
    }
}

fn traffic<K: BenchKey + ?Sized>(dist: Dist, len: usize) -> Traffic<K> {
    Traffic { space: K::generate(dist, len, K::TYPE), choice: Choice::new(dist, len, 1) }
}

/// Makes a load, runs of every mix, and the check at the end, as a cell does.
fn drive<K: BenchKey + ?Sized>(
    subject: &mut Subject<K>,
    traffic: &Traffic<K>,
    mixes: &[&str],
    scans: bool,
) -> Result<Ledger, Failure> {
    let crew = Crew::new();
    let load = subject.load(traffic, Reuse::Yes, &crew)?;
    let mut ledger = Ledger::default();
    ledger.book(&load.tally);
    assert_eq!(load.tally.ops, traffic.choice.present() as u64);
    let mut window = traffic.choice.start();
    for (number, mix) in (0..).zip(mixes) {
        let mix: Mix = mix.parse().unwrap();
        let spec = RunSpec {
            mix,
            batch: 1 + number as usize % 2 * 7,
            scan_by: ScanBy::Range,
            scan_length: 20,
            threads: 2,
            time: Duration::from_millis(15),
            number,
            window,
            limit: None,
        };
        let outcome = subject.run(traffic, &spec, &crew)?;
        assert!(outcome.tally.ops > 0 && outcome.seconds > 0.0, "{outcome:?}");
        assert!(outcome.tally.hits <= outcome.tally.lookups);
        ledger.book(&outcome.tally);
        window = outcome.window;
    }
    subject.verify(traffic, ledger, scans, &crew)?;
    Ok(ledger)
}

const MIXES: [&str; 5] = ["100/0/0", "90/5/5", "20/40/30/10", "0/50/50", "20/30/30/0/20"];

#[test]
fn a_right_index_passes_with_every_distribution() {
    for dist in [
        Dist::Uniform,
        Dist::Sparse,
        Dist::Zipf(0.99),
        Dist::SparseZipf(0.99),
        Dist::Sequential,
        Dist::Disjoint,
        Dist::Latest,
    ] {
        let traffic = traffic::<u64>(dist, 2000);
        let ledger = drive(&mut Model::with(Fault::None), &traffic, &MIXES, true).unwrap();
        assert!((0..=2000).contains(&ledger.keys), "{dist}: {ledger:?}");
    }
}

#[test]
fn our_index_passes_with_words_and_bytes() {
    let options = Options { pages: Pages::Small, ..Options::default() };
    let words = SkipList::<u64>::with_options(&options).unwrap();
    let mut words = Subject::of(Ours::<_, ByRange>::new(words));
    drive(&mut words, &traffic::<u64>(Dist::Sparse, 2000), &MIXES, true).unwrap();
    let bytes = SkipList::<[u8]>::with_options(&options).unwrap();
    let mut bytes = Subject::of(Ours::<_, ByRange>::new(bytes));
    drive(&mut bytes, &traffic::<[u8]>(Dist::Uniform, 2000), &MIXES, true).unwrap();
    assert!(bytes.bytes().unwrap() > 0);
}

#[test]
fn one_key_is_enough() {
    for dist in [Dist::Uniform, Dist::Disjoint, Dist::Latest, Dist::Sequential] {
        drive(&mut Model::with(Fault::None), &traffic::<u64>(dist, 1), &MIXES, true).unwrap();
    }
}

#[test]
fn every_fault_is_caught() {
    for (fault, told) in [
        (Fault::LosesInserts, "must be present"),
        (Fault::LosesUpserts, "must be present"),
        (Fault::DeniesInserts, "present before it was inserted"),
        (Fault::KeepsRemoved, "must be present"),
        (Fault::MixesValues, "has the value"),
        (Fault::Overlooks, "lookups of every key"),
        (Fault::ScansBackwards, "out of order"),
        (Fault::ScansOn, "a scan of 20 entries gave 21"),
        (Fault::Miscounts, "and counted"),
        (Fault::SkipsFirst, "a scan of everything"),
    ] {
        let traffic = traffic::<u64>(Dist::Uniform, 2000);
        match drive(&mut Model::with(fault), &traffic, &MIXES, true) {
            Err(Failure::Wrong(what)) => assert!(what.contains(told), "{fault:?}: {what}"),
            other => panic!("{fault:?} was not caught: {other:?}"),
        }
    }
}

/// A wrong answer can cause the shortage, so it is reported first.
#[test]
fn a_shortage_hides_no_wrong_answer() {
    let traffic = traffic::<u64>(Dist::Uniform, 2000);
    for mixes in [&["50/50/0"][..], &["0/50/50", "50/50/0"]] {
        match drive(&mut Model::with(Fault::RunsOutOnceWrong), &traffic, mixes, true) {
            Err(Failure::Wrong(what)) => assert!(what.contains("has the value"), "{what}"),
            other => panic!("not caught: {other:?}"),
        }
    }
}

#[test]
fn a_panic_is_no_result() {
    let traffic = traffic::<u64>(Dist::Uniform, 2000);
    let result = drive(&mut Model::with(Fault::Panics), &traffic, &MIXES, true);
    assert!(matches!(result, Err(Failure::Panicked)), "{result:?}");
}

/// A run whose mix has more inserts than removals, or fewer, ends when the index has grown or
/// shrunk as far as it may.
#[test]
fn a_growing_run_ends_when_few_keys_are_left() {
    let (traffic, crew) = (traffic::<u64>(Dist::Uniform, 20_000), Crew::new());
    for (mix, growth) in [("50/50/0", 9000_i64), ("0/0/100", -9000)] {
        let mut subject = Model::with(Fault::None);
        let mut ledger = Ledger::default();
        ledger.book(&subject.load(&traffic, Reuse::Yes, &crew).unwrap().tally);
        let mix: Mix = mix.parse().unwrap();
        let spec = RunSpec {
            mix,
            batch: 1,
            scan_by: ScanBy::Range,
            scan_length: 1,
            threads: 2,
            time: Duration::from_mins(1),
            number: 0,
            window: traffic.choice.start(),
            limit: Some(Limit::Growth(growth)),
        };
        let outcome = subject.run(&traffic, &spec, &crew).unwrap();
        assert!(outcome.seconds < 30.0, "{outcome:?}");
        // A thread counts its inserts after some blocks only.
        let grown = outcome.tally.growth() * growth.signum();
        assert!((9000..10_000).contains(&grown), "{mix}: {grown}");
        ledger.book(&outcome.tally);
        subject.verify(&traffic, ledger, true, &crew).unwrap();
    }
}

/// Scans read as many entries as asked for, unless they begin near the end.
#[test]
fn scans_read_what_was_asked_for() {
    let (traffic, crew) = (traffic::<u64>(Dist::Uniform, 20_000), Crew::new());
    let mut subject = Model::with(Fault::None);
    subject.load(&traffic, Reuse::Yes, &crew).unwrap();
    for (scan_by, entries) in [(ScanBy::Range, 7), (ScanBy::Next, 7), (ScanBy::Whole, 10_000)] {
        let spec = RunSpec {
            mix: "0/0/0/100".parse().unwrap(),
            batch: 1,
            scan_by,
            scan_length: 7,
            threads: 2,
            time: Duration::from_millis(20),
            number: 0,
            window: traffic.choice.start(),
            limit: None,
        };
        let tally = subject.run(&traffic, &spec, &crew).unwrap().tally;
        let (least, most) = (entries * tally.ops * 99 / 100, entries * tally.ops);
        assert!((least..=most).contains(&tally.scanned), "{scan_by}: {tally:?}");
    }
}

/// A lookup, a batch, a scan by range and an entry of a scan by `next` have one time each. One scan
/// of sixteen is a check, which has none.
#[test]
fn each_call_has_one_time() {
    let (traffic, crew) = (traffic::<u64>(Dist::Uniform, 20_000), Crew::new());
    let mut subject = Model::with(Fault::None);
    subject.load(&traffic, Reuse::Yes, &crew).unwrap();
    let timed = |mix: &str, batch, scan_by| {
        let spec = RunSpec {
            mix: mix.parse().unwrap(),
            batch,
            scan_by,
            scan_length: 5,
            threads: 1,
            time: Duration::from_millis(20),
            number: 0,
            window: traffic.choice.start(),
            limit: None,
        };
        let (outcome, times) = subject.run_timed(&traffic, &spec, &crew).unwrap();
        let count = |op| times.by_verb().find(|(of, _)| *of == op).map_or(0, |(_, of)| of.len());
        assert!(!times.takes_many(Op::Lookup), "the model has no call for batches");
        (outcome.tally, count(Op::Lookup), count(Op::Scan))
    };
    for batch in [1, 16] {
        let (tally, lookups, scans) = timed("100/0/0", batch, ScanBy::Range);
        assert_eq!((lookups, scans), (tally.lookups / batch as u64, 0));
    }
    for by in [ScanBy::Range, ScanBy::Whole] {
        let (tally, lookups, scans) = timed("0/0/0/100", 1, by);
        assert_eq!((lookups, scans), (0, tally.ops - tally.ops / 16), "{by}");
    }
    let (tally, _, calls) = timed("0/0/0/100", 1, ScanBy::Next);
    // A scan that begins near the end has a call that finds nothing.
    assert!((tally.scanned..=tally.scanned + tally.ops / 100 + 1).contains(&calls), "{tally:?}");
}

#[test]
fn an_index_that_does_nothing_is_driven() {
    fn drives<K: BenchKey + ?Sized>() {
        let (traffic, crew) = (traffic::<K>(Dist::Uniform, 2000), Crew::new());
        let nothing = Subject::of(Nothing::<K>::default());
        for (mix, batch) in [("100/0/0", 1), ("20/20/20/20/20", 1), ("20/20/20/20/20", 8)] {
            let spec = RunSpec {
                mix: mix.parse().unwrap(),
                batch,
                scan_by: ScanBy::Range,
                scan_length: 20,
                threads: 2,
                time: Duration::from_millis(5),
                number: 0,
                window: traffic.choice.start(),
                limit: None,
            };
            let tally = nothing.run(&traffic, &spec, &crew).unwrap().tally;
            assert!(tally.ops >= 128 && tally.lookups > 0);
            let found = (tally.hits, tally.inserted, tally.removed, tally.scanned);
            assert_eq!(found, (0, 0, 0, 0));
        }
    }
    drives::<u64>();
    drives::<u128>();
    drives::<[u8]>();
}

#[test]
fn changes_reach_the_index() {
    let (traffic, crew) = (traffic::<u64>(Dist::Uniform, 2000), Crew::new());
    let mut subject = Model::with(Fault::None);
    let ledger = drive(&mut subject, &traffic, &[], true).unwrap();
    let keys: Vec<u32> = traffic.choice.load_part(Share::ALONE).take(10).collect();
    let change = |change: fn(u32) -> Change| {
        subject.change(&traffic.space, keys.iter().copied().map(change)).unwrap();
        subject.verify(&traffic, ledger, true, &crew)
    };
    assert!(matches!(change(Change::Remove), Err(Failure::Wrong(_))), "ten keys are gone");
    change(Change::Insert).unwrap();
}

#[test]
fn runs_of_the_same_number_make_the_same_operations() {
    let traffic = traffic::<u64>(Dist::Zipf(0.5), 2000);
    let crew = Crew::new();
    let loads: Vec<Ledger> = (0..2)
        .map(|_| {
            let mut subject = Model::with(Fault::None);
            let mut ledger = Ledger::default();
            ledger.book(&subject.load(&traffic, Reuse::No, &crew).unwrap().tally);
            ledger
        })
        .collect();
    assert_eq!(loads[0], loads[1]);
    assert_eq!(loads[0].keys, 1000);
}

#[test]
fn the_value_of_a_byte_key_follows_from_its_bytes() {
    let space = <[u8]>::generate(Dist::Uniform, 10, KeyType::Bytes);
    for position in 0..10 {
        let key = <[u8] as BenchKey>::key(&space, position);
        assert_eq!(<[u8]>::value_of(key), <[u8]>::value(&space, position));
        assert_eq!(<[u8]>::weight_of(key), <[u8]>::weight(&space, position));
        assert_eq!(<[u8] as IndexKey>::to_owned(key).len(), 8);
    }
}

/// The catalogue's entry of a peer that has a fault.
fn peer(make: fn(Types, Nodes) -> Option<AnyMaker>) -> &'static Entry {
    Box::leak(Box::new(Entry {
        name: "peer:wrong".into(),
        origin: "",
        paper: "",
        topology: "",
        sync: "",
        groups: &["peers"],
        max_key_bytes: None,
        upserts: Upserts::Any,
        variants: vec![Variant {
            name: DEFAULT_VARIANT,
            make,
            objects: &[],
            oversights: &[],
            lookups_only: false,
            advice: Advice::Next,
            rust: None,
        }],
    }))
}

fn model(types: Types, nodes: Nodes, subject: Make<u64>) -> Option<AnyMaker> {
    let wanted = (types, nodes) == (Types::words(KeyType::U64), Nodes::Pooled);
    let maker = Maker { subject, scans: false, adapts: false, verify: None, inspect: None };
    wanted.then(|| maker.into())
}

/// A peer that is wrong is left out of a comparison, also if it was named. It is found to be wrong
/// also if its last index is right: if a mix had an index of its own, this is checked, too.
#[test]
fn a_wrong_peer_has_no_rows() {
    let crew = Crew::new();
    let traffic = traffic::<u64>(Dist::Uniform, 2000);
    let names = |wrong: &'static Entry, named, mix| {
        let little = ["--keys", "1k", "--seconds", "0.01", "--rounds", "1", "--mix", mix];
        let args = [&["silvics", "bench", "--index", "ours"], &little[..]].concat();
        let Verb::Bench(args) = Cli::parse_from(args).verb else { unreachable!("it is bench") };
        let mut plan = Plan::new(&args, crew.threads).unwrap();
        plan.chosen.truncate(2);
        let peer = &mut plan.chosen[1];
        (peer.entry, peer.variant, peer.named) = (wrong, &wrong.variants[0], named);
        let mut report = Report::new(&plan, Machine::this(crew.threads));
        let progress = Progress::new(1);
        let (plan, traffic, crew) = (&plan, &traffic, &crew);
        let left_out = RefCell::default();
        Cell { traffic, plan, crew, progress: &progress, number: 0, left_out }
            .run(&mut report)
            .unwrap();
        assert!(report.results.iter().all(|row| row.checked));
        report.results.iter().map(|row| row.key.index.clone()).collect::<Vec<_>>()
    };
    let overlooks =
        peer(|types, nodes| model(types, nodes, |_: &Options| Ok(Model::with(Fault::Overlooks))));
    for named in [false, true] {
        assert_eq!(names(overlooks, named, "100/0/0"), ["edge-ext-lf"]);
    }
    let upserts = peer(|types, nodes| {
        model(types, nodes, |_: &Options| Ok(Model::with(Fault::LosesUpserts)))
    });
    assert_eq!(names(upserts, true, "20/20/20/0/40,100/0/0"), ["edge-ext-lf"; 2]);
    let right =
        peer(|types, nodes| model(types, nodes, |_: &Options| Ok(Model::with(Fault::None))));
    assert_eq!(names(right, true, "100/0/0"), ["edge-ext-lf", "peer:wrong"]);
}

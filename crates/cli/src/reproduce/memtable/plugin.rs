//! memtable/2.3: memtables of Silvics in an unmodified `db_bench`.
//!
//! `crates/rocksdb/db_bench.sh --json FILE` writes a JSON list with an object for each run, in the
//! order of the runs: `{"memtable", "workload", "threads", "batch", "ops_per_s", "bytes"}`. Runs of
//! one workload take turns. `bytes` is the memtable's report of its memory, or null.

use super::{KEY_BYTES, KEYS, MEMTABLES, inline::scattered};
use crate::flags::error::Error;
use crate::flags::units::{Bytes, plural};
use crate::host::memory::Resident;
use crate::interrupt;
use crate::memtable::keys::Key;
use crate::memtable::plan::Memtable;
use crate::reproduce::Experiment;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{median, ratio};
use serde::Deserialize;
use silvics::Domain;
use silvics_memtable::{ByteIndex, Bytewise, Index, Op, OrdIndex, SkipIndex, Table, TableOptions};
use std::path::Path;
use std::sync::Arc;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    title: "as a plug-in",
    source: "ours: an unmodified db_bench with a preloaded library",
    machine: super::MACHINE,
    claim: "an unmodified `db_bench -memtablerep=NAME` uses a memtable of Silvics from a preloaded \
            library; it fills, reads, reads while it writes and seeks; the memory that it reports \
            is within 1 % of the held bytes",
    carried_by: "fact; clock reported",
    seen_if: "fills, reads, reads while writing and seeks are right; reported memory within 1 % of \
              the held bytes; compared with skip_list in alternation",
    elsewhere: false,
    cannot_show: &[
        "the speed of skip_list in a library of RocksDB with assertions, such as Debian's: they \
         make it two times slower or more, and db_bench.sh says whether there are any",
    ],
    gather,
};

const NAME: &str = "memtable/2.3";
const FLAG: &str = "--db-bench";

/// The memtable of RocksDB.
const STOCK: &str = "skip_list";
/// The beginning of the names of ours in `db_bench`.
const OURS: &str = "silvics_";
/// The workloads that must run.
const WORKLOADS: [&str; 4] = ["fillrandom", "readrandom", "readwhilewriting", "seekrandom"];

/// The least bytes of a table whose share of the process can be told to a percent.
const LEAST: usize = 64 << 20;

/// A run of `db_bench`.
#[derive(Clone, Debug, Deserialize)]
pub struct Stock {
    memtable: String,
    workload: String,
    threads: usize,
    batch: usize,
    ops_per_s: f64,
    bytes: Option<u64>,
}

impl Stock {
    /// Whether two runs differ in nothing but the memtable and the result.
    fn is_like(&self, other: &Self) -> bool {
        (&self.workload, self.threads, self.batch) == (&other.workload, other.threads, other.batch)
    }
}

/// Reads the file of `--db-bench` for these experiments.
pub fn db_bench(path: &Path, chosen: &[&Experiment]) -> Result<Vec<Stock>, Error> {
    if !chosen.iter().any(|one| one.name == NAME) {
        return Err(Error::value(FLAG, format!("only {NAME} reads such a file: name it")));
    }
    let failed = |problem: String| Error::File { flag: FLAG, path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
    let runs: Vec<Stock> = serde_json::from_str(&text).map_err(|error| {
        failed(format!(
            "is no list of runs ({error}): name the file that the plug-in's script writes"
        ))
    })?;
    if runs.is_empty() {
        return Err(failed("has no runs: let the plug-in's script run to its end".into()));
    }
    Ok(runs)
}

fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        for memtable in MEMTABLES {
            lines.push(held(lab.plan.keys(KEYS), memtable)?);
        }
        lines.extend(lab.db_bench.as_ref().map(|runs| ran(runs)));
    }
    match &lab.db_bench {
        Some(runs) if lab.wants(Level::Clock) => lines.extend(speeds(runs)),
        Some(_) => {}
        None => {
            let why = "run crates/rocksdb/db_bench.sh --json FILE, then add --db-bench FILE here";
            let what = format!("{STOCK} and {OURS}… in an unmodified db_bench");
            lines.push(Evidence::missing(Level::Clock, what, why.into()));
        }
    }
    Ok(lines)
}

/// The bytes that a table reports, beside the growth of the process.
fn held(keys: usize, memtable: Memtable) -> Result<Evidence, Error> {
    let (reported, grown) = match memtable {
        Memtable::Art => filled::<ByteIndex>(keys)?,
        Memtable::OrdMap => filled::<OrdIndex>(keys)?,
        Memtable::SkipList | Memtable::SkipListPointer => filled::<SkipIndex>(keys)?,
    };
    let what = format!("{}: bytes reported / growth of the process", memtable.name());
    let Some(grown) = grown.filter(|&grown| grown > 0) else {
        let why = "the system does not report the memory of a process".into();
        return Ok(Evidence::missing(Level::Fact, what, why));
    };
    let share = reported as f64 / grown as f64;
    let figures = format!("({reported} and {grown}, {keys} entries)");
    let line = Evidence::fact(what, Unit::Number(3), Expected::about(1.0, 0.01), share);
    let few = format!("a table of {} is too small beside a process: more --keys", Bytes(reported));
    Ok(line.with(&figures).unless((reported < LEAST).then_some(few)))
}

/// Fills a table. Returns the bytes that it reports, and those by which the process has grown.
fn filled<I: Index>(keys: usize) -> Result<(usize, Option<usize>), Error> {
    let wrong = |what: String| Error::Wrong { index: I::NAME.into(), what };
    let before = Resident::now();
    let domain = Domain::new();
    let table = Table::<I>::new(&TableOptions::new(Arc::new(Bytewise)), domain.clone());
    let table = table.map_err(|error| wrong(error.to_string()))?;
    let (mut key, value) = (Key::new(KEY_BYTES), [7; 100]);
    for number in 0..keys as u64 {
        let op = Op::Put { key: key.of(scattered(number)), value: &value };
        // SAFETY: this is the only thread that has the table.
        let added = unsafe { table.add(number + 1, op, false, &domain.pin()) };
        added.map_err(|error| Error::Alloc { index: I::NAME.into(), error })?;
        if number % 4096 == 0 && interrupt::pending() {
            return Err(Error::Interrupted);
        }
    }
    domain.flush(); // nodes that were replaced are reused, or count for both
    let after = Resident::now();
    let grown = before.zip(after).map(|(before, after)| after.since(before).bytes);
    Ok((table.bytes(), grown))
}

/// The names of our memtables in a file, each once.
fn ours(runs: &[Stock]) -> Vec<&str> {
    let mut names: Vec<&str> = runs.iter().map(|run| &*run.memtable).collect();
    names.retain(|name| name.starts_with(OURS));
    names.sort_unstable();
    names.dedup();
    names
}

/// A line on the workloads that ran with our memtables.
fn ran(runs: &[Stock]) -> Evidence {
    let names = ours(runs);
    let has = |memtable: &str, workload: &str| {
        runs.iter().any(|run| run.memtable == memtable && run.workload == workload)
    };
    let mut missing = Vec::new();
    for name in &names {
        let without = WORKLOADS.iter().filter(|workload| !has(name, workload));
        missing.extend(without.map(|workload| format!("{name} without {workload}")));
    }
    let holds = missing.is_empty() && !names.is_empty();
    let found = match (names.is_empty(), holds) {
        (true, _) => format!("no memtable with {OURS}"),
        (_, true) => names.join(", "),
        _ => missing.join(", "),
    };
    let what = "memtables that ran in an unmodified db_bench";
    Evidence::plain(what, format!("{} with each", WORKLOADS.join(", ")), found, holds)
}

/// Lines on our memtables over RocksDB's, run by run.
fn speeds(runs: &[Stock]) -> Vec<Evidence> {
    let mut lines = Vec::new();
    for name in ours(runs) {
        let mut done: Vec<&Stock> = Vec::new();
        for run in runs.iter().filter(|run| run.memtable == name) {
            if done.iter().any(|other| other.is_like(run)) {
                continue;
            }
            done.push(run);
            let of = |memtable: &str| -> Vec<&Stock> {
                runs.iter().filter(|one| one.memtable == memtable && one.is_like(run)).collect()
            };
            lines.push(speed(run, &of(name), &of(STOCK)));
        }
    }
    lines
}

fn speed(run: &Stock, own: &[&Stock], stock: &[&Stock]) -> Evidence {
    let Stock { memtable, workload, threads, batch, .. } = run;
    let ending = plural(*threads);
    let what =
        format!("{workload}, {threads} thread{ending}, batches of {batch}: {memtable} / {STOCK}");
    if stock.is_empty() {
        let why = format!("the file has no such run of {STOCK}");
        return Evidence::missing(Level::Clock, what, why).aside();
    }
    let rates = |runs: &[&Stock]| runs.iter().map(|run| run.ops_per_s).collect::<Vec<f64>>();
    let (own_rates, stock_rates) = (rates(own), rates(stock));
    let bytes = |runs: &[&Stock]| runs.iter().rev().find_map(|run| run.bytes);
    let memory = match (bytes(own), bytes(stock)) {
        (Some(own), Some(stock)) => format!("; bytes {own} and {stock}"),
        _ => String::new(),
    };
    let kops = |rates: &[f64]| median(rates) / 1e3;
    let figures =
        format!("(kops/s: {:.0} and {:.0}{memory})", kops(&own_rates), kops(&stock_rates));
    Evidence::no_slower(what, ratio(&own_rates, &stock_rates)).with(&figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::Verdict;

    fn runs(text: &str) -> Vec<Stock> {
        serde_json::from_str(text).unwrap()
    }

    fn run(memtable: &str, workload: &str, ops: f64) -> String {
        format!(
            r#"{{"memtable":"{memtable}","workload":"{workload}","threads":2,"batch":1,
                "ops_per_s":{ops},"bytes":null}}"#
        )
    }

    #[test]
    fn each_workload_must_run_with_our_memtables() {
        let all = WORKLOADS.map(|workload| run("silvics_art", workload, 1.0));
        let whole = runs(&format!("[{}]", all.join(",")));
        assert_eq!(ran(&whole).verdict, Verdict::Confirmed);
        let line = ran(&whole[1..]);
        assert_eq!(line.verdict, Verdict::Contradicted);
        assert_eq!(line.found, "silvics_art without fillrandom");
        assert_eq!(
            ran(&runs(&format!("[{}]", run(STOCK, "x", 1.0)))).verdict,
            Verdict::Contradicted
        );
    }

    #[test]
    fn runs_are_compared_in_their_order() {
        let all = [
            run("silvics_art", "fillrandom", 300.0),
            run(STOCK, "fillrandom", 100.0),
            run(STOCK, "fillrandom", 200.0),
            run("silvics_art", "fillrandom", 400.0),
            run("silvics_art", "seekrandom", 1.0),
        ];
        let lines = speeds(&runs(&format!("[{}]", all.join(","))));
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].value, lines[0].verdict), (Some(2.5), Verdict::Confirmed));
        assert_eq!(lines[1].verdict, Verdict::CannotBeShown);
    }
}

//! ets/5.3: the fourteen mixes of Erlang's benchmark.
//!
//! A million keys to choose from, half of them present. `nextseqN` is N calls, each of which looks
//! for the successor of a key. `selectAll` reads all entries. `partial_select1000` reads the keys
//! from a random one on within 1000, which are 500 entries on average, as half of the keys are
//! present. An operation counts as one, whatever its length.

use super::erlang::Table;
use crate::bench::report::{Report, Row};
use crate::drive::scans::ScanBy;
use crate::drive::stats::Interval;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level};
use crate::reproduce::lab::{Lab, Runs};

/// A mix of the source.
#[derive(Clone, Copy)]
struct Mix {
    /// The shares of inserts, removals, lookups and another operation, as Erlang's script takes
    /// them.
    name: &'static str,
    /// The shares of lookups, inserts, removals and scans.
    shares: &'static str,
    scan_by: ScanBy,
    scan_length: &'static str,
}

impl Mix {
    const fn of(
        name: &'static str,
        shares: &'static str,
        scan_by: ScanBy,
        scan_length: &'static str,
    ) -> Self {
        Self { name, shares, scan_by, scan_length }
    }

    fn writes(&self) -> bool {
        !self.shares.contains("/0/0")
    }

    fn selects_all(&self) -> bool {
        self.scan_by == ScanBy::Whole
    }

    /// Whether a run of a fraction of a second has less than one of the other operation.
    fn is_too_rare(&self) -> bool {
        self.shares.ends_with("/0.0001")
    }
}

const MIXES: [Mix; 14] = {
    use ScanBy::{Next, Range, Whole};
    [
        Mix::of("50/50/0", "0/50/50", Range, "1"),
        Mix::of("10/10/80", "80/10/10", Range, "1"),
        Mix::of("1/1/98", "98/1/1", Range, "1"),
        Mix::of("0/0/100", "100/0/0", Range, "1"),
        Mix::of("10/10/40/40:nextseq10", "40/10/10/40", Next, "10"),
        Mix::of("10/10/40/40:nextseq100", "40/10/10/40", Next, "100"),
        Mix::of("10/10/40/40:nextseq1000", "40/10/10/40", Next, "1000"),
        Mix::of("0/0/0/100:nextseq1000", "0/0/0/100", Next, "1000"),
        Mix::of("10/10/79/1:selectAll", "79/10/10/1", Whole, "1"),
        Mix::of("10/10/79.99/0.01:selectAll", "79.99/10/10/0.01", Whole, "1"),
        Mix::of("10/10/79.9999/0.0001:selectAll", "79.9999/10/10/0.0001", Whole, "1"),
        Mix::of("10/10/79/1:partial_select1000", "79/10/10/1", Range, "500"),
        Mix::of("10/10/79.99/0.01:partial_select1000", "79.99/10/10/0.01", Range, "500"),
        Mix::of("10/10/79.9999/0.0001:partial_select1000", "79.9999/10/10/0.0001", Range, "500"),
    ]
};

const KEYS: usize = 500_000;
const THREADS: [usize; 4] = [1, 2, 4, 8];

const ADAPTING: &str = "ca-tree";
const COARSE: &str = "ca-tree:coarse";
const FINE: &str = "ca-tree:fine";
/// Erlang's trees: the adapting one, and the one under one lock.
const AVL: &str = "ca-tree:avl";
const AVL_COARSE: &str = "ca-tree:avl-coarse";

const OURS: [&str; 8] = [ADAPTING, COARSE, FINE, AVL, AVL_COARSE, "lfca-tree", "map", "skiplist"];

/// The maps of other crates, if they are compiled in.
#[cfg(feature = "peers")]
const PEERS: &[&str] = &[MUTEX, RWLOCK, "peer:crossbeam-skiplist"];
#[cfg(not(feature = "peers"))]
const PEERS: &[&str] = &[];

const MUTEX: &str = "peer:btreemap-mutex";
const RWLOCK: &str = "peer:btreemap-rwlock";

/// ets/5.3.
pub fn throughput(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if !lab.wants(Level::Clock) {
        return Ok(lines);
    }
    let (keys, indexes) = (lab.plan.keys(KEYS), [&OURS[..], PEERS].concat());
    for mix in &MIXES {
        let mut reports = Vec::new();
        for threads in THREADS {
            // A fresh index for each number of threads: an adapting tree keeps its shape.
            reports.push(lab.bench(&Runs {
                threads: Some(threads),
                scan_by: mix.scan_by,
                scan_length: mix.scan_length,
                turns: lab.short_turns(),
                no_reuse: false,
                ..Runs::of(lab, &indexes, keys, mix.shares)
            })?);
        }
        lines.extend(judge(mix, &indexes, &reports));
        lines.extend(of_erlang(lab, mix, keys)?);
    }
    Ok(lines)
}

/// The row of an index.
fn row<'r>(report: &'r Report, index: &str) -> Option<&'r Row> {
    report.results.iter().find(|row| row.key.index == index)
}

/// The lines on a mix.
fn judge(mix: &Mix, indexes: &[&str], reports: &[Report]) -> Vec<Evidence> {
    let mut lines: Vec<Evidence> = indexes.iter().map(|of| rates(mix, of, reports)).collect();
    let decides = |line: Evidence, wanted: bool| {
        if wanted && !mix.is_too_rare() { line } else { line.aside() }
    };
    let better = over(reports, ADAPTING, &[COARSE, FINE]);
    let of = (ADAPTING, "the better of coarse and fine");
    lines.push(decides(least(mix, of, Expected::AtLeast(0.8, 0.4), &better), true));
    let lock = over(reports, ADAPTING, &[RWLOCK]);
    let several: Vec<_> = lock.iter().copied().filter(|(threads, _)| *threads > 1).collect();
    let line = if mix.writes() && !mix.selects_all() {
        decides(least(mix, (ADAPTING, RWLOCK), Expected::AtLeast(1.0, 0.5), &several), true)
    } else {
        decides(least(mix, (ADAPTING, RWLOCK), Expected::AtLeast(0.95, 0.5), &lock), false)
    };
    lines.push(line);
    let alone: Vec<_> = over(reports, ADAPTING, &[MUTEX]).into_iter().take(1).collect();
    lines.push(least(mix, (ADAPTING, MUTEX), Expected::AtLeast(0.85, 0.4), &alone).aside());
    let old = over(reports, AVL, &[AVL_COARSE]);
    lines.push(least(mix, (AVL, AVL_COARSE), Expected::AtLeast(1.0, 0.5), &old).aside());
    lines
}

/// Lines with the throughput of Erlang's tables, if they are measured.
fn of_erlang(lab: &Lab, mix: &Mix, keys: usize) -> Result<Vec<Evidence>, Error> {
    let (Some(erlang), range) = (&lab.erlang, 2 * keys as u64) else { return Ok(Vec::new()) };
    let seconds = if lab.plan.quick { 0.05 } else { 0.5 };
    let mut lines = Vec::new();
    for (table, name) in [(Table::Old, "ETS, old"), (Table::New, "ETS, new")] {
        let mut rates = Vec::new();
        for threads in THREADS {
            let found = erlang.throughput(table, threads, mix.name, range, seconds);
            let found = found.map_err(|problem| super::failed(name, problem))?;
            rates.push(format!("{:.3}", found.mops));
        }
        let found = format!("{} M/s with {THREADS:?} processes", rates.join(", "));
        lines.push(Evidence::noted(Level::Clock, format!("{}: {name}", mix.name), found));
    }
    Ok(lines)
}

/// A line with the throughput of an index.
fn rates(mix: &Mix, index: &str, reports: &[Report]) -> Evidence {
    let rate = |report: &Report| {
        row(report, index).map_or("–".into(), |row| format!("{:.3}", row.mops.median))
    };
    let rates: Vec<String> = reports.iter().map(rate).collect();
    let found = format!("{} M/s with {THREADS:?} threads", rates.join(", "));
    Evidence::noted(Level::Clock, format!("{}: {index}", mix.name), found)
}

/// The throughput of an index over that of the best of others, by threads.
fn over(reports: &[Report], own: &str, others: &[&str]) -> Vec<(usize, Interval)> {
    let ratio = |report: &Report| {
        let own = &row(report, own)?.samples;
        let others: Vec<&Row> = others.iter().filter_map(|other| row(report, other)).collect();
        let best = others.into_iter().max_by(|a, b| a.mops.median.total_cmp(&b.mops.median))?;
        let ratios: Vec<f64> = own.iter().zip(&best.samples).map(|(own, of)| own / of).collect();
        Interval::of(&ratios)
    };
    THREADS.into_iter().zip(reports).filter_map(|(n, report)| Some((n, ratio(report)?))).collect()
}

/// A line with the least of some ratios of an index to another, and all of them. It is missing if
/// there are none.
fn least(
    mix: &Mix,
    (own, other): (&str, &str),
    expected: Expected,
    ratios: &[(usize, Interval)],
) -> Evidence {
    let what = format!("{}: {own} over {other}, least of all threads", mix.name);
    let Some((_, least)) = ratios.iter().min_by(|a, b| a.1.median.total_cmp(&b.1.median)) else {
        let why = "one of both was not measured: build with the feature `peers`";
        return Evidence::missing(Level::Clock, what, why.into());
    };
    let ratio = |(threads, ratio): &(usize, Interval)| format!("{threads}: {:.2}", ratio.median);
    let all: Vec<String> = ratios.iter().map(ratio).collect();
    Evidence::clock(&what, expected, *least).with(&format!("(threads {})", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::Verdict;
    use silvics_workload::{Mix as Shares, Op};

    /// The names are the script's; the shares are ours, in another order.
    #[test]
    fn names_and_shares_are_of_one_mix() {
        for mix in &MIXES {
            let shares: Shares = mix.shares.parse().unwrap();
            let [lookups, inserts, removals, scans, _] = Op::ALL.map(|op| shares.share(op));
            let (calls, other) = match mix.name.split_once(':') {
                None => (mix.name, None),
                Some((calls, other)) => (calls, Some(other)),
            };
            let of_script = |text: &str| (text.parse::<f64>().unwrap() * 1e4).round() as u32;
            let calls: Vec<u32> = calls.split('/').map(of_script).collect();
            assert_eq!(calls[..3], [inserts, removals, lookups], "{}", mix.name);
            assert_eq!(calls.get(3).copied().unwrap_or(0), scans, "{}", mix.name);
            assert_eq!(mix.writes(), inserts > 0, "{}", mix.name);
            let (by, length) = match other {
                None => continue,
                Some("selectAll") => (ScanBy::Whole, "1"),
                Some("partial_select1000") => (ScanBy::Range, "500"),
                Some(next) => (ScanBy::Next, next.strip_prefix("nextseq").unwrap()),
            };
            assert_eq!((mix.scan_by, mix.scan_length), (by, length), "{}", mix.name);
        }
    }

    #[test]
    fn the_least_ratio_decides_and_none_is_missing() {
        let interval = |median| Interval { median, low: median, high: median };
        let line = |ratios: &[(usize, Interval)]| {
            least(&MIXES[0], ("a", "b"), Expected::AtLeast(0.8, 0.4), ratios)
        };
        let seen = line(&[(1, interval(1.2)), (2, interval(0.5)), (4, interval(0.9))]);
        assert_eq!((seen.value, seen.verdict), (Some(0.5), Verdict::NotSeen));
        assert!(seen.found.contains("1: 1.20, 2: 0.50, 4: 0.90"), "{}", seen.found);
        assert_eq!(line(&[(1, interval(0.8))]).verdict, Verdict::Confirmed);
        assert_eq!(line(&[(1, interval(0.3))]).verdict, Verdict::Contradicted);
        assert_eq!(line(&[]).verdict, Verdict::CannotBeShown);
    }
}

//! A result beside a kept one.

use super::cell::Config;
use super::kept::{Baseline, Kept, KeptRow, RowId};
use super::plan::Plan;
use super::ratio::{Ranks, Ratio, Verdict};
use super::report::{Report, Row};
use crate::flags::error::Error;
use crate::flags::place::SYSTEM_PAGES;
use crate::flags::units::{count, plural};
use crate::host::facts::{FIGURES, shown};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// The fields of a configuration that change figures and are no part of a row's key, or are what a
/// round has besides: its contenders take turns, and an index is used by all mixes, batches and
/// scans of a round, one after the other.
const CONFIG: [&str; 20] = [
    "indexes",
    "placement",
    "pages",
    "tuning",
    "trace_adaptation",
    "mix",
    "batch",
    "scan_by",
    "scan_length",
    "seconds",
    "rounds",
    "loads",
    "load_threads",
    "threads",
    "memory_limit",
    "counting",
    "reuse",
    "counters",
    "seed",
    "key_file",
];

/// The least difference of two shares of huge pages that is named.
const HUGE_PAGES: f64 = 0.25;

/// The comparison of a result with a kept one.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The name of the kept run.
    pub baseline: String,
    /// The facts in which the runs differ.
    pub differences: Vec<Difference>,
    /// Changes below this share are not reported as faster or slower.
    pub noise: f64,
    /// The rows that both runs have.
    pub rows: Vec<Compared>,
    /// The rows that only this run has.
    pub only_here: Vec<RowId>,
    /// The rows that only the kept run has. Empty if this run did not finish, because it is not
    /// known which rows would have come.
    pub only_in_baseline: Vec<RowId>,
}

/// A fact in which two runs differ.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub what: String,
    pub baseline: Value,
    pub here: Value,
}

/// A row that both runs have.
#[derive(Debug, Serialize)]
pub struct Compared {
    #[serde(flatten)]
    pub id: RowId,
    /// The throughput of this run over that of the kept one.
    pub ratio: Ratio,
    pub verdict: Verdict,
}

impl RowId {
    /// The key of a row.
    fn of(row: &Row) -> Self {
        let key = &row.key;
        Self {
            index: key.index.clone(),
            variant: key.variant.into(),
            placement: key.placement.into(),
            pages: key.pages.clone(),
            keys: key.keys,
            key_space: key.key_space,
            key_type: key.key_type.into(),
            keyset: key.keyset.map(Into::into),
            value_type: key.value_type.into(),
            dist: key.dist.clone(),
            threads: row.threads,
            mix: row.mix.clone(),
            batch: row.batch,
            scan_by: row.scan_by.map(Into::into),
            scan_length: row.scan_length,
        }
    }

    /// Whether the runs of a plan can have such a row. `in_file` is the number of keys in the key
    /// file, if there is one.
    fn is_of(&self, plan: &Plan, in_file: Option<usize>) -> bool {
        let is_index = plan.contenders().any(|(chosen, place)| {
            let (placement, pages) = if chosen.entry.is_peer() {
                ("own", SYSTEM_PAGES.into())
            } else {
                (place.name(), place.pages())
            };
            chosen.name() == self.index && placement == self.placement && pages == self.pages
        });
        let is_run = Config::all(plan).iter().any(|config| {
            config.threads == self.threads
                && config.mix.to_string() == self.mix
                && config.batch == self.batch
                && config.scan_by() == self.scan_by.as_deref()
                && config.scan_length() == self.scan_length
        });
        is_index
            && is_run
            && plan.types.key.name() == self.key_type
            && plan.types.value.name() == self.value_type
            && plan.set.map(silvics_workload::KeySet::name) == self.keyset.as_deref()
            && plan.dists.iter().any(|dist| dist.to_string() == self.dist)
            && match in_file {
                Some(keys) => keys == self.key_space,
                None => plan.sizes.contains(&self.keys),
            }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, placement, pages, keys, key_type, value_type, dist, .. } = self;
        write!(f, "{index} ({placement}, {pages}): {} {key_type} keys", count(*keys))?;
        if let Some(set) = &self.keyset {
            write!(f, " ({set})")?;
        }
        if value_type != "u64" {
            write!(f, ", {value_type} values")?;
        }
        write!(f, ", {dist}, {} thread{}", self.threads, plural(self.threads))?;
        write!(f, ", mix {}", self.mix)?;
        if let Some(by) = &self.scan_by {
            write!(f, ", scans by {by}")?;
        }
        if let Some(length) = self.scan_length {
            write!(f, " of {length}")?;
        }
        if self.batch > 1 { write!(f, ", batches of {}", self.batch) } else { Ok(()) }
    }
}

impl Difference {
    /// The differences of two runs. `here` is this run as JSON.
    fn all(baseline: &Baseline, here: &Value) -> Vec<Self> {
        let (machine, config) = (&baseline.run.machine, &baseline.run.config);
        let parts = [
            ("machine", machine, &FIGURES[..]),
            ("machine", machine, &["silvics"]),
            ("config", config, &CONFIG[..]),
        ];
        let mut all = Vec::new();
        for (part, kept, fields) in parts {
            for &what in fields {
                let kept = kept.get(what).cloned().unwrap_or_default();
                let here = here[part].get(what).cloned().unwrap_or_default();
                if !are_same(&kept, &here) {
                    all.push(Self { what: what.into(), baseline: kept, here });
                }
            }
        }
        all
    }

    /// The differences of the memory that an index got in two runs.
    fn of_memory(row: &Row, kept: &KeptRow) -> Vec<Self> {
        let RowId { index, placement, pages, keys, .. } = &kept.id;
        let of = format!("{index} ({placement}, {pages}, {} keys)", count(*keys));
        let mut all = Vec::new();
        let (was, is) = (&kept.pages_given, &row.footprint.pages_given);
        if was != is {
            let [baseline, here] = [was, is].map(|pages| serde_json::json!(pages));
            all.push(Self { what: format!("pages of {of}"), baseline, here });
        }
        if let (Some(was), Some(is)) = (kept.huge_page_share, row.footprint.huge_page_share)
            && (was - is).abs() > HUGE_PAGES
        {
            let [baseline, here] = [was, is].map(|share| format!("{:.0} %", 100.0 * share).into());
            all.push(Self { what: format!("huge pages of {of}"), baseline, here });
        }
        all
    }
}

/// Whether two facts are the same. Files with the same keys are, wherever they lie.
fn are_same(kept: &Value, here: &Value) -> bool {
    match (&kept["digest"], &here["digest"]) {
        (Value::String(kept), Value::String(here)) => kept == here,
        _ => kept == here,
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, now {}", self.what, shown(&self.baseline), shown(&self.here))
    }
}

impl Kept {
    /// Before a benchmark: fails if the baseline has no row of the plan, and otherwise returns a
    /// warning if the runs differ in anything else that is known by then. `report` has the
    /// configuration.
    pub fn check(&self, plan: &Plan, report: &Report) -> Result<Option<String>, Error> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        let in_file = report.config.key_file.as_ref().map(|file| file.keys);
        if !baseline.run.results.iter().any(|row| row.id.is_of(plan, in_file)) {
            return Err(nothing_in_common(baseline));
        }
        let differences = Difference::all(baseline, &json(report)?);
        if differences.is_empty() {
            return Ok(None);
        }
        let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let name = &baseline.name;
        Ok(Some(format!(
            "--baseline {name} was measured otherwise, so a change may have this cause: {}",
            all.join("; ")
        )))
    }

    /// After a benchmark: fails if no row of the baseline was measured, because contenders turned
    /// out to be wrong.
    pub(super) fn check_rows(&self, report: &Report) -> Result<(), Error> {
        let is_empty = report.comparison.as_ref().is_some_and(|found| found.rows.is_empty());
        match &self.baseline {
            Some(baseline) if is_empty && !report.is_cut() => Err(nothing_in_common(baseline)),
            _ => Ok(()),
        }
    }

    /// Compares a result with the baseline, if there is one.
    pub fn compare(&self, report: &Report) -> Result<Option<Comparison>, Error> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        let mut rest: Vec<&KeptRow> = baseline.run.results.iter().collect();
        let (mut rows, mut only_here) = (Vec::new(), Vec::new());
        let mut ranks = Ranks::default();
        let mut differences = Difference::all(baseline, &json(report)?);
        for row in &report.results {
            let id = RowId::of(row);
            let Some(at) = rest.iter().position(|kept| kept.id == id) else {
                only_here.push(id);
                continue;
            };
            let kept = rest.remove(at);
            for found in Difference::of_memory(row, kept) {
                // The rows of a cell share an index.
                if !differences.iter().any(|of| of.what == found.what) {
                    differences.push(found);
                }
            }
            if let Some(ratio) = ranks.ratio(&row.samples, &kept.samples) {
                rows.push(Compared { id, ratio, verdict: ratio.verdict(self.noise) });
            }
        }
        Ok(Some(Comparison {
            baseline: baseline.name.clone(),
            differences,
            noise: self.noise,
            rows,
            only_here,
            only_in_baseline: rest
                .into_iter()
                .filter(|_| !report.is_cut())
                .map(|row| row.id.clone())
                .collect(),
        }))
    }
}

fn json(report: &Report) -> Result<Value, Error> {
    serde_json::to_value(report).map_err(|error| Error::Output(error.into()))
}

fn nothing_in_common(baseline: &Baseline) -> Error {
    let rows = baseline.run.results.len();
    let has = match baseline.run.results.first() {
        Some(first) => format!("{rows} row{}, the first one {}", plural(rows), first.id),
        None => "no rows".into(),
    };
    Error::File {
        flag: "--baseline",
        path: baseline.path.clone(),
        problem: format!(
            "has no row in common with this run: repeat the flags of that run, which has {has}"
        ),
    }
}

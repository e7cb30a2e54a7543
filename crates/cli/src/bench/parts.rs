//! `silvics bench` in parts. A unit is a cell with one number of threads, mix, way of scans and
//! batch: its contenders, and the lengths of its scans, are compared.
//!
//! A unit loads indexes of its own. A report has the loads of one unit of each cell.

use super::builds;
use super::cell::Config;
use super::plan::Plan;
use super::report::{LoadRow, Report, Row};
use super::{measured, write};
use crate::campaign::collected::Collected;
use crate::campaign::inputs::Input;
use crate::campaign::{Campaign, Wanted};
use crate::drive::scans::ScanBy;
use crate::drive::subject::Crew;
use crate::flags::args::Format;
use crate::flags::bench::BenchArgs;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::source::KeyFileConfig;
use crate::flags::units::{count, plural};
use crate::host::counters::Counted;
use serde::{Deserialize, Serialize};
use silvics_workload::{Dist, Mix};
use std::fmt::Write as _;

/// The units of a benchmark.
pub struct Parts {
    plan: Plan,
    units: Vec<Unit>,
}

/// The values of the flags of one unit.
struct Unit {
    /// The number of its cell in the whole benchmark.
    cell: usize,
    /// The number of keys, unless they come from a file.
    size: Option<usize>,
    dist: Dist,
    threads: usize,
    mix: Mix,
    scan_by: ScanBy,
    batch: usize,
}

/// The result of a unit.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    loads: Vec<LoadRow>,
    results: Vec<Row>,
    left_out: Vec<String>,
    counted: Counted,
    key_file: Option<KeyFileConfig>,
}

impl Parts {
    fn all(plan: &Plan) -> Vec<Unit> {
        let sizes: Vec<Option<usize>> = match plan.file {
            Some(_) => vec![None],
            None => plan.sizes.iter().copied().map(Some).collect(),
        };
        let cells = sizes.iter().flat_map(|size| plan.dists.iter().map(move |dist| (*size, *dist)));
        let mut configs = Config::all(plan);
        // Scans of several lengths are one unit.
        configs.dedup_by_key(|of| (of.threads, of.mix, of.scan_by, of.batch));
        let of_cell = |(cell, (size, dist))| {
            let unit = move |of: &Config| {
                let Config { threads, mix, scan_by, batch, .. } = *of;
                Unit { cell, size, dist, threads, mix, scan_by, batch }
            };
            configs.iter().map(unit).collect::<Vec<_>>()
        };
        cells.enumerate().flat_map(of_cell).collect()
    }

    fn name(&self, unit: &Unit) -> String {
        let Unit { size, dist, threads, mix, scan_by, batch, .. } = unit;
        let keys =
            size.map_or_else(|| "the key file".into(), |size| format!("{} keys", count(size)));
        let mut name = format!("{keys}, {dist}, {threads} thread{}, mix {mix}", plural(*threads));
        if mix.scans() {
            _ = write!(name, ", scans by {}", scan_by.name());
        }
        if self.plan.batches.len() > 1 {
            _ = write!(name, ", batch {batch}");
        }
        name
    }
}

impl Campaign for Parts {
    const VERB: &'static str = "bench";
    type Flags = BenchArgs;
    type Outcome = Outcome;

    fn refused(flags: &BenchArgs) -> Vec<(&'static str, bool)> {
        let kept = &flags.kept;
        vec![
            ("--html", flags.html.is_some()),
            ("--save", kept.save.is_some()),
            ("--baseline", kept.baseline.is_some()),
            ("--trace-adaptation", flags.trace_adaptation.is_some()),
            ("--format", flags.format != "table"),
        ]
    }

    fn inputs(flags: &BenchArgs) -> Vec<Input<'_>> {
        flags.key_file.file.iter().map(|path| ("--key-file", path.as_path())).collect()
    }

    fn plan(flags: &BenchArgs, site: Site) -> Result<Self, Error> {
        let plan = Plan::new(flags, site)?;
        Ok(Self { units: Self::all(&plan), plan })
    }

    fn notes(&self) -> &[String] {
        &self.plan.notes
    }

    fn units(&self) -> Vec<String> {
        self.units.iter().map(|unit| self.name(unit)).collect()
    }

    fn measure(&mut self, unit: usize) -> Result<Outcome, Error> {
        let plan = &mut self.plan;
        let Unit { size, dist, threads, mix, scan_by, batch, .. } = self.units[unit];
        plan.sizes = size.into_iter().collect();
        plan.dists = vec![dist];
        plan.threads = vec![threads];
        plan.mixes = vec![mix];
        plan.scan_bys = vec![scan_by];
        plan.batches = vec![batch];
        let (report, ended) = measured(plan, Crew::new())?;
        ended?;
        Ok(Outcome {
            left_out: report.left_out,
            loads: report.loads,
            results: report.results,
            counted: report.config.counted,
            key_file: report.config.key_file,
        })
    }

    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error> {
        self.plan.format = Format::parse(&wanted.format)?;
        self.plan.page = wanted.page()?;
        self.plan.check_format()
    }

    fn report(self, collected: Collected<Outcome>) -> Result<u8, Error> {
        let (remarks, runs) = (collected.remarks(), collected.runs);
        let mut report = Report { remarks, runs, ..Report::new(&self.plan, collected.machine) };
        for unit in collected.units {
            let (cell, mut outcome) = (self.units[unit.number].cell, unit.outcome);
            outcome.results.iter_mut().for_each(|row| row.key.cell = cell);
            outcome.loads.iter_mut().for_each(|row| row.key.cell = cell);
            if !report.loads.iter().any(|load| load.key.cell == cell) {
                report.loads.extend(outcome.loads);
            }
            report.results.extend(outcome.results);
            for error in outcome.left_out {
                if !report.left_out.contains(&error) {
                    report.left_out.push(error);
                }
            }
            let counted = &mut report.config.counted;
            counted.counters = outcome.counted.counters.or(counted.counters.take());
            counted.counters_refused =
                outcome.counted.counters_refused.or(counted.counters_refused.take());
            report.config.key_file = report.config.key_file.or(outcome.key_file);
        }
        report.builds = builds::ratios(&report.results);
        write(&self.plan, &report, Ok(())).map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// A command line.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn units(line: &str) -> Vec<String> {
        let args = Line::parse_from(line.split(' ')).args;
        Parts::plan(&args, 2.into()).unwrap().units()
    }

    #[test]
    fn units_are_what_is_compared() {
        let lists = "bench --index skiplist --keys 1k,2k --threads 1,2 --mix 100/0/0,0/0/0/100 \
                     --scan-length 10,20 --scan-by range,whole --batch 1,2";
        let all = units(lists);
        assert_eq!(all.len(), 2 * 2 * (1 + 2) * 2);
        assert_eq!(all[0], "1k keys, uniform, 1 thread, mix 100/0/0, batch 1");
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "names differ");
        assert_eq!(units("bench --index skiplist,art --mix 100/0/0").len(), 1);
    }

    /// The flags of a head are those that the plan was made of.
    #[test]
    fn flags_are_read_again() {
        let line =
            "bench --index skiplist --keys 1k --placement shared --sync spin --mix 0/0/0/100";
        let args = Line::parse_from(line.split(' ')).args;
        let written = serde_json::to_value(&args).unwrap();
        let again: BenchArgs = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&again).unwrap(), written);
        assert_eq!((&written["placement"], &written["sync"]), (&"shared".into(), &"spin".into()));
    }
}

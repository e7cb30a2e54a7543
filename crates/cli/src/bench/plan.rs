//! The configuration of a benchmark: the command line, checked.

use super::cell::Measured;
use super::kept::{Baseline, Kept};
use super::trace;
use crate::catalogue::select::{self, Chosen};
use crate::drive::scans::ScanBy;
use crate::drive::subject::Reuse;
use crate::flags::args::Format;
use crate::flags::bench::BenchArgs;
use crate::flags::error::Error;
use crate::flags::place::{self, Place};
use crate::flags::site::Site;
use crate::flags::source::{KeySource, key_set, key_type};
use crate::flags::sync::{self, Sync};
use crate::flags::types::{KeyType, Types, ValueType};
use crate::flags::units;
use crate::flags::values::{THREADS_MAX, list, number, parse, seconds, seed, single};
use crate::output::File;
use silvics::Counting;
use silvics_workload::{Dist, KEYS_MAX, KeySet, Mix};
use std::time::Duration;

/// A benchmark, ready to run.
#[derive(Debug)]
pub struct Plan {
    pub chosen: Vec<Chosen>,
    pub types: Types,
    /// The key set that keys come from, unless they are integers or come from a file.
    pub set: Option<KeySet>,
    /// The file that keys come from, unless they are generated.
    pub file: Option<KeySource>,
    /// The numbers of generated keys that are loaded, out of key spaces twice as large.
    pub sizes: Vec<usize>,
    pub dists: Vec<Dist>,
    pub places: Vec<Place>,
    /// The flags that tune pools.
    pub tuned: Option<String>,
    pub mixes: Vec<Mix>,
    pub batches: Vec<usize>,
    pub threads: Vec<usize>,
    pub scan_bys: Vec<ScanBy>,
    pub scan_lengths: Vec<usize>,
    /// The most threads of a run, also of those that another part of a campaign makes.
    pub runners: usize,
    /// The threads that load.
    pub load_threads: usize,
    /// The number of rounds that begin with the load of a fresh index.
    pub loads: usize,
    pub time: Duration,
    pub rounds: usize,
    pub memory_limit: Option<usize>,
    /// How our indexes count their keys.
    pub counting: Counting,
    pub reuse: Reuse,
    /// Whether events are counted.
    pub counters: bool,
    /// Whether latencies are measured, too.
    pub latency: bool,
    /// The runs that are kept.
    pub kept: Kept,
    /// The files that take the shape of indexes over time.
    pub trace: Option<trace::Files>,
    /// The file that takes the result as a page.
    pub page: Option<File>,
    pub seed: u64,
    pub format: Format,
    /// Notes that are printed before the benchmark begins.
    pub notes: Vec<String>,
}

const BATCH_MAX: usize = 4096;

impl Plan {
    /// The contenders: our indexes in every place, and each peer once.
    pub fn contenders(&self) -> impl Iterator<Item = (Chosen, Place)> {
        self.places.iter().enumerate().flat_map(|(at, &place)| {
            let there = self.chosen.iter().filter(move |chosen| at == 0 || !chosen.entry.is_peer());
            there.map(move |&chosen| (chosen, place))
        })
    }

    /// The quantities that the rounds measure, in their order.
    pub(super) fn measured(&self) -> &'static [Measured] {
        if self.latency {
            &[Measured::Throughput, Measured::Latency]
        } else {
            &[Measured::Throughput]
        }
    }

    /// Reads the flags for a machine.
    pub fn new(args: &BenchArgs, site: impl Into<Site>) -> Result<Self, Error> {
        let site = site.into();
        let cores = site.cores;
        let dists: Vec<Dist> = list("--dist", &args.dist, parse)?;
        let set = key_set(&args.key_file, &dists)?;
        let file = KeySource::new(&args.key_file, args.keys.is_some(), &dists)?;
        let types = Types {
            key: key_type(&args.key_file, file.as_ref(), KeyType::parse)?,
            value: single("--value-type", &args.value_type, ValueType::parse)?,
        };
        let sizes = match file {
            Some(_) => Vec::new(),
            None => list("--keys", args.keys.as_deref().unwrap_or("1M"), |item| {
                number(item, 1, KEYS_MAX / 2)
            })?,
        };
        let mixes: Vec<Mix> = list("--mix", &args.mix, parse)?;
        check_upserts(&mixes, &dists)?;
        let threads = match &args.threads {
            Some(text) => list("--threads", text, |item| number(item, 1, THREADS_MAX))?,
            None => vec![cores],
        };
        let rounds = single("--rounds", &args.rounds, |text| number(text, 1, 10_000))?;
        let loads = |text: &String| single("--loads", text, |text| number(text, 1, rounds));
        let mut plan = Self {
            chosen: Vec::new(),
            types,
            set,
            file,
            sizes,
            dists,
            places: place::read(&args.place)?,
            tuned: place::tuned(&args.place),
            batches: list("--batch", &args.batch, |item| number(item, 1, BATCH_MAX))?,
            runners: threads.iter().copied().max().unwrap_or(cores),
            threads,
            scan_bys: list("--scan-by", &args.scan_by, parse)?,
            scan_lengths: list("--scan-length", &args.scan_length, |item| {
                number(item, 1, u32::MAX as usize)
            })?,
            load_threads: match &args.load_threads {
                Some(text) => single("--load-threads", text, |text| number(text, 1, THREADS_MAX))?,
                None => cores,
            },
            loads: args.loads.as_ref().map_or(Ok(rounds), loads)?,
            time: single("--seconds", &args.seconds, seconds)?,
            rounds,
            memory_limit: args.memory_limit.as_deref().map(memory_limit).transpose()?,
            counting: single("--counting", &args.counting, counting)?,
            reuse: if args.no_reuse { Reuse::No } else { Reuse::Yes },
            counters: args.counters,
            latency: args.latency,
            kept: Kept::new(&args.kept)?,
            trace: args.trace_adaptation.as_deref().map(trace::Files::new).transpose()?,
            page: args.html.as_deref().map(|path| File::new("--html", path)).transpose()?,
            seed: single("--seed", &args.seed, seed)?,
            format: Format::parse(&args.format)?,
            mixes,
            notes: Vec::new(),
        };
        let names = args.index.as_deref().unwrap_or("default");
        (plan.chosen, plan.notes) = chosen(args, names, types, &plan.mixes, site)?;
        plan.check_files()?;
        plan.say_what_has_no_effect(args, cores)?;
        Ok(plan)
    }

    /// Checks that the files are several, and that there is something to trace.
    fn check_files(&self) -> Result<(), Error> {
        let [json, svg] = self.trace.as_ref().map(trace::Files::both).unwrap_or_default();
        let keys = self.file.as_ref().map(KeySource::file);
        let (kept, baseline) = (self.kept.file(), self.kept.baseline.as_ref().map(Baseline::file));
        File::distinct([&keys, &json, &svg, &self.page, &kept])?;
        // A run may take the place of its baseline.
        File::distinct([&keys, &json, &svg, &self.page, &baseline])?;
        if self.trace.is_some() {
            self.chosen.iter().try_for_each(|chosen| chosen.must_adapt(trace::FLAG))?;
        }
        Ok(())
    }

    /// Fails if the format has no place for the result.
    pub(super) fn check_format(&self) -> Result<(), Error> {
        if self.format == Format::Csv && (self.latency || self.kept.baseline.is_some()) {
            let problem = "csv has no place for --latency and --baseline: choose table or json";
            return Err(Error::value("--format", problem));
        }
        Ok(())
    }

    fn say_what_has_no_effect(&mut self, args: &BenchArgs, cores: usize) -> Result<(), Error> {
        self.check_format()?;
        let ours = self.chosen.iter().any(|chosen| !chosen.entry.is_peer());
        let peers = self.chosen.iter().any(|chosen| chosen.entry.is_peer());
        if args.memory_limit.is_some() && !ours {
            let problem = "peers take no limit: leave it out, or name an index of ours";
            return Err(Error::value("--memory-limit", problem));
        }
        if args.memory_limit.is_some() && peers {
            let note = "--memory-limit holds for our indexes only, peers take no limit";
            self.notes.push(note.into());
        }
        if args.no_reuse && peers {
            self.notes.push("--no-reuse holds for our indexes only".into());
        }
        if let Some(&most) = self.threads.iter().max()
            && most > cores
        {
            self.notes.push(format!(
                "--threads {most}: threads share the {cores} core{} there {}",
                crate::flags::units::plural(cores),
                if cores == 1 { "is" } else { "are" },
            ));
        }
        Ok(())
    }
}

/// Upserts choose loaded keys, so they need a distribution of those.
fn check_upserts(mixes: &[Mix], dists: &[Dist]) -> Result<(), Error> {
    if let Some(mix) = mixes.iter().find(|mix| mix.upserts())
        && let Some(dist) = dists.iter().find(|dist| matches!(dist, Dist::Disjoint | Dist::Latest))
    {
        let problem = format!(
            "{mix} has upserts, which choose loaded keys, but --dist {dist} does not: choose \
             another mix or distribution"
        );
        return Err(Error::value("--mix", problem));
    }
    Ok(())
}

/// The indexes to run, and the notes about others.
fn chosen(
    args: &BenchArgs,
    names: &str,
    types: Types,
    mixes: &[Mix],
    site: Site,
) -> Result<(Vec<Chosen>, Vec<String>), Error> {
    let (sync, note) = Sync::new(&args.sync, site)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let mut chosen = select::resolve(names, args.variant.as_deref())?;
    if let Some(sync) = sync {
        if args.variant.is_some() {
            let remedy = "both choose a build: leave one out";
            return Err(Error::Conflict { flag: "--sync", other: "--variant", remedy });
        }
        chosen = sync.choose(chosen, site, &mut notes)?;
    }
    let (chosen, others) = select::suited(chosen, names, types, mixes)?;
    notes.extend(others);
    notes.extend(sync::notes(&chosen, site));
    Ok((chosen, notes))
}

fn counting(text: &str) -> Result<Counting, String> {
    match text {
        "striped" => Ok(Counting::Striped),
        "single" => Ok(Counting::Single),
        _ => Err(format!("`{text}` is not a way to count: choose striped or single")),
    }
}

fn memory_limit(text: &str) -> Result<usize, Error> {
    units::parse_bytes(text).ok_or_else(|| {
        let problem = format!("`{text}` is not a number of bytes: write for example 64M or 1G");
        Error::value("--memory-limit", problem)
    })
}

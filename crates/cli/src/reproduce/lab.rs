//! The tools of experiments: `inspect` for facts and the model, and runs in turns for the clock.

use super::ets::erlang::Erlang;
use super::evidence::{Evidence, Level, Verdict};
use super::heat::HeatMap;
use super::memtable::Stock;
use super::plan::{Plan, smaller};
use crate::bench::measure;
use crate::bench::report::Report as Bench;
use crate::catalogue::select;
use crate::drive::keys::BenchKey;
use crate::drive::scans::ScanBy;
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Traffic};
use crate::flags::args::{Format, KeyFileArgs, PlaceArgs, SyncArgs};
use crate::flags::bench::{BenchArgs, KeptArgs};
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::flags::shard::ShardArgs;
use crate::flags::types::KeyType;
use crate::flags::units::Bytes;
use crate::host::machine::Machine;
use crate::inspect::built::traffic;
use crate::inspect::examine::examine;
use crate::inspect::fix::{Turns, compare};
use crate::inspect::host::HostKind;
use crate::inspect::picture::files::Files;
use crate::inspect::plan::{Plan as Inspection, Setup};
use crate::inspect::report::{Collocated, Config, FindingRow, Kind, ModelRow, Report};
use crate::interrupt;
use crate::progress::Progress;
use silvics::{Pages, Tuning};
use silvics_layout::{Machine as Model, Paths, SetHash};
use silvics_workload::{Dist, Share};
use std::rc::Rc;
use std::time::Duration;

/// An upper bound on the bytes of nodes per key in any build of a tree.
const NODES_OF_A_KEY: usize = 144;

/// The setting in which an index is inspected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bed {
    /// Its name and variant.
    index: &'static str,
    place: Place,
    /// The kinds of objects that the program around it allocates for each key.
    host: &'static [&'static str],
    key_type: KeyType,
    keys: usize,
    /// Whether the model's machine fetches pairs of lines, if the real one does.
    prefetch: bool,
    /// Whether the model's last level maps lines by their lowest bits.
    modulo: bool,
    /// The divisor of the last level's size.
    part: usize,
}

impl Bed {
    /// An index in one heap for all kinds, with the study's size classes.
    pub fn mixed(index: &'static str, keys: usize) -> Self {
        let place = Place::SizeClass(Pages::Small);
        let (host, key_type) = (&[], KeyType::U64);
        Self { index, place, host, key_type, keys, prefetch: true, modulo: false, part: 1 }
    }

    /// An index with a pool for each kind, on small pages.
    pub fn segregated(index: &'static str, keys: usize) -> Self {
        Self::tuned(index, keys, Tuning::default())
    }

    /// An index with a pool for each kind, laid out by `tuning`, on small pages.
    pub fn tuned(index: &'static str, keys: usize, tuning: Tuning) -> Self {
        let place = Place::Pooled(Pages::Small, tuning);
        Self { place, ..Self::mixed(index, keys) }
    }

    /// The setting on other pages.
    #[must_use]
    pub fn on(self, pages: Pages) -> Self {
        let place = match self.place {
            Place::Pooled(_, tuning) => Place::Pooled(pages, tuning),
            Place::SizeClass(_) => Place::SizeClass(pages),
            other => other,
        };
        Self { place, ..self }
    }

    /// The setting with a program around the index that allocates these objects for each key.
    #[must_use]
    pub fn beside(self, host: &'static [&'static str]) -> Self {
        Self { host, ..self }
    }

    /// The setting with random keys of 128 bits.
    #[must_use]
    pub fn of_long_keys(self) -> Self {
        Self { key_type: KeyType::U128, ..self }
    }

    /// The setting on a machine that does not fetch pairs of lines.
    #[must_use]
    pub fn without_prefetch(self) -> Self {
        Self { prefetch: false, ..self }
    }

    /// The setting on a machine whose last level has no slices.
    #[must_use]
    pub fn unsliced(self) -> Self {
        Self { modulo: true, ..self }
    }

    /// The setting on a machine with a part of the last level, for a tree that is smaller by the
    /// same factor.
    #[must_use]
    pub fn scaled(self, part: usize) -> Self {
        Self { part, ..self }
    }

    fn setup(&self) -> Result<Setup, Error> {
        let chosen = select::resolve(self.index, None)?.swap_remove(0);
        let host = self.host.iter().map(|kind| HostKind::parse(kind));
        let host = host.collect::<Result<_, _>>().map_err(|error| Error::value("--host", error))?;
        Ok(Setup { chosen, place: self.place, host })
    }
}

/// The result of inspecting an index.
pub struct Look {
    pub config: Config,
    pub kinds: Vec<Kind>,
    pub collocation: Collocated,
    pub model: ModelRow,
    pub findings: Vec<FindingRow>,
}

impl Look {
    /// Takes the report on an index. `None` for a report on a trace, which has no lookups.
    fn of(report: Report) -> Option<Self> {
        let Report { config, kinds, collocation, model, findings, .. } = report;
        Some(Self { config: config?, kinds, collocation: collocation?, model: model?, findings })
    }

    /// The facts about a kind, which must exist.
    pub fn kind(&self, name: &str) -> Result<&Kind, Error> {
        let found = self.kinds.iter().find(|kind| kind.name == name);
        found.ok_or_else(|| self.lacks(&format!("objects called {name}")))
    }

    /// The mean bytes that the place takes for an object of a kind.
    pub fn class(&self, name: &str) -> Result<f64, Error> {
        let class = self.kind(name)?.class;
        class.ok_or_else(|| self.lacks(&format!("size class of {name}s")))
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Wrong { index: self.config.index.clone(), what: format!("it has no {what}") }
    }
}

/// Runs on several indexes.
pub struct Runs<'a> {
    pub indexes: &'a [&'a str],
    /// The number of keys that are present, of twice as many.
    pub keys: usize,
    pub mix: &'a str,
    /// One for each core if `None`.
    pub threads: Option<usize>,
    pub scan_by: ScanBy,
    pub scan_length: &'a str,
    /// Whether memory that the load has retired stays until it ends.
    pub no_reuse: bool,
    pub turns: Turns,
}

impl<'a> Runs<'a> {
    /// Runs on all cores, of the lab's number and length, on trees that free no memory, as those of
    /// the study.
    pub fn of(lab: &Lab, indexes: &'a [&'a str], keys: usize, mix: &'a str) -> Self {
        let (scan_by, scan_length, turns) = (ScanBy::Range, "100", lab.turns());
        Self { indexes, keys, mix, threads: None, scan_by, scan_length, no_reuse: true, turns }
    }
}

/// The plan, the machine, and the inspections that experiments share.
pub struct Lab {
    pub plan: Plan,
    /// The machine that the command runs on.
    pub machine: Machine,
    /// Erlang, if its tables are measured, too.
    pub erlang: Option<Erlang>,
    /// Results of `db_bench`, if a file of them is named.
    pub db_bench: Option<Vec<Stock>>,
    /// The maps of the experiment that is being made.
    pub maps: Vec<HeatMap>,
    /// The finished inspections, by the model's machine and the setting. Other experiments may need
    /// them again.
    seen: Vec<(Model, Bed, Rc<Look>)>,
}

impl Lab {
    /// A lab without finished inspections.
    pub fn new(plan: Plan) -> Self {
        let machine = Machine::this(Crew::new().threads);
        Self { plan, machine, erlang: None, db_bench: None, maps: Vec::new(), seen: Vec::new() }
    }

    /// Whether evidence of a level is requested.
    pub fn wants(&self, level: Level) -> bool {
        self.plan.levels.contains(&level)
    }

    /// Whether facts or predictions are requested, for which `look` is needed.
    pub fn looks(&self) -> bool {
        self.wants(Level::Fact) || self.wants(Level::Model)
    }

    /// Inspects an index, or returns the finished inspection.
    pub fn look(&mut self, bed: &Bed) -> Result<Rc<Look>, Error> {
        let on = self.plan.machine;
        let seen = self.seen.iter().find(|(model, seen, _)| (model, seen) == (&on, bed));
        if let Some((.., look)) = seen {
            return Ok(Rc::clone(look));
        }
        let plan = self.inspection(bed)?;
        let (subject, progress) = (&plan.subject, Progress::new(4));
        let examined = match plan.key_type {
            KeyType::U128 => examine(&plan, subject, &traffic::<u128>(&plan), &progress)?,
            _ => examine(&plan, subject, &traffic::<u64>(&plan), &progress)?,
        };
        let Some(look) = Look::of(examined.report) else {
            let what = "its lookups tell nothing".into();
            return Err(Error::Wrong { index: bed.index.into(), what });
        };
        let look = Rc::new(look);
        self.seen.push((on, bed.clone(), Rc::clone(&look)));
        Ok(look)
    }

    /// The places of the objects in which lookups end, relative to the objects before them. Each
    /// lookup is of the key that was inserted last. In a tree whose inserts make both objects,
    /// these are the two that the insert has made.
    pub fn as_inserted(&self, bed: &Bed) -> Result<Collocated, Error> {
        let plan = self.inspection(bed)?;
        let traffic = traffic::<u64>(&plan);
        let (setup, index) = (&plan.subject, || bed.index.to_owned());
        let failed = |error| Error::Alloc { index: index(), error };
        let Some(make) = setup.chosen.inspect::<u64>(setup.place) else {
            return Err(Error::KeyType { index: index(), key_type: plan.key_type });
        };
        let tree = make(&setup.place.options(None)).map_err(failed)?;
        let _held = tree.hold();
        let (mut paths, mut reads) = (Paths::default(), Vec::new());
        for position in traffic.choice.load_part(Share::ALONE) {
            let key = <u64 as BenchKey>::key(&traffic.space, position);
            tree.insert(key, 0).map_err(failed)?;
            reads.clear();
            if tree.get(key, &mut reads).is_none() {
                let what = format!("key {key} was inserted, and is not there");
                return Err(Error::Wrong { index: index(), what });
            }
            paths.add_end(&reads);
        }
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        Ok(Collocated::of(paths.collocation()))
    }

    /// The configuration of an inspection with the lab's model and seed.
    pub fn inspection(&self, bed: &Bed) -> Result<Inspection, Error> {
        let mut machine = smaller(self.plan.machine, bed.part)?;
        if !bed.prefetch {
            machine = machine.without_prefetch();
        }
        if bed.modulo {
            let unsliced = machine.with_llc_hash(SetHash::Modulo);
            machine = unsliced.map_err(|error| Error::value("--machine", error))?;
        }
        Ok(Inspection {
            subject: bed.setup()?,
            key_type: bed.key_type,
            set: None,
            file: None,
            keys: bed.keys,
            dist: if bed.key_type == KeyType::U128 { Dist::Sparse } else { Dist::Uniform },
            seed: self.plan.seed,
            updates: 0,
            // The study's trees freed no memory.
            no_reuse: true,
            lookups: self.lookups(&machine, bed.keys),
            machine,
            fix: false,
            counters: false,
            files: Files::default(),
            format: Format::Table,
        })
    }

    /// The number of lookups that fill the model's caches, and also the number that count. For a
    /// large tree they fill the last level, at about ten lines per lookup. For a small tree they
    /// pass all of it. Facts need no lookups.
    fn lookups(&self, machine: &Model, keys: usize) -> usize {
        if !self.wants(Level::Model) {
            return 1;
        }
        (machine.llc.bytes / machine.line / 5).min(4 * keys).max(8_000)
    }

    /// The ratio of the speed of lookups in the second setting to that in the first, measured in
    /// turns.
    pub fn speedup(&self, [slow, fast]: [&Bed; 2]) -> Result<Interval, Error> {
        let (plan, fast) = (self.inspection(slow)?, fast.setup()?);
        let traffic: Traffic<u64> = traffic(&plan);
        let crew = Crew::new();
        let turns = (&crew, self.turns());
        Ok(compare(&plan, &fast, &traffic, turns, &Progress::new(1))?.time.inverse())
    }

    /// A line on the speedup between two layouts, where the source saw the second to be faster by
    /// the claimed amount.
    pub fn faster(&self, what: String, claimed: &str, beds: [&Bed; 2]) -> Result<Evidence, Error> {
        Ok(self.clocked(what, claimed, beds[0].keys, self.speedup(beds)?))
    }

    /// A line on a ratio of speeds that results from misses. If the last level holds all nodes,
    /// however they lie, then equal speeds say nothing.
    pub fn clocked(&self, what: String, claimed: &str, keys: usize, ratio: Interval) -> Evidence {
        let line = Evidence::faster(what, claimed, ratio);
        let llc = self.last_level();
        if line.verdict == Verdict::NotSeen && keys * NODES_OF_A_KEY <= llc {
            let why =
                format!("(the last level of {} holds all nodes, however they lie)", Bytes(llc));
            return Evidence { verdict: Verdict::CannotBeShown, ..line.with(&why) };
        }
        line
    }

    /// The bytes of the last level of the machine that the command runs on; 0 if the system does
    /// not report them.
    pub fn last_level(&self) -> usize {
        self.machine.caches.last().map_or(0, |cache| cache.bytes)
    }

    /// Measures a mix on pooled indexes in turns, with each answer checked.
    pub fn bench(&self, runs: &Runs<'_>) -> Result<Bench, Error> {
        let Turns { pairs, run } = runs.turns;
        let place = PlaceArgs {
            placement: "pooled".into(),
            pages: "4k".into(),
            slot_align: None,
            slab: None,
            regions: None,
            colouring: false,
        };
        let args = BenchArgs {
            index: Some(runs.indexes.join(",")),
            variant: None,
            sync: SyncArgs::default(),
            keys: Some(runs.keys.to_string()),
            key_file: KeyFileArgs::default(),
            value_type: "u64".into(),
            dist: "uniform".into(),
            mix: runs.mix.into(),
            counting: "striped".into(),
            scan_by: runs.scan_by.name().into(),
            scan_length: runs.scan_length.into(),
            batch: "1".into(),
            threads: runs.threads.map(|threads| threads.to_string()),
            load_threads: None,
            loads: Some("1".into()),
            trace_adaptation: None,
            html: None,
            seconds: run.as_secs_f64().to_string(),
            rounds: pairs.to_string(),
            place,
            memory_limit: None,
            no_reuse: runs.no_reuse,
            counters: false,
            latency: false,
            kept: KeptArgs::default(),
            part: ShardArgs::default(),
            seed: self.plan.seed.to_string(),
            format: "json".into(),
        };
        let (_, report) = measure(&args)?;
        if report.interrupted { Err(Error::Interrupted) } else { Ok(report) }
    }

    /// The turns of an experiment with many rows.
    pub fn short_turns(&self) -> Turns {
        if self.plan.quick {
            Turns { pairs: 3, run: Duration::from_millis(10) }
        } else {
            Turns { pairs: 5, run: Duration::from_millis(100) }
        }
    }

    /// The number of pairs of runs, and the time of a run.
    pub fn turns(&self) -> Turns {
        if self.plan.quick {
            Turns { pairs: 10, run: Duration::from_millis(10) }
        } else {
            Turns { pairs: 20, run: Duration::from_millis(100) }
        }
    }
}

//! The configuration of an inspection: the command line, checked.

use super::host::HostKind;
use super::picture::files::Files;
use crate::catalogue::select::{self, Chosen};
use crate::flags::args::{Format, InspectArgs};
use crate::flags::error::Error;
use crate::flags::place::{self, Place};
use crate::flags::source::{KeySource, key_set, key_type};
use crate::flags::types::{KeyType, Types};
use crate::flags::values::{list, number, parse, seed, single};
use silvics_layout::{Machine, NodeLayout, SetHash};
use silvics_workload::{Dist, KEYS_MAX, KeySet, Mix};

/// An inspection, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The index that is inspected.
    pub subject: Setup,
    pub key_type: KeyType,
    /// The key set that keys come from, unless they are integers or come from a file.
    pub set: Option<KeySet>,
    /// The file that keys come from, unless they are generated. It determines the number of keys.
    pub file: Option<KeySource>,
    pub keys: usize,
    pub dist: Dist,
    pub seed: u64,
    /// The number of keys that are removed and inserted again after the load.
    pub updates: usize,
    pub no_reuse: bool,
    /// The number of lookups that are recorded. As many lookups before them fill the caches of the
    /// model.
    pub lookups: usize,
    pub machine: Machine,
    pub fix: bool,
    /// Whether events are counted while remedies are measured.
    pub counters: bool,
    pub files: Files,
    pub format: Format,
}

/// The part of a configuration that a remedy may change.
#[derive(Clone, Debug)]
pub struct Setup {
    pub chosen: Chosen,
    pub place: Place,
    /// The kinds of objects that the program around the index allocates for each key.
    pub host: Vec<HostKind>,
}

impl Setup {
    /// Whether objects of that kind belong to the index.
    pub fn is_of_index(&self, kind: &str) -> bool {
        self.chosen.variant.objects.iter().any(|layout| layout.kind == kind)
    }
}

impl Plan {
    /// The plan to inspect an index as it is after its load.
    pub fn loaded(
        subject: Setup,
        key_type: KeyType,
        keys: usize,
        dist: Dist,
        machine: Machine,
    ) -> Self {
        Self {
            subject,
            key_type,
            set: None,
            file: None,
            keys,
            dist,
            seed: 1,
            updates: 0,
            no_reuse: false,
            lookups: 50_000,
            machine,
            fix: false,
            counters: false,
            files: Files::default(),
            format: Format::Table,
        }
    }

    /// Reads the flags.
    pub fn new(args: &InspectArgs) -> Result<Self, Error> {
        if args.counters && !args.fix {
            let problem = "only what --fix measures is counted: add it, or leave this out";
            return Err(Error::value("--counters", problem));
        }
        let dist = single("--dist", &args.dist, parse)?;
        let set = key_set(&args.key_file, &[dist])?;
        let file = KeySource::new(&args.key_file, args.keys.is_some(), &[dist])?;
        let key_type = key_type(&args.key_file, file.as_ref(), KeyType::of_indexes)?;
        let keys = args.keys.as_deref().unwrap_or("1M");
        let keys = single("--keys", keys, |text| number(text, 1, KEYS_MAX / 2))?;
        let chosen = chosen(args, key_type)?;
        let files = Files::new(args)?;
        Ok(Self {
            subject: Setup {
                host: host(args, chosen.variant.objects)?,
                chosen,
                place: place::read_one(&args.place)?,
            },
            key_type,
            set,
            file,
            keys,
            dist,
            seed: single("--seed", &args.seed, seed)?,
            updates: single("--updates", &args.updates, |text| number(text, 0, KEYS_MAX))?,
            no_reuse: args.no_reuse,
            lookups: single("--lookups", &args.lookups, |text| number(text, 1, KEYS_MAX))?,
            machine: machine(args)?,
            fix: args.fix,
            counters: args.counters,
            files,
            format: format(args)?,
        })
    }
}

/// Reads `--format`.
pub fn format(args: &InspectArgs) -> Result<Format, Error> {
    match Format::parse(&args.format)? {
        Format::Csv => {
            let problem = "an inspection has several tables: choose table or json";
            Err(Error::value("--format", problem))
        }
        format => Ok(format),
    }
}

/// Reads `--host`. The kinds must differ from the index's kinds and from one another.
fn host(args: &InspectArgs, objects: &[NodeLayout]) -> Result<Vec<HostKind>, Error> {
    let Some(text) = &args.host else { return Ok(Vec::new()) };
    let kinds = list("--host", text, HostKind::parse)?;
    for (at, HostKind { name, .. }) in kinds.iter().enumerate() {
        let whose = if objects.iter().any(|layout| layout.kind == *name) {
            "is a kind of the index"
        } else if kinds[..at].iter().any(|kind| kind.name == *name) {
            "is there twice"
        } else {
            continue;
        };
        let problem = format!("`{name}` {whose}: give it another name");
        return Err(Error::value("--host", problem));
    }
    Ok(kinds)
}

/// Reads `--index` and `--variant`, which must name one index.
fn chosen(args: &InspectArgs, key_type: KeyType) -> Result<Chosen, Error> {
    let lookups: Mix = single("--index", "100/0/0", parse)?;
    let (chosen, _) =
        select::select(&args.index, args.variant.as_deref(), Types::words(key_type), &[lookups])?;
    let [chosen] = chosen[..] else {
        let problem = format!("`{}` are several indexes: name one", args.index);
        return Err(Error::value("--index", problem));
    };
    if chosen.entry.is_peer() {
        let problem = format!(
            "`{}` does not tell where its objects lie: name one of ours, or trace its allocations and \
             read them with --trace",
            chosen.name()
        );
        return Err(Error::value("--index", problem));
    }
    if chosen.variant.lookups_only {
        let problem = format!(
            "`{}` is the build `ret` without versions: inspect that, its nodes are the same",
            chosen.name()
        );
        return Err(Error::value("--index", problem));
    }
    if !chosen.inspects(key_type) {
        let problem = format!(
            "the reads of `{}` cannot be recorded: name another of our indexes, such as art",
            chosen.name()
        );
        return Err(Error::value("--index", problem));
    }
    Ok(chosen)
}

/// Reads `--machine`, `--set-hash` and `--no-prefetch`.
pub fn machine(args: &InspectArgs) -> Result<Machine, Error> {
    let mut machine =
        Machine::named(&args.machine).map_err(|error| Error::value("--machine", error))?;
    if args.no_prefetch {
        machine = machine.without_prefetch();
    }
    let Some(hash) = &args.set_hash else { return Ok(machine) };
    let hash = match hash.split_once(':') {
        None if hash == "modulo" => Some(SetHash::Modulo),
        Some(("slices", count)) => count.parse().ok().map(SetHash::Slices),
        _ => None,
    };
    let Some(hash) = hash else {
        let text = args.set_hash.as_deref().unwrap_or_default();
        let problem = format!(
            "`{text}` is not a hash of cache sets: choose modulo or slices:N, such as slices:12"
        );
        return Err(Error::value("--set-hash", problem));
    };
    machine.with_llc_hash(hash).map_err(|error| Error::value("--set-hash", error))
}

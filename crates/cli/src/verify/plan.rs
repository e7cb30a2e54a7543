//! The configuration of a recording: the command line, or a schedule file, checked.

use super::buffers::Buffer;
use crate::catalogue::Verify;
use crate::catalogue::select::{self, Canary, Chosen};
use crate::flags::args::{Format, VerifyArgs};
use crate::flags::error::Error;
use crate::flags::place::{self, Place};
use crate::flags::types::KeyType;
use crate::flags::values::{list, number, parse, seconds, seed, single};
use serde::{Deserialize, Serialize};
use silvics::Tuning;
use silvics_testkit::verify;
use silvics_workload::{Mix, Op};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// One index in one place with one type of keys.
pub struct Target {
    pub index: String,
    /// Whether it places its nodes itself, as peers and write buffers do.
    pub has_own_place: bool,
    pub place: Place,
    pub key_type: KeyType,
    pub verify: Verify,
    /// The mistake that is planted in the index.
    pub canary: Option<Canary>,
}

/// The histories to record.
pub struct Plan {
    pub targets: Vec<Target>,
    pub mix: Mix,
    pub threads: Vec<usize>,
    pub time: Duration,
    pub seed: u64,
    /// The only history to make, from a schedule file.
    pub only: Option<u64>,
    pub format: Format,
}

/// The facts that make a history again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub index: String,
    pub placement: String,
    pub pages: String,
    pub key_type: String,
    pub mix: String,
    pub threads: Vec<usize>,
    pub seed: u64,
    pub history: u64,
}

/// The texts of the flags that say what to record.
struct Texts {
    index: String,
    placement: String,
    pages: String,
    key_type: Option<String>,
    mix: String,
    threads: String,
    seed: String,
}

impl Plan {
    /// Reads the flags.
    pub fn new(args: &VerifyArgs) -> Result<Self, Error> {
        let time = single("--seconds", args.seconds.as_deref().unwrap_or("30"), seconds)?;
        let format = Format::parse(&args.format)?;
        let Some(path) = &args.replay else {
            let or = |text: &Option<String>, default: &str| {
                text.as_deref().unwrap_or(default).to_owned()
            };
            let texts = Texts {
                index: or(&args.index, "all"),
                placement: or(&args.placement, "pooled,shared,size-class"),
                pages: or(&args.pages, "4k"),
                key_type: args.key_type.clone(),
                mix: or(&args.mix, "38/32/28/2"),
                threads: or(&args.threads, "2,3"),
                seed: or(&args.seed, "1"),
            };
            return Self::of(&texts, time, format);
        };
        alone("--replay", args)?;
        let schedule = read(path)?;
        let threads: Vec<String> = schedule.threads.iter().map(usize::to_string).collect();
        let texts = Texts {
            index: schedule.index,
            placement: schedule.placement,
            pages: schedule.pages,
            key_type: Some(schedule.key_type),
            mix: schedule.mix,
            threads: threads.join(","),
            seed: schedule.seed.to_string(),
        };
        let plan = Self::of(&texts, time, format).map_err(|error| Error::File {
            flag: "--replay",
            path: path.clone(),
            problem: format!("cannot be replayed: {error}"),
        })?;
        Ok(Self { only: Some(schedule.history), ..plan })
    }

    fn of(texts: &Texts, time: Duration, format: Format) -> Result<Self, Error> {
        let key_types = match &texts.key_type {
            None => KeyType::OF_INDEXES.to_vec(),
            Some(text) => list("--key-type", text, KeyType::of_indexes)?,
        };
        let places = place::of(&texts.placement, &texts.pages, Tuning::default())?;
        let asked = texts.key_type.is_some();
        let (buffers, others) = Buffer::among(&texts.index)?;
        let mut targets = match others.as_slice() {
            [] => Vec::new(),
            others => targets(&chosen(&others.join(","))?, &places, &key_types, asked)?,
        };
        let takes_bytes = key_types.contains(&KeyType::Bytes);
        if let (false, Some(buffer)) = (takes_bytes, buffers.iter().find(|buffer| buffer.named)) {
            return Err(Error::KeyType { index: buffer.name(), key_type: key_types[0] });
        }
        targets.extend(buffers.into_iter().filter(|_| takes_bytes).map(|buffer| Target {
            index: buffer.name(),
            has_own_place: true,
            place: places[0],
            key_type: KeyType::Bytes,
            verify: buffer.verify(),
            canary: None,
        }));
        let most = verify::THREADS_MAX;
        Ok(Self {
            targets,
            mix: single("--mix", &texts.mix, mix)?,
            threads: list("--threads", &texts.threads, |text| number(text, 1, most))?,
            time,
            seed: single("--seed", &texts.seed, seed)?,
            only: None,
            format,
        })
    }

    /// The recorder's plan for one target.
    pub fn recorded(&self, target: &Target) -> verify::Plan {
        let percent = |op| self.mix.share(op) / PERCENT;
        verify::Plan {
            threads: self.threads.clone(),
            mix: verify::Mix {
                lookups: percent(Op::Lookup),
                inserts: percent(Op::Insert),
                removals: percent(Op::Remove),
                scans: percent(Op::Scan),
            },
            seed: self.seed,
            numbers: self.only.map_or(verify::Numbers::All, verify::Numbers::Only),
            until: verify::Until::Elapsed(self.time / self.targets.len() as u32),
            options: target.place.options(None),
        }
    }

    /// The schedule that makes history `number` of a target again.
    pub fn schedule(&self, target: &Target, number: u64) -> Schedule {
        Schedule {
            index: target.index.clone(),
            placement: target.place.name().into(),
            pages: target.place.options(None).pages.to_string(),
            key_type: target.key_type.name().into(),
            mix: self.mix.to_string(),
            threads: self.threads.clone(),
            seed: self.seed,
            history: number,
        }
    }
}

/// The group that adds the peers; every other group means our indexes alone.
const PEERS: &str = "peers";

/// The indexes whose histories are to be recorded.
fn chosen(text: &str) -> Result<Vec<Chosen>, Error> {
    let mut chosen = select::resolve(text, None)?;
    if let Some(frozen) = chosen.iter().find(|c| c.named && c.variant.lookups_only) {
        let problem = format!(
            "`{}` only looks keys up, so there is nothing to check: name another variant",
            frozen.name()
        );
        return Err(Error::value("--index", problem));
    }
    let peers = text.split(',').any(|item| item == PEERS);
    chosen.retain(|chosen| peers || chosen.named || !chosen.entry.is_peer());
    if chosen.is_empty() {
        return Err(Error::Nothing { indexes: text.into(), why: "is an index of ours" });
    }
    Ok(chosen)
}

fn targets(
    chosen: &[Chosen],
    places: &[Place],
    key_types: &[KeyType],
    asked: bool,
) -> Result<Vec<Target>, Error> {
    let mut targets = Vec::new();
    for candidate in chosen {
        for &key_type in key_types {
            if !candidate.entry.takes(key_type) {
                if asked && candidate.named {
                    return Err(Error::KeyType { index: candidate.name(), key_type });
                }
                continue;
            }
            let peer = candidate.entry.is_peer();
            // A peer places its nodes itself, so it is recorded in one place.
            let places = if peer { &places[..1] } else { places };
            if peer && asked && candidate.named && candidate.verify(places[0], key_type).is_none() {
                return Err(tells_too_little(candidate, key_type));
            }
            targets.extend(places.iter().filter_map(|&place| {
                let verify = candidate.verify(place, key_type)?;
                let (index, canary) = (candidate.name(), candidate.canary);
                Some(Target { index, has_own_place: peer, place, key_type, verify, canary })
            }));
        }
    }
    if targets.is_empty() {
        let indexes = chosen.iter().map(Chosen::name).collect::<Vec<_>>().join(",");
        return Err(Error::Nothing { indexes, why: "takes such keys in such a place" });
    }
    Ok(targets)
}

/// The refusal of a peer that takes keys of a type but does not tell the values its writes meet.
fn tells_too_little(peer: &Chosen, key_type: KeyType) -> Error {
    let problem = format!(
        "`{}` does not return the values that its writes of {key_type} keys replace, so its histories \
         cannot be checked: name another key type",
        peer.name()
    );
    Error::value("--key-type", problem)
}

/// Refuses flags that say what to record beside a flag with a file that says all of it.
pub fn alone(flag: &'static str, args: &VerifyArgs) -> Result<(), Error> {
    let remedy = "the file alone says what to do, so leave the other out";
    refuse(flag, remedy, subjects(args))?;
    let others = [("--threads", args.threads.is_some()), ("--seed", args.seed.is_some())];
    refuse(flag, remedy, others)
}

/// The flags that say which histories of an index to record, and whether each is given.
pub fn subjects(args: &VerifyArgs) -> [(&'static str, bool); 6] {
    [
        ("--index", args.index.is_some()),
        ("--placement", args.placement.is_some()),
        ("--pages", args.pages.is_some()),
        ("--key-type", args.key_type.is_some()),
        ("--mix", args.mix.is_some()),
        ("--schedule", args.schedule.is_some()),
    ]
}

/// Refuses the first of the flags that is given: it has no meaning beside `flag`.
pub fn refuse<const N: usize>(
    flag: &'static str,
    remedy: &'static str,
    others: [(&'static str, bool); N],
) -> Result<(), Error> {
    match others.into_iter().find(|(_, given)| *given) {
        Some((other, _)) => Err(Error::Conflict { flag, other, remedy }),
        None => Ok(()),
    }
}

/// Reads a schedule file.
fn read(path: &Path) -> Result<Schedule, Error> {
    let error = |problem: String| Error::File { flag: "--replay", path: path.to_owned(), problem };
    let bytes = fs::read(path).map_err(|e| error(format!("cannot be read: {e}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|e| error(format!("is not a schedule as --schedule writes it: {e}")))
}

/// A mix of the calls that histories have.
fn mix(text: &str) -> Result<Mix, String> {
    let mix: Mix = parse(text)?;
    if mix.upserts() {
        return Err(format!(
            "`{mix}` has a share of upserts: they are among the inserts, leave it out"
        ));
    }
    if Op::ALL.into_iter().any(|op| !mix.share(op).is_multiple_of(PERCENT)) {
        return Err(format!("`{mix}` has decimals: choose shares in whole percent"));
    }
    Ok(mix)
}

/// One percent, in the unit of [`Mix::share`].
const PERCENT: u32 = Mix::WHOLE / 100;

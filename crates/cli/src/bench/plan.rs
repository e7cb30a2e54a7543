//! What is to be run: the command line, checked.

use super::select::{self, Chosen};
use crate::args::{BenchArgs, Format};
use crate::error::Error;
use crate::keys::KeyType;
use crate::units;
use silvics::Pages;
use silvics_workload::{Dist, KEYS_MAX, Mix, keyfile};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// A benchmark, ready to run.
#[derive(Debug)]
pub struct Plan {
    pub chosen: Vec<Chosen>,
    pub key_type: KeyType,
    pub source: Source,
    pub dists: Vec<Dist>,
    pub places: Vec<Place>,
    pub mixes: Vec<Mix>,
    pub batches: Vec<usize>,
    pub threads: Vec<usize>,
    pub scan_length: usize,
    pub time: Duration,
    pub rounds: usize,
    pub memory_limit: Option<usize>,
    pub seed: u64,
    pub format: Format,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Generated: so many are loaded, out of twice as many.
    Generated(Vec<usize>),
    /// Read from a file.
    File { path: PathBuf, format: keyfile::Format },
}

/// Where the nodes of our indexes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Pools on these pages.
    Pooled(Pages),
    /// The global allocator, on whatever pages it has.
    Shared,
}

impl Place {
    /// The placement's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pooled(_) => "pooled",
            Self::Shared => "shared",
        }
    }

    /// The pages' name.
    pub fn pages(self) -> String {
        match self {
            Self::Pooled(pages) => pages.to_string(),
            Self::Shared => SYSTEM_PAGES.into(),
        }
    }
}

/// The pages of whoever does not ask for any.
pub const SYSTEM_PAGES: &str = "system";

/// More threads than anybody has cores for.
const THREADS_MAX: usize = 4096;
const BATCH_MAX: usize = 4096;

impl Plan {
    /// Reads the flags. `cores` is how many threads there are by default.
    pub fn new(args: &BenchArgs, cores: usize) -> Result<Self, Error> {
        let source = source(args)?;
        let key_type = key_type(args, &source)?;
        let mixes: Vec<Mix> = list("--mix", &args.mix, parse)?;
        let threads = match &args.threads {
            Some(text) => list("--threads", text, |item| number(item, 1, THREADS_MAX))?,
            None => vec![cores],
        };
        let dists: Vec<Dist> = list("--dist", &args.dist, parse)?;
        if matches!(source, Source::File { .. }) && dists.contains(&Dist::Sparse) {
            return Err(Error::Conflict {
                flag: "--dist sparse",
                other: "--key-file",
                remedy: "sparse keys are generated, so choose --dist uniform for the keys of a file",
            });
        }
        let mut plan = Self {
            chosen: Vec::new(),
            key_type,
            source,
            dists,
            places: places(args)?,
            batches: list("--batch", &args.batch, |item| number(item, 1, BATCH_MAX))?,
            threads,
            scan_length: single("--scan-length", &args.scan_length, |text| {
                number(text, 1, u32::MAX as usize)
            })?,
            time: single("--seconds", &args.seconds, seconds)?,
            rounds: single("--rounds", &args.rounds, |text| number(text, 1, 10_000))?,
            memory_limit: args.memory_limit.as_deref().map(memory_limit).transpose()?,
            seed: single("--seed", &args.seed, seed)?,
            format: Format::parse(&args.format)?,
            mixes,
            notes: Vec::new(),
        };
        let names = args.index.as_deref().unwrap_or("all");
        let (chosen, notes) = select::select(names, key_type, &plan.mixes)?;
        plan.chosen = chosen;
        plan.notes = notes;
        plan.say_what_has_no_effect(args, cores)?;
        Ok(plan)
    }

    fn say_what_has_no_effect(&mut self, args: &BenchArgs, cores: usize) -> Result<(), Error> {
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
        if let Some(&most) = self.threads.iter().max()
            && most > cores
        {
            self.notes.push(format!(
                "--threads {most}: threads share the {cores} core{} there {}",
                crate::machine::plural(cores),
                if cores == 1 { "is" } else { "are" },
            ));
        }
        Ok(())
    }
}

/// The items of a comma-separated list, each once. `read` says what is wrong with an item.
fn list<T: PartialEq>(
    flag: &'static str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    for item in text.split(',') {
        let item = single(flag, item, &read)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

fn single<T>(
    flag: &'static str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Error> {
    read(text).map_err(|problem| Error::value(flag, problem))
}

fn parse<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match units::parse_count(text) {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "`{text}` is no whole number from {least} to {most}: write for example {}",
            if most > 100_000 { "100k" } else { "2" }
        )),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if (0.001..=86_400.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err(format!(
            "`{text}` is no number of seconds from 0.001 to 86400: write for example 0.5"
        )),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number below 2^64: write for example 1"))
}

fn memory_limit(text: &str) -> Result<usize, Error> {
    units::parse_bytes(text).ok_or_else(|| {
        let problem = format!("`{text}` is no number of bytes: write for example 64M or 1G");
        Error::value("--memory-limit", problem)
    })
}

fn source(args: &BenchArgs) -> Result<Source, Error> {
    let Some(path) = &args.key_file else {
        if args.key_format.is_some() {
            let problem = "there is no key file to read: name it with --key-file, or leave it out";
            return Err(Error::value("--key-format", problem));
        }
        let text = args.keys.as_deref().unwrap_or("1M");
        let most = KEYS_MAX / 2;
        return Ok(Source::Generated(list("--keys", text, |item| number(item, 1, most))?));
    };
    if args.keys.is_some() {
        return Err(Error::Conflict {
            flag: "--keys",
            other: "--key-file",
            remedy: "a key file brings its own keys, so leave one of them out",
        });
    }
    let path = path.clone();
    let format = key_format(args.key_format.as_deref(), &path)?;
    Ok(Source::File { path, format })
}

fn key_format(text: Option<&str>, path: &Path) -> Result<keyfile::Format, Error> {
    match text {
        None => Ok(keyfile::Format::of(path)),
        Some("lines") => Ok(keyfile::Format::Lines),
        Some("sosd") => Ok(keyfile::Format::Sosd),
        Some(text) => {
            let problem = format!("`{text}` is no format of key files: choose lines or sosd");
            Err(Error::value("--key-format", problem))
        }
    }
}

fn key_type(args: &BenchArgs, source: &Source) -> Result<KeyType, Error> {
    let lines = matches!(source, Source::File { format: keyfile::Format::Lines, .. });
    match args.key_type.as_deref() {
        None if lines => Ok(KeyType::Bytes),
        Some("bytes") => Ok(KeyType::Bytes),
        Some("u64") if lines => {
            let problem = "`u64` keys cannot be read from a file of lines: choose bytes, or name a \
                           SOSD file and --key-format sosd";
            Err(Error::value("--key-type", problem))
        }
        None | Some("u64") => Ok(KeyType::U64),
        Some(text) => {
            let problem = format!("`{text}` is no type of keys: choose u64 or bytes");
            Err(Error::value("--key-type", problem))
        }
    }
}

fn places(args: &BenchArgs) -> Result<Vec<Place>, Error> {
    let pages = list("--pages", &args.pages, |text| match text {
        "4k" => Ok(Pages::Small),
        "thp" => Ok(Pages::Thp),
        "hugetlb" => Ok(Pages::HugeTlb),
        _ => Err(format!("`{text}` are no pages: choose 4k, thp or hugetlb")),
    })?;
    // The global allocator has the pages it has: one cell, whatever pages pools have.
    let places = list("--placement", &args.placement, |text| match text {
        "pooled" => Ok(pages.iter().copied().map(Place::Pooled).collect()),
        "shared" => Ok(vec![Place::Shared]),
        _ => Err(format!("`{text}` is no placement: choose pooled or shared")),
    })?;
    let places: Vec<Place> = places.concat();
    Ok(places)
}

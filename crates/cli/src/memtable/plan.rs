//! The command line, checked.

use super::pointer::PointerIndex;
use super::run::{self, Job, Sample};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::memtable::MemtableArgs;
use crate::flags::site::Site;
use crate::flags::units::parse_bytes;
use crate::flags::values::{THREADS_MAX, list, named, number, seed, single};
use silvics_memtable::{
    ByteIndex, Index, MAX_KEY_BYTES, MAX_VALUE_BYTES, OrdIndex, SkipIndex, WriteMode,
};
use std::path::{Path, PathBuf};

/// The most operations, and keys.
const NUM_MAX: usize = 1 << 31;
/// The most operations of a write.
const BATCH_MAX: usize = 1_000_000;

/// A workload of `db_bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    FillSeq,
    FillRandom,
    Overwrite,
    ReadRandom,
    MultiReadRandom,
    ReadWhileWriting,
    SeekRandom,
}

impl Workload {
    pub const ALL: [Self; 7] = [
        Self::FillSeq,
        Self::FillRandom,
        Self::Overwrite,
        Self::ReadRandom,
        Self::MultiReadRandom,
        Self::ReadWhileWriting,
        Self::SeekRandom,
    ];

    /// Its name in `db_bench`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FillSeq => "fillseq",
            Self::FillRandom => "fillrandom",
            Self::Overwrite => "overwrite",
            Self::ReadRandom => "readrandom",
            Self::MultiReadRandom => "multireadrandom",
            Self::ReadWhileWriting => "readwhilewriting",
            Self::SeekRandom => "seekrandom",
        }
    }

    /// Whether its threads write.
    pub fn writes(self) -> bool {
        matches!(self, Self::FillSeq | Self::FillRandom | Self::Overwrite)
    }

    /// Whether a fill comes before it, which is not measured.
    pub fn is_filled_first(self) -> bool {
        !matches!(self, Self::FillSeq | Self::FillRandom)
    }

    /// Whether `--batch` makes a difference.
    fn has_batches(self) -> bool {
        self.writes() || self == Self::MultiReadRandom
    }

    fn parse(text: &str) -> Result<Self, String> {
        named(text, "a workload", Self::ALL, Self::name)
    }
}

/// A memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memtable {
    Art,
    SkipList,
    OrdMap,
    SkipListPointer,
}

impl Memtable {
    pub const ALL: [Self; 4] = [Self::Art, Self::SkipList, Self::OrdMap, Self::SkipListPointer];

    /// The name of its index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Art => ByteIndex::NAME,
            Self::SkipList => SkipIndex::NAME,
            Self::OrdMap => OrdIndex::NAME,
            Self::SkipListPointer => PointerIndex::NAME,
        }
    }

    /// The memtable with a name.
    pub fn parse(text: &str) -> Result<Self, String> {
        named(text, "a memtable", Self::ALL, Self::name)
    }

    /// Makes a buffer of these memtables, and runs a workload on it.
    pub fn measure(self, job: &Job<'_>) -> Result<Sample, Error> {
        match self {
            Self::Art => run::measure::<ByteIndex>(job),
            Self::SkipList => run::measure::<SkipIndex>(job),
            Self::OrdMap => run::measure::<OrdIndex>(job),
            Self::SkipListPointer => run::measure::<PointerIndex>(job),
        }
    }
}

/// All ways of inserting.
pub const MODES: [WriteMode; 4] = [
    WriteMode::Pipelined,
    WriteMode::Parallel,
    WriteMode::Serial,
    WriteMode::UnorderedUnrepeatableReads,
];

/// The name of a way of inserting.
pub fn mode_name(mode: WriteMode) -> &'static str {
    match mode {
        WriteMode::Serial => "serial",
        WriteMode::Parallel => "parallel",
        WriteMode::Pipelined => "pipelined",
        WriteMode::UnorderedUnrepeatableReads => "unordered",
    }
}

/// The way of inserting with a name.
pub fn mode(text: &str) -> Result<WriteMode, String> {
    named(text, "a mode", MODES, mode_name)
}

/// The log of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    None,
    /// In a new folder inside of this one, or of the system's for temporary files.
    Folder {
        inside: Option<PathBuf>,
        /// Whether each write is synced.
        sync: bool,
    },
}

impl Log {
    fn new(args: &MemtableArgs, site: Site) -> Result<Self, Error> {
        let Some(inside) = &args.wal else {
            if args.sync {
                return Err(Error::value("--sync", "there is no log: add --wal, or leave it out"));
            }
            return Ok(Self::None);
        };
        let log = Self::Folder { inside: inside.clone(), sync: args.sync };
        if site.is_here {
            log.folder()?;
        }
        Ok(log)
    }

    /// A new folder for logs, which is removed when it is dropped. `None` if no log is written.
    pub fn folder(&self) -> Result<Option<tempfile::TempDir>, Error> {
        let Self::Folder { inside, .. } = self else { return Ok(None) };
        let inside = inside.clone().unwrap_or_else(std::env::temp_dir);
        if !inside.is_dir() {
            let problem = "is no folder: name one that exists, or none for a temporary one".into();
            return Err(Error::File { flag: "--wal", path: inside, problem });
        }
        let folder = tempfile::Builder::new().prefix("silvics-wal-").tempdir_in(&inside);
        folder.map(Some).map_err(|error| Self::failed(&inside, error))
    }

    /// The error for a folder.
    pub fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
        let problem = format!("cannot have a log: {error}; name a folder that can be written");
        Error::File { flag: "--wal", path: path.to_owned(), problem }
    }

    pub fn syncs(&self) -> bool {
        matches!(self, Self::Folder { sync: true, .. })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Folder { sync: false, .. } => "written",
            Self::Folder { sync: true, .. } => "synced",
        }
    }
}

/// A memtable and its way of inserting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    pub memtable: Memtable,
    pub mode: WriteMode,
}

/// Runs of all contenders that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub workload: Workload,
    pub threads: usize,
    pub batch: usize,
    pub value_size: usize,
}

/// A checked command line.
#[derive(Clone, Debug)]
pub struct Plan {
    pub workloads: Vec<Workload>,
    pub contenders: Vec<Contender>,
    pub threads: Vec<usize>,
    pub num: usize,
    pub batches: Vec<usize>,
    pub key_size: usize,
    pub value_sizes: Vec<usize>,
    pub log: Log,
    pub yields: bool,
    pub rounds: usize,
    pub seed: u64,
    pub format: Format,
}

impl Plan {
    /// Reads the flags for a machine.
    pub fn new(args: &MemtableArgs, site: impl Into<Site>) -> Result<Self, Error> {
        let site = site.into();
        let cores = site.cores;
        let modes = match (args.serial, args.unordered) {
            (true, _) => vec![WriteMode::Serial],
            (_, true) => vec![WriteMode::UnorderedUnrepeatableReads],
            _ => list("--mode", &args.mode, mode)?,
        };
        let memtables = list("--memtable", &args.memtable, Memtable::parse)?;
        let contenders = memtables
            .iter()
            .flat_map(|&memtable| modes.iter().map(move |&mode| Contender { memtable, mode }));
        let default = || if cores == 1 { "1".into() } else { format!("1,{cores}") };
        let threads = args.threads.clone().unwrap_or_else(default);
        let key = |text: &str| size(text, super::keys::KEY_LEAST, MAX_KEY_BYTES);
        Ok(Self {
            workloads: list("--workload", &args.workload, Workload::parse)?,
            contenders: contenders.collect(),
            threads: list("--threads", &threads, |text| number(text, 1, THREADS_MAX))?,
            num: single("--num", &args.num, |text| number(text, 1, NUM_MAX))?,
            batches: list("--batch", &args.batch, |text| number(text, 1, BATCH_MAX))?,
            key_size: single("--key-size", &args.key_size, key)?,
            value_sizes: list("--value-size", &args.value_size, |text| {
                size(text, 0, MAX_VALUE_BYTES)
            })?,
            log: Log::new(args, site)?,
            yields: !args.no_adaptive_yield,
            rounds: single("--rounds", &args.rounds, |text| number(text, 1, 100_000))?,
            seed: single("--seed", &args.seed, seed)?,
            format: Format::parse(&args.format)?,
        })
    }

    /// All cells. A workload to which batches make no difference has one for all.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &workload in &self.workloads {
            let batches = if workload.has_batches() { &self.batches[..] } else { &[1] };
            for &value_size in &self.value_sizes {
                for &batch in batches {
                    for &threads in &self.threads {
                        cells.push(Cell { workload, threads, batch, value_size });
                    }
                }
            }
        }
        cells
    }
}

/// A number of bytes from `least` to `most`.
fn size(text: &str, least: usize, most: usize) -> Result<usize, String> {
    parse_bytes(text).filter(|bytes| (least..=most).contains(bytes)).ok_or_else(|| {
        format!("`{text}` is not a number of bytes from {least} to {most}: write for example 100")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_multiply_only_where_they_matter() {
        let plan = Plan {
            workloads: vec![Workload::FillRandom, Workload::ReadRandom],
            contenders: Vec::new(),
            threads: vec![1, 2],
            num: 1,
            batches: vec![1, 8],
            key_size: 16,
            value_sizes: vec![0],
            log: Log::None,
            yields: true,
            rounds: 1,
            seed: 1,
            format: Format::Json,
        };
        assert_eq!(plan.cells().len(), 2 * 2 + 2);
    }

    #[test]
    fn close_names_are_offered() {
        assert_eq!(Memtable::parse("art"), Ok(Memtable::Art));
        assert!(Memtable::parse("skiplst").unwrap_err().ends_with("did you mean `skiplist`?"));
        assert!(Workload::parse("x").unwrap_err().contains("choose from fillseq, fillrandom"));
    }
}

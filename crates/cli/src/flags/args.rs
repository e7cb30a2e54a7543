//! The command line. Values are read in `bench/plan.rs`, where each one's error is worded.

use crate::flags::error::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

/// Measures ordered in-memory indexes side by side.
#[derive(Debug, Parser)]
#[command(name = "silvics", version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Reads the command line. What is wrong with it ends the process: in clap's words, or of flags that
    /// exclude each other in one sentence.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| match conflict(&error) {
            Some(sentence) => {
                eprintln!("error: {sentence}");
                std::process::exit(error.exit_code())
            }
            None => error.exit(),
        })
    }
}

/// Which flags exclude each other, if that is what is wrong.
fn conflict(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let flags = |kind| match error.get(kind)? {
        ContextValue::String(flag) => Some(vec![flag.clone()]),
        ContextValue::Strings(flags) => Some(flags.clone()),
        _ => None,
    };
    let flags = [flags(ContextKind::InvalidArg)?, flags(ContextKind::PriorArg)?].concat();
    let names: Vec<&str> = flags.iter().filter_map(|flag| flag.split(' ').next()).collect();
    let (first, others) = names.split_first()?;
    Some(format!("{first} and {} exclude each other: leave one out", others.join(", ")))
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Shows the catalogue of indexes
    List(ListArgs),
    /// Runs a workload over indexes, interleaved in one process, and checks their answers
    ///
    /// Without flags: our structures and all peers on a million keys, lookups alone and with 10 %
    /// updates, in less than a minute. Flags that take a list multiply.
    Bench(Box<BenchArgs>),
    /// Explains where an index's objects lie, and what to change
    ///
    /// Builds the index, looks at every object and at what lookups read, and answers: which kind of
    /// object is in which size class, which kinds lie close to each other, and how each spreads over
    /// the sets of a cache. Then come findings, each with its evidence, its remedy and what a model of
    /// the machine says that would gain. With --trace the objects are those of any program.
    Inspect(Box<InspectArgs>),
    /// Records what threads do to an index and checks that it is linearizable
    ///
    /// Exits with 0 if everything recorded is, 1 with a short history if something is not, 3 if a
    /// check was given up. All our indexes take turns, in each placement and with each type of
    /// keys.
    Verify(Box<VerifyArgs>),
    /// Runs experiments of the sources and judges their claims
    ///
    /// Without a name: lists what there is. Each experiment prints what its source saw, the evidence there
    /// is for it here (facts, a model of the source's machine, a clock), and a verdict, which rests on the
    /// lowest level that can carry it: confirmed, not seen, contradicted, or cannot be shown here.
    Reproduce(Box<ReproduceArgs>),
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// What each index of ours allocates: sizes, size classes, what a search reads, and what the
    /// ATC'18 study found to be amiss
    #[arg(long)]
    pub layout: bool,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// Where nodes of our indexes live.
#[derive(Args, Clone, Debug)]
pub struct PlaceArgs {
    /// Where nodes of our indexes live: pooled (pools of their own), shared (the global
    /// allocator), size-class (a heap with the size classes of the ATC'18 study); with the feature of
    /// the same name jemalloc, segregated-jemalloc (an arena per kind of object), mimalloc, tcmalloc;
    /// of several `bench` measures all in turns
    #[arg(long, value_name = "PLACEMENT,…", default_value = "pooled")]
    pub placement: String,

    /// Pages of pools and of the size-class heap: 4k, thp (transparent huge pages), hugetlb
    #[arg(long, value_name = "PAGES,…", default_value = "thp")]
    pub pages: String,

    /// Objects in pools start at multiples of so many bytes, a power of two from 8 to 4096
    #[arg(long, value_name = "BYTES")]
    pub slot_align: Option<String>,

    /// Bytes of a pool's slabs, a power of two from 16K to 2M
    #[arg(long, value_name = "BYTES")]
    pub slab: Option<String>,

    /// Bytes of a pool's first region and of its largest, multiples of 2M: 2M-64M
    #[arg(long, value_name = "FIRST-LARGEST")]
    pub regions: Option<String>,

    /// A pool's slabs begin at varying lines
    #[arg(long)]
    pub colouring: bool,
}

/// Keys from a file, and of which type keys are.
#[derive(Args, Clone, Debug, Default)]
pub struct KeyFileArgs {
    /// Takes the key space from a file and loads half of it: one key per line, or the SOSD format
    /// (a 64-bit little-endian count, then 64-bit little-endian words)
    #[arg(id = "key_file", long = "key-file", value_name = "FILE")]
    pub file: Option<std::path::PathBuf>,

    /// How keys lie in the key file: lines or sosd [default: sosd if the name ends in _uint64,
    /// .sosd, .u64 or .bin, else lines]
    #[arg(id = "key_format", long = "key-format", value_name = "FORMAT")]
    pub format: Option<String>,

    /// u64; u128 (each 64-bit key widened to 128 bits, in the same order); bytes (generated keys as 8
    /// bytes, big-endian); for bench also string (generated keys as 16 hexadecimal digits) [default:
    /// bytes with a key file of lines, else u64]
    #[arg(long, value_name = "TYPE")]
    pub key_type: Option<String>,
}

#[derive(Args, Debug)]
// Negative numbers are refused by their flag, in its words; the last of a repeated flag counts.
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct BenchArgs {
    /// Which indexes: names of `silvics list`, NAME:VARIANT, or the groups default, ours, bst (every
    /// build of every tree), peers, all; ratios are to the first [default: default]
    #[arg(long, value_name = "NAME,…")]
    pub index: Option<String>,

    /// The variant of what is named without one: baseline, fixed, …
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<String>,

    /// How many keys are loaded, out of a key space of twice as many: 100k, 1M, …
    /// [default: 1M]
    #[arg(long, value_name = "N,…")]
    pub keys: Option<String>,

    #[command(flatten)]
    pub key_file: KeyFileArgs,

    /// u64, or for maps (map, peer:crossbeam-skiplist, peer:scc, peer:btreemap-rwlock) arc: `Arc<[u8]>` of 8 bytes
    #[arg(long, value_name = "TYPE", default_value = "u64")]
    pub value_type: String,

    /// How keys are chosen: uniform, sparse (hashed to 63 bits), zipf:EXPONENT, sequential,
    /// disjoint (a range per thread), latest
    #[arg(long, value_name = "DIST,…", default_value = "uniform")]
    pub dist: String,

    /// Lookups, inserts, removals and scans in percent
    #[arg(long, value_name = "L/I/R[/S],…", default_value = "100/0/0,90/5/5")]
    pub mix: String,

    /// Entries a scan reads
    #[arg(long, value_name = "N", default_value = "100")]
    pub scan_length: String,

    /// Keys looked up by one call (`get_many`), and inserted by one (`insert_many`, an upsert); peers
    /// are called for one after the other, and removals always are
    #[arg(long, value_name = "N,…", default_value = "1")]
    pub batch: String,

    /// Threads, each pinned to a core [default: one per core]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// How long each index runs in each round, per mix, batch and number of threads
    #[arg(long, value_name = "S", default_value = "0.2")]
    pub seconds: String,

    /// How often; a shorter one before does not count
    #[arg(long, value_name = "R", default_value = "5")]
    pub rounds: String,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// The most memory each of our indexes may hold: 64M, 1G, …
    #[arg(long, value_name = "BYTES")]
    pub memory_limit: Option<String>,

    /// Nothing that is retired while an index is loaded is used again before it is, as in the ATC'18
    /// study, whose trees freed nothing
    #[arg(long)]
    pub no_reuse: bool,

    /// Counts cycles, instructions, misses of the last-level cache and of the TLB, page walks, page
    /// faults and context switches per operation, as far as the system lets this process (Linux)
    #[arg(long)]
    pub counters: bool,

    /// What all random choices follow from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// The flags of `silvics inspect` that describe an index, its load or its lookups.
const OF_AN_INDEX: [&str; 19] = [
    "counters",
    "index",
    "variant",
    "placement",
    "pages",
    "slot_align",
    "slab",
    "regions",
    "colouring",
    "keys",
    "key_file",
    "key_format",
    "key_type",
    "dist",
    "updates",
    "no_reuse",
    "host",
    "lookups",
    "fix",
];

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
#[allow(clippy::struct_excessive_bools)] // flags are independent of each other
pub struct InspectArgs {
    /// Which of our indexes: a name of `silvics list`, or NAME:VARIANT
    #[arg(long, value_name = "NAME", default_value = "occ-avl")]
    pub index: String,

    /// Instead of an index, what a program allocated: a trace, as `libsilvics_preload.so` writes it, or
    /// `-` for standard input; the objects alive at its peak are inspected, in lines and sets of
    /// --machine
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_AN_INDEX)]
    pub trace: Option<std::path::PathBuf>,

    /// Its variant: baseline, fixed, …
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<String>,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// How many keys are loaded, by one thread, out of a key space of twice as many [default: 1M]
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,

    #[command(flatten)]
    pub key_file: KeyFileArgs,

    /// How keys are chosen: uniform, sparse, zipf:EXPONENT, sequential, disjoint, latest
    #[arg(long, value_name = "DIST", default_value = "uniform")]
    pub dist: String,

    /// Keys that are removed and inserted again after the load: what is used again lies elsewhere
    #[arg(long, value_name = "N", default_value = "0")]
    pub updates: String,

    /// Nothing that is retired during the load is used again before its end
    #[arg(long)]
    pub no_reuse: bool,

    /// What a program around the index allocates for each key, from the same heap unless the index has
    /// pools: NAME:BYTES or NAME:LEAST-MOST, such as row:64,wrapper:64,lock:48,noise:16-256
    #[arg(long, value_name = "KIND,…")]
    pub host: Option<String>,

    /// The machine of the model: haswell, abu-dhabi, i7-2630qm, i7-4770, sapphire-rapids, zen4,
    /// graviton3, host (this one)
    #[arg(long, value_name = "NAME", default_value = "host")]
    pub machine: String,

    /// How lines map to the sets of its last level: modulo, slices:N [default: as that machine has it]
    #[arg(long, value_name = "HASH")]
    pub set_hash: Option<String>,

    /// The machine does not fetch the other line of a pair
    #[arg(long)]
    pub no_prefetch: bool,

    /// Lookups that are recorded and run through the model, after as many that fill its caches
    #[arg(long, value_name = "N", default_value = "50k")]
    pub lookups: String,

    /// Applies each remedy, looks again, and measures both in turns
    #[arg(long)]
    pub fix: bool,

    /// With --fix, counts cycles, misses and so on per lookup before and after, as `bench` does
    #[arg(long)]
    pub counters: bool,

    /// Draws the lines, sets and pages where objects lie, into an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<std::path::PathBuf>,

    /// Writes all of it, with these pictures, into one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,

    /// What all random choices follow from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct VerifyArgs {
    /// Which indexes: names of `silvics list`, NAME:VARIANT, or the groups all (all of ours), ours,
    /// bst, peers [default: all]
    #[arg(long, value_name = "NAME,…")]
    pub index: Option<String>,

    /// Where nodes live: pooled (pools of their own), shared (the global allocator), size-class (a
    /// heap with the size classes of the ATC'18 study) [default: pooled,shared,size-class]
    #[arg(long, value_name = "PLACEMENT,…")]
    pub placement: Option<String>,

    /// Pages of pools: 4k, thp (transparent huge pages), hugetlb [default: 4k]
    #[arg(long, value_name = "PAGES,…")]
    pub pages: Option<String>,

    /// u64, u128, bytes [default: all that an index takes]
    #[arg(long, value_name = "TYPE,…")]
    pub key_type: Option<String>,

    /// Lookups, inserts, removals and scans in percent; scans are lookups where an index has none.
    /// Each share is spread over the verbs of its kind; threads that sweep over keys insert and remove
    /// in turns [default: 38/32/28/2]
    #[arg(long, value_name = "L/I/R[/S]")]
    pub mix: Option<String>,

    /// Threads of a history; histories take turns [default: 2,3]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// How long, for all indexes together [default: 30]
    #[arg(long, value_name = "S")]
    pub seconds: Option<String>,

    /// What all random choices follow from [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// Writes the wrong history, or else the last one, to a file of JSON lines
    #[arg(long, value_name = "FILE")]
    pub history: Option<std::path::PathBuf>,

    /// Writes what makes the wrong history again to a file
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<std::path::PathBuf>,

    /// Makes the history of a schedule file again and again, until it is wrong or the time is up
    #[arg(long, value_name = "FILE")]
    pub replay: Option<std::path::PathBuf>,

    /// Checks the history in a file of JSON lines, and nothing else
    #[arg(long, value_name = "FILE")]
    pub check: Option<std::path::PathBuf>,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct ReproduceArgs {
    /// Which experiments, such as bst/1.5
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,

    /// Which evidence: facts, model, clock
    #[arg(long, value_name = "LEVEL,…", default_value = "facts,model,clock")]
    pub level: String,

    /// How many keys are loaded, instead of as many as an experiment has
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,

    /// A sixteenth of the keys, in a model with a sixteenth of the last level (and, where it is about
    /// translations, of their second level), and runs of 10 ms
    #[arg(long)]
    pub quick: bool,

    /// The machine of the model, one of those of `silvics inspect`, instead of the source's
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// What all random choices follow from
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table, or json: an object for each experiment, on a line of its own
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Json,
    Csv,
}

impl Format {
    /// Reads the value of `--format`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "table" => Self::Table,
            "json" => Self::Json,
            "csv" => Self::Csv,
            _ => {
                let problem = format!("`{text}` is no format: choose table, json or csv");
                return Err(Error::value("--format", problem));
            }
        })
    }
}

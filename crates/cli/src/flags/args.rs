//! The verbs and flags of the command line, with their help. Each verb's `plan.rs` reads the
//! values.

use crate::flags::advise::AdviseArgs;
use crate::flags::bench::BenchArgs;
use crate::flags::error::Error;
use crate::flags::install::{CompletionsArgs, ManArgs};
use crate::flags::memtable::MemtableArgs;
use crate::flags::reproduce::ReproduceArgs;
use crate::flags::shard::CollectArgs;
use crate::flags::store::StoreArgs;
use crate::terminal::{self, ERROR};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use serde::{Deserialize, Serialize};
use std::io::Write;

/// Measures ordered in-memory indexes side by side.
#[derive(Debug, Parser)]
#[command(name = "silvics", version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,

    /// Shows all columns of tables. By default, tables on a terminal fit its width (or COLUMNS)
    #[arg(long, global = true)]
    pub wide: bool,

    /// When to color output: auto (on a terminal, unless `NO_COLOR` is set), always, never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: String,
}

impl Cli {
    /// Reads the command line. An error ends the process, with clap's message or, for flags that
    /// exclude each other, with one sentence. So does a request for help.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            // A wrong value has its own error, unless there is this one.
            let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
            let _ = color(args).map(|when| terminal::set(false, &when));
            let text = match conflict(&error) {
                Some(sentence) => format!("{ERROR}error:{ERROR:#} {sentence}\n"),
                None => error.render().ansi().to_string(),
            };
            // A reader that does not wait for the text causes no error.
            let _ = if error.use_stderr() {
                anstream::stderr().write_all(text.as_bytes())
            } else {
                anstream::stdout().write_all(text.as_bytes())
            };
            std::process::exit(error.exit_code())
        })
    }
}

/// The last value of `--color` in a command line that could not be read.
fn color(args: impl Iterator<Item = String>) -> Option<String> {
    const FLAG: &str = "--color";
    let args: Vec<String> = args.take_while(|arg| arg != "--").collect();
    let at = args.iter().rposition(|arg| arg.split('=').next() == Some(FLAG))?;
    args[at].split_once('=').map(|(_, when)| when.into()).or_else(|| args.get(at + 1).cloned())
}

/// The sentence for flags that exclude each other, if this is the error.
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
    /// updates, in about a minute. Flags that take a list multiply.
    Bench(Box<BenchArgs>),
    /// Explains where an index's objects lie, and what to change
    ///
    /// Builds the index, looks at every object and at what lookups read, and answers three
    /// questions: which kind of object is in which size class, which kinds lie close to each other,
    /// and how each kind spreads over the sets of a cache. Then come findings, each with its
    /// evidence, its remedy, and the gain that a model of the machine predicts. With --trace, it
    /// inspects the objects of any program.
    Inspect(Box<InspectArgs>),
    /// Records concurrent calls on an index, and checks that their history is linearizable
    ///
    /// Exits with 0 if every recorded history is linearizable, with 1 and a short history if one is
    /// not, with 2 if a flag is wrong or an allocation fails, and with 3 if a check exceeded its
    /// budget. All our indexes take turns, in each placement and with each type of keys.
    Verify(Box<VerifyArgs>),
    /// Shows how an index adapts to contention while threads write
    ///
    /// Several threads upsert, then one thread alone. The terminal shows the base nodes, which
    /// writers that wait for one another split, and which calm joins. A pipe gets a line for each
    /// tenth of a second instead. A summary follows, and the content of the index is checked.
    Watch(Box<WatchArgs>),
    /// Runs the workloads of RocksDB's `db_bench` on memtables, and checks their answers
    ///
    /// Each run has a new write buffer that is never flushed. Memtables and modes are contenders:
    /// they take turns, in reverse order in each second round. Other flags that take a list
    /// multiply.
    Memtable(Box<MemtableArgs>),
    /// Runs YCSB on the transactional store, with any index, and on other databases
    ///
    /// All databases are loaded in the same process. Those that are compared take turns, in reverse
    /// order in each second round. Flags that take a list multiply.
    Store(Box<StoreArgs>),
    /// Advises which index to take for a workload, and how
    ///
    /// Measures the structures that can do what is needed, with the keys and the mix of the
    /// workload, within a time budget: which structure, where its nodes lie, on which pages, how
    /// it counts its keys, and how many keys a call takes. Predicts the order with ten times the
    /// keys, says how sure it is, and prints the Rust that makes the index.
    Advise(Box<AdviseArgs>),
    /// Runs experiments of the sources and judges their claims
    ///
    /// Without a name, it lists the experiments. Each experiment prints the result of its source,
    /// the evidence found here (facts, a model of the source's machine, a clock), and a verdict:
    /// confirmed, not seen, contradicted, or cannot be shown here. The verdict depends on the
    /// lowest level that can decide.
    Reproduce(Box<ReproduceArgs>),
    /// Makes one result of the parts of a campaign, and says what is missing
    ///
    /// Parts are the files that `--shard I/N --out FILE` of a measuring verb has written. The
    /// output is that of their verb. If a configuration is missing, it is named, and the exit code
    /// is 1.
    Collect(CollectArgs),
    /// Prints a script with which a shell completes verbs, flags and names of indexes
    Completions(CompletionsArgs),
    /// Writes manual pages: silvics.1, and a page for each verb, such as silvics-bench.1
    Man(ManArgs),
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// Shows the objects that each of our indexes allocates: sizes, size classes, the bytes among
    /// which a search finds its way (of a node256 it reads one line of them), and the oversights
    /// that the ATC'18 study found
    #[arg(long)]
    pub layout: bool,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// The places of our indexes' nodes.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlaceArgs {
    /// The place of our indexes' nodes: pooled (pools of their own), shared (the global allocator),
    /// size-class (a heap with the size classes of the ATC'18 study). With the feature of the same
    /// name also jemalloc, segregated-jemalloc (an arena per kind of object), mimalloc, tcmalloc.
    /// `bench` takes several and measures them in turns; `inspect` takes one
    #[arg(long, value_name = "PLACEMENT,…", default_value = "pooled")]
    pub placement: String,

    /// Pages of pools and of the size-class heap: 4k, thp (transparent huge pages), hugetlb
    #[arg(long, value_name = "PAGES,…", default_value = "thp")]
    pub pages: String,

    /// Objects in pools start at multiples of this number of bytes, a power of two from 8 to 4096
    #[arg(long, value_name = "BYTES")]
    pub slot_align: Option<String>,

    /// Bytes of a pool's slabs, a power of two from 16K to 2M
    #[arg(long, value_name = "BYTES")]
    pub slab: Option<String>,

    /// Bytes of a pool's first region and of its largest, multiples of 2M, such as 2M-64M
    #[arg(long, value_name = "FIRST-LARGEST")]
    pub regions: Option<String>,

    /// A pool's slabs begin at varying lines
    #[arg(long)]
    pub colouring: bool,
}

/// Keys from a key set or a file, and the type of keys.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeyFileArgs {
    /// Takes the key space from a key set, which is made from the seed, and loads half of it: words
    /// (of 8 to 20 bytes), uuid (as text), email or url (both of at most 40 bytes)
    #[arg(id = "keyset", long = "keyset", value_name = "SET")]
    #[serde(rename = "keyset")]
    pub set: Option<String>,

    /// Takes the key space from a file and loads half of it: one key per line, or the SOSD format
    /// (a 64-bit little-endian count, then 64-bit little-endian words)
    #[arg(id = "key_file", long = "key-file", value_name = "FILE")]
    #[serde(rename = "key-file")]
    pub file: Option<std::path::PathBuf>,

    /// The format of the key file: lines or sosd [default: sosd if the name ends in _uint64, .sosd,
    /// .u64 or .bin, else lines]
    #[arg(id = "key_format", long = "key-format", value_name = "FORMAT")]
    #[serde(rename = "key-format")]
    pub format: Option<String>,

    /// u64; u128 (each 64-bit key widened to 128 bits, in the same order); bytes (generated keys as
    /// 8 bytes, big-endian); for bench also string (generated keys as 16 hexadecimal digits)
    /// [default: bytes with a key set or a key file of lines, else u64]
    #[arg(long, value_name = "TYPE")]
    pub key_type: Option<String>,
}

/// How the threads of Patricia tries are synchronised.
#[derive(Args, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SyncArgs {
    /// The synchronisation of Patricia tries: optimistic (lock teleportation, validated in
    /// software), rtm (lock teleportation by hardware transactions), or hand-over-hand locks: spin,
    /// pthread, adaptive
    #[arg(long, value_name = "NAME")]
    pub sync: Option<String>,

    /// Runs `--sync optimistic` if the CPU has no hardware transactions for `--sync rtm`
    #[arg(long)]
    pub fallback: bool,
}

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct WatchArgs {
    /// The index to watch: one that adapts, such as ca-tree, or ca-tree:restless, which splits and
    /// joins without contention [default: ca-tree]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// The index to watch, instead of NAME
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub index: Option<String>,

    /// The number of keys, which are loaded by one thread; all writes are upserts of them
    #[arg(long, value_name = "N", default_value = "100k")]
    pub keys: String,

    /// The threads of the first phase, each pinned to a core [default: four per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// Seconds of each phase
    #[arg(long, value_name = "S", default_value = "3")]
    pub seconds: String,

    /// table or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// The flags of `silvics inspect` that describe an index, its load or its lookups.
const OF_AN_INDEX: [&str; 20] = [
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
    "keyset",
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
    /// The index to inspect: a name of `silvics list`, or NAME:VARIANT
    #[arg(long, value_name = "NAME", default_value = "occ-avl")]
    pub index: String,

    /// Inspects what a program allocated, instead of an index: a trace, as `libsilvics_preload.so`
    /// writes it, or `-` for standard input. The objects alive at its peak are inspected, in lines
    /// and sets of --machine
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_AN_INDEX)]
    pub trace: Option<std::path::PathBuf>,

    /// The variant of the index, such as baseline or fixed
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<String>,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// The number of keys that one thread loads, out of a key space twice as large [default: 1M]
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,

    #[command(flatten)]
    pub key_file: KeyFileArgs,

    /// The distribution of keys: uniform, sparse, zipf:EXPONENT, sparse+zipf:EXPONENT, sequential,
    /// disjoint, latest
    #[arg(long, value_name = "DIST", default_value = "uniform")]
    pub dist: String,

    /// The number of keys that are removed and inserted again after the load; reused memory lies
    /// elsewhere
    #[arg(long, value_name = "N", default_value = "0")]
    pub updates: String,

    /// Memory retired during the load is not reused before the load ends
    #[arg(long)]
    pub no_reuse: bool,

    /// The objects that a program around the index allocates for each key, from the same heap
    /// unless the index has pools: NAME:BYTES or NAME:LEAST-MOST, such as
    /// row:64,wrapper:64,lock:48,noise:16-256
    #[arg(long, value_name = "KIND,…")]
    pub host: Option<String>,

    /// The machine of the model: haswell, abu-dhabi, i7-2630qm, i7-4770, sapphire-rapids, zen4,
    /// graviton3, host (this one)
    #[arg(long, value_name = "NAME", default_value = "host")]
    pub machine: String,

    /// The mapping of lines to the sets of the machine's last-level cache: modulo, slices:N
    /// [default: that of the machine]
    #[arg(long, value_name = "HASH")]
    pub set_hash: Option<String>,

    /// Models a machine that does not fetch the other line of a pair
    #[arg(long)]
    pub no_prefetch: bool,

    /// The number of lookups that are recorded and run through the model, after as many that fill
    /// its caches
    #[arg(long, value_name = "N", default_value = "50k")]
    pub lookups: String,

    /// Applies each remedy, inspects the index again, and measures both indexes in turns
    #[arg(long)]
    pub fix: bool,

    /// With --fix, counts cycles, misses and other events per lookup before and after, as `bench`
    /// does
    #[arg(long)]
    pub counters: bool,

    /// Draws the lines, sets and pages where objects lie into an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<std::path::PathBuf>,

    /// Writes the whole result, with these pictures, into one HTML file that needs no other file
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct VerifyArgs {
    /// The indexes to verify: names of `silvics list`, NAME:VARIANT, or the groups all (all of
    /// ours), ours, bst, peers; and write buffers: memtable (all of them),
    /// memtable:MEMTABLE[:MODE] with the names of `silvics memtable` [default: all]
    #[arg(long, value_name = "NAME,…")]
    pub index: Option<String>,

    /// Records transactions on the transactional store instead, and checks that they are strictly
    /// serializable. Names policies, with the structure of the indexes as in optimistic/words
    /// [default: all]
    #[arg(long, value_name = "POLICY,…", num_args = 0..=1, conflicts_with = "check")]
    #[expect(clippy::option_option, reason = "no flag, the flag alone, the flag with policies")]
    pub store: Option<Option<String>>,

    /// The place of nodes: pooled (pools of their own), shared (the global allocator), size-class
    /// (a heap with the size classes of the ATC'18 study) [default: pooled,shared,size-class]
    #[arg(long, value_name = "PLACEMENT,…")]
    pub placement: Option<String>,

    /// Pages of pools: 4k, thp (transparent huge pages), hugetlb [default: 4k]
    #[arg(long, value_name = "PAGES,…")]
    pub pages: Option<String>,

    /// u64, u128, bytes [default: all that an index takes]
    #[arg(long, value_name = "TYPE,…")]
    pub key_type: Option<String>,

    /// Lookups, inserts, removals and scans in percent; in an index without scans these are
    /// lookups. Each share is spread over the verbs of its kind: first and last are lookups, and
    /// pops are removals. Threads that sweep over keys insert and remove alternately
    /// [default: 38/32/28/2]
    #[arg(long, value_name = "L/I/R[/S]")]
    pub mix: Option<String>,

    /// Threads of a history; histories take turns [default: 2,3]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// Seconds for all indexes together [default: 30]
    #[arg(long, value_name = "S")]
    pub seconds: Option<String>,

    /// The seed of all random choices [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,

    /// Writes the wrong history, or else the last one, to a file of JSON lines. There are no such
    /// files for `versioned`
    #[arg(long, value_name = "FILE")]
    pub history: Option<std::path::PathBuf>,

    /// Writes the schedule that makes the wrong history again to a file
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<std::path::PathBuf>,

    /// Repeats the history of a schedule file until it is wrong or the time is up
    #[arg(long, value_name = "FILE")]
    pub replay: Option<std::path::PathBuf>,

    /// Checks the history in a file of JSON lines, and nothing else
    #[arg(long, value_name = "FILE")]
    pub check: Option<std::path::PathBuf>,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

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
                let problem = format!("`{text}` is not a format: choose table, json or csv");
                return Err(Error::value("--format", problem));
            }
        })
    }
}

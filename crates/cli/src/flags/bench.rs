//! The flags of `silvics bench`.

use super::args::{KeyFileArgs, PlaceArgs, SyncArgs};
use super::shard::{ShardArgs, table};
use clap::Args;
use serde::{Deserialize, Serialize};

/// Runs that are kept, to compare later runs with them.
#[derive(Args, Clone, Debug, Default)]
pub struct KeptArgs {
    /// Keeps the whole result under this name, for a later --baseline. A kept run of the same name
    /// is replaced
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,

    /// Compares each row with that of the run kept under this name
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// The folder of kept runs [default: target/silvics if there is a folder `target` here, else
    /// the folder silvics of the user's data]
    #[arg(long, value_name = "FOLDER")]
    pub kept_in: Option<std::path::PathBuf>,

    /// Changes below this many percent are not reported as faster or slower [default: 2]
    #[arg(long, value_name = "PERCENT")]
    pub noise: Option<String>,
}

#[derive(Args, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
// Negative numbers are refused by their flag, in its words; the last of a repeated flag counts.
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct BenchArgs {
    /// The indexes: names of `silvics list`, NAME:VARIANT, or the groups default, ours, bst (every
    /// build of every tree), peers, all; ratios are to the first [default: default]
    #[arg(long, value_name = "NAME,…")]
    pub index: Option<String>,

    /// The variant of indexes that are named without one, such as baseline or fixed
    #[arg(long, value_name = "VARIANT")]
    pub variant: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub sync: SyncArgs,

    /// The number of keys that are loaded, out of a key space twice as large, such as 100k or 1M
    /// [default: 1M]
    #[arg(long, value_name = "N,…")]
    pub keys: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub key_file: KeyFileArgs,

    /// u64; for maps (map, peer:artmap, peer:btreemap-rwlock, peer:crossbeam-skiplist, peer:scc)
    /// also arc: `Arc<[u8]>` of 8 bytes
    #[arg(long, value_name = "TYPE", default_value = "u64")]
    pub value_type: String,

    /// The distribution of keys: uniform, sparse (hashed to 63 bits), zipf:EXPONENT,
    /// sparse+zipf:EXPONENT, sequential, disjoint (a range per thread), latest
    #[arg(long, value_name = "DIST,…", default_value = "uniform")]
    pub dist: String,

    /// Lookups, inserts, removals, scans and upserts in percent. Upserts choose among the keys that
    /// are loaded; under zipf they have the same skew, and hot keys of their own
    #[arg(long, value_name = "L/I/R[/S[/U]],…", default_value = "100/0/0,90/5/5")]
    pub mix: String,

    /// How our indexes count their keys: striped (a line for each thread) or single (one line)
    #[arg(long, value_name = "COUNTING", default_value = "striped")]
    pub counting: String,

    /// The calls that make up a scan: range (one call that reads entries), next (a call for each
    /// entry, which asks for the successor of a key), whole (one call that reads all entries)
    #[arg(long, value_name = "WAY,…", default_value = "range")]
    pub scan_by: String,

    /// The number of entries that a scan reads. With two lengths and a mix of scans alone, the
    /// output has the time of one more entry
    #[arg(long, value_name = "N,…", default_value = "100")]
    pub scan_length: String,

    /// The number of keys looked up by one call (`get_many`) or inserted by one (`insert_many`, an
    /// upsert); peers and removals take one key per call
    #[arg(long, value_name = "N,…", default_value = "1")]
    pub batch: String,

    /// Threads, each pinned to a core [default: one per core]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// Threads that load an index [default: one per core]
    #[arg(long, value_name = "N")]
    pub load_threads: Option<String>,

    /// Seconds that each index runs in each round, per mix, batch and number of threads. A mix with
    /// more inserts than removals, or fewer, ends earlier if a tenth of the keys is left
    #[arg(long, value_name = "S", default_value = "0.2")]
    pub seconds: String,

    /// The number of rounds
    #[arg(long, value_name = "R", default_value = "5")]
    pub rounds: String,

    /// The number of rounds, from the first, that begin with the load of a fresh index; a mix with
    /// more inserts than removals, or fewer, always begins with one [default: every round]
    #[arg(long, value_name = "N")]
    pub loads: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub place: PlaceArgs,

    /// The most memory that each of our indexes may hold, such as 64M or 1G
    #[arg(long, value_name = "BYTES")]
    pub memory_limit: Option<String>,

    /// Memory retired while an index is loaded is not reused before the load ends, as in the ATC'18
    /// study, whose trees freed no memory
    #[arg(long)]
    pub no_reuse: bool,

    /// Counts cycles, instructions, misses of the last-level cache and of the TLB, page walks, page
    /// faults and context switches per operation, as far as the system allows it (Linux)
    #[arg(long)]
    pub counters: bool,

    /// Measures the time of each call, too, in rounds after those that measure throughput, and
    /// prints percentiles for lookups, inserts, removals, scans and upserts. It takes about twice
    /// as long. A time contains the cost of the clock, which is printed
    #[arg(long)]
    pub latency: bool,

    /// Writes the shape of indexes that adapt to contention, every 10 ms of each run, to a JSON
    /// file: route nodes, base nodes, splits, joins, statistics. A plot is written beside it, with
    /// the ending .svg. Each sample looks at every base node; the file has the time that this took
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub trace_adaptation: Option<std::path::PathBuf>,

    /// Writes the whole result into one HTML file that needs no other file: charts, tables, the
    /// machine, the command and all samples
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub html: Option<std::path::PathBuf>,

    #[command(flatten)]
    #[serde(skip)]
    pub kept: KeptArgs,

    #[command(flatten)]
    #[serde(skip)]
    pub part: ShardArgs,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    #[serde(skip, default = "table")]
    pub format: String,
}

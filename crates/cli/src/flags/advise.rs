//! The flags of `silvics advise`.

use super::args::KeyFileArgs;
use clap::Args;

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct AdviseArgs {
    /// The number of keys that are present, out of a key space twice as large, such as 100k or 1M
    /// [default: 1M]
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,

    #[command(flatten)]
    pub key_file: KeyFileArgs,

    /// Takes keys and operations from a trace that `Map::record` wrote, instead of a description
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_A_DESCRIPTION)]
    pub trace: Option<std::path::PathBuf>,

    /// The distribution of keys, as in `bench`: uniform, sparse, zipf:EXPONENT,
    /// sparse+zipf:EXPONENT, sequential, disjoint, latest
    #[arg(long, value_name = "DIST", default_value = "uniform")]
    pub dist: String,

    /// Lookups, inserts, removals, scans and upserts in percent
    #[arg(long, value_name = "L/I/R[/S[/U]]", default_value = "90/5/5")]
    pub mix: String,

    /// The number of entries that a scan reads
    #[arg(long, value_name = "N", default_value = "100")]
    pub scan_length: String,

    /// The most keys that the program can hand over in one call (`get_many`, `insert_many`)
    #[arg(long, value_name = "N", default_value = "1")]
    pub batch: String,

    /// Threads that use the index, each pinned to a core [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,

    /// The needs of the program beside its mix: order (chosen at run time, such as a collation),
    /// ranks, snapshots, values (several for a key), atomic-ranges
    #[arg(long, value_name = "NEED,…")]
    pub needs: Option<String>,

    /// The goal: speed, or memory (the fewest bytes, of those at least half as fast as the
    /// fastest)
    #[arg(long, value_name = "GOAL", default_value = "speed")]
    pub goal: String,

    /// Predicts the order on this machine, too: one of those of `silvics inspect`
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// Seconds for everything, from 2 to 86400
    #[arg(long, value_name = "S", default_value = "60")]
    pub budget: String,

    /// After the advice, measures every candidate that it could have named (of structures that are
    /// far behind only the usual one), and the leading structures at ten times the keys, and says
    /// how far the advice is from the best. It takes minutes, and memory for ten times the keys
    #[arg(long)]
    pub exhaustive: bool,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,
}

/// The flags of a described workload. A trace has its own.
const OF_A_DESCRIPTION: [&str; 9] = [
    "keys",
    "keyset",
    "key_file",
    "key_format",
    "key_type",
    "dist",
    "mix",
    "scan_length",
    "threads",
];

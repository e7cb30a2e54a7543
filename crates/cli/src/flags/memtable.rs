//! The flags of `silvics memtable`.

use crate::flags::shard::{ShardArgs, table};
use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::PathBuf;

#[derive(Args, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(allow_negative_numbers = true, args_override_self = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct MemtableArgs {
    /// The workloads, by the names of `db_bench`: fillseq, fillrandom, overwrite, readrandom,
    /// multireadrandom, readwhilewriting, seekrandom. The threads of fillseq have a range of keys
    /// each. In readwhilewriting another thread overwrites keys. Those that read, and overwrite,
    /// begin with a fill that is not measured
    #[arg(long, value_name = "NAME,…", default_value = "fillrandom,readrandom")]
    pub workload: String,

    /// The memtables: art, skiplist, ordmap, skiplist-pointer (a skip list whose nodes lead to
    /// their keys); ratios are to the first
    #[arg(long, value_name = "NAME,…", default_value = "art,skiplist,ordmap")]
    pub memtable: String,

    /// How the batches of a group of writers are inserted: pipelined (each writer inserts its own,
    /// beside those of other groups), parallel (one group after the other), serial (the leader
    /// inserts all), unordered (each writer inserts its own after the group; a snapshot may change)
    #[arg(long, value_name = "MODE,…", default_value = "pipelined")]
    pub mode: String,

    /// Is `--mode serial`
    #[arg(long, conflicts_with = "mode")]
    pub serial: bool,

    /// Is `--mode unordered`
    #[arg(long, conflicts_with_all = ["mode", "serial"])]
    pub unordered: bool,

    /// Threads, each pinned to a core [default: 1 and one per core]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// The number of operations of all threads together, and of keys to choose from
    #[arg(long, value_name = "N", default_value = "1M")]
    pub num: String,

    /// The operations of a write, or the keys of a call in multireadrandom
    #[arg(long, value_name = "N,…", default_value = "1")]
    pub batch: String,

    /// Bytes of a key, from 8: a number, most significant byte first, and zeros in ASCII
    #[arg(long, value_name = "BYTES", default_value = "16")]
    pub key_size: String,

    /// Bytes of a value
    #[arg(long, value_name = "BYTES,…", default_value = "100")]
    pub value_size: String,

    /// Writes a log, in a temporary folder inside DIR [default: the system's folder for temporary
    /// files]. It is read again after the last round, and removed after each run
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "no_wal")]
    #[expect(clippy::option_option, reason = "no flag, the flag alone, the flag with a folder")]
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub wal: Option<Option<PathBuf>>,

    /// Writes no log, as is the default
    #[arg(long)]
    pub no_wal: bool,

    /// Syncs the log for each write
    #[arg(long)]
    pub sync: bool,

    /// Writers that wait block at once, instead of yielding for a short time first
    #[arg(long)]
    pub no_adaptive_yield: bool,

    /// The number of rounds
    #[arg(long, value_name = "R", default_value = "5")]
    pub rounds: String,

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

/// Reads the value of a flag that was given, perhaps without a folder.
#[expect(clippy::option_option, reason = "no flag, the flag alone, the flag with a folder")]
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<PathBuf>>, D::Error> {
    Option::deserialize(from).map(Some)
}

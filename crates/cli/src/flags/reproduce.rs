//! The flags of `silvics reproduce`.

use super::args::SyncArgs;
use super::shard::{ShardArgs, table};
use clap::Args;
use serde::{Deserialize, Serialize};

#[derive(Args, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct ReproduceArgs {
    /// Which experiments, such as bst/1.5
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,

    /// Runs all experiments, one after the other. If one fails, its row says why, the others still
    /// run, and the exit code is 1
    #[arg(long)]
    pub all: bool,

    /// The levels of evidence: facts, model, clock
    #[arg(long, value_name = "LEVEL,…", default_value = "facts,model,clock")]
    pub level: String,

    /// The number of keys that are loaded, instead of the experiment's own
    #[arg(long, value_name = "N")]
    pub keys: Option<String>,

    /// Takes a sixteenth of the keys, a model whose last-level cache is a sixteenth (and, for the
    /// experiments about the TLB, whose second TLB level is a sixteenth), and runs of 10 ms
    #[arg(long)]
    pub quick: bool,

    /// The machine of the model, one of those of `silvics inspect`, instead of the source's
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// Measures Erlang's tables, too, in the experiments of `ets`. It needs `escript` (Debian:
    /// `apt-get install erlang-base`)
    #[arg(long)]
    pub with_erlang: bool,

    /// Judges memtable/2.3 by this file of runs of `db_bench`, which
    /// `crates/rocksdb/db_bench.sh --json FILE` writes
    #[arg(long, value_name = "FILE")]
    pub db_bench: Option<std::path::PathBuf>,

    #[command(flatten)]
    #[serde(flatten)]
    pub sync: SyncArgs,

    /// Loads a trie, and does nothing else: for children of trie/3.2 and trie/3.4, under tools that
    /// count what a process does
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub load_only: Option<String>,

    /// Writes the maps of trie/3.6 into a file, as SVG
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub svg: Option<std::path::PathBuf>,

    /// Writes the results into one HTML file that needs no other file: claims, evidence, verdicts,
    /// and what cannot be shown here
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub html: Option<std::path::PathBuf>,

    #[command(flatten)]
    #[serde(skip)]
    pub part: ShardArgs,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table, or json: an object for each experiment, on a line of its own
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    #[serde(skip, default = "table")]
    pub format: String,
}

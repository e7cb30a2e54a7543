//! The flags of `silvics store`.

use crate::flags::args::PlaceArgs;
use crate::flags::shard::{ShardArgs, table};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct StoreArgs {
    #[command(subcommand)]
    pub benchmark: StoreBenchmark,
}

#[derive(Debug, Subcommand)]
pub enum StoreBenchmark {
    /// Runs YCSB on the transactional store, and on other databases
    #[command(subcommand)]
    Ycsb(YcsbVerb),
    /// Runs TPC-C on the transactional store
    #[command(subcommand)]
    Tpcc(TpccVerb),
}

#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum YcsbVerb {
    /// Loads the records, and measures that
    Load(Box<YcsbArgs>),
    /// Loads the records, and measures the operations
    Run(Box<YcsbArgs>),
}

/// The databases to be measured.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ContenderArgs {
    /// The indexes: map (the structure words), peer:NAME, or structures of `silvics list`, each
    /// also in one of the variants listed there, as occ-avl:baseline; also the group bst, and
    /// databases: db:sqlite, db:redb, db:surrealmx (feature `databases`). Ratios are to the first
    #[arg(long, value_name = "NAME,…", default_value = "map")]
    pub index: String,

    /// The concurrency control: optimistic, no-wait, wait-die
    #[arg(long, value_name = "POLICY,…", default_value = "optimistic")]
    pub policy: String,

    /// The layout of rows: inline; study (a row, its columns, a wrapper and a lock of 48 bytes are
    /// objects of their own, and a key leads to a list), study-padded (with locks of 192 bytes)
    #[arg(long, value_name = "LAYOUT,…", default_value = "inline")]
    pub row_layout: String,

    /// Takes rows from the heap of the index's nodes, so that they lie between nodes. Needs a
    /// placement with a heap
    #[arg(long)]
    pub mixed: bool,

    #[command(flatten)]
    #[serde(flatten)]
    pub place: PlaceArgs,
}

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct YcsbArgs {
    /// A property file of YCSB, such as workloads/workloada. Later files override earlier ones
    #[arg(short = 'P', long = "properties", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A property of YCSB, which overrides the files: `-p recordcount=1M`
    #[arg(short = 'p', long = "property", value_name = "NAME=VALUE")]
    pub properties: Vec<String>,

    /// The properties of the files, in the file of a part: `silvics collect` does not read files.
    #[arg(skip)]
    #[serde(default)]
    pub from_files: Option<Vec<String>>,

    /// Runs the YCSB of the ATC'18 study instead: 16 requests of distinct rows per transaction, 10
    /// % updates, a Zipf exponent of 0.6. The run stops when the first thread finishes. The study's
    /// database also needs `--policy no-wait --row-layout study-padded --placement size-class
    /// --mixed`, and one of its trees as `--index`
    #[arg(long, conflicts_with_all = ["files", "properties", "transaction", "seconds"])]
    pub study: bool,

    /// The rows of the study's table [default: 10M]
    #[arg(long, value_name = "N", requires = "study")]
    pub rows: Option<String>,

    /// The transactions of each thread in the study [default: 100k]
    #[arg(long, value_name = "N", requires = "study")]
    pub transactions: Option<String>,

    #[command(flatten)]
    #[serde(flatten)]
    pub contenders: ContenderArgs,

    /// Threads, each pinned to a core [default: one per core]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// The operations of a transaction
    #[arg(long, value_name = "N", default_value = "1")]
    pub transaction: String,

    /// Transactions that only read look their keys up by `get_many`
    #[arg(long)]
    pub get_many: bool,

    /// Ends each run after S seconds, instead of operationcount
    #[arg(long, value_name = "S")]
    pub seconds: Option<String>,

    /// Measures a lookup of each index alone, with the same keys, and a dependent cache miss.
    /// Prints both, the time of an operation, and the rest of it
    #[arg(long)]
    pub costs: bool,

    /// Keeps a log of each store in this folder, which must be empty or new. A transaction ends
    /// when its record is in the log, and synced. The logs stay there
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub log: Option<PathBuf>,

    /// Runs transactions of one thread through a model of a machine, and prints how many
    /// translations and cache lines a transaction misses: haswell, abu-dhabi, i7-2630qm, i7-4770,
    /// sapphire-rapids, zen4, graviton3, host (this one)
    #[arg(long, value_name = "MACHINE")]
    pub model: Option<String>,

    /// The number of rounds [default: 3; 1 with `--format ycsb`, which adds them up]
    #[arg(long, value_name = "R")]
    pub rounds: Option<String>,

    #[command(flatten)]
    #[serde(skip)]
    pub part: ShardArgs,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,

    /// table, json, csv, or ycsb (the lines that YCSB prints, of one result)
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    #[serde(skip, default = "table")]
    pub format: String,
}

#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum TpccVerb {
    /// Loads the tables, and measures that
    Load(Box<TpccArgs>),
    /// Loads the tables, and measures the transactions
    Run(Box<TpccArgs>),
    /// Loads the tables, measures the transactions, checks that they have a serial order, and
    /// checks the consistency conditions after the load and after each round
    Check(Box<TpccArgs>),
}

impl TpccVerb {
    /// The flags.
    pub fn args(&self) -> &TpccArgs {
        match self {
            Self::Load(args) | Self::Run(args) | Self::Check(args) => args,
        }
    }
}

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(allow_negative_numbers = true, args_override_self = true)]
pub struct TpccArgs {
    /// The number of warehouses [default: one for each thread]
    #[arg(long, value_name = "N")]
    pub warehouses: Option<String>,

    /// Keeps the database in this folder, as a log and checkpoints, and works on the one that is
    /// there: `load` needs an empty folder, the other verbs a database that was loaded. A
    /// transaction ends when its record is in the log, and synced
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub data: Option<PathBuf>,

    /// The terminals of each thread in a run with `--data`, at most 16: the thread makes one
    /// transaction for each, and then waits until the records of all are synced [default: 10]
    #[arg(long, value_name = "N")]
    pub terminals: Option<String>,

    /// The transactions: standard (all five, 45 % new orders and 43 % payments), half (the ATC'18
    /// study's half new orders and half payments, for which an index need not scan)
    #[arg(long, value_name = "MIX", default_value = "standard")]
    pub mix: String,

    #[command(flatten)]
    #[serde(flatten)]
    pub contenders: ContenderArgs,

    /// Threads, each pinned to a core [default: one per core]
    #[arg(long, value_name = "N,…")]
    pub threads: Option<String>,

    /// Ends each run after S seconds [default: 2]
    #[arg(long, value_name = "S", conflicts_with = "transactions")]
    pub seconds: Option<String>,

    /// Ends each run when each thread has made N transactions
    #[arg(long, value_name = "N")]
    pub transactions: Option<String>,

    /// The number of rounds [default: 3; 1 for a load with `--data`]
    #[arg(long, value_name = "R")]
    pub rounds: Option<String>,

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

    /// Loads a small database with 1000 items and 60 customers in a district, for tests
    #[arg(long)]
    pub reduced: bool,
}

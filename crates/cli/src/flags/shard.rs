//! The flags of a part of a campaign, and of `silvics collect`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
pub struct ShardArgs {
    /// Measures a part of all configurations, such as 2/4 for the second of four parts, and writes
    /// them to the file of --out. `silvics collect` makes one result of all parts
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,

    /// The file of a part: a line of JSON for each configuration, as soon as it is measured. With
    /// the same command line again, the part goes on where it was
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub struct CollectArgs {
    /// The files of all parts
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The format that the verb of the parts has, such as table, json or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: String,

    /// Writes the page that the verb of the parts has: one HTML file that needs no other file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The default of `--format`, for flags that are read from the file of a part.
pub fn table() -> String {
    "table".into()
}

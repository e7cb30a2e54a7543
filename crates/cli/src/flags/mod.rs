//! The command line: flags, their values, and the errors that wrong ones lead to.
//!
//! | module | holds |
//! |---|---|
//! | `advise` | the flags of `silvics advise` |
//! | `args` | the verbs and flags, with their help |
//! | `bench` | the flags of `silvics bench` |
//! | `error` | every error of the command, with its message and exit code |
//! | `install` | the flags of `silvics completions` and `silvics man` |
//! | `memtable` | the flags of `silvics memtable` |
//! | `place` | `--placement`, `--pages` and how pools are tuned |
//! | `reproduce` | the flags of `silvics reproduce` |
//! | `shard` | `--shard` and `--out`, and the flags of `silvics collect` |
//! | `site` | the machine that a plan is made for |
//! | `source` | `--keyset`, `--key-file`, `--key-format` and `--key-type` |
//! | `store` | the flags of `silvics store` |
//! | `sync` | `--sync` and `--fallback` |
//! | `types` | the types of keys and values that flags name |
//! | `units` | numbers with units, as people write them |
//! | `values` | numbers and lists of them |

pub mod advise;
pub mod args;
pub mod bench;
pub mod error;
pub mod install;
pub mod memtable;
pub mod place;
pub mod reproduce;
pub mod shard;
pub mod site;
pub mod source;
pub mod store;
pub mod sync;
pub mod types;
pub mod units;
pub mod values;

//! Workloads: the keys that a benchmark touches, their order, and the operations on them.
//!
//! This crate knows no index. A workload speaks of *positions* `0..len` in a *key space* of `len`
//! keys, about half of which are present at any time. [`WordKeys`] and [`ByteKeys`] turn a position
//! into a key. So every distribution works on generated integers, key sets and the lines of a file.
//!
//! * [`Dist`]: the key distributions, as the command line names them.
//! * [`Choice`]: the choice of keys of one experiment. It defines the order of the load
//!   ([`Choice::load_part`]) and each thread's operations ([`Choice::stream`]).
//! * [`Mix`]: the shares of lookups, inserts, removals, scans and upserts.
//! * [`Stream`]: fills blocks with operations, at a cost of a few nanoseconds each.
//! * [`KeySet`]: words, UUIDs, email addresses and URLs, made from a seed.
//! * [`keyfile`]: keys from a file of lines or in the SOSD format.
//! * [`trace`]: the keys and operations in a trace of a map.
//! * [`ycsb`]: YCSB's core workloads, read from its property files, and the YCSB of the ATC'18
//!   study. It has records and distributions of its own.
//! * [`tpcc`]: the rows with which the tables of TPC-C are loaded, and the inputs of its
//!   transactions.
//!
//! # Guarantees
//! The operations depend only on the seed, never on the number of contenders or on the machine. A
//! recorded seed keeps its meaning in later versions.
//!
//! ```
//! use silvics_workload::{Block, Choice, Dist, Mix, Op, Share, WordKeys};
//!
//! // A key space of 2000 keys; two threads load 1000 of them.
//! let keys = WordKeys::dense(2000);
//! let choice = Choice::new(Dist::Uniform, keys.len(), 42);
//! let loaded: Vec<u64> = (0..2)
//!     .flat_map(|thread| choice.load_part(Share { thread, threads: 2 }))
//!     .map(|position| keys.key(position))
//!     .collect();
//! assert_eq!(loaded.len(), 1000);
//!
//! // The first operations of a thread that runs alone.
//! let mix: Mix = "90/5/5".parse()?;
//! let mut stream = choice.stream(mix, 0, Share::ALONE, choice.start());
//! let mut block = Block::new(1);
//! stream.fill(&mut block);
//! for (op, range) in block.runs() {
//!     assert!(matches!(op, Op::Lookup | Op::Insert | Op::Remove));
//!     let keys = block.positions()[range].iter().map(|&position| keys.key(position));
//!     assert!(keys.into_iter().all(|key| (1..=2000).contains(&key)));
//! }
//! # Ok::<(), silvics_workload::MixError>(())
//! ```

pub mod keyfile;
pub mod tpcc;
pub mod trace;
pub mod ycsb;

mod bijection;
mod choice;
mod dist;
mod keys;
mod keyset;
mod latest;
mod mix;
mod recorded;
mod stream;

pub use bijection::{Scramble, hash63};
pub use choice::{Choice, LoadPart, Share};
pub use dist::{Dist, DistError, ZIPF_EXPONENT_MAX};
pub use keys::{
    ByteKeys, Longest, WideKeys, WordKeys, byte_hash, draw, wide_value, widened, word_value,
};
pub use keyset::{KeySet, KeySetError};
pub use mix::{Mix, MixError, Op};
pub use stream::{BLOCK_OPS, Block, Positions, Stream, Window};

/// The most keys of a key space: positions are 32-bit words.
pub const KEYS_MAX: usize = 1 << 32;

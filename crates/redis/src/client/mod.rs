//! One large map over many nodes of a cluster, and a cursor over it in key order.
//!
//! A cluster places whole Redis keys on its nodes, so one map is on one node. A map that is too
//! large for a node is split into *shards*: maps with names such as `orders:{00}` … `orders:{15}`.
//! The braces are the hash tag of the name, so the cluster spreads the shards over its slots.
//! There are two ways to decide which shard has a key:
//!
//! | split by | find the shard of a key | read a range in key order |
//! |---|---|---|
//! | hash of the key | [`Shards::map_of`] | [`Merge`] reads all shards and merges them |
//! | range of keys | your table of boundaries | one shard after the other, no merge |
//!
//! A split by hash spreads any keys evenly and needs no table, but each range reads every shard.
//! A split by ranges reads few shards for a short range. Your program keeps its sorted boundaries,
//! and finds the shard with `boundaries.partition_point(|first| first <= key)`. To read a range
//! there, scan the shards it touches in order, each by [`Scan::over`] with one name. New keys that
//! all come at the end go to one shard, and a shard that grows has to be split by your program.
//!
//! # Example
//!
//! ```no_run
//! use redis::cluster::ClusterClient;
//! use silvics_redis::client::Shards;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = ClusterClient::new(["redis://127.0.0.1:7000/"])?;
//! let mut connection = client.get_connection()?;
//! let orders = Shards::new("orders", 16)?;
//!
//! // A write goes to the shard of its key.
//! let key = b"2024-05-01/17";
//! redis::cmd("OM.SET").arg(orders.map_of(key)).arg(key).arg("paid").exec(&mut connection)?;
//!
//! // A scan reads all shards, and returns the entries in key order.
//! for entry in orders.scan().prefix(b"2024-05").merge(&mut connection) {
//!     let (key, value) = entry?;
//!     println!("{} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `mod.rs` | [`Shards`]: names of shards, and the shard of a key |
//! | `scan.rs` | [`Scan`]: the options of a scan; [`Pages`]: the source of its pages |
//! | `merge.rs` | [`Merge`]: the cursor, with its guarantee |

use std::fmt;

mod merge;
mod scan;

pub use merge::Merge;
pub use scan::{Entry, Page, Pages, Reconnecting, Scan};

/// The names of the shards of one map that is split by the hash of its keys.
///
/// The shard of a key is CRC16(key) modulo the number of shards. The CRC is CRC-16/XMODEM
/// (polynomial 0x1021, start value 0), which the cluster also uses for its slots, so clients in
/// other languages have it. It covers the whole key: a `{tag}` in a key has no meaning here. This
/// rule is fixed: it is the same in all versions of this crate.
///
/// The number of shards is part of the layout of your data. With another number, most keys belong
/// to another shard, so to change it you have to copy all entries.
///
/// # Example
///
/// ```
/// use silvics_redis::client::Shards;
///
/// let orders = Shards::new("orders", 16)?;
/// assert_eq!(orders.names().first().map(String::as_str), Some("orders:{00}"));
/// assert_eq!(orders.map_of(b"123456789"), "orders:{03}"); // CRC16 is 0x31C3
/// # Ok::<(), silvics_redis::client::ShardsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// At least one.
    names: Vec<String>,
}

impl Shards {
    /// The largest number of shards: the number of slots of a cluster.
    pub const MOST: usize = 16_384;

    /// Names `count` shards of the map `name`: `name:{00}`, `name:{01}`, and so on.
    ///
    /// Each number has as many digits as the largest one, and at least two. The cost is one
    /// allocation per shard.
    ///
    /// # Errors
    ///
    /// [`ShardsError::Count`] if `count` is 0 or larger than [`MOST`](Self::MOST), and
    /// [`ShardsError::Brace`] if `name` contains `{`, because the cluster would take the hash tag
    /// from the name.
    pub fn new(name: &str, count: usize) -> Result<Self, ShardsError> {
        if count == 0 || count > Self::MOST {
            return Err(ShardsError::Count { count });
        }
        if name.contains('{') {
            return Err(ShardsError::Brace { name: name.to_owned() });
        }
        let digits = (count - 1).to_string().len().max(2);
        let names = (0..count).map(|shard| format!("{name}:{{{shard:0digits$}}}")).collect();
        Ok(Self { names })
    }

    /// The names of all shards, by their numbers. The slice is not empty.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the shard that `key` belongs to. The cost is one step per byte of the key.
    pub fn shard_of(&self, key: &[u8]) -> usize {
        usize::from(crc16(key)) % self.names.len()
    }

    /// The name of the shard that `key` belongs to: the first argument of each command on this
    /// key. The cost is that of [`shard_of`](Self::shard_of).
    pub fn map_of(&self, key: &[u8]) -> &str {
        &self.names[self.shard_of(key)]
    }

    /// A scan over all shards, at first of all keys in ascending order.
    pub fn scan(&self) -> Scan {
        Scan::over(self.names.iter().cloned())
    }
}

/// The reason for which shards cannot be named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardsError {
    /// The number of shards is 0 or too large.
    Count {
        /// The number.
        count: usize,
    },
    /// The name contains a brace.
    Brace {
        /// The name.
        name: String,
    },
}

impl fmt::Display for ShardsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { count } => {
                write!(f, "a map cannot have {count} shards: choose 1 to {}", Shards::MOST)
            }
            Self::Brace { name } => write!(
                f,
                "the name `{name}` contains a brace, from which the cluster would take the hash \
                 tag of all shards: choose a name without braces"
            ),
        }
    }
}

impl std::error::Error for ShardsError {}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        let index = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ CRC16[index]
    })
}

/// The CRC of each byte.
const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

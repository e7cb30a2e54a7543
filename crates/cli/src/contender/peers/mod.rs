//! Peers: the concurrent ordered maps of other crates, each behind [`Contender`].
//!
//! Each crate has a file. Its module docs say which documented use of the crate was chosen and why,
//! what this costs, and what is known to be wrong with the version used. If a crate documents
//! several uses, the fastest that gives right answers was chosen. Three rules hold for all:
//!
//! * **Guards are kept.** A guard, pin or handle that the crate lets its user keep over many calls
//!   lives in the session and is renewed by `refresh`.
//! * **Lookups and removals do not allocate**: keys are stored owned and looked up borrowed.
//! * **The answers are the map's.** Some crates' usual call does not say whether it inserted or
//!   removed the key. Then another documented call is used that does.
//!
//! | peer | keys | scans | known faults |
//! |---|---|---|---|
//! | `arctic-map` | `u64`, `u128`, bytes | yes | `remove` panics: not used |
//! | `artmap` | any | yes | – |
//! | `btreemap-rwlock` | any | snapshots | – |
//! | `crossbeam-skiplist` | any | yes | `remove` answers twice: not used |
//! | `congee` | `u64` | yes | – |
//! | `scc` | any | yes | – |
//! | `masstree` | `u64`, bytes up to 256 | `u64` only | scans and removals under writes; zero bytes |
//! | `concurrent-map` | `u64`, bytes | yes | – |
//! | `ferntree` | `u64`, bytes | yes | racing inserts into a full leaf |

pub mod arctic_map;
pub mod artmap;
pub mod btreemap;
pub mod concurrent_map;
pub mod congee;
pub mod crossbeam;
pub mod ferntree;
pub mod masstree;
pub mod recorded;
pub mod scc;

#[cfg(test)]
mod tests;

pub use self::arctic_map::ArcticMap;
pub use self::artmap::Artmap;
pub use self::btreemap::BtreeMapRwLock;
pub use self::concurrent_map::ConcurrentMap;
pub use self::congee::Congee;
pub use self::crossbeam::CrossbeamSkiplist;
pub use self::ferntree::Ferntree;
pub use self::masstree::Masstree;
pub use self::recorded::Recorded;
pub use self::scc::SccTreeIndex;

use crate::contender::Contender;
use silvics::IndexKey;
use std::borrow::Borrow;

/// The facts about a peer in the catalogue. `default()` is an empty map.
pub trait Peer: Contender + Default {
    /// Its name on the command line, without `peer:`.
    const NAME: &'static str;
    /// The crate it comes from, with the version.
    const CRATE: &'static str;
    /// The publication it follows by its own account; empty if it names none.
    const PAPER: &'static str;
    /// Its topology.
    const TOPOLOGY: &'static str;
    /// How its readers and writers synchronise.
    const SYNC: &'static str;
    /// Whether sessions may be asked to scan. Differs between key types for `masstree`.
    const SCANS: bool;
    /// The longest byte string it takes as a key; `None` if there is no limit, or if its keys are
    /// integers. A longer one makes it panic.
    const MAX_KEY_BYTES: Option<usize>;
}

/// A key that can be borrowed as the `&Q` of `Borrow`-style signatures.
pub trait PeerKey: IndexKey<Owned: Borrow<Self>> + Ord {
    /// The key behind a reference.
    fn lend<'a>(key: &'a Self::Ref<'_>) -> &'a Self;
}

impl PeerKey for u64 {
    #[inline(always)]
    fn lend(key: &u64) -> &u64 {
        key
    }
}

impl PeerKey for [u8] {
    #[inline(always)]
    fn lend<'a>(key: &'a &[u8]) -> &'a [u8] {
        key
    }
}

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
//! | `artmap-versioned` | any | yes | – |
//! | `btreemap-rwlock`, `btreemap-mutex` | any | snapshots | – |
//! | `crossbeam-skiplist` | any | yes | `remove` answers twice: not used |
//! | `congee` | `u64` | yes | – |
//! | `scc` | any | yes | – |
//! | `masstree` | `u64`, bytes up to 256 | `u64` only | scans and removals under writes; zero bytes |
//! | `concurrent-map` | `u64`, bytes | yes | – |
//! | `ferntree` | `u64`, bytes | yes | racing inserts into a full leaf, racing removals of byte strings |

pub mod arctic_map;
pub mod artmap;
pub mod artmap_versioned;
pub mod btreemap;
pub mod concurrent_map;
pub mod congee;
pub mod crossbeam;
pub mod ferntree;
pub mod key;
pub mod masstree;
pub mod scc;

#[cfg(test)]
mod tests;

pub use self::arctic_map::ArcticMap;
pub use self::artmap::Artmap;
pub use self::artmap_versioned::ArtmapVersioned;
pub use self::btreemap::{BtreeMapMutex, BtreeMapRwLock};
pub use self::concurrent_map::ConcurrentMap;
pub use self::congee::Congee;
pub use self::crossbeam::CrossbeamSkiplist;
pub use self::ferntree::Ferntree;
pub use self::masstree::Masstree;
pub use self::scc::SccTreeIndex;

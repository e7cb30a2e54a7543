//! Ordered in-memory indexes for many cores, with their memory layout under the user's control.

pub mod art;
mod batch;
pub mod bst;
#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(unreachable_pub)] // public with the feature
mod canary;
mod cursor;
pub mod domain;
pub mod error;
pub mod index;
pub mod key;
pub mod map;
mod memory;
#[cfg(silvics_shuttle)]
mod model_epoch;
pub mod skiplist;
pub mod update;

pub use art::ArtTree;
pub use bst::bronson::{BronsonTree, FrozenTree};
pub use bst::citrus::CitrusTree;
pub use bst::drachsler::DrachslerTree;
pub use bst::ellen::EllenTree;
pub use bst::howley::HowleyTree;
pub use bst::natarajan::NatarajanTree;
pub use bst::ramachandran::RamachandranTree;
pub use bst::ticket::TicketTree;
pub use cursor::KeyCursor;
pub use domain::{Domain, Guard};
pub use error::{
    AllocError, BulkLoadError, CompareExchangeError, InsertManyError, TryInsertError, Violation,
};
pub use index::{
    Check, Compression, Cursor, KeyRef, Objects, Options, OrderedEnds, OrderedIndex, OrderedScan,
    OwnedKey, Pinned,
};
pub use key::{AsKey, AsPrefix, IndexKey, Key};
pub use map::{Map, Set, ValueGuard, ValueRef, View};
#[cfg(feature = "derive")]
pub use silvics_derive::Key;
pub use silvics_pool::{
    Budget, Heap, Pages, Placement, PoolStats, Pooled, Recorded, Shared, SizeClassHeap, Tuning,
    TuningError,
};
pub use skiplist::SkipList;
pub use update::Update;

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

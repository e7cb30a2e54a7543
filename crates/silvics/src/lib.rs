//! Ordered in-memory indexes for many cores, with their memory layout under the user's control.
//!
//! [`Map`] and [`Set`] are the everyday face: keys and values of any type, every method by `&self` from any thread. Under them
//! are the indexes of the literature behind one contract, [`OrderedIndex`], for whoever builds a structure of their own.
//!
//! ```
//! use silvics::Map;
//!
//! let temperatures: Map<(String, u64), f32> = Map::new();
//! temperatures.insert(("attic", 1000), 21.5);
//! temperatures.insert(("attic", 1060), 22.0);
//! temperatures.insert(("cellar", 1000), 12.25);
//!
//! let view = temperatures.pin(); // one pin for many calls
//! assert_eq!(view.get(("attic", 1060)).as_deref(), Some(&22.0));
//! let warmest = view.prefix(("attic",)).map(|(_, value)| *value).fold(f32::MIN, f32::max);
//! assert_eq!(warmest, 22.0);
//! ```
//!
//! # What is guaranteed
//! **Each operation is one moment.** Point operations are linearizable: each takes effect at one moment between its call and
//! its return, and all threads agree on the order of these. So does what decides on what it finds: [`compute`](map::View::compute),
//! [`update`](map::View::update), [`remove_if`](map::View::remove_if), [`compare_exchange`](map::View::compare_exchange), also for a key that is
//! absent, and [`first`](map::View::first), [`last`](map::View::last), [`pop_first`](map::View::pop_first), [`pop_last`](map::View::pop_last).
//!
//! ```
//! use silvics::Map;
//! use silvics::map::{Compute, Operation};
//!
//! let stock: Map<String, u32> = [("tea", 100)].into_iter().collect();
//! let sell = || {
//!     let take = |left: Option<&u32>| match left {
//!         Some(left) if *left > 0 => Operation::Insert(left - 1),
//!         _ => Operation::Abort(()),
//!     };
//!     (0..70).filter(|_| matches!(stock.compute("tea", take), Compute::Updated { .. })).count()
//! };
//! let sold: usize = std::thread::scope(|scope| {
//!     let sellers = [scope.spawn(sell), scope.spawn(sell)];
//!     sellers.into_iter().map(|seller| seller.join().unwrap()).sum()
//! });
//! assert_eq!(sold, 100); // none sold twice
//! assert_eq!(*stock.get("tea").unwrap(), 0);
//! ```
//!
//! **Scans are not one moment**, and say what they see: keys in strict order, none twice; each that is there throughout;
//! none that is absent throughout. [`get_many`](map::View::get_many), [`extend`](map::View::extend) and their like are as many moments as entries.
//!
//! **What is lent stays.** A value or key that a [`View`] has lent can be read as long as the view lives, removed or not: removed
//! entries are freed when no pin of before is left. That is why a pin is for a batch of calls and not for hours. A
//! [`Cursor`](map::Cursor) holds none between calls; an [`OwnedView`](map::OwnedView) can be held across an `await`.
//!
//! ```
//! use silvics::Map;
//!
//! let map: Map<u64, String> = [(1, "one".to_string())].into_iter().collect();
//! let view = map.pin();
//! let one = view.get(1).unwrap();
//! map.remove(1);
//! assert!(!view.contains_key(1));
//! assert_eq!(&*one, "one");
//! ```
//!
//! **Memory is counted, limited and given back.** [`Map::bytes`] is exact and O(1); a map with a
//! [limit](map::Builder::memory_limit) refuses with an error what does not fit, gives it back, and goes on; [`Map::shrink`] returns what is free;
//! a map that is dropped returns everything.
//!
//! ```
//! use silvics::{AllocError, Map};
//!
//! let map: Map<u64, Vec<u8>> = Map::builder().memory_limit(1 << 20).build()?;
//! let rejected = (0..).find_map(|n| map.try_upsert(n, vec![0; 8]).err()).unwrap();
//! assert!(matches!(rejected.error, AllocError::Limit { .. }));
//! assert_eq!(rejected.value, [0; 8]);
//! assert!(map.bytes() <= 1 << 20);
//! map.remove(0);
//! # Ok::<(), AllocError>(())
//! ```
//!
//! **Progress.** With the default index lookups of a [`View`] are wait-free, write nothing that others read, and allocate nothing. Writers lock
//! the node they change, for as long as that takes. User code runs under no lock of ours. To pin, as calls of the map itself do each time, drops a few
//! values that were removed before, if their types have destructors and any are due.
//!
//! # Which structure
//! | workload | take | why |
//! |---|---|---|
//! | almost any | `Map<K, V>`, over [`ArtTree`] | a lookup reads three or four lines of a million integers, where skip lists and binary trees read twenty nodes; measured fastest of all here in lookups, updates and integer scans |
//! | long strings that are scanned more than looked up | measure: a `BTreeMap` under an `RwLock` scans faster | each key is a leaf of its own |
//! | byte strings in little memory, writers that never wait | `Map<K, V, SkipList<[u8]>>` | a node is the key and some 28 bytes; lock-free |
//! | integers, writers that never wait | `Map<K, V, NatarajanTree>`, `SkipList<u64>` | lock-free, small nodes; the tree is not balanced |
//! | integers in sorted order, binary tree | [`BronsonTree`] | relaxed AVL; without scans, so not under a map |
//! | read-only after a load | [`FrozenTree`], or a map of [sorted entries](map::Builder::from_sorted) | no guards; built bottom-up |
//! | an ordered set | [`Set`] | a map without values |
//! | words under keys, with guards in sight | an [`OrderedIndex`] | no values to look after |
//!
//! The default was chosen by measurement among all indexes here that scan: the one with the most lookups and updates at 1 and 10 million
//! integers, dense and sparse, and at two million paths, and the fewest bytes per integer.
//!
//! # Features
//! | feature | default | what |
//! |---|---|---|
//! | `derive` | yes | `#[derive(Key)]` for structs and enums |
//! | `serde` | no | `Serialize` and `Deserialize` of maps and sets |
//! | `rayon` | no | `par_iter` and `par_range` of [`Map::pin_owned`] |

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
pub mod dynamic;
mod encoding;
pub mod error;
pub mod frame;
pub mod index;
pub mod key;
pub mod map;
mod memory;
#[cfg(silvics_shuttle)]
mod model_epoch;
mod pinned;
pub mod skiplist;
pub mod structures;
pub mod update;

pub use art::{ArtTree, Compression};
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
pub use frame::Index;
pub use index::{
    Batches, Check, Create, Cursor, KeyRef, Lookup, Objects, Options, OrderedEnds, OrderedIndex,
    OrderedScan, OwnedKey,
};
pub use key::{AsKey, AsPrefix, IndexKey, Key};
pub use map::{Map, Set, ValueGuard, ValueRef, View};
pub use pinned::{PinIndex, Pinned};
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

//! Ordered in-memory indexes for many cores, with their memory layout under the user's control.
//!
//! Use [`Map`] and [`Set`] for everyday work. Keys have any type with an order-preserving encoding
//! ([`Key`]): numbers, strings, tuples, structs that derive it. Values have any type that threads
//! can share. Every method takes `&self`, on any thread. To build your own structure, use the
//! indexes below them directly: they map keys to 8-byte words behind one contract,
//! [`OrderedIndex`], and you manage the guards.
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
//! # Guarantees
//! **One operation is atomic.** Every operation on one key is linearizable: it takes effect at one
//! moment between its call and its return, and all threads agree on the order of these moments.
//! This includes the operations that decide by what they find: [`compute`](map::View::compute),
//! [`update`](map::View::update), [`remove_if`](map::View::remove_if),
//! [`compare_exchange`](map::View::compare_exchange) (also for an absent key),
//! [`first`](map::View::first), [`last`](map::View::last), [`pop_first`](map::View::pop_first) and
//! [`pop_last`](map::View::pop_last).
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
//! **Two operations are not atomic.** Another thread may write between them. In this example the
//! second assertion may fail, because the key may be removed after the first one:
//!
//! ```no_run
//! use silvics::Map;
//!
//! let map: Map<u64, u64> = [(1, 10)].into_iter().collect();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| drop(map.remove(1)));
//!     if map.contains_key(1) {
//!         // This assertion may fail: the key may be gone by now.
//!         assert!(map.get(1).is_some());
//!     }
//!     // One call is enough, and its result stays valid.
//!     if let Some(value) = map.get(1) {
//!         assert_eq!(*value, 10);
//!     }
//! });
//! ```
//!
//! **Scans and batches are not atomic.** [`View::range`](map::View::range) says what a scan
//! guarantees. [`get_many`](map::View::get_many), [`extend`](map::View::extend) and
//! [`insert_many`](map::View::insert_many) are as many operations as they have entries, each atomic
//! by itself.
//!
//! **References stay valid while the view lives.** A value or key that a [`View`] has returned can
//! be read while the view lives, even if it is removed from the map. Removed entries are freed once
//! every pin taken before the removal is gone. So hold a view for a batch of calls, and not for
//! hours. A range of [`Map::range_owned`](map::Map::range_owned) and a [`Cursor`](map::Cursor) hold
//! no pin between calls. An [`OwnedView`](map::OwnedView), its ranges and its values may be held
//! across an `await`.
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
//! **Memory is counted, limited and returned.** [`Map::bytes`] is exact and O(1). A map with a
//! [limit](map::Builder::memory_limit) refuses an entry that does not fit: the error returns the
//! value, and the map remains usable. The limit covers nodes, keys and values, but no memory that a
//! value points to, such as the buffer of a `Vec`. [`Map::shrink`] returns free memory to the
//! system, and dropping the map returns all of it.
//!
//! ```
//! use silvics::{AllocError, Map};
//!
//! let map: Map<u64, [u8; 64]> = Map::builder().memory_limit(1 << 20).build()?;
//! let rejected = (0..).find_map(|n| map.try_upsert(n, [7; 64]).err()).unwrap();
//! assert!(matches!(rejected.error, AllocError::Limit { .. }));
//! assert_eq!(rejected.value, [7; 64]);
//! assert!(map.bytes() <= 1 << 20);
//! map.remove(0);
//! # Ok::<(), AllocError>(())
//! ```
//!
//! **Progress.** With the default indexes, lookups of a [`View`] wait for no other thread and write
//! no shared memory. They allocate nothing, except that a thread's first key of several parts with
//! more than 128 bytes allocates a buffer, which the thread keeps. A writer that gives a present
//! integer key another value takes no lock. Other writers may lock what they change, for as long
//! as the change takes. User code runs under no lock of the library, with two exceptions: the
//! closure of [`RangeUpdates::update_range`] and the writer of [`Map::record`]. A method of the map
//! itself pins, and pinning may drop a few removed values whose types have destructors.
//!
//! # Which structure
//! | workload | use | reason |
//! |---|---|---|
//! | almost any | `Map<K, V>` | it takes one of the next two indexes, depending on its keys |
//! | integers | [`WordTree`] | a lookup reads one line of a leaf; scans read neighbours |
//! | byte strings, strings, tuples | [`BlockTree`] | a lookup misses the cache once or twice; scans read neighbours |
//! | dense integers in little memory | `Map<K, V, ArtTree<u64>>` | 23.5 bytes a key where words take 28 |
//! | paths, URLs | [`BlockTree`] of [`Prefixed`](key::Prefixed) keys | has a common prefix once in each block |
//! | entries in an arena, which contain their keys | [`blocks::EntrySet`] | 16 bytes for each entry |
//! | byte strings in little memory, writers that never wait | `Map<K, V, SkipList<[u8]>>` | a node is the key and some 28 bytes; lock-free |
//! | integers, writers that never wait | `Map<K, V, NatarajanTree>`, `SkipList<u64>` | lock-free, small nodes; the tree is not balanced |
//! | integers in sorted order, binary tree | [`BronsonTree`] | relaxed AVL; it has no scans, so it cannot be used by a map |
//! | integers that are only read after a load | [`FrozenTree`] | lookups take no guard and read no version |
//! | sorted entries, loaded at once | [`Map::from_sorted`](map::Map::from_sorted) | nodes as large as their contents |
//! | snapshots of all keys, and batches | [`VersionedMap`] | versions of each key, dropped when nobody can see them |
//! | ranks, counts of ranges | [`map::Builder::counted`] | counts of neighbouring keys beside the index |
//! | several values for a key | [`MultiMap`], [`MultiSet`] | a list of values behind the key, read atomically |
//! | an ordered set | [`Set`] | a map without values |
//! | keys without an encoding, an order chosen at run time | [`OrdMap`] | compares by `Ord` or a function |
//! | IP prefixes, longest-prefix match | `Lpm`, with the feature `lpm` | nodes that split 8 bits and never change |
//! | 8-byte words under keys, with explicit guards | an [`OrderedIndex`] | no memory for values |
//!
//! The table of [`key`] says which key types are integers in the index. The defaults were chosen by
//! measurement
//! (`docs/results/` of the repository): of all indexes that scan, they have the most lookups,
//! updates and scans.
//!
//! # Features
//! | feature | default | effect |
//! |---|---|---|
//! | `derive` | no | `#[derive(Key)]` for structs and enums |
//! | `serde` | no | `Serialize` and `Deserialize` of maps and sets |
//! | `bytes` | no | keys of type `bytes::Bytes` |
//! | `named` | no | `dynamic::Structure`: structures by their names at run time |
//! | `lpm` | no | `Lpm`: tables of IP prefixes with longest-prefix match |
//! | `uuid` | no | keys of type `uuid::Uuid` |
//! | `rayon` | no | `par_iter` and `par_range` of [`Map::pin_owned`]; maps and sets `collect` parallel iterators |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    silvics_shuttle,
    allow(
        clippy::absurd_extreme_comparisons,
        clippy::modulo_one,
        reason = "the model's sizes are so small that some comparisons are constant"
    )
)]

mod adaptation;
pub mod art;
mod batch;
pub mod blocks;
pub mod bst;
pub mod ca;
#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(unreachable_pub)] // public with the feature
mod canary;
mod compression;
pub mod counts;
mod cursor;
pub mod domain;
pub mod dynamic;
mod encoding;
pub mod error;
pub mod frame;
pub mod index;
pub mod key;
pub mod lfca;
#[cfg(feature = "lpm")]
pub mod lpm;
pub mod map;
mod memory;
#[cfg(silvics_shuttle)]
mod model_epoch;
pub mod patricia;
mod pinned;
pub mod recording;
pub mod skiplist;
pub mod structures;
mod threads;
pub mod update;
pub mod words;

pub use adaptation::{Adaptation, Adapts, BaseNode};
pub use art::{ArtKey, ArtTree, PathCompression};
pub use blocks::{BlockKey, BlockTree, PrefixCompression};
pub use bst::bronson::{BronsonTree, FrozenTree};
pub use bst::citrus::CitrusTree;
pub use bst::drachsler::DrachslerTree;
pub use bst::ellen::EllenTree;
pub use bst::howley::HowleyTree;
pub use bst::natarajan::NatarajanTree;
pub use bst::ramachandran::RamachandranTree;
pub use bst::ticket::TicketTree;
pub use ca::{CaKey, CaTree};
pub use compression::Compression;
pub use cursor::KeyCursor;
pub use domain::{Domain, Guard};
pub use error::{AllocError, BulkLoadError, InsertManyError, Violation};
pub use frame::Index;
pub use index::{
    AtomicRanges, Batches, Check, Create, KeyRef, Lookup, Objects, Options, OrderStatistics,
    OrderedEnds, OrderedIndex, OrderedScan, OwnedKey, RangeUpdates,
};
pub use key::{AsKey, AsPrefix, IndexKey, Key};
pub use lfca::LfcaTree;
#[cfg(feature = "lpm")]
pub use lpm::Lpm;
pub use map::multi::{self, MultiMap, MultiSet};
pub use map::ord::{self, OrdMap, OrdSet};
pub use map::versions::{self, VersionedMap};
pub use map::{CountedMap, Map, Set, ValueGuard, ValueRef, View};
pub use patricia::{PatriciaKey, PatriciaTree};
pub use pinned::{PinIndex, Pinned};
#[cfg(feature = "derive")]
pub use silvics_derive::Key;
pub use silvics_pool::{
    Budget, Heap, Pages, Placement, PoolStats, Pooled, Recorded, Shared, SizeClassHeap, Tuning,
    TuningError,
};
pub use silvics_sync::counter::Counting;
pub use skiplist::{SkipKey, SkipList};
pub use update::Update;
pub use words::{WordKey, WordTree};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the page for users of `crossbeam-skiplist`.
#[cfg(all(doctest, feature = "derive"))]
#[doc = include_str!("../../../docs/migrate-from-crossbeam.md")]
struct Migration;

/// The examples of the page for users of `RwLock<BTreeMap>`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrate-from-btreemap.md")]
struct FromBTreeMap;

/// The examples of the page for users of `congee`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrate-from-congee.md")]
struct FromCongee;

/// The examples of the page for users of `artmap`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrate-from-artmap.md")]
struct FromArtmap;

/// The examples of the page for users of `scc`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrate-from-scc.md")]
struct FromScc;

/// The examples of the page about ranks.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/ranks.md")]
struct Ranks;

/// The examples of the page about tables of IP prefixes.
#[cfg(all(doctest, feature = "lpm"))]
#[doc = include_str!("../../../docs/lpm.md")]
struct LongestPrefixMatch;

/// The examples of the page about maps with several values for a key.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/multimaps.md")]
struct Multimaps;

//! The maps and sets of [`crossbeam-skiplist`] 0.1, over a tree of `silvics`.
//!
//! The types have the same names, methods and bounds, and they behave in the same way, so a program
//! need not be changed: the package `crossbeam-skiplist` beside this one replaces that of the
//! registry.
//!
//! ```toml
//! [patch.crates-io]
//! crossbeam-skiplist = { path = "…/silvics/crates/skipmap/crossbeam-skiplist" }
//! ```
//!
//! ```
//! use silvics_skipmap::SkipMap;
//!
//! let map = SkipMap::new();
//! map.insert("ash", 1);
//! map.insert("beech", 2);
//! let ash = map.get("ash").expect("inserted");
//! map.remove("ash");
//! assert!(ash.is_removed() && *ash.value() == 1); // still readable
//! assert_eq!(ash.next().map(|entry| *entry.key()), Some("beech"));
//! ```
//!
//! # What it costs
//! Each entry that a method returns holds a count of its key and value, which other threads see.
//! So it may be kept, sent to another thread, and held across an `await`. A program that can be
//! changed is faster with [`silvics::Map`] or [`silvics::OrdMap`], whose lookups write nothing.
//!
//! # Differences
//! * The modules `base` and the type `SkipList` are not here: they take guards of
//!   `crossbeam-epoch`.
//! * An insertion of a present key replaces the entry in one step. A reader finds the old one or
//!   the new one. In `crossbeam-skiplist` it may find none.
//! * One thread gets a removed entry. In `crossbeam-skiplist` 0.1.3, several threads that remove a
//!   key at once may get the same entry.
//! * Ranges are `Send` and `Sync` only if keys, values and bounds are. A range that is kept has up
//!   to 32 entries at each end that it has not returned yet, so that these are not dropped.
//! * `Entry::remove` and `Entry::is_removed` look for the entry by its key. If the order of the
//!   keys is not total, or if keys change, they may not find it, and a range may return entries
//!   again and again.
//! * Keys and values may have an alignment of at most 4 KiB.
//! * A removal allocates memory: it copies a part of the tree. If that fails, the process ends.
//! * `into_iter` allocates 16 bytes for each entry.
//! * A comparison that panics leaves the map as it was. One that is not a total order leads to
//!   wrong results, but never to undefined behaviour; `crossbeam-skiplist` promises this, too.
//! * The oldest Rust is that of `silvics`, 1.88.
//!
//! [`crossbeam-skiplist`]: https://docs.rs/crossbeam-skiplist/0.1.3

pub mod map;
pub mod set;

pub use map::SkipMap;
pub use set::SkipSet;

//! The conformance suite that every index of silvics runs, with any topology and placement.
//!
//! A property is a generic function that returns an [`Outcome`]. [`index_suite!`] declares one test
//! per property for an index type. It hides the type behind a trait object ([`make`]), so that the
//! suite is compiled once for all types. The properties of [`lookups`] and the drop properties of
//! [`memory`] need a process of their own: small test files call them.
//!
//! | property | refutes |
//! |---|---|
//! | [`sequential`] | a verb that differs from `BTreeMap` in some state; an illegal key or value; a tree that degenerates |
//! | [`key_sum`] | lost and doubled inserts and removals, a wrong `len`, another key's value |
//! | [`presence`] | a lookup that misses a key which is only replaced, or moved, meanwhile |
//! | [`batches`] | a batch that differs from its calls one by one: at the edges of groups, with a key twice, among writers, when memory runs out in the middle |
//! | [`histories`] | a stale read, a lost update, a compare-exchange that is not atomic: any history of a key that no order explains ([`linearizable`]) |
//! | [`ranges`], [`cursors`] | entries skipped, doubled or out of order under writers; cursors that lose their place or hold a pin |
//! | [`ends`] | a first or last entry that never was one, two pops of one entry: any history of the whole map that no order explains |
//! | [`atomic_ranges`] | an atomic range that has other entries than a map; an update that a panic leaves half done. With [`histories`]: a range that is not atomic |
//! | [`memory`] | leaks under churn, by upserts and by threads that end; a single live object that nothing reaches |
//! | [`dropping`] | a drop that keeps memory |
//! | [`reclaim`] | garbage that grows while pins are short, or stays after a long one; scans and cursors that keep objects or pins |
//! | [`shrinking`] | a shrink that returns less memory than it reports, or memory that is in use |
//! | [`limit`] | an operation that is half done when memory runs out; freed memory that cannot be used again |
//! | [`faults`] | an operation that is half done after a failed or panicking allocation; a lock, a pin or an object kept on unwinding (placed on [`faulty`]) |
//! | [`guards`] | trust in a guard of another domain |
//! | [`lookups`] | lookups that write or allocate (own process) |
//!
//! [`verify`] records and checks histories for any length of time. It asks no more of an index than
//! the suite does, so you can check an index of your own with it.
//!
//! [`versions`] does so for maps with versions, with their snapshots and batches, and [`lists`] for
//! maps with several values for a key. [`serial`] does so for transactions.
//!
//! The suite is itself tested: each index of [`broken`] has one planted mistake, and the property
//! named beside it must refute it.
//!
//! | setting | does |
//! |---|---|
//! | build profile, Miri | choose the amount of work ([`size`]) |
//! | `SILVICS_HALVINGS`, when compiled | halves the amount of work this number of times |
//! | `SILVICS_CHURN_PAIRS` | insert/remove pairs of the churn properties |
//! | `SILVICS_SEED` | other random numbers |
//! | `PROPTEST_CASES` | has no effect: [`size`] chooses the number of cases |
//!
//! Under `--cfg silvics_shuttle` threads are simulated and these properties are absent. The crate
//! then has [`linearizable`], the modules that it needs, and `schedules`, which runs small
//! scenarios in many orders.

#![cfg(not(silvics_loom))]
// Only the suite uses these helpers.
#![cfg_attr(
    any(silvics_shuttle, not(feature = "suite")),
    allow(dead_code, unused_macros, unused_imports)
)]

pub mod clock;
#[cfg(not(silvics_shuttle))]
mod crew;
mod failure;
pub mod history;
mod keys;
pub mod linearizable;
#[cfg(not(silvics_shuttle))]
pub mod lists;
#[cfg(not(silvics_shuttle))]
pub mod make;
pub mod mapped;
pub mod ordmapped;
mod rest;
mod rng;
#[cfg(silvics_shuttle)]
pub mod schedules;
#[cfg(not(silvics_shuttle))]
pub mod serial;
pub mod size;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
mod suite;
#[cfg(not(silvics_shuttle))]
pub mod trace;
#[cfg(not(silvics_shuttle))]
pub mod verify;
#[cfg(not(silvics_shuttle))]
pub mod versions;

pub use failure::{Failure, Outcome, Resource};
pub use keys::{ScanSubject, Subject, TestKey};
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub use suite::*;

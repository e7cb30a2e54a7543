//! The conformance suite every index of silvics runs, whatever its topology and placement.
//!
//! A property is a generic function that returns an [`Outcome`]; [`index_suite!`] declares a test
//! per property for an index type, which it hides behind a trait object ([`make`]), so that the suite
//! is compiled once for all of them. Two properties need a process of their own and are called from
//! small test files instead.
//!
//! | property | refutes |
//! |---|---|
//! | [`sequential`] | a verb that differs from `BTreeMap` in some state; an illegal key or value; a tree that degenerates |
//! | [`key_sum`] | lost and doubled inserts and removals, a wrong `len`, another key's value |
//! | [`presence`] | a lookup that misses a key which is only replaced, or moved, meanwhile |
//! | [`batches`] | a batch that differs from its calls one by one: at the edges of groups, with a key twice, among writers, when memory runs out in the middle |
//! | [`histories`] | a stale read, a lost update, a compare-exchange that is none: any history of a key that no order explains ([`linearizable`]) |
//! | [`ranges`], [`cursors`] | entries skipped, doubled or out of order under writers; cursors that lose their place or hold a pin |
//! | [`ends`] | a first or last entry that never was one, two pops of one entry: any history of the whole map that no order explains |
//! | [`memory`] | leaks under churn, by upserts and by threads that end; a single live object that nothing reaches; a drop that keeps something |
//! | [`reclaim`] | garbage that grows while pins are short, or stays after a long one; scans and cursors that keep objects or pins |
//! | [`limit`] | an operation that memory running out leaves half done; memory that is not found again |
//! | [`faults`] | an operation that a failed or panicking allocation leaves half done; a lock, a pin or an object kept on unwinding (placed on [`faulty`]) |
//! | [`guards`] | trust in a guard of another domain |
//! | [`lookups`] | lookups that write or allocate (own process) |
//!
//! [`verify`] records and checks such histories for as long as wanted: it needs no more of an index
//! than the suite does, so that anyone can put an index of their own to it.
//!
//! The suite is itself tested: [`broken`] holds indexes with a planted mistake each, and the
//! property named beside each must refute it.
//!
//! | setting | does |
//! |---|---|
//! | build profile, Miri | choose the amount of work ([`size`]) |
//! | `SILVICS_HALVINGS`, when compiled | halves the amount of work so many times |
//! | `SILVICS_CHURN_PAIRS` | insert/remove pairs of the churn properties |
//! | `SILVICS_SEED` | other random numbers |
//! | `PROPTEST_CASES` | has no effect: the cases are chosen by [`size`] |
//!
//! Under `--cfg silvics_shuttle` threads are not real, and the properties above are absent. What is
//! left is what [`linearizable`] needs, and `schedules`, which runs small scenarios in many orders.

#![cfg(not(silvics_loom))]
// Helpers that only the suite uses.
#![cfg_attr(
    any(silvics_shuttle, not(feature = "suite")),
    allow(dead_code, unused_macros, unused_imports)
)]

#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod batches;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod broken;
pub mod clock;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod counting;
#[cfg(not(silvics_shuttle))]
mod crew;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod cursors;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod ends;
mod failure;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod faults;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod faulty;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod fuzz;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
mod grid;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod guards;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod histories;
pub mod history;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod key_sum;
mod keys;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod limit;
pub mod linearizable;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod lookups;
#[cfg(not(silvics_shuttle))]
pub mod make;
pub mod mapped;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod memory;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod presence;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod ranges;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod reclaim;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod reference;
mod rest;
mod rng;
#[cfg(silvics_shuttle)]
pub mod schedules;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod sequential;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub mod shrinking;
pub mod size;
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
mod suite;
#[cfg(not(silvics_shuttle))]
pub mod trace;
#[cfg(not(silvics_shuttle))]
pub mod verify;

pub use failure::{Failure, Outcome};
pub use keys::{ScanSubject, Subject, TestKey};
#[cfg(all(feature = "suite", not(silvics_shuttle)))]
pub use suite::{compiled, holds};

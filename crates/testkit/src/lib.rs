//! The conformance suite every index of silvics runs, whatever its topology and placement.
//!
//! A property is a generic function that returns an [`Outcome`]; [`index_suite!`] declares a test
//! per property for an index type. Two properties need a process of their own and are called from
//! small test files instead.
//!
//! | property | refutes |
//! |---|---|
//! | [`sequential`] | a verb that differs from `BTreeMap` in some state; an illegal key or value; a tree that degenerates |
//! | [`key_sum`] | lost and doubled inserts and removals, a wrong `len`, another key's value |
//! | [`presence`] | a lookup that misses a key which is only replaced, or moved, meanwhile |
//! | [`histories`] | a stale read, a lost update, a compare-exchange that is none: any history of a key that no order explains ([`linearizable`]) |
//! | [`ranges`], [`cursors`] | entries skipped, doubled or out of order under writers; cursors that lose their place or hold a pin |
//! | [`ends`] | a first or last entry that never was one, two pops of one entry: any history of the whole map that no order explains |
//! | [`memory`] | leaks under churn, by upserts and by threads that end; a drop that keeps something |
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

// Threads here are real ones; under a model checker there is nothing to test.
#![cfg(not(any(silvics_loom, silvics_shuttle)))]
#![cfg_attr(not(feature = "suite"), allow(dead_code))] // helpers that only the suite uses

#[cfg(feature = "suite")]
pub mod broken;
pub mod clock;
#[cfg(feature = "suite")]
pub mod counting;
mod crew;
#[cfg(feature = "suite")]
pub mod cursors;
#[cfg(feature = "suite")]
pub mod ends;
mod failure;
#[cfg(feature = "suite")]
pub mod fuzz;
#[cfg(feature = "suite")]
pub mod faults;
#[cfg(feature = "suite")]
pub mod faulty;
#[cfg(feature = "suite")]
mod grid;
#[cfg(feature = "suite")]
pub mod guards;
#[cfg(feature = "suite")]
pub mod histories;
pub mod history;
#[cfg(feature = "suite")]
pub mod key_sum;
mod keys;
#[cfg(feature = "suite")]
pub mod limit;
pub mod linearizable;
#[cfg(feature = "suite")]
pub mod lookups;
#[cfg(feature = "suite")]
pub mod memory;
#[cfg(feature = "suite")]
pub mod presence;
#[cfg(feature = "suite")]
pub mod ranges;
#[cfg(feature = "suite")]
pub mod reclaim;
#[cfg(feature = "suite")]
pub mod reference;
mod rest;
mod rng;
#[cfg(feature = "suite")]
pub mod sequential;
pub mod size;
#[cfg(feature = "suite")]
mod suite;
pub mod trace;
pub mod verify;

pub use failure::{Failure, Outcome};
pub use keys::{ScanSubject, Subject, TestKey};
#[cfg(feature = "suite")]
pub use suite::holds;

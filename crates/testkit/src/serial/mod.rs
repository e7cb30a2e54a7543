//! Records concurrent histories of transactions, and checks whether they are strictly serializable.
//! It knows no engine: a store implements [`Transactions`], and [`verify_transactions`] drives it.
//! [`check`] checks a history that you have recorded yourself:
//!
//! ```
//! use silvics_testkit::serial::{End, History, Kind, Operation, Transaction, check};
//!
//! // Two transactions read key 7 = 10. One of them writes 11, the other one 12.
//! let increment = |thread, value| Transaction {
//!     thread,
//!     start: 0,
//!     end: 5,
//!     outcome: End::Committed,
//!     operations: vec![
//!         Operation::Read { key: 7, value: Some(10) },
//!         Operation::Write { key: 7, value: Some(value) },
//!     ],
//! };
//! let transactions = vec![increment(0, 11), increment(1, 12)];
//! let verdict = check(&History { initial: vec![(7, 10)], transactions });
//! assert_eq!(verdict.anomaly().map(|anomaly| anomaly.kind), Some(Kind::LostUpdate));
//! ```
//!
//! # Source
//! Adya, "Weak consistency: a generalized theory and optimistic implementations for distributed
//! transactions", doctoral thesis, MIT 1999; Adya, Liskov and O'Neil, "Generalized isolation level
//! definitions", ICDE 2000. The names of anomalies are theirs ([`Kind`]). All values are unique, so
//! the order of versions follows from reads, as in Kingsbury and Alvaro, "Elle: inferring isolation
//! anomalies from experimental observations", VLDB 2020.
//!
//! # Algorithm
//! ```text
//! check(history):
//!   each committed transaction, by itself: it sees its own writes; its scans are in order; each
//!     value that it read was written to this key, by a transaction that committed, at last
//!   each version follows the one that its writer saw; two followers are a lost update
//!   the chains of a key, from insertion to deletion, are ordered by real time
//!   edges: write → next write (ww); write → read (wr); read → next write (rw);
//!     absence seen → insertion, deletion → absence seen; end → later start (real time)
//!   Tarjan's components; among the cycles of all components, one with the fewest transactions
//! ```
//!
//! | file | does |
//! |---|---|
//! | `table.rs` | names the versions by their values |
//! | `own.rs` | checks each transaction by itself, and notes what it saw |
//! | `lives.rs` | orders the versions of each key |
//! | `groups.rs` | finds the versions that scans by group have missed |
//! | `depend.rs`, `choices.rs` | find the dependencies, and those that follow from others |
//! | `graph.rs`, `cycle.rs` | find the shortest cycle, and name it |
//! | `program.rs`, `record.rs`, `traffic.rs` | draw, run and record transactions |
//!
//! # Departures
//! 1. Adya's version order is given. Here it is inferred: a transaction observes each key before it
//!    writes the key, so a chain of versions is known. Lives of a key, between which it is absent,
//!    are ordered by real time (`lives.rs`). If real time leaves the order of two lives open, and
//!    one of the two orders would close a cycle, the other order is taken (`choices.rs`).
//! 2. Real-time edges are added, so the check is for strict serializability. They lead through one
//!    node per end stamp, three edges per transaction.
//! 3. An absence that a transaction found is a predicate read, also that of a point lookup. A scan
//!    covers the keys of its range; with a limit reached, those up to its last entry. A find that
//!    finds nothing says that the key to which the value is written does not have it. A scan by
//!    [groups](group) says this of each value of its groups that it did not return.
//! 4. A transaction that found a key absent is before or after each life of the key. Real time
//!    decides this for most lives. For each other life, if one of the two sides would close a
//!    cycle, the other side is taken (`choices.rs`).
//! 5. No other cycle of these edges has fewer transactions than the reported one, and a cycle
//!    without real time is preferred to one as short. After 2^24 edges the search ends with the
//!    shortest cycle so far. Transactions that are wrong by themselves are reported before any
//!    cycle. A cycle that needs a choice is reported only if there is no other cycle.
//!
//! # What it misses
//! * No history without an anomaly is rejected. A history with an anomaly can pass only if choices
//!   are open: whether a transaction that did not find a key or a value comes before it or after
//!   it, or which of two lives of a key is the earlier one. [`Report::open`] counts all open
//!   choices. Each choice is tried alone, so an anomaly that needs several choices together is
//!   missed. The smallest known one takes nine transactions
//!   (`an_anomaly_of_three_choices_is_missed`).
//! * Two tests compare the verdicts with a search over all orders. In release builds,
//!   `tests/random.rs` draws 60 000 histories of up to six transactions. `tests/overlaps.rs` draws
//!   500 000 histories of up to nine transactions, in which lives of a key overlap. More than a
//!   quarter of the former and more than half of the latter are wrong. The tests fail if they miss
//!   a wrong history. Debug builds draw a tenth.
//! * Each write tells what it replaced, or follows a read of the key. So nothing is known about
//!   writes that tell nothing.
//! * An insertion that was refused is compared only with what else the transaction saw of the key.
//! * Reads of attempts that aborted are not checked. Their writes are: no transaction may see them.
//! * A deletion has no name. A transaction that saw the deletion of an attempt that aborted is
//!   found by a contradiction with the key's other states, often under another name.
//!
//! # Complexity
//! O(n log n) for n operations and keys scanned: some 560 000 transactions per second with five
//! operations each, in histories of about two thousand. Each open choice adds a search among the
//! transactions that overlap it.

mod anomaly;
mod check;
mod choices;
mod cycle;
mod depend;
mod face;
mod flaw;
mod graph;
mod groups;
mod history;
mod lives;
mod own;
mod program;
mod record;
mod table;
mod traffic;

pub use anomaly::{Anomaly, Dependency, Involved, Kind, Link};
pub use check::{Verdict, check};
pub use face::{Attempt, Body, Make, Refused, Transactions};
pub use history::{
    By, Direction, End, Entry, GROUPS, History, Operation, Range, Transaction, group,
};
pub use traffic::{Found, Plan, Report, Until, Wrong, verify_transactions};

#[cfg(test)]
mod tests;

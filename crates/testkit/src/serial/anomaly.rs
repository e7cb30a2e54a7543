//! Anomalies: their names, their transactions and the reasons, for reports.

use super::history::{End, Operation};
use std::fmt;

/// The name of an anomaly. Adya's names are in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A transaction contradicts itself: it does not see its own write, or a scan is out of order,
    /// out of its bounds, over its limit, or has a key twice.
    Internal,
    /// A transaction read a value that no transaction wrote to this key, or missed an entry that no
    /// transaction removed.
    Garbage,
    /// Aborted read (G1a): a transaction read a write of an attempt that aborted.
    AbortedRead,
    /// Intermediate read (G1b): a transaction read a value that its writer overwrote.
    IntermediateRead,
    /// Lost update: two transactions read one version of a key, and both wrote the key.
    LostUpdate,
    /// Write cycle (G0): the order of writes is cyclic.
    WriteCycle,
    /// Circular information flow (G1c): a cycle of writes and reads, without an anti-dependency.
    CircularFlow,
    /// Read skew (G-single): a cycle with one anti-dependency.
    ReadSkew,
    /// Write skew (G2-item): a cycle with several anti-dependencies, all on entries read.
    WriteSkew,
    /// Phantom (G2): a cycle with several anti-dependencies, one of them on an absence.
    Phantom,
}

impl Kind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Internal => "internal inconsistency",
            Self::Garbage => "garbage read",
            Self::AbortedRead => "aborted read (G1a)",
            Self::IntermediateRead => "intermediate read (G1b)",
            Self::LostUpdate => "lost update",
            Self::WriteCycle => "write cycle (G0)",
            Self::CircularFlow => "circular information flow (G1c)",
            Self::ReadSkew => "read skew (G-single)",
            Self::WriteSkew => "write skew (G2-item)",
            Self::Phantom => "phantom (G2)",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of a dependency between two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// The second transaction overwrote a version of the first (ww).
    Write,
    /// The second transaction observed a write of the first (wr).
    Read,
    /// The second transaction overwrote a version that the first read (rw).
    AntiItem,
    /// The second transaction made an entry that the first found absent (predicate rw).
    AntiPredicate,
    /// The first transaction ended before the second started.
    RealTime,
}

/// A transaction of an [`Anomaly`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Involved {
    /// The index of the transaction in its history.
    pub index: usize,
    /// The thread.
    pub thread: usize,
    /// The stamp taken before the transaction.
    pub start: u64,
    /// The stamp taken after the transaction.
    pub end: u64,
    /// How it ended.
    pub outcome: End,
    /// The operations that matter, each once.
    pub operations: Vec<Operation>,
}

/// The reason why one transaction of an [`Anomaly`] must come before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The position of the earlier transaction in [`Anomaly::transactions`].
    pub from: usize,
    /// The position of the later transaction.
    pub to: usize,
    /// The kind of the dependency.
    pub link: Link,
    /// Whether real time was used to know to which absence of a key the dependency belongs. If no
    /// dependency of an anomaly is inferred, and none is real time, no order at all explains the
    /// transactions.
    pub inferred: bool,
    /// The reason, as a sentence.
    pub reason: String,
}

/// Transactions that no serial order explains: one or two that are wrong by themselves, or else a
/// cycle of dependencies. No cycle that the checker found has fewer transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The name.
    pub kind: Kind,
    /// Whether a dependency is that one transaction ended before another one started. Then the
    /// history may be serializable in another order, as with a stale read.
    pub real_time: bool,
    /// The transactions, in the order of the cycle.
    pub transactions: Vec<Involved>,
    /// The dependencies, which form a cycle. Empty if one or two transactions are wrong by
    /// themselves; then `reason` says all.
    pub dependencies: Vec<Dependency>,
    /// The reason of an anomaly that is not a cycle, as a sentence.
    pub reason: Option<String>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.real_time { ", with real time" } else { "" };
        let count = self.transactions.len();
        let plural = if count == 1 { "" } else { "s" };
        writeln!(f, "{}{with}, {count} transaction{plural}:", self.kind)?;
        let first = self.transactions.iter().map(|of| of.start).min().unwrap_or(0);
        for (at, of) in self.transactions.iter().enumerate() {
            let (start, end) = (of.start - first, of.end.saturating_sub(first));
            let ended = match of.outcome {
                End::Committed => "",
                End::Aborted => ", aborted",
            };
            write!(f, "  T{} (thread {}, {start} to {end}{ended}): ", at + 1, of.thread)?;
            for (at, operation) in of.operations.iter().enumerate() {
                let comma = if at == 0 { "" } else { "; " };
                write!(f, "{comma}{operation}")?;
            }
            writeln!(f)?;
        }
        if let Some(reason) = &self.reason {
            return write!(f, "  {reason}.");
        }
        for of in &self.dependencies {
            writeln!(f, "  T{} before T{}: {}.", of.from + 1, of.to + 1, of.reason)?;
        }
        f.write_str("  (stamps before and after each transaction)")
    }
}

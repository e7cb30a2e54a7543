//! Flaws that show before any cycle is looked for.

use super::anomaly::{Anomaly, Involved, Kind};
use super::check::Verdict;
use super::history::{End, History, Operation};

/// A flaw of a history.
#[derive(Debug)]
pub(super) enum Flaw {
    /// The checker does not apply to this history.
    Unfit(String),
    /// One or two transactions are wrong by themselves.
    Anomaly {
        kind: Kind,
        /// The transactions; the sentence calls them T1 and T2.
        transactions: Vec<u32>,
        /// The keys that matter.
        keys: Vec<u64>,
        why: String,
    },
}

impl Flaw {
    pub(super) fn verdict(self, history: &History) -> Verdict {
        match self {
            Self::Unfit(why) => Verdict::Unfit(why),
            Self::Anomaly { kind, transactions, keys, why } => {
                let involved = transactions.iter().map(|&at| involved(history, at, &keys, &[]));
                Verdict::Anomaly(Box::new(Anomaly {
                    kind,
                    real_time: false,
                    transactions: involved.collect(),
                    dependencies: Vec::new(),
                    reason: Some(why),
                }))
            }
        }
    }

    /// A transaction found a key absent that was present from the beginning, and that no committed
    /// transaction has deleted. Looks for a deletion that it may have seen.
    pub(super) fn absent(history: &History, by: u32, key: u64) -> Self {
        let mut others = history.transactions.iter().enumerate().filter(|(_, of)| {
            of.operations.iter().any(|operation| {
                matches!(operation, Operation::Write { key: deleted, value: None } if *deleted == key)
            })
        });
        let (kind, others, how) = match others.find(|&(at, _)| at as u32 != by) {
            Some((at, of)) if of.outcome == End::Aborted => {
                (Kind::AbortedRead, vec![at as u32], "T2 deleted it and aborted")
            }
            Some((at, _)) => {
                (Kind::IntermediateRead, vec![at as u32], "T2 deleted it and inserted it again")
            }
            None => (Kind::Garbage, vec![], "no transaction deleted it"),
        };
        let transactions = std::iter::once(by).chain(others).collect();
        let why = format!("T1 found key {key} absent, which was present at the start, and {how}");
        Self::Anomaly { kind, transactions, keys: vec![key], why }
    }
}

/// A transaction in a report, with its operations on these keys and values. A repetition with the
/// same answer is left out.
pub(super) fn involved(history: &History, at: u32, keys: &[u64], values: &[u64]) -> Involved {
    let of = &history.transactions[at as usize];
    let mut operations: Vec<Operation> = Vec::new();
    for operation in of.operations.iter().filter(|operation| operation.concerns(keys, values)) {
        if !operations.contains(operation) {
            operations.push(operation.clone());
        }
    }
    Involved {
        index: at as usize,
        thread: of.thread,
        start: of.start,
        end: of.end,
        outcome: of.outcome,
        operations,
    }
}

//! The check of a history.

use super::anomaly::Anomaly;
use super::choices;
use super::cycle;
use super::depend::Dependencies;
use super::flaw::Flaw;
use super::graph::{Graph, Moments};
use super::groups;
use super::history::{End, History};
use super::lives::Lives;
use super::own::Walk;
use super::table::Table;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The checker found no anomaly. If no choice is open, the history is strictly serializable.
    Serializable {
        /// The number of choices left open. A choice is whether a transaction that did not find a
        /// key or a value comes before it or after it, or which of two lives of a key is the
        /// earlier one. Only anomalies that depend on open choices can have been missed.
        open: u64,
    },
    /// No serial order that respects real time explains the history.
    Anomaly(Box<Anomaly>),
    /// The history breaks a rule of [`History`], so that it cannot be checked.
    Unfit(String),
}

impl Verdict {
    /// The anomaly, if the history has one.
    pub fn anomaly(&self) -> Option<&Anomaly> {
        match self {
            Self::Anomaly(anomaly) => Some(anomaly),
            _ => None,
        }
    }
}

/// Checks whether a history is strictly serializable.
pub fn check(history: &History) -> Verdict {
    const MOST: usize = u32::MAX as usize / 4;
    if history.transactions.len() > MOST {
        return Verdict::Unfit(format!("a history has at most {MOST} transactions"));
    }
    checked(history).unwrap_or_else(|flaw| flaw.verdict(history))
}

fn checked(history: &History) -> Result<Verdict, Flaw> {
    let mut table = Table::of(history).map_err(Flaw::Unfit)?;
    let mut walk = Walk::new(&table);
    for (at, of) in history.transactions.iter().enumerate() {
        if of.outcome == End::Committed {
            walk.transaction(at as u32)?;
        }
    }
    let Walk { mut observed, scanned, effects, .. } = walk;
    let lives = Lives::of(&mut table, &effects, &observed)?;
    groups::missed(&table, &scanned, &mut observed);
    let Dependencies { mut edges, mut choices, .. } = Dependencies::of(&table, &lives, &observed)?;
    let moments = Moments::of(history, &mut edges);
    let cycle = |graph: &Graph<'_>| {
        let (components, cyclic) = graph.components();
        (!cyclic.is_empty()).then(|| {
            let anomaly = cycle::anomaly(&table, &lives, graph, &components, cyclic);
            Verdict::Anomaly(Box::new(anomaly))
        })
    };
    let graph = Graph::new(&moments, &edges);
    if let Some(anomaly) = cycle(&graph) {
        return Ok(anomaly);
    }
    let decided = choices::decide(history, &graph, &mut choices);
    let open = choices.len() as u64;
    if !decided.is_empty() {
        edges.extend(decided);
        if let Some(anomaly) = cycle(&Graph::new(&moments, &edges)) {
            return Ok(anomaly);
        }
    }
    Ok(Verdict::Serializable { open })
}

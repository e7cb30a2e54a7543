//! Choices between two edges, of which one is true.
//!
//! A transaction that found a key absent, while others inserted the key and deleted it again, comes
//! before the insertion or after the deletion. A key has one life at a time, so one of two lives
//! ends before the other one begins. If one of the two edges would close a cycle with the other
//! dependencies, the other edge is true. A choice with two edges that would close one is an
//! anomaly: either edge shows it.
//!
//! Choices that remain open are left out. So an anomaly that only shows when several choices are
//! taken together can be missed. No history without an anomaly is rejected.

use super::depend::Choice;
use super::graph::{Edge, Graph};
use super::history::History;
use super::table::NONE;
use rustc_hash::FxHashMap;

/// The most nodes that one search visits.
const VISITS: usize = 1 << 11;

/// Searches for paths.
struct Paths<'g> {
    history: &'g History,
    graph: &'g Graph<'g>,
    /// The edges found so far, by their source.
    decided: FxHashMap<u32, Vec<Edge>>,
    /// The number of the last search that visited each node.
    visited: Vec<u32>,
    searches: u32,
    stack: Vec<u32>,
}

/// How often the open choices are gone through: each time, the edges found may decide further ones.
const ROUNDS: usize = 16;

/// Takes the choices of which one edge would close a cycle, and returns their other edges. The
/// graph has no cycle.
pub(super) fn decide(history: &History, graph: &Graph<'_>, choices: &mut Vec<Choice>) -> Vec<Edge> {
    if choices.is_empty() {
        return Vec::new();
    }
    let (visited, decided) = (vec![0; graph.nodes()], FxHashMap::default());
    let mut paths = Paths { history, graph, decided, visited, searches: 0, stack: Vec::new() };
    for _ in 0..ROUNDS {
        let before = choices.len();
        choices.retain(|&Choice(one, other)| {
            let edge = if paths.closes(one) {
                other
            } else if paths.closes(other) {
                one
            } else {
                return true;
            };
            if edge.from != NONE && edge.to != NONE && edge.from != edge.to {
                let edges: &mut Vec<Edge> = paths.decided.entry(edge.from).or_default();
                edges.push(Edge { timed: true, ..edge });
            }
            false
        });
        if choices.len() == before {
            break;
        }
    }
    paths.decided.into_values().flatten().collect()
}

impl Paths<'_> {
    /// Whether an edge would close a cycle.
    fn closes(&mut self, edge: Edge) -> bool {
        edge.from == NONE || edge.to == NONE || self.leads(edge.to, edge.from)
    }

    /// Whether a path leads from one transaction to another. All transactions on such a path
    /// overlap the time from the first one's start to the last one's end, or there is a cycle. So a
    /// moment on such a path is earlier than the last one's end.
    fn leads(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return true;
        }
        let of = |node: u32| &self.history.transactions[node as usize];
        let (begin, end) = (of(from).start, of(to).end);
        self.searches += 1;
        self.stack.clear();
        self.stack.push(from);
        let mut visits = 0;
        while let Some(node) = self.stack.pop() {
            visits += 1;
            if visits > VISITS {
                return false;
            }
            let decided = self.decided.get(&node).into_iter().flatten();
            for edge in self.graph.from(node).iter().chain(decided) {
                if edge.to == to {
                    return true;
                }
                let visited = &mut self.visited[edge.to as usize];
                if *visited == self.searches {
                    continue;
                }
                *visited = self.searches;
                let within = if self.graph.is_transaction(edge.to) {
                    of(edge.to).start <= end && of(edge.to).end >= begin
                } else {
                    self.graph.moment(edge.to) < of(to).end
                };
                if within {
                    self.stack.push(edge.to);
                }
            }
        }
        false
    }
}

//! The graph of dependencies, with real time, and its strongly connected components.
//!
//! The nodes are the transactions, and behind them one node for each end stamp of a committed
//! transaction, in order. A transaction leads to the node of its end, each of these nodes leads to
//! the next one, and the last one before a transaction's start leads to this transaction. So real
//! time takes three edges per transaction instead of one per pair.
//!
//! The components come from Tarjan, "Depth-first search and linear graph algorithms", SIAM J.
//! Computing 1(2), 1972, with a stack of its own instead of recursion.

use super::anomaly::Link;
use super::history::{End, History};
use super::table::NONE;

/// The reason of an edge. Numbers of versions are those of `Table`, numbers of lives those of
/// `Lives`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The second transaction replaced the version, which the first wrote.
    Replaced(u32),
    /// The second transaction began this life of a key, which the first had deleted.
    Reinserted(u32),
    /// The second transaction read the version, which the first wrote.
    Read(u32),
    /// The second transaction found a key absent, whose life the first ended.
    FoundAbsent(u32),
    /// The second transaction did not find a value, which the first replaced.
    FoundGone(u32),
    /// The first transaction read the version, which the second replaced.
    ReadBefore(u32),
    /// The first transaction found a key absent, whose life the second began.
    AbsentBefore(u32),
    /// The first transaction did not find a value, which the second wrote.
    MissedBefore(u32),
    /// Real time.
    Time,
}

impl Why {
    pub(super) fn link(self) -> Link {
        match self {
            Self::Replaced(_) | Self::Reinserted(_) => Link::Write,
            Self::Read(_) | Self::FoundAbsent(_) | Self::FoundGone(_) => Link::Read,
            Self::ReadBefore(_) => Link::AntiItem,
            Self::AbsentBefore(_) | Self::MissedBefore(_) => Link::AntiPredicate,
            Self::Time => Link::RealTime,
        }
    }
}

/// An edge: `from` comes before `to` in each serial order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) why: Why,
    /// Whether real time was needed to know this, or a search for paths that used it.
    pub(super) timed: bool,
}

/// The end stamps of committed transactions, one for each moment.
pub(super) struct Moments {
    transactions: usize,
    ends: Vec<u64>,
}

/// A graph.
pub(super) struct Graph<'m> {
    moments: &'m Moments,
    /// The edges by their source.
    edges: Vec<Edge>,
    begins: Vec<u32>,
}

impl Moments {
    /// Collects the moments of a history, and adds the edges of real time.
    pub(super) fn of(history: &History, edges: &mut Vec<Edge>) -> Self {
        let transactions = history.transactions.len();
        let committed = || {
            let all = history.transactions.iter().enumerate();
            all.filter(|(_, of)| of.outcome == End::Committed).map(|(at, of)| (at as u32, of))
        };
        let mut ends: Vec<u64> = committed().map(|(_, of)| of.end).collect();
        ends.sort_unstable();
        ends.dedup();
        let moment = |at: usize| (transactions + at) as u32;
        let mut add = |from, to| edges.push(Edge { from, to, why: Why::Time, timed: true });
        for (at, of) in committed() {
            add(at, moment(ends.partition_point(|&end| end < of.end)));
            let before = ends.partition_point(|&end| end < of.start);
            if before > 0 {
                add(moment(before - 1), at);
            }
        }
        for at in 1..ends.len() {
            add(moment(at - 1), moment(at));
        }
        Self { transactions, ends }
    }
}

impl<'m> Graph<'m> {
    /// Makes a graph: sorts edges by their source, by counting.
    pub(super) fn new(moments: &'m Moments, loose: &[Edge]) -> Self {
        let mut begins = vec![0; moments.transactions + moments.ends.len() + 2];
        for edge in loose {
            begins[edge.from as usize + 2] += 1;
        }
        for at in 2..begins.len() {
            begins[at] += begins[at - 1];
        }
        let filler = Edge { from: 0, to: 0, why: Why::Time, timed: true };
        let mut edges = vec![filler; loose.len()];
        for edge in loose {
            let at = &mut begins[edge.from as usize + 1];
            edges[*at as usize] = *edge;
            *at += 1;
        }
        begins.pop();
        Self { moments, edges, begins }
    }

    /// The edges from a node.
    pub(super) fn from(&self, node: u32) -> &[Edge] {
        let node = node as usize;
        &self.edges[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// Whether a node is a transaction.
    pub(super) fn is_transaction(&self, node: u32) -> bool {
        (node as usize) < self.moments.transactions
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.begins.len() - 1
    }

    /// The end stamp of a moment.
    pub(super) fn moment(&self, node: u32) -> u64 {
        self.moments.ends[node as usize - self.moments.transactions]
    }

    /// Returns the number of each node's component, and the transactions of each component that has
    /// a cycle.
    pub(super) fn components(&self) -> (Vec<u32>, Vec<Vec<u32>>) {
        let mut search = Tarjan {
            graph: self,
            index: vec![NONE; self.nodes()],
            low: vec![0; self.nodes()],
            component: vec![NONE; self.nodes()],
            stack: Vec::new(),
            calls: Vec::new(),
            counted: 0,
            components: 0,
            cyclic: Vec::new(),
        };
        for root in 0..self.nodes() as u32 {
            if search.index[root as usize] == NONE {
                search.visit(root);
            }
        }
        (search.component, search.cyclic)
    }
}

/// The state of Tarjan's search.
struct Tarjan<'g> {
    graph: &'g Graph<'g>,
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    stack: Vec<u32>,
    /// The nodes under way, each with the number of its edges that are done.
    calls: Vec<(u32, u32)>,
    counted: u32,
    components: u32,
    /// The transactions of each component with a cycle.
    cyclic: Vec<Vec<u32>>,
}

impl Tarjan<'_> {
    fn enter(&mut self, node: u32) {
        self.index[node as usize] = self.counted;
        self.low[node as usize] = self.counted;
        self.counted += 1;
        self.stack.push(node);
        self.calls.push((node, 0));
    }

    fn visit(&mut self, root: u32) {
        self.enter(root);
        while let Some((node, done)) = self.calls.last_mut() {
            let (node, at) = (*node, *done as usize);
            if let Some(edge) = self.graph.from(node).get(at) {
                *done += 1;
                let to = edge.to as usize;
                if self.index[to] == NONE {
                    self.enter(edge.to);
                } else if self.component[to] == NONE {
                    let low = &mut self.low[node as usize];
                    *low = (*low).min(self.index[to]);
                }
                continue;
            }
            self.calls.pop();
            let low = self.low[node as usize];
            if let Some(&(caller, _)) = self.calls.last() {
                let caller = &mut self.low[caller as usize];
                *caller = (*caller).min(low);
            }
            if low == self.index[node as usize] {
                self.leave(node);
            }
        }
    }

    /// Takes the component of `root` off the stack.
    fn leave(&mut self, root: u32) {
        let begin = self.stack.iter().rposition(|&node| node == root).unwrap_or(0);
        for &node in &self.stack[begin..] {
            self.component[node as usize] = self.components;
        }
        self.components += 1;
        if self.stack.len() - begin > 1 {
            let members = self.stack[begin..].iter().copied();
            self.cyclic.push(members.filter(|&node| self.graph.is_transaction(node)).collect());
        }
        self.stack.truncate(begin);
    }
}

//! The shortest cycle of a graph, its name and its report.

use super::anomaly::{Anomaly, Dependency, Kind, Link};
use super::flaw::involved;
use super::graph::{Graph, Why};
use super::lives::Lives;
use super::table::{NONE, Table};
use std::collections::VecDeque;

/// The most edges that the search for the shortest cycle follows.
const STEPS: usize = 1 << 24;

/// Searches for the cycle with the fewest transactions.
struct Shortest<'g> {
    graph: &'g Graph<'g>,
    components: &'g [u32],
    /// The distance of each node from the source, and the node before it.
    reached: Vec<(u32, u32)>,
    touched: Vec<u32>,
    steps: usize,
    best: Vec<u32>,
}

/// Returns the transactions of a shortest cycle of the components `cyclic`, each of which has a
/// cycle. A cycle without real time is preferred to one with as many transactions and real time.
/// If the search takes more than [`STEPS`], it returns the shortest cycle found by then.
fn shortest(graph: &Graph<'_>, components: &[u32], mut cyclic: Vec<Vec<u32>>) -> Vec<u32> {
    let reached = vec![(NONE, NONE); graph.nodes()];
    let (touched, best) = (Vec::new(), Vec::new());
    let mut search = Shortest { graph, components, reached, touched, steps: 0, best };
    // Small components first: they bound the length of the cycles to look for in large ones.
    for members in &mut cyclic {
        members.sort_unstable();
    }
    cyclic.sort_unstable_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    for timed in [false, true] {
        search.steps = 0;
        for &source in cyclic.iter().flatten() {
            // With real time there is a cycle, so the search goes on until it has found one.
            let spent = search.steps > STEPS && !(timed && search.best.is_empty());
            if search.best.len() == 2 || spent {
                break;
            }
            search.from(source, timed);
        }
    }
    search.best
}

impl Shortest<'_> {
    /// Looks for a cycle through `source` that is shorter than the best one. An edge to a
    /// transaction has length 1, and an edge to a moment has length 0.
    fn from(&mut self, source: u32, timed: bool) {
        for node in self.touched.drain(..) {
            self.reached[node as usize] = (NONE, NONE);
        }
        let component = self.components[source as usize];
        let mut queue = VecDeque::from([(source, 0)]);
        self.reach(source, 0, NONE);
        while let Some((node, distance)) = queue.pop_front() {
            if self.reached[node as usize].0 < distance {
                continue; // a shorter way was found meanwhile
            }
            if !self.best.is_empty() && distance as usize + 1 >= self.best.len() {
                return;
            }
            for edge in self.graph.from(node) {
                let to = edge.to as usize;
                if self.components[to] != component || edge.why == Why::Time && !timed {
                    continue;
                }
                self.steps += 1;
                if edge.to == source {
                    self.best = self.path(node);
                    return;
                }
                let length = u32::from(self.graph.is_transaction(edge.to));
                if distance + length < self.reached[to].0 {
                    self.reach(edge.to, distance + length, node);
                    if length == 0 {
                        queue.push_front((edge.to, distance));
                    } else {
                        queue.push_back((edge.to, distance + length));
                    }
                }
            }
        }
    }

    fn reach(&mut self, node: u32, distance: u32, before: u32) {
        self.touched.push(node);
        self.reached[node as usize] = (distance, before);
    }

    /// The transactions on the way to a node.
    fn path(&self, mut node: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while node != NONE {
            if self.graph.is_transaction(node) {
                path.push(node);
            }
            node = self.reached[node as usize].1;
        }
        path.reverse();
        path
    }
}

/// Describes the shortest cycle of the components `cyclic`.
pub(super) fn anomaly(
    table: &Table<'_>,
    lives: &Lives,
    graph: &Graph<'_>,
    components: &[u32],
    cyclic: Vec<Vec<u32>>,
) -> Anomaly {
    let mut cycle = shortest(graph, components, cyclic);
    let starts = cycle.iter().map(|&at| table.transaction(at).start);
    let first = starts.enumerate().min_by_key(|&(_, start)| start).map_or(0, |(at, _)| at);
    cycle.rotate_left(first);
    let names = Names { table, lives };
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let dependencies: Vec<Dependency> = (0..cycle.len())
        .map(|from| {
            let to = (from + 1) % cycle.len();
            let between = graph.from(cycle[from]).iter().filter(|edge| edge.to == cycle[to]);
            let edge = between.min_by_key(|edge| (edge.timed, edge.why.link()));
            let (why, timed) = edge.map_or((Why::Time, true), |edge| (edge.why, edge.timed));
            if let Some((key, value)) = names.concerned(why) {
                keys.push(key);
                values.extend(value);
            }
            let mut reason = names.reason(why, from + 1, to + 1);
            let inferred = timed && why != Why::Time;
            if inferred {
                reason.push_str(" (the order follows from real time)");
            }
            Dependency { from, to, link: why.link(), inferred, reason }
        })
        .collect();
    let transactions = cycle.iter().map(|&at| involved(table.history, at, &keys, &values));
    Anomaly {
        kind: kind(&dependencies),
        real_time: dependencies.iter().any(|of| of.link == Link::RealTime),
        transactions: transactions.collect(),
        dependencies,
        reason: None,
    }
}

/// The name of a cycle.
fn kind(dependencies: &[Dependency]) -> Kind {
    let count = |link| dependencies.iter().filter(|of| of.link == link).count();
    match (count(Link::AntiItem), count(Link::AntiPredicate)) {
        (0, 0) if count(Link::Read) == 0 => Kind::WriteCycle,
        (0, 0) => Kind::CircularFlow,
        (1, 0) | (0, 1) => Kind::ReadSkew,
        (_, 0) => Kind::WriteSkew,
        (_, _) => Kind::Phantom,
    }
}

/// Names keys and values in sentences.
struct Names<'t, 'h> {
    table: &'t Table<'h>,
    lives: &'t Lives,
}

impl Names<'_, '_> {
    /// The key and the value that an edge is about.
    fn concerned(&self, why: Why) -> Option<(u64, Option<u64>)> {
        match why {
            Why::Replaced(at)
            | Why::Read(at)
            | Why::ReadBefore(at)
            | Why::FoundGone(at)
            | Why::MissedBefore(at) => {
                let version = self.table.version(at);
                Some((version.key, Some(version.value)))
            }
            Why::Reinserted(at) | Why::FoundAbsent(at) | Why::AbsentBefore(at) => {
                let rank = self.lives.all[at as usize].rank;
                Some((self.table.keys[rank as usize], None))
            }
            Why::Time => None,
        }
    }

    fn reason(&self, why: Why, one: usize, two: usize) -> String {
        let Some((key, value)) = self.concerned(why) else {
            return format!("T{one} ended before T{two} started");
        };
        let value = value.unwrap_or(0);
        let replaced = match why {
            Why::Replaced(at) | Why::ReadBefore(at) | Why::FoundGone(at) => {
                let deleted = self.table.version(at).follower == NONE;
                if deleted { "deleted" } else { "overwrote" }
            }
            _ => "",
        };
        match why {
            Why::Replaced(_) => {
                format!("T{one} wrote key {key} = {value}, which T{two} {replaced}")
            }
            Why::Read(_) => format!("T{two} read key {key} = {value}, which T{one} wrote"),
            Why::ReadBefore(_) => {
                format!("T{one} read key {key} = {value}, which T{two} {replaced}")
            }
            Why::FoundGone(_) => format!(
                "T{two} did not find the value {value} of key {key}, which T{one} {replaced}"
            ),
            Why::MissedBefore(_) => {
                format!("T{one} did not find the value {value}, which T{two} wrote to key {key}")
            }
            Why::Reinserted(_) => format!("T{one} deleted key {key}, which T{two} inserted again"),
            Why::FoundAbsent(_) => format!("T{two} found key {key} absent, which T{one} deleted"),
            Why::AbsentBefore(_) => format!("T{one} found key {key} absent, which T{two} inserted"),
            Why::Time => String::new(),
        }
    }
}

//! The dependencies between transactions, and the choices that remain open.

use super::anomaly::Kind;
use super::flaw::Flaw;
use super::graph::{Edge, Why};
use super::history::Transaction;
use super::lives::{Life, Lives};
use super::own::{Fact, Observed};
use super::table::{NONE, Table};
use std::ops::Range;

/// Two edges of which one is true, and it is not known which one. See [`super::choices`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice(pub(super) Edge, pub(super) Edge);

/// Collects dependencies.
pub(super) struct Dependencies<'t, 'h> {
    table: &'t Table<'h>,
    lives: &'t Lives,
    pub(super) edges: Vec<Edge>,
    pub(super) choices: Vec<Choice>,
}

impl<'t, 'h> Dependencies<'t, 'h> {
    pub(super) fn of(
        table: &'t Table<'h>,
        lives: &'t Lives,
        observed: &[Observed],
    ) -> Result<Self, Flaw> {
        let size = observed.len() * 2 + table.versions.len();
        let (edges, choices) = (Vec::with_capacity(size), Vec::new());
        let mut all = Self { table, lives, edges, choices };
        for (at, version) in table.versions.iter().enumerate() {
            all.add(version.writer, version.next, Why::Replaced(at as u32));
        }
        for rank in 0..table.keys.len() {
            all.between_lives(rank as u32);
        }
        for &Observed { by, fact } in observed {
            match fact {
                Fact::Version(at) => all.read(by, at),
                Fact::Absent(rank) => all.absent(by, rank)?,
                Fact::Missed(at) => all.missed(by, at)?,
            }
        }
        Ok(all)
    }

    fn add(&mut self, from: u32, to: u32, why: Why) {
        self.push(Edge { from, to, why, timed: false });
    }

    fn push(&mut self, edge: Edge) {
        if edge.from != NONE && edge.to != NONE && edge.from != edge.to {
            self.edges.push(edge);
        }
    }

    /// Orders the lives of a key. Each two lives are linked by an edge, by a path through lives
    /// between the two, or by a choice.
    fn between_lives(&mut self, rank: u32) {
        let range = self.lives.of_key(rank);
        let lives = &self.lives.all;
        let edge = |from: usize, to: usize| Edge {
            from: lives[from].last,
            to: lives[to].first,
            why: Why::Reinserted(to as u32),
            timed: lives[from].first != NONE && lives[to].last != NONE,
        };
        for at in range.clone() {
            // The life `at` is before a life with this `min_end`, which is before each later life
            // with a greater `max_start`: these need no edge from `at`.
            let mut reached = u64::MAX;
            for later in at + 1..range.end {
                if reached < lives[later].min_start_on {
                    break;
                }
                if !lives[at].is_before(&lives[later]) {
                    self.choices.push(Choice(edge(at, later), edge(later, at)));
                    continue;
                }
                if reached >= lives[later].max_start {
                    self.edges.push(edge(at, later));
                }
                reached = reached.min(lives[later].min_end);
            }
        }
    }

    fn read(&mut self, by: u32, at: u32) {
        let version = self.table.version(at);
        if version.next != by {
            self.add(version.writer, by, Why::Read(at));
            self.add(by, version.next, Why::ReadBefore(at));
        }
    }

    /// The reader of an absent key comes after the deletion or before the insertion of each life.
    /// The lives that are not `near` follow from those that are.
    fn absent(&mut self, by: u32, rank: u32) -> Result<(), Flaw> {
        let range = self.lives.of_key(rank);
        let lives = &self.lives.all[range.clone()];
        let Some(earliest) = lives.first() else { return Ok(()) };
        if earliest.first == NONE && earliest.last == NONE {
            let key = self.table.keys[rank as usize];
            return Err(Flaw::absent(self.table.history, by, key));
        }
        let Transaction { start, end, .. } = *self.table.transaction(by);
        let near = near(lives, start, end);
        // The order of the lives says where an inserter belongs.
        let inserts = lives[near.clone()].iter().any(|life| life.first == by);
        for at in near {
            let (life, number) = (&lives[at], (range.start + at) as u32);
            let why = Why::FoundAbsent(number);
            let after = Edge { from: life.last, to: by, why, timed: life.first != NONE };
            let why = Why::AbsentBefore(number);
            let before = Edge { from: by, to: life.first, why, timed: life.last != NONE };
            let (is_after, is_before) = (life.is_over(start), life.is_later(end));
            if is_after || is_before || !inserts {
                self.outside((after, is_after), (before, is_before));
            }
        }
        Ok(())
    }

    /// Adds those of two edges that are certain, or the choice between them.
    fn outside(&mut self, (after, is_after): (Edge, bool), (before, is_before): (Edge, bool)) {
        if is_after {
            self.push(after);
        }
        if is_before {
            self.push(before);
        }
        if !is_after && !is_before {
            self.choices.push(Choice(after, before));
        }
    }

    /// A transaction that did not find a value comes before its writer, or after the transaction
    /// that replaced it.
    fn missed(&mut self, by: u32, at: u32) -> Result<(), Flaw> {
        let version = self.table.version(at);
        if version.writer == NONE && version.next == NONE {
            let (key, value) = (version.key, version.value);
            return Err(Flaw::Anomaly {
                kind: Kind::Garbage,
                transactions: vec![by],
                keys: vec![key],
                why: format!("T1 did not find {value}, which key {key} has from start to end"),
            });
        }
        let Transaction { start, end, .. } = *self.table.transaction(by);
        if version.next == by {
            // It saw the value as well.
            if version.writer == NONE {
                let (key, value) = (version.key, version.value);
                let why = format!("T1 read key {key} = {value}, but did not find {value}");
                let kind = Kind::Internal;
                return Err(Flaw::Anomaly { kind, transactions: vec![by], keys: vec![key], why });
            }
            self.add(by, version.writer, Why::MissedBefore(at));
            return Ok(());
        }
        let is = |at: u32, holds: &dyn Fn(&Transaction) -> bool| {
            at != NONE && holds(self.table.transaction(at))
        };
        if is(version.next, &|next| next.end < start) || is(version.writer, &|of| of.start > end) {
            return Ok(()); // real time says it
        }
        let timed = version.writer != NONE && version.next != NONE;
        let gone = Edge { from: version.next, to: by, why: Why::FoundGone(at), timed };
        let before = Edge { from: by, to: version.writer, why: Why::MissedBefore(at), timed };
        let is_gone = version.writer == NONE || version.min_end < start;
        let is_before = version.next == NONE || version.max_start > end;
        self.outside((gone, is_gone), (before, is_before));
        Ok(())
    }
}

/// The lives of a key that are near a transaction which found the key absent. If a life is not
/// among them, it is before one of them that is over when the transaction starts, or after one of
/// them that is later than the transaction.
fn near(lives: &[Life], start: u64, end: u64) -> Range<usize> {
    let over = lives.partition_point(|life| life.min_end_on < start);
    let later = lives.partition_point(|life| life.max_start_up <= end);
    // The lives with a lesser `min_end` are before one that is over.
    let (mut from, mut reached) = (over, 0);
    while from > 0 && lives[from - 1].max_end_up >= reached {
        from -= 1;
        if lives[from].is_over(start) {
            reached = reached.max(lives[from].max_start);
        }
    }
    // The lives with a greater `max_start` are after one that is later.
    let (mut to, mut reached) = (later, u64::MAX);
    while to < lives.len() && lives[to].min_start_on <= reached {
        if lives[to].is_later(end) {
            reached = reached.min(lives[to].min_end);
        }
        to += 1;
    }
    from.min(later)..to.max(over)
}

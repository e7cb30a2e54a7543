//! The dependencies between transactions, and the choices that remain open.

use super::anomaly::Kind;
use super::flaw::Flaw;
use super::graph::{Edge, Why};
use super::history::Transaction;
use super::lives::Lives;
use super::own::{Fact, Observed};
use super::table::{NONE, Table};

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

/// How far apart in a key's order two lives are compared if some are in no known order.
const NEAR: usize = 8;

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

    /// Orders the lives of a key.
    fn between_lives(&mut self, rank: u32) {
        let range = self.lives.of_key(rank);
        let lives = &self.lives.all;
        let edge = |from: usize, to: usize| Edge {
            from: lives[from].last,
            to: lives[to].first,
            why: Why::Reinserted(to as u32),
            timed: lives[from].first != NONE && lives[to].last != NONE,
        };
        let ordered = |at: usize| lives[at - 1].is_before(&lives[at]);
        if (range.start + 1..range.end).all(ordered) {
            self.edges.extend((range.start + 1..range.end).map(|at| edge(at - 1, at)));
            return;
        }
        for at in range.clone() {
            for later in (at + 1..range.end).take(NEAR) {
                if lives[at].is_before(&lives[later]) {
                    self.edges.push(edge(at, later));
                } else {
                    self.choices.push(Choice(edge(at, later), edge(later, at)));
                }
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
    fn absent(&mut self, by: u32, rank: u32) -> Result<(), Flaw> {
        let range = self.lives.of_key(rank);
        let lives = &self.lives.all[range.clone()];
        let (Some(earliest), Some(latest)) = (lives.first(), lives.last()) else { return Ok(()) };
        if earliest.first == NONE && earliest.last == NONE {
            let key = self.table.keys[rank as usize];
            return Err(Flaw::absent(self.table.history, by, key));
        }
        let Transaction { start, end, .. } = *self.table.transaction(by);
        // The lives below `before` are over when the reader begins; it ends before those from
        // `after` on begin.
        let mut before = lives.partition_point(|life| life.min_end_on < start);
        let mut after = lives.partition_point(|life| life.max_start_up <= end);
        if earliest.first == NONE {
            before = before.max(1);
        }
        if latest.last == NONE {
            after = after.min(lives.len() - 1);
        }
        let ended = |at: usize| {
            let life = (range.start + at) as u32;
            let timed = lives[at].first != NONE;
            Edge { from: lives[at].last, to: by, why: Why::FoundAbsent(life), timed }
        };
        let begins = |at: usize| {
            let life = (range.start + at) as u32;
            let timed = lives[at].last != NONE;
            Edge { from: by, to: lives[at].first, why: Why::AbsentBefore(life), timed }
        };
        if let Some(at) = before.checked_sub(1) {
            self.push(ended(at));
        }
        if after < lives.len() {
            self.push(begins(after));
        }
        // The order of the lives says where an inserter belongs.
        let open = before..after.max(before);
        if !open.clone().any(|at| lives[at].first == by) {
            self.choices.extend(open.map(|at| Choice(ended(at), begins(at))));
        }
        Ok(())
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
        let timed = version.writer != NONE && version.next != NONE;
        let gone = Edge { from: version.next, to: by, why: Why::FoundGone(at), timed };
        let before = Edge { from: by, to: version.writer, why: Why::MissedBefore(at), timed };
        let is_gone = version.writer == NONE || version.min_end < start;
        let is_before = version.next == NONE || version.max_start > end;
        if is_gone {
            self.push(gone);
        }
        if is_before {
            self.push(before);
        }
        if !is_gone && !is_before {
            self.choices.push(Choice(gone, before));
        }
        Ok(())
    }
}

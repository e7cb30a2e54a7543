//! The order of the versions of each key.
//!
//! A version follows the one that its writer saw. The chain from an insertion, or from an initial
//! value, to the deletion is a *life* of the key. Between two lives the key is absent, which has no
//! name: the order of lives follows from real time. All transactions that wrote, read or replaced a
//! version of a life come between its insertion and its deletion, both included. So if one of them
//! ended before one of another life started, the first life is the earlier one. If all transactions
//! of two lives overlap, their order is a choice (`choices.rs`).

use super::anomaly::Kind;
use super::flaw::Flaw;
use super::own::{Effect, Fact, Observed};
use super::table::{NONE, Table};

/// A life of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    /// The rank of the key.
    pub(super) rank: u32,
    /// The transaction that inserted the key; `NONE` if it was present from the beginning.
    pub(super) first: u32,
    /// The transaction that deleted the key; `NONE` if none did.
    pub(super) last: u32,
    /// The least end stamp of the life's transactions.
    pub(super) min_end: u64,
    /// The greatest start stamp of the life's transactions.
    pub(super) max_start: u64,
    /// The least `min_end` of this life and the key's later ones.
    pub(super) min_end_on: u64,
    /// The greatest `max_start` of this life and the key's earlier ones.
    pub(super) max_start_up: u64,
    /// The greatest `min_end` of this life and the key's earlier ones.
    pub(super) max_end_up: u64,
    /// The least `max_start` of this life and the key's later ones.
    pub(super) min_start_on: u64,
}

impl Life {
    /// Whether this life certainly comes before another one of its key, which is not earlier in the
    /// order of `Lives`.
    pub(super) fn is_before(&self, other: &Life) -> bool {
        self.first == NONE || other.last == NONE || self.min_end < other.max_start
    }

    /// Whether this life certainly comes before a transaction that starts at `start` and finds the
    /// key absent.
    pub(super) fn is_over(&self, start: u64) -> bool {
        self.first == NONE || self.min_end < start
    }

    /// Whether this life certainly comes after a transaction that ends at `end` and finds the key
    /// absent.
    pub(super) fn is_later(&self, end: u64) -> bool {
        self.last == NONE || self.max_start > end
    }

    /// The place in the order of a key's lives: the initial one, those that ended, the open one. If
    /// only one of two lives can be the earlier one, the sum of its stamps is less: from
    /// `a.min_end < b.max_start` and `a.max_start <= b.min_end` the sum follows.
    fn place(&self) -> (u32, u8, u128) {
        let class = match (self.first, self.last) {
            (NONE, _) => 0,
            (_, NONE) => 2,
            _ => 1,
        };
        (self.rank, class, u128::from(self.min_end) + u128::from(self.max_start))
    }
}

/// The lives of all keys.
pub(super) struct Lives {
    /// The lives, by key and in their probable order.
    pub(super) all: Vec<Life>,
    /// The index at which the lives of each key begin, and the end of the last key.
    begins: Vec<u32>,
}

impl Lives {
    /// Links the versions of a table, and orders the lives.
    pub(super) fn of(
        table: &mut Table<'_>,
        effects: &[Effect],
        observed: &[Observed],
    ) -> Result<Self, Flaw> {
        link(table, effects)?;
        touch(table, observed);
        let mut lives = Self { all: Vec::new(), begins: Vec::new() };
        for at in 0..table.versions.len() {
            if table.versions[at].starts {
                lives.all.push(life(table, at as u32));
            }
        }
        lives.order(table)?;
        Ok(lives)
    }

    /// The range of a key's lives in `all`.
    pub(super) fn of_key(&self, rank: u32) -> std::ops::Range<usize> {
        self.begins[rank as usize] as usize..self.begins[rank as usize + 1] as usize
    }

    fn order(&mut self, table: &Table<'_>) -> Result<(), Flaw> {
        let all = &mut self.all;
        all.sort_unstable_by_key(Life::place);
        self.begins = vec![0; table.keys.len() + 1];
        for life in all.iter() {
            self.begins[life.rank as usize + 1] += 1;
        }
        for rank in 0..table.keys.len() {
            self.begins[rank + 1] += self.begins[rank];
        }
        for at in 1..all.len() {
            let (before, this) = (all[at - 1], all[at]);
            if before.rank != this.rank {
                continue;
            }
            all[at].max_start_up = this.max_start.max(before.max_start_up);
            all[at].max_end_up = this.max_end_up.max(before.max_end_up);
            let key = table.keys[this.rank as usize];
            if before.last == NONE && before.first == NONE {
                return Err(Flaw::absent(table.history, this.first, key));
            }
            if before.last == NONE {
                return Err(Flaw::Anomaly {
                    kind: Kind::LostUpdate,
                    transactions: vec![before.first, this.first],
                    keys: vec![key],
                    why: format!(
                        "T1 and T2 both inserted key {key}, which no transaction deleted after T1 \
                         or after T2"
                    ),
                });
            }
        }
        for at in (1..all.len()).rev() {
            let later = all[at];
            let this = &mut all[at - 1];
            if this.rank == later.rank {
                this.min_end_on = this.min_end_on.min(later.min_end_on);
                this.min_start_on = this.min_start_on.min(later.min_start_on);
            }
        }
        Ok(())
    }
}

/// Links each version with the transaction that replaced it.
fn link(table: &mut Table<'_>, effects: &[Effect]) -> Result<(), Flaw> {
    for &Effect { by, before, after } in effects {
        if before == NONE {
            if after != NONE {
                table.versions[after as usize].starts = true;
            }
            continue;
        }
        let version = &mut table.versions[before as usize];
        if version.next != NONE {
            let (key, value) = (version.key, version.value);
            return Err(Flaw::Anomaly {
                kind: Kind::LostUpdate,
                transactions: vec![version.next, by],
                keys: vec![key],
                why: format!("T1 and T2 both read key {key} = {value} and then wrote the key"),
            });
        }
        (version.next, version.follower) = (by, after);
    }
    Ok(())
}

/// Notes which transactions touched each version.
fn touch(table: &mut Table<'_>, observed: &[Observed]) {
    let history = table.history;
    for version in &mut table.versions {
        for by in [version.writer, version.next] {
            if by != NONE {
                version.touched(&history.transactions[by as usize]);
            }
        }
    }
    for &Observed { by, fact } in observed {
        if let Fact::Version(at) = fact {
            table.versions[at as usize].touched(&history.transactions[by as usize]);
        }
    }
}

/// The life that begins with this version.
fn life(table: &Table<'_>, start: u32) -> Life {
    let mut version = table.version(start);
    let (key, first) = (version.key, version.writer);
    let (mut min_end, mut max_start) = (version.min_end, version.max_start);
    while version.follower != NONE {
        version = table.version(version.follower);
        min_end = min_end.min(version.min_end);
        max_start = max_start.max(version.max_start);
    }
    let rank = table.rank(key).unwrap_or(NONE);
    let last = version.next;
    Life {
        rank,
        first,
        last,
        min_end,
        max_start,
        min_end_on: min_end,
        max_start_up: max_start,
        max_end_up: min_end,
        min_start_on: max_start,
    }
}

//! The versions of each group of values over time, for scans by group.
//!
//! A scan by group says of each version that it did not return that its key does not have it. This
//! matters for the versions that may be there at some time of the scan's transaction: of all
//! others, real time says the same.

use super::history::{Entry, GROUPS, Range, group};
use super::own::{Fact, Observed};
use super::table::{Fate, NONE, Table};

/// A scan by group, as a transaction sees it.
#[derive(Clone, Debug)]
pub(super) struct Scanned {
    pub(super) by: u32,
    pub(super) range: Range,
    /// The least and the greatest place that the scan has covered.
    pub(super) covered: ((u64, u64), (u64, u64)),
    /// The keys of which the transaction knows more: those that the scan returned, and those that
    /// the transaction has written before. In order.
    pub(super) known: Vec<u64>,
}

impl Scanned {
    /// Whether the scan has missed an entry.
    fn misses(&self, entry: Entry) -> bool {
        let (from, to) = self.covered;
        let covers = (from..=to).contains(&self.range.place(entry));
        covers && self.known.binary_search(&entry.0).is_err()
    }
}

/// The versions of one group.
#[derive(Default)]
struct Versions {
    /// Those that were replaced, by the start of their writers. Each has the greatest end of a
    /// transaction that replaced it or an earlier one.
    replaced: Vec<(u64, u64, u32)>,
    /// The others.
    last: Vec<u32>,
}

/// Adds the versions that scans have missed to what was observed. The versions are linked.
pub(super) fn missed(table: &Table<'_>, scans: &[Scanned], observed: &mut Vec<Observed>) {
    if scans.is_empty() {
        return;
    }
    let groups = by_group(table);
    for scan in scans {
        let of = table.transaction(scan.by);
        let mut see = |at: u32| {
            let version = table.version(at);
            if version.writer != scan.by && scan.misses((version.key, version.value)) {
                observed.push(Observed { by: scan.by, fact: Fact::Missed(at) });
            }
        };
        let end = scan.range.to.saturating_add(1).min(GROUPS);
        for group in &groups[scan.range.from.min(end) as usize..end as usize] {
            group.last.iter().copied().for_each(&mut see);
            let begun = group.replaced.partition_point(|&(start, ..)| start <= of.end);
            let there = group.replaced[..begun].iter().rev();
            there.take_while(|&&(_, end, _)| end >= of.start).for_each(|&(.., at)| see(at));
        }
    }
}

fn by_group(table: &Table<'_>) -> [Versions; GROUPS as usize] {
    let mut groups: [Versions; GROUPS as usize] = Default::default();
    for (at, version) in table.versions.iter().enumerate() {
        if version.fate != Fate::Final {
            continue;
        }
        let of = &mut groups[group(version.value) as usize];
        if version.next == NONE {
            of.last.push(at as u32);
        } else {
            let start =
                if version.writer == NONE { 0 } else { table.transaction(version.writer).start };
            of.replaced.push((start, table.transaction(version.next).end, at as u32));
        }
    }
    for group in &mut groups {
        group.replaced.sort_unstable();
        let mut latest = 0;
        for (_, end, _) in &mut group.replaced {
            latest = latest.max(*end);
            *end = latest;
        }
    }
    groups
}

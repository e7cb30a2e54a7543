//! The places of nodes and locks.

use super::heap::{Block, LOCK, NODE, census_of_nodes};
use super::trees::LOCK_BYTES;
use silvics_layout::{Level, Machine};
use std::collections::{HashMap, HashSet};

/// Facts about the objects of a database and its tree.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The pages of 4 KiB that hold nodes.
    pub pages: usize,
    /// The regions of 2 MiB that hold nodes.
    pub regions: usize,
    /// The mean length of a run of adjacent such pages.
    pub run: f64,
    /// The nodes' share of the bytes in their size classes.
    pub share: f64,
    pub locks: Locks,
}

/// The locks of rows, and the lines that they lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Locks {
    /// The locks for each line that has bytes of locks.
    pub per_line: f64,
    /// The share of the locks that have bytes in a line with bytes of another lock.
    pub sharing: f64,
}

impl Facts {
    /// The facts about a database with these live blocks.
    pub fn of(blocks: &[Block], machine: &Machine) -> Self {
        let mut census = census_of_nodes(blocks);
        let survey = census.survey(&machine.sets(Level::L1));
        let locks = blocks.iter().filter(|block| block.kind == LOCK).map(|block| block.address);
        let locks = Locks::at(&locks.collect::<Vec<_>>());
        let (share, facts) = (share(blocks), survey.facts(0));
        facts.map_or_else(Self::default, |nodes| Self {
            pages: nodes.pages,
            regions: nodes.regions,
            run: nodes.pages as f64 / nodes.page_runs as f64,
            share,
            locks,
        })
    }
}

/// The nodes' share of the bytes of all blocks in the size classes of nodes.
fn share(blocks: &[Block]) -> f64 {
    let nodes = || blocks.iter().filter(|block| block.kind == NODE);
    let classes: HashSet<usize> = nodes().map(|block| block.class).collect();
    let all = blocks.iter().filter(|block| classes.contains(&block.class));
    let bytes: usize = all.map(|block| block.class).sum();
    nodes().map(|block| block.class).sum::<usize>() as f64 / bytes.max(1) as f64
}

/// The bytes of a line, on all machines that have presets.
const LINE: usize = 64;

impl Locks {
    /// Locks at these addresses. Padding behind a lock does not count.
    fn at(locks: &[usize]) -> Self {
        let lines = |lock: &usize| lock / LINE..=(lock + LOCK_BYTES - 1) / LINE;
        let mut held: HashMap<usize, u32> = HashMap::new();
        for line in locks.iter().flat_map(lines) {
            *held.entry(line).or_default() += 1;
        }
        let shares = |lock: &&usize| lines(lock).any(|line| held[&line] > 1);
        let sharing = locks.iter().filter(shares).count();
        let each = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        Self { per_line: each(locks.len(), held.len()), sharing: each(sharing, locks.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_share_lines_unless_something_else_lies_between_them() {
        let locks =
            |stride: usize| Locks::at(&(0..400).map(|lock| lock * stride).collect::<Vec<_>>());
        assert_eq!(locks(48), Locks { per_line: 4.0 / 3.0, sharing: 1.0 });
        assert_eq!(locks(96), Locks { per_line: 2.0 / 3.0, sharing: 0.0 });
        assert_eq!(locks(192), Locks { per_line: 1.0, sharing: 0.0 });
    }
}

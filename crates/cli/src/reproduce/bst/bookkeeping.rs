//! bst/1.8: the bookkeeping of lookups in `occ-avl-2`.

use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab};
use silvics::bst::bronson::build::{Baseline2, Build, Restarting2};
use silvics::{AllocError, BronsonTree, Options, Pooled, Recorded};
use silvics_layout::Read;
use silvics_layout::record::{self, Why};
use silvics_workload::{Choice, Dist, Share};
use std::collections::HashSet;

/// bst/1.8.
pub fn bookkeeping(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(facts(lab.plan.keys(1_000_000), lab.plan.seed)?);
    }
    if lab.wants(Level::Clock) {
        let keys = lab.plan.keys(1_000_000);
        let bed = |index| Bed::segregated(index, keys);
        let [returning, restarting, bare] =
            ["occ-avl-2:fixed", "occ-avl-2:ret", "occ-avl-2:unsafe"].map(bed);
        for (what, claimed, beds) in [
            ("-ret / occ-avl-2", "+17 % on haswell", [&returning, &restarting]),
            ("-unsafe / -ret", "+12 % on haswell", [&restarting, &bare]),
            ("-unsafe / occ-avl-2", "+31 % on haswell", [&returning, &bare]),
        ] {
            let ratio = lab.speedup(beds)?;
            lines.push(Evidence::faster(format!("lookups, {what}"), claimed, ratio));
        }
    }
    Ok(lines)
}

/// A tree whose lookups record what they read.
type Tree<B> = BronsonTree<Recorded<Pooled>, B>;

/// The reads of one lookup of each key.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    visits: usize,
    /// The words that a search needs from the nodes it passes, each counted once.
    words: usize,
    /// The loads of those words, of links that are not followed, and of words that are loaded
    /// again.
    loads: usize,
    /// The lookups that came to a node twice.
    restarts: usize,
}

impl Tally {
    fn add(&mut self, reads: &[Read]) {
        let passed = |read: &&Read| read.why == Why::Step;
        let visited: Vec<usize> = reads.iter().filter(passed).map(|read| read.object).collect();
        let distinct: HashSet<usize> = visited.iter().copied().collect();
        let runs = visited.chunk_by(|a, b| a == b).count();
        self.visits += distinct.len();
        self.words += visited.len();
        self.loads += reads.iter().filter(|read| read.why != Why::Found).count();
        self.restarts += usize::from(runs > distinct.len());
    }

    fn per_visit(self, count: usize) -> f64 {
        count as f64 / self.visits.max(1) as f64
    }
}

fn facts(keys: usize, seed: u64) -> Result<Vec<Evidence>, Error> {
    let refused = |error| Error::Alloc { index: "occ-avl-2".into(), error };
    let returning = filled::<Baseline2>(keys, seed).map_err(refused)?;
    let restarting = filled::<Restarting2>(keys, seed).map_err(refused)?;
    let choice = choice(keys, seed);
    let versioned = in_two_threads(&choice, |key, reads| {
        let pinned = returning.pin();
        record::of(reads, || pinned.get(key)).is_some()
    })?;
    let restarted = in_two_threads(&choice, |key, reads| {
        let pinned = restarting.pin();
        record::of(reads, || pinned.get(key)).is_some()
    })?;
    let frozen = restarting.freeze();
    let bare =
        in_two_threads(&choice, |key, reads| record::of(reads, || frozen.get(key)).is_some())?;
    Ok(judge(versioned, restarted, bare))
}

fn judge(versioned: Tally, restarted: Tally, bare: Tally) -> Vec<Evidence> {
    // The source's lookups load each word that they need once. Ours load some more than once, so
    // the words that they need decide.
    let words = |what: &str, expected, tally: Tally, more: &str| {
        let what = format!("{what}: words needed of a node that a lookup passes");
        let loads = format!("({:.2} loads: {more})", tally.per_visit(tally.loads));
        let found = tally.per_visit(tally.words);
        Evidence::fact(what, Unit::Number(2), Expected::exactly(expected), found).with(&loads)
    };
    let (links, again) = ("both links", "both links, and link and version once more");
    let restarts = |what: &str, tally: Tally| {
        let what = format!("{what}: lookups that came to a node twice, all keys by two threads");
        Evidence::fact(what, Unit::Number(0), Expected::exactly(0.0), tally.restarts as f64)
    };
    vec![
        words("occ-avl-2", 3.0, versioned, again),
        words("-ret", 3.0, restarted, again),
        words("-unsafe", 2.0, bare, links),
        restarts("occ-avl-2", versioned),
        restarts("-ret", restarted),
    ]
}

fn choice(keys: usize, seed: u64) -> Choice {
    Choice::new(Dist::Uniform, 2 * keys, seed)
}

fn filled<B: Build>(keys: usize, seed: u64) -> Result<Tree<B>, AllocError> {
    let tree = Tree::<B>::with_options(&Options::default())?;
    for key in choice(keys, seed).load_part(Share::ALONE) {
        tree.pin().insert(u64::from(key), 1)?;
    }
    Ok(tree)
}

/// Looks up every inserted key, half of them in each of two concurrent threads.
fn in_two_threads(
    choice: &Choice,
    get: impl Fn(u64, &mut Vec<Read>) -> bool + Sync,
) -> Result<Tally, Error> {
    let wrong = |what: String| Error::Wrong { index: "occ-avl-2".into(), what };
    let part = |thread| {
        let (mut tally, mut reads) = (Tally::default(), Vec::new());
        for key in choice.load_part(Share { thread, threads: 2 }) {
            reads.clear();
            if !get(u64::from(key), &mut reads) {
                return Err(wrong(format!("key {key} was inserted, and is not there")));
            }
            tally.add(&reads);
        }
        Ok(tally)
    };
    let parts = std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| scope.spawn(move || part(thread)));
        threads.map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::Panicked { index: "occ-avl-2".into() }))
        })
    });
    let mut all = Tally::default();
    for part in parts {
        let part = part?;
        all.visits += part.visits;
        all.words += part.words;
        all.loads += part.loads;
        all.restarts += part.restarts;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    #[test]
    fn lookups_read_versions_unless_they_may_not_change() {
        let lines = facts(2000, 1).unwrap();
        assert_eq!(verdict(&lines), Verdict::Confirmed, "{lines:#?}");
    }

    /// Some lookups lack a version that they should read, and some restart.
    #[test]
    fn other_lookups_contradict_the_claim() {
        let three = Tally { visits: 100, words: 300, loads: 600, restarts: 0 };
        let two = Tally { words: 200, loads: 300, ..three };
        assert_eq!(verdict(&judge(three, three, two)), Verdict::Confirmed);
        assert_eq!(verdict(&judge(two, three, two)), Verdict::Contradicted);
        let again = Tally { restarts: 1, ..three };
        assert_eq!(verdict(&judge(three, again, two)), Verdict::Contradicted);
    }
}

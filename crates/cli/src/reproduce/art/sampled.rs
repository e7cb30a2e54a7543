//! A tree whose lookups have been sampled, before and after its reorganization.

use super::Keys;
use super::curve::{LOOKUPS_MAX, Point, machine, point};
use super::draws::Draws;
use crate::drive::keys::BenchKey;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::evidence::Level;
use crate::reproduce::lab::Lab;
use silvics::art::hot::{self, Policy, ReorganizeError, Report, Sampling};
use silvics::{ArtTree, Check, Options, Pages, Placement};
use silvics_layout::record::{self, Read};
use silvics_layout::{Latencies, PageSize, Replay};
use silvics_pool::{HUGE_PAGE, SMALL_PAGE};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_workload::{Choice, Share, WordKeys};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

/// A tree, its keys and its lookups.
pub struct Sampled<P: Placement> {
    pub tree: ArtTree<u64, P, hot::Sampled>,
    space: WordKeys,
    draws: Draws,
}

/// The number of lookups per key that are sampled.
const OF_A_KEY: usize = 16;
/// One sampled lookup in `EVERY` is noted, so that skew and not chance decides which nodes are
/// moved.
const EVERY: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// The bytes for notes: more than enough for one in 64 of 16 million lookups, at 16 bytes each.
const NOTES_BYTES: usize = 8 << 20;

/// The numbers of draws: of the lookups that are sampled, and of later lookups.
const BEFORE: u32 = 0;
const LATER: u32 = 1;

/// The entries of a tree, in order.
pub type Entries = Vec<(u64, u64)>;

impl<P: Placement> Sampled<P> {
    /// Inserts the keys in random order, and looks them up with a skew.
    pub fn new(
        keys: Keys,
        count: usize,
        exponent: f64,
        pages: Pages,
        seed: u64,
    ) -> Result<Self, Error> {
        let options = Options { pages, ..Options::default() };
        let tree = ArtTree::with_options(&options).map_err(failed)?;
        let (space, draws) = (keys.space(count, seed), Draws::new(exponent, count, seed));
        let sampled = Self { tree, space, draws };
        sampled.load(&super::zipf(0.0, count, seed))?;
        sampled.look_up(OF_A_KEY * count)?;
        Ok(sampled)
    }

    fn load(&self, choice: &Choice) -> Result<(), Error> {
        for position in choice.load_part(Share::ALONE) {
            self.tree
                .pin()
                .insert(self.space.key(position), self.value(position))
                .map_err(failed)?;
        }
        Ok(())
    }

    fn look_up(&self, count: usize) -> Result<(), Error> {
        self.tree.sample(Some(noted()));
        let mut missed = 0_u64;
        self.draws.each(BEFORE, count, |position| {
            if !interrupt::pending() {
                missed += u64::from(!self.finds(position));
            }
        });
        self.tree.sample(None);
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        if missed > 0 { Err(wrong(format!("{missed} lookups missed a key"))) } else { Ok(()) }
    }

    /// The value of the key at a position. Runs by the clock check the same value.
    fn value(&self, position: u32) -> u64 {
        <u64 as BenchKey>::value(&self.space, position)
    }

    #[inline]
    fn finds(&self, position: u32) -> bool {
        self.tree.pin().get(self.space.key(position)) == Some(self.value(position))
    }

    /// The positions of later lookups, as many as a model needs.
    pub fn later(&self) -> Vec<u32> {
        let mut later = Vec::new();
        self.draws
            .each(LATER, 3 * self.space.len().min(LOOKUPS_MAX), |position| later.push(position));
        later
    }

    /// Moves the nodes and leaves that were read most.
    pub fn reorganize(&self, policy: Policy) -> Result<Report, Error> {
        self.tree.reorganize(policy).map_err(refused)
    }

    /// All entries, in order, after a check of the whole tree.
    pub fn entries(&mut self) -> Result<Entries, Error> {
        let checked = self.tree.check().map_err(|violation| wrong(violation.to_string()))?;
        let entries: Entries = self.tree.pin().range(..).collect();
        if entries.len() == checked {
            return Ok(entries);
        }
        Err(wrong(format!("{checked} keys are in the tree, and a scan finds {}", entries.len())))
    }
}

/// The sampling of lookups. There is room for all notes.
fn noted() -> Sampling {
    Sampling { every: EVERY, bytes: NOTES_BYTES }
}

/// The index, in errors.
pub const NAME: &str = "art";

fn failed(error: silvics::AllocError) -> Error {
    Error::Alloc { index: NAME.into(), error }
}

fn wrong(what: String) -> Error {
    Error::Wrong { index: NAME.into(), what }
}

fn refused(error: ReorganizeError) -> Error {
    match error {
        ReorganizeError::Alloc(error) => failed(error),
        other => wrong(other.to_string()),
    }
}

/// The number of entries that differ from those before, at the same place in the order.
pub fn differing(before: &Entries, after: &Entries) -> usize {
    let both = before.iter().zip(after);
    both.filter(|(a, b)| a != b).count() + before.len().abs_diff(after.len())
}

/// The pages that lookups read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reads {
    /// The number of pages of 4 KiB with 90 % of the reads.
    pub small: usize,
    /// The number of pages of 2 MiB with 90 % of the reads.
    pub huge: usize,
    /// The cost of the lookups in the model, if it is requested.
    pub point: Option<Point>,
}

/// The number of reads of each page of a size.
#[derive(Default)]
struct Counted {
    pages: HashMap<usize, u64>,
    all: u64,
}

impl Counted {
    fn add(&mut self, page: usize) {
        *self.pages.entry(page).or_default() += 1;
        self.all += 1;
    }

    /// The number of pages with 90 % of the reads.
    fn most(&self) -> usize {
        let mut counts: Vec<u64> = self.pages.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut covered = 0;
        let short = |count: &&u64| {
            let short = 10 * covered < 9 * self.all;
            covered += **count;
            short
        };
        counts.iter().take_while(short).count()
    }
}

impl<P: Placement> Sampled<P> {
    /// The pages that these lookups read. The last third of the lookups counts. Those before fill
    /// the caches of a model with pages of the given size.
    pub fn reads(&self, lab: &Lab, later: &[u32], pages: PageSize) -> Result<Reads, Error> {
        let replay = lab.wants(Level::Model).then(|| Replay::new(&machine(lab), pages, None));
        let replay = replay.transpose().map_err(|error| Error::value("--machine", error))?;
        let mut replay = replay.map(|replay| replay.walking(Latencies::SANDY_BRIDGE));
        let (mut small, mut huge) = (Counted::default(), Counted::default());
        let (warm, counted) = later.split_at(later.len() / 3 * 2);
        self.each(warm, |reads| {
            if let Some(replay) = &mut replay {
                replay.lookup(reads);
            }
        })?;
        if let Some(replay) = &mut replay {
            replay.warm();
        }
        self.each(counted, |reads| {
            for read in reads {
                small.add(read.address / SMALL_PAGE);
                huge.add(read.address / HUGE_PAGE);
            }
            if let Some(replay) = &mut replay {
                replay.lookup(reads);
            }
        })?;
        Ok(Reads { small: small.most(), huge: huge.most(), point: replay.as_ref().map(point) })
    }

    fn each(&self, lookups: &[u32], mut see: impl FnMut(&[Read])) -> Result<(), Error> {
        let mut reads = Vec::new();
        for position in lookups {
            reads.clear();
            if !record::of(&mut reads, || self.finds(*position)) {
                return Err(wrong(format!("a lookup missed the key at {position}")));
            }
            see(&reads);
            if interrupt::pending() {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }
}

/// Lookups of a thread while another thread moves the nodes that they read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// The number of lookups that began and ended during a reorganization.
    pub lookups: u64,
    /// The number of reorganizations.
    pub rounds: u64,
    /// The number of objects that these reorganizations moved.
    pub moved: usize,
    /// The longest lookup that overlapped a reorganization.
    pub longest: Duration,
    /// The longest of the other lookups, in the same amount of time.
    pub longest_alone: Duration,
    /// The number of lookups that missed a key or found another value, at any time.
    pub failed: u64,
}

/// The number of lookups during reorganizations after which these end, if there were at least
/// `SOME` reorganizations.
const ENOUGH: u64 = 20_000;
const SOME: u64 = 10;
/// The most reorganizations: on one core, enough lookups may take a long time.
const ROUNDS: u64 = 200;

impl<P: Placement> Sampled<P> {
    /// Lets a thread look up these positions with sampling on, and moves all that it reads, again
    /// and again.
    pub fn beside(&self, later: &[u32]) -> Result<Beside, Error> {
        self.tree.sample(Some(noted()));
        let (turn, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let result = thread::scope(|scope| {
            let reader = scope.spawn(|| self.read_beside(later, &turn, &done));
            let moved = self.move_beside(&turn, &done);
            // The reader must end, whatever the result.
            turn.store(END, Ordering::Release);
            let seen = reader.join().map_err(|_| Error::Panicked { index: NAME.into() })?;
            let (rounds, moved) = moved?;
            Ok(Beside { rounds, moved, ..seen })
        });
        self.tree.sample(None);
        result
    }

    /// Looks up keys until the last turn. Odd turns are those with a reorganization.
    fn read_beside(&self, later: &[u32], turn: &AtomicU64, done: &AtomicU64) -> Beside {
        let mut seen = Beside::default();
        for position in later.iter().cycle() {
            let before = turn.load(Ordering::Acquire);
            if before == END {
                break;
            }
            let began = Instant::now();
            let found = self.finds(*position);
            let took = began.elapsed();
            seen.failed += u64::from(!found);
            let after = turn.load(Ordering::Acquire);
            if before.is_multiple_of(2) && after == before {
                seen.longest_alone = seen.longest_alone.max(took);
                continue;
            }
            // A lookup counts if it overlapped any part of a reorganization. A lookup that is held
            // up until the end of one overlaps most of all.
            seen.longest = seen.longest.max(took);
            if after == before {
                seen.lookups += 1;
                done.store(seen.lookups, Ordering::Relaxed);
            }
        }
        seen
    }

    /// Reorganizes until there were enough lookups meanwhile. Returns the numbers of
    /// reorganizations and of moved objects.
    fn move_beside(&self, turn: &AtomicU64, done: &AtomicU64) -> Result<(u64, usize), Error> {
        let policy = Policy { share: 1.0, least_gain: 0.0, ..Policy::default() };
        let (mut rounds, mut moved, mut took) = (0, 0, Duration::ZERO);
        for _ in 0..ROUNDS {
            thread::sleep(Duration::from_millis(5)); // lookups to go by
            let began = Instant::now();
            turn.fetch_add(1, Ordering::Release);
            let report = self.tree.reorganize(policy);
            turn.fetch_add(1, Ordering::Release);
            took += began.elapsed();
            match report {
                Ok(report) => (rounds, moved) = (rounds + 1, moved + report.nodes + report.leaves),
                // The reader has not run yet, or is still reading one of the last regions.
                Err(ReorganizeError::NoSamples | ReorganizeError::Regions) => {}
                Err(other) => return Err(refused(other)),
            }
            if interrupt::pending() {
                return Err(Error::Interrupted);
            }
            if rounds >= SOME && done.load(Ordering::Relaxed) >= ENOUGH {
                break;
            }
        }
        thread::sleep(took); // lookups to compare those beside it with
        Ok((rounds, moved))
    }
}

/// The value that ends the turns.
const END: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_is_nine_tenths() {
        let of = |counts: &[(usize, usize)]| {
            let mut counted = Counted::default();
            for (page, count) in counts {
                (0..*count).for_each(|_| counted.add(*page));
            }
            counted.most()
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(7, 90), (3, 10)]), 1);
        assert_eq!(of(&[(3, 11), (7, 89)]), 2);
        assert_eq!(of(&[(1, 1), (2, 1), (3, 1), (4, 97)]), 1);
    }

    #[test]
    fn what_is_not_as_it_was_is_counted() {
        let of = |entries: &[u64]| entries.iter().map(|key| (*key, 2 * key)).collect::<Entries>();
        assert_eq!(differing(&of(&[1, 2, 3]), &of(&[1, 2, 3])), 0);
        assert_eq!(differing(&of(&[1, 2, 3]), &vec![(1, 2), (2, 5), (3, 6)]), 1);
        assert_eq!(differing(&of(&[1, 2, 3]), &of(&[1, 2])), 1);
        assert_eq!(differing(&of(&[1, 2]), &of(&[1, 3, 4])), 2);
    }
}

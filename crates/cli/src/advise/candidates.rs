//! The candidates among which the advice chooses, and the changes between them.

use super::plan::Plan;
use crate::catalogue::select::{self, Chosen};
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::flags::types::{KeyType, Types};
use crate::flags::values::named;
use silvics::structures::Capability;
use silvics::{Counting, Pages, Tuning};
use silvics_workload::Op;
use std::fmt;

/// A need of a program beside its mix, which only a few maps meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An order that is chosen at run time.
    Order,
    /// Ranks of keys, and counts of ranges.
    Ranks,
    /// Snapshots that see all keys at one moment.
    Snapshots,
    /// Several values for a key.
    Values,
    /// Ranges that are read at one moment.
    AtomicRanges,
    /// The first and the last entry.
    Ends,
}

impl Need {
    const ALL: [Self; 6] =
        [Self::Order, Self::Ranks, Self::Snapshots, Self::Values, Self::AtomicRanges, Self::Ends];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Ranks => "ranks",
            Self::Snapshots => "snapshots",
            Self::Values => "values",
            Self::AtomicRanges => "atomic-ranges",
            Self::Ends => "ends",
        }
    }

    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, String> {
        named(text, "a need", Self::ALL, Self::name)
    }

    /// The contenders that have it, if these are few.
    fn contenders(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Order => Some(&["ordmap:function"]),
            Self::Ranks => Some(&["map:counted"]),
            Self::Snapshots => Some(&["versioned"]),
            Self::Values => Some(&["multimap"]),
            Self::AtomicRanges => Some(&["ca-tree", "ca-tree:avl", "lfca-tree"]),
            Self::Ends => None,
        }
    }

    /// The contenders beside the structures that do not have it.
    fn lacking(self) -> &'static [&'static str] {
        if self == Self::Ends { &["versioned", "multimap"] } else { &[] }
    }
}

/// The figure by which a candidate is better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The most operations per second.
    Speed,
    /// The fewest bytes, of the candidates with at least half of the rate of the fastest.
    Memory,
}

impl Goal {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Memory => "memory",
        }
    }

    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, String> {
        named(text, "a goal", [Self::Speed, Self::Memory], Self::name)
    }
}

/// A structure, where its nodes lie, how it counts its keys, and the keys of a call.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub chosen: Chosen,
    pub place: Place,
    pub counting: Counting,
    pub batch: usize,
    /// Whether it is what the usual map gives.
    usual: bool,
}

/// The usual place.
pub fn usual_place() -> Place {
    Place::Pooled(Pages::Thp, Tuning::default())
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.chosen.name() == other.chosen.name()
            && (self.place, self.counting, self.batch) == (other.place, other.counting, other.batch)
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.chosen.name(), self.place.name())?;
        if matches!(self.place, Place::Pooled(..)) {
            write!(f, " on {} pages", self.place.pages())?;
        }
        if self.counting == Counting::Single {
            f.write_str(", one count")?;
        }
        if self.batch > 1 {
            write!(f, ", {} keys a call", self.batch)?;
        }
        Ok(())
    }
}

impl Candidate {
    fn usual_of(chosen: Chosen) -> Self {
        Self { chosen, place: usual_place(), counting: Counting::Striped, batch: 1, usual: false }
    }

    /// Whether it is the candidate of `Map::new()` and of single calls.
    pub fn is_usual(&self) -> bool {
        self.usual && self.changes() == 0
    }

    /// Whether its structure is the one that `Map` has by default, or the only one with what is
    /// needed.
    pub fn has_usual_structure(&self) -> bool {
        self.usual
    }

    /// The number of its parts that a program has to ask for.
    pub fn changes(&self) -> usize {
        usize::from(!self.usual)
            + usize::from(self.place != usual_place())
            + usize::from(self.counting != Counting::Striped)
            + usize::from(self.batch > 1)
    }

    /// Whether its structure is that of another candidate.
    pub fn shares_structure(&self, other: &Self) -> bool {
        self.chosen.name() == other.chosen.name()
    }

    /// The candidates that differ from this one in one part.
    pub fn neighbours(&self, plan: &Plan) -> Vec<Self> {
        let mut candidates = Vec::new();
        for place in places(&self.chosen, plan.key_type) {
            candidates.push(Self { place, ..*self });
        }
        for counting in countings(plan) {
            candidates.push(Self { counting, ..*self });
        }
        for batch in batches(plan) {
            candidates.push(Self { batch, ..*self });
        }
        candidates.retain(|candidate| candidate != self);
        candidates
    }

    /// This candidate with what another has changed against the one that both come from.
    #[must_use]
    pub fn with_change(self, from: &Self, other: &Self) -> Self {
        let mut candidate = self;
        if other.place != from.place {
            candidate.place = other.place;
        }
        if other.counting != from.counting {
            candidate.counting = other.counting;
        }
        if other.batch != from.batch {
            candidate.batch = other.batch;
        }
        candidate
    }
}

/// The usual candidate of each structure that can do what is needed, the usual one first.
pub fn structures(plan: &Plan) -> Result<Vec<Candidate>, Error> {
    let names = names(plan);
    let types = Types::words(plan.key_type);
    let mut candidates = Vec::new();
    for name in &names {
        let Ok((chosen, _)) = select::select(name, None, types, &[plan.mix]) else { continue };
        candidates.extend(chosen.into_iter().map(Candidate::usual_of));
    }
    if candidates.is_empty() {
        let needs: Vec<&str> = plan.needs.iter().map(|need| need.name()).collect();
        let problem = format!(
            "no map has all of {} with {} keys and --mix {}: leave one of them out",
            needs.join(", "),
            plan.key_type,
            plan.mix
        );
        return Err(Error::value("--needs", problem));
    }
    candidates[0].usual = true;
    Ok(candidates)
}

/// The candidates of the first stage: each structure in its usual place, called with as many keys
/// as the program can hand over, and the usual candidate, which is first.
pub fn first(plan: &Plan) -> Result<Vec<Candidate>, Error> {
    let structures = structures(plan)?;
    let usual = structures[0];
    let batch = batches(plan).last().copied().unwrap_or(1);
    let mut candidates: Vec<Candidate> =
        structures.into_iter().map(|candidate| Candidate { batch, ..candidate }).collect();
    if batch > 1 {
        candidates.insert(0, usual);
    }
    Ok(candidates)
}

/// The names of the contenders that can do what is needed, the usual one first.
fn names(plan: &Plan) -> Vec<String> {
    let wants = |need: Need| plan.needs.contains(&need);
    let mut lists = plan.needs.iter().filter_map(|need| need.contenders());
    if let Some(first) = lists.next() {
        let others: Vec<_> = lists.collect();
        let fits = |name: &&&str| {
            others.iter().all(|list| list.contains(name))
                && !plan.needs.iter().any(|need| need.lacking().contains(name))
        };
        return first.iter().filter(fits).map(|name| (*name).to_owned()).collect();
    }
    let usual = if plan.key_type == KeyType::Bytes { "blocks" } else { "words" };
    let mut names = vec![usual.to_owned()];
    // A map scans, so its index does. `map` itself is its usual index.
    let of_table = silvics::structures::STRUCTURES.iter().map(|facts| facts.name);
    let scans = |name: &&str| {
        crate::catalogue::all()
            .iter()
            .any(|entry| entry.name == *name && entry.scans(plan.key_type))
    };
    names.extend(of_table.filter(|name| *name != usual).filter(scans).map(str::to_owned));
    names.extend(BUILDS.map(str::to_owned));
    if wants(Need::Ends) {
        let has_ends = |name: &String| {
            let structure = name.split(':').next().unwrap_or_default();
            let facts =
                silvics::structures::STRUCTURES.iter().find(|facts| facts.name == structure);
            facts.is_some_and(|facts| facts.capability >= Capability::Ends)
        };
        names.retain(has_ends);
    }
    names
}

/// The builds beside the first one of each structure that a program may choose.
const BUILDS: [&str; 3] = ["blocks:prefixes", "ca-tree:avl", "edge-ext-lf:collocated"];

/// The places that nodes can have.
fn places(chosen: &Chosen, key_type: KeyType) -> Vec<Place> {
    let pools = [Pages::Thp, Pages::Small].map(|pages| Place::Pooled(pages, Tuning::default()));
    let shared = chosen.takes_place(Place::Shared, Types::words(key_type)).then_some(Place::Shared);
    pools.into_iter().chain(shared).collect()
}

/// The ways to count keys. One thread alone, or threads that only look keys up, cannot tell them
/// apart.
fn countings(plan: &Plan) -> Vec<Counting> {
    if plan.threads > 1 && plan.mix.writes() {
        vec![Counting::Striped, Counting::Single]
    } else {
        vec![Counting::Striped]
    }
}

/// The numbers of keys of a call that are tried. Maps of some needs have no batches, and some
/// operations.
fn batches(plan: &Plan) -> Vec<usize> {
    let without = [Need::Order, Need::Snapshots, Need::Values];
    let makes = |op| plan.mix.share(op) > 0;
    let can = makes(Op::Lookup)
        || ((makes(Op::Insert) || makes(Op::Upsert)) && !plan.needs.contains(&Need::Ranks));
    let has_batches = can && plan.needs.iter().all(|need| !without.contains(need));
    let most = if has_batches { plan.batch } else { 1 };
    let mut batches = vec![1, most.min(16), most.min(64), most];
    batches.dedup();
    batches
}

/// Every candidate: each structure in each place, with each count and number of keys of a call.
pub fn every(plan: &Plan) -> Result<Vec<Candidate>, Error> {
    let mut candidates = Vec::new();
    for candidate in structures(plan)? {
        for place in places(&candidate.chosen, plan.key_type) {
            for counting in countings(plan) {
                for batch in batches(plan) {
                    candidates.push(Candidate { place, counting, batch, ..candidate });
                }
            }
        }
    }
    Ok(candidates)
}

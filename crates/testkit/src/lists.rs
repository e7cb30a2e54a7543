//! Records histories of maps with several values for a key, and checks them.
//!
//! # Method
//! Threads add values to a few keys, take them away, and read the values of keys. The calls on one
//! key must have an order that explains all answers: the search of [`crate::linearizable`] looks
//! for it. Its state is the list of a key's values. So values that are read together must have been
//! there at one moment.
//!
//! Threads write few keys with few values, so that calls meet, and values come back. At the end of
//! a history each key is read once more, and the map's own check must pass.
//!
//! # Not checked
//! Scans over several keys, which are not atomic between keys.

use crate::clock::Clock;
use crate::crew::together;
use crate::failure::ensure;
use crate::linearizable::{BUDGET, Call, Object, Refusal, States, Violation, follow};
use crate::rng::Rng;
use crate::verify::{self, Kinds, Plan, Report, Wrong, in_sequence};
use crate::versions::NumberedKey;
use crate::{Failure, Outcome};
use silvics::map::MapIndex;
use silvics::multi::{FindOrder, Inserted, MultiMap, Order, Sorted};
use silvics::{Check, Options};
use smallvec::SmallVec;
use std::fmt;

/// The keys of a history.
const KEYS: u32 = 24;
/// The values that keys can have.
const VALUES: u64 = 12;
/// The rounds of a history, in which threads meet, and the calls of a thread in each of them.
const ROUNDS: usize = 24;
const TURNS: usize = 48;

/// The values of a key, in the order of the map.
pub type List = SmallVec<[u8; 16]>;

/// A map with several values for a key, whatever its types.
pub trait Lists: Send + Sync {
    /// Whether the values of a key are sorted, and each is there once at most. Otherwise they are
    /// in the order of insertion.
    fn sorted(&self) -> bool;
    /// Gives a key a value. Returns whether it was added.
    fn add(&self, key: u32, value: u8) -> Result<bool, Failure>;
    /// Takes the first value that is equal away. Returns whether there was one.
    fn take(&self, key: u32, value: u8) -> Result<bool, Failure>;
    /// Removes a key. Returns the number of its values.
    fn take_all(&self, key: u32) -> Result<usize, Failure>;
    /// The values of a key, read forwards or backwards.
    fn values(&self, key: u32, backwards: bool) -> List;
    /// The number of values of a key.
    fn count(&self, key: u32) -> usize;
    /// Checks a map that nobody uses any more, and that has this number of values.
    fn at_rest(self: Box<Self>, values: usize) -> Outcome;
}

/// Makes an empty map.
pub type Make<'a> = &'a (dyn Fn(&Options) -> Result<Box<dyn Lists>, Failure> + Sync);

/// Makers of maps with values in each order.
#[derive(Clone, Copy)]
pub struct Makers<'a> {
    /// Makes a map whose values are sorted.
    pub sorted: Make<'a>,
    /// Makes a map whose values are in the order of insertion.
    pub inserted: Make<'a>,
}

/// A [`MultiMap`] with its keys.
struct Multi<K: NumberedKey, O, I: MapIndex<Key = K::Form>> {
    map: MultiMap<K, u8, O, I>,
    keys: Vec<K>,
}

/// The order of values, for histories.
pub trait Listed: Order<u8> + FindOrder<u8> + Send + Sync + 'static {
    /// Whether values are sorted.
    const SORTED: bool;
}

impl Listed for Sorted {
    const SORTED: bool = true;
}
impl Listed for Inserted {
    const SORTED: bool = false;
}

/// Makes a [`MultiMap`] for histories.
pub fn multi<K: NumberedKey, O: Listed, I: MapIndex<Key = K::Form> + Check + 'static>(
    options: &Options,
) -> Result<Box<dyn Lists>, Failure> {
    let map = MultiMap::<K, u8, O, I>::with_options(options)?;
    Ok(Box::new(Multi { map, keys: (0..KEYS).map(K::nth).collect() }))
}

impl<K: NumberedKey, O: Listed, I: MapIndex<Key = K::Form> + Check> Lists for Multi<K, O, I> {
    fn sorted(&self) -> bool {
        O::SORTED
    }

    fn add(&self, key: u32, value: u8) -> Result<bool, Failure> {
        let added = self.map.try_insert(&self.keys[key as usize], value);
        Ok(added.map_err(|rejected| rejected.error)?.is_added())
    }

    fn take(&self, key: u32, value: u8) -> Result<bool, Failure> {
        Ok(self.map.try_remove(&self.keys[key as usize], &value)?.is_some())
    }

    fn take_all(&self, key: u32) -> Result<usize, Failure> {
        Ok(self.map.try_remove_all(&self.keys[key as usize])?)
    }

    fn values(&self, key: u32, backwards: bool) -> List {
        let view = self.map.pin();
        let values = view.values(&self.keys[key as usize]).map(|value| *value);
        if backwards {
            let mut values: List = values.rev().collect();
            values.reverse();
            return values;
        }
        values.collect()
    }

    fn count(&self, key: u32) -> usize {
        self.map.count(&self.keys[key as usize])
    }

    fn at_rest(self: Box<Self>, values: usize) -> Outcome {
        let (mut map, len) = (self.map, values);
        ensure!(map.len() == len, "`len` is {}, and {len} values were found", map.len());
        map.check().map(drop).map_err(Failure::from)
    }
}

/// A call on a key, with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    Add { value: u8, sorted: bool, added: bool },
    Take { value: u8, found: bool },
    TakeAll { count: usize },
    Values { list: List },
    Count { count: usize },
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { value, added, .. } => {
                write!(f, "insert {value} → {}", if *added { "added" } else { "present" })
            }
            Self::Take { value, found } => {
                write!(f, "remove {value} → {}", if *found { "removed" } else { "absent" })
            }
            Self::TakeAll { count } => write!(f, "remove_all → {count}"),
            Self::Values { list } => write!(f, "values → {list:?}"),
            Self::Count { count } => write!(f, "count → {count}"),
        }
    }
}

/// A key with its values.
#[derive(Debug)]
struct Values;

impl Object for Values {
    type State = List;
    type Op = Op;

    fn idles(op: &Op, state: &List) -> bool {
        Self::apply(op, state).as_ref() == Some(state)
    }

    fn changed_nothing(op: &Op) -> bool {
        match op {
            Op::Add { added: changed, .. } | Op::Take { found: changed, .. } => !changed,
            Op::TakeAll { count } => *count == 0,
            Op::Values { .. } | Op::Count { .. } => true,
        }
    }

    fn apply(op: &Op, state: &List) -> Option<List> {
        let right = match op {
            Op::Add { value, sorted, added } => *added != (*sorted && state.contains(value)),
            Op::Take { value, found } => *found == state.contains(value),
            Op::TakeAll { count } | Op::Count { count } => *count == state.len(),
            Op::Values { list } => list == state,
        };
        right.then(|| Self::effect(op, state))
    }

    fn effect(op: &Op, state: &List) -> List {
        let mut state = state.clone();
        match op {
            Op::Add { value, sorted: true, .. } => {
                if let Err(place) = state.binary_search(value) {
                    state.insert(place, *value);
                }
            }
            Op::Add { value, .. } => state.push(*value),
            Op::Take { value, .. } => {
                if let Some(place) = state.iter().position(|other| other == value) {
                    state.remove(place);
                }
            }
            Op::TakeAll { .. } => state.clear(),
            Op::Values { .. } | Op::Count { .. } => {}
        }
        state
    }
}

/// The calls on each key, by thread.
type History = Vec<Vec<Vec<Call<Op>>>>;

/// One thread's calls.
struct Caller<'a> {
    map: &'a dyn Lists,
    clock: &'a Clock,
    thread: usize,
    /// By key.
    calls: Vec<Vec<Call<Op>>>,
}

impl<'a> Caller<'a> {
    fn new(map: &'a dyn Lists, clock: &'a Clock, thread: usize) -> Self {
        Self { map, clock, thread, calls: vec![Vec::new(); KEYS as usize] }
    }

    fn call(
        &mut self,
        key: u32,
        call: impl FnOnce(&dyn Lists) -> Result<Op, Failure>,
    ) -> Result<Op, Failure> {
        let start = self.clock.start();
        let op = call(self.map);
        let end = self.clock.end();
        let op = op?;
        self.calls[key as usize].push(Call { thread: self.thread, start, end, op: op.clone() });
        Ok(op)
    }

    /// Makes a random call on one of the keys of a round.
    fn turn(&mut self, rng: &mut Rng, keys: u64, first: u64, mix: verify::Mix) -> Outcome {
        let key = ((first + rng.below(keys)) % u64::from(KEYS)) as u32;
        let value = rng.below(VALUES) as u8;
        let (inserts, removals) = (u64::from(mix.inserts), u64::from(mix.removals));
        let dice = rng.below(100);
        self.call(key, |map| {
            Ok(match dice {
                _ if dice < inserts => {
                    Op::Add { value, sorted: map.sorted(), added: map.add(key, value)? }
                }
                _ if dice < inserts + removals * 9 / 10 => {
                    Op::Take { value, found: map.take(key, value)? }
                }
                _ if dice < inserts + removals => Op::TakeAll { count: map.take_all(key)? },
                _ if dice.is_multiple_of(3) => Op::Count { count: map.count(key) },
                _ => Op::Values { list: map.values(key, dice % 3 == 1) },
            })
        })
        .map(drop)
    }
}

/// Records and checks histories of maps with several values for a key, according to `plan`, or
/// until `stop` returns true, which it asks before each history. Histories take turns between the
/// orders of values.
pub fn verify_lists(
    plan: &Plan,
    clock: &Clock,
    makers: Makers<'_>,
    stop: impl Fn() -> bool + Sync,
) -> Report {
    let record = |number: u64, threads| {
        let turn = number / plan.threads.len() as u64;
        let make = if turn.is_multiple_of(2) { makers.sorted } else { makers.inserted };
        record(plan, number, clock, make, threads)
    };
    in_sequence(plan, stop, record, check)
}

fn record(
    plan: &Plan,
    number: u64,
    clock: &Clock,
    make: Make<'_>,
    threads: usize,
) -> Result<(History, Outcome), Failure> {
    let map = make(&plan.options)?;
    let calls = together(threads, |thread, crew| {
        let mut caller = Caller::new(&*map, clock, thread);
        let mut rng = Rng::new(plan.seed ^ number << 8, thread);
        // All threads choose the same keys in a round.
        let mut shared = Rng::new(plan.seed ^ number, threads);
        for _ in 0..ROUNDS {
            let (keys, first) = (1 + shared.below(4), shared.below(u64::from(KEYS)));
            crew.meet()?;
            for _ in 0..TURNS {
                caller.turn(&mut rng, keys, first, plan.mix)?;
            }
        }
        Ok(caller.calls)
    })?;
    let mut history: History = vec![Vec::new(); KEYS as usize];
    for calls in calls {
        history.iter_mut().zip(calls).for_each(|(lanes, calls)| lanes.push(calls));
    }
    let (mut caller, mut values) = (Caller::new(&*map, clock, threads), 0);
    for key in 0..KEYS {
        let op = caller.call(key, |map| Ok(Op::Values { list: map.values(key, false) }))?;
        values += if let Op::Values { list } = op { list.len() } else { 0 };
    }
    history.iter_mut().zip(caller.calls).for_each(|(lanes, calls)| lanes.push(calls));
    Ok((history, map.at_rest(values)))
}

/// Checks a history, and adds it to a report. Returns its fault.
fn check(history: &History, report: &mut Report) -> Option<Wrong> {
    let calls = || history.iter().flatten().flatten();
    report.kinds.add(&Kinds::of_lists(calls().map(|call| match call.op {
        Op::Add { .. } => 0,
        Op::Take { .. } => 1,
        Op::TakeAll { .. } => 2,
        Op::Values { .. } => 3,
        Op::Count { .. } => 4,
    })));
    for (key, lanes) in history.iter().enumerate() {
        let lanes: Vec<&[Call<Op>]> = lanes.iter().map(Vec::as_slice).collect();
        let mut states = States::<List>::new();
        states.push(List::new());
        match follow::<Values>(&lanes, &mut states, &mut { BUDGET }) {
            Ok(()) => {}
            Err(Refusal::Undecided) => {
                report.undecided += 1;
                _ = report.given_up.get_or_insert_with(|| format!("key {key}"));
                return None;
            }
            Err(Refusal::Unexplained(bad)) => {
                let show = |state: &List| format!("{state:?}");
                return Some(Wrong::History(Violation::of(format!("key {key}"), &bad, show)));
            }
        }
    }
    report.operations += calls().count() as u64;
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Numbers, Until};
    use silvics::map::DefaultIndex;
    use silvics_sync::Mutex;

    /// The mistakes of a broken map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Mistake {
        /// The two halves of the values are read at two moments.
        Torn,
        /// An insert reads the list and writes it later.
        LostUpdate,
        /// Two removals of one value both return it.
        TakenTwice,
        /// A count does not see the last value.
        CountShort,
        /// Values in the order of insertion come back sorted.
        Reordered,
        None,
    }

    struct Broken {
        lists: Vec<Mutex<List>>,
        mistake: Mistake,
        sorted: bool,
    }

    fn pause() {
        (0..20).for_each(|_| std::thread::yield_now());
    }

    impl Lists for Broken {
        fn sorted(&self) -> bool {
            self.sorted
        }
        fn add(&self, key: u32, value: u8) -> Result<bool, Failure> {
            let list = &self.lists[key as usize];
            let mut new = list.lock().clone();
            let op = Op::Add { value, sorted: self.sorted, added: true };
            if self.mistake == Mistake::LostUpdate {
                let added = Values::apply(&op, &new).is_some();
                new = Values::effect(&op, &new);
                pause();
                *list.lock() = new;
                return Ok(added);
            }
            let mut list = list.lock();
            let added = Values::apply(&op, &list).is_some();
            *list = Values::effect(&op, &list);
            if self.mistake == Mistake::Reordered {
                list.sort_unstable();
            }
            Ok(added)
        }
        fn take(&self, key: u32, value: u8) -> Result<bool, Failure> {
            let list = &self.lists[key as usize];
            let found = list.lock().contains(&value);
            if self.mistake == Mistake::TakenTwice {
                pause();
            }
            let mut list = list.lock();
            let now = list.contains(&value);
            let effect = Values::effect(&Op::Take { value, found: now }, &list);
            *list = effect;
            Ok(if self.mistake == Mistake::TakenTwice { found } else { now })
        }
        fn take_all(&self, key: u32) -> Result<usize, Failure> {
            Ok(std::mem::take(&mut *self.lists[key as usize].lock()).len())
        }
        fn values(&self, key: u32, _backwards: bool) -> List {
            let list = &self.lists[key as usize];
            let first = list.lock().clone();
            if self.mistake != Mistake::Torn {
                return first;
            }
            pause();
            let later = list.lock().clone();
            let half = first.len() / 2;
            first[..half].iter().chain(later.get(half..).unwrap_or(&[])).copied().collect()
        }
        fn count(&self, key: u32) -> usize {
            let count = self.lists[key as usize].lock().len();
            if self.mistake == Mistake::CountShort { count.saturating_sub(1) } else { count }
        }
        fn at_rest(self: Box<Self>, _values: usize) -> Outcome {
            Ok(())
        }
    }

    fn report(makers: Makers<'_>, histories: u64) -> Report {
        let plan = Plan {
            threads: vec![2, 3],
            until: Until::Histories(histories),
            numbers: Numbers::All,
            ..Plan::default()
        };
        verify_lists(&plan, &Clock::new(), makers, || false)
    }

    fn of(mistake: Mistake) -> Report {
        let made = |sorted| {
            move |_: &Options| -> Result<Box<dyn Lists>, Failure> {
                let lists = (0..KEYS).map(|_| Mutex::default()).collect();
                Ok(Box::new(Broken { lists, mistake, sorted }))
            }
        };
        report(Makers { sorted: &made(true), inserted: &made(false) }, 40)
    }

    #[test]
    fn each_mistake_is_found() {
        let (right, mistakes) = (
            of(Mistake::None),
            [
                Mistake::Torn,
                Mistake::LostUpdate,
                Mistake::TakenTwice,
                Mistake::CountShort,
                Mistake::Reordered,
            ],
        );
        assert!(right.found.is_none() && right.undecided == 0, "{right:?}");
        assert_eq!(right.histories, 40);
        for mistake in mistakes {
            let report = of(mistake);
            let found = report.found.unwrap_or_else(|| panic!("{mistake:?} was not found"));
            assert!(matches!(found.what, Wrong::History(_)), "{mistake:?}: {}", found.what);
        }
    }

    #[test]
    fn multimaps_are_right() {
        let makers = Makers {
            sorted: &multi::<u64, Sorted, DefaultIndex<u64>>,
            inserted: &multi::<String, Inserted, DefaultIndex<String>>,
        };
        let report = report(makers, 24);
        assert!(report.found.is_none() && report.undecided == 0, "{report:?}");
        assert!(report.operations > 20_000, "{report:?}");
    }
}

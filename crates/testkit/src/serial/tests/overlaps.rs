//! Random histories in which lives of a key overlap get the verdict of the search over all orders.

use super::orders::has_order;
use super::*;
use crate::rng::Rng;
use crate::size;

/// The number of histories.
const HISTORIES: u32 = size::pick(500_000, 50_000, 20) as u32;

/// The key whose lives overlap. The other keys are present all the time.
const LIVELY: u64 = 0;

/// A transaction without operations.
struct Draft {
    transaction: Transaction,
    /// Whether it may insert and delete. Then it is under way at one of two moments that all such
    /// transactions share.
    changes: bool,
    /// Its place in the order of the transactions.
    place: u64,
    /// The groups that it scans at its end, if it does.
    groups: Option<Range>,
    /// The entries of that scan.
    found: Vec<Entry>,
}

fn drafts(rng: &mut Rng) -> Vec<Draft> {
    let count = 5 + rng.below(5) as usize;
    let moments = [rng.below(100), rng.below(100)];
    let one = rng.percent(50);
    let draw = |thread| {
        let changes = rng.percent(80);
        let moment = moments[if one { 0 } else { rng.below(2) as usize }];
        let (start, end, place) = if changes {
            (rng.below(moment + 1), moment + rng.below(100 - moment), moment)
        } else {
            let start = rng.below(100);
            (start, start + rng.below(10), if rng.percent(50) { moment } else { start })
        };
        let (from, to) = (rng.below(GROUPS), rng.below(GROUPS));
        let groups =
            rng.percent(30).then(|| Range::ascending(from.min(to), from.max(to)).by_group());
        let transaction = committed(thread, start, end, &[]);
        Draft { transaction, changes, place, groups, found: Vec::new() }
    };
    (0..count).map(draw).collect()
}

/// The states of a key so far.
struct States {
    key: u64,
    /// The last value that was written to any key.
    written: u64,
    now: Option<u64>,
    /// All values of the key.
    values: Vec<u64>,
}

impl States {
    fn read(&self) -> Operation {
        read(self.key, self.now)
    }

    /// Looks for one of the key's values.
    fn find(&self, rng: &mut Rng) -> Option<Operation> {
        let count = self.values.len() as u64;
        let value = *self.values.get(rng.below(count.max(1)) as usize)?;
        Some(find(value, (self.now == Some(value)).then_some(self.key)))
    }

    /// Reads the key and gives it a new state.
    fn change(&mut self, present: bool) -> [Operation; 2] {
        let before = self.read();
        self.written += 1;
        self.now = present.then_some(self.written);
        self.values.extend(self.now);
        [before, write(self.key, self.now)]
    }
}

/// Draws a history. Each key has its own order of the transactions, and the answers about the key
/// are those of this order. If the orders fit neither each other nor real time, the history is
/// wrong, unless another order explains it.
fn draw(rng: &mut Rng) -> History {
    let mut drafts = drafts(rng);
    drafts.sort_by_key(|of| of.place);
    let mut initial = Vec::new();
    let keys = 2 + rng.below(2);
    let mut written = keys;
    for key in 0..keys {
        let now = (key != LIVELY || rng.percent(20)).then_some(key);
        initial.extend(now.map(|value| (key, value)));
        let mut states = States { key, written, now, values: now.into_iter().collect() };
        let mut order: Vec<usize> = (0..drafts.len()).collect();
        for _ in 0..rng.below(4) {
            let mut place = || rng.below(order.len() as u64) as usize;
            let (one, other) = (place(), place());
            order.swap(one, other);
        }
        for at in order {
            let Draft { transaction, changes, groups, found, .. } = &mut drafts[at];
            let operations = &mut transaction.operations;
            match rng.below(20) {
                0..17 if key == LIVELY && *changes => {
                    operations.extend(states.change(states.now.is_none()));
                }
                0..4 if key != LIVELY => operations.extend(states.change(true)),
                4..10 => operations.push(states.read()),
                10..12 => operations.extend(states.find(rng)),
                12.. if key == LIVELY => operations.push(states.read()),
                _ => {}
            }
            let entry = states.now.map(|value| (key, value));
            found.extend(entry.filter(|&entry| groups.is_some_and(|of| of.includes(entry))));
        }
        written = states.written;
    }
    let ended = |draft: Draft| {
        let Draft { mut transaction, groups, mut found, .. } = draft;
        if let Some(groups) = groups {
            found.sort_unstable_by_key(|&of| groups.place(of));
            transaction.operations.push(scan(groups, &found));
        }
        transaction
    };
    History { initial, transactions: drafts.into_iter().map(ended).collect() }
}

#[test]
fn verdicts_on_overlapping_lives_are_those_of_the_search_over_all_orders() {
    let mut rng = Rng::new(size::seed(), 0);
    let (mut wrong, mut missed, mut open) = (0, 0, 0);
    for number in 0..HISTORIES {
        let history = draw(&mut rng);
        let right = has_order(&history, true);
        wrong += u32::from(!right);
        match check(&history) {
            Verdict::Serializable { open: 0 } if right => {}
            Verdict::Serializable { open: 1.. } => {
                open += 1;
                missed += u32::from(!right);
            }
            Verdict::Anomaly(anomaly) if !right => {
                let timed = anomaly.real_time || anomaly.dependencies.iter().any(|of| of.inferred);
                assert!(timed || !has_order(&history, false), "{anomaly}: {history:#?}");
            }
            verdict => panic!("{number} has an order: {right}, {verdict:?}: {history:#?}"),
        }
    }
    println!("{wrong} of {HISTORIES} histories were wrong, {open} had open choices");
    let some = HISTORIES / 10;
    assert!(cfg!(miri) || wrong > 5 * some, "{wrong} of {HISTORIES} histories were wrong");
    assert!(cfg!(miri) || open > some, "{open} of {HISTORIES} histories had open choices");
    assert_eq!(missed, 0, "of {wrong} wrong histories, with open choices");
}

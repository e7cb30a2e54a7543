//! Transactions in many schedules of shuttle: see `silvics_testkit::schedules`. Run it:
//! `.ci/step store-schedules`.
//!
//! Each schedule chooses the rows at the beginning and the operations of all transactions. The
//! committed transactions must have a serial order which explains all answers, and in which a
//! transaction that ended before another began comes first. All such orders are tried. At the end
//! each index has one entry per row, nothing is locked, and all memory is freed. One more program
//! has a log (`schedules/durable.rs`).
#![cfg(silvics_shuttle)]

#[path = "durability/disk.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod disk;
#[path = "schedules/durable.rs"]
mod durable;
#[path = "schedules/world.rs"]
mod world;

use silvics_store::{Error, Locking, NoWait, Optimistic, Policy, WaitDie};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::{Mutex, below, sequential};
use silvics_testkit::schedules::{Program, Task, beside_one_another, explore_program};
use std::fmt::Write;
use std::mem::take;
use world::{Answer, By, GROUPS, Item, Model, Op, Structures, World};

/// The number of schedules per program and scheduler, unless `SILVICS_SCHEDULES` is set.
const SCHEDULES: usize = 300;

const STRUCTURES: [Structures; 2] = [("words", "blocks"), ("skiplist", "skiplist")];

/// The size of a program, and the kind of its transactions.
struct Shape {
    name: &'static str,
    tasks: usize,
    /// The transactions of each task.
    transactions: usize,
    /// Numbers and codes of rows are below this.
    keys: u64,
    /// The operation that the schedule chooses, on such numbers and codes.
    choose: fn(u64) -> Op,
}

/// Transactions that only write take over keys from one another more often.
const SHAPES: [Shape; 3] = [
    Shape { name: "three-tasks-of-two", tasks: 3, transactions: 2, keys: 4, choose: Op::choose },
    Shape { name: "four-tasks-of-one", tasks: 4, transactions: 1, keys: 3, choose: Op::choose },
    Shape { name: "four-writers", tasks: 4, transactions: 1, keys: 3, choose: Op::choose_write },
];

/// A committed transaction.
#[derive(Debug)]
struct Committed {
    begun: u64,
    ended: u64,
    answers: Vec<(Op, Answer)>,
}

/// The store, the clock and the history, which the tasks share.
struct Shared<P: Policy> {
    world: World<P>,
    shape: &'static Shape,
    clock: AtomicU64,
    history: Mutex<Vec<Committed>>,
}

impl<P: Policy> Shared<P> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs a transaction, and records it if it is committed. The error is that of an abort.
    fn attempt(&self, ops: &[Op], commits: bool) -> Result<(), Error> {
        let begun = self.now();
        let tx = self.world.store.begin();
        let run = |op: &Op| Ok((*op, self.world.answer(&tx, op)?));
        let answers = ops.iter().map(run).collect::<Result<_, Error>>()?;
        if !commits {
            tx.abort();
            return Ok(());
        }
        tx.commit()?;
        self.history.lock().push(Committed { begun, ended: self.now(), answers });
        Ok(())
    }

    /// Runs transactions of one to four operations. Some are given up in the end. Those that are
    /// aborted are tried once more.
    fn task(&self) {
        let Shape { transactions, keys, choose, .. } = *self.shape;
        for _ in 0..transactions {
            let ops: Vec<_> = (0..=below(4)).map(|_| choose(keys)).collect();
            let commits = below(6) > 0;
            for _ in 0..2 {
                match self.attempt(&ops, commits) {
                    Ok(()) => break,
                    Err(Error::Aborted(_)) => {}
                    Err(error) => panic!("{error}: {ops:?}"),
                }
            }
        }
    }
}

/// Whether some order of the transactions from `done` on explains their answers: those before
/// `done` are in order already, and have led to `model`.
fn is_explained(model: &Model, history: &mut [Committed], done: usize) -> bool {
    // A transaction may come next if none that is left ended before it began.
    let Some(bound) = history[done..].iter().map(|of| of.ended).min() else { return true };
    (done..history.len()).any(|next| {
        let mut after = model.clone();
        let fits = |(op, answer): &(Op, Answer)| after.answer(op) == *answer;
        if history[next].begun > bound || !history[next].answers.iter().all(fits) {
            return false;
        }
        history.swap(done, next);
        let is_explained = is_explained(&after, history, done + 1);
        history.swap(done, next);
        is_explained
    })
}

/// Reads of all rows by each index.
fn reads() -> Vec<Op> {
    let mut ops = vec![Op::all(By::Id, false), Op::all(By::Code, true)];
    ops.extend((0..GROUPS).map(Op::InGroup));
    ops
}

/// Writes that meet each lock that stays: they delete all rows, and insert each that there can be.
fn writes(keys: u64) -> Vec<Op> {
    let mut ops: Vec<_> = (0..keys).map(|key| Op::Delete(By::Id, key)).collect();
    ops.extend((0..keys).map(|key| Op::Insert(Item { id: key, code: key, group: 0 })));
    ops
}

/// Makes a table with up to two rows.
fn begin<P: Policy>(structures: Structures, keys: u64) -> (World<P>, Model) {
    let (mut model, rows) = (Model::default(), below(3));
    let world = World::new(structures, below(2) == 0).expect("memory");
    let tx = world.store.begin();
    for key in 0..rows {
        let op = Op::Insert(Item { id: key * 2, code: (key * 2 + 1) % keys, group: key % GROUPS });
        assert_eq!(world.answer(&tx, &op), Ok(model.answer(&op)));
    }
    tx.commit().expect("nobody is in the way");
    (world, model)
}

/// Checks all that must hold when the tasks have ended.
fn check<P: Policy>(initial: &Model, shared: &Shared<P>) {
    let policy = P::name();
    assert_eq!(shared.attempt(&reads(), true), Ok(()), "{policy}: the last reads are aborted");
    let mut history = take(&mut *shared.history.lock());
    let Some((_, Answer::Rows(rows))) = history.last().and_then(|last| last.answers.first()) else {
        unreachable!("the last transaction begins with a scan");
    };
    let rows = rows.len();
    if !is_explained(initial, &mut history, 0) {
        let mut text = String::new();
        for Committed { begun, ended, answers } in &history {
            writeln!(text, "from {begun} to {ended}: {answers:?}").expect("it is a string");
        }
        panic!("{policy}: no serial order. At the beginning {initial:?}\n{text}");
    }
    let entries = shared.world.entries();
    let is_one_each = entries.iter().all(|count| *count == rows);
    assert!(is_one_each, "{policy}: {rows} rows have entries {entries:?}");
    let written = shared.attempt(&writes(shared.shape.keys), true);
    assert_eq!(written, Ok(()), "{policy}: the last writes are aborted");
}

/// Plays one schedule.
fn play<P: Policy, const STRUCTURE: usize, const SHAPE: usize>() {
    let shape = &SHAPES[SHAPE];
    let (world, model) = sequential(|| begin::<P>(STRUCTURES[STRUCTURE], shape.keys));
    let (clock, history) = (AtomicU64::new(0), Mutex::default());
    let shared = Shared { world, shape, clock, history };
    let task = |_| -> Task<Shared<P>> { Box::new(Shared::task) };
    let shared = beside_one_another(shared, (0..shape.tasks).map(task).collect());
    sequential(|| {
        check(&model, &shared);
        drop(shared);
    });
}

/// The programs of a policy, by the structure and the shape.
fn programs<P: Policy>() -> [[Program; 3]; 2] {
    let plays: [[fn(); 3]; 2] = [
        [play::<P, 0, 0>, play::<P, 0, 1>, play::<P, 0, 2>],
        [play::<P, 1, 0>, play::<P, 1, 1>, play::<P, 1, 2>],
    ];
    plays.map(|plays| [0, 1, 2].map(|at| Program { name: SHAPES[at].name, play: plays[at] }))
}

fn explore<P: Policy>() {
    for ((words, _), programs) in STRUCTURES.into_iter().zip(programs::<P>()) {
        for program in programs {
            explore_program(&format!("store:{}:{words}", P::name()), program, SCHEDULES);
        }
    }
    explore_program(&format!("store:{}", P::name()), durable::program::<P>(), SCHEDULES);
}

/// All policies run in one test, because a canary is planted for the whole process.
#[test]
fn transactions_have_a_serial_order() {
    explore::<Optimistic>();
    explore::<Locking<NoWait>>();
    explore::<Locking<WaitDie>>();
    #[cfg(feature = "canaries")]
    canaries::planted_mistakes_are_found();
}

#[cfg(feature = "canaries")]
mod canaries {
    use super::*;
    use silvics_store::canary::{Canary, plant};
    use silvics_testkit::schedules::{Found, hunt_programs, report};

    /// The schedules of each scheduler and program in which a mistake must be found.
    const BUDGET: usize = 40_000;

    /// The words of a failure by which a mistake may show.
    fn reasons(canary: Canary) -> &'static [&'static str] {
        const ALL: &[&str] =
            &["no serial order", "rows have entries", "the last reads are aborted"];
        match canary {
            Canary::LostUpdate => ALL, // it can also leave an entry or a lock
            Canary::EntryLeft => &ALL[1..],
            Canary::ReadsNotAwaited | Canary::AppendedLate => &["is lost", "half there"],
            _ => &["no serial order"],
        }
    }

    /// Hunts mistakes of durable stores.
    fn hunt_durable<P: Policy>() {
        hunt::<P>(&[durable::program::<P>()], &[Canary::ReadsNotAwaited, Canary::AppendedLate]);
    }

    fn hunt<P: Policy>(programs: &[Program], canaries: &[Canary]) {
        for &canary in canaries {
            plant(Some(canary));
            let found = hunt_programs(programs, BUDGET);
            plant(None);
            let (name, policy) = (canary.name(), P::name());
            let Some(Found { schedules, scenario, reason }) = found else {
                panic!("{name} is not found under {policy}")
            };
            let first = reason.lines().next().unwrap_or_default();
            report(&format!("canary {name} {policy} schedules {schedules} {scenario}: {first}"));
            let is_expected = reasons(canary).iter().any(|words| reason.contains(words));
            assert!(is_expected, "{name} under {policy}: {reason}");
        }
    }

    pub(super) fn planted_mistakes_are_found() {
        hunt_durable::<Optimistic>();
        hunt_durable::<Locking<NoWait>>();
        hunt_durable::<Locking<WaitDie>>();
        hunt::<Optimistic>(
            programs::<Optimistic>().as_flattened(),
            &[
                Canary::PhantomsIgnored,
                Canary::ReadsNotValidated,
                Canary::LostUpdate,
                Canary::ScannedKeysIgnored,
                Canary::EntryStolen,
                Canary::IndexNotUpdated,
                Canary::IndexTorn,
                Canary::EntryLeft,
            ],
        );
        // No entry can be stolen under these: a row that is written is locked.
        let of_locking = [
            Canary::LockReleasedEarly,
            Canary::NextKeyIgnored,
            Canary::MissedKeyUnlocked,
            Canary::IndexNotUpdated,
            Canary::IndexTorn,
            Canary::EntryLeft,
        ];
        hunt::<Locking<NoWait>>(programs::<Locking<NoWait>>().as_flattened(), &of_locking);
        hunt::<Locking<WaitDie>>(programs::<Locking<WaitDie>>().as_flattened(), &of_locking);
    }
}

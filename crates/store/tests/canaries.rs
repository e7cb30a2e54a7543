//! Planted mistakes, each of which the checker of transactions must find.
#![cfg(all(feature = "canaries", not(any(silvics_loom, silvics_shuttle, miri))))]

#[path = "durability/bank.rs"]
mod bank;
#[path = "durability/disk.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod disk;
#[path = "durability/gate.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod gate;
#[path = "durability/threads.rs"]
mod threads;

use silvics_store::canary::{Canary, plant};
use silvics_store::testing::{SUBJECTS, Subject};
use silvics_store::{Locking, NoWait, Optimistic, Policy, WaitDie};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{Found, Kind, Plan, Until, Wrong};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A canary is planted for the whole process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The time in which a mistake must be found.
const BUDGET: Duration = Duration::from_secs(60);

/// The seeds of the runs.
const SEEDS: u64 = 4;

/// The first kind of store with this policy.
fn subject(policy: &str) -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.policy == policy).expect("a policy of the list")
}

/// Runs histories of `subject` until a mistake is found or the time is up.
fn run(subject: &Subject, seed: u64, until: Until) -> Option<Found> {
    let plan = Plan { seed, until, ..Plan::default() };
    let report = subject.verify(&plan, &Clock::new(), || false);
    assert!(report.exhausted.is_none(), "{:?}", report.exhausted);
    report.found
}

/// Whether a mistake shows as what was found. Most show in what transactions see: by a cycle, or in
/// one transaction, which finds a key absent and then cannot insert it. None lets transactions see
/// writes of others before their commit. The lost update may do anything, because it also releases
/// locks of others, and another one leaves entries alone.
fn is_due(canary: Canary, what: &Wrong) -> bool {
    use Kind::{AbortedRead, Garbage, IntermediateRead};
    let leaves_entries = matches!(canary, Canary::EntryLeft | Canary::LostUpdate);
    match what {
        Wrong::Anomaly(anomaly) => {
            let is_odd = [AbortedRead, Garbage, IntermediateRead].contains(&anomaly.kind);
            canary == Canary::LostUpdate || canary != Canary::EntryLeft && !is_odd
        }
        Wrong::Other(why) => {
            let about_entries = ["the table and its indexes have", "is unique"];
            leaves_entries && about_entries.iter().any(|part| why.contains(part))
        }
    }
}

#[test]
fn planted_mistakes_are_found() {
    let _turn = TURN.lock();
    for canary in Canary::ALL {
        for subject in Subject::with(canary) {
            let policy = subject.policy;
            let mut slowest = Duration::ZERO;
            let mut first = String::new();
            for seed in 1..=SEEDS {
                let begun = Instant::now();
                plant(Some(canary));
                let found = run(subject, seed, Until::Elapsed(BUDGET));
                plant(None);
                let Some(found) = found else {
                    panic!("{} was not found under {policy}, seed {seed}", canary.name())
                };
                let (name, number, what) = (canary.name(), found.number, found.what);
                assert!(is_due(canary, &what), "{name} under {policy}, seed {seed}: {what}");
                slowest = slowest.max(begun.elapsed());
                first = format!("in history {number}: {what}");
            }
            println!("canary {} {policy} found within {slowest:.2?}: {first}", canary.name());
        }
    }
}

#[test]
fn nothing_is_found_without_a_planted_mistake() {
    let _turn = TURN.lock();
    for policy in ["optimistic", "no-wait", "wait-die"] {
        for seed in 1..=SEEDS {
            let found = run(subject(policy), seed, Until::Transactions(10_000));
            assert!(found.is_none(), "{policy}, seed {seed}: {}", found.unwrap().what);
        }
    }
}

/// Plants a mistake and makes a check with one seed after the other, until it panics.
fn is_found<P: Policy>(canary: Canary, check: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let begun = Instant::now();
    plant(Some(canary));
    let mut seeds = 0..;
    let seed = seeds.find(|&seed| {
        let is_found = std::panic::catch_unwind(|| check(seed)).is_err();
        is_found || begun.elapsed() > BUDGET
    });
    plant(None);
    assert!(begun.elapsed() < BUDGET, "{} was not found", canary.name());
    let (name, policy, time) = (canary.name(), P::name(), begun.elapsed());
    println!("canary {name} {policy} found within {time:.2?}: seed {}", seed.unwrap_or_default());
}

fn mistakes_of_durability_are_found<P: Policy>() {
    is_found::<P>(Canary::ReadsNotAwaited, |seed| {
        gate::nobody_is_told_too_early::<P>(seed % 2 == 0);
    });
    is_found::<P>(Canary::ReadsNotAwaited, |seed| {
        threads::lives::<P>(seed);
    });
    is_found::<P>(Canary::AppendedLate, |seed| {
        threads::lives::<P>(seed);
    });
}

#[test]
fn planted_mistakes_of_durability_are_found() {
    let _turn = TURN.lock();
    mistakes_of_durability_are_found::<Optimistic>();
    mistakes_of_durability_are_found::<Locking<NoWait>>();
    mistakes_of_durability_are_found::<Locking<WaitDie>>();
}

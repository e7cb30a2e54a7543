//! Planted mistakes, each of which the checker of transactions must find.
#![cfg(all(feature = "canaries", not(any(silvics_loom, silvics_shuttle, miri))))]

use silvics_store::canary::{Canary, plant};
use silvics_store::testing::{SUBJECTS, Subject};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{Plan, Until, Wrong};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A canary is planted for the whole process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The time in which a mistake must be found.
const BUDGET: Duration = Duration::from_secs(60);

/// The seeds of the runs.
const SEEDS: u64 = 4;

/// The policies in which a mistake can be made.
fn policies(canary: Canary) -> &'static [&'static str] {
    match canary {
        Canary::LockReleasedEarly | Canary::NextKeyIgnored => &["no-wait", "wait-die"],
        Canary::PhantomsIgnored | Canary::ReadsNotValidated | Canary::LostUpdate => &["optimistic"],
        Canary::IndexNotUpdated | Canary::EntryLeft => &["optimistic", "no-wait", "wait-die"],
        Canary::EntryStolen => &[], // no part of `Canary::ALL`
    }
}

/// The first kind of store with this policy.
fn subject(policy: &str) -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.policy == policy).expect("a policy of the list")
}

/// Runs histories of `subject` until a mistake is found or the time is up.
fn run(subject: &Subject, seed: u64, until: Until) -> Option<String> {
    let plan = Plan { seed, until, ..Plan::default() };
    let report = subject.verify(&plan, &Clock::new(), || false);
    assert!(report.exhausted.is_none(), "{:?}", report.exhausted);
    report.found.map(|found| match found.what {
        Wrong::Anomaly(anomaly) => format!("{:?} in history {}", anomaly.kind, found.number),
        Wrong::Other(reason) => format!("{reason}, in history {}", found.number),
    })
}

#[test]
fn planted_mistakes_are_found() {
    let _turn = TURN.lock();
    for canary in Canary::ALL {
        for policy in policies(canary) {
            let mut slowest = Duration::ZERO;
            let mut first = String::new();
            for seed in 1..=SEEDS {
                let begun = Instant::now();
                plant(Some(canary));
                let found = run(subject(policy), seed, Until::Elapsed(BUDGET));
                plant(None);
                let what = found.unwrap_or_else(|| {
                    panic!("{} was not found under {policy}, seed {seed}", canary.name())
                });
                slowest = slowest.max(begun.elapsed());
                if seed == 1 {
                    first = what;
                }
            }
            println!("{} under {policy}: at most {slowest:.2?}: {first}", canary.name());
        }
    }
}

#[test]
fn nothing_is_found_without_a_planted_mistake() {
    let _turn = TURN.lock();
    for policy in ["optimistic", "no-wait", "wait-die"] {
        for seed in 1..=SEEDS {
            let found = run(subject(policy), seed, Until::Transactions(10_000));
            assert_eq!(found, None, "{policy}, seed {seed}");
        }
    }
}

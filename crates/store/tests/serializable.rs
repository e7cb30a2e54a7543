//! Histories of transactions on stores of all kinds are strictly serializable.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

use silvics_store::testing::{SUBJECTS, Subject};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{Plan, Until};
use silvics_testkit::size;

/// Fails if a history of `subject` is not strictly serializable.
fn check(subject: &Subject, seed: u64, transactions: u64) {
    let plan = Plan { seed, until: Until::Transactions(transactions), ..Plan::default() };
    let report = subject.verify(&plan, &Clock::new(), || false);
    let (policy, structure) = (subject.policy, subject.structure);
    if let Some(found) = &report.found {
        panic!("{policy} over {structure}, seed {seed}: {}", found.what);
    }
    assert!(report.exhausted.is_none(), "{:?}", report.exhausted);
    assert!(report.committed >= transactions && report.aborted > 0, "{policy}: {report:?}");
    let (committed, aborted, open) = (report.committed, report.aborted, report.open);
    println!("{policy} over {structure}: {committed} committed, {aborted} aborted, {open} open");
}

#[test]
fn histories_are_strictly_serializable() {
    for (seed, subject) in SUBJECTS.iter().enumerate() {
        check(subject, seed as u64 + 1, size::pick(40_000, 40_000, 40) as u64);
    }
}

/// The figures are in docs/trust.md.
#[test]
#[ignore = "takes minutes: `just stress` runs it in release"]
fn long_histories_are_strictly_serializable() {
    for (seed, subject) in SUBJECTS.iter().enumerate() {
        check(subject, seed as u64 + 100, 10_000_000);
    }
}

//! Mistakes planted in the store, which the check of dependencies must find in transactions of
//! TPC-C. The other planted mistakes concern insertions into scanned gaps, of which there are few
//! here, and rows that change their keys, of which there is none.
#![cfg(feature = "canaries")]

#[path = "support/record.rs"]
mod record;
mod support;

use record::record;
use silvics_store::canary::{Canary, plant};
use silvics_store::{Error, Locking, NoWait, Optimistic, Policy, WaitDie};
use silvics_tpcc::Failure;
use silvics_tpcc::serial::{Disorder, Versions};
use silvics_workload::tpcc::Mix;
use support::{Words, loaded, scale, words};

/// The rounds in which a mistake must be found.
const ROUNDS: usize = 200;

/// If two transactions take one number for their orders, the store refuses the second order. The
/// check must find the mistake in the transactions that were not refused.
fn refused(failure: &Failure) {
    assert!(matches!(failure, Failure::Store(Error::Unique { .. })), "{failure}");
}

fn is_found<P: Policy>(canary: Canary) {
    let scale = scale(1);
    let database = loaded::<P, Words>(scale, &words());
    let mut versions = Versions::of(&database, scale).unwrap();
    plant(Some(canary));
    let found = (0..ROUNDS).find_map(|round| {
        let recorded = record(&database, (scale, Mix::Standard), round, 500, refused);
        versions.check(recorded).err().map(|disorder| (round, disorder))
    });
    plant(None);
    let Some((round, disorder)) = found else { panic!("{} was not found", canary.name()) };
    assert!(matches!(disorder, Disorder::Anomaly { .. }), "{disorder}");
    let (name, policy) = (canary.name(), P::name());
    println!("canary {name} {policy} found in round {round} of TPC-C: {disorder}");
}

#[test]
fn planted_mistakes_are_found() {
    is_found::<Optimistic>(Canary::ReadsNotValidated);
    is_found::<Optimistic>(Canary::LostUpdate);
    is_found::<Locking<NoWait>>(Canary::LockReleasedEarly);
    is_found::<Locking<WaitDie>>(Canary::LockReleasedEarly);
}

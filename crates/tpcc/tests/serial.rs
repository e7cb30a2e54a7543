//! The check of dependencies between transactions: it finds none that is wrong, and each planted
//! mistake.

#[path = "support/record.rs"]
mod record;
mod support;

use record::record;
use silvics_store::{Locking, NoWait, Optimistic, Policy, WaitDie};
use silvics_testkit::serial::{self, Direction, Kind, Operation};
use silvics_testkit::size;
use silvics_tpcc::serial::{Disorder, Versions};
use silvics_workload::tpcc::Mix;
use support::{Words, loaded, scale, words};

fn transactions_are_serializable<P: Policy>() {
    let scale = scale(1);
    let database = loaded::<P, Words>(scale, &words());
    let mut versions = Versions::of(&database, scale).unwrap();
    for round in 0..size::pick(50, 4, 1) {
        let recorded =
            record(&database, (scale, Mix::Standard), round, 500, |failure| panic!("{failure}"));
        assert!(recorded.len() > 980, "{} were not rolled back", recorded.len());
        let open = versions.check(recorded).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(open, 0);
    }
    versions.compare(&Versions::of(&database, scale).unwrap()).unwrap();
    assert_eq!(database.check(scale).unwrap(), []);
}

#[test]
fn transactions_have_a_serial_order_under_each_policy() {
    transactions_are_serializable::<Optimistic>();
    transactions_are_serializable::<Locking<NoWait>>();
    transactions_are_serializable::<Locking<WaitDie>>();
}

/// A transaction of the last of its kind that has these operations.
fn last_with(
    recorded: &mut [serial::Transaction],
    is_it: fn(&Operation) -> bool,
) -> &mut [Operation] {
    let found = recorded.iter_mut().rev().find(|of| of.operations.iter().any(is_it));
    &mut found.unwrap().operations
}

/// Whether this is the scan of a stock-level transaction.
fn is_long(operation: &Operation) -> bool {
    matches!(operation, Operation::Scan { entries, .. } if entries.len() > 50)
}

/// Whether this is the scan for the oldest new order.
fn is_for_oldest(operation: &Operation) -> bool {
    matches!(operation, Operation::Scan { range, .. }
        if range.limit == Some(1) && range.direction == Direction::Ascending)
}

/// The entries of the scans among these.
fn entries(operations: &mut [Operation], is_it: fn(&Operation) -> bool) -> &mut Vec<serial::Entry> {
    let entries = operations.iter_mut().find(|operation| is_it(operation));
    let Some(Operation::Scan { entries, .. }) = entries else { unreachable!() };
    entries
}

/// The versions of `W_YTD`, the item 1, that payments have read, in their order.
fn sums(recorded: &mut [serial::Transaction]) -> Vec<&mut u64> {
    let mut found: Vec<_> = recorded
        .iter_mut()
        .filter_map(|of| match &mut of.operations[0] {
            Operation::Read { key: 1, value: Some(value) } => Some(value),
            _ => None,
        })
        .collect();
    found.sort();
    found
}

type Plant = fn(&mut [serial::Transaction]);

#[test]
fn each_mistake_in_a_record_is_found() {
    let scale = scale(1);
    let database = loaded::<Optimistic, Words>(scale, &words());
    let before = Versions::of(&database, scale).unwrap();
    let recorded = record(&database, (scale, Mix::Standard), 0, 300, |failure| panic!("{failure}"));
    let after = Versions::of(&database, scale).unwrap();
    let mistakes: [(&str, &[Kind], Plant); 5] = [
        ("a lost update", &[Kind::LostUpdate], |of| {
            let mut sums = sums(of);
            *sums[9] = *sums[3];
        }),
        ("a sum that nobody has left", &[Kind::Garbage], |of| *sums(of)[5] += 1),
        // The line is one of the load, or of an order that was entered since.
        ("a line that a scan has missed", &[Kind::Garbage, Kind::ReadSkew], |of| {
            entries(last_with(of, is_long), is_long).remove(20);
        }),
        ("a number of orders that is too small", &[Kind::ReadSkew], |of| {
            let Operation::Read { value, .. } = &mut last_with(of, is_long)[0] else {
                unreachable!()
            };
            *value = value.map(|value| value - 1);
        }),
        ("a new order that is not the oldest", &[Kind::Internal], |of| {
            entries(last_with(of, is_for_oldest), is_for_oldest)[0].0 += 1;
        }),
    ];
    for (what, kinds, plant) in mistakes {
        let mut changed = recorded.clone();
        plant(&mut changed);
        match before.clone().check(changed) {
            Err(Disorder::Anomaly { anomaly, legend }) => {
                assert!(kinds.contains(&anomaly.kind), "{what}: {anomaly}");
                assert!(!legend.is_empty(), "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    let lost = before.compare(&after).unwrap_err().to_string();
    assert!(lost.starts_with("transactions have left W_YTD of warehouse 1 at 600000,"), "{lost}");
    assert!(before.cover(&recorded).is_err(), "the database had none of these writes");
    after.cover(&recorded).unwrap();
    let mut now = before;
    now.check(recorded).unwrap();
    now.compare(&after).unwrap();
}

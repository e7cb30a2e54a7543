//! Programs with a table of prefixes: writers beside readers.

use ipnet::IpNet;
use silvics::{Lpm, Options};
use silvics_sync::model::sequential;
use silvics_testkit::schedules::{Model, Program, Task, beside_one_another};
use std::net::IpAddr;

/// A value in a slot of its own, so that the model finds a second free of it, and a leak.
#[derive(Debug)]
struct Word(u64);

type Table = Lpm<Word, Model>;

pub(crate) const LPM: &[Program] = &[
    Program { name: "two-writers", play: two_writers },
    Program { name: "walk-beside-updates", play: walk },
    Program { name: "lookups-beside-updates", play: lookups },
    Program { name: "updates-of-one-prefix", play: one_prefix },
];

fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

fn table(nets: &[(&str, u64)]) -> Table {
    let table = Table::with_options(&Options::default()).expect("memory");
    sequential(|| {
        for (text, value) in nets {
            table.insert(net(text), Word(*value)).expect("memory");
        }
    });
    table
}

/// Runs tasks, and then checks the table alone.
fn run(table: Table, tasks: Vec<Task<Table>>, check: impl FnOnce(&Table)) {
    let mut table = beside_one_another(table, tasks);
    sequential(|| {
        check(&table);
        table.check().unwrap_or_else(|violation| panic!("check: {violation}"));
        table.settle();
        let reachable = table.reachable().expect("it was verified");
        for ((kind, count), stats) in reachable.into_iter().zip(table.pool_stats()) {
            assert_eq!((kind, count), (stats.kind, stats.live_slots), "objects are live");
        }
    });
}

/// An update: a prefix with its value, or a prefix to remove.
type Change = (&'static str, Option<u64>);

fn writes(changes: &'static [Change]) -> Task<Table> {
    Box::new(move |table| {
        for (text, value) in changes {
            match value {
                Some(value) => _ = table.insert(net(text), Word(*value)).expect("memory"),
                None => _ = table.remove(net(text)).expect("memory"),
            }
        }
    })
}

/// Two writers change the same node, and the nodes above it.
fn two_writers() {
    let table = table(&[("10.1.0.0/16", 1)]);
    let tasks = vec![
        writes(&[("10.1.1.0/24", Some(2)), ("10.1.3.0/24", Some(3))]),
        writes(&[("10.1.2.0/24", Some(4)), ("10.1.0.0/16", None)]),
    ];
    run(table, tasks, |table| {
        let found: Vec<u64> = table.pin().iter().map(|(_, value)| value.0).collect();
        assert_eq!(found, [2, 4, 3], "an update is lost");
    });
}

/// A walk reads one moment of the table, however long it takes.
fn walk() {
    let table = table(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("10.1.2.0/24", 3)]);
    let reads: Task<Table> = Box::new(|table| {
        let view = table.pin();
        let mut found = Vec::new();
        for (_, value) in view.covered(net("10.0.0.0/8")) {
            found.push(value.0);
            silvics_sync::thread::yield_now();
        }
        let states: [&[u64]; 4] = [&[1, 2, 3], &[2, 3], &[2, 3, 4], &[2, 4]];
        assert!(states.contains(&&found[..]), "a walk finds {found:?}");
    });
    let updates = writes(&[("10.0.0.0/8", None), ("10.1.3.0/24", Some(4)), ("10.1.2.0/24", None)]);
    run(table, vec![reads, updates], |_| ());
}

/// Two lookups of one thread see updates in their order.
fn lookups() {
    let table = table(&[("10.0.0.0/8", 1)]);
    let reads: Task<Table> = Box::new(|table| {
        let address: IpAddr = "10.1.2.3".parse().expect("an address");
        let view = table.pin();
        let mut last = 0;
        for _ in 0..3 {
            let value = view.lookup(address).map_or(9, |(_, value)| value.0);
            assert!(value >= last, "{value} after {last}");
            last = value;
        }
    });
    let updates =
        writes(&[("10.1.0.0/16", Some(2)), ("10.0.0.0/8", None), ("10.1.2.0/23", Some(3))]);
    run(table, vec![reads, updates], |_| ());
}

/// Two writers give one prefix a value, and remove it. Each value is returned once.
fn one_prefix() {
    let table = table(&[]);
    let task = |value: u64| -> Task<Table> {
        Box::new(move |table| {
            let prefix = net("2001:db8::/32");
            drop(table.insert(prefix, Word(value)).expect("memory"));
            drop(table.remove(prefix).expect("memory"));
        })
    };
    run(table, vec![task(1), task(2)], |table| assert!(table.is_empty()));
}

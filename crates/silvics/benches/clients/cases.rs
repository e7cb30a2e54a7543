//! The cases by name, and the process of each.

use crate::measure::Figures;
use crate::memtable::{self, Version, shared_value};
use crate::{scans, small};
use crossbeam_skiplist::SkipMap;
use silvics::{Map, OrdMap};
use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;

/// The flag of a process that runs one case.
pub(crate) const CHILD: &str = "--case";

/// The cases. Each runs for each side.
const CASES: [&str; 12] = [
    "integers",
    "empty",
    "strings",
    "shared",
    "one thread",
    "threads",
    "lives 1",
    "lives 2",
    "scans word",
    "scans copy",
    "scans arc",
    "scans other",
];

/// The map that a case runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Map,
    OrdMap,
    SkipMap,
}

const SIDES: [Side; 3] = [Side::Map, Side::OrdMap, Side::SkipMap];

/// The divisor of all sizes.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) divisor: usize,
}

impl Scale {
    /// The sizes of the tables.
    pub(crate) const FULL: Self = Self { divisor: 1 };
    /// Sizes for a trial of a second.
    pub(crate) const QUICK: Self = Self { divisor: 50 };
}

/// The figures of all rounds, by case, side and name.
pub(crate) type Results = HashMap<(&'static str, Side, String), Vec<f64>>;

/// Runs the case that the arguments name in this process, and prints its figures.
pub(crate) fn run(arguments: &[String]) {
    let [case, side, divisor] = arguments else { panic!("a case, a side and a divisor") };
    let scale = Scale { divisor: divisor.parse().expect("a number") };
    let figures = match side.as_str() {
        "Map" => of_map(case, scale),
        "OrdMap" => of_ord_map(case, scale),
        _ => of_skip_map(case, scale),
    };
    for (name, figure) in figures {
        println!("{figure} {name}");
    }
}

const VERSIONS: usize = 500_000;

fn of_map(case: &str, Scale { divisor }: Scale) -> Figures {
    let versions = VERSIONS / divisor;
    match case {
        "integers" => small::integers::<Map<u64, u64>>(10_000 / divisor),
        "empty" => small::empty::<Map<u64, u64>>(10_000 / divisor),
        "strings" => small::strings::<Map<String, String>>(1000 / divisor),
        "shared" => small::shared::<Map<u64, u64>>(1000 / divisor),
        "one thread" => small::ended::<Map<String, String>>(1, 100_000 / divisor),
        "threads" => small::ended::<Map<String, String>>(500 / divisor, 200),
        "lives 1" => memtable::lives::<Map<Version, Arc<[u8]>>>(1, versions),
        "lives 2" => memtable::lives::<Map<Version, Arc<[u8]>>>(2, versions),
        "scans word" => scans::map(versions, |at| at, |&value| value, false),
        "scans copy" => scans::map(versions, |at| [at; 4], |value| value[3], true),
        "scans arc" => scans::map(versions, shared_value, |value| value[0].into(), true),
        "scans other" => {
            scans::map(versions, |at| vec![at as u8; 100], |value| value[0].into(), false)
        }
        other => panic!("no case is called {other}"),
    }
}

fn of_ord_map(case: &str, Scale { divisor }: Scale) -> Figures {
    let versions = VERSIONS / divisor;
    match case {
        "integers" => small::integers::<OrdMap<u64, u64>>(10_000 / divisor),
        "empty" => small::empty::<OrdMap<u64, u64>>(10_000 / divisor),
        "strings" => small::strings::<OrdMap<String, String>>(1000 / divisor),
        "lives 1" => memtable::lives::<OrdMap<Version, Arc<[u8]>>>(1, versions),
        "lives 2" => memtable::lives::<OrdMap<Version, Arc<[u8]>>>(2, versions),
        _ => Figures::new(), // the trees of maps are the same
    }
}

fn of_skip_map(case: &str, Scale { divisor }: Scale) -> Figures {
    let versions = VERSIONS / divisor;
    match case {
        "integers" => small::integers::<SkipMap<u64, u64>>(10_000 / divisor),
        "empty" => small::empty::<SkipMap<u64, u64>>(10_000 / divisor),
        "strings" => small::strings::<SkipMap<String, String>>(1000 / divisor),
        "shared" => small::shared::<SkipMap<u64, u64>>(1000 / divisor),
        "one thread" => small::ended::<SkipMap<String, String>>(1, 100_000 / divisor),
        "threads" => small::ended::<SkipMap<String, String>>(500 / divisor, 200),
        "lives 1" => memtable::lives::<SkipMap<Version, Arc<[u8]>>>(1, versions),
        "lives 2" => memtable::lives::<SkipMap<Version, Arc<[u8]>>>(2, versions),
        "scans arc" => scans::skip_map(versions),
        // Only the scans of the side `Map` are compared.
        "scans word" | "scans copy" | "scans other" => Figures::new(),
        other => panic!("no case is called {other}"),
    }
}

/// Runs all cases of all sides in turn, each in a process of its own.
pub(crate) fn measure(scale: Scale, rounds: usize) -> Results {
    let this = std::env::current_exe().expect("the path of this program");
    let mut results = Results::new();
    for round in 0..rounds {
        for case in CASES {
            let mut sides = SIDES;
            sides.rotate_left(round % SIDES.len());
            for side in sides {
                let arguments = [CHILD, case, &format!("{side:?}"), &scale.divisor.to_string()];
                let output = Command::new(&this).args(arguments).output().expect("it starts");
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{case} of {side:?} failed: {errors}");
                for line in String::from_utf8_lossy(&output.stdout).lines() {
                    let (figure, name) = line.split_once(' ').expect("a figure and its name");
                    let figures = results.entry((case, side, name.to_owned())).or_default();
                    figures.push(figure.parse().expect("a number"));
                }
            }
        }
    }
    for side in [Side::Map, Side::SkipMap] {
        let bytes = |case| results[&(case, side, "bytes".to_owned())].iter();
        let multiples = bytes("threads").zip(bytes("one thread")).map(|(many, one)| many / one);
        let multiples = multiples.collect();
        results.insert(("threads", side, "multiple".to_owned()), multiples);
    }
    results
}

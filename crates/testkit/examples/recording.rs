//! Measures the cost of recording and checking:
//! `cargo run --release -p silvics-testkit --example recording`.

use silvics::{ArtTree, BronsonTree, Create, NatarajanTree, Options, SkipList};
use silvics_testkit::clock::Clock;
use silvics_testkit::history::Recorder;
use silvics_testkit::verify::{
    self, AllScans, NoScans, OrderedCalls, Plan, ScansAndEnds, Until, verify,
};
use silvics_testkit::{ScanSubject, Subject, make};
use std::time::{Duration, Instant};

/// Prints the time of a bare call and of a recorded one, made by one thread over keys in turn.
fn cost<I: Create + Subject>(name: &str, clock: &Clock) {
    const CALLS: u32 = 2_000_000;
    let keys = verify::keys::<I>();
    let index = I::with_options(&Options::default()).unwrap();
    let guard = index.domain().pin();
    let mut events = Vec::with_capacity(CALLS as usize);
    let mut ratios = Vec::new();
    for _ in 0..9 {
        let begun = Instant::now();
        for n in 0..CALLS {
            let key = <I::Key as silvics::IndexKey>::borrow(&keys[(n % 256) as usize]);
            if n & 1024 == 0 {
                std::hint::black_box(index.get(key, &guard));
            } else {
                std::hint::black_box(index.insert(key, u64::from(n), &guard).unwrap());
            }
        }
        let bare = begun.elapsed();
        events.clear();
        let mut recorder = Recorder::new(&index, clock, &keys, 0, events);
        let begun = Instant::now();
        for n in 0..CALLS {
            if n & 1024 == 0 {
                recorder.get(n % 256, &guard);
            } else {
                recorder.insert(n % 256, u64::from(n), &guard).unwrap();
            }
        }
        let recorded = begun.elapsed();
        events = recorder.calls.events;
        let nanos = |time: Duration| time.as_nanos() as f64 / f64::from(CALLS);
        ratios.push((nanos(recorded) - nanos(bare), nanos(bare)));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (more, bare) = ratios[ratios.len() / 2];
    println!("{name}: a call takes {bare:.0} ns, recorded {more:.0} ns more");
}

fn pace<I: Create + Subject>(name: &str, clock: &Clock, calls: impl OrderedCalls<I>) {
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(2)), ..Plan::default() };
    let begun = Instant::now();
    let report = verify(make::exact::<I>, &plan, clock, calls, || false);
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{name}: {} histories, {:.2} M operations/s recorded and checked, {:.0} ns to check one",
        report.histories,
        report.operations as f64 / seconds / 1e6,
        report.checking.as_nanos() as f64 / report.operations as f64,
    );
    if let Some(found) = report.found {
        println!("{}", found.what);
    }
}

fn scanning<I: Create + ScanSubject>(name: &str, clock: &Clock) {
    pace::<I>(name, clock, AllScans);
}

fn main() {
    let clock = Clock::new();
    println!("clock: {}", clock.source().name());
    cost::<NatarajanTree>("edge-ext-lf", &clock);
    cost::<BronsonTree>("occ-avl", &clock);
    cost::<SkipList<u64>>("skiplist", &clock);
    pace::<NatarajanTree>("edge-ext-lf", &clock, NoScans);
    pace::<BronsonTree>("occ-avl", &clock, NoScans);
    scanning::<SkipList<u64>>("skiplist", &clock);
    scanning::<SkipList<[u8]>>("skiplist bytes", &clock);
    scanning::<ArtTree<u64>>("art", &clock);
    pace::<ArtTree<u64>>("art with ends", &clock, ScansAndEnds);
}

//! Timers, recorded: `cargo run --release -p silvics --example recorded -- trace.jsonl`. Without a
//! path, the trace is removed again.
//!
//! The timers of a server are sorted by the microsecond in which they end. Threads set and cancel
//! timers, take those that have ended, and look at those that end soon. The map is recorded, so
//! `silvics advise --trace trace.jsonl` says which index suits such a program.

use silvics::Map;
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

/// The timers that are set when the recording begins.
const TIMERS: u64 = 50_000;
/// The rounds of each thread: each takes a timer, and sets another one.
const ROUNDS: u64 = 25_000;
/// The microseconds between two timers, on average.
const GAP: u64 = 20;

/// The time at which the `n`th timer ends, in microseconds: some time after it was set.
fn ends(n: u64) -> u64 {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    n * GAP + ((random * TIMERS * GAP) >> 32)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("silvics-{}.jsonl", std::process::id()))
    });
    // If two timers end in one microsecond, the later one is kept.
    let map: Map<u64, u64> = (0..TIMERS).map(|n| (ends(n), n)).collect();
    let (map, recorder) = map.record(File::create(&path)?)?;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let map = &map;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let n = TIMERS + 2 * round + thread;
                    map.insert(ends(n), n);
                    if round % 4 == 0 {
                        map.remove(ends(n - TIMERS / 8)); // cancelled before its end
                    } else {
                        map.pop_first();
                    }
                    for ask in 1..=4 {
                        std::hint::black_box(map.get(ends(n - ask * TIMERS / 16)));
                    }
                    if round % 8 == 0 {
                        let now = map.first().map_or(0, |(end, _)| end);
                        std::hint::black_box(map.pin().range(now..now + 50 * GAP).count());
                    }
                }
            });
        }
    });
    let operations = recorder.finish()?;
    println!("{} has {operations} operations", path.display());
    if given.is_none() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

//! The last minute of measurements, per sensor:
//! `cargo run --release -p silvics --example time_series`.
//!
//! Keys are (sensor, time), so the measurements of a sensor lie in order of time. Writers append,
//! one thread removes old measurements, and readers sum up a window at the same time.

use silvics::Map;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SENSORS: [&str; 3] = ["attic", "cellar", "garden"];
const WINDOW: u64 = 60_000;

fn main() {
    let readings: Map<(String, u64), f64> = Map::new();
    let (now, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for time in 0..300_000u64 {
                let view = readings.pin();
                for (sensor, offset) in SENSORS.iter().zip([21.0, 12.0, 8.0]) {
                    view.insert((sensor, time), offset + (time as f64 / 40_000.0).sin());
                }
                now.store(time, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            let mut removed = 0;
            while !done.load(Ordering::Acquire) {
                let old = now.load(Ordering::Acquire).saturating_sub(WINDOW);
                for sensor in SENSORS {
                    removed += readings.remove_range((sensor, 0)..(sensor, old));
                }
            }
            println!("forgot {removed} measurements on the way");
        });
        writer.join().expect("it writes");
    });

    let view = readings.pin();
    let end = now.load(Ordering::Acquire);
    for sensor in SENSORS {
        let window = view.range((sensor, end - WINDOW / 2)..=(sensor, end));
        let (count, sum) =
            window.fold((0, 0.0), |(count, sum), (_, value)| (count + 1, sum + *value));
        assert_eq!(count, WINDOW / 2 + 1);
        let newest = view.range_rev((sensor, 0)..=(sensor, u64::MAX)).next();
        let ((_, time), _) = newest.expect("there are measurements");
        assert_eq!(time, end);
        println!("{sensor}: {:.2} on average over {count}", sum / count as f64);
    }
    println!("{} measurements in {} bytes", readings.len(), readings.bytes());
}

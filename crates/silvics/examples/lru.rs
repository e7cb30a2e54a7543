//! A cache that evicts the least recently used entry:
//! `cargo run --release -p silvics --example lru`.
//!
//! One map holds the entries by key. A second map holds their keys by the time of the last use. A
//! use inserts the key at the new time, writes the new time into the entry, and removes the old
//! time. To evict, a thread pops the oldest time, and removes the entry if this is still its last
//! use.

use silvics::Map;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

#[derive(Clone)]
struct Cached {
    page: Arc<str>,
    used: u64,
}

struct Lru {
    entries: Map<String, Cached>,
    by_use: Map<u64, String>,
    clock: AtomicU64,
    capacity: usize,
}

impl Lru {
    fn new(capacity: usize) -> Self {
        let clock = AtomicU64::new(0);
        Self { entries: Map::new(), by_use: Map::new(), clock, capacity }
    }

    fn get(&self, key: &str, load: impl FnOnce() -> Arc<str>) -> Arc<str> {
        // Relaxed: each use needs a number of its own; the maps order everything else.
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        self.by_use.insert(now, key.to_string());
        let entries = self.entries.pin();
        let mut before = None;
        let touched = entries.update(key, |entry| {
            before = Some(entry.used);
            Cached { used: now, ..entry.clone() }
        });
        if let Some(entry) = touched {
            self.by_use.remove(before.expect("it was there"));
            return entry.page.clone();
        }
        let page = load();
        if let Some(other) = entries.insert(key, Cached { page: page.clone(), used: now }) {
            self.by_use.remove(other.used); // another thread loaded it too
        }
        while entries.len() > self.capacity && self.evict() {}
        page
    }

    /// Removes the entry of the oldest use, and returns whether there was such a use.
    fn evict(&self) -> bool {
        let Some((used, key)) = self.by_use.pop_first() else { return false };
        let _kept = self.entries.pin().remove_if(&*key, |entry| entry.used == used).is_err();
        true
    }
}

fn main() {
    let cache = Lru::new(1000);
    let loads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (cache, loads) = (&cache, &loads);
            scope.spawn(move || {
                let mut random = thread + 1;
                for _ in 0..100_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let number = (random >> 33) % 2000; // squared: small ones are used more often
                    let key = format!("page/{}", number * number / 1000);
                    let page = cache.get(&key, || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        format!("<{key}>").into()
                    });
                    assert_eq!(*page, format!("<{key}>"));
                }
            });
        }
    });
    assert!(cache.entries.len() <= 1000);
    println!(
        "{} pages cached, {} of 400000 were loaded, {} bytes",
        cache.entries.len(),
        loads.load(Ordering::Relaxed),
        cache.entries.bytes() + cache.by_use.bytes()
    );
}

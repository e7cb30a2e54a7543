//! A cache of the most recent requests, as a program would have it over `crossbeam-skiplist`: by
//! name, and by the time of the last use.

use crossbeam_skiplist::map::Entry;
use crossbeam_skiplist::{SkipMap, SkipSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Cache {
    pages: SkipMap<String, (u64, String)>,
    uses: SkipSet<(u64, String)>,
    clock: AtomicU64,
}

impl Cache {
    const MOST: usize = 100;

    fn page(&self, name: &str) -> String {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let (last, page) = match self.pages.get(name) {
            Some(entry) => entry.value().clone(),
            None => (now, format!("the page of {name}")),
        };
        self.pages.insert(name.to_string(), (now, page.clone()));
        self.uses.remove(&(last, name.to_string()));
        self.uses.insert((now, name.to_string()));
        while self.uses.len() > Self::MOST {
            let Some(oldest) = self.uses.pop_front() else { break };
            let is_old = |entry: &Entry<'_, String, (u64, String)>| entry.value().0 == oldest.0;
            if let Some(entry) = self.pages.get(&oldest.1).filter(is_old) {
                entry.remove();
            }
        }
        page
    }
}

fn main() {
    let cache = Cache::default();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..20_000_u64 {
                    let name = format!("{:03}", (n * 7919 + thread) % 300);
                    assert_eq!(cache.page(&name), format!("the page of {name}"));
                }
            });
        }
    });
    let some: Vec<String> = cache
        .pages
        .range::<str, _>((Bound::Included("1"), Bound::Excluded("2")))
        .map(|entry| entry.key().clone())
        .collect();
    assert!(some.is_sorted() && some.iter().all(|name| name.starts_with('1')));
    println!("{} pages, {} of them from 100 to 199", cache.pages.len(), some.len());
}

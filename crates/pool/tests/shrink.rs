//! `shrink` returns exactly the free slabs that no other thread keeps.

use silvics_pool::{AllocError, BytesPool, Config, Pages, Pool, PoolStats};
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Duration;

type Node = [u64; 8];

fn config(pages: Pages) -> Config {
    Config::new(pages, None)
}

/// Makes nodes whose words all hold the node's own address.
fn nodes(pool: &Pool<Node>, count: usize) -> Vec<NonNull<Node>> {
    let node = |_| {
        let node = pool.alloc().expect("no limit");
        // SAFETY: this thread alone uses the node.
        unsafe { node.write([node.addr().get() as u64; 8]) };
        node
    };
    (0..count).map(node).collect()
}

fn are_whole(nodes: &[NonNull<Node>]) -> bool {
    // SAFETY: written by `nodes`.
    nodes.iter().all(|node| unsafe { node.read() } == [node.addr().get() as u64; 8])
}

fn free(pool: &Pool<Node>, nodes: impl IntoIterator<Item = NonNull<Node>>) {
    // SAFETY: allocated by `nodes`, and freed once.
    nodes.into_iter().for_each(|node| unsafe { pool.free(node) });
}

/// The resident bytes of a pool's regions.
#[cfg(target_os = "linux")]
fn resident(stats: &PoolStats) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut inside, mut bytes) = (false, 0);
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        if let Some((start, _)) = first.split_once('-') {
            let start = usize::from_str_radix(start, 16).expect("an address");
            let of = |region: &silvics_pool::Region| {
                (region.start.addr().get()..region.start.addr().get() + region.bytes)
                    .contains(&start)
            };
            inside = stats.regions.iter().any(of);
        } else if inside && first == "Rss:" {
            let kib: usize =
                line.split_whitespace().nth(1).expect("a number").parse().expect("one");
            bytes += kib << 10;
        }
    }
    bytes
}

#[test]
fn an_empty_pool_gives_all_back_but_headers_and_magazines() {
    for pages in [Pages::Small, Pages::Thp] {
        let config = config(pages);
        let pool = Pool::<Node>::new("node", &config);
        let all = nodes(&pool, 400_000);
        free(&pool, all);
        let before = config.budget.held();
        let given = pool.shrink();
        let after = config.budget.held();
        assert_eq!(before - after, given, "{pages}");
        // 25 MB shrink to a header of up to three pages in each granule, and a magazine.
        assert!(after < before / 50, "{pages}: {after} of {before}");
        #[cfg(target_os = "linux")]
        assert!(resident(&pool.stats()) <= after, "{pages}: {} resident", resident(&pool.stats()));
        assert_eq!(pool.shrink(), 0, "once is enough");
        assert_eq!(pool.stats().live_slots, 0);
    }
}

#[test]
fn what_was_given_back_is_used_again() {
    for pages in [Pages::Small, Pages::Thp] {
        let config = config(pages);
        let pool = Pool::<Node>::new("node", &config);
        for round in 0..3 {
            let all = nodes(&pool, 300_000);
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "round {round}");
            assert!(are_whole(&all));
            let (held, mapped) = (config.budget.held(), pool.stats().regions);
            free(&pool, all);
            assert!(pool.shrink() > 0);
            let again = nodes(&pool, 300_000);
            assert!(are_whole(&again));
            assert_eq!(pool.stats().regions, mapped, "no region more");
            assert!(
                config.budget.held() <= held + (64 << 10),
                "{} of {held}",
                config.budget.held()
            );
            #[cfg(target_os = "linux")]
            assert!(resident(&pool.stats()) <= config.budget.held(), "round {round} on {pages}");
            free(&pool, again);
        }
        drop(pool);
        assert_eq!(config.budget.held(), 0);
    }
}

#[test]
fn a_slab_with_a_slot_in_use_stays() {
    let config = config(Pages::Small);
    let pool = Pool::<Node>::new("node", &config);
    let all = nodes(&pool, 200_000);
    let slab = |node: &NonNull<Node>| node.addr().get() >> 16;
    let mut seen = HashSet::new();
    // One slot of each even slab is kept; all slots of odd slabs are freed.
    let (kept, freed): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|node| slab(node) % 2 == 0 && seen.insert(slab(node)));
    free(&pool, freed);
    let given = pool.shrink();
    let slabs = kept.len() << 16;
    assert!(given.abs_diff(slabs) <= 3 << 16, "{given} of the {slabs} bytes of odd slabs");
    assert!(are_whole(&kept));
    assert_eq!(pool.stats().live_slots, kept.len());
    let again = nodes(&pool, 200_000);
    assert!(are_whole(&kept) && are_whole(&again));
    free(&pool, kept);
    free(&pool, again);
}

#[test]
fn a_slab_of_one_size_becomes_one_of_another() {
    for slab in [16 << 10, 32 << 10, 64 << 10] {
        sizes_follow_each_other(slab);
    }
}

fn sizes_follow_each_other(slab: usize) {
    let mut config = config(Pages::Small);
    config.tuning = config.tuning.slab_bytes(slab).expect("a power of two");
    let pool = BytesPool::new("object", &config);
    let mut held = 0;
    for size in [24, 100, 1000, 40, 3000, 16, 40, 24] {
        let count = (8 << 20) / size;
        let objects: Vec<_> = (0..count).map(|_| pool.alloc(size).expect("no limit")).collect();
        // SAFETY: each object has `size` bytes, and this thread alone uses it.
        objects.iter().for_each(|object| unsafe { object.write_bytes(0xa5, size) });
        assert_eq!(objects.iter().collect::<HashSet<_>>().len(), count);
        held = held.max(config.budget.held());
        assert!(held < 11 << 20, "{held} bytes after objects of {size}");
        for object in objects {
            // SAFETY: allocated above.
            unsafe { pool.free(object, size) };
        }
        assert!(pool.shrink() > 7 << 20, "of objects of {size}");
    }
}

#[test]
fn a_slab_that_is_opened_again_is_within_the_limit() {
    let limit = 4 << 20;
    let config = Config::new(Pages::Small, Some(limit));
    let pool = Pool::<Node>::new("node", &config);
    let fill = || {
        let mut all = Vec::new();
        loop {
            match pool.alloc() {
                Ok(node) => all.push(node),
                Err(AllocError::Limit { .. }) => return all,
                Err(other) => panic!("{other}"),
            }
        }
    };
    let all = fill();
    let count = all.len();
    free(&pool, all);
    let given = pool.shrink();
    assert!(given > limit - limit / 8);
    // Another pool of the budget takes half of the limit.
    config.budget.take(limit / 2).expect("has been given back");
    let all = fill();
    assert!(config.budget.held() <= limit);
    assert!(all.len() < count * 5 / 8, "{} of {count}", all.len());
    free(&pool, all);
    config.budget.give(limit / 2);
    let all = fill();
    assert!(all.len() > count * 15 / 16, "{} of {count}", all.len());
}

/// A thread's cache of free slots goes back although no thread takes its index again.
#[test]
fn what_ended_threads_kept_goes_back() {
    const THREADS: usize = 8;
    let config = config(Pages::Small);
    let pool = Pool::<Node>::new("node", &config);
    let bytes = BytesPool::new("object", &config);
    let all_live = Barrier::new(THREADS);
    let end = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                all_live.wait();
                let own = nodes(&pool, 40_000);
                let objects: Vec<_> = (0..2_000).map(|_| bytes.alloc(100).unwrap()).collect();
                free(&pool, own);
                for object in objects {
                    // SAFETY: allocated above.
                    unsafe { bytes.free(object, 100) };
                }
                end.wait();
                end.wait();
            });
        }
        end.wait();
        pool.shrink();
        bytes.shrink();
        let kept = config.budget.held();
        end.wait();
        assert!(kept > THREADS * (200 << 10), "living threads keep theirs: {kept}");
    });
    // The last destructors of a thread's variables may run after the scope's end.
    let enough = |_: &_| config.budget.held() < 200 << 10;
    let held = (0..1000).find(|at| {
        std::thread::sleep(Duration::from_millis(u64::from(*at > 0)));
        pool.shrink();
        bytes.shrink();
        enough(at)
    });
    assert!(held.is_some(), "{} bytes", config.budget.held());
    assert_eq!(pool.stats().live_slots + bytes.stats().live_slots, 0);
}

/// A pool that grew by each thread's cache would hold 20 times as much.
#[test]
fn a_pool_grows_by_no_granule_while_ended_threads_keep_slots() {
    const THREADS: usize = 20;
    let config = config(Pages::Small);
    let pool = Pool::<Node>::new("node", &config);
    let first = nodes(&pool, 100_000); // four granules
    free(&pool, first);
    let held = config.budget.held();
    for _ in 0..3 {
        let start = Barrier::new(THREADS);
        let work = || {
            start.wait();
            let own = nodes(&pool, 4_096);
            start.wait();
            free(&pool, own);
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            // The end of the scope does not wait for the destructors of a thread's variables.
            for thread in threads {
                thread.join().unwrap();
            }
        });
        let all = nodes(&pool, 100_000);
        assert!(are_whole(&all));
        free(&pool, all);
    }
    assert!(config.budget.held() < held + (3 << 20), "{} of {held}", config.budget.held());
}

/// A thread that needs a few slots takes few.
#[test]
fn a_thread_keeps_slots_in_proportion_to_those_it_took() {
    const THREADS: usize = 50;
    let config = config(Pages::Small);
    let pool = Pool::<Node>::new("node", &config);
    let bytes = BytesPool::new("object", &config);
    let end = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                nodes(&pool, 200);
                (0..200).for_each(|n| assert!(bytes.alloc(40 + n % 30).is_ok()));
                end.wait();
                end.wait();
            });
        }
        end.wait();
        let (live, held) =
            (pool.stats().live_bytes + bytes.stats().live_bytes, config.budget.held());
        end.wait();
        assert!(held < live * 3 / 2 + (192 << 10), "{held} bytes for {live}");
    });
}

#[test]
fn others_go_on_while_it_shrinks() {
    let config = config(Pages::Thp);
    let pool = Pool::<Node>::new("node", &config);
    let (ended, given) = (AtomicBool::new(false), AtomicUsize::new(0));
    let rounds = if cfg!(debug_assertions) { 20 } else { 200 };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                let (pool, given) = (&pool, &given);
                scope.spawn(move || {
                    // Long enough that memory has been returned while the workers run.
                    let enough = |round| {
                        round >= rounds
                            && (given.load(Ordering::Relaxed) > 0 || round > 1000 * rounds)
                    };
                    for round in (0..).take_while(|&round| !enough(round)) {
                        let mut all = nodes(pool, 15_000 + 1_000 * worker);
                        let rest = all.split_off(if round % 2 == 0 { 10 } else { 2_500 });
                        free(pool, rest);
                        assert!(are_whole(&all), "worker {worker} in round {round}");
                        free(pool, all);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                given.fetch_add(pool.shrink(), Ordering::Relaxed);
            }
        });
        let ends: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok), "all are whole");
    });
    assert!(given.load(Ordering::Relaxed) > 0);
    assert_eq!(pool.stats().live_slots, 0);
    drop(pool);
    assert_eq!(config.budget.held(), 0);
}

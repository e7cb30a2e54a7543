//! Tests of the arena: what threads receive, what the budget is charged, and each refusal.

use super::*;
use crate::{Budget, SMALL_PAGE};
use std::sync::{Arc, Barrier};

const BLOCK: usize = 1 << 20;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// An object: its address and its bytes.
type Object = (usize, usize);

fn alloc(arena: &ConcurrentArena, layout: Layout) -> Object {
    let object = arena.alloc(layout).unwrap();
    assert!(object.addr().get().is_multiple_of(layout.align()));
    // SAFETY: fresh memory of this layout, which only this thread has.
    unsafe { object.write_bytes(object.addr().get() as u8, layout.size()) };
    (object.addr().get(), layout.size())
}

/// Asserts that the objects do not overlap, and lie in the regions of the arena.
fn assert_disjoint(arena: &ConcurrentArena, mut objects: Vec<Object>) {
    objects.sort_unstable();
    for two in objects.windows(2) {
        assert!(two[0].0 + two[0].1 <= two[1].0, "{two:x?} overlap");
    }
    let regions = arena.regions();
    for (address, bytes) in objects {
        let inside = regions.iter().any(|region| {
            let start = region.start.addr().get();
            start <= address && address + bytes <= start + region.bytes
        });
        assert!(inside, "{address:x} lies in no region");
    }
}

/// Lets threads allocate at once, and returns their objects.
fn in_threads(threads: usize, work: impl Fn(usize) -> Vec<Object> + Sync) -> Vec<Object> {
    let (start, work) = (Barrier::new(threads), &work);
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                work(thread)
            })
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// A number of no particular pattern.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 8) as usize
}

#[test]
fn an_empty_arena_has_nothing_and_an_object_takes_one_page() {
    let config = Config::default();
    let arena = ConcurrentArena::new(&config, BLOCK);
    assert!(size_of::<ConcurrentArena>() < 1024);
    assert_eq!((arena.bytes(), arena.used(), arena.regions().len()), (0, 0, 0));
    assert_eq!((arena.stats(), arena.pages()), (ArenaStats::default(), Pages::Thp));
    let first = alloc(&arena, layout(40, 8));
    let second = alloc(&arena, layout(3, 1));
    let third = alloc(&arena, layout(8, 8));
    assert_eq!((second.0, third.0), (first.0 + 40, first.0 + 48), "one behind the other");
    assert_eq!((arena.bytes(), arena.used()), (SMALL_PAGE, 56));
    assert_eq!(arena.bytes(), config.budget.held());
    let stats = arena.stats();
    assert_eq!((stats.allocations, stats.main_locks, stats.shards), (3, 3, 0));
    drop(arena);
    assert_eq!(config.budget.held(), 0);
}

#[test]
fn steps_double_up_to_the_block_and_little_is_charged_in_advance() {
    let (objects, limit) = if cfg!(miri) { (500, 3) } else { (20_000, 14) };
    for (pages, block) in [(Pages::Small, 64 << 10), (Pages::Thp, BLOCK), (Pages::Thp, 1)] {
        let config = Config::new(pages, None);
        let arena = ConcurrentArena::new(&config, block);
        let mut steps = Vec::new();
        for n in 1..=objects {
            let before = arena.bytes();
            alloc(&arena, layout(1000, 8));
            assert_eq!(arena.used(), n * 1000);
            assert_eq!(arena.bytes(), config.budget.held());
            if arena.bytes() > before {
                steps.push(arena.bytes() - before);
            }
            if n * 1000 > limit << 20 {
                break;
            }
            // Half of the charged bytes, a step, ends of granules, or a granule of more than four.
            let most = if pages == Pages::Small { block } else { (n * 1000).min(HUGE_PAGE) };
            let ends = n * 1000 / HUGE_PAGE * 1000;
            assert!(
                arena.bytes() <= n * 1000 + ends + most + SMALL_PAGE,
                "{} at {n}",
                arena.bytes()
            );
        }
        assert_eq!(steps[0], SMALL_PAGE);
        assert!(steps[1] == (2 * SMALL_PAGE).min(block.next_multiple_of(SMALL_PAGE)), "{steps:?}");
        drop(arena);
        assert_eq!(config.budget.held(), 0);
    }
}

#[test]
fn objects_of_threads_do_not_overlap() {
    let config = Config::default();
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let arena = ConcurrentArena::new(&config, [BLOCK, 64 << 10, 4 << 10][round % 3]);
        let objects = in_threads(4, |thread| {
            let mut state = (round * 4 + thread + 1) as u64;
            let one = |_| {
                let align = 1 << (random(&mut state) % 7);
                let size = match random(&mut state) % 100 {
                    0 => 1 + random(&mut state) % 50_000,
                    _ => 1 + random(&mut state) % 200,
                };
                alloc(&arena, layout(size, align))
            };
            (0..if cfg!(miri) { 50 } else { 3000 }).map(one).collect()
        });
        let bytes: usize = objects.iter().map(|object| object.1).sum();
        let stats = arena.stats();
        assert_eq!(stats.allocations, objects.len() as u64);
        assert!(arena.used() >= bytes && arena.used() <= bytes + 63 * objects.len());
        assert!(arena.used() <= arena.bytes());
        assert_eq!(arena.bytes(), config.budget.held());
        // Each object still has what its thread wrote there.
        for &(address, bytes) in &objects {
            let object = arena.regions().iter().find_map(|region| {
                let at = address.checked_sub(region.start.addr().get())?;
                (at < region.bytes).then(|| region.start.as_ptr().wrapping_add(at))
            });
            // SAFETY: written by its thread, which has ended; in a region of the arena.
            let object = unsafe { std::slice::from_raw_parts(object.unwrap(), bytes) };
            assert!(object.iter().all(|&byte| byte == address as u8));
        }
        assert_disjoint(&arena, objects);
        drop(arena);
        assert_eq!(config.budget.held(), 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it takes more than a minute there")]
fn with_shards_an_insert_in_fifty_at_most_locks_the_main_arena() {
    let config = Config::default();
    let arena = ConcurrentArena::new(&config, BLOCK);
    arena.make_shards().unwrap();
    let each = 50_000;
    let objects = in_threads(4, |_| (0..each).map(|_| alloc(&arena, layout(140, 8))).collect());
    let stats = arena.stats();
    assert_eq!((stats.allocations, stats.unsharded_locks), (4 * each as u64, 0));
    assert!(stats.main_locks * 50 <= stats.allocations, "{stats:?}");
    assert_eq!(arena.used(), 4 * each * 144 - stats_padding(&objects, 4), "{stats:?}");
    assert_disjoint(&arena, objects);
}

/// The objects of 140 bytes that are the first of a block have no padding in front of them; those
/// behind them have 4 bytes.
fn stats_padding(objects: &[Object], padding: usize) -> usize {
    let mut sorted = objects.to_vec();
    sorted.sort_unstable();
    let firsts = 1 + sorted.windows(2).filter(|two| two[0].0 + 144 != two[1].0).count();
    firsts * padding
}

#[test]
#[cfg_attr(miri, ignore = "threads of Miri take turns, and rarely meet")]
fn threads_that_meet_make_shards() {
    let config = Config::default();
    for _ in 0..1000 {
        let arena = ConcurrentArena::new(&config, BLOCK);
        let objects = in_threads(2, |_| (0..5000).map(|_| alloc(&arena, layout(40, 8))).collect());
        let stats = arena.stats();
        assert_eq!(stats.allocations, 10_000);
        assert_eq!(stats.contended == 0, stats.shards == 0);
        if stats.shards > 0 {
            assert!(stats.shards.is_power_of_two());
            assert_disjoint(&arena, objects);
            return;
        }
    }
    panic!("two threads never met in a thousand rounds");
}

#[test]
fn a_limit_is_an_error_and_the_arena_works_on() {
    let config = Config::new(Pages::Small, Some(11 * SMALL_PAGE));
    config.budget.take(SMALL_PAGE).unwrap(); // somebody else's
    let arena = ConcurrentArena::new(&config, BLOCK);
    let page = layout(SMALL_PAGE, 8);
    let mut objects: Vec<_> = (0..9).map(|_| alloc(&arena, page)).collect();
    objects.push(alloc(&arena, layout(100, 8)));
    assert_eq!(arena.bytes(), 10 * SMALL_PAGE, "the last steps are as small as needed");
    let state = |arena: &ConcurrentArena| (arena.bytes(), arena.used(), arena.stats().allocations);
    let before = state(&arena);
    let far = layout(8, 2 * HUGE_PAGE);
    for refused in [page, layout(HUGE_PAGE, 8), layout(5 * HUGE_PAGE, 1), far] {
        assert!(matches!(arena.alloc(refused), Err(AllocError::Limit { .. })), "{refused:?}");
        assert_eq!(state(&arena), before);
        assert_eq!(config.budget.held(), 11 * SMALL_PAGE);
    }
    // The rest of the page is left, and more when the budget has more.
    objects.push(alloc(&arena, layout(SMALL_PAGE - 104, 8)));
    config.budget.give(SMALL_PAGE);
    objects.push(alloc(&arena, page));
    assert_eq!((arena.bytes(), config.budget.held()), (11 * SMALL_PAGE, 11 * SMALL_PAGE));
    assert_disjoint(&arena, objects);
    drop(arena);
    assert_eq!(config.budget.held(), 0);
}

#[test]
fn a_shard_that_is_refused_a_block_takes_single_objects_from_the_main_arena() {
    // The table of shards has up to 32 KiB.
    let limit = 12 * SMALL_PAGE;
    let config = Config::new(Pages::Small, Some(limit));
    let arena = ConcurrentArena::new(&config, BLOCK);
    arena.make_shards().unwrap();
    let table = arena.bytes();
    let mut objects = Vec::new();
    while let Ok(object) = arena.alloc(layout(64, 64)) {
        objects.push((object.addr().get(), 64));
    }
    assert_eq!((arena.bytes(), config.budget.held()), (limit, limit));
    assert!(objects.len() >= (limit - table) / 64, "all pages are used: {}", objects.len());
    assert_eq!(arena.used(), objects.len() * 64);
    // A shard has a block, and a later one is refused: the objects go on in the main arena.
    let bytes = 300 << 10;
    let config = Config::new(Pages::Small, Some(bytes));
    let arena = ConcurrentArena::new(&config, BLOCK);
    arena.make_shards().unwrap();
    let mut objects = Vec::new();
    while let Ok(object) = arena.alloc(layout(4096, 64)) {
        objects.push((object.addr().get(), 4096));
    }
    assert_eq!(arena.bytes(), bytes, "in whole pages");
    assert!(objects.len() * 4096 + (40 << 10) > bytes, "{} objects", objects.len());
    assert_disjoint(&arena, objects);
}

#[test]
fn shards_that_are_refused_are_made_later() {
    let config = Config::new(Pages::Small, Some(10 * SMALL_PAGE));
    config.budget.take(9 * SMALL_PAGE).unwrap(); // somebody else's
    let arena = ConcurrentArena::new(&config, BLOCK);
    let first = alloc(&arena, layout(SMALL_PAGE - 8, 8));
    assert!(arena.make_shards().is_err());
    let second = alloc(&arena, layout(8, 8));
    assert_eq!((arena.stats().shards, arena.used()), (0, SMALL_PAGE));
    config.budget.give(9 * SMALL_PAGE);
    arena.make_shards().unwrap();
    assert_eq!((arena.used(), arena.stats().allocations), (SMALL_PAGE, 2));
    let third = alloc(&arena, layout(8, 8));
    assert_disjoint(&arena, vec![first, second, third]);
}

#[test]
fn large_objects_have_exact_mappings() {
    let config = Config::default();
    let arena = ConcurrentArena::new(&config, BLOCK);
    let mut objects = vec![alloc(&arena, layout(100, 8))];
    for size in [3 * HUGE_PAGE + 1, HUGE_PAGE + 5000, HUGE_PAGE, 3 * HUGE_PAGE] {
        let (bytes, used) = (arena.bytes(), arena.used());
        objects.push(alloc(&arena, layout(size, 8)));
        assert_eq!(arena.used() - used, size);
        assert_eq!(arena.bytes() - bytes, size.next_multiple_of(SMALL_PAGE));
        assert_eq!(arena.bytes(), config.budget.held());
    }
    objects.push(alloc(&arena, layout(100, 8)));
    assert_eq!(objects.last().unwrap().0 & !(HUGE_PAGE - 1), objects[0].0 & !(HUGE_PAGE - 1));
    assert_disjoint(&arena, objects);
    drop(arena);
    assert_eq!(config.budget.held(), 0);
}

#[test]
fn any_alignment_is_kept() {
    let config = Config::default();
    let arena = ConcurrentArena::new(&config, BLOCK);
    arena.make_shards().unwrap();
    let mut objects = Vec::new();
    for power in 0..if cfg!(miri) { 22 } else { 26 } {
        for size in [1, 7, 4096] {
            objects.push(alloc(&arena, layout(size, 1 << power)));
        }
    }
    assert_eq!(arena.bytes(), config.budget.held());
    assert_disjoint(&arena, objects);
    let empty = arena.alloc(layout(0, 1 << 20)).unwrap();
    assert_eq!(empty.addr().get(), 1 << 20);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory of these sizes to refuse")]
fn layouts_near_the_end_of_the_address_space_are_errors() {
    let config = Config::default();
    let arena = ConcurrentArena::new(&config, usize::MAX);
    let most = isize::MAX as usize;
    for shards in [false, true] {
        if shards {
            arena.make_shards().unwrap();
        }
        let bytes = arena.bytes();
        for (size, align) in [(most, 1), (most - 4095, 4096), (1, 1 << 62), (1 << 61, 1 << 61)] {
            let refused = arena.alloc(layout(size, align));
            assert!(matches!(refused, Err(AllocError::System { .. })), "{refused:?}");
            assert_eq!((arena.bytes(), config.budget.held()), (bytes, bytes));
        }
        alloc(&arena, layout(40, 8));
    }
    let limited = ConcurrentArena::new(&Config::new(Pages::Thp, Some(1 << 20)), 0);
    let refused = limited.alloc(layout(1 << 40, 1));
    assert!(matches!(refused, Err(AllocError::Limit { .. })), "{refused:?}");
    alloc(&limited, layout(40, 8));
}

#[test]
fn arenas_share_a_budget_and_each_returns_its_own_bytes() {
    let budget = Arc::new(Budget::new(None));
    let config = Config::of_budget(Pages::Thp, Arc::clone(&budget));
    let [one, two] = [(); 2].map(|()| ConcurrentArena::new(&config, BLOCK));
    alloc(&one, layout(10_000, 8));
    alloc(&two, layout(30_000_000, 8));
    assert_eq!(one.bytes() + two.bytes(), budget.held());
    drop(two);
    assert_eq!((one.bytes(), one.bytes()), (3 * SMALL_PAGE, budget.held()));
    drop(one);
    assert_eq!(budget.held(), 0);
}

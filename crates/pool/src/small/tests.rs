//! Tests of small objects, alone and in pools.

use super::*;
use crate::{BytesPool, Pages, Pool};
use std::collections::HashSet;
use std::sync::Barrier;

#[repr(align(64))]
struct Line {
    _words: [u64; 8],
}

fn config() -> Config {
    Config::new(Pages::Small, None).starting_small()
}

#[test]
fn few_objects_cost_their_slots_and_map_nothing() {
    let config = config();
    let budget = Arc::clone(&config.budget);
    let (lines, bytes) = (Pool::<Line>::new("line", &config), BytesPool::new("bytes", &config));
    assert_eq!(budget.held(), 0);
    let line = lines.alloc().unwrap();
    let objects: Vec<_> = (1..8).map(|n| (bytes.alloc(20 * n).unwrap(), 20 * n)).collect();
    assert!(line.is_aligned());
    let rounded: usize = objects.iter().map(|(_, size)| size.next_multiple_of(8)).sum();
    let parts = || {
        let list = config.small.as_ref().unwrap().list.lock();
        (list.held, list.bytes())
    };
    let (chunks, notes) = parts();
    assert_eq!(budget.held(), chunks + notes);
    assert_eq!(chunks, 1536, "two chunks for {} bytes", 64 + rounded);
    assert_eq!((lines.stats().live_slots, lines.stats().live_bytes), (1, 64));
    assert_eq!((bytes.stats().live_slots, bytes.stats().live_bytes), (7, rounded));
    assert!(lines.stats().regions.is_empty() && bytes.stats().regions.is_empty());
    // SAFETY: allocated above, used no more.
    unsafe {
        lines.free(line);
        for (object, size) in objects {
            bytes.free(object, size);
        }
    }
    assert_eq!(lines.stats().live_slots + bytes.stats().live_slots, 0);
    assert_eq!(parts().0, 0, "no slot is live");
    assert_eq!(budget.held(), parts().1);
    drop((lines, bytes, config));
    assert_eq!(budget.held(), 0);
}

#[test]
fn slots_do_not_overlap_and_spare_ones_are_used_again() {
    let config = config();
    let objects = config.small.as_ref().unwrap();
    let mut live: Vec<(NonNull<u8>, usize)> = Vec::new();
    let mut random = 1_usize;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (random >> 40) % bound
    };
    for _ in 0..5_000 {
        let bytes = match below(16) {
            0 => [576, 2112, 4096][below(3)],
            1..8 => 64 * (1 + below(4)),
            _ => 16 + 8 * below(14),
        };
        let slot = objects.alloc(3, bytes, usize::MAX).unwrap().expect("no bound");
        let align = if bytes % 64 == 0 { 64 } else { bytes & bytes.wrapping_neg() };
        assert_eq!(slot.addr().get() % align, 0, "{bytes} bytes at {slot:p}");
        let (from, to) = (slot.addr().get(), slot.addr().get() + bytes);
        for (other, bytes) in &live {
            assert!(to <= other.addr().get() || other.addr().get() + bytes <= from);
        }
        live.push((slot, bytes));
        if live.len() > 30 {
            let (slot, _) = live.swap_remove(below(30));
            // SAFETY: allocated above, used no more.
            unsafe { objects.free(slot) };
        }
    }
    let most: usize = live.iter().map(|(_, bytes)| bytes).sum();
    let held = objects.list.lock().held;
    assert!(held < 10 * most + (32 << 10), "{held} bytes of chunks for {most}");
    assert_eq!(objects.of(3).len(), live.len());
    for (slot, _) in live {
        // SAFETY: allocated above, used no more.
        unsafe { objects.free(slot) };
    }
    assert_eq!(objects.list.lock().held, 0, "the chunks went back");
}

#[test]
fn a_pool_outgrows_the_source_and_uses_its_small_slots_again() {
    let config = config();
    let budget = Arc::clone(&config.budget);
    let mut pool = Pool::<Line>::new("line", &config);
    let mut live: HashSet<_> = (0..small_bytes(64) / 64).map(|_| pool.alloc().unwrap()).collect();
    assert!(pool.stats().regions.is_empty());
    live.insert(pool.alloc().unwrap());
    assert_eq!(pool.stats().regions.len(), 1);
    assert_eq!(pool.live().collect::<HashSet<_>>(), live);
    // Half of the small slots go into the magazine, and come out of it.
    let small = pool.core.small_slots();
    let half: Vec<_> = small.iter().map(|slot| slot.0).take(small.len() / 2).collect();
    for slot in &half {
        assert!(live.remove(&slot.cast()));
        // SAFETY: allocated above, used no more.
        unsafe { pool.free(slot.cast()) };
    }
    assert_eq!(pool.stats().live_slots, live.len());
    assert_eq!(pool.live().collect::<HashSet<_>>(), live);
    let again = pool.alloc().unwrap();
    assert!(half.contains(&again.cast()), "a small slot is used again");
    live.insert(again);
    // More frees than a magazine holds: the source gets small slots back.
    live.extend((0..20_000).map(|_| pool.alloc().unwrap()));
    assert_eq!(pool.stats().live_slots, live.len());
    for slot in live {
        // SAFETY: allocated above, used no more.
        unsafe { pool.free(slot) };
    }
    assert_eq!((pool.stats().live_slots, pool.live().count()), (0, 0));
    assert!(pool.core.small_slots().len() < small.len());
    pool.shrink();
    assert!(pool.core.small_slots().is_empty(), "shrinking empties this thread's magazines");
    drop((pool, config));
    assert_eq!(budget.held(), 0);
}

/// Allocates and frees an object again and again.
fn use_again(pool: &Pool<Line>, times: u32) {
    for _ in 0..times {
        let line = pool.alloc().unwrap();
        // SAFETY: allocated above, used no more.
        unsafe { pool.free(line) };
    }
}

/// A pool of one object at a time leaves the list: soon if its index is large, and at last in any
/// case.
#[test]
fn a_pool_that_is_used_again_and_again_has_a_core() {
    let config = config();
    let pool = Pool::<Line>::new("line", &config);
    use_again(&pool, MORE_USES - 1);
    assert!(pool.stats().regions.is_empty());
    use_again(&pool, 2);
    assert_eq!(pool.stats().regions.len(), 1);

    let (others, pool) = (BytesPool::new("bytes", &config), Pool::<Line>::new("line", &config));
    use_again(&pool, MANY_USES + 1);
    assert!(pool.stats().regions.is_empty(), "the index is small");
    for _ in 0..2 * LARGE_INDEX / 1024 {
        others.alloc(1024).unwrap();
    }
    use_again(&pool, 1);
    assert_eq!(pool.stats().regions.len(), 1);
}

/// An index that uses its first objects again and again makes its pools.
#[test]
fn first_objects_that_are_used_again_and_again_are_the_last_ones() {
    let config = config();
    let objects = config.small.as_ref().unwrap();
    let size = SlotSize { object: 24, slot: 24 };
    for _ in 0..MORE_USES {
        let object = objects.alloc_first(0, size, None).unwrap().expect("it is not time yet");
        // SAFETY: allocated above, used no more.
        unsafe { objects.free_first(object, 24) };
    }
    assert!(objects.alloc_first(0, size, None).unwrap().is_none());
}

#[test]
fn threads_that_outgrow_the_source_together_lose_no_slot() {
    const THREADS: usize = 4;
    for _ in 0..50 {
        let config = config();
        let budget = Arc::clone(&config.budget);
        let pool = BytesPool::new("bytes", &config);
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (pool, start) = (&pool, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut kept = Vec::new();
                    for round in 0..2_000 {
                        let size = 8 + (round * 31 + thread * 7) % 200;
                        let object = pool.alloc(size).unwrap();
                        // SAFETY: the object has room for a word, and is this thread's.
                        unsafe { object.cast::<usize>().write(object.addr().get()) };
                        kept.push((object, size));
                        if kept.len() > 40 {
                            let (object, size) = kept.swap_remove(round % 40);
                            // SAFETY: allocated above by this thread.
                            let word = unsafe { object.cast::<usize>().read() };
                            assert_eq!(word, object.addr().get(), "two threads have one slot");
                            // SAFETY: allocated above, used no more.
                            unsafe { pool.free(object, size) };
                        }
                    }
                    for (object, size) in kept {
                        // SAFETY: allocated above, used no more.
                        unsafe { pool.free(object, size) };
                    }
                });
            }
        });
        assert_eq!(pool.stats().live_slots, 0);
        drop((pool, config));
        assert_eq!(budget.held(), 0);
    }
}

/// An index allocates before it has its pools, and frees before and after.
#[test]
fn pools_take_back_what_was_allocated_before_they_were_made() {
    let config = Config::new(Pages::Small, None);
    let first = SmallObjects::before_pools(&config).expect("slots have no alignment");
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for size in (20..).step_by(7) {
        let Some(line) = first.alloc_first(0, Pool::<Line>::SLOT, None).unwrap() else { break };
        lines.push(line);
        let object = first.alloc_first(1, BytesPool::slot(size), None).unwrap();
        objects.extend(object.map(|object| (object, size)));
    }
    let most = small_bytes(64);
    // The bound of larger objects is higher, and lines go to the rests of their chunks.
    assert!((most - 1024..=small_bytes(128)).contains(&first.list.lock().held));
    let (line, (object, size)) = (lines.swap_remove(3), objects.swap_remove(5));
    // SAFETY: allocated above, used no more.
    unsafe {
        first.free_first(line, size_of::<Line>());
        first.free_first(object, size);
    }
    let bytes = |size: &(_, usize)| BytesPool::slot(size.1).slot;
    let before = [first.stats(0, "line"), first.stats(1, "bytes")];
    assert_eq!(before[0].live_slots, lines.len());
    assert_eq!(before[1].live_bytes, objects.iter().map(bytes).sum::<usize>());
    assert!(first.alloc_first(0, BytesPool::slot(LARGEST + 1), None).unwrap().is_none());

    let settings = first.pool_config();
    let mut pool = Pool::<Line>::new("line", &settings);
    let mut pool_of_bytes = BytesPool::new("bytes", &settings);
    drop((first, settings));
    for (stats, before) in [pool.stats(), pool_of_bytes.stats()].iter().zip(&before) {
        assert_eq!((stats.kind, stats.live_slots), (before.kind, before.live_slots));
        assert_eq!((stats.live_bytes, stats.regions.len()), (before.live_bytes, 0));
    }
    assert_eq!(pool.live().count(), lines.len());
    assert_eq!(pool_of_bytes.live().count(), objects.len());
    // SAFETY: allocated above, used no more.
    unsafe { pool.free(lines.pop().unwrap().cast()) };
    // The first objects count among those with which a pool begins.
    let more = (0..).take_while(|_| {
        lines.push(pool.alloc().unwrap().cast());
        pool.stats().regions.is_empty()
    });
    assert!(more.count() <= small_bytes(64) / 64);
    assert_eq!(lines.len() * 64, most + 64);
    for line in lines {
        // SAFETY: allocated above, used no more.
        unsafe { pool.free(line.cast()) };
    }
    for (object, size) in objects {
        // SAFETY: allocated above, used no more.
        unsafe { pool_of_bytes.free(object, size) };
    }
    assert_eq!(pool.stats().live_slots + pool_of_bytes.stats().live_slots, 0);
    drop((pool, pool_of_bytes));
    assert_eq!(config.budget.held(), 0);
}

/// A slot whose slab is not marked would go to a bitmap of another core.
#[test]
#[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
fn threads_that_open_the_first_slabs_of_a_granule_have_marked_ones() {
    for _ in 0..300 {
        let source = bytes::source();
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for class in 0..2 {
                let (source, start) = (&source, &start);
                scope.spawn(move || {
                    start.wait();
                    let slot = source.alloc(class).unwrap();
                    assert!(source.is_small(slot.as_ptr()));
                });
            }
        });
    }
}

/// Objects of one size after the other: a freed slot serves its own size only.
#[test]
fn sizes_that_come_and_go_take_no_more_chunks_than_all_may_have() {
    let config = config();
    let pool = BytesPool::new("node", &config);
    let kept = pool.alloc(64).unwrap(); // so that the chunks stay
    for size in (128..4096).step_by(64) {
        let objects: Vec<_> = (0..8192 / size).map(|_| pool.alloc(size).unwrap()).collect();
        for object in objects {
            // SAFETY: allocated above with this size, used no more, freed once.
            unsafe { pool.free(object, size) };
        }
        let held = config.small.as_ref().unwrap().list.lock().held;
        assert!(held <= ALL_BYTES + 4096, "{held} bytes of chunks at {size}");
    }
    assert!(!pool.stats().regions.is_empty(), "the pool has a core");
    // SAFETY: allocated above with this size, used no more, freed once.
    unsafe { pool.free(kept, 64) };
    assert_eq!(pool.stats().live_slots, 0);
}

#[test]
fn a_dropped_pool_keeps_nothing_while_its_settings_live() {
    let config = config();
    let (kept, dropped) = (Pool::<Line>::new("a", &config), Pool::<Line>::new("b", &config));
    let _line = kept.alloc().unwrap();
    let before = config.budget.held();
    for lines in [100, 100, 100, 3 * small_bytes(64) / 64] {
        // The last one takes a core, too; the others, small slots alone.
        let pool = Pool::<Line>::new("c", &config);
        let slots: Vec<_> = (0..lines).map(|_| pool.alloc().unwrap()).collect();
        // SAFETY: allocated above, used no more: the slot waits in a magazine of the core.
        unsafe { pool.free(slots[0]) };
        assert!(config.budget.held() > before);
    }
    {
        let list = config.small.as_ref().unwrap().list.lock();
        assert_eq!(config.budget.held(), list.held + list.bytes());
        assert!(list.held < 2 * small_bytes(64), "slots of dropped pools are used again");
        assert_eq!(list.live(), 1);
    }
    drop(dropped);
    assert_eq!((kept.stats().live_slots, kept.core.small_slots().len()), (1, 1));
}

/// Such a pool would take its first slots by one tuning and the others by another.
#[test]
fn a_pool_whose_settings_were_changed_since_has_a_core_at_once() {
    let tuning = crate::Tuning::default().slot_align(64).unwrap();
    let pool = Pool::<[u64; 6]>::new("node", &Config { tuning, ..config() });
    let slots: Vec<_> = (0..1000).map(|_| pool.alloc().unwrap()).collect();
    assert!(slots.iter().all(|slot| slot.addr().get().is_multiple_of(64)));
    assert!(pool.core.small_slots().is_empty());
}

/// Objects that are too large for the source are the core's.
#[test]
fn a_pool_of_larger_slabs_starts_small() {
    let config = config();
    let tuning = crate::Tuning::default().slab_bytes(64 << 10).unwrap();
    let pool = BytesPool::new("node", &Config { tuning, ..config.clone() });
    let mut objects: Vec<_> = (0..4).map(|_| (pool.alloc(576).unwrap(), 576)).collect();
    assert_eq!((pool.stats().live_slots, pool.stats().regions.len()), (4, 0));
    objects.push((pool.alloc(5000).unwrap(), 5000));
    assert_eq!((pool.stats().live_slots, pool.stats().regions.len()), (5, 1));
    assert_eq!(config.small.as_ref().unwrap().list.lock().live(), 4);
    assert!(config.budget.held() > 64 << 10);
    objects.extend((0..100).map(|_| (pool.alloc(8000).unwrap(), 8000)));
    assert_eq!(pool.stats().live_slots, 105);
    for (object, size) in objects {
        // SAFETY: allocated above with this size, used no more, freed once.
        unsafe { pool.free(object, size) };
    }
    assert_eq!(pool.stats().live_slots, 0);
    drop(pool);
    let list = config.small.as_ref().unwrap().list.lock();
    assert_eq!(config.budget.held(), list.held + list.bytes());
}

/// The source has no slot for such an object, so the error is the core's.
#[test]
fn a_large_object_is_refused_at_a_limit() {
    let config = Config::new(Pages::Small, Some(40 << 10)).starting_small();
    let tuning = crate::Tuning::default().slab_bytes(64 << 10).unwrap();
    let pool = BytesPool::new("node", &Config { tuning, ..config.clone() });
    let small = pool.alloc(576).unwrap();
    for size in [4104, 8192] {
        let refused = pool.alloc(size);
        assert!(matches!(refused, Err(AllocError::Limit { .. })), "{refused:?}");
    }
    assert_eq!(pool.stats().live_slots, 1);
    // SAFETY: allocated above with this size, used no more, freed once.
    unsafe { pool.free(small, 576) };
    assert_eq!(pool.stats().live_slots, 0);
}

/// A removed object must make room for another one, whichever memory it was in.
#[test]
fn a_pool_with_a_core_takes_small_slots_when_its_limit_refuses_a_slab() {
    let limit = (64 << 10) + small_bytes(64) + (4 << 10);
    let config = Config::new(Pages::Small, Some(limit)).starting_small();
    let pool = Pool::<Line>::new("line", &config);
    let lines: Vec<_> = (0..).map_while(|_| pool.alloc().ok()).collect();
    assert_eq!(pool.stats().regions.len(), 1);
    assert!(config.budget.held() > limit - 128, "{} of {limit}", config.budget.held());
    // The frees overflow the magazine, so small slots go back to the source.
    for line in &lines {
        // SAFETY: allocated by this pool, used no more, freed once.
        unsafe { pool.free(*line) };
    }
    while pool.alloc().is_ok() {}
    assert!(config.budget.held() > limit - 128, "{} of {limit}", config.budget.held());
}

#[test]
fn a_limit_holds_for_small_objects() {
    let config = Config::new(Pages::Small, Some(1000)).starting_small();
    let pool = Pool::<Line>::new("line", &config);
    let lines = (0..).map_while(|_| pool.alloc().ok()).count();
    // A chunk of 512 bytes, and chunks of one line while they and their notes fit.
    assert!((11..=13).contains(&lines), "{lines}");
    assert!((900..=1000).contains(&config.budget.held()), "{}", config.budget.held());
    assert!(matches!(pool.alloc(), Err(AllocError::Limit { limit: 1000, .. })));
}

/// Symptom: the source kept what indexes returned if each returned much. Cause: the drop of an
/// index lost the count of a large return.
#[test]
#[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
fn what_indexes_had_goes_back_to_the_system() {
    const MANY_POOLS: usize = 2 * list::NOTED / small_bytes(320);
    // Many indexes that have little, then some that have much.
    for (indexes, pools, objects) in [(10_000, 1, 5), (200, MANY_POOLS, small_bytes(320) / 320)] {
        let index = |_| {
            let config = config();
            let pool = |_| {
                let pool = Pool::<[u64; 40]>::new("node", &config);
                assert!((0..objects).all(|_| pool.alloc().is_ok()));
                pool
            };
            (0..pools).map(pool).collect::<Vec<_>>()
        };
        let made: Vec<_> = (0..indexes).map(index).collect();
        let most = SOURCE.core.slab_bytes();
        assert!(most > indexes * pools * objects * 320);
        let returnable = SOURCE.core.gives_back(); // pages of 16 KiB may be too large
        drop(made);
        let left = SOURCE.core.slab_bytes();
        assert!(!returnable || left < most / 4, "{left} of {most}");
    }
}

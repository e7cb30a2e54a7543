//! The guarantees of pools: distinct, aligned, counted slots; limits; remote frees; reuse.

use silvics_pool::{AllocError, BytesPool, Config, HUGE_PAGE, Pages, Pool, set_read_only};
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::{Arc, Barrier, mpsc};

type Node = [u64; 7];

/// Fills a slot with its own address, so that an overlap shows when it is checked.
fn fill(slot: NonNull<u8>, bytes: usize) {
    for at in (0..bytes).step_by(8) {
        // SAFETY: the slot has `bytes` bytes, and the caller owns it.
        unsafe { slot.byte_add(at).cast::<usize>().write(slot.addr().get() + at) };
    }
}

fn is_filled(slot: NonNull<u8>, bytes: usize) -> bool {
    (0..bytes).step_by(8).all(|at| {
        // SAFETY: as in `fill`, which initialised it.
        unsafe { slot.byte_add(at).cast::<usize>().read() == slot.addr().get() + at }
    })
}

struct Sent(NonNull<u8>);
// SAFETY: a test moves slots from one thread to another and never shares them.
unsafe impl Send for Sent {}

#[test]
fn slots_are_distinct_aligned_and_do_not_overlap() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let slots: Vec<_> = (0..100_000).map(|_| pool.alloc().unwrap()).collect();
    for slot in &slots {
        assert!(slot.is_aligned());
        fill(slot.cast(), size_of::<Node>());
    }
    assert!(slots.iter().all(|s| is_filled(s.cast(), size_of::<Node>())));
    assert_eq!(slots.iter().collect::<HashSet<_>>().len(), slots.len());
    assert_eq!(pool.stats().live_slots, slots.len());
    for slot in slots {
        // SAFETY: allocated above.
        unsafe { pool.free(slot) };
    }
    assert_eq!(pool.stats().live_slots, 0);
}

#[test]
fn a_threads_fresh_slots_are_consecutive() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let slots: Vec<_> = (0..1000).map(|_| pool.alloc().unwrap().addr().get()).collect();
    assert!(slots.windows(2).all(|w| w[1] == w[0] + size_of::<Node>()));
}

#[test]
fn over_aligned_types_get_their_alignment() {
    #[repr(align(128))]
    struct Line([u8; 100]);
    let pool = Pool::<Line>::new("line", &Config::default());
    for _ in 0..5000 {
        let slot = pool.alloc().unwrap();
        assert_eq!(slot.addr().get() % 128, 0);
        // SAFETY: room for one `Line`.
        unsafe { slot.write(Line([1; 100])) };
        // SAFETY: written above.
        assert_eq!(unsafe { slot.as_ref() }.0[99], 1);
    }
}

#[test]
fn bytes_are_exact_and_churn_does_not_grow() {
    let config = Config::new(Pages::Small, None);
    let pool = Pool::<Node>::new("node", &config);
    assert_eq!(config.budget.held(), 0);
    let mut slots: Vec<_> = (0..50_000).map(|_| pool.alloc().unwrap()).collect();
    let mut held = config.budget.held();
    assert!(held >= 50_000 * size_of::<Node>());
    assert!(held <= 50_000 * size_of::<Node>() + 8 * (64 << 10), "{held}");
    for round in 0..20 {
        if round == 1 {
            held = config.budget.held(); // the first burst has enlarged the magazine
        }
        // Free a pseudo-random half, then allocate as many.
        let freed = slots.len() / 2;
        for i in 0..freed {
            let at = (i * 7919 + round * 31) % slots.len();
            // SAFETY: allocated by this pool and taken out of the list.
            unsafe { pool.free(slots.swap_remove(at)) };
        }
        slots.extend((0..freed).map(|_| pool.alloc().unwrap()));
        assert_eq!(slots.iter().collect::<HashSet<_>>().len(), 50_000);
    }
    assert_eq!(config.budget.held(), held, "freed slots were not reused");
    drop(pool);
    assert_eq!(config.budget.held(), 0);
}

#[test]
fn the_limit_fails_as_a_value_and_frees_make_room() {
    for pages in [Pages::Small, Pages::Thp] {
        let limit = 5 << 20;
        let config = Config::new(pages, Some(limit));
        let pool = Pool::<Node>::new("node", &config);
        let mut slots = Vec::new();
        let error = loop {
            match pool.alloc() {
                Ok(slot) => slots.push(slot),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, AllocError::Limit { limit: l, .. } if l == limit), "{error:?}");
        assert!(config.budget.held() <= limit);
        let used = slots.len() * size_of::<Node>();
        assert!(used >= limit - limit / 10, "{pages}: only {used} of {limit} were given");
        assert!(pool.alloc().is_err());
        for slot in slots.drain(..1000) {
            // SAFETY: allocated above.
            unsafe { pool.free(slot) };
        }
        for _ in 0..1000 {
            pool.alloc().expect("a freed slot is there again");
        }
        assert!(pool.alloc().is_err());
    }
}

#[test]
fn slots_freed_by_another_thread_come_back() {
    let config = Config::new(Pages::Small, None);
    let pool = Arc::new(Pool::<Node>::new("node", &config));
    let (send, receive) = mpsc::sync_channel::<Vec<Sent>>(4);
    let freer = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || {
            for batch in receive {
                for Sent(slot) in batch {
                    assert!(is_filled(slot, size_of::<Node>()));
                    // SAFETY: sent once by its owner.
                    unsafe { pool.free(slot.cast()) };
                }
            }
        })
    };
    for _ in 0..2000 {
        let batch = (0..100).map(|_| {
            let slot = pool.alloc().unwrap().cast();
            fill(slot, size_of::<Node>());
            Sent(slot)
        });
        send.send(batch.collect()).unwrap();
    }
    drop(send);
    freer.join().unwrap();
    assert_eq!(pool.stats().live_slots, 0);
    let held = config.budget.held();
    assert!(held < 1 << 20, "200 000 slots passed through, {held} bytes stayed");
}

#[test]
fn two_threads_never_get_the_same_slot() {
    const KEEP: usize = 3000;
    let pool = Arc::new(Pool::<Node>::new("node", &Config::default()));
    let start = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..3u64)
        .map(|seed| {
            let (pool, start) = (Arc::clone(&pool), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                let mut mine = Vec::new();
                let mut random = seed + 1;
                for _ in 0..200_000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    let at = (random >> 33) as usize;
                    if mine.len() < KEEP && !at.is_multiple_of(3) || mine.is_empty() {
                        let slot = pool.alloc().unwrap().cast();
                        fill(slot, size_of::<Node>());
                        mine.push(slot);
                    } else {
                        let slot = mine.swap_remove(at % mine.len());
                        assert!(is_filled(slot, size_of::<Node>()), "a slot was given twice");
                        // SAFETY: this thread owns the slot and no longer uses it.
                        unsafe { pool.free(slot.cast()) };
                    }
                }
                mine.len()
            })
        })
        .collect();
    let kept: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(pool.stats().live_slots, kept);
}

#[test]
fn frees_from_a_threads_last_moments_are_not_lost() {
    // A thread-local destructor that runs after the pool's own thread data is gone.
    struct Late(Option<(Arc<Pool<Node>>, Vec<Sent>)>);
    impl Drop for Late {
        fn drop(&mut self) {
            let (pool, slots) = self.0.take().unwrap();
            let extra = pool.alloc().unwrap();
            // SAFETY: allocated just now by this pool.
            unsafe { pool.free(extra) };
            for Sent(slot) in slots {
                // SAFETY: this thread allocated it from this pool.
                unsafe { pool.free(slot.cast()) };
            }
        }
    }
    std::thread_local! {
        static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(None)) };
    }
    let config = Config::new(Pages::Small, None);
    let pool = Arc::new(Pool::<Node>::new("node", &config));
    for _ in 0..50 {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || {
            // Registered first, so destroyed last.
            LATE.with(|l| std::mem::forget(l.replace(Late(None))));
            let slots = (0..500).map(|_| Sent(pool.alloc().unwrap().cast())).collect();
            LATE.with(|l| std::mem::forget(l.replace(Late(Some((pool, slots))))));
        })
        .join()
        .unwrap();
    }
    assert_eq!(pool.stats().live_slots, 0);
    assert!(config.budget.held() < 1 << 20, "{} bytes held", config.budget.held());
}

#[test]
fn pages_are_what_was_asked_for_or_the_report_says_why() {
    for pages in [Pages::Small, Pages::Thp, Pages::HugeTlb] {
        let pool = Pool::<Node>::new("node", &Config::new(pages, None));
        for _ in 0..200_000 {
            // SAFETY: a fresh slot.
            unsafe { pool.alloc().unwrap().write([1; 7]) };
        }
        let stats = pool.stats();
        match stats.fallback {
            None => assert_eq!(stats.pages, pages),
            Some(fallback) => {
                assert_eq!((fallback.wanted, fallback.given), (pages, stats.pages));
                assert!(fallback.reason.contains(':'), "names a remedy: {}", fallback.reason);
            }
        }
        for region in stats.regions {
            assert_eq!(region.start.addr().get() % HUGE_PAGE, 0);
        }
    }
}

#[test]
fn a_small_pool_does_not_take_a_huge_page() {
    let config = Config::default();
    let pools: Vec<_> = (0..100).map(|_| Pool::<Node>::new("node", &config)).collect();
    for pool in &pools {
        pool.alloc().unwrap();
    }
    assert!(config.budget.held() < 100 * (80 << 10), "{} bytes held", config.budget.held());
}

#[test]
fn read_only_regions_can_be_read_and_made_writable_again() {
    let pool = Pool::<Node>::new("node", &Config::default());
    let slot = pool.alloc().unwrap();
    // SAFETY: a fresh slot.
    unsafe { slot.write([5; 7]) };
    let regions = pool.stats().regions;
    // SAFETY: no thread writes to the regions until they are writable again.
    unsafe {
        if set_read_only(&regions, true).is_ok() {
            assert_eq!(slot.read(), [5; 7]);
            set_read_only(&regions, false).unwrap();
        }
        slot.write([6; 7]);
    }
}

#[test]
fn objects_of_all_sizes_are_distinct_and_come_back() {
    let config = Config::new(Pages::Small, None);
    let pool = BytesPool::new("bytes", &config);
    let sizes = |i: usize| match i % 50 {
        0 => 4097 + i * 7 % 100_000,
        1..=5 => 513 + i * 13 % 3500,
        _ => 8 + i * 31 % 504,
    };
    let mut objects = Vec::new();
    for i in 0..20_000 {
        let size = sizes(i);
        let object = pool.alloc(size).unwrap();
        assert_eq!(object.addr().get() % 8, 0);
        fill(object, size & !7);
        objects.push((object, size));
    }
    assert!(objects.iter().all(|&(o, size)| is_filled(o, size & !7)));
    assert_eq!(pool.stats().live_slots, 20_000);
    let payload: usize = objects.iter().map(|o| o.1).sum();
    assert!(pool.stats().live_bytes >= payload);
    assert!(pool.stats().live_bytes <= payload + payload / 8);
    let mut held = 0;
    for round in 0..3 {
        if round == 1 {
            held = config.budget.held(); // the first burst has enlarged the magazines
        }
        for (object, size) in objects.drain(..) {
            // SAFETY: allocated with this size.
            unsafe { pool.free(object, size) };
        }
        assert_eq!(pool.stats().live_slots, 0);
        objects.extend((0..20_000).map(|i| (pool.alloc(sizes(i)).unwrap(), sizes(i))));
    }
    assert_eq!(config.budget.held(), held);
    drop(pool);
    assert_eq!(config.budget.held(), 0, "large objects are released with the pool");
}

#[test]
fn the_limit_covers_large_objects() {
    let pool = BytesPool::new("bytes", &Config::new(Pages::Small, Some(1 << 20)));
    assert!(matches!(pool.alloc(2 << 20), Err(AllocError::Limit { .. })));
    assert!(matches!(pool.alloc(usize::MAX), Err(AllocError::System { .. })));
    let object = pool.alloc(900 << 10).unwrap();
    assert!(pool.alloc(900 << 10).is_err());
    // SAFETY: allocated above.
    unsafe { pool.free(object, 900 << 10) };
    assert!(pool.alloc(900 << 10).is_ok());
}

/// From 64 MiB on, granules are backed as a whole at once, unless the limit is that near.
#[test]
fn large_pools_take_whole_granules_within_their_limit() {
    type Large = [u64; 1024];
    for limit in [None, Some((72 << 20) + (700 << 10))] {
        let config = Config::new(Pages::Thp, limit);
        let pool = Pool::<Large>::new("large", &config);
        let (mut slots, mut before, mut steps) = (Vec::new(), 0, 0);
        while slots.len() < 80 << 7
            && let Ok(slot) = pool.alloc()
        {
            // SAFETY: a fresh slot.
            unsafe { slot.cast::<u64>().write(slots.len() as u64) };
            slots.push(slot);
            let held = config.budget.held();
            assert!(held >= slots.len() * size_of::<Large>());
            assert!(held <= limit.unwrap_or(usize::MAX));
            steps += usize::from(held - before >= HUGE_PAGE);
            before = held;
        }
        for (at, slot) in slots.iter().enumerate() {
            // SAFETY: allocated and written above.
            assert_eq!(unsafe { slot.cast::<u64>().read() }, at as u64);
        }
        match limit {
            None => {
                assert_eq!(slots.len(), 80 << 7);
                assert_eq!(steps > 0, pool.stats().pages == Pages::Thp, "{steps} whole granules");
            }
            Some(limit) => {
                let unused = limit - slots.len() * size_of::<Large>();
                assert!(unused < 512 << 10, "{unused} bytes of the limit cannot be had");
            }
        }
        drop(pool);
        assert_eq!(config.budget.held(), 0);
    }
}

/// Objects so small that their slabs contain their own bitmaps. There are more of them than
/// magazines hold, so the bitmaps are used.
#[test]
fn the_smallest_objects_come_back_through_their_bitmaps() {
    let config = Config::new(Pages::Small, None);
    let pool = BytesPool::new("bytes", &config);
    for size in [1, 16, 17, 24] {
        let round = || -> Vec<_> { (0..30_000).map(|_| pool.alloc(size).unwrap()).collect() };
        let first = round();
        let held = config.budget.held();
        for object in &first {
            fill(*object, size & !7);
            // SAFETY: allocated above.
            unsafe { pool.free(*object, size) };
        }
        let second = round();
        assert!(config.budget.held() < held + (64 << 10), "freed objects were not found again");
        let addresses: HashSet<_> = second.iter().map(|object| object.addr()).collect();
        assert_eq!(addresses.len(), second.len());
        for &object in &second {
            fill(object, size & !7);
        }
        assert!(second.iter().all(|&object| is_filled(object, size & !7)));
        for object in second {
            // SAFETY: allocated above.
            unsafe { pool.free(object, size) };
        }
    }
    assert_eq!(pool.stats().live_slots, 0);
}

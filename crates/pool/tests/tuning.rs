//! Each setting of `Tuning`, checked by the addresses and counts that it leads to.

use silvics_pool::{BytesPool, Config, HUGE_PAGE, Pages, Pool, Tuning, TuningError};
use std::collections::{HashMap, HashSet};

/// 48 bytes: by default, one of two would cross a line.
type Node = [u64; 6];

fn config(tuning: Tuning) -> Config {
    Config { tuning, ..Config::new(Pages::Small, None) }
}

fn addresses<T>(pool: &Pool<T>, count: usize) -> Vec<usize> {
    (0..count).map(|_| pool.alloc().unwrap().addr().get()).collect()
}

/// The first slots of slabs of `slab` bytes, in the order in which the slabs were opened.
fn starts(slots: &[usize], slab: usize) -> Vec<usize> {
    let mut slabs = HashSet::new();
    slots.iter().copied().filter(|slot| slabs.insert(slot / slab)).collect()
}

#[test]
fn what_no_pool_could_take_is_an_error_that_names_value_and_remedy() {
    let tuning = Tuning::default();
    for bytes in [0, 1, 4, 24, 63, 8192, usize::MAX] {
        let error = tuning.slot_align(bytes).unwrap_err();
        assert_eq!(error, TuningError::SlotAlign { bytes });
        assert!(error.to_string().contains(&format!("to {bytes} bytes: use a power of two")));
    }
    for bytes in [0, 8 << 10, 48 << 10, 4 << 20, usize::MAX] {
        let error = tuning.slab_bytes(bytes).unwrap_err();
        assert_eq!(error, TuningError::SlabBytes { bytes });
        assert!(error.to_string().contains(&format!("have {bytes} bytes: use a power of two")));
    }
    let two = HUGE_PAGE;
    for (first, largest) in
        [(0, two), (two, 0), (2 * two, two), (two + 1, 2 * two), (two, usize::MAX)]
    {
        let error = tuning.regions(first, largest).unwrap_err();
        assert_eq!(error, TuningError::Regions { first, largest });
        assert!(error.to_string().contains(&format!("from {first} to {largest} bytes: use")));
    }
    assert_eq!(tuning.slot_align(8).unwrap().regions(two, 32 * two).unwrap(), tuning);
}

#[test]
fn the_default_crosses_lines_and_aligned_slots_do_not() {
    let crossing = |slots: &[usize]| slots.iter().filter(|slot| *slot % 64 > 16).count();
    let pool = Pool::<Node>::new("node", &config(Tuning::default()));
    let slots = addresses(&pool, 10_000);
    assert!((4_900..5_100).contains(&crossing(&slots)), "{}", crossing(&slots));
    assert_eq!(pool.stats().live_bytes, 10_000 * 48);
    for align in [16, 32, 64, 128, 4096] {
        let config = config(Tuning::default().slot_align(align).unwrap());
        let pool = Pool::<Node>::new("node", &config);
        let slots = addresses(&pool, 10_000);
        let stride = 48usize.next_multiple_of(align);
        assert!(slots.iter().all(|slot| slot % align == 0));
        assert_eq!(slots[1] - slots[0], stride);
        assert_eq!(pool.stats().live_bytes, 10_000 * stride, "what it costs is counted");
        assert!(config.budget.held() >= 10_000 * stride);
        if align >= 64 {
            assert_eq!(crossing(&slots), 0);
        }
    }
}

#[test]
fn a_types_own_alignment_stays() {
    #[repr(align(128))]
    struct Padded(#[allow(dead_code)] u64);
    let pool = Pool::<Padded>::new("padded", &config(Tuning::default().slot_align(16).unwrap()));
    assert!(addresses(&pool, 2000).iter().all(|slot| slot % 128 == 0));
    assert_eq!(pool.stats().live_bytes, 2000 * 128);
}

#[test]
fn objects_of_all_sizes_are_aligned_and_counted_too() {
    for align in [16, 64, 4096] {
        let config = config(Tuning::default().slot_align(align).unwrap());
        let pool = BytesPool::new("bytes", &config);
        let (mut objects, mut expected) = (Vec::new(), 0);
        for size in [1, 16, 17, 24, 64, 65, 100, 512, 520, 4000, 4096, 5000, 300_000] {
            for _ in 0..50 {
                let object = pool.alloc(size).unwrap();
                assert_eq!(object.addr().get() % align, 0, "{size} aligned to {align}");
                // SAFETY: the object has `size` bytes, and this thread alone uses it.
                unsafe { object.write_bytes(size as u8, size) };
                objects.push((object, size));
            }
            expected += 50 * size.next_multiple_of(align);
        }
        let stats = pool.stats();
        assert!(
            stats.live_bytes >= expected && stats.live_bytes <= expected + expected / 8 + (1 << 18)
        );
        for (object, size) in objects {
            // SAFETY: written above.
            let content = unsafe { std::slice::from_raw_parts(object.as_ptr(), size) };
            assert!(content.iter().all(|&byte| byte == size as u8));
            // SAFETY: allocated above, and no longer used.
            unsafe { pool.free(object, size) };
        }
        assert_eq!(pool.stats().live_bytes, 0);
        drop(pool);
        assert_eq!(config.budget.held(), 0);
    }
}

#[test]
fn slabs_have_the_size_asked_for_within_8_to_4096_slots() {
    let slab_of = |tuning: Tuning, align| {
        let config = config(tuning.slot_align(align).unwrap());
        let pool = Pool::<[u64; 2]>::new("pair", &config);
        let slots = addresses(&pool, 40_000);
        // Once the thread has its caches, the budget grows by whole slabs.
        let mut held = HashSet::new();
        for _ in 0..40_000 {
            held.insert(config.budget.held());
            pool.alloc().unwrap();
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_unstable();
        let step = held.windows(2).map(|w| w[1] - w[0]).min().unwrap();
        assert!(slots.iter().all(|slot| slot % align == 0));
        step
    };
    let sized = |bytes| Tuning::default().slab_bytes(bytes).unwrap();
    assert_eq!(slab_of(Tuning::default(), 8), 64 << 10);
    assert_eq!(slab_of(sized(16 << 10), 8), 16 << 10);
    assert_eq!(slab_of(sized(32 << 10), 8), 32 << 10);
    assert_eq!(slab_of(sized(2 << 20), 8), 64 << 10, "4096 slots of 16 bytes");
    assert_eq!(slab_of(sized(2 << 20), 64), 256 << 10, "4096 slots of 64 bytes");
    assert_eq!(slab_of(sized(16 << 10), 4096), 32 << 10, "8 slots of 4096 bytes");
}

/// Frees and reallocates objects through the bitmaps of slabs of every size, with every alignment,
/// coloured or not. No slot is lost or returned twice, and the budget does not change.
#[test]
fn freed_slots_come_back_in_slabs_of_every_shape() {
    for slab in [16 << 10, 32 << 10, 256 << 10, 2 << 20] {
        for align in [8, 64, 4096] {
            for colouring in [false, true] {
                let tuning = Tuning::default().slab_bytes(slab).unwrap();
                let tuning = tuning.slot_align(align).unwrap().colouring(colouring);
                pool_comes_back::<[u64; 2]>(tuning);
                pool_comes_back::<[u64; 3]>(tuning);
                pool_comes_back::<[u64; 6]>(tuning);
                pool_comes_back::<[u64; 40]>(tuning);
                pool_comes_back::<[u64; 1024]>(tuning);
                bytes_come_back(tuning);
            }
        }
    }
}

fn pool_comes_back<T>(tuning: Tuning) {
    const BYTES: usize = 3 << 20;
    let config = config(tuning);
    let pool = Pool::<T>::new("object", &config);
    let mut held = 0;
    let mut first = HashSet::new();
    for round in 0..3 {
        let mut slots = Vec::new();
        while slots.len() * size_of::<T>() < BYTES && slots.len() < 20_000 {
            let slot = pool.alloc().unwrap();
            // SAFETY: a fresh slot of at least two words.
            unsafe { slot.cast::<usize>().write(slot.addr().get()) };
            slots.push(slot);
        }
        let distinct: HashSet<_> = slots.iter().map(|slot| slot.addr()).collect();
        assert_eq!(distinct.len(), slots.len());
        match round {
            0 => first = distinct,
            _ => assert!(distinct.difference(&first).count() <= slots.len() / 4),
        }
        if round == 1 {
            held = config.budget.held();
        }
        for slot in slots {
            // SAFETY: written and allocated above.
            unsafe {
                assert_eq!(slot.cast::<usize>().read(), slot.addr().get());
                pool.free(slot);
            }
        }
    }
    assert_eq!(pool.stats().live_slots, 0);
    assert_eq!(config.budget.held(), held, "{tuning:?}");
    drop(pool);
    assert_eq!(config.budget.held(), 0);
}

fn bytes_come_back(tuning: Tuning) {
    let config = config(tuning);
    let pool = BytesPool::new("bytes", &config);
    let size = |at: usize| 8 + at * 31 % if at.is_multiple_of(16) { 4088 } else { 300 };
    let mut held = 0;
    for round in 0..3 {
        let objects: Vec<_> = (0..5000).map(|at| pool.alloc(size(at)).unwrap()).collect();
        for (at, object) in objects.iter().enumerate() {
            // SAFETY: the object has `size(at)` bytes, and this thread alone uses it.
            unsafe { object.write_bytes(at as u8, size(at)) };
        }
        if round == 1 {
            held = config.budget.held();
        }
        for (at, object) in objects.into_iter().enumerate() {
            // SAFETY: written and allocated above.
            unsafe {
                let content = std::slice::from_raw_parts(object.as_ptr(), size(at));
                assert!(content.iter().all(|&byte| byte == at as u8), "{tuning:?}");
                pool.free(object, size(at));
            }
        }
    }
    assert_eq!(pool.stats().live_slots, 0);
    assert_eq!(config.budget.held(), held, "{tuning:?}");
    drop(pool);
    assert_eq!(config.budget.held(), 0);
}

/// Counts the slots by the set of a 64-set cache into which their first line falls: the line that a
/// search reads of a large node.
fn sets(slots: &[usize]) -> HashMap<usize, usize> {
    let mut sets = HashMap::new();
    for slot in slots {
        *sets.entry(slot / 64 % 64).or_default() += 1;
    }
    sets
}

#[test]
fn colouring_spreads_the_first_lines_of_large_slots_over_all_sets() {
    type Large = [u64; 256]; // 2 KiB: a node with 256 children
    const COUNT: usize = 64 * 31;
    let plain = addresses(&Pool::<Large>::new("node", &config(Tuning::default())), COUNT);
    let plain = sets(&plain);
    // The slots of the first slab begin behind the header, at other lines than those of all other
    // slabs.
    assert!(plain.values().filter(|&&count| count > 40).count() <= 4, "{plain:?}");
    let config = config(Tuning::default().colouring(true));
    let pool = Pool::<Large>::new("node", &config);
    let slots = addresses(&pool, COUNT);
    let spread = sets(&slots);
    assert_eq!(spread.len(), 64);
    // Each set has about 31; the slabs behind headers add 16 to some of them.
    assert!(spread.values().all(|&count| (15..=64).contains(&count)), "{spread:?}");
    // Each slab begins one line further in than the one before, up to 64 lines.
    let slab = 64 << 10;
    let starts = starts(&slots, slab);
    let behind_header = |start: usize| (start / slab).is_multiple_of(HUGE_PAGE / slab);
    for pair in starts.windows(2).filter(|pair| !behind_header(pair[0]) && !behind_header(pair[1]))
    {
        let [before, after] = [pair[0], pair[1]].map(|start| start % slab / 64);
        assert!(before < 64 && after == (before + 1) % 64, "{before} and {after}");
    }
    // The slabs keep their size. Many therefore lose one of their 32 slots, and those behind
    // headers lose more.
    let slabs = starts.len();
    assert!(slabs <= COUNT.div_ceil(31) + 4, "{slabs} slabs");
    assert!(config.budget.held() >= slabs * slab);
}

/// The roots of many small indexes.
#[test]
fn colouring_spreads_the_first_slots_of_many_pools() {
    let roots = |tuning| {
        let config = config(tuning);
        let pools: Vec<_> = (0..64).map(|_| Pool::<Node>::new("node", &config)).collect();
        let roots: Vec<_> = pools.iter().map(|pool| addresses(pool, 1)[0]).collect();
        (sets(&roots), roots)
    };
    assert_eq!(roots(Tuning::default()).0.len(), 1, "all in the same set");
    let (spread, roots) = roots(Tuning::default().colouring(true));
    let numbers: HashSet<_> = roots.iter().map(|root| root / HUGE_PAGE % 64).collect();
    assert_eq!(spread.len(), numbers.len(), "as the numbers of their granules");
    assert!(spread.len() > 8, "{}", spread.len());
}

/// In a first slab of 16 KiB, the header leaves room for one slot of 4 KiB and for no colouring.
#[test]
fn colouring_leaves_a_slot_where_there_is_room_for_one() {
    let config = config(Tuning::default().colouring(true));
    let pools: Vec<_> = (0..32).map(|_| BytesPool::new("bytes", &config)).collect();
    for pool in &pools {
        let objects: Vec<_> = (0..10).map(|_| pool.alloc(4096).unwrap()).collect();
        for (number, object) in objects.iter().enumerate() {
            // SAFETY: the object has 4096 bytes, and this thread alone uses it.
            unsafe { object.write_bytes(number as u8, 4096) };
        }
        for (number, object) in objects.iter().enumerate() {
            // SAFETY: written above.
            let content = unsafe { std::slice::from_raw_parts(object.as_ptr(), 4096) };
            assert!(
                content.iter().all(|&byte| byte == number as u8),
                "slot {number} was given twice"
            );
        }
        assert_eq!(objects[0].addr().get() % HUGE_PAGE, 12 << 10);
    }
}

#[test]
fn regions_grow_as_asked() {
    let regions = |tuning| {
        let config = config(tuning);
        let pool = Pool::<[u64; 1024]>::new("large", &config);
        // Slots of 8 KiB: 256 per granule, less the header.
        let slots = addresses(&pool, 20 * 255);
        let stats = pool.stats();
        let sizes: Vec<_> = stats.regions.iter().map(|region| region.bytes / HUGE_PAGE).collect();
        // The budget contains only used slabs and the thread's caches.
        let used = slots.len() * 8192;
        let held = config.budget.held();
        assert!((used..used + used / 16 + (1 << 18)).contains(&held), "{held} held of {used}");
        drop(pool);
        assert_eq!(config.budget.held(), 0);
        sizes
    };
    let tuning = Tuning::default();
    assert_eq!(regions(tuning), [1, 1, 2, 4, 8, 16]);
    assert_eq!(
        regions(tuning.regions(2 << 20, 4 << 20).unwrap()),
        [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    );
    assert_eq!(regions(tuning.regions(8 << 20, 8 << 20).unwrap()), [4; 5]);
    assert_eq!(regions(tuning.regions(64 << 20, 1 << 30).unwrap()), [32]);
}

//! Pools list exactly the slots that are in use.

use silvics_layout::{Census, Described, SetHash, Sets, describe};
use silvics_pool::{AllocError, BytesPool, Config, Pages, Pool, Tuning};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Barrier, Mutex};

type Node = [u64; 6];

/// The addresses of live objects, with the requested bytes.
type Model = BTreeMap<usize, usize>;

/// Either kind of pool, for objects of any size or of one size.
trait Objects: Sync {
    fn take(&self, bytes: usize) -> NonNull<u8>;
    /// # Safety
    /// See the pool's `free`.
    unsafe fn give(&self, object: NonNull<u8>, bytes: usize);
}

impl Objects for Pool<Node> {
    fn take(&self, _: usize) -> NonNull<u8> {
        self.alloc().unwrap().cast()
    }
    unsafe fn give(&self, object: NonNull<u8>, _: usize) {
        // SAFETY: the contract of `give` is that of the pool's `free`.
        unsafe { self.free(object.cast()) };
    }
}

impl Objects for BytesPool {
    fn take(&self, bytes: usize) -> NonNull<u8> {
        self.alloc(bytes).unwrap()
    }
    unsafe fn give(&self, object: NonNull<u8>, bytes: usize) {
        // SAFETY: the contract of `give` is that of the pool's `free`.
        unsafe { self.free(object, bytes) };
    }
}

struct Sent(NonNull<u8>, usize);
// SAFETY: only the receiver uses the object.
unsafe impl Send for Sent {}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A random size. Some four in five have a slot of few words, and one in 40 has no slot at all.
fn size(random: &mut Random) -> usize {
    match random.below(40) {
        0 => 4097 + random.below(20_000),
        1..8 => 1 + random.below(4096),
        _ => 1 + random.below(100),
    }
}

/// Three threads allocate, keep some objects, free their own and those that others left to them,
/// and end. Bursts of frees fill and empty their magazines. The objects that remain go into
/// `model`.
fn churn(pool: &impl Objects, model: &mut Model, seed: u64) {
    let left: Mutex<Vec<Sent>> = Mutex::default();
    left.lock().unwrap().extend(std::mem::take(model).into_iter().map(|(address, bytes)| {
        Sent(NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap(), bytes)
    }));
    let together = Barrier::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (left, together) = (&left, &together);
            scope.spawn(move || {
                let mut random = Random(seed * 3 + thread);
                let mut mine = Vec::new();
                together.wait();
                for _ in 0..12 {
                    for _ in 0..random.below(1500) {
                        let bytes = size(&mut random);
                        mine.push(Sent(pool.take(bytes), bytes));
                    }
                    for _ in 0..random.below(1500).min(mine.len()) {
                        let Sent(object, bytes) = mine.swap_remove(random.below(mine.len()));
                        // SAFETY: allocated with these bytes, and owned by this thread.
                        unsafe { pool.give(object, bytes) };
                    }
                    let mut left = left.lock().unwrap();
                    let swapped = random.below(300);
                    let keep = mine.len().saturating_sub(swapped);
                    let mut sent = mine.split_off(keep);
                    let take = left.len().saturating_sub(swapped);
                    mine.extend(left.drain(take..));
                    left.append(&mut sent);
                }
                left.lock().unwrap().extend(mine);
            });
        }
    });
    for Sent(object, bytes) in left.into_inner().unwrap() {
        let twice = model.insert(object.as_ptr().expose_provenance(), bytes);
        assert_eq!(twice, None, "handed out twice");
    }
}

/// Frees more objects at once than a magazine holds, so that slots are marked free. One object in
/// three stays.
fn burst(pool: &impl Objects, model: &mut Model, bytes: usize) {
    let objects: Vec<_> = (0..12_000).map(|_| pool.take(bytes)).collect();
    for (at, object) in objects.into_iter().enumerate() {
        if at % 3 == 0 {
            model.insert(object.as_ptr().expose_provenance(), bytes);
        } else {
            // SAFETY: allocated above with these bytes, and no longer used.
            unsafe { pool.give(object, bytes) };
        }
    }
}

fn tunings() -> Vec<Tuning> {
    let plain = Tuning::default();
    vec![
        plain,
        plain.slot_align(64).unwrap(),
        plain.slot_align(128).unwrap().colouring(true),
        plain.colouring(true).slab_bytes(16 << 10).unwrap(),
        plain.slab_bytes(2 << 20).unwrap().regions(4 << 20, 4 << 20).unwrap(),
    ]
}

fn config(tuning: Tuning) -> Config {
    Config { tuning, ..Config::new(Pages::Small, None) }
}

fn addresses(model: &Model) -> Vec<usize> {
    model.keys().copied().collect()
}

#[test]
fn a_pool_shows_what_is_handed_out_and_nothing_else() {
    for (number, tuning) in tunings().into_iter().enumerate() {
        let mut pool = Pool::<Node>::new("node", &config(tuning));
        assert_eq!(pool.live().count(), 0, "nothing is mapped");
        let mut model = Model::new();
        for round in 0..4 {
            churn(&pool, &mut model, number as u64 * 10 + round);
            burst(&pool, &mut model, size_of::<Node>());
            let mut live: Vec<_> = pool.live().map(|slot| slot.addr().get()).collect();
            live.sort_unstable();
            assert!(live == addresses(&model), "round {round} with {tuning:?}");
            let (stats, bytes) = (pool.stats(), 48usize.next_multiple_of(tuning.slot_alignment()));
            assert_eq!((live.len(), live.len() * bytes), (stats.live_slots, stats.live_bytes));
        }
        for &slot in model.keys() {
            let slot = NonNull::new(std::ptr::with_exposed_provenance_mut(slot)).unwrap();
            // SAFETY: the slot stayed live until here, and is no longer used.
            unsafe { pool.free(slot) };
        }
        assert_eq!(pool.live().count(), 0);
    }
}

#[test]
fn a_pool_of_all_sizes_shows_each_object_with_the_bytes_it_has() {
    for (number, tuning) in tunings().into_iter().enumerate() {
        let mut pool = BytesPool::new("bytes", &config(tuning));
        let mut model = Model::new();
        for round in 0..3 {
            churn(&pool, &mut model, 100 + number as u64 * 10 + round);
            for bytes in [16, 24, 104] {
                burst(&pool, &mut model, bytes);
            }
            // The number of large objects that threads leave depends on their timing; these always
            // exist.
            for bytes in [4097, 6000, 8193, 20_000] {
                model.insert(pool.alloc(bytes).unwrap().as_ptr().expose_provenance(), bytes);
            }
            let live: Model = pool.live().map(|(at, bytes)| (at.addr().get(), bytes)).collect();
            assert!(addresses(&live) == addresses(&model), "round {round} with {tuning:?}");
            let stats = pool.stats();
            assert_eq!((pool.live().count(), live.len()), (stats.live_slots, stats.live_slots));
            let (align, largest) = (tuning.slot_alignment(), pool.largest_slot());
            for (asked, bytes) in model.values().zip(live.values()) {
                let least = asked.next_multiple_of(align);
                if *asked > largest {
                    assert_eq!(bytes, asked);
                } else {
                    assert!((least..=(least + asked / 8).max(16)).contains(bytes), "{asked}");
                }
            }
            let large = model.values().filter(|&&bytes| bytes > largest).count();
            let headers = large * 24usize.next_multiple_of(align);
            assert_eq!(live.values().sum::<usize>() + headers, stats.live_bytes);
        }
    }
}

/// Listing live objects changes nothing: later allocations return the same slots, and no slot is
/// lost or returned twice.
#[test]
fn a_pool_goes_on_as_if_nobody_had_looked() {
    let next = |look: bool| {
        let config = config(Tuning::default());
        let mut pool = Pool::<Node>::new("node", &config);
        let mut slots: Vec<_> = (0..10_000).map(|_| pool.alloc().unwrap()).collect();
        for slot in slots.drain(100..) {
            // SAFETY: allocated above, and no longer used.
            unsafe { pool.free(slot) };
        }
        let first = slots[0].addr().get();
        if look {
            let mut live = pool.live();
            assert_eq!(live.next().map(|slot| slot.addr().get()), Some(first));
            std::mem::forget(live); // an iterator abandoned half-way
        }
        let held = config.budget.held();
        let next: Vec<_> =
            (0..9900).map(|_| pool.alloc().unwrap().addr().get().wrapping_sub(first)).collect();
        assert_eq!(config.budget.held(), held, "slots are lost");
        assert_eq!(pool.live().count(), 10_000);
        next
    };
    assert_eq!(next(true), next(false));
}

/// A thread allocates and frees while it ends, when it no longer has a magazine.
#[test]
fn what_orphans_allocate_and_free_counts() {
    type Shared = std::sync::Arc<(Pool<Node>, Mutex<Model>)>;
    struct Late(Option<Shared>);
    impl Drop for Late {
        fn drop(&mut self) {
            let Some(shared) = self.0.take() else { return };
            let (pool, model) = &*shared;
            let mut slots: Vec<_> = (0..500).map(|_| pool.alloc().unwrap()).collect();
            for slot in slots.drain(..300) {
                // SAFETY: allocated just now.
                unsafe { pool.free(slot) };
            }
            model.lock().unwrap().extend(slots.iter().map(|slot| (slot.addr().get(), 48)));
        }
    }
    std::thread_local! {
        static LATE: std::cell::RefCell<Late> = const { std::cell::RefCell::new(Late(None)) };
    }
    let pool = Pool::<Node>::new("node", &config(Tuning::default()));
    let mut shared: Shared = std::sync::Arc::new((pool, Mutex::default()));
    for _ in 0..3 {
        let shared = std::sync::Arc::clone(&shared);
        std::thread::spawn(move || {
            // Registered before the thread's index, so destroyed after it.
            LATE.with(|late| late.replace(Late(Some(std::sync::Arc::clone(&shared)))));
            let slot = shared.0.alloc().unwrap();
            shared.1.lock().unwrap().insert(slot.addr().get(), 48);
        })
        .join()
        .unwrap();
    }
    let (pool, model) = std::sync::Arc::get_mut(&mut shared).expect("the threads are gone");
    let mut live: Vec<_> = pool.live().map(|slot| slot.addr().get()).collect();
    live.sort_unstable();
    assert_eq!(live, addresses(model.get_mut().unwrap()));
    assert_eq!(live.len(), 3 * 201);
}

/// A user's own type in a pool: the census reports where its objects lie, by the fields that
/// searches read.
#[test]
fn the_facts_of_a_users_own_type_follow_from_its_pool() -> Result<(), AllocError> {
    #[repr(C)]
    struct Own {
        key: u64,
        next: [usize; 1],
        value: [u64; 7],
    }
    describe!(Own, "own", search: [key], links: [next; 1], found: [key, value]);
    let sets = Sets { line: 64, sets: 64, hash: SetHash::Modulo };
    let facts = |align| {
        let mut pool =
            Pool::<Own>::new("own", &config(Tuning::default().slot_align(align).unwrap()));
        for _ in 0..800 {
            pool.alloc()?;
        }
        let mut census = Census::default();
        for own in pool.live() {
            census.add(Own::layout(), own.addr().get());
        }
        Ok(census.facts("own", &sets).expect("there are some"))
    };
    // 72 bytes: one object in eight has key and link in two lines.
    let (plain, aligned) = (facts(8)?, facts(64)?);
    assert_eq!((plain.objects, plain.hot_bytes), (800, 16.0));
    assert!((plain.straddling - 0.125).abs() < 0.01, "{}", plain.straddling);
    assert!(plain.strides[&72] > 790);
    assert_eq!((aligned.straddling, aligned.offsets.len()), (0.0, 1));
    assert!(aligned.strides[&128] > 790);
    Ok(())
}

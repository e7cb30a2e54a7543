//! Explores two threads that allocate at once: `.ci/step loom`.

use super::*;
use loom::thread;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::lock::{RawLock, SpinLock};
use std::sync::Arc;

/// Explores executions with at most two preemptions per thread.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(test);
}

const OBJECT: Layout = Layout::new::<[u64; 5]>();

/// The addresses of the objects of two threads. Each object is written, so that nobody else may
/// have it.
fn two_threads(arena: &Arc<ConcurrentArena>, each: usize) -> Vec<usize> {
    let work = move |arena: &ConcurrentArena| {
        let one = |_| arena.alloc(OBJECT).unwrap().addr().get();
        (0..each).map(one).collect::<Vec<_>>()
    };
    let other = {
        let arena = Arc::clone(arena);
        thread::spawn(move || work(&arena))
    };
    let mut objects = work(arena);
    objects.extend(other.join().unwrap());
    objects
}

fn assert_disjoint(mut objects: Vec<usize>) {
    objects.sort_unstable();
    assert!(objects.windows(2).all(|two| two[0] + OBJECT.size() <= two[1]), "objects overlap");
}

#[test]
fn objects_of_two_threads_do_not_overlap() {
    explore(|| {
        let config = Config::new(Pages::Small, None);
        let arena = Arc::new(ConcurrentArena::new(&config, 4 << 10));
        assert_disjoint(two_threads(&arena, 2));
        let stats = arena.stats();
        assert_eq!((stats.allocations, arena.used()), (4, 4 * OBJECT.size()));
        assert_eq!(stats.shards > 0, stats.contended > 0);
        assert_eq!(arena.bytes(), config.budget.held());
        drop(arena);
        assert_eq!(config.budget.held(), 0);
    });
}

#[test]
fn a_limit_refuses_what_it_must_and_no_more() {
    explore(|| {
        // One page has room for the shards, or for some objects beside them.
        let config = Config::new(Pages::Small, Some(4 << 10));
        let arena = Arc::new(ConcurrentArena::new(&config, 4 << 10));
        let fill = arena.alloc(Layout::array::<u8>((4 << 10) - 2 * OBJECT.size()).unwrap());
        assert!(fill.is_ok());
        assert_disjoint(two_threads(&arena, 1));
        assert!(arena.alloc(OBJECT).is_err());
        assert_eq!(arena.bytes(), 4 << 10);
    });
}

/// A shard whose lock is `L`, of which two threads cut off objects. Each waits for the lock.
fn shared_shard<L: RawLock + 'static>() {
    explore(|| {
        let memory = Box::leak(Box::new([0_u64; 16]));
        let start = std::ptr::from_mut(memory);
        let shard = Arc::new(Locked::<Bump, L>::new(Bump::new(start.cast(), size_of_val(memory))));
        let cut = |shard: &Locked<Bump, L>| shard.with(|bump| bump.alloc(OBJECT).unwrap().addr());
        let other = {
            let shard = Arc::clone(&shard);
            thread::spawn(move || cut(&shard))
        };
        let one = cut(&shard);
        assert_disjoint(vec![one.get(), other.join().unwrap().get()]);
        // SAFETY: leaked above, and both threads have ended.
        drop(unsafe { Box::from_raw(start) });
    });
}

#[test]
fn the_lock_of_a_shard_hands_its_block_over() {
    shared_shard::<SpinLock>();
}

/// A twin that unlocks without publishing what its owner wrote.
#[derive(Default)]
struct Unpublished(silvics_sync::atomic::AtomicBool);

// SAFETY: none: loom must reject it.
unsafe impl RawLock for Unpublished {
    fn lock(&self) {
        while !self.try_lock() {
            thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_lock_that_publishes_nothing_is_rejected() {
    shared_shard::<Unpublished>();
}

/// A thread makes a shard and publishes it by `publish`. Another one uses it.
fn published_shard(publish: fn(&Shards, *mut Shard)) {
    struct Made(Shards, UnsafeCell<[u64; 16]>);
    // SAFETY: only addresses in the cell's content are used.
    unsafe impl Sync for Made {}
    // SAFETY: as for `Sync`.
    unsafe impl Send for Made {}
    explore(move || {
        let made = Arc::new(Made(Shards::new(), UnsafeCell::new([0; 16])));
        made.0.count.store(1, Ordering::Relaxed); // so that the weak twin fails in the shard only
        let maker = {
            let made = Arc::clone(&made);
            thread::spawn(move || {
                let start = made.1.with_mut(<*mut [u64; 16]>::cast);
                let bump = Bump::new(start, 128);
                let block = Block { bump, used_before: 0, allocations: 0, repicks: 0 };
                let shard = Box::new(CachePadded::new(Locked::new(block)));
                let shard = Box::into_raw(shard);
                publish(&made.0, shard);
                shard.addr()
            })
        };
        if let Some(shards) = made.0.get() {
            let cut = shards[0].try_with(|block| block.bump.alloc(OBJECT).is_some());
            assert!(cut.is_ok_and(|cut| cut), "nobody else has the shard");
        }
        maker.join().unwrap();
        // SAFETY: boxed by the maker, which has ended.
        drop(unsafe { Box::from_raw(made.0.shards.load(Ordering::Acquire)) });
    });
}

#[test]
fn a_thread_that_sees_a_shard_sees_it_initialised() {
    // SAFETY: the maker has initialised it, and it stays until both threads have ended.
    published_shard(|shards, shard| unsafe { shards.publish(shard, 1) });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_shard_that_is_published_too_weakly_is_rejected() {
    published_shard(|shards, shard| shards.shards.store(shard, Ordering::Relaxed));
}

//! Scans that pin nothing: beside a collector that runs, and in children of `fork`.
#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

use silvics::{BlockTree, Domain, Map};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

type Strings = Map<Vec<u8>, Box<[u8]>, BlockTree<[u8]>>;

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

/// Adds one to its counter when it is dropped.
struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_scan_holds_back_no_memory() {
    let (domain, dropped) = (Domain::new(), Arc::new(AtomicUsize::new(0)));
    let counting = || Map::<u64, Counts>::builder().domain(domain.clone()).build().unwrap();
    let scanned: Strings = Map::builder().domain(domain.clone()).build().unwrap();
    scanned.extend((0..1000).map(|number| (key(number), Box::from(key(number)))));
    let removes_one = |map: &Map<u64, Counts>| {
        map.insert(1, Counts(Arc::clone(&dropped)));
        drop(map.remove(1));
        map.flush();
        dropped.load(Ordering::SeqCst)
    };
    let other = counting();
    // SAFETY: nothing is written to this map any more.
    let quiet = unsafe { scanned.unprotected() };
    let mut entries = quiet.iter();
    assert!(entries.next().is_some());
    assert_eq!(removes_one(&other), 1);
    let pinned = scanned.pin();
    assert_eq!(removes_one(&other), 1, "a view holds it back");
    assert_eq!(entries.count(), 999);
    drop(pinned);
}

/// The sum of the bytes of all keys and values. Allocates nothing.
fn sum(map: &Strings) -> u64 {
    // SAFETY: only the calling thread writes to the map. If it runs in a child, this thread has
    // forked it.
    let quiet = unsafe { map.unprotected() };
    let bytes = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    quiet.iter().map(|(key, value)| bytes(key) + bytes(&value)).sum()
}

/// Forks, has the child call `work`, and returns its status. The child is killed after 3 seconds.
fn in_child(work: impl FnOnce() -> bool) -> libc::c_int {
    // SAFETY: the child calls `work` and leaves by `_exit`. The callers' `work` takes no lock but
    // those that it is tested with, and allocates nothing.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is involved.
        unsafe {
            libc::alarm(3);
            libc::_exit(i32::from(!work()));
        }
    }
    assert!(child > 0, "fork failed");
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Memory of another map waits to be freed, by a call that takes a lock. A thread has the lock when
/// the process is forked, so nobody releases it in the child. A child that pins waits for it.
#[test]
fn a_child_runs_no_deferred_call() {
    const SCANS: usize = 1000; // the collector runs calls in some of as many pins
    let (domain, lock) = (Domain::new(), Arc::new(Mutex::new(())));
    let map: Strings = Map::builder().domain(domain.clone()).build().unwrap();
    map.extend((0..10).map(|number| (key(number), Box::from(key(number)))));
    let (locked, is_locked) = mpsc::channel();
    let (finish, finishes) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let theirs = Arc::clone(&lock);
        scope.spawn(move || {
            let held = theirs.lock();
            locked.send(()).unwrap();
            finishes.recv().unwrap();
            drop(held);
        });
        is_locked.recv().unwrap();
        let deferred = Arc::clone(&lock);
        domain.pin().defer(move || drop(deferred.lock()));
        let scans = in_child(|| (0..SCANS).all(|_| sum(&map) > 0));
        let pins = in_child(|| (0..SCANS).all(|_| map.pin().iter().next().is_some()));
        finish.send(()).unwrap();
        assert_eq!(scans, 0);
        assert!(libc::WIFSIGNALED(pins) && libc::WTERMSIG(pins) == libc::SIGALRM);
    });
}

/// Each round forks while two threads pin, free memory and make domains.
#[test]
fn a_child_reads_what_its_parent_wrote() {
    const ROUNDS: usize = 300;
    let (domain, stops) = (Domain::new(), AtomicBool::new(false));
    let map: Strings = Map::builder().domain(domain.clone()).build().unwrap();
    map.extend((0..5000).map(|number| (key(number), Box::from(key(number)))));
    let write = |round: usize| {
        map.insert(key(round * 7), Box::from(&b"replaced"[..]));
        map.remove(&key(round * 13)[..]);
    };
    let busy = || {
        let other: Strings = Map::builder().domain(domain.clone()).build().unwrap();
        for number in 0.. {
            if stops.load(Ordering::Relaxed) {
                return;
            }
            other.insert(key(number % 100), Box::from(key(number)));
            other.remove(&key(number % 50)[..]);
            let _ = map.pin().range(&key(number % 5000)[..]..).take(10).count();
            drop(Domain::new().pin());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(busy);
        scope.spawn(busy);
        let status = (0..ROUNDS).find_map(|round| {
            write(round);
            let expected = sum(&map);
            let status = in_child(|| sum(&map) == expected);
            (status != 0).then_some((round, status))
        });
        stops.store(true, Ordering::Relaxed);
        assert_eq!(status, None, "the child of this round read other entries, or waited");
    });
}

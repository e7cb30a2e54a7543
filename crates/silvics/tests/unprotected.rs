//! Scans that pin nothing: beside a collector that runs, and in children of `fork`.
#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

use silvics::{BlockTree, Domain, Lookup, Map, Options, OrderedScan};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

type Tree = BlockTree<[u8]>;

/// A tree of the domain with the keys from 0 to `len`, each with itself as its value.
fn numbers(domain: &Domain, len: usize) -> Tree {
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
    let tree = Tree::with_options(&options).unwrap();
    for number in 0..len {
        tree.pin().insert(&key(number), number as u64).unwrap();
    }
    tree
}

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
    let scanned = numbers(&domain, 1000);
    let other = Map::<u64, Counts>::builder().domain(domain.clone()).build().unwrap();
    let removes_one = || {
        other.insert(1, Counts(Arc::clone(&dropped)));
        drop(other.remove(1));
        other.flush();
        dropped.load(Ordering::SeqCst)
    };
    // SAFETY: nothing is written to this tree any more.
    let guard = unsafe { domain.unprotected() };
    let mut entries = scanned.range(.., &guard);
    assert!(entries.next().is_some());
    assert_eq!(removes_one(), 1);
    let pinned = domain.pin();
    assert_eq!(removes_one(), 1, "a pin holds it back");
    assert_eq!(entries.count(), 999);
    drop(pinned);
}

/// The sum of all values. Allocates nothing.
fn sum(tree: &Tree) -> u64 {
    // SAFETY: only the calling thread writes to the tree. If it runs in a child, this thread has
    // forked it.
    let guard = unsafe { tree.domain().unprotected() };
    tree.range(.., &guard).map(|(_, value)| value).sum()
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
    let tree = numbers(&domain, 10);
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
        let scans = in_child(|| (0..SCANS).all(|_| sum(&tree) == 45));
        let pins = in_child(|| (0..SCANS).all(|_| tree.pin().range(..).count() == 10));
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
    let tree = numbers(&domain, 5000);
    let write = |round: usize| {
        tree.pin().insert(&key(round * 7), 1).unwrap();
        tree.pin().remove(&key(round * 13)).unwrap();
    };
    let busy = || {
        let other = Map::<u64, Box<[u8]>>::builder().domain(domain.clone()).build().unwrap();
        for number in 0.. {
            if stops.load(Ordering::Relaxed) {
                return;
            }
            other.insert(number % 100, Box::from(&b"value"[..]));
            other.remove(number % 50);
            let from = key(number as usize % 5000);
            assert!(tree.pin().range(&from[..]..).take(10).count() <= 10);
            drop(Domain::new().pin());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(busy);
        scope.spawn(busy);
        let status = (0..ROUNDS).find_map(|round| {
            write(round);
            let expected = sum(&tree);
            let status = in_child(|| sum(&tree) == expected);
            (status != 0).then_some((round, status))
        });
        stops.store(true, Ordering::Relaxed);
        assert_eq!(status, None, "the child of this round read other entries, or waited");
    });
}

//! Tests of trees with first objects.

use crate::encoding::IndexKey;
use crate::frame::Algorithm;
use crate::memory::Memory;
use crate::{
    ArtTree, BlockTree, Check, Create, Domain, Index, Lookup, Options, OrderedIndex, WordTree,
};
use silvics_pool::PoolStats;
use std::sync::{Arc, Barrier};

/// A tree whose pools are made late.
trait MadeLate: Create + OrderedIndex + Check {
    fn memory(&self) -> &dyn Memory;
}

impl<A: Algorithm> MadeLate for Index<A> {
    fn memory(&self) -> &dyn Memory {
        self.0.memory()
    }
}

/// The numbers of live objects, by kind.
fn live<I: Lookup>(tree: &I) -> Vec<(&'static str, usize, usize)> {
    let of = |of: PoolStats| (of.kind, of.live_slots, of.live_bytes);
    tree.pool_stats().into_iter().map(of).collect()
}

/// Threads insert and remove keys of a tree until it has pools, and beyond.
fn threads_lose_none<I: MadeLate>(key: impl Fn(u64) -> <I::Key as IndexKey>::Owned + Sync) {
    const THREADS: u64 = 4;
    for round in 0..100 {
        let budget = Arc::new(silvics_pool::Budget::new(None));
        let domain = Some(Domain::new()); // no other test pins it
        let options = Options { budget: Some(budget), domain, ..Options::default() };
        let mut tree = I::with_options(&options).unwrap();
        let start = Barrier::new(THREADS as usize);
        let work = |thread| {
            start.wait();
            let guard = tree.domain().pin();
            for n in 0..330 + round % 20 {
                let key = key(n * 7 % 300 * THREADS + thread);
                let key = || I::Key::borrow(&key);
                if tree.insert(key(), n, &guard).unwrap().is_some() {
                    tree.remove(key(), &guard).unwrap();
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
            for thread in threads {
                thread.join().unwrap(); // else it may be pinned while it ends
            }
        });
        assert!(tree.memory().has_pools(false));
        let entries = tree.check().unwrap();
        tree.settle();
        let slots = live(&tree).iter().map(|of| of.1).sum::<usize>();
        let objects = tree.reachable().unwrap().iter().map(|(_, count)| count).sum::<usize>();
        assert_eq!(slots, objects, "{entries} entries");
        drop(tree);
        assert_eq!(options.budget.unwrap().held(), 0);
    }
}

fn text(n: u64) -> Box<[u8]> {
    format!("{:03}/{}/of this thread", n / 4, n % 4).into_bytes().into()
}

#[test]
fn threads_that_outgrow_the_first_objects_together_lose_none() {
    threads_lose_none::<ArtTree<[u8]>>(text);
    threads_lose_none::<BlockTree<[u8]>>(text);
    threads_lose_none::<WordTree<u64>>(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
}

/// Each pool takes over the objects of its kind.
fn pools_have_the_first_objects<I: MadeLate>(
    kinds: usize,
    key: impl Fn(u64) -> <I::Key as IndexKey>::Owned,
) {
    let tree = I::with_options(&Options::default()).unwrap();
    for n in (0..100).take_while(|_| live(&tree).iter().filter(|of| of.1 > 0).count() < kinds) {
        let guard = tree.domain().pin();
        tree.insert(I::Key::borrow(&key(n)), n, &guard).unwrap();
        drop(guard);
        tree.domain().flush();
    }
    assert!(!tree.memory().has_pools(false));
    let before = live(&tree);
    assert_eq!(before.iter().filter(|of| of.1 > 0).count(), kinds, "{before:?}");
    assert!(tree.memory().has_pools(true));
    assert_eq!(live(&tree), before);
}

#[test]
fn each_pool_takes_over_the_objects_of_its_kind() {
    pools_have_the_first_objects::<ArtTree<u64>>(6, |n| n * n);
    pools_have_the_first_objects::<ArtTree<u128>>(6, |n| u128::from(n * n) << 60);
    pools_have_the_first_objects::<ArtTree<[u8]>>(3, |n| n.to_string().into_bytes().into());
    pools_have_the_first_objects::<BlockTree<[u8]>>(2, |n| vec![n as u8; 600].into());
    pools_have_the_first_objects::<WordTree<u64>>(2, |n| n);
    pools_have_the_first_objects::<WordTree<u128>>(2, u128::from);
}

fn small_without_pools<I: MadeLate<Key = u64>>(kinds: usize) {
    let tree = I::with_options(&Options::default()).unwrap();
    let guard = tree.domain().pin();
    for key in 0..40 {
        tree.insert(key, key, &guard).unwrap();
        assert!(live(&tree).iter().map(|of| of.2).sum::<usize>() < tree.bytes());
    }
    assert!(!tree.memory().has_pools(false));
    assert_eq!(tree.pool_stats().len(), kinds);
    assert!(tree.memory().has_pools(true));
    assert!((0..40).all(|key| tree.remove(key, &guard).unwrap() == Some(key)));
}

#[test]
fn a_small_tree_has_no_pools() {
    small_without_pools::<ArtTree<u64>>(11);
    small_without_pools::<WordTree<u64>>(2);
}

/// Its limit has room for some more objects, but not for the pools.
#[test]
fn a_tree_at_its_limit_goes_on_without_pools() {
    let options = Options { memory_limit: Some(10_000), ..Options::default() };
    let tree: ArtTree<[u8]> = ArtTree::with_options(&options).unwrap();
    let guard = tree.domain().pin();
    let key = |n: u64| format!("{:02}{}", n % 100, n / 100);
    let inserted = (0..).take_while(|&n| tree.insert(key(n).as_bytes(), n, &guard).is_ok());
    let inserted = inserted.count() as u64;
    assert!(!tree.memory().has_pools(false) && tree.bytes() > 9800, "{} bytes", tree.bytes());
    assert!((0..inserted).all(|n| tree.get(key(n).as_bytes(), &guard) == Some(n)));
}

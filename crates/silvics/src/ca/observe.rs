//! The shape of a tree: how many base nodes contention has made of it.

use super::Ca;
use super::build::Build;
use super::key::CaKey;
use super::route::{BaseRef, RouteRef};
use super::word::Kind;
use crate::adaptation::{Adaptation, BaseNode};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::Adapting;
use silvics_pool::Placement;
use silvics_sync::atomic::{AtomicU64, Ordering};

/// The splits and joins of a tree. Nothing but a split, a join, a division and
/// [`Adapting::adaptation`] uses them.
///
/// All accesses are Relaxed: the numbers lead to no other data.
pub(crate) struct Changes {
    splits: AtomicU64,
    joins: AtomicU64,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self { splits: AtomicU64::new(0), joins: AtomicU64::new(0) }
    }

    pub(crate) fn count_split(&self) {
        self.splits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_join(&self) {
        self.joins.fetch_add(1, Ordering::Relaxed);
    }

    /// The changes so far, of a shape without nodes.
    pub(crate) fn so_far(&self) -> Adaptation {
        let [splits, joins] = [&self.splits, &self.joins].map(|n| n.load(Ordering::Relaxed));
        Adaptation { splits, joins, ..Adaptation::default() }
    }

    /// Counts a change of the number of base nodes as joins of all, and splits.
    pub(crate) fn count_division(&self, before: usize, now: usize) {
        self.joins.fetch_add(before as u64 - 1, Ordering::Relaxed);
        self.splits.fetch_add(now as u64 - 1, Ordering::Relaxed);
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Adapting for Ca<K, P, B> {
    fn divide_for(&mut self, threads: usize) -> Result<(), AllocError> {
        if B::DIVIDED > 0 {
            self.divide_evenly(B::DIVIDED.saturating_mul(threads))?;
        }
        Ok(())
    }

    fn adaptation(&self, _guard: &Guard) -> Adaptation {
        let mut found = self.changes.so_far();
        // The subtrees that are still to be seen. The first one in key order is last.
        let mut rest = vec![(self.root.word(), 0)];
        while let Some((word, depth)) = rest.pop() {
            if word.kind() == Kind::Route {
                found.route_nodes += 1;
                // SAFETY: R2: the word was read under the guard.
                let route = unsafe { RouteRef::<K>::new(word) };
                rest.extend([true, false].map(|right| (route.child(right).word(), depth + 1)));
            } else {
                // SAFETY: R2: likewise. Every way ends at a base node.
                let base = unsafe { BaseRef::new(word) };
                found.base_nodes.push(BaseNode { statistics: base.get().statistics(), depth });
            }
        }
        found
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::super::CaTree;
    use super::super::build::{Adaptive, Coarse, Restless};
    use super::*;
    use crate::index::{Check, Options};
    use silvics_pool::{Pooled, Shared};

    type Tree<K, B, P = Pooled> = CaTree<K, P, B>;

    fn tree<K: CaKey + ?Sized, B: Build, P: Placement>() -> Tree<K, B, P> {
        Tree::with_options(&Options::default()).unwrap()
    }

    /// Checks what holds at rest, and returns the shape.
    fn at_rest<K: CaKey + ?Sized, B: Build, P: Placement>(tree: &mut Tree<K, B, P>) -> Adaptation {
        let now = tree.pin().adaptation();
        assert_eq!(now.route_nodes as u64, now.splits - now.joins);
        assert_eq!(now.base_nodes.len(), now.route_nodes + 1);
        // In any binary tree, 2^-depth over all leaves sums to 1.
        let sum: f64 = now.base_nodes.iter().map(|base| 0.5_f64.powi(base.depth as i32)).sum();
        assert_eq!(sum.to_string(), "1");
        assert!(now.deepest() <= B::LIMITS.depth);
        let most = B::LIMITS.most;
        assert!(now.base_nodes.iter().all(|base| (-most..=most).contains(&base.statistics)));
        let reachable = tree.reachable().unwrap();
        let count = |kind| reachable.iter().find(|(of, _)| *of == kind).map(|(_, count)| *count);
        assert_eq!(count("route"), Some(now.route_nodes));
        assert_eq!(count("base"), Some(now.base_nodes.len()));
        now
    }

    fn counts_changes<K: CaKey + ?Sized, P: Placement>(key: impl Fn(u64) -> K::Owned) {
        let mut tree = tree::<K, Restless, P>();
        let empty = at_rest(&mut tree);
        assert_eq!(empty, Adaptation { base_nodes: empty.base_nodes.clone(), ..<_>::default() });
        for n in 0..2000 {
            tree.pin().insert(K::borrow(&key(n)), n).unwrap();
        }
        let grown = at_rest(&mut tree);
        assert!(grown.splits > 10 && grown.joins > 10, "{grown:?}");
        for n in 0..2000 {
            tree.pin().remove(K::borrow(&key(n))).unwrap();
        }
        let emptied = at_rest(&mut tree);
        assert!(emptied.splits >= grown.splits && emptied.joins > grown.joins);
        assert_eq!((emptied.route_nodes, emptied.base_nodes.len(), emptied.deepest()), (0, 1, 0));
    }

    #[test]
    fn forced_splits_and_joins_are_counted() {
        counts_changes::<u64, Pooled>(|n| n);
        counts_changes::<u128, Shared>(|n| u128::from(n) << 60);
        counts_changes::<[u8], Pooled>(|n| n.to_string().into_bytes().into());
    }

    #[test]
    fn other_builds_stay_as_they_are() {
        fn one_base_node<B: Build>() -> i64 {
            let mut tree = tree::<u64, B, Pooled>();
            for n in 0..500 {
                tree.pin().insert(n, n).unwrap();
            }
            let now = at_rest(&mut tree);
            assert_eq!((now.splits, now.joins, now.base_nodes.len()), (0, 0, 1));
            now.base_nodes[0].statistics
        }
        assert_eq!(one_base_node::<Coarse>(), 0);
        // Each write takes one off, and that with number 511 takes off more.
        assert_eq!(one_base_node::<Adaptive>(), -500);
    }

    /// Threads change the tree while another one looks at it, which always sees a binary tree.
    #[test]
    fn it_can_be_observed_while_threads_write() {
        let mut tree = tree::<u64, Restless, Pooled>();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|thread| {
                    let tree = &tree;
                    scope.spawn(move || {
                        for n in 0..20_000 {
                            let key = n * 7919 % 1000 * 2 + thread;
                            let tree = tree.pin();
                            if n % 3 == 0 { tree.remove(key) } else { tree.insert(key, n) }
                                .unwrap();
                        }
                    })
                })
                .collect();
            let mut before = Adaptation::default();
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                let now = tree.pin().adaptation();
                assert!(now.splits >= before.splits && now.joins >= before.joins);
                assert_eq!(now.base_nodes.len(), now.route_nodes + 1);
                before = now;
            }
        });
        at_rest(&mut tree);
    }
}

//! The shape of a tree: how many base nodes contention has made of it.

use super::Lfca;
use super::node::{FreeRoute, base, join};
use crate::adaptation::{Adaptation, BaseNode};
use crate::ca::build::Build;
use crate::ca::key::CaKey;
use crate::ca::word::Kind;
use crate::domain::Guard;
use crate::frame::Adapting;
use silvics_pool::Placement;

impl<K: CaKey + ?Sized, P: Placement, B: Build> Adapting for Lfca<K, P, B> {
    fn adaptation(&self, _guard: &Guard) -> Adaptation {
        let mut found = self.changes.so_far();
        // The subtrees that are still to be seen. The first one in key order is last.
        let mut rest = vec![(self.root.read(), 0)];
        while let Some((mut word, depth)) = rest.pop() {
            if word.kind() == Kind::Join {
                // SAFETY: Q1: the word was read under the guard.
                let (join, role) = unsafe { join(word) };
                word = join.resolve(role);
            }
            if word.kind() == Kind::Route {
                found.route_nodes += 1;
                // SAFETY: Q1: likewise.
                let route = unsafe { FreeRoute::<K>::new(word) };
                rest.extend([true, false].map(|right| (route.child(right).read(), depth + 1)));
            } else {
                // SAFETY: Q1: likewise. Every way ends at a base node.
                let statistics = unsafe { base(word) }.statistics();
                found.base_nodes.push(BaseNode { statistics, depth });
            }
        }
        found
    }
}

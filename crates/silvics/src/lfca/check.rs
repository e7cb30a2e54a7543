//! Verifies the invariants of a quiescent tree.

use super::Lfca;
use super::node::{FreeRoute, base};
use crate::ca::build::Build;
use crate::ca::change::{Path, to_edge};
use crate::ca::check::{Bounds, check_container, is_within, see_key};
use crate::ca::key::Slots;
use crate::ca::node::NodeRef;
use crate::ca::word::{Kind, Word};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;
use std::collections::HashSet;

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// Walks the tree and verifies C2, T1 and T2, and that no place is claimed. Calls `see` with
    /// each object, and returns the number of entries.
    pub(crate) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let root = self.root.read();
        let entries = Self::check_subtree(root, [None; 2], &self.order, see)?;
        self.objects.frame().counted(entries)
    }

    /// Verifies C3: that each bound of a container is the key of the first entry below its child,
    /// that each key of a route node is held, and no other one, and that the keys that are held
    /// have no entry if they say so. It compares no keys.
    pub(crate) fn check_bounds(&mut self) -> Result<(), Violation> {
        let (mut open, mut bounds, mut entries) = (vec![self.root.read()], vec![], HashSet::new());
        while let Some(word) = open.pop() {
            // SAFETY: access is exclusive, and the word is linked.
            unsafe {
                match word.kind() {
                    Kind::Base => open.push(base(word).container),
                    Kind::Route => {
                        let route = FreeRoute::<K>::new(word);
                        bounds.push(route.bound());
                        open.extend([false, true].map(|right| route.child(right).read()));
                    }
                    Kind::Inner => {
                        let node = NodeRef::<K>::new(word);
                        open.extend((0..node.len()).map(|at| node.child(at)));
                        let edge = |at| to_edge::<K>(node.child(at), false, &mut Path::default());
                        let is_other = |at: &usize| edge(*at).key(0) != node.key(*at);
                        if let Some(at) = (1..node.len()).find(is_other) {
                            let detail = format!("bound {at} of {} is not an entry", node.len());
                            return violation("C3", detail);
                        }
                    }
                    Kind::Leaf => {
                        let leaf = NodeRef::<K>::new(word);
                        entries.extend((0..leaf.len()).filter_map(|at| K::id(leaf.key(at))));
                    }
                    _ => {}
                }
            }
        }
        self.bounds.check(&bounds, &entries)
    }

    fn check_subtree(
        word: Word,
        [low, high]: Bounds<K>,
        by: &K::Order,
        see: &mut See<'_>,
    ) -> Result<usize, Violation> {
        match word.kind() {
            Kind::Base => {
                // SAFETY: access is exclusive, and the word is linked.
                let base = unsafe { base(word) };
                see(base.placed());
                check_container::<K>(base.container, [low, high], by, see)
            }
            Kind::Route => {
                // SAFETY: access is exclusive, and the word is linked.
                let route = unsafe { FreeRoute::<K>::new(word) };
                see(route.placed());
                let bound = route.bound();
                see_key::<K>(bound, see);
                if !is_within::<K>(bound, [low, high], by) {
                    return violation("T2", "a bound is not within those above".into());
                }
                let bounds = [[low, Some(bound)], [Some(bound), high]];
                let below = |right: bool| (route.child(right).read(), bounds[usize::from(right)]);
                let ((left, left_bounds), (right, right_bounds)) = (below(false), below(true));
                Ok(Self::check_subtree(left, left_bounds, by, see)?
                    + Self::check_subtree(right, right_bounds, by, see)?)
            }
            Kind::Join => violation("J3", "a place is claimed, although no call runs".into()),
            _ => violation("T1", format!("{word:?} in the place of a base node")),
        }
    }
}

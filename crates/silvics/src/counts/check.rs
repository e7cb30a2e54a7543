//! Verifies the directory of a quiescent index.

use super::Counted;
use super::key::CountedKey;
use super::node::{Level, NodeRef};
use super::ops::Way;
use crate::encoding::IndexKey;
use crate::error::Violation;
use crate::frame::{Ordered, See, violation};

impl<A: Ordered<Key: CountedKey>> Counted<A> {
    /// Verifies C1, C2 and C5. `entries` are the keys of the index.
    pub(super) fn check_directory(
        &mut self,
        entries: usize,
        see: &mut See<'_>,
    ) -> Result<(), Violation> {
        let this = &*self;
        let guard = this.inner.frame().domain.pin();
        let Some(root) = this.root(&guard) else { return Ok(()) };
        Self::check_node(root, Level::Root, see)?;
        let (mut all, mut last) = (0, None);
        for in_root in 0..root.len() {
            let section = root.child(in_root);
            for in_section in 0..section.len() {
                let group = section.child(in_section);
                for in_group in 0..group.len() {
                    let at = [in_root, in_section, in_group];
                    let way = Way { root, section, group, at };
                    let keys = this.check_bucket(&way, &guard)?;
                    let from = group.separator(in_group).key;
                    if at != [0; 3] && Way::find(root, A::Key::shorten(from)).at != at {
                        return violation("C1", format!("a search for bucket {at:?} fails"));
                    }
                    if last.is_some_and(|last| last >= A::Key::shorten(from)) {
                        return violation(
                            "C1",
                            format!("bucket {at:?} begins before the last one"),
                        );
                    }
                    (all, last) =
                        (all + keys, Some(A::Key::shorten(from)).filter(|_| at != [0; 3]));
                }
            }
        }
        if all == entries {
            return Ok(());
        }
        violation("C1", format!("{entries} entries, {all} in the directory"))
    }

    /// Verifies a bucket, and returns the number of its keys.
    fn check_bucket(
        &self,
        way: &Way<'_, A::Key>,
        guard: &crate::domain::Guard,
    ) -> Result<usize, Violation> {
        let (at, counted) = (way.at, way.group.count(way.at[2]));
        let keys = self.inner.range(way.bounds(), guard).count();
        if !way.group.is_marked(at[2]) {
            if counted == keys as u64 {
                return Ok(keys);
            }
            return violation("C5", format!("bucket {at:?} has {keys} keys, {counted} counted"));
        }
        if way.section.is_marked(at[1]) && way.root.is_marked(at[0]) {
            return Ok(keys);
        }
        violation("C5", format!("bucket {at:?} is marked, but not what it is in"))
    }

    /// Verifies a node and those below it.
    fn check_node(
        node: NodeRef<'_, A::Key>,
        level: Level,
        see: &mut See<'_>,
    ) -> Result<(), Violation> {
        see(node.placed());
        if node.level() != level || node.len() == 0 {
            return violation("C2", format!("{:?} at the place of {level:?}", node.level()));
        }
        let sum = (0..node.len()).map(|at| node.count(at)).sum::<u64>();
        if sum != node.count_all() {
            return violation("C5", format!("sums of {level:?}: {}, not {sum}", node.count_all()));
        }
        let below = match level {
            Level::Root => Level::Section,
            Level::Section => Level::Group,
            Level::Group => return Ok(()),
        };
        for at in 0..node.len() {
            let (child, separator) = (node.child(at), node.separator(at).key);
            if A::Key::shorten(child.separator(0).key) != A::Key::shorten(separator) {
                return violation("C1", format!("part {at} of {level:?} has another separator"));
            }
            if child.count_all() != node.count(at) {
                return violation(
                    "C5",
                    format!("part {at} of {level:?} has {} keys", node.count(at)),
                );
            }
            Self::check_node(child, below, see)?;
        }
        Ok(())
    }
}

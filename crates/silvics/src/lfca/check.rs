//! Verifies the invariants of a quiescent tree.

use super::Lfca;
use super::node::{FreeRoute, base};
use crate::ca::build::Build;
use crate::ca::check::{Bounds, check_container, is_within, see_key};
use crate::ca::key::CaKey;
use crate::ca::word::{Kind, Word};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_pool::Placement;

impl<K: CaKey + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// Walks the tree and verifies C2, T1 and T2, and that no place is claimed. Calls `see` with
    /// each object, and returns the number of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let entries = Self::check_subtree(self.root.read(), [None; 2], see)?;
        self.objects.frame().counted(entries)
    }

    fn check_subtree(
        word: Word,
        [low, high]: Bounds<K>,
        see: &mut See<'_>,
    ) -> Result<usize, Violation> {
        match word.kind() {
            Kind::Base => {
                // SAFETY: access is exclusive, and the word is linked.
                let base = unsafe { base(word) };
                see(base.placed());
                check_container::<K>(base.container, [low, high], see)
            }
            Kind::Route => {
                // SAFETY: access is exclusive, and the word is linked.
                let route = unsafe { FreeRoute::<K>::new(word) };
                see(route.placed());
                let bound = route.bound();
                see_key::<K>(bound, see);
                if !is_within::<K>(bound, [low, high]) {
                    return violation("T2", "a bound is not within those above".into());
                }
                let left = Self::check_subtree(route.child(false).read(), [low, Some(bound)], see)?;
                let right =
                    Self::check_subtree(route.child(true).read(), [Some(bound), high], see)?;
                Ok(left + right)
            }
            Kind::Join => violation("J3", "a place is claimed, although no call runs".into()),
            _ => violation("T1", format!("{word:?} in the place of a base node")),
        }
    }
}

//! Building a tree from sorted entries: one base node, whose leaves are nearly full.

use super::Lfca;
use super::node::new_base;
use crate::ca::build::Build;
use crate::ca::bulk::{check_sorted, container_of};
use crate::ca::key::{CaKey, Slots};
use crate::ca::objects::{Fresh, May};
use crate::error::{AllocError, BulkLoadError};
use crate::frame::Adapting;
use silvics_pool::Placement;

impl<K: CaKey + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// See [`LfcaTree::bulk_load`](super::LfcaTree::bulk_load).
    pub(super) fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
    ) -> Result<(), BulkLoadError> {
        check_sorted::<K>(entries, self.objects.frame().len.sum())?;
        let base_nodes = self.adaptation(&self.objects.frame().domain.pin()).base_nodes.len();
        // SAFETY: access is exclusive, `check_sorted` finds no entry, and such keys are not held.
        Ok(unsafe { self.load_checked(entries, base_nodes) }?)
    }
}

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// Fills an empty tree, which has this number of base nodes, with entries whose keys ascend.
    ///
    /// # Safety
    /// No other thread uses the tree. It has no entry, and no route node with a key that is held
    /// (`bounds.rs`).
    pub(crate) unsafe fn load_checked(
        &self,
        entries: &[(K::New<'_>, u64)],
        base_nodes: usize,
    ) -> Result<(), AllocError> {
        if entries.is_empty() {
            return Ok(());
        }
        let guard = self.objects.frame().domain.pin();
        let mut fresh = Fresh::new(&self.objects, May::Flush(&guard));
        let container = container_of(entries, &mut fresh)?;
        let base = new_base(&mut fresh, self.first_base(container))?;
        fresh.linked();
        self.changes.count_division(base_nodes, 1);
        let old = self.root.word();
        self.root.link(base);
        // SAFETY: our contract, and the objects of the empty tree are no longer linked.
        unsafe { self.objects.free_all(old) };
        self.objects.frame().len.add(entries.len() as i64);
        Ok(())
    }
}

//! Building a tree from sorted entries: one base node, whose leaves are nearly full.

use super::Lfca;
use super::node::new_base;
use crate::ca::build::Build;
use crate::ca::bulk::{check_sorted, container_of};
use crate::ca::key::CaKey;
use crate::ca::objects::{Fresh, May};
use crate::error::BulkLoadError;
use crate::frame::Adapting;
use silvics_pool::Placement;

impl<K: CaKey + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// See [`LfcaTree::bulk_load`](super::LfcaTree::bulk_load).
    pub(super) fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
    ) -> Result<(), BulkLoadError> {
        check_sorted::<K>(entries, self.objects.frame().len.sum())?;
        if entries.is_empty() {
            return Ok(());
        }
        let guard = self.objects.frame().domain.pin();
        let mut fresh = Fresh::new(&self.objects, May::Flush(&guard));
        let container = container_of(entries, &mut fresh)?;
        let base = new_base(&mut fresh, self.first_base(container))?;
        fresh.linked();
        self.changes.count_division(self.adaptation(&guard).base_nodes.len(), 1);
        let old = self.root.word();
        self.root.link(base);
        // SAFETY: access is exclusive, and the objects of the empty tree are no longer linked.
        unsafe { self.objects.free_all(old) };
        self.objects.frame().len.add(entries.len() as i64);
        Ok(())
    }
}

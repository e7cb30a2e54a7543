//! Counting marked buckets.

use super::Counted;
use super::grow::Changed;
use super::key::CountedKey;
use super::node::NodeRef;
use super::ops::Way;
use super::plan::{FEW_KEYS, MOST_KEYS};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::frame::Ordered;
use silvics_sync::atomic::{AtomicBool, Ordering, fence};
use silvics_sync::lock::{RawLock, SpinLock};

/// The latch of a directory.
struct Latch<'a>(&'a SpinLock, &'a AtomicBool);

impl<'a> Latch<'a> {
    fn new(lock: &'a SpinLock, cleaning: &'a AtomicBool) -> Self {
        lock.lock();
        cleaning.store(true, Ordering::SeqCst);
        Self(lock, cleaning)
    }

    /// Takes the latch if no other thread has it.
    fn attempt(lock: &'a SpinLock, cleaning: &'a AtomicBool) -> Option<Self> {
        lock.try_lock().then(|| {
            cleaning.store(true, Ordering::SeqCst);
            Self(lock, cleaning)
        })
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.1.store(false, Ordering::SeqCst);
        // SAFETY: `new` or `attempt` has taken the lock.
        unsafe { self.0.unlock() };
    }
}

/// Marks all buckets if the thread that counts them panics, which a heap of the user may cause.
struct Unwound<'a, A: Ordered<Key: CountedKey>>(&'a Counted<A>, &'a Guard);

impl<A: Ordered<Key: CountedKey>> Drop for Unwound<'_, A> {
    fn drop(&mut self) {
        if let Some(root) = self.0.root(self.1) {
            Counted::<A>::mark_below(root);
        }
    }
}

/// A place in the directory: the number of a section, and that of a group in it.
pub(super) type Place = (usize, usize);

impl<A: Ordered<Key: CountedKey>> Counted<A> {
    /// Counts all marked buckets, and makes the directory if there is none.
    #[cold]
    #[inline(never)]
    pub(super) fn clean(&self, guard: &Guard) {
        let _latch = Latch::new(&self.latch, &self.cleaning);
        let Some(root) = self.root(guard) else {
            _ = self.found(guard); // if there is no memory, there is no directory
            return;
        };
        self.marked.store(0, Ordering::Relaxed);
        let unwound = Unwound(self, guard);
        self.count_marked(root, guard);
        std::mem::forget(unwound);
    }

    /// Counts the marked buckets. The caller has the latch.
    fn count_marked<'g>(&'g self, mut root: NodeRef<'g, A::Key>, guard: &'g Guard) {
        let mut in_root = 0;
        while let Some(at) = root.next_marked(in_root) {
            root.unmark(at);
            let (mut section, mut in_section) = (root.child(at), 0);
            in_root = at + 1;
            while let Some(group) = section.next_marked(in_section) {
                section.unmark(group);
                in_section = group + 1;
                match self.count_group(root, (at, group), guard) {
                    Changed::Nothing => {}
                    Changed::Section => {
                        // Places of groups that are not counted may have moved down by one.
                        (section, in_section) = (root.child(at), group.saturating_sub(1));
                    }
                    Changed::Root => {
                        let Some(new) = self.root(guard) else { return };
                        (root, in_root) = (new, at.saturating_sub(1));
                        break;
                    }
                }
            }
        }
    }

    /// Drops the directory: the next rank makes it anew.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_directory(&self, guard: &Guard) {
        let Some(_latch) = Latch::attempt(&self.latch, &self.cleaning) else { return };
        let Some(root) = self.root(guard).filter(|_| self.is_mostly_marked()) else { return };
        self.seed.store(true, Ordering::SeqCst);
        self.root.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: C3: they were unlinked under the latch, so each is retired once.
        let retire = |node| unsafe { self.objects.retire(node, guard) };
        for at in 0..root.len() {
            let section = root.child(at);
            (0..section.len()).for_each(|at| retire(section.child(at)));
            retire(section);
        }
        retire(root);
    }

    /// Counts the marked buckets of a group. The caller has the latch.
    fn count_group<'g>(
        &'g self,
        root: NodeRef<'g, A::Key>,
        (in_root, in_section): Place,
        guard: &'g Guard,
    ) -> Changed {
        let section = root.child(in_root);
        let group = section.child(in_section);
        let mut is_uneven = false;
        let mut from = 0;
        while let Some(at) = group.next_marked(from) {
            if !planted(Canary::UnmarkedLate) {
                group.unmark(at);
            }
            fence(Ordering::SeqCst);
            let bounds = Way { root, section, group, at: [in_root, in_section, at] }.bounds();
            let keys = self.inner.count_range(bounds, guard) as u64;
            if planted(Canary::UnmarkedLate) {
                group.unmark(at);
            }
            group.set_count(at, keys);
            is_uneven |= keys > MOST_KEYS || keys <= FEW_KEYS;
            from = at + 1;
        }
        section.set_count(in_section, group.count_all());
        root.set_count(in_root, section.count_all());
        if !is_uneven {
            return Changed::Nothing;
        }
        // If there is no memory, buckets stay as they are.
        self.even_out(root, (in_root, in_section), guard).unwrap_or(Changed::Nothing)
    }
}

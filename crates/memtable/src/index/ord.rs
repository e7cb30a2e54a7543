//! A contention adapting tree of pointers to entries, for any order.

use super::{Index, Setup, SetupError, Start, write_to};
use crate::entry::{Draft, Entry};
use crate::key::{Comparator, InternalKey};
use silvics::ord::{Comparator as KeyOrder, Compares};
use silvics::{AllocError, Guard, Options, OrdSet};
use silvics_pool::ConcurrentArena;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// An entry of the arena as a key of the set.
///
/// O1: it lives as long as the set: [`OrdIndex`] keeps the arena, and drops the set first. Only
/// this module makes one.
#[derive(Clone, Copy, Debug)]
struct Handle(Entry<'static>);

/// The order of the entries' keys.
struct ByKey(Arc<dyn Comparator>);

impl ByKey {
    fn order(&self, a: InternalKey<'_>, b: InternalKey<'_>) -> Ordering {
        self.0.compare(a.user, b.user).then_with(|| b.trailer.cmp(&a.trailer))
    }
}

impl KeyOrder<Handle> for ByKey {
    fn compare(&self, a: &Handle, b: &Handle) -> Ordering {
        self.order(a.0.key(), b.0.key())
    }
}

impl Compares<Handle, Handle> for ByKey {
    fn compare_with(&self, key: &Handle, asked: &Handle) -> Ordering {
        self.order(key.0.key(), asked.0.key())
    }

    fn head_of(&self, _: &Handle) -> Option<u64> {
        Some(0)
    }
}

impl Compares<Handle, InternalKey<'_>> for ByKey {
    fn compare_with(&self, key: &Handle, asked: &InternalKey<'_>) -> Ordering {
        self.order(key.0.key(), *asked)
    }

    fn head_of(&self, _: &InternalKey<'_>) -> Option<u64> {
        Some(0)
    }
}

/// An [`OrdSet`] of pointers to entries in the arena.
pub struct OrdIndex {
    // Dropped before the arena.
    set: OrdSet<Handle, ByKey>,
    arena: Arc<ConcurrentArena>,
}

impl std::fmt::Debug for OrdIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OrdIndex({:?})", self.set)
    }
}

// SAFETY: the set returns handles that were inserted, and they lead to entries of the arena.
unsafe impl Index for OrdIndex {
    const NAME: &'static str = "ordmap";

    fn new(setup: &Setup) -> Result<Self, SetupError> {
        let options = Options { domain: Some(setup.domain.clone()), ..setup.options.clone() };
        let set = OrdSet::with_options(ByKey(Arc::clone(&setup.comparator)), &options)?;
        Ok(Self { set, arena: Arc::clone(&setup.arena) })
    }

    unsafe fn add(&self, draft: Draft<'_>, _: bool, _: &Guard) -> Result<bool, AllocError> {
        let entry = write_to(&self.arena, draft)?;
        self.set.try_insert(Handle(entry)).map_err(|rejected| rejected.error)
    }

    fn seek(&self, key: InternalKey<'_>, _: &Guard) -> Option<Entry<'_>> {
        self.set.pin().lower_bound(Bound::Included(&key)).map(|found| found.0)
    }

    unsafe fn scan<'t>(
        &'t self,
        from: Start<'t, '_>,
        backwards: bool,
        count: usize,
        to: &mut Vec<Entry<'t>>,
        _: &Guard,
    ) {
        let key = match from {
            Start::End => None,
            Start::Key(key) => Some(Bound::Included(key)),
            Start::Beyond(entry) => Some(Bound::Excluded(entry.key())),
        };
        let bound = key.unwrap_or(Bound::Unbounded);
        let view = self.set.pin();
        if backwards {
            let range = view.range::<InternalKey<'_>, _>((Bound::Unbounded, bound));
            to.extend(range.rev().take(count).map(|found| found.0));
        } else {
            let range = view.range::<InternalKey<'_>, _>((bound, Bound::Unbounded));
            to.extend(range.take(count).map(|found| found.0));
        }
    }

    fn bytes(&self) -> usize {
        self.set.bytes()
    }

    fn check(&mut self) -> Result<usize, String> {
        self.set.check().map_err(|violation| violation.to_string())
    }
}

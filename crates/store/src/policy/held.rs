//! The locks that a transaction holds.

use crate::lock::RowLock;
use crate::rows::Address;
use crate::tx::state::reserve;
use silvics::AllocError;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::vec::Drain;

/// The mode in which a transaction holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Shared,
    Exclusive,
    /// Shared before, and a part of an exclusive request now.
    Merged,
}

/// A lock that was granted.
pub(super) struct Held<L> {
    pub(super) lock: NonNull<L>,
    /// The row of the lock, if it is that of a row.
    pub(super) row: Option<Address>,
    pub(super) mode: Mode,
    /// The number of the request before it for the same lock, if the hash table has both.
    before: u32,
}

const NONE: u32 = u32::MAX;

/// The requests of a transaction for one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) shared: u64,
    pub(super) exclusive: bool,
    /// The last of them.
    last: u32,
}

impl Own {
    const NOTHING: Self = Self { shared: 0, exclusive: false, last: NONE };

    fn add(&mut self, mode: Mode) {
        self.shared += u64::from(mode == Mode::Shared);
        self.exclusive |= mode == Mode::Exclusive;
    }

    fn holds(self) -> u64 {
        self.shared + u64::from(self.exclusive)
    }
}

/// With more locks than this, a transaction finds its own by a hash table.
const FEW: usize = 16;

/// The locks of one kind that a transaction holds, in the order in which they were granted. A lock
/// that was granted several times is there as often.
///
/// Most transactions never look for a lock of their own: the hash table has the first `indexed`
/// locks, and gets the others when one is looked for.
pub(super) struct Locks<L> {
    list: Vec<Held<L>>,
    by_lock: HashMap<NonNull<L>, Own>,
    indexed: usize,
}

impl<L> Default for Locks<L> {
    fn default() -> Self {
        Self { list: Vec::new(), by_lock: HashMap::new(), indexed: 0 }
    }
}

impl<L> Locks<L> {
    /// Makes room for a lock, so that one that is taken is always remembered.
    #[inline(always)]
    pub(super) fn reserve(&mut self) -> Result<(), AllocError> {
        reserve(&mut self.list)
    }

    /// The number of locks for which there is room.
    pub(super) fn room(&self) -> usize {
        self.list.capacity()
    }

    /// Adds a lock that was granted. There is room.
    #[inline(always)]
    pub(super) fn push(&mut self, lock: NonNull<L>, row: Option<Address>, mode: Mode) {
        self.list.push(Held { lock, row, mode, before: NONE });
    }

    /// Takes the lock back that was added last.
    pub(super) fn pop(&mut self) -> Option<Held<L>> {
        debug_assert!(self.indexed < self.list.len(), "it was not looked for");
        self.list.pop()
    }

    /// Takes all locks off the list.
    #[inline]
    pub(super) fn drain(&mut self) -> Drain<'_, Held<L>> {
        if self.indexed > 0 {
            self.by_lock.clear();
            self.indexed = 0;
        }
        self.list.drain(..)
    }

    /// The requests for a lock. O(1), amortized over all locks.
    pub(super) fn own(&mut self, lock: NonNull<L>) -> Own {
        if self.list.len() > FEW && self.index().is_ok() {
            return self.by_lock.get(&lock).copied().unwrap_or(Own::NOTHING);
        }
        let mut own = Own::NOTHING;
        let of_lock = self.list.iter().filter(|held| held.lock == lock);
        of_lock.for_each(|held| own.add(held.mode));
        own
    }

    /// Enters all locks into the hash table.
    fn index(&mut self) -> Result<(), std::collections::TryReserveError> {
        self.by_lock.try_reserve(self.list.len() - self.indexed)?;
        for (at, held) in self.list.iter_mut().enumerate().skip(self.indexed) {
            if held.mode != Mode::Merged {
                let own = self.by_lock.entry(held.lock).or_insert(Own::NOTHING);
                own.add(held.mode);
                held.before = own.last;
                own.last = at as u32;
            }
        }
        self.indexed = self.list.len();
        Ok(())
    }

    /// The shared requests for a lock become a part of an exclusive one, which comes next.
    pub(super) fn merge(&mut self, lock: NonNull<L>) {
        if let Some(own) = self.by_lock.get_mut(&lock) {
            let mut at = own.last;
            while let Some(held) = self.list.get_mut(at as usize) {
                (held.mode, at) = (Mode::Merged, held.before);
            }
            *own = Own::NOTHING;
        }
        for held in self.list[self.indexed..].iter_mut().filter(|held| held.lock == lock) {
            held.mode = Mode::Merged;
        }
    }
}

impl<L: RowLock> Locks<L> {
    /// Whether other transactions hold a lock: the least timestamp of these, or a smaller one. That
    /// of the lock may be this transaction's own, if it is a holder, too.
    pub(super) fn others(&mut self, lock: &L) -> Option<u64> {
        let state = lock.peek();
        if state.holds() == 0 {
            return None;
        }
        let own = self.own(NonNull::from(lock)).holds();
        (state.holds() != own).then(|| state.oldest().saturating_add(u64::from(own > 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to find own locks have the same answers, before and after some are merged.
    #[test]
    fn own_locks_are_found_among_few_and_among_many() {
        let places = [0_u8; 40];
        let lock = |n: usize| NonNull::from(&places[n]);
        for others in [0, FEW + 5] {
            let mut locks = Locks::<u8>::default();
            let add = |locks: &mut Locks<u8>, n, mode| {
                locks.reserve().unwrap();
                locks.push(lock(n), None, mode);
            };
            (0..others).for_each(|n| add(&mut locks, n + 2, Mode::Shared));
            for round in 1..4 {
                (0..3).for_each(|_| add(&mut locks, 0, Mode::Shared));
                add(&mut locks, 1, Mode::Shared);
                let own = locks.own(lock(0));
                assert_eq!((own.shared, own.exclusive), (3, false));
                add(&mut locks, 0, Mode::Shared); // not looked for before it is merged
                locks.merge(lock(0));
                assert_eq!(locks.own(lock(0)).holds(), 0);
                let merged = locks.list.iter().filter(|held| held.mode == Mode::Merged);
                assert_eq!(merged.count(), 4 * round, "{others} other locks");
                assert_eq!(locks.own(lock(1)).shared, round as u64);
            }
            add(&mut locks, 0, Mode::Exclusive);
            let own = locks.own(lock(0));
            assert_eq!((own.shared, own.exclusive), (0, true));
            assert_eq!(locks.own(lock(39)).holds(), 0);
            assert_eq!(locks.indexed > 0, others > 0);
            let all = locks.list.len();
            assert_eq!((locks.drain().count(), locks.own(lock(1)).holds()), (all, 0));
        }
    }

    /// Some requests are in the hash table and others are not, and the last one is taken back.
    #[test]
    fn requests_behind_the_hash_table_count() {
        let places = [0_u8; 2 * FEW];
        let lock = |n: usize| NonNull::from(&places[n]);
        let mut locks = Locks::<u8>::default();
        let add = |locks: &mut Locks<u8>, n, mode| {
            locks.reserve().unwrap();
            locks.push(lock(n), None, mode);
        };
        (0..2 * FEW).for_each(|n| add(&mut locks, n, Mode::Shared));
        assert_eq!((locks.own(lock(1)).shared, locks.indexed), (1, 2 * FEW));
        add(&mut locks, 1, Mode::Shared);
        add(&mut locks, 2, Mode::Exclusive);
        assert_eq!(locks.pop().map(|held| held.lock), Some(lock(2)));
        assert_eq!((locks.own(lock(1)).shared, locks.own(lock(2)).exclusive), (2, false));
        assert!(locks.room() > 2 * FEW);
    }
}

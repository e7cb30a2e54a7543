//! The entries that a transaction has placed in indexes.
//!
//! They are in the order in which they were placed. Each is in the list of its row's write, and one
//! that takes over a key is in a list of the row that gives the key up, too. A row has one entry in
//! each index, and a second one while it moves, so the entries of a row are found in time that does
//! not depend on the size of the transaction.

use super::arena::Stored;
use super::state::{IndexPtr, Workspace, push};
use crate::key::KeyRef;
use crate::policy::Policy;
use crate::rows::Address;
use silvics::AllocError;

/// An entry that a transaction has placed in an index, or will place at its commit.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    pub index: IndexPtr,
    pub key: Stored,
    pub row: Address,
    /// The row that has the key until the commit, and gives it up then.
    pub takes_over: Option<Address>,
    /// The number of entries that the transaction had placed before.
    serial: u64,
    /// The number of the row's write.
    write: u32,
    /// The next entries in both lists.
    next: Links,
    is_live: bool,
}

/// Entries in two lists: those of a row, and those that take over keys of a row.
pub(crate) type Links = [u32; 2];
const OWN: usize = 0;
const TAKERS: usize = 1;
const NONE: u32 = u32::MAX;

/// The lists of a write without entries.
pub(crate) const NO_ENTRIES: Links = [NONE; 2];

impl Placed {
    /// The number of the next entry of the row, in the order of [`Workspace::entries`].
    pub(crate) fn after(&self) -> Option<usize> {
        (self.next[OWN] != NONE).then_some(self.next[OWN] as usize)
    }
}

impl<P: Policy> Workspace<P> {
    /// Adds an entry of the row of write `at`.
    pub(crate) fn add_entry(
        &mut self,
        at: usize,
        index: IndexPtr,
        key: Stored,
    ) -> Result<(), AllocError> {
        self.reserve_stuck()?;
        let write = &mut self.writes.all_mut()[at];
        let next = [write.entries[OWN], NONE];
        let (row, takes_over, is_live, serial) = (write.row.address, None, true, self.placements);
        let entry = Placed { index, key, row, takes_over, serial, write: at as u32, next, is_live };
        let number = self.placed.len() as u32;
        push(&mut self.placed, entry)?;
        write.entries[OWN] = number;
        self.placements += 1;
        Ok(())
    }

    /// Whether the row of write `at` got a key after the transaction had placed `since` entries.
    pub(crate) fn is_since(&self, at: usize, index: IndexPtr, key: KeyRef<'_>, since: u64) -> bool {
        self.placements > since
            && self.entries(at).any(|(_, placed)| {
                // SAFETY: the arena is cleared after the transaction.
                placed.serial >= since
                    && placed.index.is(index)
                    && unsafe { placed.key.get() } == key
            })
    }

    /// Makes room for one more entry whose removal may fail, besides those that are placed.
    pub(crate) fn reserve_stuck(&mut self) -> Result<(), AllocError> {
        let most = self.stuck.len() + self.placed.len() + 1;
        if self.stuck.capacity() < most {
            let requested = most * size_of::<(IndexPtr, Stored, Address)>();
            let failed = |_| AllocError::System { requested };
            self.stuck.try_reserve(most - self.stuck.len()).map_err(failed)?;
        }
        Ok(())
    }

    /// The last entry takes its key over from the row of write `at`.
    pub(crate) fn take_over_last(&mut self, at: usize) {
        let number = self.placed.len() - 1;
        let displaced = &mut self.writes.all_mut()[at];
        let entry = &mut self.placed[number];
        entry.takes_over = Some(displaced.row.address);
        entry.next[TAKERS] = displaced.entries[TAKERS];
        displaced.entries[TAKERS] = number as u32;
    }

    /// Takes an entry off all lists. Entries at the end of `placed` that were taken off before go,
    /// too.
    pub(crate) fn drop_entry(&mut self, number: usize) -> Placed {
        let entry = self.placed[number];
        self.unlink(number, entry.write as usize, OWN);
        if let Some(at) = entry.takes_over.and_then(|row| self.writes.find(row)) {
            self.unlink(number, at, TAKERS);
        }
        (self.placed[number].is_live, self.placed[number].takes_over) = (false, None);
        while self.placed.pop_if(|last| !last.is_live).is_some() {}
        entry
    }

    /// Takes the last entry off all lists.
    pub(crate) fn drop_last_entry(&mut self) -> Placed {
        self.drop_entry(self.placed.len() - 1)
    }

    fn unlink(&mut self, number: usize, at: usize, list: usize) {
        let after = self.placed[number].next[list];
        let before = self.listed(at, list).find(|(_, entry)| entry.next[list] as usize == number);
        match before.map(|(before, _)| before) {
            Some(before) => self.placed[before].next[list] = after,
            None => self.writes.all_mut()[at].entries[list] = after,
        }
    }

    /// The entries of the row of write `at`, with their numbers, the last one first.
    pub(crate) fn entries(&self, at: usize) -> impl Iterator<Item = (usize, &Placed)> {
        self.listed(at, OWN)
    }

    /// The entries that take over keys of a row, if this transaction writes it.
    pub(crate) fn takers(&self, row: Address) -> impl Iterator<Item = &Placed> {
        let at = if self.placed.is_empty() { None } else { self.writes.find(row) };
        at.into_iter().flat_map(|at| self.listed(at, TAKERS)).map(|(_, entry)| entry)
    }

    fn listed(&self, at: usize, list: usize) -> impl Iterator<Item = (usize, &Placed)> {
        let mut next = self.writes.all()[at].entries[list] as usize;
        std::iter::from_fn(move || {
            let (number, entry) = (next, self.placed.get(next)?);
            next = entry.next[list] as usize;
            Some((number, entry))
        })
    }
}

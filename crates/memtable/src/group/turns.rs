//! The order in which the groups of a pipeline are published.
//!
//! # Algorithm
//! Each group has a ticket, and tickets are consecutive. A group is published when two events have
//! come, in any order: its batches are inserted, and the group before it was published. Both
//! increase a count of the ticket's slot. The one that comes second publishes the group, and goes
//! on with the next ticket, for which its own publication is such an event. So nobody waits for a
//! slower group in order to publish: the slower one does it for those behind it.
//!
//! # Invariants
//! * P1: each ticket increases the count of its slot twice, so the count is even between tickets.
//! * P2: a slot is given to a ticket when the ticket that had it before was published.
//! * P3: a group stays until its writers are dismissed (G5).
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `events` | `fetch_add` | `AcqRel` | itself | the second thread sees the group and what was published before |
//! | `events` | load | Acquire | `fetch_add` | the same, if the publication came first |
//! | `events` | store | Relaxed | – | both events have come; who uses the slot next comes behind `published` |
//! | `group` | all | Relaxed | – | ordered by `events` |
//! | `published` | store | Release | load | a slot is free, and the entries of all groups up to it are inserted |
//! | `published` | load | Acquire | store | the leader that reuses a slot, or switches tables, comes behind |

use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use silvics_sync::thread::yield_now;
use std::ptr::{NonNull, null_mut};

/// The most groups that are on their way.
const SLOTS: usize = if cfg!(any(silvics_loom, silvics_shuttle)) { 2 } else { 64 };

/// The most groups that are published before their writers are dismissed.
const TOLD: usize = if cfg!(any(silvics_loom, silvics_shuttle)) { 2 } else { 8 };

#[derive(Debug)]
struct Slot {
    events: AtomicU64,
    group: AtomicPtr<()>,
}

/// The turns of groups: see the [module](self).
#[derive(Debug)]
pub(crate) struct Turns {
    slots: [CachePadded<Slot>; SLOTS],
    /// The number of groups that were published: the ticket whose turn it is.
    published: CachePadded<AtomicU64>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let slot = |at| {
            let events = AtomicU64::new(u64::from(at == 0)); // no group precedes the first
            CachePadded::new(Slot { events, group: AtomicPtr::new(null_mut()) })
        };
        Self { slots: std::array::from_fn(slot), published: CachePadded::new(AtomicU64::new(0)) }
    }

    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[(ticket % SLOTS as u64) as usize]
    }

    /// Waits until the groups before a ticket are published.
    pub(crate) fn wait_for(&self, ticket: u64) {
        while self.published.load(Ordering::Acquire) < ticket {
            yield_now();
        }
    }

    /// Gives a ticket to a group, and waits while too many groups are on their way.
    ///
    /// # Safety
    /// The caller leads, tickets are consecutive from 0 on, and the group stays as P3 says.
    pub(crate) unsafe fn enter(&self, ticket: u64, group: NonNull<()>) {
        self.wait_for((ticket + 1).saturating_sub(SLOTS as u64)); // P2
        self.slot(ticket).group.store(group.as_ptr(), Ordering::Relaxed);
    }

    /// Notes that the batches of a group are inserted. Calls `publish` with the groups that are to
    /// be published now, in their order, and then `tell` with each of them. (To tell a writer may
    /// mean to wake it, and the next few groups need not wait for that.)
    ///
    /// # Safety
    /// The ticket was given to a group, and this is the only call for it.
    pub(crate) unsafe fn inserted(
        &self,
        own: u64,
        mut publish: impl FnMut(NonNull<()>),
        mut tell: impl FnMut(NonNull<()>),
    ) {
        let mut ticket = own;
        loop {
            let (mut published, mut count) = ([NonNull::dangling(); TOLD], 0);
            // P1: if the other event of a ticket is to come, its thread publishes the group.
            while count < TOLD && self.is_second(ticket, ticket == own) {
                let group = self.slot(ticket).group.load(Ordering::Relaxed);
                let group = NonNull::new(group).expect("P2: a group has entered");
                publish(group);
                (published[count], count) = (group, count + 1);
                ticket += 1;
                self.published.store(ticket, Ordering::Release);
            }
            published[..count].iter().for_each(|group| tell(*group));
            if count < TOLD {
                return;
            }
        }
    }

    /// Notes an event of a ticket: that the group is inserted, or that the one before it was
    /// published. Returns whether the other event has come before.
    fn is_second(&self, ticket: u64, inserted: bool) -> bool {
        let events = &self.slot(ticket).events;
        let before = events.load(Ordering::Acquire);
        if inserted && !before.is_multiple_of(2) {
            // The usual case. No other thread uses the slot any more (P1), so this needs no RMW.
            events.store(before + 1, Ordering::Relaxed);
            return true;
        }
        !events.fetch_add(1, Ordering::AcqRel).is_multiple_of(2)
    }
}

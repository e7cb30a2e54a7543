//! The list of writers.

use super::wait::states::{DONE, INSERTS, LEADS};
use super::{Site, State, Waiting};
use crate::batch::WriteBatch;
use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use silvics_sync::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};

/// A write in progress. It lies in the frame of its thread.
pub(crate) struct Writer<E> {
    state: State,
    claimed: AtomicBool,
    older: AtomicPtr<Writer<E>>,
    newer: AtomicPtr<Writer<E>>,
    /// The group, of a type that the buffer knows, while the writer inserts in parallel.
    group: AtomicPtr<()>,
    /// The sequence number of the first operation.
    seqno: AtomicU64,
    /// Null for a writer that only wants to lead.
    batch: *const WriteBatch,
    pub(crate) sync: bool,
    /// Set before the state is `DONE`.
    error: UnsafeCell<Option<E>>,
}

// SAFETY: the fields that change are atomic, except `error`, which belongs to the thread that
// completes the group until it sets `DONE`. The batch is borrowed by the frame of the writer, and
// is only read.
unsafe impl<E: Send> Sync for Writer<E> {}

/// The task of a writer after it has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Lead,
    Insert,
    Nothing,
}

impl<E> Writer<E> {
    pub(crate) fn new(batch: Option<&WriteBatch>, sync: bool) -> Self {
        Self {
            state: State::new(),
            claimed: AtomicBool::new(false),
            older: AtomicPtr::new(null_mut()),
            newer: AtomicPtr::new(null_mut()),
            group: AtomicPtr::new(null_mut()),
            seqno: AtomicU64::new(0),
            batch: batch.map_or(std::ptr::null(), std::ptr::from_ref),
            sync,
            error: UnsafeCell::new(None),
        }
    }

    /// The batch of the writer, if it has one.
    pub(crate) fn batch(&self) -> Option<&WriteBatch> {
        // SAFETY: the frame that has made the writer borrows the batch as long as it (G1).
        unsafe { self.batch.as_ref() }
    }

    /// Takes the right to insert the batch (G4).
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn seqno(&self) -> u64 {
        self.seqno.load(Ordering::Relaxed)
    }

    pub(crate) fn set_seqno(&self, seqno: u64) {
        self.seqno.store(seqno, Ordering::Relaxed);
    }

    pub(crate) fn group(&self) -> *mut () {
        self.group.load(Ordering::Relaxed)
    }

    /// Lets the writer insert its batch in parallel, if it is awake.
    pub(crate) fn launch(&self, group: *mut ()) {
        self.group.store(group, Ordering::Relaxed);
        self.state.set_if_awake(INSERTS);
    }

    /// The error that the group has left here. The writer is done.
    pub(crate) fn into_error(self) -> Option<E> {
        // SAFETY: the writer is done, so no other thread has it.
        self.error.with_mut(|error| unsafe { (*error).take() })
    }
}

/// The writers of a group, from the leader to the last one. A copy leads to the same writers.
pub(crate) struct Members<E> {
    leader: NonNull<Writer<E>>,
    last: NonNull<Writer<E>>,
    pub(crate) count: usize,
}

impl<E> Clone for Members<E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Members<E> {}

impl<E> Members<E> {
    /// The writers, the leader first. Not to be used after the group has left.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Writer<E>> {
        let mut next = Some(self.leader);
        std::iter::from_fn(move || {
            let at = next?;
            // SAFETY: G1: the writers of a group stay until it leaves.
            let writer = unsafe { at.as_ref() };
            next = if at == self.last {
                None
            } else {
                NonNull::new(writer.newer.load(Ordering::Relaxed)) // G3
            };
            Some(writer)
        })
    }
}

/// The writers that wait, and the one that leads.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    newest: CachePadded<AtomicPtr<Writer<E>>>,
    /// The waits of writers that were pushed, and of those that have inserted.
    pushed: Site,
    inserted: Site,
    pub(crate) waiting: Waiting,
}

impl<E> Queue<E> {
    pub(crate) fn new(yields: bool) -> Self {
        Self {
            newest: CachePadded::new(AtomicPtr::new(null_mut())),
            pushed: Site::default(),
            inserted: Site::default(),
            waiting: Waiting::new(yields),
        }
    }

    /// Pushes a writer, and waits until it has something to do.
    ///
    /// # Safety
    /// G1: the writer stays at its address until it is done. If the result is [`Role::Lead`], the
    /// caller collects a group and leaves it. If it is [`Role::Insert`], the caller waits by
    /// [`Queue::wait_done`] afterwards.
    pub(crate) unsafe fn join(&self, writer: &Writer<E>) -> Role {
        let at = std::ptr::from_ref(writer).cast_mut();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            writer.older.store(newest, Ordering::Relaxed); // G3
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.newest.compare_exchange(newest, at, ok, failed) {
                Ok(_) => break,
                Err(other) => newest = other,
            }
        }
        if newest.is_null() {
            return Role::Lead;
        }
        match self.waiting.wait(&writer.state, LEADS | INSERTS | DONE, &self.pushed) {
            LEADS => Role::Lead,
            INSERTS => Role::Insert,
            _ => Role::Nothing,
        }
    }

    /// Waits until the writer's group has left.
    pub(crate) fn wait_done(&self, writer: &Writer<E>) {
        self.waiting.wait(&writer.state, DONE, &self.inserted);
    }

    /// The group of a leader: the writers behind it, as long as `admit` takes them.
    ///
    /// # Safety
    /// The writer leads.
    pub(crate) unsafe fn collect(
        &self,
        leader: &Writer<E>,
        mut admit: impl FnMut(&Writer<E>) -> bool,
    ) -> Members<E> {
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: G1: the writers from the newest one to the leader wait.
        unsafe { link_newer(newest) };
        let leader = NonNull::from(leader);
        let (mut last, mut count) = (leader, 1);
        while last.as_ptr() != newest {
            // SAFETY: G1; `link_newer` has set `newer` of all but the newest one.
            let next = unsafe { last.as_ref() }.newer.load(Ordering::Relaxed);
            let Some(next) = NonNull::new(next) else { break };
            // SAFETY: G1.
            if !admit(unsafe { next.as_ref() }) {
                break;
            }
            (last, count) = (next, count + 1);
        }
        Members { leader, last, count }
    }

    /// Hands the lead over, and completes the writers of a group with an outcome.
    ///
    /// # Safety
    /// As [`Queue::hand_over`] and [`Queue::dismiss`] have it.
    pub(crate) unsafe fn leave(&self, members: Members<E>, error: Option<&E>)
    where
        E: Clone,
    {
        // SAFETY: the caller's promise.
        unsafe {
            self.hand_over(members);
            Self::dismiss(members, error);
        }
    }

    /// Hands the lead to the oldest writer behind a group, or empties the list.
    ///
    /// # Safety
    /// The members were collected by the leader of now, are not dismissed, and hand over once.
    pub(crate) unsafe fn hand_over(&self, members: Members<E>) {
        let last = members.last;
        let (ok, failed) = (Ordering::Release, Ordering::Acquire);
        if let Err(newest) = self.newest.compare_exchange(last.as_ptr(), null_mut(), ok, failed) {
            // SAFETY: G1: the writers behind the group wait.
            unsafe {
                link_newer(newest);
                let next = last.as_ref().newer.load(Ordering::Relaxed);
                (*next).older.store(null_mut(), Ordering::Relaxed); // G3
                State::set(&raw const (*next).state, LEADS); // G2
            }
        }
    }

    /// Completes the writers of a group with an outcome.
    ///
    /// # Safety
    /// The members have handed the lead over, and are dismissed once. The caller uses no writer of
    /// the group afterwards, except its own.
    pub(crate) unsafe fn dismiss(members: Members<E>, error: Option<&E>)
    where
        E: Clone,
    {
        let (leader, mut at) = (members.leader, members.last);
        loop {
            // SAFETY: G1: the writer is not done. Its link is read before it is.
            let writer = unsafe { at.as_ref() };
            let older = writer.older.load(Ordering::Relaxed);
            if let Some(error) = error {
                // SAFETY: only the thread that completes the group writes it, before `DONE`.
                writer.error.with_mut(|place| unsafe { *place = Some(error.clone()) });
            }
            // The writer may be gone during the call (G1), so it gets no reference.
            // SAFETY: G1: the writer is not done.
            unsafe { State::set(&raw const (*at.as_ptr()).state, DONE) };
            if at == leader {
                return;
            }
            at = NonNull::new(older).expect("G3: the leader alone has none");
        }
    }
}

/// Sets `newer` of the writers from the newest one on, up to the first that has it.
///
/// # Safety
/// G1: the writers wait, and the caller leads.
unsafe fn link_newer<E>(mut newest: *mut Writer<E>) {
    // SAFETY: the caller's promise; G3.
    unsafe {
        loop {
            let older = (*newest).older.load(Ordering::Relaxed);
            if older.is_null() || !(*older).newer.load(Ordering::Relaxed).is_null() {
                return;
            }
            (*older).newer.store(newest, Ordering::Relaxed);
            newest = older;
        }
    }
}

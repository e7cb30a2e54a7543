//! Groups that insert in parallel, without a table: small enough for Miri, and without the
//! collector of epochs, whose threads end in a way that Miri's model of borrows refuses.

use super::{Members, Queue, Role, Turns, Writer};
use crate::batch::WriteBatch;
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use silvics_sync::thread::yield_now;
use std::ptr::NonNull;

/// The group of [`WriteBuffer`](crate::WriteBuffer), as `buffer/write.rs` uses it.
struct Group {
    members: Members<()>,
    remaining: AtomicUsize,
    /// In a pipeline.
    ticket: Option<u64>,
}

struct Shared {
    queue: Queue<()>,
    turns: Turns,
    pipelined: bool,
    /// The ticket of the next group. It belongs to the leader.
    tickets: AtomicU64,
    /// The groups that were published. It belongs to the thread whose turn it is.
    published: AtomicU64,
    inserted: AtomicUsize,
    /// The groups that a follower has completed.
    by_followers: AtomicUsize,
    /// The groups that were published by a thread of another one.
    by_others: AtomicUsize,
}

impl Shared {
    fn write(&self) {
        let batch = WriteBatch::new();
        let writer = Writer::new(Some(&batch), false);
        // SAFETY: G1: the writer stays until it is done.
        match unsafe { self.queue.join(&writer) } {
            Role::Lead => self.lead(&writer),
            Role::Insert => {
                if writer.claim() {
                    rest(30); // a longer insertion than the leader's
                    let group = NonNull::new(writer.group().cast()).expect("launched with a group");
                    // SAFETY: G5: this batch is not inserted before the call.
                    if unsafe { self.finish(group, 1) } {
                        self.by_followers.fetch_add(1, Ordering::Relaxed);
                    }
                }
                self.queue.wait_done(&writer);
            }
            Role::Nothing => {}
        }
    }

    fn lead(&self, writer: &Writer<()>) {
        rest(10); // others push themselves
        // SAFETY: the writer leads.
        let members = unsafe { self.queue.collect(writer, |_| true) };
        let ticket = self.pipelined.then(|| self.tickets.load(Ordering::Relaxed));
        let group = Group { members, remaining: AtomicUsize::new(members.count), ticket };
        let at = NonNull::from(&group);
        if let Some(ticket) = ticket {
            self.tickets.store(ticket + 1, Ordering::Relaxed);
            // SAFETY: the writer leads, and this frame stays until it is done.
            unsafe {
                self.turns.enter(ticket, at.cast());
                self.queue.hand_over(members);
            }
        }
        for member in members.iter().skip(1) {
            member.launch(at.as_ptr().cast());
        }
        rest(10);
        let claimed = members.iter().filter(|member| member.claim()).count();
        // SAFETY: G5: these batches were counted.
        unsafe { self.finish(at, claimed) };
        self.queue.wait_done(writer);
    }

    /// # Safety
    /// G5: this number of batches is not lowered yet.
    unsafe fn finish(&self, group: NonNull<Group>, inserted: usize) -> bool {
        self.inserted.fetch_add(inserted, Ordering::Relaxed);
        let group = group.as_ptr();
        // SAFETY: G5: it is lowered here.
        let before = unsafe { (*group).remaining.fetch_sub(inserted, Ordering::AcqRel) };
        if before != inserted {
            return false;
        }
        // SAFETY: this thread completes the group, or gives it its turn.
        unsafe {
            match (*group).ticket {
                None => self.queue.leave((*group).members, None),
                Some(ticket) => {
                    let publish = |group: NonNull<()>| {
                        let published = self.published.load(Ordering::Relaxed);
                        assert_eq!(group.cast::<Group>().as_ref().ticket, Some(published));
                        self.published.store(published + 1, Ordering::Relaxed);
                        let others = usize::from(published != ticket);
                        self.by_others.fetch_add(others, Ordering::Relaxed);
                    };
                    self.turns.inserted(ticket, publish, |group| {
                        let group: *mut Group = group.as_ptr().cast();
                        Queue::dismiss((*group).members, None);
                    });
                }
            }
        }
        true
    }
}

fn rest(yields: usize) {
    (0..yields).for_each(|_| yield_now());
}

fn no_frame_is_used_after_its_end(pipelined: bool) {
    let (threads, rounds) = (3, if cfg!(miri) { 12 } else { 2000 });
    let shared = Shared {
        queue: Queue::new(true),
        turns: Turns::new(),
        pipelined,
        tickets: AtomicU64::new(0),
        published: AtomicU64::new(0),
        inserted: AtomicUsize::new(0),
        by_followers: AtomicUsize::new(0),
        by_others: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..rounds).for_each(|_| shared.write()));
        }
    });
    assert_eq!(shared.inserted.into_inner(), threads * rounds);
    assert_eq!(shared.published.into_inner(), shared.tickets.into_inner());
    let shows = if pipelined { shared.by_others } else { shared.by_followers };
    assert!(shows.into_inner() > 0 || !cfg!(miri), "the schedule shows nothing");
}

#[test]
fn no_thread_uses_a_frame_that_has_ended() {
    no_frame_is_used_after_its_end(false);
}

#[test]
fn no_thread_of_a_pipeline_uses_a_frame_that_has_ended() {
    no_frame_is_used_after_its_end(true);
}

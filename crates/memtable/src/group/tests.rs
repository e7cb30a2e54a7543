//! Groups that insert in parallel, without a table: small enough for Miri, and without the
//! collector of epochs, whose threads end in a way that Miri's model of borrows refuses.

use super::{Members, Queue, Role, Writer};
use crate::batch::WriteBatch;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::thread::yield_now;
use std::ptr::NonNull;

/// The group of [`WriteBuffer`](crate::WriteBuffer), as `buffer/write.rs` uses it.
struct Group {
    members: Members<()>,
    remaining: AtomicUsize,
}

struct Shared {
    queue: Queue<()>,
    inserted: AtomicUsize,
    /// The groups that a follower has completed.
    by_followers: AtomicUsize,
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
        let group = Group { members, remaining: AtomicUsize::new(members.count) };
        let at = NonNull::from(&group);
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
        // SAFETY: G5: the group stays until `remaining` is lowered.
        let members = unsafe { (*group).members };
        // SAFETY: G5: it is lowered here.
        let before = unsafe { (*group).remaining.fetch_sub(inserted, Ordering::AcqRel) };
        if before == inserted {
            // SAFETY: this thread completes the group.
            unsafe { self.queue.leave(members, None) };
        }
        before == inserted
    }
}

fn rest(yields: usize) {
    (0..yields).for_each(|_| yield_now());
}

#[test]
fn no_thread_uses_a_frame_that_has_ended() {
    let (threads, rounds) = (3, if cfg!(miri) { 12 } else { 2000 });
    let (inserted, by_followers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared = Shared { queue: Queue::new(true), inserted, by_followers };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..rounds).for_each(|_| shared.write()));
        }
    });
    assert_eq!(shared.inserted.into_inner(), threads * rounds);
    assert!(shared.by_followers.into_inner() > 0 || !cfg!(miri), "the schedule shows nothing");
}

//! Allocations that fail, and closures and keys of users that panic: the call has not happened, no
//! lock stays, the transaction can go on or is undone, and the next one works.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

#[path = "faults/memory.rs"]
mod memory;
#[path = "faults/panics.rs"]
mod panics;
mod support;

use silvics_store::{Locking, NoWait, Optimistic, Policy, Study, WaitDie, lock::Latched};
use silvics_sync::pthread::PthreadLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use support::{Model, Op, Person, World};

/// The rows of studies, each of four objects.
pub(crate) type StudyPolicy = Locking<NoWait, Study<Latched<PthreadLock>>>;

/// Calls `work` on a thread of its own, which has no pins and no memory of earlier transactions.
/// Fails if it takes longer than a minute: then it waits forever.
pub(crate) fn within<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (send, receive) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let result = work();
        drop(send);
        result
    });
    if let Err(RecvTimeoutError::Timeout) = receive.recv_timeout(Duration::from_secs(60)) {
        panic!("{what}: the call does not return");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Inserts five people and three marks.
pub(crate) fn fill<P: Policy>(world: &World<P>) -> Model {
    let mut model = Model::default();
    let mut ops: Vec<Op> = (0..5)
        .map(|id| Op::Insert(id, Person { code: id, town: id as u8 % 3, balance: 7 * id as i64 }))
        .collect();
    ops.extend((0..3).map(|number| Op::Mark(number, number)));
    assert_eq!(world.transaction(&mut model, &ops, support::End::Commit), None);
    model
}

/// Checks that the store has the content of the model, that nothing is locked, and that the next
/// transactions work.
pub(crate) fn check<P: Policy>(world: &World<P>, model: &mut Model) {
    world.check(model).unwrap();
    world.check_unlocked(model);
    world.check(model).unwrap();
    world.check_entries(model);
    let more = [Op::Insert(7, Person { code: 7, town: 1, balance: 70 }), Op::Delete(7)];
    let new = model.people.contains_key(&7);
    if !new {
        assert_eq!(world.transaction(model, &more, support::End::Commit), None);
        world.check(model).unwrap();
        world.check_entries(model);
    }
}

/// Calls the test of each policy.
macro_rules! each_policy {
    ($test:ident($($argument:expr),*)) => {{
        $test::<$crate::Optimistic>($($argument),*);
        $test::<$crate::Locking<$crate::NoWait>>($($argument),*);
        $test::<$crate::Locking<$crate::WaitDie>>($($argument),*);
        $test::<$crate::StudyPolicy>($($argument),*);
    }};
}
pub(crate) use each_policy;

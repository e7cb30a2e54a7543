//! The kinds of stores that tests make, and a limit of time for a test of one.

use super::Structures;
use silvics_store::{Locking, NoWait, Study, lock::Latched};
use silvics_sync::pthread::PthreadLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The structures of indexes. Removals from some of them allocate.
pub(crate) const STRUCTURES: [Structures; 4] =
    [("words", "blocks"), ("art", "art"), ("skiplist", "skiplist"), ("edge-ext-lf", "lfca-tree")];

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

/// Calls the test of each policy.
macro_rules! each_policy {
    ($test:ident($($argument:expr),*)) => {{
        $test::<silvics_store::Optimistic>($($argument),*);
        $test::<silvics_store::Locking<silvics_store::NoWait>>($($argument),*);
        $test::<silvics_store::Locking<silvics_store::WaitDie>>($($argument),*);
        $test::<$crate::support::kinds::StudyPolicy>($($argument),*);
    }};
}
pub(crate) use each_policy;

//! Maps that are driven as peers are, and whose histories `silvics verify` records: the writes of
//! each one, with their answers.
//!
//! The checker needs the value that each write replaced, removed or found. So a peer makes only
//! those of its writes that return this value. A call that changed nothing and returns no value is
//! left out of the history, which stays sound: such a call affects no other answer.
//!
//! | peer | put-if-absent | upsert | remove | compare-exchange |
//! |---|---|---|---|---|
//! | `arctic-map` | yes | yes | yes | – |
//! | `artmap` | yes | yes | yes | – |
//! | `btreemap-rwlock`, `btreemap-mutex` | yes | yes | yes | – |
//! | `crossbeam-skiplist` | yes | – | yes | – |
//! | `congee` | – | yes | yes | yes |
//! | `scc` | if it inserts | – | yes | – |
//! | `masstree` | – | yes | yes | – |
//! | `concurrent-map` | yes | yes | yes | yes |
//! | `ferntree` (`u64` only) | – | yes | yes | – |
//! | `skipmap`, which is ours | yes | – | yes | – |

use super::peer::Peer;
use crate::contender::forms::Lent;
use crate::contender::{Contender, Session};
use crate::interrupt;
use silvics::IndexKey;
use silvics_testkit::TestKey;
use silvics_testkit::clock::Clock;
use silvics_testkit::history::Op;
use silvics_testkit::verify::{self, Foreign, ForeignCalls, Write, verify_foreign};

/// A peer whose histories can be recorded.
pub trait Recorded: Peer {
    /// Makes a write and returns it with its answer. `None` means what [`ForeignCalls::write`]
    /// says.
    fn write(
        session: &mut Self::Session<'_>,
        key: <Self::Key as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op>;
}

/// Records histories of a peer and checks them.
pub fn verify<P: Recorded<Key: TestKey>>(plan: &verify::Plan, clock: &Clock) -> verify::Report {
    let make = || -> Box<dyn Foreign<P::Key>> { Box::new(Map(P::default())) };
    verify_foreign(plan, clock, make, interrupt::pending_beat)
}

/// A peer as a map whose histories are recorded.
struct Map<P>(P);

impl<P: Recorded> Foreign<P::Key> for Map<P> {
    fn calls(&self) -> Box<dyn ForeignCalls<P::Key> + '_> {
        Box::new(Calls::<P>(self.0.session()))
    }

    fn scans(&self) -> bool {
        P::SCANS
    }
}

/// The calls of a thread, through its session.
struct Calls<'a, P: Contender>(P::Session<'a>);

impl<P: Recorded> ForeignCalls<P::Key> for Calls<'_, P> {
    fn get(&mut self, key: <P::Key as IndexKey>::Ref<'_>) -> Option<u64> {
        self.0.get(key)
    }

    fn write(&mut self, key: <P::Key as IndexKey>::Ref<'_>, write: Write) -> Option<Op> {
        P::write(&mut self.0, key, write)
    }

    fn scan(
        &mut self,
        from: <P::Key as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut dyn FnMut(<P::Key as IndexKey>::Ref<'_>, u64),
    ) {
        self.0.scan(from, limit, &mut |key, value| {
            <P::Session<'_> as Session>::Lent::whole(key, |key| visit(key, value));
        });
    }

    fn refresh(&mut self) {
        self.0.refresh();
    }
}

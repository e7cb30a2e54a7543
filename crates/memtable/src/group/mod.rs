//! Groups of writers: one of them writes the log for all, and they insert in parallel.
//!
//! # Source
//! RocksDB's `WriteThread` (`db/write_thread.h`, D50589): the list of writers, leaders, adaptive
//! waiting with its constants.
//!
//! # Algorithm
//! Writers push themselves onto a lock-free list, the newest first. A writer that finds the list
//! empty *leads*; the others wait. A leader takes a part of the list, from itself on, as its group.
//! ```text
//! write(w): push w; if the list was empty: lead, else wait until w leads, inserts, or is done
//! lead:     collect the group; give sequence numbers; append the group's batches to the log
//!           launch the followers; insert the own batch; insert the batches that no follower claims
//! follow:   claim the own batch; if the leader has not: insert it
//! the thread that inserts the last batch of the group:
//!           publish the last sequence number; hand the lead to the oldest writer behind the group,
//!           or empty the list; tell all writers of the group that they are done
//! ```
//!
//! In a *pipeline* the leader hands the lead over before the insertion, so groups insert beside one
//! another, and `turns.rs` publishes them in the order of their numbers:
//! ```text
//! lead:     collect the group; give numbers and a ticket; append to the log; hand the lead over
//!           launch the followers, and insert as above
//! the thread that inserts the last batch of the group:
//!           if it is the group's turn: publish it, and the groups behind it that wait for their
//!           turn; tell their writers
//! ```
//!
//! # Departures
//! 1. **Claims.** In the source each follower inserts its own batch, and the group waits for the
//!    slowest. Here the leader inserts the batches that nobody has claimed when it is done with its
//!    own. So a follower that sleeps, or does not run, delays nobody, and is woken once: when it is
//!    done. A follower that waits awake claims its batch at once.
//! 2. **No mutex.** The leader alone changes the set of tables that takes writes, so leading is the
//!    only lock. RocksDB also takes its mutex once for each group.
//! 3. **Pipelines that insert.** RocksDB's `enable_pipelined_write` lets one group append to the
//!    log while another one inserts. Here any number of groups insert at once, so two writers on
//!    two cores need not wait until a group of both is formed.
//! 4. The list is not limited to one kind of work: a switch of tables is a writer without a batch.
//!
//! # Invariants
//! * G1: a writer stays at its address, in the frame of its thread, from its push until its state
//!   is `DONE`. The thread that sets `DONE` does not touch it afterwards.
//! * G2: at most one writer leads. The next one leads only after the group before it has handed the
//!   lead over, so groups are in one order.
//! * G3: `older` of a pushed writer leads to the writer pushed before it, and is null for the
//!   leader. `newer` is set by leaders alone.
//! * G4: the batch of a writer in a parallel group is inserted by the thread that has turned
//!   `claimed` from false to true.
//! * G5: a group lives in the leader's frame. `remaining` is the number of batches that are not
//!   inserted. A thread that has lowered `remaining` does not touch the group afterwards, unless it
//!   has lowered it to 0, or publishes the group in its turn. That thread touches it until it has
//!   set the leader's state.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `newest` | CAS of `push` | `AcqRel` / Relaxed | itself, `collect`, `hand_over` | see O1 |
//! | `newest` | load of `collect` | Acquire | `push` | the writers are initialised |
//! | `newest` | CAS of `hand_over` to null | Release / Acquire | `push` | see O1; else there are writers to read |
//! | `state` | `set`, `set_if_awake` | Release | `load` | publishes number, group, outcome, the lead |
//! | `state` | `load` | Acquire | `set` | the waiter reads them |
//! | `state` | CAS to `BLOCKED` | `AcqRel` / Acquire | `set` | publishes the thread to be woken |
//! | `older`, `newer` | all | Relaxed | – | ordered by `newest` or by the lead |
//! | `claimed` | swap | Relaxed | – | decides who inserts; the batch is published by `state`, and its insertion by `remaining` |
//! | `remaining` | `fetch_sub` | `AcqRel` | itself | all insertions come before the sequence number is published |
//! | `credit` | all | Relaxed | – | a heuristic |
//!
//! O1: a push publishes the writer, and pushes form a release sequence, so a leader sees all
//! writers behind it. A writer that finds null sees the state that the leader before it has left.
//!
//! # Checked by
//! `tests.rs` under Miri: no thread uses a frame that has ended (G1, G5). `loom.rs`, which has no
//! groups with batches: the wake-up of a blocked writer, three writers that push while one leaves,
//! and the turns of three groups. The tests of the buffer with threads and losses of power, its
//! schedules (G4: a batch that is claimed and forgotten), and `silvics verify --index memtable`.

#[cfg(all(test, silvics_loom))]
mod loom;
mod queue;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;
mod turns;
mod wait;

pub(crate) use queue::{Members, Queue, Role, Writer};
pub(crate) use turns::Turns;
pub use wait::WaitCounts;
pub(crate) use wait::{Site, State, Waiting};

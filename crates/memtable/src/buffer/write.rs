//! The write path: what a leader and its followers do.

use super::error::{Failure, SwitchError, WriteError};
use super::tables::{Tables, Taking};
use super::{SyncPolicy, WriteBuffer, WriteMode, WriteOptions};
use crate::batch::{Op, WriteBatch};
use crate::canary::{Canary, planted};
use crate::group::{Members, Queue, Role, Writer};
use crate::index::Index;
use crate::key::Seqno;
use crate::log::{LogError, LogWriter};
use crate::table::{Added, Table};
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use silvics_sync::thread::yield_now;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// The most bytes of a group's batches (RocksDB's `max_write_batch_group_size_bytes`).
const GROUP_BYTES: usize = 1 << 20;
/// A group whose leader has a small batch has at most this number of bytes more, so that a small
/// write is not slowed down much (RocksDB: an eighth of the above).
const BEHIND_SMALL: usize = GROUP_BYTES / 8;

pub(super) type Waiter = Writer<WriteError>;

/// Calls a function, and returns `None` if it panics.
///
/// The payload is leaked: its destructor may panic, and would unwind through the frame of a writer
/// that others still use (G1).
fn caught<R>(call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(payload) => {
            std::mem::forget(payload);
            None
        }
    }
}

/// The bytes that an entry takes beside its own in the index and the arena: an estimate. Memory
/// comes in pages and slabs, so a table may lack room for less.
const BESIDE_ENTRY: usize = 128;

/// An estimate of the bytes that the batches of a group take in a table.
fn needed(members: &Members<WriteError>) -> usize {
    let batches = members.iter().filter_map(Writer::batch);
    batches.map(|batch| batch.bytes().len() + BESIDE_ENTRY * batch.len() as usize).sum()
}

/// The state that belongs to the leader.
pub(super) struct Lead<I: Index> {
    /// The table that takes writes.
    pub(super) active: Arc<Taking<I>>,
    pub(super) log: Option<LogWriter>,
    /// The number of the next log.
    pub(super) next_log: u64,
    /// The number of a log whose creation has failed, and that may be there nevertheless.
    pub(super) unfinished: Option<u64>,
    /// The sequence number of the next operation.
    pub(super) next: Seqno,
    /// The groups that were numbered in the pipelined mode: the ticket of the next one.
    pub(super) tickets: u64,
    /// The bytes that groups may still take which were numbered since none was on its way.
    pub(super) promised: usize,
}

impl<I: Index> Lead<I> {
    /// Without a log, whose numbers begin with 0 if there will be one.
    pub(super) fn new(active: Arc<Taking<I>>, next: Seqno) -> Self {
        Self { active, log: None, next_log: 0, unfinished: None, next, tickets: 0, promised: 0 }
    }
}

/// A group whose batches are inserted in parallel (G5).
///
/// Its table is a pointer: once the group is visible, the table may be flushed and dropped, while
/// the leader still waits.
struct Group<I: Index> {
    members: Members<WriteError>,
    table: NonNull<Table<I>>,
    remaining: AtomicUsize,
    failure: OnceLock<Failure>,
    last: Seqno,
    /// In the pipelined mode.
    ticket: Option<u64>,
    /// Whether its turn came after a failure. Written and read by the thread whose turn it is.
    refused: AtomicBool,
}

impl<I: Index> WriteBuffer<I> {
    /// Writes a batch as a whole, and returns the sequence number of its last operation.
    ///
    /// It may share a group, with one append to the log and one sync, with writes of other threads.
    /// When it returns, all reads see it. An empty batch writes nothing, but may sync.
    pub fn write(&self, batch: &WriteBatch, options: WriteOptions) -> Result<Seqno, WriteError> {
        self.check_batch(batch)?;
        self.check_writable()?;
        let sync = options.sync || self.options.sync == SyncPolicy::EveryGroup;
        let writer = Waiter::new(Some(batch), sync);
        // SAFETY: G1: the writer stays in this frame until it is done: `lead`, `follow` and
        // `wait_done` return only then, and do not unwind.
        match unsafe { self.queue.join(&writer) } {
            Role::Lead => self.lead(&writer),
            Role::Insert => {
                self.follow(&writer);
                self.queue.wait_done(&writer);
            }
            Role::Nothing => {}
        }
        let last = (writer.seqno() + u64::from(batch.len())).saturating_sub(1);
        if let Some(error) = writer.into_error() {
            return Err(error);
        }
        if self.options.mode == WriteMode::UnorderedUnrepeatableReads {
            self.insert_late(last, batch)?;
        }
        Ok(last)
    }

    /// Refuses a batch that fits no table, and one with a range that ends before it starts.
    fn check_batch(&self, batch: &WriteBatch) -> Result<(), WriteError> {
        let bytes = batch.bytes().len();
        if let Some(limit) = self.options.table.limit.filter(|limit| bytes > *limit) {
            return Err(WriteError::Limit { bytes, limit });
        }
        let comparator = &*self.options.table.comparator;
        for (operation, op) in batch.ops().enumerate() {
            if let Op::DeleteRange { from, to } = op
                && comparator.compare(from, to).is_gt()
            {
                return Err(WriteError::Range { operation });
            }
        }
        Ok(())
    }

    pub(super) fn check_writable(&self) -> Result<(), WriteError> {
        match self.failure.get() {
            Some(failure) => Err(WriteError::ReadOnly(failure.clone())),
            None => Ok(()),
        }
    }

    /// Leads a group: logs it, inserts it, and lets it leave.
    fn lead(&self, writer: &Waiter) {
        let own = writer.batch().map_or(0, |batch| batch.bytes().len());
        let most = if own <= BEHIND_SMALL { own + BEHIND_SMALL } else { GROUP_BYTES };
        let mut bytes = own;
        let most = most.min(self.options.table.limit.unwrap_or(usize::MAX));
        let admit = |next: &Waiter| {
            let Some(batch) = next.batch() else { return false };
            bytes = bytes.saturating_add(batch.bytes().len());
            bytes <= most && (writer.sync || !next.sync)
        };
        // SAFETY: the writer leads.
        let members = unsafe { self.queue.collect(writer, admit) };
        let prepared = self.guarded(|| self.prepare(&members));
        let (table, last) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.leave(members, Some(&error)),
        };
        match self.options.mode {
            WriteMode::UnorderedUnrepeatableReads => {
                self.pending.fetch_add(members.count, Ordering::Relaxed);
                self.publish(last);
                self.leave(members, None);
            }
            WriteMode::Pipelined => self.lead_in_parallel(writer, members, table, last),
            WriteMode::Parallel if members.count > 1 => {
                self.lead_in_parallel(writer, members, table, last);
            }
            _ => {
                // SAFETY: this thread leads, so the table is not frozen.
                let table = unsafe { table.as_ref() };
                let inserted =
                    members.iter().try_for_each(|member| Self::insert(table, member, false));
                self.complete(members, inserted.err(), last);
            }
        }
    }

    /// Launches the followers of a group, and inserts what they do not.
    fn lead_in_parallel(
        &self,
        writer: &Waiter,
        members: Members<WriteError>,
        table: NonNull<Table<I>>,
        last: Seqno,
    ) {
        let (remaining, failure) = (AtomicUsize::new(members.count), OnceLock::new());
        let pipelined = self.options.mode == WriteMode::Pipelined;
        let ticket = pipelined.then(|| self.take_ticket());
        let refused = AtomicBool::new(false);
        let group = Group { members, table, remaining, failure, last, ticket, refused };
        let at = NonNull::from(&group);
        if let Some(ticket) = ticket {
            // SAFETY: this thread leads: it has collected the members, takes the next ticket, and
            // hands over once. The group stays until its own writer, which waits below, is done.
            unsafe {
                self.turns.enter(ticket, at.cast());
                self.queue.hand_over(members);
            }
        }
        if members.count == 1 {
            Self::insert_of(&group, writer);
            // SAFETY: G5: nobody else has the only batch, which is inserted now.
            unsafe { self.conclude(at) };
            return self.queue.wait_done(writer);
        }
        for member in members.iter().skip(1) {
            member.launch(at.as_ptr().cast());
        }
        let mut inserted = 0;
        for (number, member) in members.iter().enumerate() {
            if member.claim() {
                if number == 0 || !planted(Canary::ClaimedAndForgotten) {
                    Self::insert_of(&group, member);
                }
                inserted += 1;
            }
        }
        // If followers still insert, the last of them completes the group.
        // SAFETY: G5: these batches were counted, and are inserted now.
        unsafe { self.finish(at, inserted) };
        self.queue.wait_done(writer);
    }

    /// The ticket of the group that this thread leads.
    fn take_ticket(&self) -> u64 {
        // SAFETY: this thread leads (G2), and makes no other reference to the state meanwhile.
        let tickets = unsafe { &mut self.lead_mut().tickets };
        *tickets += 1;
        *tickets - 1
    }

    /// Inserts the batch of a follower, unless the leader does.
    fn follow(&self, writer: &Waiter) {
        if !writer.claim() {
            return;
        }
        let group = NonNull::new(writer.group().cast::<Group<I>>());
        let group = group.expect("launched with a group");
        // SAFETY: G5: this batch is not inserted, so the group stays.
        unsafe {
            Self::insert_of(group.as_ref(), writer);
            self.finish(group, 1);
        }
    }

    /// Inserts the batch of a member of a parallel group.
    fn insert_of(group: &Group<I>, member: &Waiter) {
        // SAFETY: a batch of the group is not inserted, so its table is neither frozen nor dropped.
        let table = unsafe { group.table.as_ref() };
        if let Err(failure) = Self::insert(table, member, true) {
            group.failure.get_or_init(|| failure);
        }
    }

    /// Notes that batches of a group are inserted, and completes the group if they are the last.
    ///
    /// The group is a pointer, because the leader's frame may end during the call: when other
    /// batches are the last, or once the leader is done.
    ///
    /// # Safety
    /// G5: this number of batches of the group was inserted and is not lowered yet.
    unsafe fn finish(&self, group: NonNull<Group<I>>, inserted: usize) {
        let at = group;
        let group = group.as_ptr();
        if planted(Canary::SequencePublishedEarly) {
            // SAFETY: G5: the group stays until `remaining` is lowered.
            self.publish(unsafe { (*group).last });
        }
        // SAFETY: G5: it is lowered here.
        let before = unsafe { (*group).remaining.fetch_sub(inserted, Ordering::AcqRel) };
        if before == inserted {
            // SAFETY: G5: this thread has lowered it to 0.
            unsafe { self.conclude(at) };
        }
    }

    /// Completes a group whose batches are inserted, or notes that it waits for its turn.
    ///
    /// # Safety
    /// G5: this thread alone has found that all batches are inserted. The group may be gone when
    /// the call returns.
    unsafe fn conclude(&self, group: NonNull<Group<I>>) {
        let group = group.as_ptr();
        // SAFETY: G5: the leader waits until this thread has completed the group, or the thread
        // that publishes it in its turn.
        let (members, last, ticket, failure) = unsafe {
            let failure = (*group).failure.get();
            ((*group).members, (*group).last, (*group).ticket, failure.cloned())
        };
        let Some(ticket) = ticket else { return self.complete(members, failure, last) };
        if planted(Canary::SequencePublishedEarly) {
            self.publish(last);
        }
        // SAFETY: the ticket is that of the group, and this is the one call for it.
        unsafe {
            // SAFETY: P3: the groups have entered, it is their turn, and they stay until told.
            let publish = |group: NonNull<()>| self.take_turn(group.cast().as_ref());
            self.turns.inserted(ticket, publish, |group| self.tell(group.cast()));
        }
    }

    /// Publishes a group in its turn, unless it or one before it has failed.
    fn take_turn(&self, group: &Group<I>) {
        if let Some(failure) = group.failure.get() {
            self.fail(failure.clone());
            self.broken.store(true, Ordering::Relaxed);
        }
        if self.broken.load(Ordering::Relaxed) {
            group.refused.store(true, Ordering::Relaxed);
        } else {
            self.publish(group.last);
        }
    }

    /// Tells the writers of a group that it had its turn.
    ///
    /// # Safety
    /// P3: the group was told nothing yet. It may be gone when the call returns.
    unsafe fn tell(&self, group: NonNull<Group<I>>) {
        // SAFETY: the caller's promise. No reference to the group is kept.
        let (members, refused) = unsafe {
            let group = group.as_ptr();
            ((*group).members, (*group).refused.load(Ordering::Relaxed))
        };
        let failure = self.failure.get().filter(|_| refused);
        let error = failure.cloned().map(WriteError::ReadOnly);
        // SAFETY: the group has handed the lead over, and this is the one call for it. No writer of
        // it is used here any more.
        unsafe { Queue::dismiss(members, error.as_ref()) };
    }

    /// Publishes the numbers of a group, or notes its failure, and lets it leave.
    fn complete(&self, members: Members<WriteError>, failure: Option<Failure>, last: Seqno) {
        if let Some(failure) = failure {
            let error = self.fail(failure);
            return self.leave(members, Some(&error));
        }
        self.publish(last);
        self.leave(members, None);
    }

    fn leave(&self, members: Members<WriteError>, error: Option<&WriteError>) {
        // SAFETY: this thread completes the group of the leader of now, once.
        unsafe { self.queue.leave(members, error) };
    }

    /// LP(write): all reads that begin later see the group.
    fn publish(&self, last: Seqno) {
        self.visible.store(last, Ordering::Release);
    }

    /// Makes the buffer read-only, and returns the error that says so.
    fn fail(&self, failure: Failure) -> WriteError {
        WriteError::ReadOnly(self.failure.get_or_init(|| failure).clone())
    }

    /// Calls a function of the leader. Its panic is that of the comparator or of the log's storage.
    pub(super) fn guarded<R>(
        &self,
        call: impl FnOnce() -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        caught(call).unwrap_or_else(|| Err(self.fail(Failure::Panic)))
    }

    /// Gives a group its sequence numbers and appends it to the log. Returns the table that takes
    /// it, and its last number.
    fn prepare(
        &self,
        members: &Members<WriteError>,
    ) -> Result<(NonNull<Table<I>>, Seqno), WriteError> {
        self.check_writable()?;
        // SAFETY: this thread leads (G2), and makes no other reference to the state meanwhile.
        let lead = unsafe { self.lead_mut() };
        self.make_room(lead, members)?;
        let mut next = lead.next;
        for member in members.iter() {
            member.set_seqno(next);
            next += u64::from(member.batch().map_or(0, WriteBatch::len));
        }
        if let Some(log) = &mut lead.log {
            let of_log = |error| self.fail(Failure::Log(Arc::new(error)));
            let mut records = Vec::with_capacity(members.count);
            let filled = |member: &Waiter| member.batch().is_some_and(|batch| !batch.is_empty());
            for member in members.iter().filter(|member| filled(member)) {
                records.extend(member.batch().map(|batch| (member.seqno(), batch)));
            }
            self.log_appends.fetch_add(1, Ordering::Relaxed);
            log.append_group(&records).map_err(of_log)?;
            if members.iter().any(|member| member.sync) {
                self.log_syncs.fetch_add(1, Ordering::Relaxed);
                log.sync().map_err(of_log)?;
            }
        }
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(members.count as u64, Ordering::Relaxed);
        lead.next = next;
        Ok((NonNull::from(&*lead.active.table), next - 1))
    }

    /// Begins another table if the present one is full, or if a group would not fit into it.
    fn make_room(
        &self,
        lead: &mut Lead<I>,
        members: &Members<WriteError>,
    ) -> Result<(), WriteError> {
        if lead.active.table.is_full(self.options.table_bytes) {
            self.switch_as_leader(lead)?;
        }
        if self.options.table.limit.is_none() {
            return Ok(());
        }
        let needed = needed(members);
        if lead.promised + needed > lead.active.table.left() {
            self.settle(lead)?; // now the table has what was promised
            if needed > lead.active.table.left() && !lead.active.table.is_empty() {
                self.switch_as_leader(lead)?;
            }
        }
        lead.promised += needed;
        Ok(())
    }

    /// Waits until no group is on its way, as the leader.
    fn settle(&self, lead: &mut Lead<I>) -> Result<(), WriteError> {
        if !planted(Canary::PendingIgnored) {
            self.turns.wait_for(lead.tickets);
            while self.pending.load(Ordering::Acquire) > 0 {
                yield_now();
            }
        }
        lead.promised = 0;
        self.check_writable() // one of them may have failed (W5)
    }

    /// Inserts the batch of a writer.
    fn insert(table: &Table<I>, writer: &Waiter, shared: bool) -> Result<(), Failure> {
        let Some(batch) = writer.batch() else { return Ok(()) };
        let call = || {
            let guard = table.domain().pin();
            let (mut seqno, mut added) = (writer.seqno(), Added::default());
            let result = batch.ops().try_for_each(|op| {
                // SAFETY: unless `shared`, only the leader inserts.
                let result = unsafe { table.add_counted(seqno, op, shared, &guard, &mut added) };
                seqno += 1;
                result
            });
            table.count(added);
            result.map_err(Failure::Alloc)
        };
        caught(call).unwrap_or(Err(Failure::Panic))
    }

    /// Inserts a batch whose numbers are published already.
    fn insert_late(&self, last: Seqno, batch: &WriteBatch) -> Result<(), WriteError> {
        struct Done<'b>(&'b AtomicUsize);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        let _done = Done(&self.pending);
        let writer = Waiter::new(Some(batch), false);
        writer.set_seqno(last + 1 - u64::from(batch.len()));
        // No leader switches while the batch is pending, so this is the table of its group.
        let table = caught(|| self.with_tables(|tables| Arc::clone(&tables.active.table)));
        let table = table.ok_or_else(|| self.fail(Failure::Panic))?;
        Self::insert(&table, &writer, true).map_err(|failure| self.fail(failure))
    }

    /// Freezes the table that takes writes, if it has any entry, and puts an empty one in its
    /// place. Returns whether it had one.
    pub fn switch(&self) -> Result<bool, WriteError> {
        self.check_writable()?;
        self.as_leader(|lead| {
            self.check_writable()?;
            if lead.active.table.is_empty() {
                return Ok(false);
            }
            self.switch_as_leader(lead).map(|()| true)
        })
    }

    /// Calls a function as the leader of a group without batches.
    pub(super) fn as_leader<R>(
        &self,
        call: impl FnOnce(&mut Lead<I>) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        let writer = Waiter::new(None, false);
        // SAFETY: G1: the writer stays in this frame until its group has left.
        let role = unsafe { self.queue.join(&writer) };
        assert_eq!(role, Role::Lead, "no group admits a writer without a batch");
        // SAFETY: the writer leads.
        let members = unsafe { self.queue.collect(&writer, |_| false) };
        // SAFETY: this thread leads (G2).
        let result = self.guarded(|| call(unsafe { self.lead_mut() }));
        self.leave(members, None);
        result
    }

    /// Begins the next log. If this has failed before, the log of that attempt is removed first.
    /// The log before it may have taken more records since, so it begins too early. If that log
    /// came to be the oldest one, recovery would begin with it, and would find a gap behind it.
    fn next_log(&self, lead: &mut Lead<I>) -> Result<LogWriter, LogError> {
        let storage = self.storage.as_ref().expect("a buffer with a log has its storage");
        if let Some(number) = lead.unfinished
            && storage.numbers().map_err(LogError::list)?.contains(&number)
        {
            storage.remove(number).map_err(|error| LogError::remove(number, error))?;
        }
        // A removal that has failed may have removed the log. The sync of the new log makes that
        // durable.
        let number = lead.next_log;
        lead.next_log = number.checked_add(1).ok_or(LogError::NumberRange)?;
        lead.unfinished = Some(number);
        let name = self.options.table.comparator.name();
        let log = LogWriter::create(&**storage, number, lead.next, name)?;
        lead.unfinished = None;
        Ok(log)
    }

    /// Freezes the table that takes writes. After an error the table stays.
    fn switch_as_leader(&self, lead: &mut Lead<I>) -> Result<(), WriteError> {
        let frozen = self.with_tables(|tables| tables.frozen.len());
        if frozen >= self.options.max_frozen {
            return Err(WriteError::Stalled { frozen });
        }
        self.settle(lead)?;
        let refused = |error| WriteError::Switch(Arc::new(error));
        let table = Table::new(&self.options.table, self.domain.clone());
        let table = table.map_err(|error| refused(SwitchError::Table(error)))?;
        let number = lead.next_log;
        if let Some(log) = &mut lead.log {
            // A log is synced before the next one begins, so no hole can come between two records.
            log.sync().map_err(|error| self.fail(Failure::Log(Arc::new(error))))?;
            let log = self.next_log(lead);
            lead.log = Some(log.map_err(|error| refused(SwitchError::Log(error)))?);
        }
        let first = lead.next;
        let next = Arc::new(Taking { table: Arc::new(table), log: number, first });
        let frozen = std::mem::replace(&mut lead.active, Arc::clone(&next));
        let last = first - 1;
        self.change_tables(|tables| {
            let mut all = vec![super::tables::Frozen { taken: frozen, last }];
            all.extend(tables.frozen.iter().cloned());
            Tables { active: next, frozen: all }
        });
        Ok(())
    }
}

//! Opening a buffer with a log.

use super::tables::{Frozen, Tables, Taking};
use super::write::Lead;
use super::{BufferOptions, OpenError, WriteBuffer};
use crate::index::{Index, SetupError};
use crate::log::{LogError, LogStorage, LogWriter, Record, Recovery, RecoveryError, recover_logs};
use crate::table::{Table, TableOptions};
use silvics::Domain;
use std::sync::Arc;

/// The tables that recovery fills.
struct Filling<'o, I: Index> {
    options: &'o BufferOptions,
    domain: Domain,
    active: Option<Arc<Taking<I>>>,
    /// The oldest one first.
    frozen: Vec<Frozen<I>>,
}

impl<I: Index> Filling<'_, I> {
    /// A table for a record. It has no limit: the log has accepted all records, also one that no
    /// table had room for.
    fn unlimited(&self) -> Result<Arc<Table<I>>, SetupError> {
        let options = TableOptions { limit: None, ..self.options.table.clone() };
        Table::new(&options, self.domain.clone()).map(Arc::new)
    }

    /// Adds the batch of a record, to a new table if the present one is full.
    fn apply(&mut self, record: &Record<'_>) -> Result<(), SetupError> {
        let full = |taking: &Taking<I>| taking.table.is_full(self.options.table_bytes);
        if let Some(taken) = self.active.take_if(|taking| full(taking)) {
            self.frozen.push(Frozen { taken, last: record.first_seqno - 1 });
        }
        let taking = if let Some(taking) = &self.active {
            Arc::clone(taking)
        } else {
            let (log, first) = (record.log, record.first_seqno);
            let taking = Arc::new(Taking { table: self.unlimited()?, log, first });
            Arc::clone(self.active.insert(taking))
        };
        let guard = self.domain.pin();
        for (seqno, op) in (record.first_seqno..).zip(record.batch.ops()) {
            // SAFETY: this is the only thread that has the table.
            unsafe { taking.table.add(seqno, op, false, &guard)? };
        }
        Ok(())
    }
}

impl<I: Index> WriteBuffer<I> {
    /// Opens a buffer over the logs of a storage: recovers what they have, and begins another log.
    /// A storage without logs gives an empty buffer.
    ///
    /// All records up to the first hole are in the buffer and durable. [`Recovery`] reports where
    /// it stopped. Whole logs behind a hole have synced records, since no crash makes such a hole:
    /// a log was damaged or is missing. Then the call fails and changes nothing, unless
    /// [`BufferOptions::drop_left_out`] lets it remove these logs. Full tables are frozen, and
    /// there may be more of them than `max_frozen`: flush them. The limit of tables does not hold
    /// for those that recovery fills.
    pub fn recover(
        options: BufferOptions,
        storage: Arc<dyn LogStorage>,
    ) -> Result<(Self, Recovery), OpenError> {
        options.check()?;
        let mut filling =
            Filling { options: &options, domain: Domain::new(), active: None, frozen: Vec::new() };
        let name = options.table.comparator.name();
        let recovery = recover_logs(&*storage, name, |record| filling.apply(record));
        let recovery = recovery.map_err(|error| match error {
            RecoveryError::Log(error) => OpenError::Log(error),
            RecoveryError::Apply { error, .. } => OpenError::Table(error),
        })?;
        if recovery.left_out_bytes > 0 && !options.drop_left_out {
            return Err(OpenError::LeftOut(Box::new(recovery)));
        }
        let (number, next) = (recovery.next_number, recovery.last_seqno + 1);
        let log = LogWriter::create(&*storage, number, next, name)?;
        // Logs that were left out do not continue the others. They go first: without the logs
        // before them they would be taken for the beginning.
        for &number in &recovery.left_out {
            storage.remove(number).map_err(|error| LogError::remove(number, error))?;
        }
        let active = if let Some(active) = filling.active.take() {
            active
        } else {
            let table = Table::new(&options.table, filling.domain.clone())?;
            Arc::new(Taking { table: Arc::new(table), log: number, first: next })
        };
        let next_log = number.saturating_add(1);
        let lead = Lead { log: Some(log), next_log, ..Lead::new(Arc::clone(&active), next) };
        filling.frozen.reverse();
        let tables = Tables { active, frozen: filling.frozen };
        let domain = filling.domain;
        Ok((Self::of_parts(options, domain, Some(storage), lead, tables), recovery))
    }
}

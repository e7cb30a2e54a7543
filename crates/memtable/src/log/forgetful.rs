//! A storage of logs that loses power, for tests of recovery.
//!
//! [`Forgetful`] keeps logs in memory and knows what of them was synced. [`Forgetful::power_loss`]
//! returns the storage as it may be after a power failure, chosen by a seed:
//!
//! * Bytes that were synced are there.
//! * A sector of 512 bytes that was appended and not synced is there, or it is zeros, random bytes
//!   or bytes of another log, also behind a beginning that is right. A later sector may be there
//!   without an earlier one. The file may end before any of them.
//! * A log whose first sync has not returned may be missing. A log whose removal has failed may be
//!   there or not, until a later removal, [`LogStorage::sync`] or first sync succeeds.
//! * A failed sync is final for the bytes that it was called for: a later [`LogFile::sync`] that
//!   reports success does not make them durable, as with `fsync` of Linux. [`LogStorage::sync`]
//!   does, because it writes them again.
//!
//! One assumption is made of the medium: to write a part of a sector does not harm bytes of the
//! sector that were durable before.
//!
//! [`Forgetful::inject`] lets chosen calls fail.

use super::error::Action;
use super::storage::{LogFile, LogStorage};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_sync::Mutex;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

/// The bytes of a sector, of which the medium writes one at a time.
pub const SECTOR_BYTES: usize = 512;

/// The error of an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// The medium failed: `EIO`.
    Io,
    /// The medium is full: `ENOSPC`.
    NoSpace,
}

impl From<FaultError> for io::Error {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Io => io::Error::other("input/output error (injected)"),
            FaultError::NoSpace => {
                io::Error::new(io::ErrorKind::StorageFull, "no space left on device (injected)")
            }
        }
    }
}

/// Calls that will fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The calls that count, or `None` for calls of every kind.
    pub action: Option<Action>,
    /// The number of these calls that succeed before one fails.
    pub after: u64,
    /// The error.
    pub error: FaultError,
    /// Whether the failing call has an effect nevertheless: a part of the bytes is appended, or the
    /// bytes are durable, or the log is created. A failed removal may have an effect anyway.
    pub partly: bool,
    /// Whether the calls that follow fail as well.
    pub lasting: bool,
}

impl Fault {
    /// A single call of this kind fails with `EIO`, without an effect, after `after` successes.
    pub fn once(action: Action, after: u64) -> Self {
        let error = FaultError::Io;
        Self { action: Some(action), after, error, partly: false, lasting: false }
    }

    /// All calls of every kind fail with `EIO` after `after` successes, as if the power had failed.
    pub fn stop(after: u64) -> Self {
        Self { action: None, after, error: FaultError::Io, partly: true, lasting: true }
    }
}

/// A log in memory.
#[derive(Clone, Debug, Default)]
struct Disk {
    bytes: Vec<u8>,
    /// The bytes for which a sync was called.
    synced: usize,
    /// The bytes among them for which it has failed.
    dropped: Vec<Range<usize>>,
    /// Whether the existence of the log is durable.
    named: bool,
    /// Whether a removal has failed: the log is gone until the power fails.
    removed: bool,
    /// The number that the log may have again when the power fails: a renaming has failed.
    old_number: Option<u64>,
}

impl Disk {
    fn is_durable(&self, at: usize) -> bool {
        at < self.synced && !self.dropped.iter().any(|range| range.contains(&at))
    }

    fn durable_end(&self) -> usize {
        (0..self.synced).rev().find(|&at| self.is_durable(at)).map_or(0, |last| last + 1)
    }
}

#[derive(Debug, Default)]
struct State {
    disks: BTreeMap<u64, Disk>,
    faults: Vec<Fault>,
}

impl State {
    /// The first fault that this call meets.
    fn fault(&mut self, action: Action) -> Option<Fault> {
        let mut met = None;
        self.faults.retain_mut(|fault| {
            if fault.action.is_some_and(|only| only != action) {
                return true;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return true;
            }
            met.get_or_insert(*fault);
            fault.lasting
        });
        met
    }

    fn fail(&mut self, action: Action) -> io::Result<()> {
        self.fault(action).map_or(Ok(()), |fault| Err(fault.error.into()))
    }

    fn log(&mut self, number: u64) -> io::Result<&mut Disk> {
        let disk = self.disks.get_mut(&number).filter(|disk| !disk.removed);
        disk.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Makes the failed removals and renamings durable, as an `fsync` of a folder does.
    fn sync_removals(&mut self) {
        self.disks.retain(|_, disk| !disk.removed);
        self.disks.values_mut().for_each(|disk| disk.old_number = None);
    }

    fn sync(&mut self, number: u64) -> io::Result<()> {
        let fault = self.fault(Action::Sync);
        let disk = self.log(number)?;
        let unsynced = disk.synced..disk.bytes.len();
        disk.synced = disk.bytes.len();
        match fault {
            Some(fault) if !fault.partly => disk.dropped.push(unsynced),
            _ => {
                if !std::mem::replace(&mut disk.named, true) {
                    self.sync_removals();
                }
            }
        }
        fault.map_or(Ok(()), |fault| Err(fault.error.into()))
    }
}

/// A storage of logs in memory that loses power and refuses calls: see the module.
///
/// Clones share the logs.
#[derive(Clone, Debug, Default)]
pub struct Forgetful {
    state: Arc<Mutex<State>>,
}

impl Forgetful {
    /// A storage without logs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets calls fail from now on.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// Lets no call fail from now on. Logs keep what failed calls have done to them.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// The storage after a power failure, without faults. This one is unchanged.
    ///
    /// Equal storages and seeds give equal results.
    #[must_use]
    pub fn power_loss(&self, seed: u64) -> Self {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let before = self.state.lock();
        let mut disks = BTreeMap::new();
        for (&number, disk) in &before.disks {
            let doubtful = !disk.named || disk.removed;
            if doubtful && chance.random_bool(0.5) {
                continue;
            }
            let others: Vec<&Disk> = before
                .disks
                .iter()
                .filter(|(other, _)| **other != number)
                .map(|(_, d)| d)
                .collect();
            let bytes = after_power_loss(disk, &others, &mut chance);
            let synced = bytes.len();
            let number = disk.old_number.filter(|_| chance.random_bool(0.5)).unwrap_or(number);
            disks.insert(number, Disk { bytes, synced, named: true, ..Disk::default() });
        }
        let state = State { disks, faults: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Gives a log another number, which no log has. The renaming is durable when the call returns.
    /// One that has failed may have happened, and may be undone when the power fails: it becomes
    /// durable as a failed removal does. So files of other kinds, which are renamed, can be
    /// modelled as logs with large numbers.
    pub fn rename(&self, from: u64, to: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.fault(Action::Rename);
        state.log(from)?;
        if fault.is_none_or(|fault| fault.partly)
            && let Some(disk) = state.disks.remove(&from)
        {
            let old_number = fault.map(|_| from);
            state.disks.insert(to, Disk { old_number, ..disk });
        }
        if let Some(fault) = fault {
            return Err(fault.error.into());
        }
        state.sync_removals();
        Ok(())
    }

    /// Replaces the bytes of a log, as a damage to the medium would. They count as durable.
    pub fn overwrite(&self, number: u64, bytes: Vec<u8>) {
        let synced = bytes.len();
        let disk = Disk { bytes, synced, named: true, ..Disk::default() };
        self.state.lock().disks.insert(number, disk);
    }
}

/// The bytes of a log after a power failure.
fn after_power_loss(disk: &Disk, others: &[&Disk], chance: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let durable = disk.durable_end();
    // All is there, nothing is, or anything between.
    let kept = match chance.random_range(0..5) {
        0 => 1.0,
        1 => 0.0,
        _ => chance.random_range(0.0..1.0),
    };
    let len = match kept {
        _ if kept > 0.0 && chance.random_bool(0.5) => disk.bytes.len(),
        1.0 => disk.bytes.len(),
        0.0 => durable,
        _ => chance.random_range(durable..=disk.bytes.len()),
    };
    let mut bytes = disk.bytes[..len].to_vec();
    for start in (0..len).step_by(SECTOR_BYTES) {
        let sector = start..len.min(start + SECTOR_BYTES);
        if chance.random_bool(kept) || sector.clone().all(|at| disk.is_durable(at)) {
            continue;
        }
        let torn = if chance.random_bool(0.5) { chance.random_range(0..SECTOR_BYTES) } else { 0 };
        let content = chance.random_range(0..3);
        let other = (!others.is_empty()).then(|| others[chance.random_range(0..others.len())]);
        for at in sector.filter(|at| at - start >= torn && !disk.is_durable(*at)) {
            bytes[at] = match content {
                0 => 0,
                1 => chance.random(),
                _ => other.and_then(|other| other.bytes.get(at)).map_or(0, |&byte| byte),
            };
        }
    }
    bytes
}

impl LogStorage for Forgetful {
    fn create(&self, number: u64) -> io::Result<Box<dyn LogFile>> {
        let mut state = self.state.lock();
        let fault = state.fault(Action::Create);
        if state.disks.contains_key(&number) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if fault.is_none_or(|fault| fault.partly) {
            state.disks.insert(number, Disk::default());
        }
        match fault {
            Some(fault) => Err(fault.error.into()),
            None => Ok(Box::new(ForgetfulFile { state: Arc::clone(&self.state), number })),
        }
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut state = self.state.lock();
        state.fail(Action::List)?;
        Ok(state
            .disks
            .iter()
            .filter(|(_, disk)| !disk.removed)
            .map(|(&number, _)| number)
            .collect())
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        state.fail(Action::Read)?;
        Ok(state.log(number)?.bytes.clone())
    }

    fn sync(&self, number: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.sync(number)?;
        state.log(number)?.dropped.clear(); // the bytes were written again
        state.sync_removals();
        Ok(())
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.fault(Action::Remove);
        let disk = state.log(number)?;
        if let Some(fault) = fault {
            disk.removed = true;
            return Err(fault.error.into());
        }
        state.disks.remove(&number);
        state.sync_removals();
        Ok(())
    }
}

struct ForgetfulFile {
    state: Arc<Mutex<State>>,
    number: u64,
}

impl LogFile for ForgetfulFile {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        let mut state = self.state.lock();
        let fault = state.fault(Action::Append);
        let disk = state.log(self.number)?;
        let before = disk.bytes.len();
        for piece in pieces {
            disk.bytes.extend_from_slice(piece);
        }
        let Some(fault) = fault else { return Ok(()) };
        let added = if fault.partly { (disk.bytes.len() - before) / 2 } else { 0 };
        disk.bytes.truncate(before + added);
        Err(fault.error.into())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.state.lock().sync(self.number)
    }
}

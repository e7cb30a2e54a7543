//! Sections in transactions: the paper's fast path.
//!
//! A body of a transaction is the optimistic section. It reads versions and validates them, which
//! costs little and never fails in a transaction that commits. If it meets a lock, it returns
//! [`Abort::Busy`], and the transaction aborts with the paper's code 0xFF. A modify section takes
//! all its locks in one transaction. So after the commit the thread owns the locks of the nodes at
//! the end of its path, without having locked any above: they were teleported there.

use super::retry::{Abort, Retries};
use silvics_sync::htm::Rtm;

/// A kind of transactions.
pub(super) trait Transactions: 'static {
    /// Whether sections may run in transactions.
    const ARE_THERE: bool;

    /// Whether this machine can run them.
    fn can_run() -> bool;

    /// Runs a body in a transaction, which may abort for reasons of its own. The body does not
    /// unwind, allocate or free, and leaves nothing outside memory.
    fn run<R>(retries: &Retries, body: impl FnOnce() -> Result<R, Abort>) -> Result<R, Abort>;
}

/// No transactions.
#[derive(Debug)]
pub struct None;

impl Transactions for None {
    const ARE_THERE: bool = false;

    #[inline(always)]
    fn can_run() -> bool {
        false
    }

    #[inline(always)]
    fn run<R>(_retries: &Retries, body: impl FnOnce() -> Result<R, Abort>) -> Result<R, Abort> {
        body()
    }
}

/// Transactions of the CPU.
#[derive(Debug)]
pub struct ByCpu;

impl Transactions for ByCpu {
    const ARE_THERE: bool = true;

    #[inline(always)]
    fn can_run() -> bool {
        Rtm::detect().is_some()
    }

    #[inline(always)]
    fn run<R>(retries: &Retries, body: impl FnOnce() -> Result<R, Abort>) -> Result<R, Abort> {
        let Some(rtm) = Rtm::detect() else { return body() };
        // SAFETY: the body is a section: it reads nodes and exchanges the words of locks, and calls
        // nothing that unwinds or enters the system.
        unsafe { rtm.run(body) }.map_err(|status| retries.reason(status))
    }
}

/// The stand-in of transactions.
#[derive(Debug)]
pub struct BySoftware;

impl Transactions for BySoftware {
    const ARE_THERE: bool = true;

    fn can_run() -> bool {
        true
    }

    fn run<R>(retries: &Retries, body: impl FnOnce() -> Result<R, Abort>) -> Result<R, Abort> {
        match retries.inject() {
            Some(status) => Err(retries.reason(status)),
            Option::None => body(),
        }
    }
}

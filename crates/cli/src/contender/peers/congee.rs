//! The `congee` crate: an adaptive radix tree with optimistic lock coupling.
//!
//! # How it is driven
//! Through `Congee<usize, usize>`, the type that its README shows. Each session keeps one pinned
//! guard, because the docs of `pin` say "this can be expensive, try to reuse it", and repins it in
//! `refresh`. `U64Congee` is the same tree and was level.
//!
//! `insert` is the README's upsert, which writes nothing if the key already has this value.
//! `compute_or_insert`, the put-if-absent, was level or behind. Keys and values are a `usize` each,
//! which has 64 bits on the systems supported here.
//!
//! # Keys
//! Keys have eight bytes. Byte strings are impossible, because the length is part of the type.
//!
//! # Scans
//! `range` fills a buffer that the session keeps, and starts over if a node changes while it reads.
//! The end of a range is exclusive, so the adapter looks up the greatest key itself if the scan may
//! return another entry.

use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use congee::epoch::Guard;
use silvics::AllocError;
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;

const _: () = assert!(usize::BITS == 64, "congee's keys and values are a usize each");

/// The reason why an insertion cannot fail.
const ABORTS: &str = "the default allocator aborts instead";

/// `congee::Congee` with words as keys and values.
#[derive(Default)]
pub struct Congee {
    tree: congee::Congee<usize, usize>,
}

impl Peer for Congee {
    const NAME: &'static str = "congee";
    const CRATE: &'static str = "congee 0.4.1";
    const PAPER: &'static str = "Leis, Scheibner, Kemper and Neumann, DaMoN 2016";
    const TOPOLOGY: &'static str = "adaptive radix tree";
    const SYNC: &'static str = "optimistic lock coupling";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl Contender for Congee {
    type Key = u64;
    type Session<'a> = CongeeSession<'a>;

    fn session(&self) -> CongeeSession<'_> {
        CongeeSession { tree: &self.tree, guard: self.tree.pin(), buffer: Vec::new() }
    }
}

impl Recorded for Congee {
    fn write(session: &mut CongeeSession<'_>, key: u64, write: Write) -> Option<Op> {
        let (tree, guard, key) = (session.tree, &session.guard, key as usize);
        let word = |value: Option<usize>| value.map(|value| value as u64);
        match write {
            Write::Insert { value } => {
                let old = tree.insert(key, value as usize, guard);
                Some(Op::Insert { value, old: word(old.expect(ABORTS)) })
            }
            Write::Remove => Some(Op::Remove { old: word(tree.remove(&key, guard)) }),
            // The tree compares with a value, not with absence.
            Write::CompareExchange { expected: Some(expected), new } => {
                let to = new.map(|new| new as usize);
                let result = tree.compare_exchange(&key, &(expected as usize), to, guard);
                let outcome = result.map(|_| ()).map_err(word);
                Some(Op::CompareExchange { expected: Some(expected), new, outcome })
            }
            Write::TryInsert { .. } | Write::CompareExchange { .. } => None,
        }
    }
}

/// A thread's session: a pinned guard, and the buffer that scans fill.
pub struct CongeeSession<'a> {
    tree: &'a congee::Congee<usize, usize>,
    guard: Guard,
    buffer: Vec<(usize, usize)>,
}

impl Session for CongeeSession<'_> {
    type Key = u64;
    type Lent = u64;

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        self.tree.get(&(key as usize), &self.guard).map(|value| value as u64)
    }

    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        let old = self.tree.insert(key as usize, value as usize, &self.guard);
        Ok(old.expect(ABORTS).is_none())
    }

    #[inline]
    fn upsert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        self.insert(key, value)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> Result<bool, AllocError> {
        Ok(self.tree.remove(&(key as usize), &self.guard).is_some())
    }

    fn scan(&mut self, from: u64, limit: usize, visit: &mut impl FnMut(u64, u64)) -> usize {
        if self.buffer.len() < limit {
            self.buffer.resize(limit, (0, 0));
        }
        let buffer = &mut self.buffer[..limit];
        let mut seen = self.tree.range(&(from as usize), &usize::MAX, buffer, &self.guard);
        for &(key, value) in &buffer[..seen] {
            visit(key as u64, value as u64);
        }
        if seen < limit
            && let Some(value) = self.tree.get(&usize::MAX, &self.guard)
        {
            visit(u64::MAX, value as u64);
            seen += 1;
        }
        seen
    }

    #[inline]
    fn refresh(&mut self) {
        self.guard.repin();
    }
}

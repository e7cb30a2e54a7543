//! The `congee` crate: an adaptive radix tree with optimistic lock coupling.
//!
//! # How it is driven
//! Through `Congee<usize, usize>`, the face its README shows, with one pinned guard per session
//! (its docs: "this can be expensive, try to reuse it"), repinned in `refresh`. `U64Congee` is the
//! same tree and was level. `insert` is the README's upsert, which writes nothing where the value is
//! there already; `compute_or_insert`, the put-if-absent, was level or behind. Keys and values are
//! a `usize` each: 64-bit words on the systems supported here.
//!
//! # Keys
//! Eight bytes, never byte strings: the length is part of the type.
//!
//! # Scans
//! `range` fills a buffer, which the session keeps, and starts over where a node changes while it
//! reads. Its end is exclusive, so the greatest key is looked up when there is room for it.

use super::Peer;
use crate::contender::{Contender, Session};
use congee::epoch::Guard;
use silvics::AllocError;

const _: () = assert!(usize::BITS == 64, "congee's keys and values are a usize each");

/// `congee::Congee` from words to words.
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

/// A thread's session: a pinned guard, and the buffer that scans fill.
pub struct CongeeSession<'a> {
    tree: &'a congee::Congee<usize, usize>,
    guard: Guard,
    buffer: Vec<(usize, usize)>,
}

impl Session for CongeeSession<'_> {
    type Key = u64;

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        self.tree.get(&(key as usize), &self.guard).map(|value| value as u64)
    }

    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        let old = self.tree.insert(key as usize, value as usize, &self.guard);
        Ok(old.expect("its allocator aborts instead").is_none())
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

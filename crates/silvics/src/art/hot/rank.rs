//! The reads of sampled lookups: how often they read each object, and each page.

use super::super::key::Digit;
use super::super::kinds::bytes;
use super::super::node::Visit;
use super::super::node::{NodeRef, line_of};
use super::super::word::{Kind, Word};
use super::super::{Art, ArtKey};
use super::regions::hot_layout;
use super::sample::Log;
use super::sampler::Sampled;
use super::{Coverage, Translation};
use crate::domain::Guard;
use crate::error::reserved;
use silvics_pool::{AllocError, HUGE_PAGE, Placement, SMALL_PAGE};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

/// The number of keys that are followed under one pin.
pub(super) const PINNED: usize = 256;
/// The logarithms of the sizes of pages.
const SMALL_LOG: u32 = SMALL_PAGE.ilog2();
const HUGE_LOG: u32 = HUGE_PAGE.ilog2();

/// A leaf, or a node other than the root, that sampled lookups came to.
pub(super) struct Seen<'k, K: ArtKey + ?Sized> {
    pub(super) word: Word,
    /// One of the keys whose path it is on.
    pub(super) key: K::Ref<'k>,
    pub(super) bytes: usize,
    count: u64,
    /// The number of objects that had been seen before it.
    before: usize,
}

/// The reads of all sampled lookups.
pub(super) struct Census<'k, K: ArtKey + ?Sized> {
    pub(super) lookups: u64,
    /// The objects that they came to. Each lookup counts the root.
    pub(super) accesses: u64,
    objects: HashMap<usize, Seen<'k, K>>,
    small: HashMap<usize, u64>,
    huge: HashMap<usize, u64>,
}

/// Makes room for one more.
fn room_in<A: Eq + Hash, B>(map: &mut HashMap<A, B>) -> Result<(), AllocError> {
    let requested = (map.len() + 1).saturating_mul(size_of::<(A, B)>());
    map.try_reserve(1).map_err(|_| AllocError::System { requested })
}

/// A list of these, of which there are `count`.
fn list<T>(count: usize, of: impl Iterator<Item = T>) -> Result<Vec<T>, AllocError> {
    let mut list = Vec::new();
    reserved(&mut list, count)?.extend(of);
    Ok(list)
}

impl<K: ArtKey + ?Sized, P: Placement> Art<K, P, Sampled> {
    /// Follows a key down as a lookup does, and shows `see` the node and digit that lead to each
    /// object, and its word.
    pub(super) fn path<'g>(
        &'g self,
        key: K::Ref<'_>,
        _guard: &'g Guard,
        mut see: impl FnMut(Visit<'g>, Digit, Word) -> Result<(), AllocError>,
    ) -> Result<(), AllocError> {
        let Some(mut above) = self.root() else { return Ok(()) };
        while let NodeRef::Words(node) = above.node {
            let digit = K::digit(key, above.depth());
            let word = node.at(digit);
            if word.is_none() {
                break;
            }
            see(above, digit, word)?;
            if word.kind() == Kind::Leaf {
                break;
            }
            // SAFETY: I7: the word's kind is a node's. I8: it was read under the guard.
            let child = unsafe { Visit::of(word) };
            let (depth, skips) = (child.depth(), child.depth() > above.depth() + 1);
            if K::DIRECT && skips && K::before(key, depth) != child.header().prefix {
                break;
            }
            above = child;
        }
        Ok(())
    }

    /// Follows all keys of a log, and counts what they read.
    pub(super) fn survey<'k>(&self, log: &'k Log) -> Result<Census<'k, K>, AllocError> {
        let mut census = Census {
            lookups: 0,
            accesses: 0,
            objects: HashMap::new(),
            small: HashMap::new(),
            huge: HashMap::new(),
        };
        let mut guard = self.alloc.frame().domain.pin();
        for key in log.keys::<K>() {
            census.lookups += 1;
            if census.lookups.is_multiple_of(PINNED as u64) {
                guard.repin();
            }
            let root = self.root.word();
            if root.is_none() {
                continue;
            }
            census.touch(root, key)?;
            self.path(key, &guard, |_, _, word| {
                census.touch(word, key)?;
                census.count(word, key)
            })?;
        }
        Ok(census)
    }
}

impl<'k, K: ArtKey + ?Sized> Census<'k, K> {
    /// Counts that a lookup reads a line of an object.
    fn touch(&mut self, word: Word, key: K::Ref<'k>) -> Result<(), AllocError> {
        let line = match word.kind() {
            Kind::Leaf => 0,
            kind => line_of(kind, K::digit(key, word.depth())),
        };
        let address = word.object().addr() + line;
        self.accesses += 1;
        for (pages, log) in [(&mut self.small, SMALL_LOG), (&mut self.huge, HUGE_LOG)] {
            room_in(pages)?;
            *pages.entry(address >> log).or_default() += 1;
        }
        Ok(())
    }

    /// Counts that a lookup comes to an object.
    fn count(&mut self, word: Word, key: K::Ref<'k>) -> Result<(), AllocError> {
        room_in(&mut self.objects)?;
        let before = self.objects.len();
        let seen = self.objects.entry(word.object().addr()).or_insert_with(|| {
            // SAFETY: I8: the word was read under the survey's guard.
            let bytes = unsafe { bytes::<K>(word) };
            Seen { word, key, bytes, count: 0, before }
        });
        seen.count += 1;
        Ok(())
    }

    /// The objects to be packed, and the bytes that they take. They are ordered by accesses for
    /// each byte, and among equals by when they were met. They cover `share` of all accesses if
    /// that takes no more than `most_bytes`.
    pub(super) fn hottest(
        self,
        share: f64,
        most_bytes: usize,
    ) -> Result<(Vec<Seen<'k, K>>, usize), AllocError> {
        let mut order = list(self.objects.len(), self.objects.into_values())?;
        let rank = |of: &Seen<'k, K>| {
            let density = (u128::from(of.count) << 64) / of.bytes as u128;
            (Reverse(density), of.before)
        };
        order.sort_unstable_by_key(rank);
        let wanted = (share * self.accesses as f64).ceil() as u64;
        let (mut covered, mut end, mut take) = (self.lookups, 0_usize, 0); // the root stays
        for seen in &order {
            let layout = hot_layout(seen.word.kind(), seen.bytes);
            let after = end.next_multiple_of(layout.align()) + layout.size();
            if covered >= wanted || after > most_bytes {
                break;
            }
            (covered, end, take) = (covered + seen.count, after, take + 1);
        }
        order.truncate(take);
        Ok((order, end))
    }

    /// The number of pages that cover 50, 90 and 99 % of the accesses.
    pub(super) fn coverage(&self) -> Result<Coverage, AllocError> {
        let pages = |counts: &HashMap<usize, u64>| {
            let counts = descending(counts)?;
            Ok([50, 90, 99].map(|percent| {
                let mut covered = 0;
                let enough = |count: &u64| {
                    covered += count;
                    100 * covered >= percent * self.accesses
                };
                counts.iter().position(enough).map_or(0, |at| at + 1)
            }))
        };
        Ok(Coverage { small: pages(&self.small)?, huge: pages(&self.huge)? })
    }

    /// The translations that a lookup misses on average, if those of the pages read most are
    /// cached.
    pub(super) fn missed(&self, of: &Translation, small: bool) -> Result<f64, AllocError> {
        let counts = descending(if small { &self.small } else { &self.huge })?;
        let missed: u64 = counts.iter().skip(of.entries).sum();
        Ok(missed as f64 / self.lookups.max(1) as f64)
    }
}

fn descending(counts: &HashMap<usize, u64>) -> Result<Vec<u64>, AllocError> {
    let mut counts = list(counts.len(), counts.values().copied())?;
    counts.sort_unstable_by_key(|&count| Reverse(count));
    Ok(counts)
}

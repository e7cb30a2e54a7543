//! Moving objects: hot ones into a new region, those of older regions back to the pools.

use super::super::digits::NUMBERS;
use super::super::key::Digit;
use super::super::node::NodeRef;
use super::super::node::Visit;
use super::super::word::{Kind, Word};
use super::super::{Art, ArtKey};
use super::rank::{PINNED, Seen};
use super::sampler::Sampled;
use super::{ReorganizeError, Report};
use crate::domain::Guard;
use crate::error::reserved;
use silvics_pool::{AllocError, Packer, Placement};

impl<K: ArtKey + ?Sized, P: Placement> Art<K, P, Sampled> {
    /// A new region, and whether the objects of older ones went to the pools to make room for it.
    pub(super) fn region(
        &self,
        bytes: usize,
        report: &mut Report,
    ) -> Result<(Packer<'_>, bool), ReorganizeError> {
        let hot = self.alloc.regions()?.packed();
        match hot.region(bytes) {
            Ok(Some(packer)) => Ok((packer, false)),
            Err(error) if hot.count() == 0 => Err(error.into()),
            // Older regions use up the number of regions or the memory.
            Ok(None) | Err(_) => {
                report.returned += self.evacuate(None)?;
                let packer = hot.region(bytes)?.ok_or(ReorganizeError::Regions)?;
                Ok((packer, true))
            }
        }
    }

    /// Moves these objects into a new region, and those of other regions to the pools.
    pub(super) fn pack(
        &self,
        hottest: &[Seen<'_, K>],
        packer: &mut Packer<'_>,
        report: &mut Report,
    ) -> Result<(), ReorganizeError> {
        let hot = self.alloc.regions()?.packed();
        let mut guard = self.alloc.frame().domain.pin();
        for (at, seen) in hottest.iter().enumerate() {
            if at % PINNED == PINNED - 1 {
                guard.repin();
            }
            if !self.relocate(seen, packer, &guard)? {
                report.missed += 1;
                continue;
            }
            report.bytes += seen.bytes;
            match seen.word.kind() {
                Kind::Leaf => report.leaves += 1,
                _ => report.nodes += 1,
            }
        }
        drop(guard);
        if hot.count() > 1 {
            report.returned += self.evacuate(Some(packer.number()))?;
        }
        Ok(())
    }

    /// Moves an object to a region if it is still where it was. Returns whether it has.
    fn relocate(
        &self,
        seen: &Seen<'_, K>,
        packer: &mut Packer<'_>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let mut found = None;
        self.path(seen.key, guard, |above, digit, word| {
            if word == seen.word {
                found = Some((above, digit));
            }
            Ok(())
        })?;
        let Some((above, digit)) = found else { return Ok(false) };
        self.moved(above, digit, seen.word, guard, |this| {
            Ok(this.alloc.hot_copy(seen.word, packer))
        })
    }

    /// Replaces an object by the copy that `make` returns if the object is still there. Returns
    /// whether it has.
    fn moved(
        &self,
        above: Visit<'_>,
        digit: Digit,
        word: Word,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        if word.kind() == Kind::Leaf {
            return self.replaced_leaf(above, digit, word, guard, make);
        }
        // SAFETY: I7: the word's kind is a node's. I8: it was read under the guard.
        let at = unsafe { Visit::of(word) };
        self.replaced_at(above, digit, at, guard, make)
    }

    /// Moves the objects of hot regions, except those of `kept`, to the pools, and returns their
    /// number. Objects that others are writing stay until the next time. Regions without objects
    /// are unmapped, unless a guard protects an object that was there.
    fn evacuate(&self, kept: Option<usize>) -> Result<usize, AllocError> {
        let returned = self.evacuated(kept);
        // This thread may retire nothing more for long, and the objects in its batch keep regions.
        self.alloc.flush(&self.alloc.frame().domain.pin());
        self.alloc.frame().domain.flush();
        returned
    }

    /// Moves objects as `evacuate` does. The old ones wait in this thread's batch to be freed.
    fn evacuated(&self, kept: Option<usize>) -> Result<usize, AllocError> {
        let (mut open, mut returned) = (Vec::new(), 0);
        let mut guard = self.alloc.frame().domain.pin();
        for number in 0..NUMBERS {
            let digit = number.checked_sub(1).map(|byte| byte as u8);
            guard.repin(); // no node is open
            let Some(above) = self.root() else { break };
            let NodeRef::Words(root) = above.node else { unreachable!("a node of words") };
            if root.at(digit).is_none() {
                continue;
            }
            reserved(&mut open, 1)?.push((above, digit, root.at(digit)));
            while let Some((above, digit, word)) = open.pop() {
                if word.is_none() {
                    continue;
                }
                let region = self.alloc.regions()?.packed().find(word.address());
                if region.is_some_and(|region| Some(region) != kept) {
                    let make = |this: &Self| this.alloc.pooled_copy(word, &guard).map(Some);
                    returned += usize::from(self.moved(above, digit, word, &guard, make)?);
                }
                let NodeRef::Words(node) = above.node else { continue };
                let word = node.at(digit); // perhaps the copy
                if word.is_none() || word.kind() == Kind::Leaf {
                    continue;
                }
                // SAFETY: I7: the word's kind is a node's. I8: it was read under the guard.
                let child = unsafe { Visit::of(word) };
                let NodeRef::Words(below) = child.node else { continue };
                for (digit, word) in below.all() {
                    reserved(&mut open, 1)?.push((child, digit, word));
                }
            }
        }
        Ok(returned)
    }
}

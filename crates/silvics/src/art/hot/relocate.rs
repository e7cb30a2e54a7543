//! Moving objects: what is hot into a new region, what is in older ones back to the pools.

use super::super::ArtKey;
use super::super::ArtTree;
use super::super::digits::NUMBERS;
use super::super::key::Digit;
use super::super::node::NodeRef;
use super::super::node::Visit;
use super::super::word::{Kind, Word};
use super::rank::{PINNED, Seen, room};
use super::{ReorganizeError, Report};
use crate::domain::Guard;
use silvics_pool::{AllocError, Packer, Placement};

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// A new region, and whether what older ones had went to the pools to make room for it.
    pub(super) fn region(
        &self,
        bytes: usize,
        report: &mut Report,
    ) -> Result<(Packer<'_>, bool), ReorganizeError> {
        let hot = self.alloc.hot();
        match hot.region(bytes) {
            Ok(Some(packer)) => Ok((packer, false)),
            Err(error) if hot.count() == 0 => Err(error.into()),
            // Older regions are in the way, of the number or of the memory that there may be.
            Ok(None) | Err(_) => {
                report.returned += self.evacuate(None)?;
                let packer = hot.region(bytes)?.ok_or(ReorganizeError::Regions)?;
                Ok((packer, true))
            }
        }
    }

    /// Moves these into a new region, and what others have to pools.
    pub(super) fn pack(
        &self,
        hottest: &[Seen<'_, K>],
        packer: &mut Packer<'_>,
        report: &mut Report,
    ) -> Result<(), ReorganizeError> {
        let hot = self.alloc.hot();
        let mut guard = self.domain.pin();
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

    /// Moves an object to a region, if it is where it was; whether it has.
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
        self.moved(above, digit, seen.word, guard, |this| Ok(this.alloc.packed(seen.word, packer)))
    }

    /// Puts the copy that `make` makes in an object's place, if it is still there; whether it has.
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
        // SAFETY: read under the guard.
        let at = unsafe { Visit::of(word) };
        self.replaced_at(above, digit, at, guard, make)
    }

    /// Moves what is in hot regions, but for this one, to the pools; how many objects. Some may stay that others
    /// are writing: then the next time. Regions that nothing is left in go, unless a guard protects what was.
    fn evacuate(&self, kept: Option<usize>) -> Result<usize, AllocError> {
        let returned = self.evacuated(kept);
        // This thread may retire nothing more for long, and what waits in its batch holds regions.
        self.alloc.flush(&self.domain.pin());
        self.domain.flush();
        returned
    }

    /// The same, but that what has gone waits to be freed.
    fn evacuated(&self, kept: Option<usize>) -> Result<usize, AllocError> {
        let (mut open, mut returned) = (Vec::new(), 0);
        let mut guard = self.domain.pin();
        let NodeRef::Words(root) = self.root().node else { unreachable!("a node of words") };
        for number in 0..NUMBERS {
            let digit = number.checked_sub(1).map(|byte| byte as u8);
            if root.at(digit).is_none() {
                continue;
            }
            guard.repin(); // nothing is open
            room(&mut open)?;
            open.push((self.root(), digit, root.at(digit)));
            while let Some((above, digit, word)) = open.pop() {
                if word.is_none() {
                    continue;
                }
                let region = self.alloc.hot().find(word.address());
                if region.is_some_and(|region| Some(region) != kept) {
                    let make = |this: &Self| this.alloc.pooled(word, &guard).map(Some);
                    returned += usize::from(self.moved(above, digit, word, &guard, make)?);
                }
                let NodeRef::Words(node) = above.node else { continue };
                let word = node.at(digit); // the copy
                if word.is_none() || word.kind() == Kind::Leaf {
                    continue;
                }
                // SAFETY: read under the guard.
                let child = unsafe { Visit::of(word) };
                let NodeRef::Words(below) = child.node else { continue };
                for (digit, word) in below.all() {
                    room(&mut open)?;
                    open.push((child, digit, word));
                }
            }
        }
        Ok(returned)
    }
}

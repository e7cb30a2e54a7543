//! Making a key present.

use super::alloc::{Room, UnlinkedLeaf};
use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::{Entries, LeafOf};
use super::lock::Locked;
use super::node::{AnySize, Visit};
use super::ops::Attempt;
use super::seek::End;
use super::word::{ABSENT, Word};
use super::{Art, ArtKey};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::Ordering;

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Does what the verb wants in a node of values in which the key's digit had no place.
    #[inline(always)]
    pub(super) fn add(
        &self,
        at: Visit<'_>,
        node: AnySize<'_, u64>,
        key: K::Ref<'_>,
        verb: Update,
    ) -> Attempt {
        let value = match verb.step(None) {
            Step::Put(ABSENT) => return Attempt::Rebuild { boxed: true },
            Step::Put(value) => value,
            Step::Keep | Step::Take => return Attempt::Done(None), // LP(kept): the load of the keys
        };
        let Some(_lock) = Locked::new(at) else { return Attempt::Restart };
        let digit = K::digit(key, at.depth_for::<K>());
        if has_come(node, digit) {
            return Attempt::Restart;
        }
        if !node.add(digit, value) {
            return Attempt::Rebuild { boxed: false };
        }
        self.alloc.frame().len.add(1); // LP(inserted): before
        Attempt::Done(None)
    }

    /// Makes a key present below a node of words. The caller holds the node's lock, under which it
    /// has seen the path's end. `unlinked` becomes the word of an object that is no longer linked.
    pub(super) fn put(
        &self,
        at: Visit<'_>,
        node: AnySize<'_, Word>,
        end: End,
        (key, value): (K::Ref<'_>, u64),
        unlinked: &mut Word,
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        let digit = K::digit(key, at.depth_for::<K>());
        match end {
            End::Leaf(word, place) => {
                // SAFETY: I7: the path ends at a leaf. I8: the word was read under the guard.
                let leaf = unsafe { K::Leaf::from_word(word) };
                if let Some(place) = place {
                    let old = leaf.value(place).load(Ordering::SeqCst);
                    leaf.value(place).store(value, Ordering::SeqCst); // LP(replaced)
                    return Ok(Attempt::Done(Some(old)));
                }
                let entries = Entries::<K>::of(leaf).with(K::shorten(key), value);
                let new = if entries.as_slice().len() <= K::LEAF_KEYS {
                    self.alloc.leaf(entries.as_slice(), guard)?
                } else {
                    self.alloc.burst(&entries, guard)?
                };
                node.replace(digit, new); // LP(inserted)
                *unlinked = word;
            }
            End::Parting(word, depth, other) => {
                let leaf = self.unlinked_leaf((key, value), guard)?;
                let both = [(other, word), (K::digit(key, depth), leaf.word())];
                let room = Room::exact(K::before(key, depth), depth);
                node.replace(digit, self.alloc.node(&both, room, guard)?); // LP(inserted)
                leaf.linked();
            }
            End::Nothing | End::Value(_) => {
                let leaf = self.unlinked_leaf((key, value), guard)?;
                if !node.put(digit, leaf.word()) {
                    return Ok(Attempt::Rebuild { boxed: false });
                }
                leaf.linked();
            }
        }
        self.alloc.frame().len.add(1);
        Ok(Attempt::Done(None))
    }

    /// A new leaf of one entry.
    fn unlinked_leaf(
        &self,
        entry: (K::Ref<'_>, u64),
        guard: &Guard,
    ) -> Result<UnlinkedLeaf<'_, K, P, S>, AllocError> {
        Ok(UnlinkedLeaf::new(&self.alloc, self.alloc.leaf(&[entry], guard)?))
    }
}

/// Whether a digit that had no place before the node was locked has one now.
fn has_come(node: AnySize<'_, u64>, digit: Digit) -> bool {
    node.find(digit).is_some() && !planted(Canary::DigitAddedTwice)
}

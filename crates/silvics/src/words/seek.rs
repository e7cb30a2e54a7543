//! The way from a key to the nearest leaf.

use super::Words;
use super::edit::{Leaf, Spot};
use super::key::WordKey;
use super::word::{Leads, Word};
use crate::domain::Guard;
use silvics_pool::Placement;

impl<K: WordKey> Spot<'_, K> {
    /// The nearest place behind those that have a word, in the direction of a walk. This place had
    /// the word.
    #[inline]
    pub(super) fn behind(self, word: Word, descends: bool) -> Option<Self> {
        let (first, last) = self.places.run_of(self.at, word);
        let at = if descends { first.checked_sub(1)? } else { last + 1 };
        (at < self.places.list.len()).then_some(Self { at, ..self })
    }

    /// The nearest place behind a run of places, in the direction of a walk, that leads to
    /// something.
    #[inline]
    pub(super) fn leads_behind(
        self,
        (first, last): (usize, usize),
        descends: bool,
    ) -> Option<Self> {
        let step = |at: usize| if descends { at.checked_sub(1) } else { Some(at + 1) };
        let mut next = step(if descends { first } else { last });
        loop {
            let at = next.filter(|at| *at < self.places.list.len())?;
            if !self.places.word(at).is_none() {
                return Some(Self { at, ..self });
            }
            next = step(at);
        }
    }

    /// The key at which a walk enters this place.
    #[inline]
    pub(super) fn entry(self, descends: bool) -> K {
        if descends { self.places.end(self.at) } else { self.places.start(self.at) }
    }

    /// The first key of a walk behind all these places.
    #[inline]
    pub(super) fn key_behind(self, descends: bool) -> Option<K> {
        let last = if descends { 0 } else { self.places.list.len() - 1 };
        Spot { at: last, ..self }.entry(!descends).next(descends)
    }
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// The first leaf that a walk from a key meets, and the place that led there.
    pub(super) fn leaf_from<'g>(
        &'g self,
        mut key: K,
        descends: bool,
        _guard: &'g Guard,
    ) -> Option<(Spot<'g, K>, Leaf<'g, K>)> {
        loop {
            let root = self.root();
            let mut next = Some(Spot { places: root, at: root.find(key) });
            let mut last = Spot { places: root, at: 0 };
            while let Some(spot) = next {
                last = spot;
                let word = spot.word();
                // SAFETY: I3: the word was read under the guard.
                match unsafe { word.leads::<K>() } {
                    Leads::None => {}
                    Leads::Block(block) => return Some((spot, Leaf::Block(block))),
                    Leads::Slots(slots) => return Some((spot, Leaf::Slots(slots))),
                    Leads::Node(node) => {
                        let places = node.places();
                        if node.covers(key) {
                            next = Some(Spot { places, at: places.find(key) });
                            continue;
                        }
                        if (key < places.base) != descends {
                            let at = if descends { places.list.len() - 1 } else { 0 };
                            let spot = Spot { places, at };
                            key = spot.entry(descends);
                            next = Some(spot);
                            continue;
                        }
                    }
                }
                next = spot.behind(word, descends);
                if let Some(spot) = next {
                    key = spot.entry(descends);
                }
            }
            key = last.key_behind(descends)?;
        }
    }
}

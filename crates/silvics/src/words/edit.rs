//! Changes of the index: places get other words, and nodes are replaced.

use super::Words;
use super::block::BlockRef;
use super::key::WordKey;
use super::node::{MAX_BITS, Places};
use super::slots::SlotsRef;
use super::word::{Leads, Place, Word};
use crate::domain::Guard;
use crate::error::{AllocError, reserved};
use silvics_pool::Placement;
use silvics_sync::version::VersionLock;

/// A lock that the caller has taken. Dropping it unlocks.
pub(super) struct Hold<'g>(&'g VersionLock);

impl<'g> Hold<'g> {
    /// Locks. Returns nothing if the object is obsolete.
    pub(super) fn new(lock: &'g VersionLock) -> Option<Self> {
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Locks if no other thread has the lock and the object is not obsolete.
    pub(super) fn attempt(lock: &'g VersionLock) -> Option<Self> {
        lock.try_lock().then(|| Self(lock))
    }

    /// Unlocks an object that is no longer linked.
    pub(super) fn obsolete(self) {
        // SAFETY: `new` or `attempt` has locked it, and `self` is forgotten, so it is unlocked
        // once.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` or `attempt` has locked it, and `self` goes away, so it is unlocked once.
        unsafe { self.0.unlock() };
    }
}

/// A place of a node or of the root.
#[derive(Clone, Copy)]
pub(super) struct Spot<'g, K> {
    pub(super) places: Places<'g, K>,
    pub(super) at: usize,
}

impl<'g, K: WordKey> Spot<'g, K> {
    pub(super) fn word(self) -> Word {
        self.places.word(self.at)
    }

    /// Locks the places, if this one still has a word.
    pub(super) fn hold(self, word: Word) -> Option<Hold<'g>> {
        let hold = Hold::new(self.places.lock)?;
        (self.word() == word).then_some(hold)
    }
}

/// The end of the way that a key takes.
pub(super) struct Found<'g, K> {
    /// The place that leads to the node of `spot`, unless that is the root.
    pub(super) above: Option<Spot<'g, K>>,
    pub(super) spot: Spot<'g, K>,
    /// The word there: a leaf, nothing, or a node that is not above the key.
    pub(super) word: Word,
}

/// Objects that are made for a change. Dropping the list frees them.
pub(super) struct Fresh<'t, K: WordKey, P: Placement> {
    tree: &'t Words<K, P>,
    words: Vec<Word>,
}

// SAFETY: nobody else has the objects, and the tree is shared by threads anyway.
unsafe impl<K: WordKey, P: Placement> Send for Fresh<'_, K, P> {}

impl<'t, K: WordKey, P: Placement> Fresh<'t, K, P> {
    pub(super) fn new(tree: &'t Words<K, P>) -> Self {
        Self { tree, words: Vec::new() }
    }

    /// Remembers an object that `make` makes.
    pub(super) fn add<T>(
        &mut self,
        make: impl FnOnce(&'t Words<K, P>) -> Result<T, AllocError>,
        word: impl Fn(&T) -> Word,
    ) -> Result<T, AllocError> {
        reserved(&mut self.words, 1)?;
        let made = make(self.tree)?;
        self.words.push(word(&made));
        Ok(made)
    }

    /// The objects are linked.
    pub(super) fn linked(mut self) {
        self.words.clear();
    }

    /// The change was taken back, but readers may have seen the objects.
    pub(super) fn retire(mut self, guard: &Guard) {
        for word in self.words.drain(..) {
            // SAFETY: I4: nothing leads to the object, and it is retired once.
            unsafe { self.tree.objects.retire(word, guard) };
        }
    }
}

impl<K: WordKey, P: Placement> Drop for Fresh<'_, K, P> {
    fn drop(&mut self) {
        for word in &self.words {
            // SAFETY: the object was made for this change and never linked, so nobody else has it.
            unsafe { self.tree.objects.free(*word) };
        }
    }
}

/// A block or an array of slots.
#[derive(Clone, Copy)]
pub(super) enum Leaf<'g, K> {
    Block(BlockRef<'g, K>),
    Slots(SlotsRef<'g, K>),
}

impl<'g, K: WordKey> Leaf<'g, K> {
    /// # Safety
    /// That of [`Word::leads`].
    pub(super) unsafe fn of(word: Word) -> Option<Self> {
        // SAFETY: our contract.
        match unsafe { word.leads::<K>() } {
            Leads::Block(block) => Some(Self::Block(block)),
            Leads::Slots(slots) => Some(Self::Slots(slots)),
            Leads::None | Leads::Node(_) => None,
        }
    }

    /// Prefetches the lines of all entries.
    #[inline(always)]
    pub(super) fn prefetch_whole(self) {
        match self {
            Self::Block(block) => block.prefetch_whole(),
            Self::Slots(slots) => slots.prefetch_whole(),
        }
    }

    pub(super) fn word(self) -> Word {
        match self {
            Self::Block(block) => block.word(),
            Self::Slots(slots) => slots.word(),
        }
    }

    pub(super) fn lock(self) -> &'g VersionLock {
        match self {
            Self::Block(block) => block.lock(),
            Self::Slots(slots) => slots.lock(),
        }
    }

    pub(super) fn successor(self) -> &'g Place {
        match self {
            Self::Block(block) => block.successor(),
            Self::Slots(slots) => slots.successor(),
        }
    }

    /// The value of a place of a block's order, or of a slot.
    #[inline(always)]
    pub(super) fn value(self, place: u8) -> super::value::ValuePlace<'g> {
        match self {
            Self::Block(block) => block.value(super::block::low_of::<K>(place)),
            Self::Slots(slots) => slots.value(usize::from(place)),
        }
    }
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// The way that a key takes, to its end.
    pub(super) fn seek<'g>(&'g self, key: K, _guard: &'g Guard) -> Found<'g, K> {
        let root = self.root();
        let (mut above, mut spot) = (None, Spot { places: root, at: root.find(key) });
        loop {
            let word = spot.word();
            // SAFETY: I3: the word was read under the guard.
            match unsafe { word.leads::<K>() } {
                Leads::Node(node) if node.covers(key) => {
                    above = Some(spot);
                    let places = node.places();
                    spot = Spot { places, at: places.find(key) };
                }
                _ => return Found { above, spot, word },
            }
        }
    }

    /// Whether a node of `bits` bits is not too large for this number of children.
    pub(super) fn may_have(bits: u32, children: usize) -> bool {
        bits <= MAX_BITS && 1 << bits <= 4 * (children + 1)
    }

    /// Makes room for a key that is not below the node at the end of its way: the node gets more
    /// bits above its own, or a node above it.
    pub(super) fn widen<'g>(
        &'g self,
        found: &Found<'g, K>,
        key: K,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let Found { spot, word, .. } = *found;
        // SAFETY: I3: the word was read under the guard.
        let Leads::Node(node) = (unsafe { word.leads::<K>() }) else { return Ok(()) };
        let places = node.places();
        let Some(bit) = key.difference(places.base).filter(|bit| *bit >= places.top()) else {
            return Ok(());
        };
        let (base, checks) = (places.base.above(bit + 1), bit + 1 < spot.places.shift);
        let mut fresh = Fresh::new(self);
        let Some(held) = Hold::new(places.lock) else { return Ok(()) };
        let bits = bit + 1 - places.shift;
        let is_wider = Self::may_have(bits, places.distinct());
        let shape = if is_wider { (base, places.shift, bits) } else { (base, bit, 1) };
        let made = fresh.add(|tree| tree.objects.node(shape, checks, guard), |node| node.word())?;
        let wide = made.places();
        if is_wider {
            let first = wide.find(places.base);
            for (to, from) in wide.list[first..].iter().zip(places.list) {
                to.link(from.word());
            }
        } else {
            let checks = places.top() < bit;
            wide.list[wide.find(places.base)].link(word.with_checks(checks));
        }
        let Some(_above) = spot.hold(word) else { return Ok(()) };
        Self::link_run(spot, made.word());
        fresh.linked();
        if is_wider {
            held.obsolete();
            // SAFETY: I4: the node is no longer linked, and was locked, so it is retired once.
            unsafe { self.objects.retire(word, guard) };
        }
        Ok(())
    }

    /// Gives a node `more` bits below its own.
    pub(super) fn refine<'g>(
        &'g self,
        above: Spot<'g, K>,
        places: Places<'g, K>,
        more: u32,
        guard: &'g Guard,
    ) -> Result<(), AllocError> {
        let old = above.word();
        // SAFETY: I3: the word was read under the guard.
        let Leads::Node(node) = (unsafe { old.leads::<K>() }) else { return Ok(()) };
        if !std::ptr::eq(node.places().lock, places.lock) {
            return Ok(());
        }
        let Some(held) = Hold::new(places.lock) else { return Ok(()) };
        let mut fresh = Fresh::new(self);
        let shift = places.shift - more;
        let shape = (places.base, shift, places.bits() + more);
        let checks = old.checks();
        let made = fresh.add(|tree| tree.objects.node(shape, checks, guard), |node| node.word())?;
        let fine = made.places();
        for at in 0..places.list.len() {
            let word = places.word(at);
            let (first, last) = (at << more, (at + 1) << more);
            // SAFETY: I3: the word was read under the guard.
            match unsafe { word.leads::<K>() } {
                Leads::Node(child) if word.shift() + word.bits() < places.shift => {
                    // It is below one of the places, or some of them.
                    let child = child.places();
                    let checks = child.top() < shift;
                    let width = 1 << child.top().saturating_sub(shift);
                    let start = fine.find(child.base);
                    debug_assert!((first..last).contains(&start));
                    for place in &fine.list[start..start + width] {
                        place.link(word.with_checks(checks));
                    }
                }
                _ => fine.list[first..last].iter().for_each(|place| place.link(word)),
            }
        }
        let Some(_above) = above.hold(old) else { return Ok(()) };
        Self::link_run(above, made.word());
        fresh.linked();
        held.obsolete();
        // SAFETY: I4: the node is no longer linked, and was locked, so it is retired once.
        unsafe { self.objects.retire(old, guard) };
        Ok(())
    }

    /// Links another word to all places that have the word of a place. The caller has their lock.
    pub(super) fn link_run(spot: Spot<'_, K>, word: Word) {
        let (first, last) = spot.places.run(spot.at);
        for place in &spot.places.list[first..=last] {
            place.link(word); // LP: see the callers
        }
    }

    /// Takes a node of one child out of the way of a key, or a node without one.
    pub(super) fn collapse<'g>(&'g self, key: K, guard: &'g Guard) {
        loop {
            let Found { above: Some(above), spot, .. } = self.seek(key, guard) else { return };
            let places = spot.places;
            if places.distinct() > 1 {
                return;
            }
            let Some(held) = Hold::new(places.lock) else { continue };
            if places.distinct() > 1 {
                return;
            }
            let words = places.list.iter().map(Place::word);
            let child = words.into_iter().find(|word| !word.is_none()).unwrap_or(Word::NONE);
            let places_above = above.places;
            // SAFETY: I3: the word was read under the guard.
            let (child, own) = match unsafe { child.leads::<K>() } {
                Leads::None | Leads::Block(_) => (child, 0..places_above.list.len()),
                // A node keeps the places of its range.
                Leads::Node(node) => {
                    let below = node.places();
                    let start = places_above.find(below.base);
                    let width = 1 << below.top().saturating_sub(places_above.shift);
                    (child.with_checks(below.top() < places_above.shift), start..start + width)
                }
                // Its keys are checked here.
                Leads::Slots(_) => return,
            };
            let old = above.word();
            // SAFETY: I3: the word was read under the guard.
            let Leads::Node(node) = (unsafe { old.leads::<K>() }) else { continue };
            if !std::ptr::eq(node.places().lock, places.lock) {
                continue;
            }
            let Some(_above) = above.hold(old) else { continue };
            let (first, last) = places_above.run_of(above.at, old);
            for at in first..=last {
                places_above.list[at].link(if own.contains(&at) { child } else { Word::NONE });
            }
            held.obsolete();
            // SAFETY: I4: the node is no longer linked, and was locked, so it is retired once.
            unsafe { self.objects.retire(old, guard) };
        }
    }
}

//! The operations on one key.
//!
//! Each writes the word of the key by one exchange, after it has made all that it needs. If the
//! exchange finds another word, the operation begins again with that word.

use super::edit::Edit;
use super::node::is_list;
use super::order::{FindOrder, Held, Listed, Order};
use super::{Insertion, MultiMap};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::KeyRef;
use crate::map::key::{AsKey, Key};
use crate::map::lend::Pin;
use crate::map::ops::{admit, short, with_form, with_new_form};
use crate::map::scan::KeyRange;
use crate::map::value::Draft;
use crate::map::{MapIndex, Rejected, Value, ValueRef};
use crate::update::Update;
use silvics_sync::backoff::Backoff;

/// The end of an exchange.
#[must_use]
enum Exchanged {
    /// The key has the new state.
    Done,
    /// The key was in another state, and still is.
    Found(Option<u64>),
}

/// An edit of a list of a map.
type EditOf<'m, 'g, I> = Edit<'m, 'g, <I as MapIndex>::Placement>;

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> MultiMap<K, V, O, I> {
    /// The values of a word that was read under a pin of this map.
    #[inline(always)]
    #[allow(clippy::unused_self)] // the list borrows the map
    pub(super) fn listed<'g>(&'g self, word: u64, _pin: Pin<'g, '_>) -> Listed<'g, V> {
        // SAFETY: L1: the word is one of this map. It was read under the pin, and what it leads to
        // stays readable for `'g` (L2, M3).
        unsafe { Listed::new(word) }
    }

    /// The values of a key.
    #[inline(always)]
    pub(super) fn do_list<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Option<Listed<'g, V>> {
        // LP(lookup): the lookup of the index.
        let word = with_form!(key, form => self.map.index.get(form, pin.guard))?;
        Some(self.listed(word, pin))
    }

    #[inline(always)]
    pub(super) fn do_first_of<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Option<ValueRef<'g, V>> {
        let word = with_form!(key, form => self.map.index.get(form, pin.guard))?;
        if !is_list(word) {
            return Some(self.values.lent(word, pin)); // L1
        }
        Some(self.first_of_list(word, pin))
    }

    /// The first value of a list. Out of line, so that the compiler optimizes the lookup of a key
    /// with one value.
    #[inline(never)]
    fn first_of_list<'g>(&'g self, word: u64, pin: Pin<'g, '_>) -> ValueRef<'g, V> {
        let list = self.listed(word, pin);
        list.value(list.word_at(0))
    }

    pub(super) fn do_last_of<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'g, '_>,
    ) -> Option<ValueRef<'g, V>> {
        let list = self.do_list(key, pin)?;
        Some(list.value(list.word_at(list.count() - 1)))
    }

    pub(super) fn do_count(&self, key: &(impl AsKey<K> + ?Sized), pin: Pin<'_, '_>) -> usize {
        self.do_list(key, pin).map_or(0, |list| list.count() as usize)
    }

    pub(super) fn do_contains(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        value: &V,
        pin: Pin<'_, '_>,
    ) -> bool
    where
        O: FindOrder<V>,
    {
        self.do_list(key, pin).is_some_and(|list| O::find(&list, value).is_some())
    }

    #[inline(always)]
    pub(super) fn do_insert(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        value: V,
        pin: Pin<'_, '_>,
    ) -> Result<Insertion<V>, Rejected<V>>
    where
        O: Order<V>,
    {
        let draft = match self.values.drafted(value, pin.guard) {
            Ok(draft) => draft,
            // If the pair is present, that is the result, and no memory is needed.
            Err(rejected) => {
                let list = self.do_list(key, pin);
                return match list.map(|list| O::place(&list, &rejected.value)) {
                    Some(None) => Ok(Insertion::Present { value: rejected.value }),
                    _ => Err(rejected),
                };
            }
        };
        let word = draft.word();
        with_new_form!(key, form => {
            if is_list(word) {
                let seen = self.map.index.get(short::<K>(form), pin.guard);
                return self.put_beside(form, seen, draft, pin);
            }
            match self.map.index.update(short::<K>(form), Update::TryInsert(word), pin.guard) {
                Ok(None) => {
                    draft.placed(); // LP(insert, first value): the insert of the index
                    Ok(Insertion::Added)
                }
                Ok(seen) => self.put_beside(form, seen, draft, pin),
                Err(error) => Err(Rejected { value: draft.into_value(), error }),
            }
        })
    }

    /// Adds a value to those of a key, whose word was `seen`.
    #[inline(never)]
    fn put_beside(
        &self,
        form: KeyRef<'_, I>,
        mut seen: Option<u64>,
        draft: Draft<'_, V, I::Placement>,
        pin: Pin<'_, '_>,
    ) -> Result<Insertion<V>, Rejected<V>>
    where
        O: Order<V>,
    {
        let (word, mut backoff) = (draft.word(), Backoff::new());
        loop {
            let list = seen.map(|word| self.listed(word, pin));
            // Code of the user runs here only, before the edit begins (L4). The draft owns the
            // value meanwhile.
            let rank = match &list {
                Some(list) => match O::place(list, &self.values.lent(word, pin)) {
                    Some(rank) => rank,
                    None => return Ok(Insertion::Present { value: draft.into_value() }),
                },
                None => 0,
            };
            let mut edit = Edit::new(&self.lists, pin.guard);
            let new = match list.map(|list| list.held) {
                Some(Held::List(root)) => edit.insert(root, rank, word),
                Some(Held::One(other)) if rank == 0 => edit.list(&[word, other]),
                Some(Held::One(other)) => edit.list(&[other, word]),
                None if is_list(word) => edit.list(&[word]),
                None => Ok(word),
            };
            let exchanged = new.and_then(|new| {
                self.exchange(short::<K>(form), seen, Some(new), &mut edit, pin.guard)
            });
            match exchanged {
                Ok(Exchanged::Done) => {
                    draft.placed(); // before the edit retires nodes, so that no panic drops it
                    edit.placed();
                    self.more.add(i64::from(seen.is_some()));
                    return Ok(Insertion::Added);
                }
                Ok(Exchanged::Found(now)) => seen = now,
                Err(error) => return Err(Rejected { value: draft.into_value(), error }),
            }
            backoff.wait();
        }
    }

    /// Brings a key from one state to the other, which an edit has made. If this is done, the
    /// caller ends the edit by [`Edit::placed`].
    #[inline]
    fn exchange<'g>(
        &self,
        form: KeyRef<'_, I>,
        seen: Option<u64>,
        new: Option<u64>,
        edit: &mut EditOf<'_, 'g, I>,
        guard: &'g Guard,
    ) -> Result<Exchanged, AllocError> {
        if planted(Canary::PathRetiredEarly) {
            // SAFETY: none; this is the seeded mistake.
            unsafe { edit.retire_old() };
        }
        // LP(insert, remove): the exchange, if it finds the expected state.
        let verb = Update::CompareExchange { expected: seen, new };
        let found = self.map.index.update(form, verb, guard)?;
        if found == seen || planted(Canary::FailedExchangeTrusted) {
            return Ok(Exchanged::Done);
        }
        Ok(Exchanged::Found(found))
    }

    pub(super) fn do_remove<'g>(
        &'g self,
        key: &(impl AsKey<K> + ?Sized),
        value: &V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, AllocError>
    where
        O: FindOrder<V>,
    {
        key.with_form(|form| {
            let mut backoff = Backoff::new();
            let mut seen = self.map.index.get(short::<K>(form), pin.guard);
            while let Some(expected) = seen {
                let list = self.listed(expected, pin);
                let Some(rank) = O::find(&list, value) else { return Ok(None) };
                let word = list.word_at(rank);
                let mut edit = Edit::new(&self.lists, pin.guard);
                let new = match list.held {
                    Held::One(_) => None,
                    Held::List(root) => edit.remove(root, rank)?,
                };
                match self.exchange(short::<K>(form), seen, new, &mut edit, pin.guard)? {
                    Exchanged::Done => {
                        edit.placed();
                        self.more.add(-i64::from(new.is_some()));
                        return Ok(Some(self.values.taken(word, pin))); // L3
                    }
                    Exchanged::Found(now) => seen = now,
                }
                backoff.wait();
            }
            Ok(None)
        })
    }

    pub(super) fn do_remove_all(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        pin: Pin<'_, '_>,
    ) -> Result<usize, AllocError> {
        // LP(remove_all): the removal of the index.
        let removed = with_form!(key, form => {
            self.map.index.update(form, Update::Remove, pin.guard)
        })?;
        Ok(removed.map_or(0, |word| self.retire_all(word, pin)))
    }

    /// Retires the values of a word that was taken out of the index, and the nodes of their list.
    /// Returns the number of values.
    fn retire_all(&self, word: u64, pin: Pin<'_, '_>) -> usize {
        let list = self.listed(word, pin);
        let count = list.count() as usize;
        let root = match list.held {
            Held::List(root) => root,
            Held::One(word) => {
                self.values.taken(word, pin);
                return 1;
            }
        };
        self.more.add(1 - count as i64);
        root.each(&mut |node| {
            if node.level() == 0 {
                for word in node.words() {
                    // SAFETY: L3: the index returned the list to this caller alone, and each value
                    // of it comes once.
                    unsafe { self.values.retire_only(*word, pin.guard) };
                }
            }
            // SAFETY: L2: the index returned the list to this caller alone. The guard keeps the
            // nodes readable.
            unsafe { self.lists.retire_only(node.object(), node.bytes(), pin.guard) };
        });
        self.values.drop_some();
        count
    }

    pub(super) fn do_remove_range(
        &self,
        range: impl KeyRange<K>,
        guard: Option<&Guard>,
    ) -> Result<usize, AllocError> {
        let mut removed = 0;
        self.map.sweep_all(range.keep(), guard, |form, _, guard| {
            let word = self.map.index.update(form, Update::Remove, guard)?;
            removed += word.map_or(0, |word| self.retire_all(word, guard.into()));
            Ok(word.is_some())
        })?;
        Ok(removed)
    }
}

//! Writes of one key.

use super::chain::Settled;
use super::clock::{Clock, Drawn, Given, MAX_VERSION};
use super::node::{BATCH, Kind, Node, STATE, TENTATIVE, Word};
use super::{PutError, Value, VersionedMap, VersionedView, WatermarkError};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::KeyRef;
use crate::map::MapIndex;
use crate::map::key::{AsKey, Key};
use crate::map::ops::admit;
use crate::map::outcome::{is_shortage, refuse};
use crate::update::Update;
use silvics_sync::atomic::Ordering::SeqCst;
use silvics_sync::backoff::Backoff;
use std::cell::Cell;

/// The version that a write expects to be the newest one of its key: any, or one with a value and
/// this number, or none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    Any,
    Latest(Option<u64>),
}

/// The reason why a version was not put.
pub(super) enum Refusal {
    Conflict(Option<u64>),
    Exists(u64),
    NotNewer(u64),
    Alloc(AllocError),
}

impl From<AllocError> for Refusal {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl Refusal {
    pub(super) fn with_value<V>(self, value: Option<V>) -> PutError<V> {
        match self {
            Self::Conflict(latest) => PutError::Conflict { latest, value },
            Self::Exists(number) => PutError::Exists { number, value },
            Self::NotNewer(newest) => PutError::NotNewer { newest, value },
            Self::Alloc(error) => PutError::Alloc { error, value },
        }
    }
}

silvics_sync::thread_local! {
    /// Whether this thread's last write has inserted a key: the guess for the next one.
    static INSERTS: Cell<bool> = Cell::new(true);
}

/// A version that is not in a chain yet. Dropping it drops its value.
pub(super) struct Draft<'m, K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> {
    map: &'m VersionedMap<K, V, C, I>,
    stamp: u64,
    /// The value, if it is not in the object.
    value: Option<V>,
    is_deletion: bool,
    object: Option<Word>,
}

impl<'m, K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> Draft<'m, K, V, C, I> {
    pub(super) fn new(map: &'m VersionedMap<K, V, C, I>, stamp: u64, value: Option<V>) -> Self {
        Self { map, stamp, is_deletion: value.is_none(), value, object: None }
    }

    /// Makes the object of the version, over an older one if there is one.
    #[inline(always)]
    fn over(&mut self, older: Option<Word>, guard: &Guard) -> Result<Word, AllocError> {
        let kind = match older {
            _ if self.is_deletion => Kind::Tombstone,
            Some(_) => Kind::Newer,
            None => Kind::First,
        };
        if self.object.is_some_and(|object| object.kind() != kind) {
            self.unmake();
        }
        let older = older.unwrap_or(Word::NONE);
        if let Some(object) = self.object {
            // SAFETY: the draft has made it, and nobody else has it.
            let node = unsafe { Node::<V>::new(object) };
            if node.has_link() {
                node.set_older(older);
            }
            return Ok(object);
        }
        let object =
            self.map.nodes.made_under_lock(guard, |memory| memory.make(kind, self.stamp, older))?;
        if let Some(value) = self.value.take() {
            // SAFETY: the object is new, and has no value.
            unsafe { Node::new(object).fill(value) };
        }
        self.object = Some(object);
        Ok(object)
    }

    /// Frees the object, and keeps the value.
    #[cold]
    fn unmake(&mut self) {
        let Some(object) = self.object.take() else { return };
        // SAFETY: the draft has made the object, and nobody else has it.
        unsafe {
            self.value = Node::<V>::new(object).take_value();
            self.map.nodes.memory().free(object);
        }
    }

    /// Notes that the object is in a chain, since the guard was taken.
    #[inline(always)]
    fn linked<'g>(&mut self, object: Word, _guard: &'g Guard) -> Node<'g, V> {
        self.object = None;
        // SAFETY: N2: it is retired after it has left the chain.
        unsafe { Node::new(object) }
    }

    /// The value, which is in no chain.
    pub(super) fn into_value(mut self) -> Option<V> {
        self.unmake();
        self.value.take()
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> Drop for Draft<'_, K, V, C, I> {
    #[inline(always)]
    fn drop(&mut self) {
        self.unmake();
    }
}

/// The number of a version that the caller has given, aborted or not.
fn given_to<V>(node: Node<'_, V>) -> u64 {
    node.stamp().load(SeqCst) & !STATE
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedMap<K, V, C, I> {
    /// Puts a version into the chain of a key, over the newest one. A version with a given number
    /// goes where its number belongs. Nothing is put if the draft deletes what is not there, unless
    /// numbers are given.
    #[inline]
    pub(super) fn push<'g>(
        &self,
        form: KeyRef<'_, I>,
        draft: &mut Draft<'_, K, V, C, I>,
        expected: Expected,
        guard: &'g Guard,
    ) -> Result<Option<Node<'g, V>>, Refusal> {
        let given = draft.stamp & !STATE;
        // A batch also notes what it has not found: readers must not find it beside the batch.
        let may_skip = draft.is_deletion && C::IS_DRAWN && draft.stamp & STATE != BATCH;
        let mut backoff = Backoff::new();
        // To insert a key, one search is enough. An exchange needs a search before it.
        let is_new = !draft.is_deletion && !matches!(expected, Expected::Latest(Some(_)));
        let inserts = is_new && INSERTS.try_with(Cell::get).unwrap_or(false);
        let mut seen = if inserts { None } else { self.index.get(form, guard) };
        if is_new && seen.is_some() == inserts {
            _ = INSERTS.try_with(|last| last.set(seen.is_none()));
        }
        loop {
            let Some(word) = seen else {
                match expected {
                    Expected::Latest(Some(_)) => return Err(Refusal::Conflict(None)),
                    _ if may_skip => return Ok(None),
                    _ => {}
                }
                let object = draft.over(None, guard)?;
                seen = self.index.update(form, Update::TryInsert(object.0), guard)?;
                if seen.is_some() && inserts {
                    _ = INSERTS.try_with(|last| last.set(false));
                }
                if seen.is_none() {
                    return Ok(Some(draft.linked(object, guard)));
                }
                continue;
            };
            // SAFETY: N2: the word was put by this map, and read under the guard.
            let newest = unsafe { Node::<'g, V>::new(Word(word)) };
            if self.settle(newest) == Settled::Open {
                backoff.wait();
                seen = self.index.get(form, guard);
                continue;
            }
            let latest = self.find(newest, u64::MAX);
            let visible = latest.filter(|(_, node)| node.has_value()).map(|(number, _)| number);
            match expected {
                Expected::Latest(expected) if expected != visible => {
                    return Err(Refusal::Conflict(visible));
                }
                _ if may_skip && visible.is_none() => return Ok(None),
                _ => {}
            }
            if !C::IS_DRAWN && given_to(newest) >= given {
                if matches!(expected, Expected::Latest(_)) {
                    return Err(Refusal::NotNewer(given_to(newest)));
                }
                if let Some(placed) = self.put_between(form, draft, given, guard)? {
                    return Ok(Some(placed));
                }
                seen = self.index.get(form, guard);
                continue;
            }
            let object = draft.over(Some(Word(word)), guard)?;
            let verb = Update::CompareExchange { expected: seen, new: Some(object.0) };
            let now = self.index.update(form, verb, guard)?;
            if now == seen {
                return Ok(Some(draft.linked(object, guard)));
            }
            seen = now;
        }
    }

    /// Puts a version below one with a larger number. Returns nothing if there is none any more.
    #[cold]
    fn put_between<'g>(
        &self,
        form: KeyRef<'_, I>,
        draft: &mut Draft<'_, K, V, C, I>,
        given: u64,
        guard: &'g Guard,
    ) -> Result<Option<Node<'g, V>>, Refusal> {
        let _latch = self.latches.lock::<K>(form);
        let Some(newest) = self.newest(form, guard) else { return Ok(None) };
        // The nearest object with a larger number, the one above it, and the next one.
        let (mut above, mut over, mut next) = (None, None, Some(newest));
        while let Some(node) = next {
            let number = given_to(node);
            // Its writer may not know yet whether it came too late, and then it never exists.
            if number == given && self.settle(node) != Settled::Hidden {
                return Err(Refusal::Exists(given));
            }
            if number < given {
                break;
            }
            (above, over, next) = (over, Some(node), node.older());
        }
        let Some(over) = over else { return Ok(None) };
        let object = draft.over(next.map(|node| node.word), guard)?;
        if over.has_link() {
            over.set_older(object); // N1
        } else if !self.join_below(form, (above, over), object, guard)? {
            return Ok(None);
        }
        Ok(Some(draft.linked(object, guard)))
    }

    /// Puts an object below a first version, which has no link: a joint takes its place. Returns
    /// whether it did; if not, another thread has put a newer version. The caller has the latch.
    fn join_below(
        &self,
        form: KeyRef<'_, I>,
        (above, first): (Option<Node<'_, V>>, Node<'_, V>),
        object: Word,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let joint = self
            .nodes
            .made_under_lock(guard, |memory| memory.make(Kind::Joint, first.word.0, object))?;
        if let Some(above) = above {
            above.set_older(joint); // N1
            return Ok(true);
        }
        let (expected, new) = (Some(first.word.0), Some(joint.0));
        let done = self.index.update(form, Update::CompareExchange { expected, new }, guard);
        if done == Ok(expected) {
            return Ok(true);
        }
        // SAFETY: the joint is in no chain, and has no value.
        unsafe { self.nodes.memory().free(joint) };
        done.map(|_| false)
    }

    /// Writes a version, and returns its number, or nothing if a deletion has found nothing.
    #[inline]
    pub(super) fn write(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        (given, value): (u64, Option<V>),
        expected: Expected,
        guard: &Guard,
    ) -> Result<Option<u64>, PutError<V>> {
        let is_early = C::IS_DRAWN && planted(Canary::NumberDrawnEarly);
        let stamp = if is_early { self.time.draw() } else { TENTATIVE | given };
        let mut draft = Draft::new(self, stamp, value);
        let written = key.with_form(|form| {
            admit::<K>(key, form);
            let Some(node) = self.push(form, &mut draft, expected, guard)? else { return Ok(None) };
            let settled = self.settle(node);
            if settled == Settled::Hidden {
                self.prune_key(form, None, guard);
            } else if self.time.prunes() && node.word.kind() != Kind::First {
                self.prune_below(form, node, settled, guard);
            }
            self.sweep_on(guard);
            Ok(Some((node, settled)))
        });
        self.nodes.drop_some();
        match written {
            Ok(None) => Ok(None),
            Ok(Some((_, Settled::Final(number)))) => Ok(Some(number)),
            Ok(Some((node, _))) => {
                // SAFETY: the version is aborted, so nobody reads its value. The guard keeps it.
                let value = unsafe { node.take_value() };
                Err(PutError::TooLate { watermark: self.now(), value })
            }
            Err(refusal) => Err(Refusal::with_value(refusal, draft.into_value())),
        }
    }

    /// Checks a number that the caller gives, and writes a version.
    pub(super) fn write_given(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        (number, value): (u64, Option<V>),
        expected: Expected,
        guard: &Guard,
    ) -> Result<Option<u64>, PutError<V>> {
        if number > MAX_VERSION {
            return Err(PutError::TooLarge { number, value });
        }
        let watermark = self.now();
        if number <= watermark {
            return Err(PutError::TooLate { watermark, value });
        }
        self.write(key, (number, value), expected, guard)
    }

    /// Calls a write with a guard. If an allocation fails, it returns free memory to the system,
    /// and tries once more.
    #[inline(always)]
    fn pinned(
        &self,
        value: Option<V>,
        mut write: impl FnMut(&Self, Option<V>, &Guard) -> Result<Option<u64>, PutError<V>>,
    ) -> Result<Option<u64>, PutError<V>> {
        let written = {
            let guard = self.guard();
            write(self, value, &guard)
        };
        match written {
            Err(PutError::Alloc { error, value }) if is_shortage(error) => {
                self.shrink(); // without a guard
                write(self, value, &self.guard())
            }
            written => written,
        }
    }
}

impl<K: Key, V: Value, C: Clock, I: MapIndex<Key = K::Form>> VersionedView<'_, K, V, C, I> {
    #[inline(always)]
    fn pinned(
        &self,
        value: Option<V>,
        mut write: impl FnMut(
            &VersionedMap<K, V, C, I>,
            Option<V>,
            &Guard,
        ) -> Result<Option<u64>, PutError<V>>,
    ) -> Result<Option<u64>, PutError<V>> {
        match write(self.map(), value, self.guard()) {
            Err(PutError::Alloc { error, value }) if is_shortage(error) => {
                self.map().nodes.drop_all_ready(self.guard());
                write(self.map(), value, self.guard())
            }
            written => written,
        }
    }
}

/// The number of a write that puts a version or fails.
fn put<V>(written: Result<Option<u64>, PutError<V>>) -> Result<u64, PutError<V>> {
    written.map(|number| number.unwrap_or_else(|| unreachable!("only a deletion may find nothing")))
}

/// The writes of a map, and of its view.
macro_rules! writes {
    ($face:ident $(, $lifetime:lifetime)?) => {
        /// Writes of a map that draws the numbers of its versions.
        impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> $face<$($lifetime,)? K, V, Drawn, I> {
            /// Puts a new version of a key, and returns its number.
            #[inline]
            pub fn put(&self, key: impl AsKey<K>, value: V) -> Result<u64, PutError<V>> {
                let write = |map: &VersionedMap<K, V, Drawn, I>, value, guard: &Guard| {
                    map.write(&key, (0, value), Expected::Any, guard)
                };
                put(self.pinned(Some(value), write))
            }

            /// Puts a new version of a key if its newest one has the number `latest`, or if that is
            /// `None` and the key is absent or deleted. Returns the number of the new version.
            pub fn put_if_latest(
                &self,
                key: impl AsKey<K>,
                latest: Option<u64>,
                value: V,
            ) -> Result<u64, PutError<V>> {
                let write = |map: &VersionedMap<K, V, Drawn, I>, value, guard: &Guard| {
                    map.write(&key, (0, value), Expected::Latest(latest), guard)
                };
                put(self.pinned(Some(value), write))
            }

            /// Deletes a key: snapshots from now on do not see it. Returns the number of the
            /// deletion, or `None` if the key was absent.
            pub fn delete(&self, key: impl AsKey<K>) -> Result<Option<u64>, PutError<V>> {
                self.pinned(None, |map, _, guard| map.write(&key, (0, None), Expected::Any, guard))
            }

            /// Deletes a key if its newest version has the number `latest`. Returns the number of
            /// the deletion.
            pub fn delete_if_latest(
                &self,
                key: impl AsKey<K>,
                latest: u64,
            ) -> Result<u64, PutError<V>> {
                let expected = Expected::Latest(Some(latest));
                put(self.pinned(None, |map, _, guard| map.write(&key, (0, None), expected, guard)))
            }
        }

        /// Writes of a map whose caller numbers the versions.
        impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> $face<$($lifetime,)? K, V, Given, I> {
            /// Puts the version of a key that has this number, which must be above the watermark.
            /// Numbers may arrive in any order. A version below the newest one of its key takes the
            /// key's latch, and time for each version above it.
            #[inline]
            pub fn put(
                &self,
                key: impl AsKey<K>,
                number: u64,
                value: V,
            ) -> Result<(), PutError<V>> {
                let write = |map: &VersionedMap<K, V, Given, I>, value, guard: &Guard| {
                    map.write_given(&key, (number, value), Expected::Any, guard)
                };
                self.pinned(Some(value), write).map(drop)
            }

            /// Puts a version like [`put`](Self::put) if the newest one of its key has the number
            /// `latest`, or if that is `None` and the key is absent or deleted. The new number must
            /// be larger than those of all versions of the key.
            pub fn put_if_latest(
                &self,
                key: impl AsKey<K>,
                latest: Option<u64>,
                number: u64,
                value: V,
            ) -> Result<(), PutError<V>> {
                let write = |map: &VersionedMap<K, V, Given, I>, value, guard: &Guard| {
                    map.write_given(&key, (number, value), Expected::Latest(latest), guard)
                };
                self.pinned(Some(value), write).map(drop)
            }

            /// Deletes a key with this number if its newest version has the number `latest`, as
            /// [`put_if_latest`](Self::put_if_latest) puts a value.
            pub fn delete_if_latest(
                &self,
                key: impl AsKey<K>,
                latest: u64,
                number: u64,
            ) -> Result<(), PutError<V>> {
                let expected = Expected::Latest(Some(latest));
                let write = |map: &VersionedMap<K, V, Given, I>, _, guard: &Guard| {
                    map.write_given(&key, (number, None), expected, guard)
                };
                self.pinned(None, write).map(drop)
            }

            /// Deletes a key with this number, as [`put`](Self::put) puts a value. The deletion is
            /// noted even if the key is absent, since an older version may arrive later.
            pub fn delete(&self, key: impl AsKey<K>, number: u64) -> Result<(), PutError<V>> {
                let write = |map: &VersionedMap<K, V, Given, I>, _, guard: &Guard| {
                    map.write_given(&key, (number, None), Expected::Any, guard)
                };
                self.pinned(None, write).map(drop)
            }
        }
    };
}

writes!(VersionedMap);
writes!(VersionedView, '_);

/// The watermark.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> VersionedMap<K, V, Given, I> {
    /// Sets the watermark: later snapshots see the versions up to this number. Writes with a number
    /// up to it fail from now on. Fails if the watermark is higher already, or if the number is
    /// larger than [`MAX_VERSION`].
    pub fn publish(&self, number: u64) -> Result<(), WatermarkError> {
        if number > MAX_VERSION {
            return Err(WatermarkError { number, now: self.now() });
        }
        self.time.publish(number).map_err(|now| WatermarkError { number, now })
    }
}

/// Ends a call that cannot return an allocation failure.
pub(super) fn or_refuse<T>(result: Result<T, AllocError>) -> T {
    result.unwrap_or_else(|error| refuse(error))
}

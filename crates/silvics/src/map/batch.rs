//! Operations on many entries: lookups, upserts, and building a map from sorted entries.

use super::key::{AsKey, Form, FormRef, Forms, Key};
use super::lend::Lends;
use super::ops::{admit, short};
use super::outcome::is_shortage;
use super::value::{Draft, Values};
use super::{Map, MapIndex, Rejected, Value, ValueRef};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::{AllocError, BulkLoadError, InsertManyError, reserved};
use crate::index::KeyRef;
use std::cmp::Ordering;
use std::fmt;
use std::iter::Chain;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::vec;

/// The number of entries that are passed to the index together.
const GROUP: usize = 64;

/// The reason why not all entries were inserted: an allocation failed for one, or its key is too
/// long.
///
/// The entries before that one are in the map. That entry and the entries behind it are in `rest`.
#[non_exhaustive]
pub struct ExtendError<Q, V, R: Iterator<Item = (Q, V)>> {
    /// The number of entries inserted, from the front.
    pub done: usize,
    /// The reason why the next entry was refused.
    pub error: AllocError,
    /// The other entries; the refused one comes first.
    pub rest: Chain<vec::IntoIter<(Q, V)>, R>,
}

impl<Q, V, R: Iterator<Item = (Q, V)>> fmt::Debug for ExtendError<Q, V, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, error) = (&self.done, &self.error);
        f.debug_struct("ExtendError")
            .field("done", done)
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl<Q, V, R: Iterator<Item = (Q, V)>> fmt::Display for ExtendError<Q, V, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries are inserted, and the next one failed: {}", self.done, self.error)
    }
}

impl<Q, V, R: Iterator<Item = (Q, V)>> std::error::Error for ExtendError<Q, V, R> {}

/// The threads that build a map.
pub(super) trait Workers {
    fn threads(&self) -> NonZeroUsize;
    fn sort<T: Ord + Send>(&self, list: &mut [T]);
}

/// The calling thread alone.
pub(super) struct Caller;

impl Workers for Caller {
    fn threads(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    fn sort<T: Ord + Send>(&self, list: &mut [T]) {
        list.sort_unstable();
    }
}

/// A group of entries that are to be inserted.
struct Group<'m, K: Key, Q, V: Value, I: MapIndex<Key = K::Form>> {
    keys: Vec<Q>,
    drafts: Vec<Draft<'m, V, I::Placement>>,
    forms: <K::Form as Form>::Forms,
}

impl<'m, K: Key, Q: AsKey<K>, V: Value, I: MapIndex<Key = K::Form>> Group<'m, K, Q, V, I> {
    fn new() -> Self {
        Self { keys: Vec::new(), drafts: Vec::new(), forms: Default::default() }
    }

    /// Adds an entry, or returns it if its value cannot be allocated.
    fn add(
        &mut self,
        map: &'m Map<K, V, I>,
        (key, value): (Q, V),
        guard: &Guard,
    ) -> Result<(), (Q, Rejected<V>)> {
        let draft = match map.values.drafted(value, guard) {
            Ok(draft) => draft,
            Err(rejected) => return Err((key, rejected)),
        };
        // The encoding comes before the draft joins the others, since it may panic.
        key.with_form(|form| {
            admit::<K>(&key, short::<K>(form));
            self.forms.push(form);
        });
        self.keys.push(key);
        self.drafts.push(draft);
        Ok(())
    }

    /// Adds entries until the group is full or there are no more. Returns an entry whose value
    /// cannot be allocated.
    fn fill(
        &mut self,
        map: &'m Map<K, V, I>,
        entries: &mut impl Iterator<Item = (Q, V)>,
        guard: &Guard,
    ) -> Result<(), (Q, Rejected<V>)> {
        while self.keys.len() < GROUP {
            let Some(entry) = entries.next() else { break };
            self.add(map, entry, guard)?;
        }
        Ok(())
    }

    /// Upserts the entries and empties the group. If an entry is refused, returns it, the entries
    /// behind it, and the reason.
    fn place(
        &mut self,
        map: &'m Map<K, V, I>,
        guard: &Guard,
        see: &mut impl FnMut(Option<u64>),
    ) -> Result<(), (Vec<(Q, V)>, InsertManyError)> {
        let forms = std::mem::take(&mut self.forms);
        let mut keys = std::mem::take(&mut self.keys);
        // If the index panics, it is unknown which of the drafts it has: all of them leak.
        let drafts = ManuallyDrop::new(std::mem::take(&mut self.drafts));
        let entry = |(at, draft): (usize, &Draft<'_, V, _>)| (forms.get(at), draft.word());
        let entries: Vec<(KeyRef<'_, I>, u64)> = drafts.iter().enumerate().map(entry).collect();
        let mut replaced = [None; GROUP];
        let outcome = map.index.insert_many(&entries, &mut replaced, guard);
        let mut drafts = ManuallyDrop::into_inner(drafts);
        let done = outcome.as_ref().map_or_else(|error| error.done, |_| entries.len());
        drop(entries);
        let left = drafts.split_off(done);
        drafts.into_iter().for_each(Draft::placed);
        for old in &replaced[..done] {
            if let Some(old) = *old {
                map.values.taken(old, guard.into());
            }
            see(*old);
        }
        let Err(error) = outcome else { return Ok(()) };
        let left = keys.split_off(done).into_iter().zip(left.into_iter().map(Draft::into_value));
        Err((left.collect(), error))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    pub(super) fn do_get_many<'g, Q: AsKey<K>>(
        &'g self,
        keys: &[Q],
        found: &mut [Option<ValueRef<'g, V>>],
        guard: &'g Guard,
    ) {
        let mut forms = <K::Form as Form>::Forms::default();
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            let mut words = [None; GROUP];
            if let Some(refs) = forms_of::<K, Q>(keys) {
                self.index.get_many(&refs[..keys.len()], &mut words, guard);
            } else {
                forms.clear();
                for key in keys {
                    key.with_form(|form| forms.push(form));
                }
                let refs: Vec<KeyRef<'_, I>> = (0..forms.count()).map(|at| forms.get(at)).collect();
                self.index.get_many(&refs, &mut words, guard);
            }
            for (found, word) in found.iter_mut().zip(&words[..keys.len()]) {
                *found = word.map(|word| self.values.lent(word, guard.into()));
            }
        }
    }

    /// Upserts all entries, group by group, and passes each replaced word to `replaced`. Without a
    /// guard it pins for each group, and tries once more after a shrink if an allocation fails.
    pub(super) fn do_extend<Q: AsKey<K>, R: Iterator<Item = (Q, V)>>(
        &self,
        mut entries: R,
        mut replaced: impl FnMut(Option<u64>),
        guard: Option<&Guard>,
    ) -> Result<usize, ExtendError<Q, V, R>> {
        let mut group = Group::<K, Q, V, I>::new();
        let (mut done, mut failed_at) = (0, usize::MAX);
        // The refused entries, which come before the others.
        let mut first = Vec::new().into_iter();
        loop {
            let own = guard.is_none().then(|| self.one_shot());
            let pinned = guard.or(own.as_ref()).expect("one of the two");
            let fill = || group.fill(self, &mut first.by_ref().chain(&mut entries), pinned);
            let filled = match catch_unwind(AssertUnwindSafe(fill)) {
                Ok(filled) => filled,
                // The iterator panicked, or an encoding: the entries before that are inserted, as
                // they would be one by one.
                Err(panic) => {
                    _ = group.place(self, pinned, &mut replaced);
                    resume_unwind(panic)
                }
            };
            let count = group.keys.len();
            let mut left = match group.place(self, pinned, &mut replaced) {
                Ok(()) => (Vec::new(), None),
                Err((left, error)) => (left, Some(error)),
            };
            done += left.1.map_or(count, |error| error.done);
            let mut refusal = left.1.map(|error| error.error);
            if let Err((key, rejected)) = filled {
                left.0.push((key, rejected.value));
                refusal.get_or_insert(rejected.error);
            }
            if let Some(error) = refusal {
                left.0.extend(first);
                first = left.0.into_iter();
                if guard.is_some() || failed_at == done || !is_shortage(error) {
                    return Err(ExtendError { done, error, rest: first.chain(entries) });
                }
                failed_at = done;
                drop(own);
                self.shrink();
                continue;
            }
            if count < GROUP {
                return Ok(done);
            }
        }
    }

    pub(super) fn do_from_sorted<Q: AsKey<K>>(
        &mut self,
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Result<(), BulkLoadError> {
        let (forms, drafts) = gather(&self.values, &self.index, entries)?;
        let entry = |(at, draft): (usize, &Draft<'_, V, _>)| (forms.get(at), draft.word());
        let mut entries: Vec<(KeyRef<'_, I>, u64)> = Vec::new();
        reserved(&mut entries, drafts.len())?.extend(drafts.iter().enumerate().map(entry));
        let Some(loaded) = self.index.load(&entries, NonZeroUsize::MIN) else {
            let guard = self.index.domain().pin();
            return insert_sorted(&self.index, &entries, drafts, &guard);
        };
        loaded?;
        drafts.into_iter().for_each(Draft::placed);
        Ok(())
    }

    /// Fills an empty map with entries in any order. If the index can be built from sorted entries,
    /// it is, if `go_on` says so when there are no more. If
    /// a key occurs twice, the later entry wins.
    pub(super) fn do_collect<Q: AsKey<K>>(
        &mut self,
        entries: impl IntoIterator<Item = (Q, V)>,
        go_on: impl FnOnce() -> bool,
        workers: &impl Workers,
    ) -> Result<(), AllocError> {
        if self.index.load(&[], NonZeroUsize::MIN).is_none() {
            let done = self.do_extend(entries.into_iter(), |_| (), None);
            return done.map(drop).map_err(|error| error.error);
        }
        let (forms, drafts) = gather(&self.values, &self.index, entries)?;
        if !go_on() {
            return Ok(());
        }
        let mut sorted: Vec<(KeyRef<'_, I>, usize)> = Vec::new();
        reserved(&mut sorted, drafts.len())?
            .extend((0..drafts.len()).map(|at| (forms.get(at), at)));
        if !sorted.is_sorted() {
            workers.sort(&mut sorted); // of equal keys, the later one comes last
        }
        let (mut entries, mut older): (Vec<(KeyRef<'_, I>, u64)>, Vec<usize>) = Default::default();
        reserved(&mut entries, sorted.len())?;
        for (rank, (key, at)) in sorted.iter().enumerate() {
            match sorted.get(rank + 1) {
                Some((next, _)) if next == key => reserved(&mut older, 1)?.push(*at),
                _ => entries.push((*key, drafts[*at].word())),
            }
        }
        drop(sorted);
        older.sort_unstable();
        let mut replaced = Vec::new();
        reserved(&mut replaced, older.len())?;
        match self.index.load(&entries, workers.threads()) {
            Some(Err(BulkLoadError::Alloc(error))) => return Err(error),
            loaded => assert_eq!(loaded, Some(Ok(())), "the contract of `MapIndex::load`"),
        }
        // No value is dropped before the index has all its words: a destructor is the user's code.
        let mut older = older.into_iter().peekable();
        for (at, draft) in drafts.into_iter().enumerate() {
            match older.next_if_eq(&at) {
                Some(_) => replaced.push(draft),
                None => draft.placed(),
            }
        }
        Ok(())
    }
}

/// The forms of a group of keys, if they are available without an encoding. There is at least one
/// key, and the places behind those of the keys have the first one.
fn forms_of<K: Key, Q: AsKey<K>>(keys: &[Q]) -> Option<[FormRef<'_, K>; GROUP]> {
    let mut forms = [keys.first()?.form()?; GROUP];
    for (form, key) in forms.iter_mut().zip(keys).skip(1) {
        *form = key.form()?;
    }
    Some(forms)
}

/// The keys of some entries, and drafts of their values.
type Gathered<'m, K, V, I> =
    (<<K as Key>::Form as Form>::Forms, Vec<Draft<'m, V, <I as MapIndex>::Placement>>);

/// Copies the keys of all entries, and writes their values into slots. It pins for each value: the
/// entries may come slowly.
fn gather<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>, Q: AsKey<K>>(
    values: &'m Values<V, I::Placement>,
    index: &I,
    entries: impl IntoIterator<Item = (Q, V)>,
) -> Result<Gathered<'m, K, V, I>, AllocError> {
    let (mut forms, mut drafts) = Gathered::<K, V, I>::default();
    let entries = entries.into_iter();
    // The iterator may promise more than it has.
    reserved(&mut drafts, entries.size_hint().0.min(1 << 20))?;
    for (key, value) in entries {
        key.with_form(|form| {
            admit::<K>(&key, short::<K>(form));
            forms.reserve(form)?;
            forms.push(form);
            Ok::<(), AllocError>(())
        })?;
        let draft = values.draft(value, &index.domain().pin()).map_err(|(_, error)| error)?;
        reserved(&mut drafts, 1)?.push(draft);
    }
    Ok((forms, drafts))
}

/// Inserts entries one by one if they are sorted. The index owns the drafts that it has.
fn insert_sorted<V: Value, I: MapIndex>(
    index: &I,
    entries: &[(KeyRef<'_, I>, u64)],
    drafts: Vec<Draft<'_, V, I::Placement>>,
    guard: &Guard,
) -> Result<(), BulkLoadError> {
    for (position, pair) in (1..).zip(entries.windows(2)) {
        match pair[0].0.cmp(&pair[1].0) {
            Ordering::Less => {}
            Ordering::Equal => return Err(BulkLoadError::Duplicate { position }),
            Ordering::Greater => return Err(BulkLoadError::Unsorted { position }),
        }
    }
    for ((key, word), draft) in entries.iter().zip(drafts) {
        index.insert(<I::Key as IndexKey>::shorten(*key), *word, guard)?;
        draft.placed();
    }
    Ok(())
}

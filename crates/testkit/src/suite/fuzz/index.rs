//! Makes any calls on any index, and compares it with `BTreeMap`.
//!
//! This compiles every structure of the table. The test binaries that use the same types need half
//! the time to compile for that: at `opt-level = 1` or less, rustc takes the code of a generic
//! function from a dependency that has compiled it for these types.

use super::input::Input;
use crate::keys::{TestKey, lend, nth, own, show};
use crate::make::{self, Make};
use crate::reference::{Move, Position, step, within};
use crate::{ScanSubject, Subject};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::index::Cursor;
use silvics::key::Prefixed;
use silvics::structures::At;
use silvics::{
    AllocError, Batches, Check, Create, Guard, IndexKey, Lookup, Options, OrderedScan, OwnedKey,
    Pages, Placement, Pooled, Shared,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

/// Checks one program. Its first byte chooses the index, the second its memory limit; the rest are
/// calls.
///
/// If `SILVICS_FUZZ_PLANT` is set in the environment, every index is one with a planted mistake.
///
/// # Panics
/// Panics if an index answers differently from the map, or breaks an invariant.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    if std::env::var_os("SILVICS_FUZZ_PLANT").is_some() {
        use crate::broken::{Broken, mistakes::BlindExchange};
        input.byte();
        return with_scans::<Broken<BlindExchange>>(&mut input);
    }
    (chosen(input.byte()).1)(&mut input);
}

/// The name of the index on which a program runs, with which the names of its seeds begin.
pub fn name(data: &[u8]) -> &'static str {
    &chosen(data.first().copied().unwrap_or_default()).0
}

/// An index: its name, and a function that makes the calls of a program on a new one.
type Chosen = (String, fn(&mut Input<'_>));

/// The index that the first byte of a program chooses.
fn chosen(byte: u8) -> &'static Chosen {
    static INDEXES: OnceLock<Vec<Chosen>> = OnceLock::new();
    let indexes = INDEXES.get_or_init(indexes);
    &indexes[usize::from(byte) % indexes.len()]
}

/// The indexes of the table in pools, without those that are stressed alone, and those that run in
/// full in shared memory, too.
fn indexes() -> Vec<Chosen> {
    let mut all: Vec<Chosen> = Vec::new();
    macro_rules! push {
        ($structure:ident $build:ident $keys:ident alias $($rest:tt)*) => {};
        ($structure:ident $build:ident $keys:ident stress $($rest:tt)*) => {};
        ($structure:ident $build:ident $keys:ident suite $face:ident $faults:ident $index:ty) => {
            push!(@ $structure $build $keys $face $index, Pooled);
        };
        ($structure:ident $build:ident $keys:ident locked $face:ident $faults:ident $index:ty) => {
            push!(@ $structure $build $keys $face $index, Pooled);
        };
        ($structure:ident $build:ident $keys:ident full $face:ident $faults:ident $index:ty) => {
            push!(@ $structure $build $keys $face $index, Pooled);
            push!(@ $structure $build $keys $face $index, Shared);
        };
        (@ $structure:ident $build:ident $keys:ident $face:ident $index:ty, $placement:ident) => {
            let words = [stringify!($structure), stringify!($build), stringify!($keys)];
            let name = format!("{}-{}", words.join("-").replace('_', "-"), $placement::NAME);
            all.push((name, push!(@ $face At<$index, $placement>)));
        };
        (@ points $index:ty) => { with_points::<$index> };
        (@ $face:ident $index:ty) => { with_scans::<$index> };
    }
    silvics::for_each_index! { push }
    all
}

/// The value in places of a result that the index must not write.
const UNTOUCHED: Option<u64> = Some(0x0077_7777);

/// Makes calls on an index of this type, behind a trait object.
fn with_points<I>(input: &mut Input<'_>)
where
    I: Create + Batches + Check + Lookup<Key: Decode> + 'static,
{
    points(make::points::<I>, input);
}

/// Makes calls on an index of this type, behind a trait object, including ranges and cursors.
fn with_scans<I>(input: &mut Input<'_>)
where
    I: Create + Batches + Check + OrderedScan + Lookup<Key: Decode> + 'static,
{
    scans(make::scans::<I>, input);
}

/// Decodes the keys of a key type.
trait Decode: TestKey {
    fn decode(input: &mut Input<'_>) -> Self::Owned;
}

impl Decode for u64 {
    /// Mostly decodes one of few keys, so that calls meet; all others take nine bytes.
    fn decode(input: &mut Input<'_>) -> u64 {
        match input.byte() {
            small @ 0..=239 => u64::from(small),
            large @ 240..=247 => u64::MAX - u64::from(large - 240),
            power @ 248..=250 => (1 << 63) + u64::from(power) - 249,
            _ => input.word(),
        }
    }
}

impl Decode for u128 {
    /// Decodes the key of a number below 256, or one that differs in both halves.
    fn decode(input: &mut Input<'_>) -> u128 {
        match input.byte() {
            small @ 0..=239 => u128::nth(u64::from(small)),
            large @ 240..=247 => u128::MAX - u128::from(large - 240),
            _ => u128::from(input.word()) << 64 | u128::from(input.word()),
        }
    }
}

impl Decode for [u8] {
    /// Decodes a few bytes, alone or behind a common prefix. The prefix has one of the lengths at
    /// which comparisons of words, or hints, behave differently.
    fn decode(input: &mut Input<'_>) -> Box<[u8]> {
        const PREFIXES: [usize; 16] =
            [0, 0, 1, 6, 7, 8, 9, 15, 16, 127, 128, 254, 255, 256, 508, 5000];
        let shape = input.byte();
        let mut key = vec![b'p'; PREFIXES[usize::from(shape % 16)]];
        key.extend_from_slice(input.bytes(usize::from(shape / 16) % 12));
        key.into()
    }
}

impl Decode for Prefixed<'static> {
    fn decode(input: &mut Input<'_>) -> Box<[u8]> {
        <[u8]>::decode(input)
    }
}

fn value(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        small @ 0..=253 => u64::from(small),
        254 => u64::MAX,
        _ => input.word(),
    }
}

fn bound<K: Decode + ?Sized>(input: &mut Input<'_>) -> Bound<K::Owned> {
    match input.byte() % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(K::decode(input)),
        _ => Bound::Excluded(K::decode(input)),
    }
}

/// An index with the model it must equal.
struct Run<I: Subject + ?Sized> {
    index: Arc<I>,
    model: BTreeMap<OwnedKey<I>, u64>,
    limit: Option<usize>,
}

fn points<I: Subject<Key: Decode> + ?Sized>(make: Make<I>, input: &mut Input<'_>) {
    let Some(mut run) = Run::new(make, input) else { return };
    while let Some(verb) = input.next() {
        run.point(verb, input);
    }
    run.finish();
}

fn scans<I: ScanSubject<Key: Decode> + ?Sized>(make: Make<I>, input: &mut Input<'_>) {
    let Some(mut run) = Run::new(make, input) else { return };
    let mut walk = Walk { cursor: run.index.cursor(), at: Position::BeforeFirst };
    while let Some(verb) = input.next() {
        match verb % 32 {
            0..16 => run.point(verb, input),
            16..21 => run.ranges(input),
            21..24 => run.range_and_write(input),
            24 => walk.remove_here(&mut run),
            _ => walk.go(&run, input),
        }
        walk.agree();
    }
    drop(walk);
    let all = (Bound::Unbounded, Bound::Unbounded);
    run.same_range(&all);
    run.finish();
}

impl<I: Subject<Key: Decode> + ?Sized> Run<I> {
    /// Makes an index without a limit, or with one at which memory ends within a few objects or
    /// slabs. Returns `None` if not even an empty index fits.
    fn new(make: Make<I>, input: &mut Input<'_>) -> Option<Self> {
        let limit = match input.byte() {
            room @ 0..96 => {
                let empty = make(&Options::default()).expect("no limit").bytes();
                let slabs = usize::from(room) / 48;
                Some(empty + usize::from(room) % 48 * if slabs > 0 { 16 << 10 } else { 24 })
            }
            _ => None,
        };
        let options = Options { memory_limit: limit, pages: Pages::Small, ..Options::default() };
        let index = match make(&options) {
            Ok(index) => Arc::from(index),
            Err(error) => {
                assert!(limit.is_some(), "an empty index is refused: {error}");
                return None;
            }
        };
        Some(Self { index, model: BTreeMap::new(), limit })
    }

    fn refused(&self, error: AllocError) {
        assert!(self.limit.is_some(), "refused without a limit: {error}");
    }

    fn point(&mut self, verb: u8, input: &mut Input<'_>) {
        let guard = self.index.domain().pin();
        match verb % 16 {
            0 => self.get(&<I::Key as Decode>::decode(input), &guard),
            1..3 => self.try_insert(&<I::Key as Decode>::decode(input), value(input), &guard),
            3..5 => self.insert(&<I::Key as Decode>::decode(input), value(input), &guard),
            5..7 => self.remove(&<I::Key as Decode>::decode(input), &guard),
            7..11 => self.compare_exchange(input, &guard),
            11 => self.many(input, &guard),
            12 => self.run_of_keys(input, &guard),
            13 => {
                drop(guard);
                self.index.domain().flush();
            }
            // Make writes under one pin, so that the nodes they retire stay.
            14 => {
                for _ in 0..input.byte() % 8 {
                    self.insert(&<I::Key as Decode>::decode(input), value(input), &guard);
                    self.remove(&<I::Key as Decode>::decode(input), &guard);
                }
            }
            _ => {
                let (len, wanted) = (self.index.len(), self.model.len());
                assert_eq!((len, self.index.is_empty()), (wanted, wanted == 0), "len");
            }
        }
        if let Some(limit) = self.limit {
            let bytes = self.index.bytes();
            assert!(bytes <= limit, "{bytes} bytes are held, {limit} allowed");
        }
    }

    fn get(&self, key: &OwnedKey<I>, guard: &Guard) {
        let found = self.index.get(lend::<I>(key), guard);
        assert_eq!(found, self.model.get(key).copied(), "get {}", show::<I>(key));
    }

    fn try_insert(&mut self, key: &OwnedKey<I>, value: u64, guard: &Guard) {
        let wanted = self.model.get(key).map_or(Ok(()), |v| Err(TryInsertError::Occupied(*v)));
        match self.index.try_insert(lend::<I>(key), value, guard) {
            Err(TryInsertError::Alloc(error)) if wanted.is_ok() => self.refused(error),
            found => {
                assert_eq!(found, wanted, "try_insert {}", show::<I>(key));
                self.model.entry(key.clone()).or_insert(value);
            }
        }
        self.get(key, guard);
    }

    fn insert(&mut self, key: &OwnedKey<I>, value: u64, guard: &Guard) {
        match self.index.insert(lend::<I>(key), value, guard) {
            Err(error) => self.refused(error),
            Ok(old) => {
                let wanted = self.model.insert(key.clone(), value);
                assert_eq!(old, wanted, "insert {}", show::<I>(key));
            }
        }
        self.get(key, guard);
    }

    fn remove(&mut self, key: &OwnedKey<I>, guard: &Guard) {
        match self.index.remove(lend::<I>(key), guard) {
            Err(error) => self.refused(error),
            Ok(old) => assert_eq!(old, self.model.remove(key), "remove {}", show::<I>(key)),
        }
        self.get(key, guard);
    }

    fn compare_exchange(&mut self, input: &mut Input<'_>, guard: &Guard) {
        let key = <I::Key as Decode>::decode(input);
        let shape = input.byte();
        let present = self.model.get(&key).copied();
        let expected = match shape % 4 {
            0 | 1 => present,
            2 => None,
            _ => Some(value(input)),
        };
        let new = (!(shape / 4).is_multiple_of(3)).then(|| value(input));
        let wanted =
            if present == expected { Ok(()) } else { Err(CompareExchangeError::Mismatch(present)) };
        match self.index.compare_exchange(lend::<I>(&key), expected, new, guard) {
            Err(CompareExchangeError::Alloc(error)) if wanted.is_ok() => self.refused(error),
            found => {
                let name = show::<I>(&key);
                assert_eq!(found, wanted, "compare_exchange {name} {expected:?} {new:?}");
                match new {
                    Some(new) if found.is_ok() => {
                        self.model.insert(key.clone(), new);
                    }
                    None if found.is_ok() => {
                        self.model.remove(&key);
                    }
                    _ => {}
                }
            }
        }
        self.get(&key, guard);
    }

    /// Makes batched lookups or upserts.
    fn many(&mut self, input: &mut Input<'_>, guard: &Guard) {
        let shape = input.byte();
        if shape >= 128 {
            return self.insert_many(input, shape, guard);
        }
        let keys: Vec<_> = (0..shape % 32).map(|_| <I::Key as Decode>::decode(input)).collect();
        let lent: Vec<_> = keys.iter().map(lend::<I>).collect();
        let places = (keys.len() + usize::from(shape / 32)).saturating_sub(1);
        let mut found = vec![UNTOUCHED; places];
        self.index.get_many(&lent, &mut found, guard);
        let wanted = keys.iter().map(|key| self.model.get(key).copied());
        let wanted: Vec<_> = wanted.chain(std::iter::repeat(UNTOUCHED)).take(places).collect();
        assert_eq!(found, wanted, "get_many of {} keys", keys.len());
    }

    fn insert_many(&mut self, input: &mut Input<'_>, shape: u8, guard: &Guard) {
        let entries: Vec<_> =
            (0..shape % 32).map(|_| (<I::Key as Decode>::decode(input), value(input))).collect();
        let lent: Vec<_> = entries.iter().map(|(key, value)| (lend::<I>(key), *value)).collect();
        let mut replaced = vec![UNTOUCHED; entries.len()];
        let done = match self.index.insert_many(&lent, &mut replaced, guard) {
            Ok(_) => entries.len(),
            Err(refused) => {
                self.refused(refused.error);
                refused.done
            }
        };
        let mut wanted = vec![UNTOUCHED; entries.len()];
        for (place, (key, value)) in wanted.iter_mut().zip(&entries).take(done) {
            *place = self.model.insert(key.clone(), *value);
        }
        assert_eq!(replaced, wanted, "insert_many, {done} entries done");
    }

    /// Inserts or removes many keys in one direction, so that trees get deep and nodes are retired.
    fn run_of_keys(&mut self, input: &mut Input<'_>, guard: &Guard) {
        let (shape, first, count) =
            (input.byte(), u64::from(input.byte()), u64::from(input.byte()));
        let stride = 1 + u64::from(shape / 4 % 4);
        for at in 0..count {
            let n = if shape % 2 == 0 { at } else { count - 1 - at };
            let key = nth::<I>(first + n * stride);
            if shape / 2 % 2 == 0 {
                self.try_insert(&key, at, guard);
            } else {
                self.remove(&key, guard);
            }
        }
    }

    fn finish(mut self) {
        let guard = self.index.domain().pin();
        for (key, value) in &self.model {
            assert_eq!(self.index.get(lend::<I>(key), &guard), Some(*value), "{}", show::<I>(key));
        }
        drop(guard);
        let index = Arc::get_mut(&mut self.index).expect("no cursor is left");
        match index.check() {
            Ok(entries) => assert_eq!(entries, self.model.len(), "entries"),
            Err(violation) => panic!("{violation}"),
        }
    }
}

type Bounds<I> = (Bound<OwnedKey<I>>, Bound<OwnedKey<I>>);

impl<I: ScanSubject<Key: Decode> + ?Sized> Run<I> {
    fn ranges(&self, input: &mut Input<'_>) {
        self.same_range(&(bound::<I::Key>(input), bound::<I::Key>(input)));
    }

    /// The entries of the model in `bounds`.
    fn wanted(&self, bounds: &Bounds<I>) -> Vec<(OwnedKey<I>, u64)> {
        let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
        let entries = self.model.iter().filter(|(key, _)| within::<I::Key>(&lent, key));
        entries.map(|(key, value)| (key.clone(), *value)).collect()
    }

    fn same_range(&self, bounds: &Bounds<I>) {
        let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
        let guard = self.index.domain().pin();
        let entry = |(key, value)| (own::<I>(key), value);
        let forth: Vec<_> = self.index.range(lent, &guard).map(entry).collect();
        let mut back: Vec<_> = self.index.range_rev(lent, &guard).map(entry).collect();
        back.reverse();
        let wanted = self.wanted(bounds);
        assert_eq!(forth, wanted, "range {bounds:?}");
        assert_eq!(back, wanted, "range_rev {bounds:?}, reversed");
    }

    /// Scans while some entries are written. The scan must return all other entries, and the
    /// written ones at most once, in order, with a value they had.
    fn range_and_write(&mut self, input: &mut Input<'_>) {
        let shape = input.byte();
        let bounds = (bound::<I::Key>(input), bound::<I::Key>(input));
        let index = Arc::clone(&self.index);
        let guard = index.domain().pin();
        let lent = (bounds.0.as_ref().map(lend::<I>), bounds.1.as_ref().map(lend::<I>));
        let before = self.wanted(&bounds);
        let mut possible: Vec<_> = before.clone();
        let mut written: Vec<OwnedKey<I>> = Vec::new();
        let mut write = |run: &mut Self| {
            // The key is near the scan or anywhere.
            let key = match (shape / 4 % 2, run.model.len()) {
                (0, len) if len > 0 => {
                    let at = usize::from(input.byte()) % len;
                    run.model.keys().nth(at).expect("below the length").clone()
                }
                _ => <I::Key as Decode>::decode(input),
            };
            match shape % 2 {
                0 => run.remove(&key, &index.domain().pin()),
                _ => run.insert(&key, value(input), &index.domain().pin()),
            }
            possible.extend(run.model.get(&key).map(|value| (key.clone(), *value)));
            written.push(key);
        };
        let forth = (shape / 2).is_multiple_of(2);
        let mut seen: Vec<(OwnedKey<I>, u64)> = Vec::new();
        let writes = usize::from(shape / 8 % 8);
        let mut note = |run: &mut Self, (key, value)| {
            seen.push((own::<I>(key), value));
            if seen.len() <= writes {
                write(run);
            }
        };
        if forth {
            index.range(lent, &guard).for_each(|entry| note(self, entry));
        } else {
            index.range_rev(lent, &guard).for_each(|entry| note(self, entry));
        }
        if !forth {
            seen.reverse();
        }
        let keys = || seen.iter().map(|(key, _)| show::<I>(key)).collect::<Vec<_>>();
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "order of {:?} in {bounds:?}", keys());
        assert!(seen.iter().all(|entry| possible.contains(entry)), "{seen:?} of {possible:?}");
        let missed = before.iter().find(|entry| {
            !written.contains(&entry.0) && seen.binary_search_by(|s| s.0.cmp(&entry.0)).is_err()
        });
        assert!(missed.is_none(), "{missed:?} is missed in {:?}, {bounds:?}", keys());
        assert!(seen.iter().all(|(key, _)| within::<I::Key>(&lent, key)), "outside of {bounds:?}");
    }
}

/// A cursor, and the position it must have.
struct Walk<I: ScanSubject + ?Sized> {
    cursor: I::Cursor,
    at: Position<OwnedKey<I>>,
}

impl<I: ScanSubject<Key: Decode> + ?Sized> Walk<I> {
    fn go(&mut self, run: &Run<I>, input: &mut Input<'_>) {
        let to = match input.byte() % 8 {
            0 => Move::Seek(<I::Key as Decode>::decode(input)),
            1 => Move::SeekForPrev(<I::Key as Decode>::decode(input)),
            2..5 => Move::Next,
            _ => Move::Prev,
        };
        let moved = match &to {
            Move::Seek(key) => self.cursor.seek(<I::Key as IndexKey>::borrow(key)),
            Move::SeekForPrev(key) => self.cursor.seek_for_prev(<I::Key as IndexKey>::borrow(key)),
            Move::Next => self.cursor.next(),
            Move::Prev => self.cursor.prev(),
        };
        self.at = step(&run.model, &self.at, &to);
        assert_eq!(moved, matches!(self.at, Position::At(..)), "{to:?} leads to {:?}", self.at);
    }

    fn remove_here(&mut self, run: &mut Run<I>) {
        if let Position::At(key, _) = &self.at {
            let index = Arc::clone(&run.index);
            run.remove(key, &index.domain().pin());
        }
    }

    fn agree(&self) {
        let wanted = match &self.at {
            Position::At(key, value) => Some((key.clone(), *value)),
            _ => None,
        };
        let found = self.cursor.key().map(own::<I>).zip(self.cursor.value());
        assert_eq!(found, wanted, "where the cursor stands");
    }
}

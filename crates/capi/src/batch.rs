//! Calls on many keys.

use crate::guard::Caller;
use crate::handle::{Content, map_of, put, silvics_map, with_map};
use crate::points::{Value, borrows};
use crate::status::{Fault, Status, call, silvics_status};
use crate::types::{CKey, CValue, silvics_guard, silvics_key, silvics_value};
use silvics::dynamic::AnyMap;
use silvics::map::ExtendError;
use std::mem::forget;
use std::ptr::null_mut;
use std::slice;

/// The number of keys that are looked up together.
const GROUP: usize = 64;

/// An array of the program.
///
/// # Safety
/// The array has this many elements, which are readable for `'a`; it may be NULL if it has none.
unsafe fn array<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Status::SILVICS_ERROR_NULL);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// Looks up `count` keys. Writes the value of each to the same position in `values`, and whether it
/// is present to that in `found`. The value of an absent key stays as it is. The cache misses of
/// the lookups overlap. Each lookup takes effect at its own moment.
///
/// `guard` may be NULL if the values are numbers.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; `keys` has `count` keys with readable
/// bytes, and `values` and `found` have as many writable places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_get_many(
    map: *const silvics_map,
    guard: *const silvics_guard,
    keys: *const silvics_key,
    count: usize,
    values: *mut silvics_value,
    found: *mut bool,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        let keys = unsafe { array(keys, count) }?;
        if count > 0 && (values.is_null() || found.is_null()) {
            return Err(Status::SILVICS_ERROR_NULL.into());
        }
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, values) };
            let see = |at: usize, value: silvics_value| {
                // SAFETY: the caller's promise: the position is one of the keys.
                unsafe { values.add(at).write(value) };
            };
            // SAFETY: the caller's promise.
            unsafe { get_many(content, caller, keys, see, found) }
        })
    })
}

/// Looks up `count` keys of a map from numbers to numbers, as `silvics_get_many` does.
///
/// # Safety
/// That of `silvics_get_many`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_get_words(
    map: *const silvics_map,
    guard: *const silvics_guard,
    keys: *const u64,
    count: usize,
    values: *mut u64,
    found: *mut bool,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        let keys = unsafe { array(keys, count) }?;
        if count > 0 && (values.is_null() || found.is_null()) {
            return Err(Status::SILVICS_ERROR_NULL.into());
        }
        let content = words(&handle)?;
        let caller = Caller { map, guard, borrows: false };
        let see = |at: usize, value: silvics_value| {
            // SAFETY: the caller's promise: the position is one of the keys.
            unsafe { values.add(at).write(value.word) };
        };
        // SAFETY: the caller's promise.
        unsafe { get_many(content, caller, keys, see, found) }
    })
}

/// A map from numbers to numbers.
fn words(handle: &silvics_map) -> Result<&AnyMap<u64, u64>, Status> {
    match handle.content()? {
        Content::WordsToWords(map) => Ok(map),
        Content::WordsToBuffers(_) => Err(Status::SILVICS_ERROR_VALUE),
        Content::BytesToWords(_) | Content::BytesToBuffers(_) => Err(Status::SILVICS_ERROR_KEY),
    }
}

/// The elements of arrays of keys.
trait Keys<K: CKey>: Copy {
    /// # Safety
    /// That of [`CKey::arg`].
    unsafe fn arg<'a>(self) -> Result<K::Arg<'a>, Status>;
}

impl<K: CKey> Keys<K> for silvics_key {
    #[inline(always)]
    unsafe fn arg<'a>(self) -> Result<K::Arg<'a>, Status> {
        // SAFETY: the caller's promise.
        unsafe { K::arg(self) }
    }
}

impl Keys<u64> for u64 {
    #[inline(always)]
    unsafe fn arg<'a>(self) -> Result<<u64 as CKey>::Arg<'a>, Status> {
        Ok(self)
    }
}

/// # Safety
/// That of [`silvics_get_many`]; `see` writes the value of a position.
unsafe fn get_many<K: CKey, V: CValue, Q: Keys<K>>(
    map: &AnyMap<K, V>,
    caller: Caller,
    keys: &[Q],
    mut see: impl FnMut(usize, silvics_value),
    found: *mut bool,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        // All keys are checked before the first lookup.
        keys.iter().try_for_each(|key| key.arg().map(drop))?;
        caller.run(map, |view| {
            let Some(first) = keys.first() else { return Ok(Status::SILVICS_OK) };
            let mut args = [first.arg()?; GROUP];
            for (group, keys) in keys.chunks(GROUP).enumerate() {
                for (arg, key) in args.iter_mut().zip(keys) {
                    *arg = key.arg()?;
                }
                let mut refs = [const { None }; GROUP];
                view.get_many(&args[..keys.len()], &mut refs[..keys.len()]);
                for (at, value) in refs[..keys.len()].iter().enumerate() {
                    let at = group * GROUP + at;
                    put(found.add(at), value.is_some());
                    if let Some(value) = value {
                        see(at, value.told());
                    }
                }
            }
            Ok(Status::SILVICS_OK)
        })
    }
}

/// Upserts `count` entries, in order: if a key occurs twice, the later one wins. Each upsert takes
/// effect at its own moment. Writes to `done` how many entries are in the map: all of them, unless
/// the call fails. The map owns the buffers of these, and the program those of the others.
///
/// `guard` may be NULL.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; `keys` has `count` keys with readable
/// bytes, and `values` as many values; `done` is NULL or writable. The map may own the buffers: no
/// map has them, and none occurs twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_insert_many(
    map: *const silvics_map,
    guard: *const silvics_guard,
    keys: *const silvics_key,
    values: *const silvics_value,
    count: usize,
    done: *mut usize,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { put(done, 0) };
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        let (keys, values) = unsafe { (array(keys, count)?, array(values, count)?) };
        let value = |at: usize| values[at];
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: false };
            // SAFETY: the caller's promise.
            unsafe { insert_many(content, (caller, &handle), keys, value, done) }
        })
    })
}

/// Upserts `count` entries of a map from numbers to numbers, as `silvics_insert_many` does.
///
/// # Safety
/// That of `silvics_insert_many`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_insert_words(
    map: *const silvics_map,
    guard: *const silvics_guard,
    keys: *const u64,
    values: *const u64,
    count: usize,
    done: *mut usize,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { put(done, 0) };
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        let (keys, values) = unsafe { (array(keys, count)?, array(values, count)?) };
        let value = |at: usize| silvics_value { word: values[at], data: null_mut() };
        let content = words(&handle)?;
        let caller = Caller { map, guard, borrows: false };
        // SAFETY: the caller's promise.
        unsafe { insert_many(content, (caller, &handle), keys, value, done) }
    })
}

/// # Safety
/// That of [`silvics_insert_many`]; `value` returns the value of a position.
unsafe fn insert_many<K: CKey, V: CValue, Q: Keys<K>>(
    map: &AnyMap<K, V>,
    (caller, handle): (Caller, &silvics_map),
    keys: &[Q],
    value: impl Fn(usize) -> silvics_value,
    done: *mut usize,
) -> Result<Status, Fault> {
    let take = |at: usize| Value { value: value(at), handle }.taken::<V>();
    // All entries are checked before the first is inserted. The program still owns their buffers.
    for (at, key) in keys.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { key.arg() }?;
        take(at).map(forget)?;
    }
    let mut inserted = 0;
    // SAFETY: the caller's promise.
    let result = unsafe {
        caller.run(map, |view| {
            let entry = |at: usize| Some((keys[at].arg().ok()?, take(at).ok()?));
            let entries = (inserted..keys.len()).map_while(entry);
            view.try_extend(entries).map_err(|ExtendError { done, error, rest, .. }| {
                inserted += done;
                rest.for_each(|(_, value)| forget(value));
                Fault::Alloc(error)
            })
        })
    };
    // SAFETY: the caller's promise.
    unsafe { put(done, if result.is_ok() { keys.len() } else { inserted }) };
    result.map(|_| Status::SILVICS_OK)
}

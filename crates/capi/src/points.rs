//! Calls on one key.

use crate::guard::{Caller, view_of_words};
use crate::handle::{Content, map_of, put, silvics_map, with_map};
use crate::status::{Fault, Status, call, caught, silvics_status};
use crate::types::{CKey, CValue, silvics_guard, silvics_key, silvics_value};
use silvics::dynamic::AnyMap;
use silvics::map::{CompareExchangeError, Rejected, TryInsertError};
use std::mem::{ManuallyDrop, forget};
use std::ptr::null;

/// The fault of a value that was not inserted. The program still owns its buffer.
pub(crate) fn refused<V>(rejected: Rejected<V>) -> Fault {
    forget(rejected.value);
    Fault::Alloc(rejected.error)
}

/// The fault of an error that this version of the interface does not know.
#[cold]
fn unknown(error: impl std::fmt::Display) -> Fault {
    let text = error.to_string();
    forget(error); // the program still owns the buffer in it
    Fault::Told(Status::SILVICS_ERROR_PANIC, text)
}

/// Whether a call that writes a value of this map to `place` needs a guard.
pub(crate) fn borrows<K: CKey, V: CValue>(_: &AnyMap<K, V>, place: *const silvics_value) -> bool {
    V::BORROWED && !place.is_null()
}

/// Looks a key up, and writes its value to `value`. Returns `SILVICS_OK` or `SILVICS_ABSENT`. Under
/// a guard the call allocates nothing. Without one it pins for itself, and on a map of buffers it
/// may destroy removed ones.
///
/// `guard` may be NULL if the values are numbers, or if `value` is NULL.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable; `value`
/// is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_get(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // The shortest way. Each instruction counts: a processor overlaps the cache misses of as many
    // lookups as it has room for instructions. With the checks of `other_get`, a lookup among a
    // million keys took a fifth longer.
    // SAFETY: the caller's promise.
    if let (Some((view, _used)), true) = (unsafe { view_of_words(map, guard) }, key.data.is_null())
    {
        // SAFETY: the caller's promise.
        return caught(|| unsafe { told(view.get(key.word).as_deref(), value) });
    }
    if guard.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { get_apart(map, key, value) };
    }
    // SAFETY: the caller's promise.
    unsafe { other_get(map, guard, key, value) }
}

/// [`silvics_get`] without a guard.
///
/// # Safety
/// That of [`silvics_get`].
#[inline(never)]
unsafe fn get_apart(
    map: *const silvics_map,
    key: silvics_key,
    value: *mut silvics_value,
) -> Status {
    // SAFETY: the caller's promise.
    if let Ok(handle) = unsafe { map_of(map) }
        && let Ok(Content::WordsToWords(words)) = handle.content()
        && key.data.is_null()
    {
        // SAFETY: the caller's promise.
        return caught(|| unsafe { told(words.pin().get(key.word).as_deref(), value) });
    }
    // SAFETY: the caller's promise.
    unsafe { other_get(map, null(), key, value) }
}

/// [`silvics_get`] in maps of other kinds, or with an argument that is wrong.
///
/// # Safety
/// That of [`silvics_get`].
#[inline(never)]
unsafe fn other_get(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    value: *mut silvics_value,
) -> Status {
    // SAFETY: the caller's promise.
    if let Ok(handle) = unsafe { map_of(map) }
        && let Ok(content) = handle.content()
    {
        with_map!(content, content => {
            let caller = Caller { map, guard, borrows: borrows(content, value) };
            // SAFETY: the caller's promise.
            if let Some(status) = unsafe { quick_get(content, caller, key, value) } {
                return status;
            }
        });
    }
    // SAFETY: the caller's promise.
    unsafe { long_get(map, guard, key, value) }
}

/// Writes a value that was found.
///
/// # Safety
/// `place` is NULL or writable.
#[inline(always)]
unsafe fn told<V: CValue>(found: Option<&V>, place: *mut silvics_value) -> Status {
    let Some(found) = found else { return Status::SILVICS_ABSENT };
    // SAFETY: the caller's promise.
    unsafe { put(place, found.told()) };
    Status::SILVICS_OK
}

/// Looks a key up, or returns `None` if an argument is wrong.
///
/// # Safety
/// That of [`silvics_get`].
#[inline(always)]
unsafe fn quick_get<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    value: *mut silvics_value,
) -> Option<Status> {
    // SAFETY: the caller's promise.
    unsafe {
        let key = K::arg(key).ok()?;
        if caller.guard.is_null() {
            return (!caller.borrows).then(|| caught(|| told(map.get(key).as_deref(), value)));
        }
        let view = caller.view(map).ok()?;
        Some(caught(|| told(view.get(key).as_deref(), value)))
    }
}

/// [`silvics_get`] with an argument that is wrong.
///
/// # Safety
/// That of [`silvics_get`].
#[cold]
#[inline(never)]
unsafe fn long_get(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    value: *mut silvics_value,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, value) };
            // SAFETY: the caller's promise.
            unsafe { get(content, caller, key, value) }
        })
    })
}

/// # Safety
/// That of [`silvics_get`].
unsafe fn get<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    value: *mut silvics_value,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    let key = unsafe { K::arg(key) }?;
    // SAFETY: the caller's promise.
    unsafe {
        caller.run(map, |view| {
            let Some(found) = view.get(key) else { return Ok(Status::SILVICS_ABSENT) };
            put(value, found.told());
            Ok(Status::SILVICS_OK)
        })
    }
}

/// Put-if-absent: gives a key a value unless it is present. Returns `SILVICS_OK`, or
/// `SILVICS_PRESENT` after writing the present value to `present`. The map owns the buffer if the
/// result is `SILVICS_OK`, and only then.
///
/// `guard` may be NULL if the values are numbers, or if `present` is NULL.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable;
/// `present` is NULL or writable. The map may own the buffer: no map has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_try_insert(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    value: silvics_value,
    present: *mut silvics_value,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, present) };
            let new = Value { value, handle: &handle };
            // SAFETY: the caller's promise.
            unsafe { try_insert(content, caller, key, new, present) }
        })
    })
}

/// The value of an argument.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) value: silvics_value,
    pub(crate) handle: &'a silvics_map,
}

impl Value<'_> {
    /// The value, which the map owns from now on.
    #[inline(always)]
    pub(crate) fn taken<V: CValue>(self) -> Result<V, Status> {
        V::taken(self.value, &raw const self.handle.destructor)
    }
}

/// # Safety
/// That of [`silvics_try_insert`].
#[inline(always)]
unsafe fn try_insert<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    value: Value<'_>,
    present: *mut silvics_value,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    let key = unsafe { K::arg(key) }?;
    // SAFETY: the caller's promise.
    unsafe {
        caller.run(map, |view| match view.try_insert(key, value.taken::<V>()?) {
            Ok(_) => Ok(Status::SILVICS_OK),
            Err(TryInsertError::Occupied { present: found, value }) => {
                forget(value);
                put(present, found.told());
                Ok(Status::SILVICS_PRESENT)
            }
            Err(TryInsertError::Alloc(rejected)) => Err(refused(rejected)),
            Err(other) => Err(unknown(other)),
        })
    }
}

/// Upsert: gives a key a value. Returns `SILVICS_OK` if the key was absent, or `SILVICS_REPLACED`
/// after writing the old value to `old`. The map owns the buffer unless the call fails.
///
/// `guard` may be NULL if the values are numbers, or if `old` is NULL.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable; `old`
/// is NULL or writable. The map may own the buffer: no map has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_insert(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    value: silvics_value,
    old: *mut silvics_value,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, old) };
            let new = Value { value, handle: &handle };
            // SAFETY: the caller's promise.
            unsafe { insert(content, caller, key, new, old) }
        })
    })
}

/// # Safety
/// That of [`silvics_insert`].
#[inline(always)]
unsafe fn insert<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    value: Value<'_>,
    old: *mut silvics_value,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    let key = unsafe { K::arg(key) }?;
    // SAFETY: the caller's promise.
    unsafe {
        caller.run(map, |view| match view.try_upsert(key, value.taken::<V>()?) {
            Ok(None) => Ok(Status::SILVICS_OK),
            Ok(Some(replaced)) => {
                put(old, replaced.told());
                Ok(Status::SILVICS_REPLACED)
            }
            Err(rejected) => Err(refused(rejected)),
        })
    }
}

/// Removes a key. Returns `SILVICS_OK` after writing its value to `old`, or `SILVICS_ABSENT`. The
/// map destroys the buffer once no guard may have seen it.
///
/// `guard` may be NULL if the values are numbers, or if `old` is NULL.
///
/// # Safety
/// That of `silvics_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_remove(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    old: *mut silvics_value,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, old) };
            // SAFETY: the caller's promise.
            unsafe { remove(content, caller, key, old) }
        })
    })
}

/// # Safety
/// That of [`silvics_remove`].
#[inline(always)]
unsafe fn remove<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    old: *mut silvics_value,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    let key = unsafe { K::arg(key) }?;
    // SAFETY: the caller's promise.
    unsafe {
        caller.run(map, |view| {
            let Some(removed) = view.try_remove(key)? else { return Ok(Status::SILVICS_ABSENT) };
            put(old, removed.told());
            Ok(Status::SILVICS_OK)
        })
    }
}

/// Brings a key from one state to another in one atomic step: a state is a value, or NULL for
/// *absent*. Two buffers are equal if they are the same. Returns:
///
/// * `SILVICS_OK`: the key had the expected state. The map owns the desired buffer, and destroys
///   the expected one once no guard may have seen it.
/// * `SILVICS_MISMATCH`: the key has another value, which is written to `present`.
/// * `SILVICS_ABSENT`: the key is absent, but a value was expected.
///
/// `guard` may be NULL if the values are numbers, or if `present` is NULL.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; the bytes of the key are readable;
/// `expected` and `desired` are NULL or readable; `present` is NULL or writable. The map may own
/// the desired buffer: no map has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_compare_exchange(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: silvics_key,
    expected: *const silvics_value,
    desired: *const silvics_value,
    present: *mut silvics_value,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        let states = unsafe { [expected.as_ref(), desired.as_ref()] };
        let states = states.map(|state| state.map(|&value| Value { value, handle: &handle }));
        with_map!(handle.content()?, content => {
            let caller = Caller { map, guard, borrows: borrows(content, present) };
            // SAFETY: the caller's promise.
            unsafe { compare_exchange(content, caller, key, states, present) }
        })
    })
}

/// # Safety
/// That of [`silvics_compare_exchange`].
unsafe fn compare_exchange<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    caller: Caller,
    key: silvics_key,
    [expected, desired]: [Option<Value<'_>>; 2],
    present: *mut silvics_value,
) -> Result<Status, Fault> {
    // SAFETY: the caller's promise.
    let key = unsafe { K::arg(key) }?;
    // It is compared only: the program or the map owns its buffer.
    let expected = expected.map(Value::taken::<V>).transpose()?.map(ManuallyDrop::new);
    let exchange = |view: &crate::handle::CView<'_, K, V>| {
        let desired = desired.map(Value::taken::<V>).transpose()?;
        match view.compare_exchange(key, expected.as_deref(), desired) {
            Ok(_) => Ok(Status::SILVICS_OK),
            Err(CompareExchangeError::Mismatch { present: found, new }) => {
                forget(new);
                let Some(found) = found else { return Ok(Status::SILVICS_ABSENT) };
                // SAFETY: the caller's promise.
                unsafe { put(present, found.told()) };
                Ok(Status::SILVICS_MISMATCH)
            }
            Err(CompareExchangeError::Alloc(rejected)) => Err(refused(rejected)),
            Err(other) => Err(unknown(other)),
        }
    };
    // SAFETY: the caller's promise.
    unsafe { caller.run(map, exchange) }
}

//! Calls at both ends of a map.

use crate::guard::Caller;
use crate::handle::{map_of, put, silvics_map, with_map};
use crate::status::{Fault, Status, call, silvics_status};
use crate::types::{CKey, CValue, silvics_guard, silvics_key, silvics_value};
use silvics::dynamic::AnyMap;

/// An end of a map, and whether its entry is removed.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
    PopFirst,
    PopLast,
}

/// The places that the program gives for an entry.
#[derive(Clone, Copy)]
struct Places {
    key: *mut silvics_key,
    value: *mut silvics_value,
}

/// # Safety
/// That of [`silvics_first`].
unsafe fn end_of(
    map: *const silvics_map,
    guard: *const silvics_guard,
    places: Places,
    end: End,
) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        // SAFETY: the caller's promise.
        with_map!(handle.content()?, content => unsafe { entry(content, (map, guard), places, end) })
    })
}

/// # Safety
/// That of [`silvics_first`].
unsafe fn entry<K: CKey, V: CValue>(
    map: &AnyMap<K, V>,
    (handle, guard): (*const silvics_map, *const silvics_guard),
    places: Places,
    end: End,
) -> Result<Status, Fault> {
    let borrows = K::BORROWED && !places.key.is_null() || V::BORROWED && !places.value.is_null();
    let caller = Caller { map: handle, guard, borrows };
    // SAFETY: the caller's promise.
    unsafe {
        caller.run(map, |view| {
            let ends = view.ends().ok_or(Status::SILVICS_ERROR_UNSUPPORTED)?;
            let found = match end {
                End::First => ends.first(),
                End::Last => ends.last(),
                End::PopFirst => ends.try_pop_first()?,
                End::PopLast => ends.try_pop_last()?,
            };
            let Some((key, value)) = found else { return Ok(Status::SILVICS_ABSENT) };
            put(places.key, K::told(key));
            put(places.value, value.told());
            Ok(Status::SILVICS_OK)
        })
    }
}

/// Finds the entry with the smallest key, and writes its key and its value. Returns `SILVICS_OK`,
/// or `SILVICS_ABSENT` if the map is empty. At some moment during the call it was the first entry
/// of the map.
///
/// `guard` may be NULL if no byte key and no buffer is to be written. Some structures have no ends:
/// their maps return `SILVICS_ERROR_UNSUPPORTED`.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; `key` and `value` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_first(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { end_of(map, guard, Places { key, value }, End::First) }
}

/// Finds the entry with the largest key, and writes its key and its value. Returns `SILVICS_OK`, or
/// `SILVICS_ABSENT` if the map is empty. At some moment during the call it was the last entry of
/// the map.
///
/// `guard` may be NULL if no byte key and no buffer is to be written. Some structures have no ends:
/// their maps return `SILVICS_ERROR_UNSUPPORTED`.
///
/// # Safety
/// The map is NULL or open; `guard` is NULL or readable; `key` and `value` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_last(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { end_of(map, guard, Places { key, value }, End::Last) }
}

/// Removes the entry with the smallest key as `silvics_first` finds it. The map destroys the buffer
/// once no guard may have seen it.
///
/// # Safety
/// That of `silvics_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_pop_first(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { end_of(map, guard, Places { key, value }, End::PopFirst) }
}

/// Removes the entry with the largest key as `silvics_last` finds it. The map destroys the buffer
/// once no guard may have seen it.
///
/// # Safety
/// That of `silvics_last`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_pop_last(
    map: *const silvics_map,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { end_of(map, guard, Places { key, value }, End::PopLast) }
}

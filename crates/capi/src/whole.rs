//! Calls on a whole map: its size, its memory, its checks.

use crate::handle::{lent, map_of, put, silvics_map, with_map};
use crate::registry;
use crate::status::{Fault, Status, call, silvics_status};
use silvics::Check;
use silvics::dynamic::AnyMap;
use std::sync::Arc;

/// Returns the number of keys; 0 for NULL. It is exact while no thread writes: otherwise each
/// concurrent call may or may not be counted.
///
/// # Safety
/// The map is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_len(map: *const silvics_map) -> usize {
    // SAFETY: the caller's promise.
    let Ok(handle) = (unsafe { map_of(map) }) else { return 0 };
    handle.content().map_or(0, |content| with_map!(content, map => map.len()))
}

/// Returns the bytes that the map holds from the system, exactly: live, retired and free nodes and
/// keys, and bookkeeping; 0 for NULL. Buffers are not counted. If the map has a budget, the result
/// is that of all maps which have it.
///
/// # Safety
/// The map is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_bytes(map: *const silvics_map) -> usize {
    // SAFETY: the caller's promise.
    let Ok(handle) = (unsafe { map_of(map) }) else { return 0 };
    handle.content().map_or(0, |content| with_map!(content, map => map.bytes()))
}

/// Destroys removed buffers that no guard protects: all buffers removed by this thread or by ended
/// threads, and some removed by other threads. Call it without a guard.
///
/// # Safety
/// The map is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_flush(map: *const silvics_map) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, map => map.flush());
        Ok(Status::SILVICS_OK)
    })
}

/// Flushes as `silvics_flush` does, and returns memory without entries to the system. Writes the
/// number of bytes that it returned to `bytes`. Call it after most of a map was removed, and
/// without a guard. O(slabs).
///
/// # Safety
/// The map is NULL or open; `bytes` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_shrink(
    map: *const silvics_map,
    bytes: *mut usize,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        let returned = with_map!(handle.content()?, map => map.shrink());
        // SAFETY: the caller's promise.
        unsafe { put(bytes, returned) };
        Ok(Status::SILVICS_OK)
    })
}

/// Walks the whole map, verifies the invariants of its structure, and writes the number of entries
/// to `entries`. Returns `SILVICS_ERROR_CORRUPT` if one is broken; then `silvics_last_error` says
/// which. O(entries).
///
/// # Safety
/// The map is NULL or open; no other call uses it, and no guard of it is pinned; `entries` is NULL
/// or writable. An open cursor is an error, and in debug builds a guard or another call is, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_check(
    map: *mut silvics_map,
    entries: *mut usize,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { lent(map, "map", true) }?;
        handle.content()?;
        registry::is_unpinned(map)?;
        // SAFETY: the caller's promise: no other call uses the map.
        let content = unsafe { silvics_map::content_mut(map) };
        let count = with_map!(content, map => check(map))?;
        // SAFETY: the caller's promise.
        unsafe { put(entries, count) };
        Ok(Status::SILVICS_OK)
    })
}

fn check<K, V>(map: &mut Arc<AnyMap<K, V>>) -> Result<usize, Fault>
where
    K: crate::types::CKey,
    V: crate::types::CValue,
{
    let map = Arc::get_mut(map).ok_or(Status::SILVICS_ERROR_BUSY)?;
    map.check().map_err(|violation| {
        Fault::Told(Status::SILVICS_ERROR_CORRUPT, format!("a check found: {violation}"))
    })
}

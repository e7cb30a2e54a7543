//! Cursors.

use crate::guard::Caller;
use crate::handle::{CView, Content, end, lent, map_of, put, silvics_map};
use crate::registry::{self, Use};
use crate::status::{Fault, Status, call, caught, silvics_status};
use crate::types::{Buffer, CKey, CValue, silvics_guard, silvics_key, silvics_value};
use silvics::dynamic::{AnyMap, AnyOrdered};
use silvics::key::Key;
use silvics::map::Cursor;
use std::ops::Bound;
use std::ptr::null_mut;
use std::sync::Arc;

/// A position in a map. It stands at an entry, before the first one, or behind the last one.
///
/// It pins nothing between calls, and stays valid whatever other threads insert and remove. Moves
/// in one direction return every key that is present all the while, and no key that is absent all
/// the while. A cursor reads up to 512 entries ahead, so it may miss writes to these. One thread at
/// a time may use it.
pub struct silvics_cursor {
    place: Place,
    /// Dropped after the cursor's map (H2).
    handle: Arc<silvics_map>,
}

/// A cursor of a map.
pub(crate) type AnyCursor<K, V> = Cursor<K, V, AnyOrdered<<K as Key>::Form>>;

enum Place {
    WordsToWords(AnyCursor<u64, u64>),
    WordsToBuffers(AnyCursor<u64, Buffer>),
    BytesToWords(AnyCursor<Vec<u8>, u64>),
    BytesToBuffers(AnyCursor<Vec<u8>, Buffer>),
}

/// Evaluates an expression with the cursor of a handle, whatever its types are.
macro_rules! with_cursor {
    ($place:expr, $cursor:ident => $body:expr) => {
        match $place {
            Place::WordsToWords($cursor) => $body,
            Place::WordsToBuffers($cursor) => $body,
            Place::BytesToWords($cursor) => $body,
            Place::BytesToBuffers($cursor) => $body,
        }
    };
}

/// A cursor of a map, for a new handle.
fn opened(
    map: *const silvics_map,
    open: impl FnOnce(&Content) -> Result<Place, Fault>,
    cursor: *mut *mut silvics_cursor,
) -> Result<Status, Fault> {
    // SAFETY: the callers demand it.
    let handle = unsafe { map_of(map) }?;
    if cursor.is_null() {
        return Err(Status::SILVICS_ERROR_NULL.into());
    }
    let place = open(handle.content()?)?;
    // SAFETY: the handle is one of an `Arc`, whose share the program has.
    let handle = unsafe {
        Arc::increment_strong_count(map);
        Arc::from_raw(map)
    };
    let opened = Box::into_raw(Box::new(silvics_cursor { place, handle }));
    registry::open(opened, "cursor");
    // SAFETY: the callers demand that the place is writable.
    unsafe { cursor.write(opened) };
    Ok(Status::SILVICS_OK)
}

/// Opens a cursor over the entries from the key `from` on, before the key `to`: `NULL` is no bound.
/// It stands before the first entry.
///
/// # Safety
/// The map is NULL or open; `from` and `to` are NULL or keys with readable bytes; `cursor` is NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_open(
    map: *const silvics_map,
    from: *const silvics_key,
    to: *const silvics_key,
    cursor: *mut *mut silvics_cursor,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise.
        let bounds = unsafe { (from.as_ref().copied(), to.as_ref().copied()) };
        let open = |content: &Content| {
            // SAFETY: the caller's promise.
            unsafe {
                Ok(match content {
                    Content::WordsToWords(map) => Place::WordsToWords(ranged(map, bounds)?),
                    Content::WordsToBuffers(map) => Place::WordsToBuffers(ranged(map, bounds)?),
                    Content::BytesToWords(map) => Place::BytesToWords(ranged(map, bounds)?),
                    Content::BytesToBuffers(map) => Place::BytesToBuffers(ranged(map, bounds)?),
                })
            }
        };
        opened(map, open, cursor)
    })
}

/// # Safety
/// The bytes of the keys are readable.
unsafe fn ranged<K: CKey, V: CValue>(
    map: &Arc<AnyMap<K, V>>,
    (from, to): (Option<silvics_key>, Option<silvics_key>),
) -> Result<AnyCursor<K, V>, Fault> {
    // SAFETY: the caller's promise.
    let key = |key: Option<silvics_key>| key.map(|key| unsafe { K::arg(key) }).transpose();
    let from = key(from)?.map_or(Bound::Unbounded, Bound::Included);
    let to = key(to)?.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(map.cursor_range((from, to)))
}

/// Opens a cursor over the entries whose byte keys begin with `prefix`, before the first of them.
///
/// # Safety
/// The map is NULL or open; the bytes of the prefix are readable; `cursor` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_open_prefix(
    map: *const silvics_map,
    prefix: silvics_key,
    cursor: *mut *mut silvics_cursor,
) -> silvics_status {
    call(|| {
        let open = |content: &Content| {
            // SAFETY: the caller's promise.
            let prefix = unsafe { <Vec<u8> as CKey>::arg(prefix) }?;
            Ok(match content {
                Content::BytesToWords(map) => Place::BytesToWords(map.cursor_prefix(prefix)),
                Content::BytesToBuffers(map) => Place::BytesToBuffers(map.cursor_prefix(prefix)),
                Content::WordsToWords(_) | Content::WordsToBuffers(_) => {
                    return Err(Status::SILVICS_ERROR_KEY.into());
                }
            })
        };
        opened(map, open, cursor)
    })
}

/// Closes a cursor. If its map is destroyed and this is the last cursor, the map's memory is freed
/// and its buffers are destroyed. NULL is allowed.
///
/// # Safety
/// The cursor is NULL or open, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_close(cursor: *mut silvics_cursor) -> silvics_status {
    call(|| {
        if cursor.is_null() {
            return Ok(Status::SILVICS_OK);
        }
        // SAFETY: the caller's promise.
        drop(unsafe { lent(cursor, "cursor", true) }?);
        // SAFETY: `opened` made the box, and the caller ends it once.
        unsafe { end(cursor) };
        Ok(Status::SILVICS_OK)
    })
}

/// The places that the program gives for an entry, and its guard.
#[derive(Clone, Copy)]
struct Places {
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
}

/// A move of a cursor, and where its result goes.
#[derive(Clone, Copy)]
enum Move {
    /// To the first entry at or after a key, or to the last one at or before it.
    Seek(silvics_key),
    SeekForPrev(silvics_key),
    First,
    Last,
    Next,
    Prev,
    /// To no other entry.
    Stay,
}

/// Moves a cursor to a neighbour, by a short way if nothing is to be looked up.
///
/// # Safety
/// That of [`silvics_cursor_next`].
#[inline(always)]
unsafe fn stepped<const REV: bool>(cursor: *mut silvics_cursor, places: Places) -> Status {
    // SAFETY: the caller's promise: the cursor is open, and no other call uses it.
    if let Ok((open, _used)) = unsafe { cursor_of(cursor) } {
        let quick = with_cursor!(&mut open.place, place => {
            // SAFETY: the caller's promise.
            unsafe { quick_step::<_, _, REV>(place, places) }
        });
        if let Some(status) = quick {
            return status;
        }
    }
    // SAFETY: the caller's promise. The short way has not moved the cursor.
    unsafe { moved(cursor, if REV { Move::Prev } else { Move::Next }, places) }
}

/// Borrows a cursor, for a call that uses it.
///
/// # Safety
/// The cursor is NULL or open, and no other call uses it for `'a`.
#[inline(always)]
unsafe fn cursor_of<'a>(
    cursor: *mut silvics_cursor,
) -> Result<(&'a mut silvics_cursor, Use<silvics_cursor>), Status> {
    let used = registry::begin(cursor, "cursor", true)?;
    // SAFETY: the caller's promise.
    let cursor = unsafe { cursor.as_mut() }.ok_or(Status::SILVICS_ERROR_NULL)?;
    cursor.handle.is_open()?;
    Ok((cursor, used))
}

/// Moves a cursor to a neighbour, or returns `None` if a buffer is to be looked up.
///
/// # Safety
/// That of [`silvics_cursor_next`].
#[inline(always)]
unsafe fn quick_step<K: CKey, V: CValue, const REV: bool>(
    cursor: &mut AnyCursor<K, V>,
    Places { key, value, .. }: Places,
) -> Option<Status> {
    if V::BORROWED && !value.is_null() {
        return None;
    }
    Some(caught(move || {
        if !(if REV { cursor.prev() } else { cursor.next() }) {
            return Status::SILVICS_ABSENT;
        }
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(word) = V::read_ahead(cursor) {
                put(value, word);
            }
            if let Some(found) = cursor.key() {
                put(key, K::told(found));
            }
        }
        Status::SILVICS_OK
    }))
}

/// Moves a cursor, and writes the entry at which it then stands.
///
/// # Safety
/// That of [`silvics_cursor_next`]; the bytes of a key are readable.
#[cold]
#[inline(never)]
unsafe fn moved(cursor: *mut silvics_cursor, to: Move, places: Places) -> Status {
    call(|| {
        // SAFETY: the caller's promise.
        let (cursor, _used) = unsafe { cursor_of(cursor) }?;
        let map = Arc::as_ptr(&cursor.handle);
        // SAFETY: the caller's promise.
        with_cursor!(&mut cursor.place, place => unsafe { step(place, map, to, places) })
    })
}

/// # Safety
/// That of [`moved`].
#[inline(always)]
unsafe fn step<K: CKey, V: CValue>(
    cursor: &mut AnyCursor<K, V>,
    map: *const silvics_map,
    to: Move,
    places: Places,
) -> Result<Status, Fault> {
    // A number is read ahead, and a buffer must be looked up under the guard.
    if V::BORROWED && !places.value.is_null() {
        if places.guard.is_null() {
            return Err(Status::SILVICS_ERROR_GUARD.into());
        }
        // A wrong guard is found before the cursor moves.
        let caller = Caller { map, guard: places.guard, borrows: true };
        // SAFETY: the caller's promise.
        unsafe { caller.view(cursor.map()) }?;
    }
    // SAFETY: the caller's promise.
    let arg = |key| unsafe { K::arg(key) };
    let stands = match to {
        Move::Next => cursor.next(),
        Move::Prev => cursor.prev(),
        Move::Seek(key) => cursor.seek(arg(key)?),
        Move::SeekForPrev(key) => cursor.seek_for_prev(arg(key)?),
        Move::First => cursor.seek_to_first(),
        Move::Last => cursor.seek_to_last(),
        Move::Stay => cursor.key().is_some(),
    };
    if !stands {
        return Ok(Status::SILVICS_ABSENT);
    }
    // SAFETY: the caller's promise.
    unsafe { told(cursor, map, places) }
}

/// Writes the entry at which a cursor stands.
///
/// # Safety
/// That of [`moved`].
#[inline(always)]
unsafe fn told<K: CKey, V: CValue>(
    cursor: &AnyCursor<K, V>,
    map: *const silvics_map,
    Places { guard, key, value }: Places,
) -> Result<Status, Fault> {
    let Some(found) = cursor.key().map(K::told) else { return Ok(Status::SILVICS_ABSENT) };
    if !value.is_null() {
        let present = if let Some(word) = V::read_ahead(cursor) {
            word
        } else {
            let caller = Caller { map, guard, borrows: true };
            // SAFETY: the key is that of the cursor, which no other call moves.
            let key = unsafe { K::arg(found) }?;
            let look = |view: &CView<'_, K, V>| Ok(view.get(key).map(|value| value.told()));
            // SAFETY: the caller's promise.
            let value = unsafe { caller.run(cursor.map(), look) }?;
            value.unwrap_or(silvics_value { word: 0, data: null_mut() })
        };
        // SAFETY: the caller's promise.
        unsafe { put(value, present) };
    }
    // SAFETY: the caller's promise.
    unsafe { put(key, found) };
    Ok(Status::SILVICS_OK)
}

/// Moves a cursor to the next entry; from before the first entry, to the first one.
///
/// Returns `SILVICS_OK` after writing the entry's key and value, or `SILVICS_ABSENT` if there is no
/// such entry. A byte key is valid until the cursor moves again. A number is the value that the
/// cursor read ahead. A buffer is that of the key at the moment of the call: it is valid under the
/// guard, and `data` is NULL if the key was removed since.
///
/// `guard` may be NULL if the values are numbers, or if `value` is NULL.
///
/// # Safety
/// The cursor is NULL or open, and no other thread uses it; `guard` is NULL or readable; `key` and
/// `value` are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_next(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { stepped::<false>(cursor, Places { guard, key, value }) }
}

/// Moves a cursor to the previous entry; from behind the last entry, to the last one.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_prev(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { stepped::<true>(cursor, Places { guard, key, value }) }
}

/// Moves a cursor to the first entry.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_first(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { moved(cursor, Move::First, Places { guard, key, value }) }
}

/// Moves a cursor to the last entry.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_last(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { moved(cursor, Move::Last, Places { guard, key, value }) }
}

/// Writes the entry at which a cursor stands, and does not move it.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_entry(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { moved(cursor, Move::Stay, Places { guard, key, value }) }
}

/// Moves a cursor to the first entry at or after a key.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`. The bytes of the key are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_seek(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    to: silvics_key,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { moved(cursor, Move::Seek(to), Places { guard, key, value }) }
}

/// Moves a cursor to the last entry at or before a key.
/// Its result is that of `silvics_cursor_next`.
///
/// # Safety
/// That of `silvics_cursor_next`. The bytes of the key are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_cursor_seek_for_prev(
    cursor: *mut silvics_cursor,
    guard: *const silvics_guard,
    to: silvics_key,
    key: *mut silvics_key,
    value: *mut silvics_value,
) -> silvics_status {
    // SAFETY: the caller's promise.
    unsafe { moved(cursor, Move::SeekForPrev(to), Places { guard, key, value }) }
}

//! Pins, and calls under them or under one of their own.

use crate::handle::{CView, Content, map_of, silvics_map, with_map};
use crate::registry::{self, Use};
use crate::status::{Fault, Status, call, silvics_status};
use crate::types::{CKey, CValue, silvics_guard};
use silvics::dynamic::AnyMap;
use std::ptr::{drop_in_place, with_exposed_provenance};

/// The first word of a guard that is pinned.
const PINNED: u64 = 0x5115_1c5e_5115_1c5e;
/// The first word of one that is unpinned.
const UNPINNED: u64 = 0;

/// The words of a guard: whether it is pinned, the handle of its map, its thread in debug builds,
/// the view of the map, and whether that is one from numbers to numbers.
const STATE: usize = 0;
const MAP: usize = 1;
const THREAD: usize = 2;
const VIEW: usize = 3;
const IS_WORDS: usize = 7;

const _: () = {
    type View<'m> = CView<'m, u64, u64>;
    assert!(
        size_of::<View>() <= 8 * (IS_WORDS - VIEW)
            && align_of::<View>() <= align_of::<silvics_guard>()
    );
};

/// A number of the calling thread, in debug builds.
#[inline(always)]
fn thread() -> u64 {
    #[cfg(debug_assertions)]
    {
        thread_local! { static PLACE: u8 = const { 0 }; }
        PLACE.try_with(|place| std::ptr::from_ref(place).addr() as u64).unwrap_or(0)
    }
    #[cfg(not(debug_assertions))]
    0
}

/// Returns an error unless the guard is pinned for this map, by this thread.
///
/// # Safety
/// The guard is readable.
#[inline(always)]
unsafe fn check(guard: *const silvics_guard, map: *const silvics_map) -> Result<(), Status> {
    // SAFETY: the caller's promise.
    let words = unsafe { &(*guard).words };
    // An unpinned guard is of no map: of NULL, which no caller passes.
    let is_of = words[MAP] == map.expose_provenance() as u64;
    if is_of && (cfg!(not(debug_assertions)) || words[THREAD] == thread()) {
        Ok(())
    } else {
        Err(Status::SILVICS_ERROR_GUARD)
    }
}

/// Pins a map: buffers and byte keys that calls with this guard return stay valid until
/// `silvics_unpin`. Several calls with one guard are also faster than without. A thread may have
/// several guards, of one map or of several.
///
/// While a thread is pinned, nothing that is removed from the map can be freed, nor from other maps
/// without a memory limit: so unpin soon, or call `silvics_repin` from time to time.
///
/// # Safety
/// The map is NULL or open. `guard` is NULL or writable, and not pinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_pin(
    map: *const silvics_map,
    guard: *mut silvics_guard,
) -> silvics_status {
    call(|| {
        if guard.is_null() {
            return Err(Status::SILVICS_ERROR_NULL.into());
        }
        // SAFETY: the caller's promise.
        unsafe { (*guard).words = [0; 8] };
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        with_map!(handle.content()?, map => {
            // SAFETY: the guard is writable, and large enough for a view.
            unsafe { view_in(map, &raw mut (*guard).words[VIEW]).write(map.pin()) };
        });
        registry::count(map, true);
        // SAFETY: the guard is writable.
        let words = unsafe { &mut (*guard).words };
        words[THREAD] = thread();
        is_pinned(words, map, handle.content()?);
        Ok(Status::SILVICS_OK)
    })
}

/// Lets a guard, which has the view, be one that is pinned for this map.
fn is_pinned(words: &mut [u64; 8], map: *const silvics_map, content: &Content) {
    words[MAP] = map.expose_provenance() as u64;
    words[IS_WORDS] = u64::from(matches!(content, Content::WordsToWords(_)));
    words[STATE] = PINNED;
}

/// The view of a guard that is pinned for this map, if the map is one from numbers to numbers. This
/// is the shortest way to a view: a release build reads nothing but the guard.
///
/// # Safety
/// The guard is NULL or readable. If it is pinned, H3 holds.
#[inline(always)]
pub(crate) unsafe fn view_of_words<'m>(
    map: *const silvics_map,
    guard: *const silvics_guard,
) -> Option<(&'m CView<'m, u64, u64>, Use<silvics_map>)> {
    // SAFETY: the caller's promise.
    unsafe {
        if guard.is_null() || (*guard).words[IS_WORDS] == 0 || check(guard, map).is_err() {
            return None;
        }
        // H3: the guard has a view of this map, which is open, and not NULL: an unpinned guard is
        // not one of numbers.
        let used = registry::begin(map, "map", false).ok()?;
        Some((&*(&raw const (*guard).words[VIEW]).cast(), used))
    }
}

/// Runs `then` with the map of a pinned guard, which is of no map meanwhile: so a destructor inside
/// the call cannot use it.
///
/// # Safety
/// The guard is NULL or writable. If it is pinned, H3 holds.
unsafe fn apart(
    guard: *mut silvics_guard,
    then: impl FnOnce(&silvics_map, *mut u64) -> Result<(), Fault>,
) -> Result<*const silvics_map, Fault> {
    // SAFETY: the caller's promise.
    let words = unsafe { guard.as_mut() }.ok_or(Status::SILVICS_ERROR_NULL)?;
    let words = &mut words.words;
    if words[STATE] != PINNED || cfg!(debug_assertions) && words[THREAD] != thread() {
        return Err(Status::SILVICS_ERROR_GUARD.into());
    }
    let map: *const silvics_map = with_exposed_provenance(words[MAP] as usize);
    // SAFETY: H3: the guard has the handle of a map that is open.
    let handle = unsafe { map_of(map) }?;
    (words[STATE], words[MAP], words[IS_WORDS]) = (UNPINNED, 0, 0);
    // SAFETY: the words of the view follow within the guard.
    then(&handle, unsafe { words.as_mut_ptr().add(VIEW) })?;
    Ok(map)
}

/// The place of the view in a guard of the map.
fn view_in<K: CKey, V: CValue>(_map: &AnyMap<K, V>, place: *mut u64) -> *mut CView<'_, K, V> {
    place.cast()
}

/// Ends a pin. All buffers and byte keys that calls with the guard have returned are invalid.
///
/// # Safety
/// `guard` is NULL or writable. If it is pinned, this thread has pinned it, and its map is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_unpin(guard: *mut silvics_guard) -> silvics_status {
    call(|| {
        let unpin = |handle: &silvics_map, place: *mut u64| {
            with_map!(handle.content()?, map => {
                // SAFETY: H3: the guard has the view, and its state said so once.
                unsafe { drop_in_place(view_in(map, place)) };
            });
            Ok(())
        };
        // SAFETY: the caller's promise.
        let map = unsafe { apart(guard, unpin) }?;
        registry::count(map, false);
        Ok(Status::SILVICS_OK)
    })
}

/// Pins anew: removed entries can be freed, and all that calls with the guard have returned is
/// invalid. It has no effect while this thread has other guards.
///
/// # Safety
/// That of `silvics_unpin`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_repin(guard: *mut silvics_guard) -> silvics_status {
    call(|| {
        let repin = |handle: &silvics_map, place: *mut u64| {
            with_map!(handle.content()?, map => {
                // SAFETY: H3: the guard has the view, which nothing else uses.
                unsafe { (*view_in(map, place)).repin() };
            });
            Ok(())
        };
        // SAFETY: the caller's promise.
        unsafe {
            let map = apart(guard, repin)?;
            is_pinned(&mut (*guard).words, map, map_of(map)?.content()?);
        }
        Ok(Status::SILVICS_OK)
    })
}

/// A call on a map, under the guard of the program or under one of its own.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) map: *const silvics_map,
    pub(crate) guard: *const silvics_guard,
    /// Whether the call returns memory that only a guard protects.
    pub(crate) borrows: bool,
}

impl Caller {
    /// The view of the guard.
    ///
    /// # Safety
    /// The guard is readable, and `map` is that of the handle.
    #[inline(always)]
    pub(crate) unsafe fn view<K: CKey, V: CValue>(
        self,
        _map: &AnyMap<K, V>,
    ) -> Result<&CView<'_, K, V>, Status> {
        // SAFETY: the caller's promise.
        unsafe { check(self.guard, self.map) }?;
        // SAFETY: H3: the guard has a view of this map.
        Ok(unsafe { &*(&raw const (*self.guard).words[VIEW]).cast() })
    }

    /// Runs `operation` with a view of the map.
    ///
    /// Without a guard, a call that runs short of memory unpins, shrinks the map, and runs once
    /// more, as a method of a map does.
    ///
    /// # Safety
    /// The guard is NULL or readable, and `map` is that of the handle.
    #[inline(always)]
    pub(crate) unsafe fn run<K: CKey, V: CValue, R>(
        self,
        map: &AnyMap<K, V>,
        mut operation: impl FnMut(&CView<'_, K, V>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if !self.guard.is_null() {
            // SAFETY: the caller's promise.
            return operation(unsafe { self.view(map) }?);
        }
        if self.borrows {
            return Err(Status::SILVICS_ERROR_GUARD.into());
        }
        // The pin of the first attempt ends here, or the map could not free what it protects.
        let first = operation(&map.pin());
        match first {
            Err(fault) if fault.is_shortage() => {
                map.shrink();
                operation(&map.pin())
            }
            result => result,
        }
    }
}

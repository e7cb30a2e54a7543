//! The handles that are open, in debug builds. In release builds these functions do nothing.

use crate::status::Status;
#[cfg(debug_assertions)]
use open::with;

#[cfg(debug_assertions)]
mod open {
    use silvics_sync::Mutex;
    use std::collections::HashMap;
    use std::sync::LazyLock;

    /// An open handle.
    pub(super) struct Entry {
        pub(super) kind: &'static str,
        /// The number of pinned guards of a map.
        pub(super) guards: usize,
    }

    static OPEN: LazyLock<Mutex<HashMap<usize, Entry>>> = LazyLock::new(Mutex::default);

    /// Calls `call` with the open handles, by their addresses.
    pub(super) fn with<R>(call: impl FnOnce(&mut HashMap<usize, Entry>) -> R) -> R {
        call(&mut OPEN.lock())
    }
}

/// Enters a new handle.
pub(crate) fn open<T>(handle: *const T, kind: &'static str) {
    #[cfg(debug_assertions)]
    with(|open| open.insert(handle.addr(), open::Entry { kind, guards: 0 }));
    let _ = (handle, kind);
}

/// Removes a handle.
pub(crate) fn close<T>(handle: *const T) {
    #[cfg(debug_assertions)]
    with(|open| open.remove(&handle.addr()));
    let _ = handle;
}

/// Returns an error if a handle is neither NULL nor an open one of this kind.
#[inline(always)]
pub(crate) fn check<T>(handle: *const T, kind: &'static str) -> Result<(), Status> {
    #[cfg(debug_assertions)]
    {
        let is_open = |open: &open::Entry| open.kind == kind;
        if !handle.is_null() && !with(|open| open.get(&handle.addr()).is_some_and(is_open)) {
            return Err(Status::SILVICS_ERROR_HANDLE);
        }
    }
    let _ = (handle, kind);
    Ok(())
}

/// Counts a guard of a map that is pinned, or unpinned.
#[inline(always)]
pub(crate) fn count<T>(map: *const T, pinned: bool) {
    #[cfg(debug_assertions)]
    with(|open| {
        if let Some(entry) = open.get_mut(&map.addr()) {
            entry.guards = entry.guards.wrapping_add(if pinned { 1 } else { usize::MAX });
        }
    });
    let _ = (map, pinned);
}

/// Returns an error if a guard of a map is pinned.
pub(crate) fn is_unpinned<T>(map: *const T) -> Result<(), Status> {
    #[cfg(debug_assertions)]
    if with(|open| open.get(&map.addr()).is_some_and(|entry| entry.guards > 0)) {
        return Err(Status::SILVICS_ERROR_BUSY);
    }
    let _ = map;
    Ok(())
}

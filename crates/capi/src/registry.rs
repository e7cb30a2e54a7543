//! The handles that are open, in debug builds. In release builds these functions do nothing.
//!
//! A handle that ends stays here as a closed one, and its memory is not freed: so no later handle
//! has its address, and each use of it is found.

use crate::status::Status;
#[cfg(debug_assertions)]
use open::with;

#[cfg(debug_assertions)]
mod open {
    use silvics_sync::Mutex;
    use std::collections::HashMap;
    use std::sync::LazyLock;

    /// A handle.
    pub(super) struct Entry {
        /// `closed` for one that has ended.
        pub(super) kind: &'static str,
        /// The number of pinned guards of a map.
        pub(super) guards: usize,
        /// The number of calls that use the handle now.
        pub(super) calls: usize,
    }

    static OPEN: LazyLock<Mutex<HashMap<usize, Entry>>> = LazyLock::new(Mutex::default);

    /// Calls `call` with the entry of a handle.
    pub(super) fn with<T, R>(handle: *const T, call: impl FnOnce(Option<&mut Entry>) -> R) -> R {
        call(OPEN.lock().get_mut(&handle.addr()))
    }

    /// Enters a new handle.
    pub(super) fn enter<T>(handle: *const T, kind: &'static str) {
        OPEN.lock().insert(handle.addr(), Entry { kind, guards: 0, calls: 0 });
    }
}

/// Enters a new handle.
pub(crate) fn open<T>(handle: *const T, kind: &'static str) {
    #[cfg(debug_assertions)]
    open::enter(handle, kind);
    let _ = (handle, kind);
}

/// Ends a handle. Returns whether its memory may be freed.
pub(crate) fn close<T>(handle: *const T) -> bool {
    #[cfg(debug_assertions)]
    with(handle, |entry| {
        if let Some(entry) = entry {
            entry.kind = "closed";
        }
    });
    let _ = handle;
    cfg!(not(debug_assertions))
}

/// A call that uses a handle, until it is dropped.
pub(crate) struct Use<T>(*const T);

impl<T> Drop for Use<T> {
    #[inline(always)]
    fn drop(&mut self) {
        let handle = self.0;
        #[cfg(debug_assertions)]
        with(handle, |entry| {
            if let Some(entry) = entry {
                entry.calls -= 1;
            }
        });
        let _ = handle;
    }
}

/// Begins a call that uses a handle. Returns an error if the handle is neither NULL nor an open one
/// of this kind, or if the call is to be the only one and another one uses the handle.
#[inline(always)]
pub(crate) fn begin<T>(
    handle: *const T,
    kind: &'static str,
    alone: bool,
) -> Result<Use<T>, Status> {
    #[cfg(debug_assertions)]
    with(handle, |entry| match entry {
        Some(entry) if entry.kind == kind && alone && entry.calls > 0 => {
            Err(Status::SILVICS_ERROR_BUSY)
        }
        Some(entry) if entry.kind == kind => {
            entry.calls += 1;
            Ok(())
        }
        _ if handle.is_null() => Ok(()),
        _ => Err(Status::SILVICS_ERROR_HANDLE),
    })?;
    let _ = (kind, alone);
    Ok(Use(handle))
}

/// Counts a guard of a map that is pinned, or unpinned.
#[inline(always)]
pub(crate) fn count<T>(map: *const T, pinned: bool) {
    #[cfg(debug_assertions)]
    with(map, |entry| {
        if let Some(entry) = entry {
            entry.guards = entry.guards.wrapping_add(if pinned { 1 } else { usize::MAX });
        }
    });
    let _ = (map, pinned);
}

/// Returns an error if a guard of a map is pinned.
pub(crate) fn is_unpinned<T>(map: *const T) -> Result<(), Status> {
    #[cfg(debug_assertions)]
    if with(map, |entry| entry.is_some_and(|entry| entry.guards > 0)) {
        return Err(Status::SILVICS_ERROR_BUSY);
    }
    let _ = map;
    Ok(())
}

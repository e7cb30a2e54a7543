//! The handles of maps: from their creation to their end.
//!
//! # Invariants
//! * H1: A handle that a program passes is NULL, or one that `silvics_create` made and
//!   `silvics_destroy` has not ended. The program promises it. A debug build looks the handle up in
//!   a registry first, and a release build only looks for NULL.
//! * H2: The memory of a handle lives longer than the values of its map, whose buffers its
//!   destructor destroys: a cursor shares the handle, and drops its map first.
//! * H3: A guard that is pinned has the view of the map whose handle it has. The program promises
//!   that it does not move a guard, write into it, use it on another thread, or destroy the map
//!   before it has unpinned it.
//! * H4: The content of a handle is taken out once, by the call of `silvics_destroy` that sets
//!   `closed`. Each other call looks at `closed` first. No other call is under way then: the
//!   program promises it. A call that begins meanwhile comes from a destructor, on the same thread,
//!   or is one of a cursor, which has a share of the map and does not touch the content.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `closed` | store, by `silvics_destroy` | Relaxed | – | all other calls on the map come before that call or after it, by the program's own synchronization (H4) |
//! | `closed` | load | Relaxed | – | the same; a cursor on another thread may miss the store, and its call then takes effect before the end of the map |

use crate::registry::{self, Use};
use crate::status::{Fault, Status, call, silvics_status};
use crate::types::{
    Buffer, CKey, CValue, silvics_budget, silvics_destructor, silvics_kind, silvics_options,
    silvics_pages,
};
use silvics::dynamic::{AnyMap, AnyOrdered, Structure};
use silvics::key::Key;
use silvics::{Budget, Options, Pages, View};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{NonNull, drop_in_place, null, null_mut};
use std::sync::{Arc, OnceLock};

/// A map.
pub struct silvics_map {
    pub(crate) destructor: Destructor,
    content: UnsafeCell<ManuallyDrop<Content>>,
    closed: AtomicBool,
}

// SAFETY: maps are `Send` and `Sync`. The content changes once, as H4 says.
unsafe impl Send for silvics_map {}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl Sync for silvics_map {}

/// The destructor of buffers, and its first argument.
pub(crate) struct Destructor {
    pub(crate) destroy: silvics_destructor,
    pub(crate) context: *mut c_void,
}

// SAFETY: the library passes the pointer on, and does not follow it. The program promises that any
// thread may call the destructor.
unsafe impl Send for Destructor {}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl Sync for Destructor {}

/// The map of a handle. The names have the keys first, then the values.
pub(crate) enum Content {
    WordsToWords(Arc<AnyMap<u64, u64>>),
    WordsToBuffers(Arc<AnyMap<u64, Buffer>>),
    BytesToWords(Arc<AnyMap<Vec<u8>, u64>>),
    BytesToBuffers(Arc<AnyMap<Vec<u8>, Buffer>>),
}

/// Evaluates an expression with the map of a handle, whatever its types are.
macro_rules! with_map {
    ($content:expr, $map:ident => $body:expr) => {
        match $content {
            $crate::handle::Content::WordsToWords($map) => $body,
            $crate::handle::Content::WordsToBuffers($map) => $body,
            $crate::handle::Content::BytesToWords($map) => $body,
            $crate::handle::Content::BytesToBuffers($map) => $body,
        }
    };
}
pub(crate) use with_map;

/// A view of a map.
pub(crate) type CView<'m, K, V> = View<'m, K, V, AnyOrdered<<K as Key>::Form>>;

impl silvics_map {
    /// Returns an error if the map is destroyed.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> Result<(), Status> {
        let closed = self.closed.load(Ordering::Relaxed);
        if closed { Err(Status::SILVICS_ERROR_CLOSED) } else { Ok(()) }
    }

    /// The map, unless it is destroyed.
    #[inline(always)]
    pub(crate) fn content(&self) -> Result<&Content, Status> {
        self.is_open()?;
        // SAFETY: H4: the content is there, and no other call takes it out meanwhile.
        Ok(unsafe { &*self.content.get() })
    }

    /// The content, for a call that no other overlaps.
    ///
    /// # Safety
    /// The handle is open and its content is there, and no other call uses it meanwhile.
    pub(crate) unsafe fn content_mut<'a>(map: *mut Self) -> &'a mut Content {
        // SAFETY: the caller's promise.
        unsafe { &mut *(*map).content.get() }
    }

    /// A new handle, shared by the program and the cursors.
    fn open(content: Content, destructor: Destructor) -> *const Self {
        let content = UnsafeCell::new(ManuallyDrop::new(content));
        let closed = AtomicBool::new(false);
        let map = Arc::into_raw(Arc::new(Self { destructor, content, closed }));
        registry::open(map, "map");
        map
    }
}

/// The object behind a handle, for a call that uses it.
pub(crate) struct Lent<'a, T> {
    object: &'a T,
    _use: Use<T>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.object
    }
}

/// Borrows the object behind a handle. The call is to be the only one that uses it, if `alone`.
///
/// # Safety
/// H1, for a handle of this kind.
#[inline(always)]
pub(crate) unsafe fn lent<'a, T>(
    handle: *const T,
    kind: &'static str,
    alone: bool,
) -> Result<Lent<'a, T>, Status> {
    let used = registry::begin(handle, kind, alone)?;
    // SAFETY: H1.
    let object = unsafe { handle.as_ref() }.ok_or(Status::SILVICS_ERROR_NULL)?;
    Ok(Lent { object, _use: used })
}

/// Borrows a map.
///
/// # Safety
/// H1.
#[inline(always)]
pub(crate) unsafe fn map_of<'a>(map: *const silvics_map) -> Result<Lent<'a, silvics_map>, Status> {
    // SAFETY: H1.
    unsafe { lent(map, "map", false) }
}

/// Drops the object behind a handle that ends, and frees its memory.
///
/// # Safety
/// The handle is that of a box, and is used by no other call, now or later.
pub(crate) unsafe fn end<T>(handle: *mut T) {
    let may_free = registry::close(handle);
    // SAFETY: the caller's promise.
    unsafe {
        drop_in_place(handle);
        if may_free {
            drop(Box::from_raw(handle.cast::<ManuallyDrop<T>>()));
        }
    }
}

/// Writes a result to a place of the program, unless that is NULL.
///
/// # Safety
/// The place is NULL, or writable.
#[inline(always)]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
}

/// Fills options with their default values.
///
/// # Safety
/// `options` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_options_init(options: *mut silvics_options) -> silvics_status {
    call(|| {
        if options.is_null() {
            return Err(Status::SILVICS_ERROR_NULL.into());
        }
        let defaults = silvics_options {
            size: size_of::<silvics_options>(),
            structure: null(),
            keys: silvics_kind::SILVICS_WORDS as i32,
            values: silvics_kind::SILVICS_WORDS as i32,
            pages: silvics_pages::SILVICS_PAGES_THP as i32,
            memory_limit: 0,
            budget: null(),
            destroy: None,
            context: null_mut(),
        };
        // SAFETY: the caller's promise.
        unsafe { options.write(defaults) };
        Ok(Status::SILVICS_OK)
    })
}

/// Returns the kind of a number in the options.
fn kind(number: i32, field: &str) -> Result<silvics_kind, Fault> {
    match number {
        0 => Ok(silvics_kind::SILVICS_WORDS),
        1 => Ok(silvics_kind::SILVICS_BYTES),
        _ => Err(Fault::option(format!("option {field} is {number}: it must be a silvics_kind"))),
    }
}

/// Makes a map of the types that the options name.
fn content(options: &silvics_options, settings: &Options) -> Result<Content, Fault> {
    use silvics_kind::{SILVICS_BYTES, SILVICS_WORDS};
    let name = NonNull::new(options.structure.cast_mut());
    // SAFETY: `silvics_create` demands that the name is a string.
    let name = name.map(|name| unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy());
    let name = name.as_deref();
    Ok(match (kind(options.keys, "keys")?, kind(options.values, "values")?) {
        (SILVICS_WORDS, SILVICS_WORDS) => Content::WordsToWords(made(name, settings)?),
        (SILVICS_WORDS, SILVICS_BYTES) => Content::WordsToBuffers(made(name, settings)?),
        (SILVICS_BYTES, SILVICS_WORDS) => Content::BytesToWords(made(name, settings)?),
        (SILVICS_BYTES, SILVICS_BYTES) => Content::BytesToBuffers(made(name, settings)?),
    })
}

fn made<K: CKey, V: CValue>(
    name: Option<&str>,
    settings: &Options,
) -> Result<Arc<AnyMap<K, V>>, Fault> {
    let map = match name {
        Some(name) => Structure::<K::Form>::scanning(name)?.map(settings)?,
        None => AnyMap::with_options(settings)?,
    };
    Ok(Arc::new(map))
}

/// Makes a map with the options, and writes its handle to `map`. Any thread may use a map, and no
/// thread has to be registered.
///
/// # Safety
/// `options` is NULL or readable, with a name that is NULL or a string, and a budget that is NULL
/// or open. `map` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_create(
    options: *const silvics_options,
    map: *mut *mut silvics_map,
) -> silvics_status {
    call(|| {
        // SAFETY: the caller's promise; the first field is there in each version.
        let size = unsafe { options.cast::<usize>().as_ref() };
        let Some(&size) = size.filter(|_| !map.is_null()) else {
            return Err(Status::SILVICS_ERROR_NULL.into());
        };
        if size != size_of::<silvics_options>() {
            let text = format!("option size is {size}: initialise options by silvics_options_init");
            return Err(Fault::option(text));
        }
        // SAFETY: the caller's promise.
        let options = unsafe { &*options };
        let pages = match options.pages {
            0 => Pages::Thp,
            1 => Pages::Small,
            2 => Pages::HugeTlb,
            other => {
                let text = format!("option pages is {other}: it must be a silvics_pages");
                return Err(Fault::option(text));
            }
        };
        if options.destroy.is_some() && options.values == silvics_kind::SILVICS_WORDS as i32 {
            let text =
                "option destroy is set, and the values are numbers: set values to SILVICS_BYTES";
            return Err(Fault::option(text.into()));
        }
        let mut settings = Options { pages, ..Options::default() };
        if !options.budget.is_null() {
            // SAFETY: the caller's promise.
            let budget = unsafe { lent(options.budget, "budget", false) }?;
            settings.budget = Some(Arc::clone(&budget.budget));
        } else if options.memory_limit > 0 {
            settings.memory_limit = Some(options.memory_limit);
        }
        let content = content(options, &settings)?;
        let (destroy, context) = (options.destroy, options.context);
        let handle = silvics_map::open(content, Destructor { destroy, context });
        // SAFETY: the caller's promise.
        unsafe { map.write(handle.cast_mut()) };
        Ok(Status::SILVICS_OK)
    })
}

/// Destroys a map and its buffers. NULL is allowed.
///
/// Cursors of the map may be open: each of their calls but `silvics_cursor_close` returns
/// `SILVICS_ERROR_CLOSED` from now on, and the last one that is closed frees the map's memory and
/// destroys its buffers. Each call on the map by a destructor inside this call fails.
///
/// # Safety
/// The map is NULL or open, no other call uses it, and no guard of it is pinned. A debug build
/// returns an error if this is not so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_destroy(map: *mut silvics_map) -> silvics_status {
    call(|| {
        if map.is_null() {
            return Ok(Status::SILVICS_OK);
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { lent(map, "map", true) }?;
        handle.is_open()?;
        registry::is_unpinned(map)?;
        handle.closed.store(true, Ordering::Relaxed);
        // SAFETY: H4: this call has set `closed`, so it alone takes the content, and no call that
        // has it is under way.
        unsafe { ManuallyDrop::drop(&mut *handle.content.get()) };
        drop(handle);
        if registry::close(map) {
            // SAFETY: `open` made the program's share, and this call alone ends it.
            drop(unsafe { Arc::from_raw(map) });
        }
        Ok(Status::SILVICS_OK)
    })
}

/// Makes a budget: a limit of bytes for all maps that have it in their options. 0 is no limit.
///
/// # Safety
/// `budget` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_budget_create(
    limit: usize,
    budget: *mut *mut silvics_budget,
) -> silvics_status {
    call(|| {
        if budget.is_null() {
            return Err(Status::SILVICS_ERROR_NULL.into());
        }
        let limit = (limit > 0).then_some(limit);
        let made = Box::into_raw(Box::new(silvics_budget { budget: Arc::new(Budget::new(limit)) }));
        registry::open(made, "budget");
        // SAFETY: the caller's promise.
        unsafe { budget.write(made) };
        Ok(Status::SILVICS_OK)
    })
}

/// Closes a budget. Maps that have it keep its limit. NULL is allowed.
///
/// # Safety
/// The budget is NULL or open, and no other thread uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_budget_close(budget: *mut silvics_budget) -> silvics_status {
    call(|| {
        if budget.is_null() {
            return Ok(Status::SILVICS_OK);
        }
        // SAFETY: the caller's promise.
        drop(unsafe { lent(budget, "budget", true) }?);
        // SAFETY: `silvics_budget_create` made the box, and the caller ends it once.
        unsafe { end(budget) };
        Ok(Status::SILVICS_OK)
    })
}

/// Returns the bytes that all maps of a budget hold from the system; 0 for NULL.
///
/// # Safety
/// The budget is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_budget_bytes(budget: *const silvics_budget) -> usize {
    // SAFETY: the caller's promise.
    unsafe { lent(budget, "budget", false) }.map_or(0, |budget| budget.budget.held())
}

/// Returns the names of the structures that a map with keys of this kind can have, divided by
/// commas. The string is valid for ever; it is empty if there is no such kind.
#[unsafe(no_mangle)]
pub extern "C" fn silvics_structures(keys: i32) -> *const c_char {
    static NAMES: [OnceLock<CString>; 2] = [const { OnceLock::new() }; 2];
    let names = |names: String| CString::new(names).unwrap_or_default();
    match keys {
        0 => NAMES[0].get_or_init(|| names(Structure::<u64>::names(true))).as_ptr(),
        1 => NAMES[1].get_or_init(|| names(Structure::<[u8]>::names(true))).as_ptr(),
        _ => c"".as_ptr(),
    }
}

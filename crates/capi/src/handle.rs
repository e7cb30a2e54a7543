//! The handles of maps: from their creation to their end.
//!
//! # Invariants
//! * H1: A handle that a program passes is NULL, or one that `silvics_create` made and
//!   `silvics_destroy` has not ended. The program promises it. A debug build looks the handle up in
//!   a registry first, and a release build only looks for NULL.
//! * H2: A destructor lives longer than the values whose buffers it destroys: a handle drops its
//!   map first, and so does a cursor, which has a reference to both.
//! * H3: A guard that is pinned has the view of the map whose handle it has. The program promises
//!   that it does not move a guard, write into it, use it on another thread, or destroy the map
//!   before it has unpinned it.
//! * H4: The content of a handle is taken out once, by the call of `silvics_destroy` that sets
//!   `closed`. Each other call looks at `closed` first. Calls that overlap that of
//!   `silvics_destroy` come from destructors, on the same thread: the program promises it.

use crate::registry;
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
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Arc, OnceLock};

/// A map.
pub struct silvics_map {
    closed: AtomicBool,
    content: UnsafeCell<ManuallyDrop<Content>>,
    pub(crate) destructor: Arc<Destructor>,
}

/// The destructor of buffers, and its first argument.
pub(crate) struct Destructor {
    pub(crate) destroy: silvics_destructor,
    pub(crate) context: *mut c_void,
    /// Whether the map is destroyed, for its cursors.
    pub(crate) closed: AtomicBool,
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
    /// The map, unless it is destroyed.
    #[inline(always)]
    pub(crate) fn content(&self) -> Result<&Content, Status> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Status::SILVICS_ERROR_CLOSED);
        }
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

    /// A new handle.
    fn open(content: Content, destructor: Arc<Destructor>) -> *mut Self {
        let content = UnsafeCell::new(ManuallyDrop::new(content));
        let closed = AtomicBool::new(false);
        let map = Box::into_raw(Box::new(Self { closed, content, destructor }));
        registry::open(map, "map");
        map
    }
}

/// Borrows what a handle of the program leads to.
///
/// # Safety
/// H1, for a handle of this kind.
#[inline(always)]
pub(crate) unsafe fn lent<'a, T>(handle: *const T, kind: &'static str) -> Result<&'a T, Status> {
    registry::check(handle, kind)?;
    // SAFETY: H1.
    unsafe { handle.as_ref() }.ok_or(Status::SILVICS_ERROR_NULL)
}

/// Borrows a map.
///
/// # Safety
/// H1.
#[inline(always)]
pub(crate) unsafe fn map_of<'a>(map: *const silvics_map) -> Result<&'a silvics_map, Status> {
    // SAFETY: H1.
    unsafe { lent(map, "map") }
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
            let budget = unsafe { lent(options.budget, "budget") }?;
            settings.budget = Some(Arc::clone(&budget.budget));
        } else if options.memory_limit > 0 {
            settings.memory_limit = Some(options.memory_limit);
        }
        let content = content(options, &settings)?;
        let (destroy, context) = (options.destroy, options.context);
        let destructor = Destructor { destroy, context, closed: AtomicBool::new(false) };
        let handle = silvics_map::open(content, Arc::new(destructor));
        // SAFETY: the caller's promise.
        unsafe { map.write(handle) };
        Ok(Status::SILVICS_OK)
    })
}

/// Destroys a map and its buffers. NULL is allowed.
///
/// Cursors of the map may be open: each of their calls but `silvics_cursor_close` returns
/// `SILVICS_ERROR_CLOSED` from now on, and the last one that is closed frees the map's memory and
/// destroys its buffers. Destructors that run inside the call get that error from each call on the
/// map.
///
/// # Safety
/// The map is NULL or open, no other thread uses it, and no guard of it is pinned. In a debug build
/// a map that is not open is an error, and so is a pinned guard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silvics_destroy(map: *mut silvics_map) -> silvics_status {
    call(|| {
        if map.is_null() {
            return Ok(Status::SILVICS_OK);
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { map_of(map) }?;
        if handle.closed.load(Ordering::Relaxed) {
            return Err(Status::SILVICS_ERROR_CLOSED.into());
        }
        registry::is_unpinned(map)?;
        handle.closed.store(true, Ordering::Relaxed);
        handle.destructor.closed.store(true, Ordering::Relaxed);
        // SAFETY: H4: this call has set `closed`, so it alone takes the content, and no call that
        // has it is under way.
        unsafe { ManuallyDrop::drop(&mut *handle.content.get()) };
        registry::close(map);
        // SAFETY: `open` made the box, and this call alone ends it.
        drop(unsafe { Box::from_raw(map) });
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
        registry::check(budget, "budget")?;
        registry::close(budget);
        // SAFETY: `silvics_budget_create` made the box, and the caller ends it once.
        drop(unsafe { Box::from_raw(budget) });
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
    unsafe { lent(budget, "budget") }.map_or(0, |budget| budget.budget.held())
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

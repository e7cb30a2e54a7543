//! The types of the interface: keys, values, options, guards.

use crate::cursor::AnyCursor;
use crate::handle::Destructor;
use crate::status::Status;
use silvics::dynamic::InTable;
use silvics::key::{AsKey, Key};
use std::ffi::{c_char, c_void};
use std::slice;

/// A key: a number, as `silvics_word_key` makes it, or a byte string, as
/// `silvics_bytes_key` does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct silvics_key {
    /// The number, or the length of the byte string.
    pub word: u64,
    /// The first byte of the byte string; NULL for a number.
    pub data: *const c_void,
}

/// A value: a number, or a buffer of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct silvics_value {
    /// The number, or the size of the buffer. The library passes the size on, and does not use it.
    pub word: u64,
    /// The buffer; NULL for a number.
    pub data: *mut c_void,
}

/// The kind of the keys, or of the values, of a map.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum silvics_kind {
    /// Numbers of 64 bits. Keys are in the order of `uint64_t`.
    SILVICS_WORDS = 0,
    /// Keys: byte strings of any length, in the order of `memcmp`; the shorter of two comes first
    /// if it is a prefix of the other. Values: buffers, which the map owns.
    SILVICS_BYTES = 1,
}

/// The pages that the pools of a map ask the system for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum silvics_pages {
    /// Huge pages of 2 MiB once the map is large, where the system has them.
    SILVICS_PAGES_THP = 0,
    /// Pages of 4 KiB.
    SILVICS_PAGES_SMALL = 1,
    /// Huge pages of 2 MiB from those that the administrator reserved.
    SILVICS_PAGES_HUGETLB = 2,
}

/// Destroys a buffer: `context` is that of the options.
///
/// The library calls it once for each buffer that the map owned, after the last guard is gone that
/// may have seen it. Any thread may be the caller: inside any call on the map, and inside
/// `silvics_destroy`.
///
/// It may call the map, with guards and cursors of its own. It must not destroy or check that map,
/// and must not use a cursor that another call uses at the time: a debug library returns
/// `SILVICS_ERROR_BUSY`, and for a release library this is undefined behaviour. It must not throw
/// or unwind: the process aborts then.
pub type silvics_destructor =
    Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, size: u64)>;

/// A limit of bytes that several maps share.
#[derive(Debug)]
pub struct silvics_budget {
    pub(crate) budget: std::sync::Arc<silvics::Budget>,
}

/// The options of a map. Initialise them by `silvics_options_init`, and then set what differs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct silvics_options {
    /// `sizeof(silvics_options)`, by which later versions know the fields that the program has.
    pub size: usize,
    /// The name of the structure, as `silvics_structures` lists them; NULL for the default one:
    /// `words` for numbers, `blocks` for byte strings.
    pub structure: *const c_char,
    /// The kind of the keys, a `silvics_kind`.
    pub keys: i32,
    /// The kind of the values, a `silvics_kind`.
    pub values: i32,
    /// The pages, a `silvics_pages`.
    pub pages: i32,
    /// The most bytes that the map may hold from the system; 0 for no limit. Buffers are not
    /// counted.
    pub memory_limit: usize,
    /// A limit that the map shares with others, instead of `memory_limit`; NULL for none.
    pub budget: *const silvics_budget,
    /// Destroys the buffers of a map of buffers; NULL if nothing is to be done. A map of numbers
    /// takes none.
    pub destroy: silvics_destructor,
    /// The first argument of `destroy`.
    pub context: *mut c_void,
}

/// A pin: while it lasts, all buffers and byte keys that calls with it have returned stay valid.
/// It lies where the program puts it, such as on the stack, and must not be moved or copied.
/// Only the thread that has pinned may use it.
#[repr(C)]
#[derive(Debug)]
pub struct silvics_guard {
    /// For the library alone.
    pub words: [u64; 8],
}

/// The keys of a map.
pub(crate) trait CKey: Key<Form: InTable> + Send + Sync {
    /// A borrowed key.
    type Arg<'a>: AsKey<Self> + Copy;
    /// Whether a returned key is memory of the map.
    const BORROWED: bool;

    /// The key of an argument.
    ///
    /// # Safety
    /// The bytes of the argument are readable for `'a`.
    unsafe fn arg<'a>(key: silvics_key) -> Result<Self::Arg<'a>, Status>;

    /// The key as calls return it.
    fn told(key: Self::Ref<'_>) -> silvics_key;
}

impl CKey for u64 {
    type Arg<'a> = u64;
    const BORROWED: bool = false;

    #[inline(always)]
    unsafe fn arg<'a>(key: silvics_key) -> Result<Self::Arg<'a>, Status> {
        if key.data.is_null() { Ok(key.word) } else { Err(Status::SILVICS_ERROR_KEY) }
    }

    #[inline(always)]
    fn told(key: u64) -> silvics_key {
        silvics_key { word: key, data: std::ptr::null() }
    }
}

impl CKey for Vec<u8> {
    type Arg<'a> = &'a [u8];
    const BORROWED: bool = true;

    #[inline(always)]
    unsafe fn arg<'a>(key: silvics_key) -> Result<&'a [u8], Status> {
        if key.data.is_null() || key.word > isize::MAX as u64 {
            return Err(Status::SILVICS_ERROR_KEY);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { slice::from_raw_parts(key.data.cast(), key.word as usize) })
    }

    #[inline(always)]
    fn told(key: &[u8]) -> silvics_key {
        silvics_key { word: key.len() as u64, data: key.as_ptr().cast() }
    }
}

/// The values of a map.
pub(crate) trait CValue: silvics::map::Value + PartialEq + Sized {
    /// Whether a returned value is memory that the map may destroy.
    const BORROWED: bool;

    /// The value of an argument, which the map owns from now on.
    fn taken(value: silvics_value, destructor: *const Destructor) -> Result<Self, Status>;

    /// The value as calls return it.
    fn told(&self) -> silvics_value;

    /// The value that a cursor has read together with its key, if it did.
    fn read_ahead<K: CKey>(cursor: &AnyCursor<K, Self>) -> Option<silvics_value>;
}

impl CValue for u64 {
    const BORROWED: bool = false;

    #[inline(always)]
    fn taken(value: silvics_value, _: *const Destructor) -> Result<u64, Status> {
        if value.data.is_null() { Ok(value.word) } else { Err(Status::SILVICS_ERROR_VALUE) }
    }

    #[inline(always)]
    fn told(&self) -> silvics_value {
        silvics_value { word: *self, data: std::ptr::null_mut() }
    }

    #[inline(always)]
    fn read_ahead<K: CKey>(cursor: &AnyCursor<K, u64>) -> Option<silvics_value> {
        cursor.current()?.1.map(|word| word.told())
    }
}

/// A buffer that a map owns. Two are equal if they are the same.
pub(crate) struct Buffer {
    value: silvics_value,
    destructor: *const Destructor,
}

// SAFETY: the map passes the pointers on, and does not follow them. The program promises that any
// thread may call the destructor ([`silvics_destructor`]).
unsafe impl Send for Buffer {}
// SAFETY: the argument for `Send` holds for shared references.
unsafe impl Sync for Buffer {}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        (self.value.data, self.value.word) == (other.value.data, other.value.word)
    }
}

impl CValue for Buffer {
    const BORROWED: bool = true;

    #[inline(always)]
    fn taken(value: silvics_value, destructor: *const Destructor) -> Result<Self, Status> {
        if value.data.is_null() {
            return Err(Status::SILVICS_ERROR_VALUE);
        }
        Ok(Self { value, destructor })
    }

    #[inline(always)]
    fn told(&self) -> silvics_value {
        self.value
    }

    #[inline(always)]
    fn read_ahead<K: CKey>(_: &AnyCursor<K, Self>) -> Option<silvics_value> {
        None
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: a map's destructor lives longer than its values (H2).
        let Destructor { destroy, context } = unsafe { &*self.destructor };
        if let Some(destroy) = destroy {
            // SAFETY: the map owned the buffer, and no guard is left that may have seen it.
            unsafe { destroy(*context, self.value.data, self.value.word) };
        }
    }
}

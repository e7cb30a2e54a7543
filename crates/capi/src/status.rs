//! The results of calls: stable codes, and sentences about them.

use silvics::AllocError;
use silvics::dynamic::StructureError;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call. Zero and positive codes are outcomes, negative ones are errors: after an
/// error the map is as it was, unless the call says otherwise. Codes keep their numbers in later
/// versions.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum silvics_status {
    /// The call succeeded.
    SILVICS_OK = 0,
    /// The key is absent, or there is no entry at that place.
    SILVICS_ABSENT = 1,
    /// Put-if-absent found the key present, and changed nothing.
    SILVICS_PRESENT = 2,
    /// An upsert replaced a value.
    SILVICS_REPLACED = 3,
    /// The key has another value than the expected one, and nothing changed.
    SILVICS_MISMATCH = 4,
    /// An argument is NULL that must not be.
    SILVICS_ERROR_NULL = -1,
    /// In debug builds: the handle is not open, or it is one of another kind. In release builds
    /// such a call is undefined behaviour.
    SILVICS_ERROR_HANDLE = -2,
    /// The key is a number and the map has byte strings as keys, or the reverse.
    SILVICS_ERROR_KEY = -3,
    /// The value is a number and the map has buffers as values, or the reverse.
    SILVICS_ERROR_VALUE = -4,
    /// No structure has this name, or it does not take these keys.
    SILVICS_ERROR_STRUCTURE = -5,
    /// An option has no such value.
    SILVICS_ERROR_OPTION = -6,
    /// The structure of the map lacks the capability.
    SILVICS_ERROR_UNSUPPORTED = -7,
    /// The map is at its memory limit.
    SILVICS_ERROR_LIMIT = -8,
    /// The system refused memory.
    SILVICS_ERROR_MEMORY = -9,
    /// The key is longer than the structure takes.
    SILVICS_ERROR_KEY_LENGTH = -10,
    /// The call returns memory of the map, so it needs a guard of the map.
    SILVICS_ERROR_GUARD = -11,
    /// The map is in use: a cursor or a guard of it is open, or in debug builds another call.
    SILVICS_ERROR_BUSY = -12,
    /// The map of the cursor is destroyed, or is being destroyed.
    SILVICS_ERROR_CLOSED = -13,
    /// A check found a broken invariant: a bug of silvics, or memory that the program overwrote.
    SILVICS_ERROR_CORRUPT = -14,
    /// A bug of silvics: the call panicked. Destroy the map. It is unknown who owns the buffers of
    /// the call.
    SILVICS_ERROR_PANIC = -15,
}

/// All codes.
const ALL: &[silvics_status] = {
    #[allow(clippy::enum_glob_use)] // all of them, by their long names
    use silvics_status::*;
    &[
        SILVICS_OK,
        SILVICS_ABSENT,
        SILVICS_PRESENT,
        SILVICS_REPLACED,
        SILVICS_MISMATCH,
        SILVICS_ERROR_NULL,
        SILVICS_ERROR_HANDLE,
        SILVICS_ERROR_KEY,
        SILVICS_ERROR_VALUE,
        SILVICS_ERROR_STRUCTURE,
        SILVICS_ERROR_OPTION,
        SILVICS_ERROR_UNSUPPORTED,
        SILVICS_ERROR_LIMIT,
        SILVICS_ERROR_MEMORY,
        SILVICS_ERROR_KEY_LENGTH,
        SILVICS_ERROR_GUARD,
        SILVICS_ERROR_BUSY,
        SILVICS_ERROR_CLOSED,
        SILVICS_ERROR_CORRUPT,
        SILVICS_ERROR_PANIC,
    ]
};

/// The sentence about a code.
#[allow(clippy::enum_glob_use)] // all of them, by their long names
fn text(status: silvics_status) -> &'static CStr {
    use silvics_status::*;
    match status {
        SILVICS_OK => c"the call succeeded",
        SILVICS_ABSENT => c"the key is absent",
        SILVICS_PRESENT => c"the key is present, so nothing was inserted",
        SILVICS_REPLACED => c"the key was present, and its value is replaced",
        SILVICS_MISMATCH => c"the key has another value than the expected one",
        SILVICS_ERROR_NULL => c"an argument is NULL that must not be",
        SILVICS_ERROR_HANDLE => c"the handle is not open: it was never made, or it is closed",
        SILVICS_ERROR_KEY => c"the key is not of the kind of the map: use silvics_word_key \
             for a map of numbers, silvics_bytes_key for one of byte strings",
        SILVICS_ERROR_VALUE => c"the value is not of the kind of the map: a map of numbers \
             takes no pointer, and a map of buffers takes no NULL",
        SILVICS_ERROR_STRUCTURE => c"no structure has this name and takes these keys",
        SILVICS_ERROR_OPTION => c"an option has a value that it cannot have",
        SILVICS_ERROR_UNSUPPORTED => c"the structure of the map lacks this capability: choose another structure",
        SILVICS_ERROR_LIMIT => c"the map is at its memory limit: raise the limit or remove entries",
        SILVICS_ERROR_MEMORY => c"the system refused memory",
        SILVICS_ERROR_KEY_LENGTH => c"the key is longer than the structure takes",
        SILVICS_ERROR_GUARD => c"the call needs a guard of this map, taken by silvics_pin on this thread",
        SILVICS_ERROR_BUSY => c"the map is in use: close its cursors, unpin its guards, and wait for other calls first",
        SILVICS_ERROR_CLOSED => c"the map is destroyed",
        SILVICS_ERROR_CORRUPT => c"a check found a broken invariant",
        SILVICS_ERROR_PANIC => c"a call panicked, which is a bug of silvics: destroy the map",
    }
}

/// The sentence about a number of the program.
fn sentence(code: i32) -> &'static CStr {
    let known = ALL.iter().find(|status| **status as i32 == code);
    known.map_or(c"this number is no code of silvics", |status| text(*status))
}

pub(crate) use silvics_status as Status;

/// An error with its sentence.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error whose sentence is in the table.
    Plain(Status),
    Alloc(AllocError),
    Told(Status, String),
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        Self::Plain(status)
    }
}

impl From<AllocError> for Fault {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl From<StructureError> for Fault {
    fn from(error: StructureError) -> Self {
        match error {
            StructureError::Alloc(error) => Self::Alloc(error),
            error => Self::Told(Status::SILVICS_ERROR_STRUCTURE, error.to_string()),
        }
    }
}

impl Fault {
    /// A wrong option.
    pub(crate) fn option(text: String) -> Self {
        Self::Told(Status::SILVICS_ERROR_OPTION, text)
    }

    /// Whether freeing removed entries may give a failed call the memory it needs.
    pub(crate) fn is_shortage(&self) -> bool {
        match self {
            Self::Alloc(error) => {
                !matches!(error, AllocError::KeyLength { .. } | AllocError::Address)
            }
            Self::Plain(_) | Self::Told(..) => false,
        }
    }

    /// Keeps the sentence for [`silvics_last_error`], and returns the code.
    #[cold]
    fn report(self) -> Status {
        let (status, text) = match self {
            Self::Plain(status) => (status, text(status).into()),
            Self::Told(status, text) => (status, CString::new(text).unwrap_or_default()),
            Self::Alloc(error) => {
                let status = match error {
                    AllocError::Limit { .. } => Status::SILVICS_ERROR_LIMIT,
                    AllocError::KeyLength { .. } => Status::SILVICS_ERROR_KEY_LENGTH,
                    _ => Status::SILVICS_ERROR_MEMORY,
                };
                (status, CString::new(error.to_string()).unwrap_or_default())
            }
        };
        // While the thread ends, there is no place for the sentence.
        _ = LAST.try_with(|last| last.replace(text));
        status
    }
}

thread_local! {
    /// The sentence about the last error of this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of a call of the interface. No panic leaves it.
#[inline(always)]
pub(crate) fn call(body: impl FnOnce() -> Result<Status, Fault>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => status,
        Ok(Err(fault)) => fault.report(),
        Err(panic) => panicked(panic).report(),
    }
}

/// Runs a step that cannot fail of a call that has checked its arguments. No panic leaves it.
#[inline(always)]
pub(crate) fn caught(step: impl FnOnce() -> Status) -> Status {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|panic| panicked(panic).report())
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Fault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    let text = format!("a call panicked, which is a bug of silvics: {text}");
    std::mem::forget(panic); // its destructor may panic
    Fault::Told(Status::SILVICS_ERROR_PANIC, text)
}

/// Returns a sentence about a code. It is never NULL, and valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn silvics_strerror(status: i32) -> *const c_char {
    sentence(status).as_ptr()
}

/// Returns a sentence about the last error of the calling thread, with names and numbers: an empty
/// one if no call has failed. It is valid until the next error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn silvics_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the version of the library, such as `0.2.0`.
#[unsafe(no_mangle)]
pub extern "C" fn silvics_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_sentence_and_keeps_its_number() {
        let unknown = sentence(i32::MIN);
        let all = [0, 1, 2, 3, 4, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15];
        assert!(ALL.iter().map(|status| *status as i32).eq(all));
        assert!(all.iter().all(|&code| sentence(code) != unknown));
        assert_eq!(Status::SILVICS_PRESENT as i32, 2);
        assert_eq!(Status::SILVICS_ERROR_LIMIT as i32, -8);
        assert_eq!(Status::SILVICS_ERROR_GUARD as i32, -11);
        assert!([-16, 5, i32::MAX].iter().all(|&code| sentence(code) == unknown));
    }

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        let status = call(|| panic!("lost {}", 7));
        assert_eq!(status, Status::SILVICS_ERROR_PANIC);
        // SAFETY: the sentence is valid until the next error of this thread.
        let text = unsafe { CStr::from_ptr(silvics_last_error()) };
        assert!(text.to_string_lossy().ends_with("which is a bug of silvics: lost 7"));
    }
}

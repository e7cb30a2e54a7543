//! The callbacks of the type: snapshots, the log, copies, digests, memory.

use super::alloc::{bytes_of, heap};
use super::api::{borrowed, owned, random, server};
use crate::codec::{Corrupt, Decoder, Encoder, VERSION};
use crate::map::{ByteMap, Load, WriteError};
use crate::value::Digits;
use redis_module::raw;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Our callbacks.
pub(super) fn methods() -> raw::RedisModuleTypeMethods {
    raw::RedisModuleTypeMethods {
        version: u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION),
        rdb_load: Some(load),
        rdb_save: Some(save),
        aof_rewrite: Some(rewrite),
        mem_usage: Some(memory),
        digest: Some(digest),
        free: Some(free),
        free_effort: Some(free_effort),
        copy: Some(copy),
        aux_load: None,
        aux_save: None,
        aux_save2: None,
        aux_save_triggers: 0,
        unlink: None,
        defrag: None,
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
    }
}

/// Calls `each` with all entries. It pins nothing, takes no lock and allocates nothing: a child of
/// `fork` calls it while threads of its parent read the map, and free what was removed from it.
///
/// # Safety
/// The caller is a callback of the type, and `value` is its value. `each` does not write to the
/// map.
unsafe fn for_entries(value: *const c_void, mut each: impl FnMut(&[u8], &[u8])) {
    // SAFETY: A3.
    let map = unsafe { borrowed(value.cast_mut()) };
    // SAFETY: A1: only the event loop writes to maps. It is in this callback; in a child, it was in
    // the call of `fork`.
    let guard = unsafe { map.unprotected() };
    let mut digits = Digits::default();
    // SAFETY: the guard is that of the map.
    for (key, value) in unsafe { map.scan_under(&guard) } {
        each(key, value.bytes(&mut digits));
    }
}

unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    let write = |piece: &[u8]| {
        // SAFETY: the server writes what it is given.
        unsafe {
            server!(RedisModule_SaveStringBuffer(io, piece.as_ptr().cast(), piece.len()));
        }
    };
    let mut encoder = Encoder::default();
    // SAFETY: A3; this is a callback of the type.
    unsafe {
        server!(RedisModule_SaveUnsigned(io, borrowed(value).len() as u64));
        for_entries(value, |key, value| encoder.add(key, value, write));
    }
    encoder.finish(write);
}

unsafe extern "C" fn rewrite(
    io: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: this is a callback of the type. The format has the key, and two byte strings.
    unsafe {
        for_entries(value, |entry, value| {
            server!(RedisModule_EmitAOF(
                io,
                c"OM.SET".as_ptr(),
                c"sbb".as_ptr(),
                key,
                entry.as_ptr(),
                entry.len(),
                value.as_ptr(),
                value.len(),
            ));
        });
    }
}

/// Why a map cannot be loaded.
enum Unloadable {
    Version(c_int),
    Ended,
    Corrupt(Corrupt),
    Memory(WriteError),
}

impl From<Corrupt> for Unloadable {
    fn from(corrupt: Corrupt) -> Self {
        Self::Corrupt(corrupt)
    }
}

impl From<WriteError> for Unloadable {
    fn from(error: WriteError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for Unloadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "it has version {version}, and this module reads versions up to {VERSION}: \
                 load a newer module"
            ),
            Self::Ended => write!(f, "the snapshot ends within it: restore an intact one"),
            Self::Corrupt(corrupt) => write!(f, "{corrupt}: restore an intact snapshot"),
            Self::Memory(error) => write!(f, "{error}"),
        }
    }
}

/// A byte string that the server has read.
struct Piece {
    start: NonNull<u8>,
    len: usize,
}

impl Piece {
    /// # Safety
    /// The caller is the callback that loads from `io`.
    unsafe fn read(io: *mut raw::RedisModuleIO) -> Result<Self, Unloadable> {
        let mut len = 0;
        // SAFETY: the server writes the length.
        let start = unsafe { server!(RedisModule_LoadStringBuffer(io, &raw mut len)) };
        match NonNull::new(start.cast()) {
            // SAFETY: the caller's promise.
            Some(start) if unsafe { server!(RedisModule_IsIOError(io)) } == 0 => {
                Ok(Self { start, len })
            }
            _ => Err(Unloadable::Ended),
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the server has returned `len` bytes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: the server has allocated the bytes for the caller.
        unsafe { server!(RedisModule_Free(self.start.as_ptr().cast())) };
    }
}

/// # Safety
/// The caller is the callback that loads from `io`.
unsafe fn read(io: *mut raw::RedisModuleIO, version: c_int) -> Result<ByteMap, Unloadable> {
    if version > VERSION {
        return Err(Unloadable::Version(version));
    }
    // SAFETY: the caller's promise.
    let announced = unsafe { server!(RedisModule_LoadUnsigned(io)) };
    // SAFETY: the caller's promise.
    if unsafe { server!(RedisModule_IsIOError(io)) } != 0 {
        return Err(Unloadable::Ended);
    }
    let (mut decoder, mut map) =
        (Decoder::new(announced)?, Load::new(ByteMap::new(heap(), random())?));
    loop {
        // SAFETY: the caller's promise.
        let piece = unsafe { Piece::read(io) }?;
        if piece.bytes().is_empty() {
            break;
        }
        decoder.piece(piece.bytes(), |key, value| -> Result<(), Unloadable> {
            Ok(map.push(key, value)?)
        })?;
    }
    decoder.finish()?;
    Ok(map.finish()?)
}

unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    // SAFETY: this is the callback.
    match unsafe { read(io, version) } {
        Ok(map) => owned(Arc::new(map)),
        Err(error) => {
            let text = format!("a map cannot be loaded: {error}");
            let text = CString::new(text).unwrap_or_default();
            // SAFETY: the format has one string.
            unsafe {
                server!(RedisModule_LogIOError(
                    io,
                    c"warning".as_ptr(),
                    c"%s".as_ptr(),
                    text.as_ptr()
                ));
            }
            null_mut()
        }
    }
}

unsafe extern "C" fn memory(value: *const c_void) -> usize {
    // SAFETY: A3.
    bytes_of(unsafe { borrowed(value.cast_mut()) })
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: this is a callback of the type; the server copies what it is given.
    unsafe {
        for_entries(value, |key, value| {
            server!(RedisModule_DigestAddStringBuffer(digest, key.as_ptr().cast(), key.len()));
            server!(RedisModule_DigestAddStringBuffer(digest, value.as_ptr().cast(), value.len()));
            server!(RedisModule_DigestEndSequence(digest));
        });
    }
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: A3: the server gives back its reference. Any thread may drop a map.
    drop(unsafe { Arc::<ByteMap>::from_raw(value.cast()) });
}

/// The number of steps to free a map, by which the server decides whether a thread shall do it.
unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: A3.
    unsafe { borrowed(value.cast_mut()) }.len()
}

unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    _to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: A3.
    match ByteMap::copy_of(unsafe { borrowed(value.cast_mut()) }, random()) {
        Ok(map) => owned(Arc::new(map)),
        Err(_) => null_mut(), // the server replies with an error
    }
}

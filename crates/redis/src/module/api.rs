//! The server's functions, with Rust's types.
//!
//! # Invariants
//! * A1: the server calls the module's commands and callbacks on its event loop, one at a time,
//!   with two exceptions. It saves snapshots in a child of `fork`, too, which has one thread. And
//!   it calls `free` on any thread, with a map that no key has any more.
//! * A2: a pointer that the server passes to a command is valid until the command returns. The
//!   value of a key is valid until the key is written.
//! * A3: a value of our type is the pointer of an `Arc<ByteMap>`, of which the server owns one
//!   reference. It gives it back by `free`.
//! * A4: the server has every function that [`server!`] calls: they came with Redis 7.0 or before,
//!   as `RedisModule_OnLoad` checks.
//! * A5: a command is called with as many words as its arity in the table allows.

use super::jobs::Client;
use crate::map::{ByteMap, WriteError};
use crate::request::RequestError;
use crate::value::{Digits, Value};
use redis_module::raw;
use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;

/// Calls a function of the server.
macro_rules! server {
    ($function:ident($($argument:expr),* $(,)?)) => {
        (::redis_module::raw::$function.expect("`load` has checked it"))($($argument),*)
    };
}
pub(super) use server;

/// Our type, once it is registered.
static TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(null_mut());

/// Registers our type.
pub(super) fn set_type(our: *mut raw::RedisModuleType) {
    TYPE.store(our, Ordering::Relaxed); // the event loop alone reads it
}

/// Why a command replies with an error.
pub(super) enum Failure {
    /// The key has a value of another type.
    WrongType,
    /// A sentence for the client.
    Sentence(String),
    /// Memory is short.
    Memory(String),
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::Sentence(error.0)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::OutOfMemory => Self::Memory(error.to_string()),
            _ => Self::Sentence(error.to_string()),
        }
    }
}

/// From this number of removed entries on, a command frees their memory before it returns. The
/// memory of fewer ones is freed by later commands.
const MANY: usize = 64;

/// A call of a command.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    ctx: *mut raw::RedisModuleCtx,
    words: &'c [*mut raw::RedisModuleString],
}

impl<'c> Call<'c> {
    /// # Safety
    /// The arguments are those that the server has passed to a command, which has not returned.
    pub(super) unsafe fn new(
        ctx: *mut raw::RedisModuleCtx,
        words: *mut *mut raw::RedisModuleString,
        count: c_int,
    ) -> Self {
        if words.is_null() {
            return Self { ctx, words: &[] }; // a module that is loaded without arguments
        }
        // SAFETY: the server passes an array with `count` words.
        Self { ctx, words: unsafe { std::slice::from_raw_parts(words, count as usize) } }
    }

    /// The number of words, the command's name included.
    pub(super) fn len(self) -> usize {
        self.words.len()
    }

    /// A word that is there by the command's arity (A5).
    #[inline]
    pub(super) fn word(self, at: usize) -> &'c [u8] {
        let mut len = 0;
        // SAFETY: A2: the words are valid during the call.
        unsafe {
            let start = server!(RedisModule_StringPtrLen(self.words[at], &raw mut len));
            std::slice::from_raw_parts(start.cast(), len)
        }
    }

    /// The words from this one on.
    pub(super) fn words(self, from: usize) -> impl Iterator<Item = &'c [u8]> {
        (from..self.len()).map(move |at| self.word(at))
    }

    pub(super) fn reply(self) -> Reply {
        // SAFETY: A2: this is a command on the event loop.
        unsafe { Reply::new(self.ctx) }
    }

    /// Opens the key that the first word behind the command names.
    fn open(self, mode: u32) -> Key<'c> {
        // SAFETY: A2.
        let key = unsafe { server!(RedisModule_OpenKey(self.ctx, self.words[1], mode as c_int)) };
        Key { key: key.cast(), call: PhantomData }
    }

    /// Opens the key for reading.
    pub(super) fn read(self) -> Key<'c> {
        self.open(raw::REDISMODULE_READ)
    }

    /// Opens the key for writing.
    pub(super) fn write(self) -> Key<'c> {
        self.open(raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)
    }

    /// Sends the command to replicas and to the log, as it is, and tells clients that watch the key
    /// or listen to events. Other modules may write to the key then, so it is closed before.
    pub(super) fn changed(self, key: Key<'c>, event: &CStr) {
        drop(key);
        // SAFETY: A2.
        unsafe {
            server!(RedisModule_ReplicateVerbatim(self.ctx));
            server!(RedisModule_SignalModifiedKey(self.ctx, self.words[1]));
        }
        self.notify(raw::REDISMODULE_NOTIFY_MODULE, event);
    }

    fn notify(self, kind: c_int, event: &CStr) {
        let event = event.as_ptr();
        // SAFETY: A2.
        unsafe { server!(RedisModule_NotifyKeyspaceEvent(self.ctx, kind, event, self.words[1])) };
    }

    /// Does what follows the removal of `removed` entries: see [`Call::changed`]. A map without
    /// entries is deleted, as with all types of the server.
    pub(super) fn removed(self, mut key: Key<'c>, removed: usize, event: &CStr) {
        if removed == 0 {
            return;
        }
        let is_empty = key.map().ok().flatten().is_some_and(|map| {
            if removed >= MANY {
                map.settle();
            }
            map.is_empty()
        });
        if is_empty {
            key.delete();
        }
        self.changed(key, event);
        if is_empty {
            self.notify(raw::REDISMODULE_NOTIFY_GENERIC, c"del");
        }
    }

    /// Whether the client may be blocked: not within a transaction or a script.
    pub(super) fn may_block(self) -> bool {
        let never = raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        // SAFETY: A2.
        unsafe { server!(RedisModule_GetContextFlags(self.ctx)) as u32 & never == 0 }
    }

    /// Blocks the client. `gone` is called if it disconnects.
    pub(super) fn block(self, gone: raw::RedisModuleDisconnectFunc) -> Client {
        // SAFETY: A2. The job that gets the client unblocks it once.
        unsafe {
            let client = server!(RedisModule_BlockClient(self.ctx, None, None, None, 0));
            server!(RedisModule_SetDisconnectCallback(client, gone));
            Client(client)
        }
    }
}

/// An open key.
pub(super) struct Key<'c> {
    key: *mut raw::RedisModuleKey,
    call: PhantomData<&'c ()>,
}

impl Key<'_> {
    /// The map that the key has.
    #[inline]
    pub(super) fn map(&self) -> Result<Option<&ByteMap>, Failure> {
        // SAFETY: A3: a value of our type is a map. Only exclusive borrows write to the key.
        Ok(self.value()?.map(|value| unsafe { borrowed(value) }))
    }

    /// Another reference to the map that the key has.
    pub(super) fn shared(&self) -> Result<Option<Arc<ByteMap>>, Failure> {
        // SAFETY: A3: the value is that of an `Arc`, of which the server owns a reference.
        Ok(self.value()?.map(|value| unsafe {
            let map: *const ByteMap = value.cast();
            Arc::increment_strong_count(map);
            Arc::from_raw(map)
        }))
    }

    #[inline]
    fn value(&self) -> Result<Option<*mut c_void>, Failure> {
        // SAFETY: the key is open.
        unsafe {
            if self.key.is_null()
                || server!(RedisModule_KeyType(self.key)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int
            {
                return Ok(None);
            }
            if server!(RedisModule_ModuleTypeGetType(self.key)) != TYPE.load(Ordering::Relaxed) {
                return Err(Failure::WrongType);
            }
            Ok(Some(server!(RedisModule_ModuleTypeGetValue(self.key))))
        }
    }

    /// Gives the key a map. It was opened for writing.
    pub(super) fn set(&mut self, map: Arc<ByteMap>) {
        // SAFETY: the key is open for writing. A3.
        unsafe {
            server!(RedisModule_ModuleTypeSetValue(
                self.key,
                TYPE.load(Ordering::Relaxed),
                owned(map)
            ));
        }
    }

    fn delete(&mut self) {
        // SAFETY: the key is open for writing. The exclusive borrow ends all borrows of its map.
        unsafe { server!(RedisModule_DeleteKey(self.key)) };
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, or null.
        unsafe { server!(RedisModule_CloseKey(self.key)) };
    }
}

/// A map as a value of a key (A3).
pub(super) fn owned(map: Arc<ByteMap>) -> *mut c_void {
    Arc::into_raw(map).cast_mut().cast()
}

/// The map behind a value of a key.
///
/// # Safety
/// The value is of our type (A3), and its key is not written to during `'a`.
pub(super) unsafe fn borrowed<'a>(value: *mut c_void) -> &'a ByteMap {
    // SAFETY: the caller's promise.
    unsafe { &*value.cast() }
}

/// The context in which a command replies.
#[derive(Clone, Copy)]
pub(super) struct Reply(*mut raw::RedisModuleCtx);

impl Reply {
    /// # Safety
    /// While this value and its copies are used, the context is that of a command on the event
    /// loop, or that of a blocked client, on the only thread that uses it.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Self(ctx)
    }

    #[inline]
    pub(super) fn bytes(self, bytes: &[u8]) {
        // SAFETY: the contract of `new`.
        unsafe {
            let start = bytes.as_ptr().cast();
            server!(RedisModule_ReplyWithStringBuffer(self.0, start, bytes.len()));
        }
    }

    #[inline]
    pub(super) fn value(self, value: Value<'_>) {
        self.bytes(value.bytes(&mut Digits::default()));
    }

    pub(super) fn optional(self, value: Option<Value<'_>>) {
        match value {
            Some(value) => self.value(value),
            None => self.null(),
        }
    }

    pub(super) fn ok(self) {
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplyWithSimpleString(self.0, c"OK".as_ptr())) };
    }

    pub(super) fn null(self) {
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplyWithNull(self.0)) };
    }

    pub(super) fn integer(self, integer: usize) {
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplyWithLongLong(self.0, integer as i64)) };
    }

    pub(super) fn array(self, len: usize) {
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplyWithArray(self.0, len as c_long)) };
    }

    /// Begins an array whose length [`Reply::end_array`] tells.
    pub(super) fn begin_array(self) {
        // SAFETY: the contract of `new`.
        unsafe {
            let unknown = raw::REDISMODULE_POSTPONED_LEN as c_long;
            server!(RedisModule_ReplyWithArray(self.0, unknown));
        }
    }

    pub(super) fn end_array(self, len: usize) {
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplySetArrayLength(self.0, len as c_long)) };
    }

    /// An entry as one or two elements of an array.
    #[inline]
    pub(super) fn entry(self, key: &[u8], value: Value<'_>, keys_only: bool) {
        self.bytes(key);
        if !keys_only {
            self.value(value);
        }
    }

    pub(super) fn failure(self, failure: &Failure) {
        let text = match failure {
            Failure::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".to_string()
            }
            Failure::Sentence(sentence) => format!("ERR {sentence}"),
            Failure::Memory(sentence) => format!("OOM {sentence}"),
        };
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the contract of `new`.
        unsafe { server!(RedisModule_ReplyWithError(self.0, text.as_ptr())) };
    }
}

/// A random number. Called on the event loop.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the server writes `bytes.len()` bytes.
    unsafe { server!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
    u64::from_ne_bytes(bytes)
}

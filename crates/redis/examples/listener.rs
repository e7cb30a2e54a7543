//! A module for the tests: it hears of each change of a map, writes down whether the key exists and
//! how many entries it has, and then deletes the key. Other modules may do so at that moment.
//!
//! `LISTENER.SEEN` returns the existence and the number of entries at the last event.

use redis_module::raw;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long};

const OK: c_int = raw::REDISMODULE_OK as c_int;

std::thread_local! {
    /// Whether the key existed, and its number of entries. The event loop alone uses it.
    static SEEN: Cell<(i64, i64)> = const { Cell::new((-1, -1)) };
}

/// Calls a command with the key, and returns its integer.
///
/// # Safety
/// The context and the key are those of a callback.
unsafe fn call(
    ctx: *mut raw::RedisModuleCtx,
    command: *const c_char,
    key: *mut raw::RedisModuleString,
) -> i64 {
    // SAFETY: the format has one string of the server; the reply is freed once.
    unsafe {
        let call = raw::RedisModule_Call.expect("of Redis 7.0");
        let reply = call(ctx, command, c"s".as_ptr(), key);
        let integer = raw::RedisModule_CallReplyInteger.expect("of Redis 7.0")(reply);
        raw::RedisModule_FreeCallReply.expect("of Redis 7.0")(reply);
        integer
    }
}

unsafe extern "C" fn heard(
    ctx: *mut raw::RedisModuleCtx,
    _kind: c_int,
    _event: *const c_char,
    key: *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the context and the key of the event.
    let seen = unsafe { (call(ctx, c"EXISTS".as_ptr(), key), call(ctx, c"OM.LEN".as_ptr(), key)) };
    SEEN.set(seen);
    // SAFETY: the server passes the context and the key of the event.
    unsafe { call(ctx, c"DEL".as_ptr(), key) };
    OK
}

unsafe extern "C" fn seen(
    ctx: *mut raw::RedisModuleCtx,
    _words: *mut *mut raw::RedisModuleString,
    _count: c_int,
) -> c_int {
    let (exists, entries) = SEEN.get();
    // SAFETY: the context is that of a command.
    unsafe {
        raw::RedisModule_ReplyWithArray.expect("of Redis 7.0")(ctx, 2 as c_long);
        let reply = raw::RedisModule_ReplyWithLongLong.expect("of Redis 7.0");
        reply(ctx, exists);
        reply(ctx, entries)
    }
}

/// # Safety
/// The server passes a context.
#[unsafe(no_mangle)]
unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    _words: *mut *mut raw::RedisModuleString,
    _count: c_int,
) -> c_int {
    // SAFETY: the server copies the texts, and keeps the contracts of the callbacks.
    unsafe {
        let version = raw::REDISMODULE_APIVER_1 as c_int;
        if raw::Export_RedisModule_Init(ctx, c"listener".as_ptr(), 1, version) != OK {
            return raw::REDISMODULE_ERR as c_int;
        }
        let create = raw::RedisModule_CreateCommand.expect("of Redis 7.0");
        create(ctx, c"LISTENER.SEEN".as_ptr(), Some(seen), c"readonly".as_ptr(), 0, 0, 0);
        let subscribe = raw::RedisModule_SubscribeToKeyspaceEvents.expect("of Redis 7.0");
        subscribe(ctx, raw::REDISMODULE_NOTIFY_MODULE, Some(heard))
    }
}

//! The module that a server loads: `docs/cluster.md` describes its commands.
//!
//! # Parts
//! * `api.rs`: the server's functions with Rust's types, and the invariants of the border.
//! * `commands.rs`: the table of commands; `points.rs`, `ranges.rs`, `info.rs`: what they do.
//! * `jobs.rs`: threads for long scans. `persist.rs`: the callbacks of the type.
//! * `alloc.rs`: the server's allocator.
//!
//! # Panics
//! No panic crosses the border: a function that the server calls ends the process if it panics.

mod alloc;
mod api;
mod commands;
mod info;
mod jobs;
mod persist;
mod points;
mod ranges;

use crate::codec::VERSION;
use api::{Call, server, set_type};
use redis_module::raw;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::ffi::{CStr, CString, c_int};

/// The name of the module.
const NAME: &CStr = c"silvics";
/// The name of the type in snapshots: nine characters.
const TYPE: &CStr = c"silvicsOM";
const MODULE_VERSION: c_int = 1;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Writes a sentence into the server's log.
fn log(ctx: *mut raw::RedisModuleCtx, sentence: &CStr) {
    // SAFETY: the format has one string. The server sets this function before all others.
    unsafe {
        if let Some(log) = raw::RedisModule_Log {
            log(ctx, c"warning".as_ptr(), c"%s".as_ptr(), sentence.as_ptr());
        }
    }
}

/// Parses `[threads n] [threshold n]`.
fn arguments(call: Call<'_>) -> Result<(usize, usize), String> {
    let (mut threads, mut threshold) = (jobs::settings().threads(), jobs::settings().threshold());
    let mut words = call.words(0);
    while let Some(word) = words.next() {
        let place = match word {
            b"threads" => &mut threads,
            b"threshold" => &mut threshold,
            _ => {
                let word = word.escape_ascii();
                return Err(format!("'{word}' is not an argument: give threads n, or threshold n"));
            }
        };
        let number = words.next().and_then(|number| str::from_utf8(number).ok()?.parse().ok());
        *place = number
            .ok_or_else(|| format!("'{}' needs a number: give 0 or more", word.escape_ascii()))?;
    }
    if threads > 64 {
        return Err(format!("threads is {threads}: give at most 64"));
    }
    Ok((threads, threshold))
}

/// The options of the module. The server calls `rdb_load` for a snapshot that ends early, and may
/// answer commands while it loads another data set. A key that is opened for writing counts as
/// modified only if the command says so.
///
/// A Valkey that moves slots atomically does so only if all modules know that keys of a slot may
/// come while it is not served. Ours know no slots.
fn set_options(ctx: *mut raw::RedisModuleCtx) {
    /// `VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION` of Valkey 9.
    const ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;
    let always = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED;
    // SAFETY: the functions take these arguments, and the info is freed once.
    unsafe {
        let known = raw::RedisModule_GetModuleOptionsAll.map_or(0, |all| all());
        let info = server!(RedisModule_GetServerInfo(ctx, c"server".as_ptr()));
        let name = server!(RedisModule_ServerInfoGetFieldC(info, c"server_name".as_ptr()));
        let valkey = !name.is_null() && CStr::from_ptr(name) == c"valkey";
        server!(RedisModule_FreeServerInfo(ctx, info));
        let migrates = if valkey { known & ATOMIC_SLOT_MIGRATION } else { 0 };
        server!(RedisModule_SetModuleOptions(ctx, always as c_int | migrates));
    }
}

/// The bytes that the server has allocated.
fn used_memory(ctx: *mut raw::RedisModuleCtx) -> usize {
    let mut error = 0;
    // SAFETY: the functions take these arguments, and the info is freed once.
    unsafe {
        let info = server!(RedisModule_GetServerInfo(ctx, c"memory".as_ptr()));
        let (field, error) = (c"used_memory".as_ptr(), &raw mut error);
        let used = server!(RedisModule_ServerInfoGetFieldUnsigned(info, field, error));
        server!(RedisModule_FreeServerInfo(ctx, info));
        used as usize
    }
}

fn load(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> Result<(), String> {
    // SAFETY: the server passes the arguments of the module as words.
    let (threads, threshold) = arguments(unsafe { Call::new(ctx, words, count) })?;
    jobs::settings().set(threshold, threads);
    set_options(ctx);
    alloc::measure_empty_map(|| used_memory(ctx)).map_err(|error| error.to_string())?;
    let mut methods = persist::methods();
    // SAFETY: the server copies the methods, and keeps the callbacks' contracts.
    let ours = unsafe {
        server!(RedisModule_CreateDataType(ctx, TYPE.as_ptr(), VERSION, &raw mut methods))
    };
    if ours.is_null() {
        return Err("the server has another type with our name: load the module once".into());
    }
    set_type(ours);
    commands::register(ctx).map_err(|name| {
        let name = name.to_string_lossy();
        format!("the command {name} could not be registered: is it there already?")
    })?;
    // SAFETY: the callback only adds fields.
    unsafe { server!(RedisModule_RegisterInfoFunc(ctx, Some(info::section))) };
    Ok(())
}

const TWICE: &CStr = c"a module with the name silvics is loaded already: load it once";

/// Called by the server when it loads the module.
///
/// # Safety
/// The server passes a context, and the arguments of the module.
#[unsafe(no_mangle)]
unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> c_int {
    /// Whether this file is loaded. Only the event loop uses it.
    static LOADED: AtomicBool = AtomicBool::new(false);
    // Another load of the file would write the server's functions while threads read them.
    if LOADED.load(Ordering::Relaxed) {
        log(ctx, TWICE);
        return ERR;
    }
    // SAFETY: the server passes a context. Nothing is allocated before this call, which gets the
    // server's functions.
    let begun = unsafe {
        raw::Export_RedisModule_Init(
            ctx,
            NAME.as_ptr(),
            MODULE_VERSION,
            raw::REDISMODULE_APIVER_1 as c_int,
        )
    };
    if begun != OK {
        log(ctx, TWICE);
        return ERR;
    }
    // SAFETY: the function is only read. It came with Redis 7.0, and all that we call before (A4).
    if unsafe { raw::RedisModule_TryAlloc }.is_none() {
        log(ctx, c"the server is too old: use Redis 7.0 or Valkey 8.0, or a later one");
        return ERR; // without an allocation, which this function serves
    }
    match load(ctx, words, count) {
        Ok(()) => {
            LOADED.store(true, Ordering::Relaxed);
            OK
        }
        Err(sentence) => {
            log(ctx, &CString::new(sentence).unwrap_or_default());
            ERR
        }
    }
}

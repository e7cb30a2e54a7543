//! The module that a server loads: `docs/cluster.md` describes its commands.
//!
//! # Parts
//! * `api.rs`: the server's functions with Rust's types, and the invariants of the border.
//! * `points.rs`, `ranges.rs`, `info.rs`: the commands.
//! * `jobs.rs`: threads for long scans. `persist.rs`: the callbacks of the type.
//! * `alloc.rs`: the server's allocator.
//!
//! # Panics
//! No panic crosses the border: a function that the server calls ends the process if it panics.

mod alloc;
mod api;
mod info;
mod jobs;
mod persist;
mod points;
mod ranges;

use crate::codec::VERSION;
use api::{Call, server, set_type};
use redis_module::raw;
use std::ffi::{CStr, CString, c_int};

/// The name of the module.
const NAME: &CStr = c"silvics";
/// The name of the type in snapshots: nine characters.
const TYPE: &CStr = c"silvicsOM";
const MODULE_VERSION: c_int = 1;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// A function that the server calls for a command.
type Handler = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

/// A command: its name, its function, and its flags, of which the last ones are categories of ACL.
struct Command {
    name: &'static CStr,
    handler: Handler,
    flags: &'static CStr,
    categories: &'static CStr,
}

/// Makes the table of commands. Each command's first argument is its only key.
macro_rules! commands {
    ($($name:literal $function:path, $flags:literal, $categories:literal;)*) => {
        &[$({
            unsafe extern "C" fn handler(
                ctx: *mut raw::RedisModuleCtx,
                words: *mut *mut raw::RedisModuleString,
                count: c_int,
            ) -> c_int {
                // SAFETY: the server calls this function with the words of a command.
                let call = unsafe { Call::new(ctx, words, count) };
                if let Err(failure) = $function(call) {
                    call.reply().failure(&failure);
                }
                OK
            }
            Command { name: $name, handler, flags: $flags, categories: $categories }
        }),*]
    };
}

const COMMANDS: &[Command] = commands! {
    c"OM.SET" points::set, c"write deny-oom fast", c"write fast";
    c"OM.GET" points::get, c"readonly fast", c"read fast";
    c"OM.MGET" points::get_many, c"readonly fast", c"read fast";
    c"OM.DEL" points::delete, c"write fast", c"write fast";
    c"OM.CAS" points::compare_and_set, c"write deny-oom fast", c"write fast";
    c"OM.LEN" points::len, c"readonly fast", c"read fast";
    c"OM.FIRST" points::first, c"readonly fast", c"read fast";
    c"OM.LAST" points::last, c"readonly fast", c"read fast";
    c"OM.POP" points::pop, c"write fast", c"write fast";
    c"OM.RANGE" ranges::range, c"readonly", c"read slow";
    c"OM.REVRANGE" ranges::range_rev, c"readonly", c"read slow";
    c"OM.PREFIX" ranges::prefix, c"readonly", c"read slow";
    c"OM.SCAN" ranges::scan, c"readonly", c"read slow";
    c"OM.COUNT" ranges::count, c"readonly", c"read slow";
    c"OM.AGG" ranges::aggregate, c"readonly", c"read slow";
    c"OM.DELRANGE" ranges::delete, c"write", c"write slow";
    c"OM.INFO" info::map, c"readonly fast", c"read fast";
};

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

fn register(ctx: *mut raw::RedisModuleCtx, command: &Command) -> bool {
    let Command { name, handler, flags, categories } = command;
    // SAFETY: the server copies the texts, and calls the function with the words of a command.
    unsafe {
        let created = server!(RedisModule_CreateCommand(
            ctx,
            name.as_ptr(),
            Some(*handler),
            flags.as_ptr(),
            1,
            1,
            1
        ));
        if created != OK {
            return false;
        }
        // Servers without this function have the categories by the flags.
        let Some(set) = raw::RedisModule_SetCommandACLCategories else { return true };
        let command = server!(RedisModule_GetCommand(ctx, name.as_ptr()));
        set(command, categories.as_ptr()) == OK
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
    alloc::heap();
    let mut methods = persist::methods();
    // SAFETY: the server copies the methods, and keeps the callbacks' contracts.
    let ours = unsafe {
        server!(RedisModule_CreateDataType(ctx, TYPE.as_ptr(), VERSION, &raw mut methods))
    };
    if ours.is_null() {
        return Err("the server has another type with our name: load the module once".into());
    }
    set_type(ours);
    if let Some(command) = COMMANDS.iter().find(|command| !register(ctx, command)) {
        let name = command.name.to_string_lossy();
        return Err(format!("the command {name} could not be registered: is it there already?"));
    }
    // SAFETY: the callback only adds fields.
    unsafe { server!(RedisModule_RegisterInfoFunc(ctx, Some(info::section))) };
    Ok(())
}

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
        log(ctx, c"a module with the name silvics is loaded already: load it once");
        return ERR;
    }
    // SAFETY: the function is only read. It came with Redis 7.0, and all that we call before (A4).
    if unsafe { raw::RedisModule_TryAlloc }.is_none() {
        log(ctx, c"the server is too old: use Redis 7.0 or Valkey 8.0, or a later one");
        return ERR; // without an allocation, which this function serves
    }
    match load(ctx, words, count) {
        Ok(()) => OK,
        Err(sentence) => {
            log(ctx, &CString::new(sentence).unwrap_or_default());
            ERR
        }
    }
}

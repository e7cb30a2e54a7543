//! Facts about a map, and about the module.

use super::alloc::bytes_of;
use super::api::{Call, Failure, server};
use super::jobs::{COUNTS, settings};
use redis_module::raw;
use silvics_sync::atomic::Ordering;
use std::ffi::{CStr, c_int};

/// The pages of the process, as the kernel reports them. Servers ask for pages of 4 KiB alone:
/// a write to a huge page after a fork would copy all of it.
fn pages() -> &'static str {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).map(str::trim) {
        Some("0") => "4 KiB (the server has disabled transparent huge pages)",
        Some(_) => "4 KiB, and transparent huge pages if the system always makes them",
        None => "unknown",
    }
}

/// `OM.INFO map`
pub(super) fn map(call: Call<'_>) -> Result<(), Failure> {
    let (key, reply) = (call.read(), call.reply());
    let Some(map) = key.map()? else {
        reply.null();
        return Ok(());
    };
    let memory = map.memory();
    let numbers: [(&str, usize); 4] = [
        ("entries", map.len()),
        ("bytes", bytes_of(map)),
        ("tree-bytes", memory.tree),
        ("value-bytes", memory.values),
    ];
    let texts = [("structure", "blocks"), ("pages", pages())];
    reply.array(2 * (numbers.len() + texts.len()));
    for (name, number) in numbers {
        reply.bytes(name.as_bytes());
        reply.integer(number);
    }
    for (name, text) in texts {
        reply.bytes(name.as_bytes());
        reply.bytes(text.as_bytes());
    }
    Ok(())
}

/// Adds the section of the module to `INFO`.
pub(super) unsafe extern "C" fn section(ctx: *mut raw::RedisModuleInfoCtx, _crash: c_int) {
    let load = Ordering::Relaxed; // single numbers
    let fields: [(&CStr, usize); 5] = [
        (c"threads", settings().threads()),
        (c"threshold", settings().threshold()),
        (c"jobs_running", COUNTS.running.load(load)),
        (c"jobs_done", COUNTS.done.load(load)),
        (c"jobs_abandoned", COUNTS.abandoned.load(load)),
    ];
    // SAFETY: the context is valid during this callback.
    unsafe {
        server!(RedisModule_InfoAddSection(ctx, c"".as_ptr()));
        for (name, number) in fields {
            server!(RedisModule_InfoAddFieldULongLong(ctx, name.as_ptr(), number as u64));
        }
    }
}

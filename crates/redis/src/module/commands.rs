//! The table of commands, and their registration.

use super::api::{Call, server};
use super::{info, points, ranges};
use redis_module::raw;
use std::ffi::{CStr, c_int};
use std::mem::zeroed;
use std::ptr::null;

/// A function that the server calls for a command.
type Handler = unsafe extern "C" fn(
    *mut raw::RedisModuleCtx,
    *mut *mut raw::RedisModuleString,
    c_int,
) -> c_int;

/// A command, with its facts for the server and for its users. The first argument of each command
/// is its only key.
struct Command {
    name: &'static CStr,
    handler: Handler,
    /// The number of words; if it is negative, the least number of words.
    arity: c_int,
    /// How the server runs it.
    flags: &'static CStr,
    /// Its categories of access control.
    categories: &'static CStr,
    /// How it uses its key: flags of the server.
    access: u32,
    summary: &'static CStr,
    complexity: &'static CStr,
}

const FACTS: u32 = raw::REDISMODULE_CMD_KEY_RO;
const READS: u32 = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
const WRITES: u32 =
    raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE;
const REMOVES: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE;
const TAKES: u32 = REMOVES | raw::REDISMODULE_CMD_KEY_ACCESS;

/// Makes the table of commands.
macro_rules! commands {
    ($($name:literal $arity:literal $function:path, $flags:literal, $categories:literal, $access:expr,
       $summary:literal, $complexity:literal;)*) => {
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
                raw::REDISMODULE_OK as c_int
            }
            Command {
                name: $name, handler, arity: $arity, flags: $flags, categories: $categories,
                access: $access, summary: $summary, complexity: $complexity,
            }
        }),*]
    };
}

const COMMANDS: &[Command] = commands! {
    c"OM.SET" -4 points::set, c"write deny-oom fast", c"write fast", WRITES,
        c"Sets the value of a key of a map.", c"O(log N)";
    c"OM.GET" 3 points::get, c"readonly fast", c"read fast", READS,
        c"Returns the value of a key of a map.", c"O(log N)";
    c"OM.MGET" -3 points::get_many, c"readonly fast", c"read fast", READS,
        c"Returns the values of keys of a map.", c"O(K log N) for K keys";
    c"OM.DEL" -3 points::delete, c"write fast", c"write fast", REMOVES,
        c"Removes keys of a map.", c"O(K log N) for K keys";
    c"OM.CAS" -5 points::compare_and_set, c"write deny-oom fast", c"write fast", WRITES,
        c"Changes a key of a map if it is in the expected state.", c"O(log N)";
    c"OM.LEN" 2 points::len, c"readonly fast", c"read fast", FACTS,
        c"Returns the number of entries of a map.", c"O(1)";
    c"OM.FIRST" 2 points::first, c"readonly fast", c"read fast", READS,
        c"Returns the entry with the smallest key.", c"O(log N)";
    c"OM.LAST" 2 points::last, c"readonly fast", c"read fast", READS,
        c"Returns the entry with the largest key.", c"O(log N)";
    c"OM.POP" -2 points::pop, c"write fast", c"write fast", TAKES,
        c"Removes and returns entries at an end of a map.", c"O(M log N) for M entries";
    c"OM.RANGE" -4 ranges::range, c"readonly", c"read slow", READS,
        c"Returns entries between two keys.", c"O(log N + M), M with the offset";
    c"OM.REVRANGE" -4 ranges::range_rev, c"readonly", c"read slow", READS,
        c"Returns entries between two keys in descending order.", c"O(log N + M), M with the offset";
    c"OM.PREFIX" -3 ranges::prefix, c"readonly", c"read slow", READS,
        c"Returns entries whose keys begin with a prefix.", c"O(log N + M), M with the offset";
    c"OM.SCAN" -3 ranges::scan, c"readonly", c"read slow", READS,
        c"Returns the next entries behind a cursor.", c"O(log N + M)";
    c"OM.COUNT" 4 ranges::count, c"readonly", c"read slow", READS,
        c"Returns the number of entries between two keys.", c"O(log N + M)";
    c"OM.AGG" -5 ranges::aggregate, c"readonly", c"read slow", READS,
        c"Returns the sum, minimum or maximum of values between two keys.", c"O(log N + M)";
    c"OM.DELRANGE" -4 ranges::delete, c"write", c"write slow", REMOVES,
        c"Removes entries between two keys.", c"O(M log N)";
    c"OM.INFO" 2 info::map, c"readonly fast", c"read fast", FACTS,
        c"Returns facts about a map and its memory.", c"O(1)";
};

/// Registers all commands. Returns the name of the first one that the server refuses.
pub(super) fn register(ctx: *mut raw::RedisModuleCtx) -> Result<(), &'static CStr> {
    let refused = COMMANDS.iter().find(|command| !command.register(ctx));
    refused.map_or(Ok(()), |command| Err(command.name))
}

impl Command {
    fn register(&self, ctx: *mut raw::RedisModuleCtx) -> bool {
        const OK: c_int = raw::REDISMODULE_OK as c_int;
        let (name, flags) = (self.name.as_ptr(), self.flags.as_ptr());
        // SAFETY: the server copies what it is given, and calls the handler with the words of a
        // command.
        unsafe {
            if server!(RedisModule_CreateCommand(ctx, name, Some(self.handler), flags, 1, 1, 1))
                != OK
            {
                return false;
            }
            let command = server!(RedisModule_GetCommand(ctx, name));
            // Redis 7.0 does not have this function.
            if let Some(set) = raw::RedisModule_SetCommandACLCategories
                && set(command, self.categories.as_ptr()) != OK
            {
                return false;
            }
            self.describe(command)
        }
    }

    /// # Safety
    /// `command` is the one that the server has made for this entry of the table.
    unsafe fn describe(&self, command: *mut raw::RedisModuleCommand) -> bool {
        static VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        // SAFETY: both are structures of C in which zeros are valid; a zero ends the list of keys.
        let (mut info, mut keys): (
            raw::RedisModuleCommandInfo,
            [raw::RedisModuleCommandKeySpec; 2],
        ) = unsafe { (zeroed(), zeroed()) };
        keys[0].notes = null();
        keys[0].flags = u64::from(self.access);
        keys[0].begin_search_type =
            raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        keys[0].bs.index.pos = 1;
        keys[0].find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        keys[0].fk.range.lastkey = 0;
        keys[0].fk.range.keystep = 1;
        info.version = &raw const VERSION;
        info.summary = self.summary.as_ptr();
        info.complexity = self.complexity.as_ptr();
        info.since = c"0.1".as_ptr();
        info.arity = self.arity;
        info.key_specs = keys.as_mut_ptr();
        // SAFETY: the caller's promise; the server copies the structures.
        unsafe {
            server!(RedisModule_SetCommandInfo(command, &raw const info))
                == raw::REDISMODULE_OK as c_int
        }
    }
}

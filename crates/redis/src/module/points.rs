//! Commands on single keys, and on both ends.

use super::alloc::heap;
use super::api::{Call, Failure, random};
use crate::map::{ByteMap, Condition};
use crate::request;
use std::sync::Arc;

/// A new map, which no key of the server has yet.
pub(super) fn fresh() -> Result<Arc<ByteMap>, Failure> {
    Ok(Arc::new(ByteMap::new(heap(), random())?))
}

/// `OM.SET map key value [NX | XX] [GET]`
pub(super) fn set(call: Call<'_>) -> Result<(), Failure> {
    let options = request::set_options(&mut call.words(4))?;
    let (mut key, reply) = (call.write(), call.reply());
    let (written, new) = {
        let map = key.map()?;
        if map.is_none() && options.condition == Condition::Present {
            reply.null();
            return Ok(());
        }
        let new = if map.is_none() { Some(fresh()?) } else { None };
        let map = map.or(new.as_deref()).expect("one of both");
        let view = map.pin();
        let set = view.set(call.word(2), call.word(3), options.condition)?;
        if options.get {
            reply.optional(set.old);
        } else if set.written {
            reply.ok();
        } else {
            reply.null();
        }
        let written = set.written;
        drop(view);
        (written, new)
    };
    if let Some(new) = new {
        key.set(new);
    }
    if written {
        call.changed(key, c"om.set");
    }
    Ok(())
}

/// `OM.GET map key`
pub(super) fn get(call: Call<'_>) -> Result<(), Failure> {
    let key = call.read();
    match key.map()? {
        Some(map) => call.reply().optional(map.pin().get(call.word(2))),
        None => call.reply().null(),
    }
    Ok(())
}

/// `OM.MGET map key [key …]`
pub(super) fn get_many(call: Call<'_>) -> Result<(), Failure> {
    let (key, reply) = (call.read(), call.reply());
    let map = key.map()?;
    reply.array(call.len() - 2);
    let Some(map) = map else {
        call.words(2).for_each(|_| reply.null());
        return Ok(());
    };
    let keys: Vec<&[u8]> = call.words(2).collect();
    let view = map.pin();
    for value in view.get_many(&keys) {
        reply.optional(value);
    }
    Ok(())
}

/// `OM.DEL map key [key …]`
pub(super) fn delete(call: Call<'_>) -> Result<(), Failure> {
    let key = call.write();
    let mut removed = 0;
    if let Some(map) = key.map()? {
        let view = map.pin();
        for key in call.words(2) {
            removed += usize::from(view.remove(key)?.is_some());
        }
    }
    call.reply().integer(removed);
    call.removed(key, removed, c"om.del");
    Ok(())
}

/// `OM.CAS map key (ABSENT | VALUE expected) (ABSENT | VALUE new)`
pub(super) fn compare_and_set(call: Call<'_>) -> Result<(), Failure> {
    let mut words = call.words(3);
    let expected = request::state(&mut words, "the expected state")?;
    let new = request::state(&mut words, "the new state")?;
    request::end(&mut words)?;
    let mut key = call.write();
    let (done, new_map) = match (key.map()?, expected, new) {
        (Some(map), _, _) => (map.pin().compare_and_set(call.word(2), expected, new)?, None),
        (None, None, Some(_)) => {
            let map = fresh()?;
            (map.pin().compare_and_set(call.word(2), expected, new)?, Some(map))
        }
        (None, _, _) => (expected.is_none(), None),
    };
    call.reply().integer(usize::from(done));
    if let Some(map) = new_map {
        key.set(map);
    }
    if done && (expected.is_some() || new.is_some()) {
        call.removed(key, 1, c"om.cas");
    }
    Ok(())
}

/// `OM.LEN map`
pub(super) fn len(call: Call<'_>) -> Result<(), Failure> {
    let key = call.read();
    call.reply().integer(key.map()?.map_or(0, ByteMap::len));
    Ok(())
}

fn end(call: Call<'_>, last: bool) -> Result<(), Failure> {
    let key = call.read();
    let (reply, view) = (call.reply(), key.map()?.map(ByteMap::pin));
    match view.as_ref().and_then(|view| view.end(last)) {
        Some((key, value)) => {
            reply.array(2);
            reply.entry(key, value, false);
        }
        None => reply.null(),
    }
    Ok(())
}

/// `OM.FIRST map`
pub(super) fn first(call: Call<'_>) -> Result<(), Failure> {
    end(call, false)
}

/// `OM.LAST map`
pub(super) fn last(call: Call<'_>) -> Result<(), Failure> {
    end(call, true)
}

/// `OM.POP map [FIRST | LAST] [COUNT n]`
pub(super) fn pop(call: Call<'_>) -> Result<(), Failure> {
    let options = request::pop(&mut call.words(2))?;
    let (key, reply) = (call.write(), call.reply());
    let Some(map) = key.map()? else {
        match options.count {
            Some(_) => reply.array(0),
            None => reply.null(),
        }
        return Ok(());
    };
    match options.count {
        Some(_) => reply.begin_array(),
        None => reply.array(2), // the map has an entry
    }
    let mut removed = 0;
    // An error would end the list early. A removal from a tree of blocks has none.
    let _ = map.pop(options.last, options.count.unwrap_or(1), |(key, value)| {
        reply.entry(key, value, false);
        removed += 1;
    });
    if options.count.is_some() {
        reply.end_array(2 * removed);
    }
    call.removed(key, removed, c"om.pop");
    Ok(())
}

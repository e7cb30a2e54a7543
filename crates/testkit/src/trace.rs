//! Histories as files of one JSON object per line, which other checkers can read too.
//!
//! # Format
//! Each call is two lines, in the order of time: its invocation and its completion.
//! ```text
//! {"id":0,"process":1,"type":"invoke","f":"insert","key":5,"value":7,"time":120}
//! {"id":0,"process":1,"type":"ok","f":"insert","key":5,"value":null,"time":150}
//! ```
//! | field | contents |
//! |---|---|
//! | `id` | a number that joins the two lines of a call; no other call has it |
//! | `process` | the caller; it makes one call at a time on one key |
//! | `type` | `invoke`; then `ok`, `fail` (the call returned and changed nothing, because the state was another one) or `info` (it never returned: it may have taken effect or not) |
//! | `f` | a verb of the table below |
//! | `key` | a whole number below 2^64, or a string of lower-case hexadecimal digits, two per byte; one kind throughout. The verbs of ends and ranges have none |
//! | `value` | see below; null or left out if there is none, but never left out of `ok` and `fail` |
//! | `time` | a whole number below 2^64 - 1; lines of equal time are simultaneous |
//!
//! Other fields are ignored.
//!
//! | `f` | invoked with | `ok` | `fail` |
//! |---|---|---|---|
//! | `get` | – | the value, or null if absent | – |
//! | `try_insert` | the value | null | the value present |
//! | `insert` | the value | the value replaced, or null | – |
//! | `remove` | – | the value removed, or null | – |
//! | `put` | the value | null | – |
//! | `delete` | – | null | – |
//! | `compare_exchange` | `[expected, new]`, null for absent | null | the state found |
//! | `first`, `last`, `pop_first`, `pop_last` | – | `[key, value]`, or null if there is none | – |
//! | `collect_range` | `[first key, last key]` | the list of its entries `[key, value]` | – |
//! | `update_range` | `[first key, last key, mask]`: the call turned over these bits of each value | the list of its entries, with the values before | – |
//!
//! The index is empty at the start. A range that is not atomic appears as one `get` per key it
//! covers, all with its times; this is its guarantee. So a process may have several calls open at
//! once, but never two on one key. Checkers may separate a file by key first, as linearizability
//! allows. The lines of one key are then the events of Jepsen and Knossos (`:process :type :f
//! :value :time`), and the call and return events of Porcupine (`ClientId`, `Kind`, `Id`, `Value`).

use crate::history::{Event, Op};
use crate::linearizable::ordered::{self, OrderedEvent, OrderedOp};
use crate::linearizable::{PENDING, Verdict, judge};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::io::{self, Write};
use verb::Verb;

/// A key in a file. Numbers are ordered by value, byte strings lexicographically.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceKey {
    /// A number.
    Word(u64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl TraceKey {
    fn to_json(&self) -> Value {
        match self {
            Self::Word(word) => json!(word),
            Self::Bytes(_) => json!(self.to_string()),
        }
    }

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_u64().map(Self::Word),
            Value::String(digits) => {
                let digit = |byte: &u8| match byte {
                    b'0'..=b'9' => Some(byte - b'0'),
                    b'a'..=b'f' => Some(byte - b'a' + 10),
                    _ => None,
                };
                let pair = |pair: &[u8]| match pair {
                    [high, low] => Some(digit(high)? << 4 | digit(low)?),
                    _ => None,
                };
                digits.as_bytes().chunks(2).map(pair).collect::<Option<_>>().map(Self::Bytes)
            }
            _ => None,
        }
    }
}

impl fmt::Display for TraceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => word.fmt(f),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// Which of a call's two lines a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line<'a> {
    id: u64,
    process: usize,
    #[serde(rename = "type")]
    kind: Kind,
    f: std::borrow::Cow<'a, str>,
    #[serde(default)]
    key: Value,
    /// The value, or `None` if the field is left out; null is a value.
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    time: u64,
}

/// Distinguishes null from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Writes the calls of `threads` on keys, and those on ends and ranges. `key` names the keys.
pub fn write(
    threads: &[Vec<Event>],
    ends: &[OrderedEvent<u32>],
    key: impl Fn(u32) -> TraceKey,
    out: &mut impl Write,
) -> io::Result<()> {
    let of_key = |event: &Event| OrderedEvent {
        thread: event.thread,
        start: event.start,
        end: event.end,
        op: OrderedOp::Point { key: event.key, op: event.op },
    };
    let events = threads.iter().flatten().map(of_key).chain(ends.iter().cloned());
    let mut lines: Vec<(u64, bool, u64, OrderedEvent<u32>)> = Vec::new();
    // A thread's clock may stand still between two calls, which do not overlap for that reason.
    let mut last: HashMap<(usize, Option<u32>), u64> = HashMap::new();
    for (id, event) in (0..).zip(events) {
        let on = match event.op {
            OrderedOp::Point { key, .. } => Some(key),
            OrderedOp::End { .. } | OrderedOp::Range { .. } => None,
        };
        let earliest = last.get(&(event.thread, on)).map_or(0, |end| end + 1);
        lines.push((event.start.max(earliest), false, id, event.clone()));
        last.insert((event.thread, on), event.end.max(earliest));
        lines.push((event.end.max(earliest), true, id, event));
    }
    // Among simultaneous lines, invocations come first: the calls overlap.
    lines.sort_by_key(|&(time, completes, id, _)| (time, completes, id));
    let begun = lines.first().map_or(0, |line| line.0);
    for (time, completes, id, event) in lines {
        let (f, on, invoked, (kind, completed)) = match event.op {
            OrderedOp::Point { key: on, op } => {
                let (f, invoked, completion) = told(op);
                (f, key(on).to_json(), invoked, completion)
            }
            OrderedOp::End { verb, found } => {
                let found = found.map(|(on, value)| (key(on).to_json(), value));
                (verb.name(), Value::Null, Value::Null, (Kind::Ok, json!(found)))
            }
            OrderedOp::Range { low, high, mask, found } => {
                let found: Vec<_> =
                    found.iter().map(|(on, value)| (key(*on).to_json(), value)).collect();
                let (low, high) = (key(low).to_json(), key(high).to_json());
                let (f, invoked) = match mask {
                    0 => ("collect_range", json!([low, high])),
                    mask => ("update_range", json!([low, high, mask])),
                };
                (f, Value::Null, invoked, (Kind::Ok, json!(found)))
            }
        };
        let line = Line {
            id,
            process: event.thread,
            kind: if completes { kind } else { Kind::Invoke },
            f: f.into(),
            key: on,
            value: Some(if completes { completed } else { invoked }),
            time: time - begun,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The verb, the value with which it was invoked, and its completion.
fn told(op: Op) -> (&'static str, Value, (Kind, Value)) {
    let ok = |value: Option<u64>| (Kind::Ok, json!(value));
    match op {
        Op::Get { found } => ("get", Value::Null, ok(found)),
        Op::TryInsert { value, outcome } => {
            let completed = outcome.map_or_else(|found| (Kind::Fail, json!(found)), |()| ok(None));
            ("try_insert", json!(value), completed)
        }
        Op::Insert { value, old } => ("insert", json!(value), ok(old)),
        Op::Remove { old } => ("remove", Value::Null, ok(old)),
        Op::Put { value } => ("put", json!(value), ok(None)),
        Op::Delete => ("delete", Value::Null, ok(None)),
        Op::CompareExchange { expected, new, outcome } => {
            let completed = outcome.map_or_else(|found| (Kind::Fail, json!(found)), |()| ok(None));
            ("compare_exchange", json!([expected, new]), completed)
        }
    }
}

/// The reason why a file is no history. The message is a sentence that begins with the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// The fault of the line.
    pub problem: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for TraceError {}

/// A history read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The calls, in the order of their starts.
    pub events: Vec<OrderedEvent<TraceKey>>,
}

impl Trace {
    /// Judges whether some order explains all calls, beginning with an empty index.
    ///
    /// If the history has calls on ends or ranges and the search gives up, the calls on some key
    /// alone may still be wrong.
    pub fn judge(self) -> Verdict {
        let is_point = |event: &OrderedEvent<_>| matches!(event.op, OrderedOp::Point { .. });
        if self.events.iter().all(is_point) {
            return self.judge_keys();
        }
        match ordered::judge(&self.events) {
            Verdict::Undecided { what } => match self.judge_keys() {
                Verdict::Violation(violation) => Verdict::Violation(violation),
                _ => Verdict::Undecided { what },
            },
            verdict => verdict,
        }
    }

    /// Judges the calls on each key. A call on an end or a range counts as one on each key that it
    /// found.
    fn judge_keys(&self) -> Verdict {
        let points = self.events.iter().flat_map(|event| {
            let (thread, start, end) = (event.thread, event.start, event.end);
            let on_key = move |(key, op): (&TraceKey, Op)| Event {
                thread,
                key: key.clone(),
                start,
                end,
                op,
            };
            event.op.on_keys().into_iter().map(on_key)
        });
        judge(&points.collect::<Vec<_>>(), |_| None, TraceKey::to_string)
    }
}

/// A call that has not completed yet.
struct Invoked {
    line: usize,
    at: usize,
}

/// The state of reading a file.
#[derive(Default)]
struct Reader {
    events: Vec<OrderedEvent<TraceKey>>,
    calls: HashMap<u64, Option<Invoked>>,
    /// The id of the open call of each process and key.
    busy: HashMap<(usize, Option<TraceKey>), u64>,
    /// The time of the last line.
    last: u64,
    /// Whether keys are numbers, once a key was read.
    words: Option<bool>,
}

/// Reads a history from the content of a file.
pub fn read(text: &[u8]) -> Result<Trace, TraceError> {
    let mut reader = Reader::default();
    let mut number = 0;
    for raw in text.split_inclusive(|&byte| byte == b'\n') {
        number += 1;
        reader.line(raw, number).map_err(|problem| TraceError { line: number, problem })?;
    }
    let open = reader.calls.values().flatten().map(|invoked| invoked.line).min();
    match (open, number) {
        (Some(line), _) => Err(TraceError {
            line,
            problem: "the call has no completion: the file is cut short (a call that never \
                      returned completes with a line of type info)"
                .into(),
        }),
        (None, 0) => Err(TraceError { line: 1, problem: "the file is empty".into() }),
        (None, _) => Ok(Trace { events: reader.events }),
    }
}

impl Reader {
    /// Reads line `number`. The error is the problem with it.
    fn line(&mut self, raw: &[u8], number: usize) -> Result<(), String> {
        let raw = raw
            .strip_suffix(b"\n")
            .ok_or("is cut short: the file does not end with a whole line")?;
        let line: Line<'_> = serde_json::from_slice(raw).map_err(|error| no_line(&error))?;
        let (time, last) = (line.time, self.last);
        if time == PENDING {
            return Err(format!("time {PENDING} is out of range: times are below it"));
        }
        if time < last {
            return Err(format!("time {time} after {last}: lines go by time, sort them"));
        }
        self.last = time;
        let verb = Verb::of(&line.f).ok_or_else(|| {
            format!("unknown operation `{}`: known are {}", line.f, Verb::NAMES.join(", "))
        })?;
        let key = key_of(&line, verb, &mut self.words)?;
        match line.kind {
            Kind::Invoke => self.invoke(&line, verb, key, number),
            _ => self.complete(&line, verb, key),
        }
    }

    fn invoke(
        &mut self,
        line: &Line<'_>,
        verb: Verb,
        key: Option<TraceKey>,
        number: usize,
    ) -> Result<(), String> {
        let Entry::Vacant(call) = self.calls.entry(line.id) else {
            return Err(format!("id {} was invoked before: ids differ", line.id));
        };
        if let Some(other) = self.busy.insert((line.process, key.clone()), line.id) {
            return Err(format!(
                "process {} has not completed id {other} on this key: it makes one call at a \
                 time, use another process",
                line.process
            ));
        }
        let value = line.value.as_ref().unwrap_or(&Value::Null);
        let op = verb.op(key, value, &mut self.words)?;
        call.insert(Some(Invoked { line: number, at: self.events.len() }));
        let (thread, start) = (line.process, line.time);
        self.events.push(OrderedEvent { thread, start, end: PENDING, op });
        Ok(())
    }

    fn complete(
        &mut self,
        line: &Line<'_>,
        verb: Verb,
        key: Option<TraceKey>,
    ) -> Result<(), String> {
        let call = self.calls.get_mut(&line.id);
        let call = call.ok_or_else(|| format!("id {} completes but was not invoked", line.id))?;
        let invoked = call
            .take()
            .ok_or_else(|| format!("id {} has completed before: ids differ", line.id))?;
        let event = &mut self.events[invoked.at];
        if self.busy.remove(&(line.process, key)) != Some(line.id) || !verb.is_of(&event.op) {
            return Err(format!(
                "id {} completes with another process, key or operation than in line {}",
                line.id, invoked.line
            ));
        }
        if line.kind != Kind::Info {
            let missing = "the value is missing: write null where there is none";
            let value = line.value.as_ref().ok_or(missing)?;
            event.op = verb.completed(&event.op, (line.kind, value), &mut self.words)?;
            event.end = line.time;
        }
        Ok(())
    }
}

fn no_line(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "is cut short: the JSON object does not end".into();
    }
    // serde's message also names a place in the line; the line is named already.
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("is not an event: {text}")
}

/// The key of a line. All keys of a file must be of one kind.
fn key_of(
    line: &Line<'_>,
    verb: Verb,
    words: &mut Option<bool>,
) -> Result<Option<TraceKey>, String> {
    if verb.has_no_key() {
        let none = line.key.is_null();
        return if none { Ok(None) } else { Err(format!("`{}` takes no key", line.f)) };
    }
    let key = TraceKey::of(&line.key).ok_or_else(|| bad_key(&line.key))?;
    same_kind(&key, words)?;
    Ok(Some(key))
}

fn same_kind(key: &TraceKey, words: &mut Option<bool>) -> Result<(), String> {
    let word = matches!(key, TraceKey::Word(_));
    if *words.get_or_insert(word) == word {
        Ok(())
    } else {
        Err("keys are numbers or strings, the same throughout".into())
    }
}

fn bad_key(key: &Value) -> String {
    format!(
        "{key} is not a key: write a whole number below 2^64, or a string of lower-case hexadecimal \
         digits, two per byte"
    )
}

#[cfg(test)]
mod tests;
mod verb;

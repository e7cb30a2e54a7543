//! Traces of operations: the JSON lines that `silvics::Map::record` writes. `silvics::recording`
//! has the format.
//!
//! A trace becomes a key space of its distinct keys in ascending order, the positions that are
//! present at the start, and the operations in the order of their lines, whatever their threads. An
//! operation on an end is a lookup or a removal of the key that it found. Scans run upward from
//! their first key; one from the last entry downward runs upward from the first key.

use crate::{KEYS_MAX, Op};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The keys of a trace, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceKeys {
    /// Keys of up to 64 bits.
    U64(Vec<u64>),
    /// Keys of up to 128 bits.
    U128(Vec<u128>),
    /// Byte strings.
    Bytes(Vec<Vec<u8>>),
}

/// A trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The distinct keys.
    pub keys: TraceKeys,
    /// The positions of the keys that are present at the start.
    pub present: Vec<u32>,
    /// The operations, with the positions of their keys.
    pub steps: Vec<(Op, u32)>,
    /// The number of threads that made them.
    pub threads: usize,
    /// The mean number of keys of a batch if most lookups and upserts came in batches, else 1.
    pub batch: usize,
    /// The mean number of entries that a scan reads, at least 1.
    pub scan_length: usize,
    /// The number of keys by which the operations change the size, if they are made once.
    pub growth: i64,
    /// Whether it has operations on the first or the last entry.
    pub has_ends: bool,
}

/// A trace that changes the size of an index by less than this share of its keys keeps it.
const KEPT: f64 = 0.05;

/// The reason why a trace cannot be used. Each message continues a sentence that begins with the
/// file's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    Io(io::Error),
    /// The first line is not that of a trace.
    NoTrace,
    /// The trace has another version of the format.
    Version(u64),
    /// A line is not one of the format.
    Line {
        /// The number of the line, counted from 1.
        line: usize,
        /// The fault.
        problem: String,
    },
    /// There is no last line.
    CutShort {
        /// The number of operations that are there.
        operations: u64,
    },
    /// The last line has another number of operations than there are.
    Count {
        /// The number in the last line.
        said: u64,
        /// The number of operations that are there.
        found: u64,
    },
    /// The first line has another number of present keys than there are.
    Present {
        /// The number in the first line.
        said: u64,
        /// The number of distinct keys that are there.
        found: u64,
    },
    /// The trace has no operation on a key.
    Empty,
    /// The trace has more than [`KEYS_MAX`] keys.
    TooMany,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read ({error}): name a file that can"),
            Self::NoTrace => write!(
                f,
                "does not begin with the first line of a trace: name a file that `Map::record` wrote"
            ),
            Self::Version(version) => write!(
                f,
                "is a trace of version {version}, and this command reads version 1: take the \
                 command of the version that wrote it"
            ),
            Self::Line { line, problem } => {
                write!(f, "has a line {line} that no trace has ({problem}): record it again")
            }
            Self::CutShort { operations } => write!(
                f,
                "was cut short after {operations} operations: record it again, and call `finish` \
                 on its recorder"
            ),
            Self::Count { said, found } => write!(
                f,
                "has {found} operations, but its last line says {said}: lines are missing, so \
                 record it again"
            ),
            Self::Present { said, found } => write!(
                f,
                "has {found} keys that were present, but its first line says {said}: lines are \
                 missing or doubled, so record it again"
            ),
            Self::Empty => write!(f, "has no operation on a key: record it while the map is used"),
            Self::TooMany => write!(f, "has more than {KEYS_MAX} keys: record a shorter time"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A key in a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    U64(u64),
    U128(u128),
    Bytes(Vec<u8>),
}

/// The form of the keys of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyForm {
    U64,
    U128,
    Bytes,
}

impl KeyForm {
    fn key(self, value: &Value) -> Result<Key, String> {
        let key = match (self, value) {
            (Self::U64, value) => value.as_u64().map(Key::U64),
            (Self::U128, Value::String(digits)) => {
                let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
                is_number.then(|| digits.parse().ok()).flatten().map(Key::U128)
            }
            (Self::Bytes, Value::String(text)) => Some(Key::Bytes(text.clone().into_bytes())),
            (Self::Bytes, value) => {
                value.get("hex").and_then(Value::as_str).and_then(bytes).map(Key::Bytes)
            }
            (Self::U128, _) => None,
        };
        key.ok_or_else(|| format!("`{value}` is not a key of the type that the first line names"))
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let are_digits = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !are_digits || !hex.len().is_multiple_of(2) {
        return None;
    }
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// An operation before keys have positions: the number of a key, or the start of the key space.
#[derive(Clone, Copy)]
enum At {
    Key(u32),
    Start,
}

/// A trace while it is read.
struct Reader {
    form: KeyForm,
    /// The number of each key, in the order in which they appear.
    numbers: HashMap<Key, u32>,
    /// The number of present keys in the first line.
    said: u64,
    present: Vec<u32>,
    threads: HashSet<u64>,
    steps: Vec<(Op, At)>,
    operations: u64,
    batches: u64,
    /// The keys in batches.
    batched: u64,
    scans: u64,
    scanned: u64,
    has_ends: bool,
}

impl Trace {
    /// The number of distinct keys.
    pub fn len(&self) -> usize {
        match &self.keys {
            TraceKeys::U64(keys) => keys.len(),
            TraceKeys::U128(keys) => keys.len(),
            TraceKeys::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there are no keys. A trace that was read has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of operations of each kind, in the order of [`Op::ALL`].
    pub fn counts(&self) -> [u64; Op::ALL.len()] {
        Op::ALL.map(|op| self.steps.iter().filter(|(of, _)| *of == op).count() as u64)
    }

    /// Whether the operations change the size of an index by more than a little.
    pub fn grows(&self) -> bool {
        let present = self.present.len() as i64;
        let larger = present.max(present + self.growth);
        self.growth.unsigned_abs() as f64 > KEPT * larger as f64
    }

    /// Reads a trace.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        Self::of(BufReader::new(File::open(path)?))
    }

    fn of(from: impl BufRead) -> Result<Self, TraceError> {
        let mut lines = from.split(b'\n').enumerate();
        let first = lines.next().ok_or(TraceError::NoTrace)?.1?;
        let mut reader = Reader::begin(&first)?;
        while let Some((at, line)) = lines.next() {
            let line = line?;
            let wrong = |problem: String| TraceError::Line { line: at + 1, problem };
            let Ok(value) = serde_json::from_slice::<Value>(&line) else {
                // A line that is cut is the last one.
                if serde_json::from_slice::<Value>(&line).is_err_and(|error| error.is_eof()) {
                    return Err(TraceError::CutShort { operations: reader.operations });
                }
                return Err(wrong("it is not JSON".into()));
            };
            if let Some(said) = value.get("end").and_then(Value::as_u64) {
                let found = reader.operations;
                if said != found {
                    return Err(TraceError::Count { said, found });
                }
                return match lines.next() {
                    None => reader.finish(),
                    Some((at, _)) => Err(TraceError::Line {
                        line: at + 1,
                        problem: "it is behind the last line".into(),
                    }),
                };
            }
            reader.line(&value).map_err(wrong)?;
            if reader.numbers.len() > KEYS_MAX {
                return Err(TraceError::TooMany);
            }
        }
        Err(TraceError::CutShort { operations: reader.operations })
    }
}

impl Reader {
    fn begin(line: &[u8]) -> Result<Self, TraceError> {
        let first: Value = serde_json::from_slice(line).map_err(|_| TraceError::NoTrace)?;
        let version = first.get("silvics_trace").and_then(Value::as_u64);
        let form = match first.get("key_type").and_then(Value::as_str) {
            Some("u64") => KeyForm::U64,
            Some("u128") => KeyForm::U128,
            Some("bytes") => KeyForm::Bytes,
            _ => return Err(TraceError::NoTrace),
        };
        match version {
            Some(1) => Ok(Self {
                form,
                numbers: HashMap::new(),
                said: first.get("present").and_then(Value::as_u64).ok_or(TraceError::NoTrace)?,
                present: Vec::new(),
                threads: HashSet::new(),
                steps: Vec::new(),
                operations: 0,
                batches: 0,
                batched: 0,
                scans: 0,
                scanned: 0,
                has_ends: false,
            }),
            Some(version) => Err(TraceError::Version(version)),
            None => Err(TraceError::NoTrace),
        }
    }

    fn number(&mut self, key: &Value) -> Result<u32, String> {
        let key = self.form.key(key)?;
        let next = self.numbers.len() as u32;
        Ok(*self.numbers.entry(key).or_insert(next))
    }

    fn line(&mut self, line: &Value) -> Result<(), String> {
        if let Some(key) = line.get("present") {
            if self.operations > 0 {
                return Err("a key that was present comes before all operations".into());
            }
            let number = self.number(key)?;
            self.present.push(number);
            return Ok(());
        }
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let op = text("op").ok_or_else(|| "it has no `op`".to_owned())?.to_owned();
        let thread = match line.get("thread") {
            Some(Value::Null) => u64::MAX, // a thread without a number
            thread => thread
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("`{op}` has no number of its thread"))?,
        };
        self.steps_of(&op, line)?;
        self.operations += 1;
        self.threads.insert(thread);
        Ok(())
    }

    /// Adds the steps of an operation.
    fn steps_of(&mut self, op: &str, line: &Value) -> Result<(), String> {
        let field = |name: &str| line.get(name).ok_or_else(|| format!("`{op}` has no `{name}`"));
        match op {
            "get" | "insert" | "try_insert" | "remove" => {
                let at = At::Key(self.number(field("key")?)?);
                let of_key = match op {
                    "get" => Op::Lookup,
                    "insert" => Op::Upsert,
                    "try_insert" => Op::Insert,
                    _ => Op::Remove,
                };
                self.steps.push((of_key, at));
            }
            "get_many" | "insert_many" => {
                let keys = field("keys")?.as_array();
                let keys = keys.ok_or_else(|| format!("the `keys` of `{op}` are no list"))?;
                self.batches += u64::from(!keys.is_empty());
                self.batched += keys.len() as u64;
                let of_key = if op == "get_many" { Op::Lookup } else { Op::Upsert };
                for key in keys {
                    let at = At::Key(self.number(key)?);
                    self.steps.push((of_key, at));
                }
            }
            "scan" => {
                self.scans += 1;
                let entries = field("entries")?.as_u64();
                self.scanned += entries.ok_or_else(|| "its `entries` are no number".to_owned())?;
                let at = match field("from")? {
                    Value::Null => At::Start,
                    key => At::Key(self.number(key)?),
                };
                self.steps.push((Op::Scan, at));
            }
            "first" | "last" | "pop_first" | "pop_last" => {
                self.has_ends = true;
                let of_key = if op.starts_with("pop") { Op::Remove } else { Op::Lookup };
                if !field("key")?.is_null() {
                    let at = At::Key(self.number(field("key")?)?);
                    self.steps.push((of_key, at));
                }
            }
            _ => return Err(format!("`{op}` is not an operation")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Trace, TraceError> {
        let Self { form, numbers, said, present, threads, steps, .. } = self;
        let (batches, batched, has_ends) = (self.batches, self.batched, self.has_ends);
        let distinct: HashSet<u32> = present.iter().copied().collect();
        let found = distinct.len() as u64;
        if found != said || distinct.len() < present.len() {
            return Err(TraceError::Present { said, found });
        }
        let mut keys: Vec<(Key, u32)> = numbers.into_iter().collect();
        if keys.is_empty() || steps.is_empty() {
            return Err(TraceError::Empty);
        }
        keys.sort_unstable();
        let mut positions = vec![0; keys.len()];
        for (position, (_, number)) in keys.iter().enumerate() {
            positions[*number as usize] = position as u32;
        }
        let place = |at: At| match at {
            At::Key(number) => positions[number as usize],
            At::Start => 0,
        };
        let steps: Vec<(Op, u32)> = steps.into_iter().map(|(op, at)| (op, place(at))).collect();
        let present: Vec<u32> = present.into_iter().map(|n| positions[n as usize]).collect();
        let growth = growth(&present, &steps, keys.len());
        let in_batches = |op: &Op| matches!(op, Op::Lookup | Op::Upsert);
        let could = steps.iter().filter(|(op, _)| in_batches(op)).count() as u64;
        let mean = (batched as f64 / batches.max(1) as f64).round() as usize;
        let batch = if 2 * batched > could { mean.max(1) } else { 1 };
        let keys = match form {
            KeyForm::U64 => TraceKeys::U64(of_form(keys, |key| match key {
                Key::U64(key) => Some(key),
                _ => None,
            })),
            KeyForm::U128 => TraceKeys::U128(of_form(keys, |key| match key {
                Key::U128(key) => Some(key),
                _ => None,
            })),
            KeyForm::Bytes => TraceKeys::Bytes(of_form(keys, |key| match key {
                Key::Bytes(key) => Some(key),
                _ => None,
            })),
        };
        let mean = self.scanned as f64 / self.scans.max(1) as f64;
        let scan_length = mean.round().max(1.0) as usize;
        let threads = threads.len();
        Ok(Trace { keys, present, steps, threads, batch, scan_length, growth, has_ends })
    }
}

fn of_form<T>(keys: Vec<(Key, u32)>, of: impl Fn(Key) -> Option<T>) -> Vec<T> {
    keys.into_iter().filter_map(|(key, _)| of(key)).collect()
}

/// The change of the size, if the operations are made once.
fn growth(present: &[u32], steps: &[(Op, u32)], keys: usize) -> i64 {
    let mut is_present = vec![false; keys];
    for &at in present {
        is_present[at as usize] = true;
    }
    for &(op, at) in steps {
        match op {
            Op::Insert | Op::Upsert => is_present[at as usize] = true,
            Op::Remove => is_present[at as usize] = false,
            Op::Lookup | Op::Scan => {}
        }
    }
    is_present.iter().filter(|&&is| is).count() as i64 - present.len() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, TraceError> {
        Trace::of(text.as_bytes())
    }

    const WHOLE: &str = r#"{"silvics_trace": 1, "key_type": "u64", "present": 2}
{"present": 10}
{"present": 20}
{"op": "get", "thread": 0, "key": 20}
{"op": "insert", "thread": 1, "key": 15}
{"op": "try_insert", "thread": 0, "key": 30}
{"op": "remove", "thread": 0, "key": 10}
{"op": "scan", "thread": 1, "from": null, "entries": 2, "descending": false}
{"op": "scan", "thread": 1, "from": 15, "entries": 5, "descending": true}
{"op": "get_many", "thread": 1, "keys": [10, 20, 30]}
{"op": "get_many", "thread": 2, "keys": []}
{"op": "pop_last", "thread": 0, "key": 30}
{"op": "first", "thread": 0, "key": null}
{"end": 10}
"#;

    #[test]
    fn a_trace_becomes_positions() {
        let trace = read(WHOLE).unwrap();
        assert_eq!(trace.keys, TraceKeys::U64(vec![10, 15, 20, 30]));
        assert_eq!(trace.present, [0, 2]);
        let steps = [
            (Op::Lookup, 2),
            (Op::Upsert, 1),
            (Op::Insert, 3),
            (Op::Remove, 0),
            (Op::Scan, 0),
            (Op::Scan, 1),
            (Op::Lookup, 0),
            (Op::Lookup, 2),
            (Op::Lookup, 3),
            (Op::Remove, 3),
        ];
        assert_eq!((&trace.steps[..], trace.threads), (&steps[..], 3));
        // Three of five lookups and upserts came in a batch; 3.5 entries a scan are 4. 10 and 30
        // go, 15 comes.
        assert_eq!((trace.batch, trace.scan_length, trace.growth), (3, 4, 0));
        let single = WHOLE.replace("[10, 20, 30]", "[10, 20]");
        assert_eq!(read(&single).unwrap().batch, 1); // two of four are not most
    }

    #[test]
    fn a_trace_that_fills_a_map_grows() {
        let lines = |op: &str| -> String {
            let line = |key| format!("{{\"op\": \"{op}\", \"thread\": 0, \"key\": {key}}}\n");
            (0..50).map(line).collect()
        };
        let first = "{\"silvics_trace\": 1, \"key_type\": \"u64\", \"present\": 0}\n";
        let filled = format!("{first}{}", lines("insert"));
        let trace = read(&format!("{filled}{{\"end\": 50}}\n")).unwrap();
        assert_eq!((trace.present.len(), trace.growth, trace.grows()), (0, 50, true));
        let emptied = format!("{filled}{}{{\"end\": 100}}\n", lines("pop_first"));
        let trace = read(&emptied).unwrap();
        assert_eq!((trace.growth, trace.grows()), (0, false));
    }

    #[test]
    fn other_forms_of_keys() {
        let trace = read(
            "{\"silvics_trace\": 1, \"key_type\": \"bytes\", \"present\": 0}\n\
             {\"op\": \"get\", \"thread\": 0, \"key\": \"b\\\"\"}\n\
             {\"op\": \"get\", \"thread\": 0, \"key\": {\"hex\": \"00ff\"}}\n{\"end\": 2}\n",
        );
        let keys = TraceKeys::Bytes(vec![vec![0, 255], b"b\"".to_vec()]);
        assert_eq!(trace.unwrap().keys, keys);
        let trace = read(
            "{\"silvics_trace\": 1, \"key_type\": \"u128\", \"present\": 0}\n\
             {\"op\": \"get\", \"thread\": null, \"key\": \"340282366920938463463374607431768211455\"}\n\
             {\"end\": 1}",
        );
        assert_eq!(trace.unwrap().keys, TraceKeys::U128(vec![u128::MAX]));
    }

    #[test]
    fn faults_have_one_sentence() {
        let cut = |lines: usize| WHOLE.lines().take(lines).collect::<Vec<_>>().join("\n");
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("").contains("does not begin"), "{}", error(""));
        assert!(error("{}\n").contains("does not begin"));
        assert!(error(&WHOLE.replace("_trace\": 1", "_trace\": 2")).contains("version 2"));
        assert!(error(&cut(6)).contains("cut short after 3 operations"));
        assert!(error(&(cut(6) + "\n{\"op\": \"ge")).contains("cut short after 3 operations"));
        assert!(error(&WHOLE.replace("\"end\": 10", "\"end\": 9")).contains("has 10 operations"));
        assert!(
            error(&WHOLE.replace("\"get\",", "\"got\","))
                .contains("line 4 that no trace has (`got`")
        );
        assert!(error(&WHOLE.replace("\"key\": 15", "\"key\": \"x\"")).contains("line 5"));
        assert!(error(&WHOLE.replace("{\"present\": 20}", "present")).contains("line 3"));
        assert!(error(&WHOLE.replace("\"present\": 2", "\"present\": 3")).contains("says 3"));
        assert!(
            error(&WHOLE.replace("{\"present\": 20}", "{\"present\": 10}")).contains("doubled")
        );
        assert!(
            error(&(WHOLE.to_owned() + WHOLE)).contains("line 15 that no trace has (it is behind")
        );
        let late = WHOLE.replace("{\"end\": 10}", "{\"present\": 5}\n{\"end\": 10}");
        assert!(error(&late).contains("comes before all operations"));
        assert!(error(&WHOLE.replace(", \"present\": 2", "")).contains("does not begin"));
        assert!(error(&WHOLE.replace(" \"entries\": 5,", "")).contains("no `entries`"));
        assert!(
            error(&WHOLE.replace("\"thread\": 1, \"key\": 15", "\"key\": 15")).contains("thread")
        );
        let hex = |text: &str| {
            let first = "{\"silvics_trace\": 1, \"key_type\": \"bytes\", \"present\": 0}";
            let get =
                format!("{{\"op\": \"get\", \"thread\": 0, \"key\": {{\"hex\": \"{text}\"}}}}");
            error(&format!("{first}\n{get}\n{{\"end\": 1}}\n"))
        };
        assert!(["0ff", "+f", "0g"].into_iter().all(|text| hex(text).contains("line 2")));
        let wide = "{\"silvics_trace\": 1, \"key_type\": \"u128\", \"present\": 1}\n{\"present\": \"+5\"}\n";
        assert!(error(wide).contains("line 2"), "{}", error(wide));
        let empty = "{\"silvics_trace\": 1, \"key_type\": \"u64\", \"present\": 0}\n{\"end\": 0}\n";
        assert!(error(empty).contains("no operation"));
    }
}

//! Traces of the operations of a map.

use serde_json::Value;
use silvics::dynamic::{AnyMap, Structure};
use silvics::{Check, Map, Options};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Barrier, Mutex};

/// A writer whose bytes can be read while it is used.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).expect("a trace is text");
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// The lines between the first ones and the last one, without threads: `get 7`, `scan null 2`.
fn operations(lines: &[Value]) -> Vec<String> {
    let ops = lines.iter().filter(|line| line.get("op").is_some());
    ops.map(|line| {
        let op = line["op"].as_str().unwrap();
        match op {
            "scan" => format!("scan {} {} {}", line["from"], line["entries"], line["descending"]),
            _ if line.get("keys").is_some() => format!("{op} {}", line["keys"]),
            _ if line.get("key").is_some() => format!("{op} {}", line["key"]),
            _ => op.to_owned(),
        }
    })
    .collect()
}

#[test]
fn every_operation_has_a_line() {
    let out = Shared::default();
    let map: Map<u64, String> = (1..=6).map(|n| (n, n.to_string())).collect();
    let (mut map, recorder) = map.record(out.clone()).unwrap();
    {
        let view = map.pin();
        assert_eq!(view.get(2).as_deref().map(String::as_str), Some("2"));
        assert!(view.insert(7, "7".into()).is_none());
        assert!(view.remove(1).is_some());
        assert!(view.remove(1).is_none());
        assert!(view.remove_if(2, |value| value == "2").is_ok());
        assert!(view.update(3, |value| format!("{value}!")).is_some());
        assert_eq!(view.range(4..).count(), 4);
        assert_eq!(view.range_rev(..5).next().map(|(key, _)| key), Some(4));
        assert_eq!(view.first().map(|(key, _)| key), Some(3));
        assert_eq!(view.last().map(|(key, _)| key), Some(7));
        let mut found = [None, None];
        view.get_many(&[4, 9], &mut found);
        assert!(found[0].is_some() && found[1].is_none());
    }
    assert_eq!(map.pop_last().map(|(key, _)| key), Some(7));
    assert_eq!(map.pop_first().map(|(key, _)| key), Some(3));
    let recorded = recorder.finish().unwrap();
    map.insert(8, "eight".into()); // after the end
    let lines = out.lines();
    assert_eq!(lines[0]["silvics_trace"], 1);
    let first = (lines[0]["key_type"].as_str(), lines[0]["present"].as_u64());
    assert_eq!(first, (Some("u64"), Some(6)));
    let present = lines.iter().skip(1).map_while(|line| line["present"].as_u64());
    assert!(present.eq(1..=6));
    let expected = [
        "get 2",
        "insert 7",
        "remove 1",
        "remove 1",
        "get 2",
        "remove 2",
        "get 3",
        "insert 3",
        "scan 4 4 false",
        "scan 5 1 true",
        "first 3",
        "last 7",
        "get_many [4,9]",
        "pop_last 7",
        "pop_first 3",
    ];
    assert_eq!(operations(&lines), expected);
    assert_eq!(lines.last().unwrap()["end"].as_u64(), Some(recorded));
    assert_eq!((recorded, lines.len()), (15, 1 + 6 + 15 + 1));
    assert_eq!(map.check().unwrap(), 4);
}

/// An exchange reads the state first, and ends there if it is another one.
#[test]
fn steps_are_recorded_by_what_they_did() {
    let out = Shared::default();
    let (map, recorder) = Map::<u64, u64>::new().record(out.clone()).unwrap();
    let view = map.pin();
    assert!(view.compare_exchange(1, None, Some(5)).is_ok());
    assert!(view.compare_exchange(1, Some(&4), Some(6)).is_err());
    assert!(view.compare_exchange(1, Some(&5), Some(6)).is_ok());
    assert!(view.compare_exchange(1, Some(&6), None).is_ok());
    assert!(view.insert_many([(1, 1), (2, 2)]).iter().all(Option::is_none));
    assert!(view.pop_first().is_some() && view.pop_first().is_some());
    assert!(view.pop_first().is_none());
    recorder.finish().unwrap();
    let expected = [
        "get 1",
        "try_insert 1",
        "get 1",
        "get 1",
        "insert 1",
        "get 1",
        "remove 1",
        "insert_many [1,2]",
        "pop_first 1",
        "pop_first 2",
        "pop_first null",
    ];
    assert_eq!(operations(&out.lines()), expected);
}

#[test]
fn keys_of_each_form_can_be_read_again() {
    let out = Shared::default();
    let (map, recorder) = Map::<Vec<u8>, u64>::new().record(out.clone()).unwrap();
    let odd: [&[u8]; 5] = [
        b"",
        b"a\"b\\c\n\x00\x7f",
        "schl\u{fc}ssel \u{1f600}".as_bytes(),
        &[0xff, 0x00, 0x80],
        b"plain",
    ];
    for key in odd {
        map.insert(key, 1);
    }
    recorder.finish().unwrap();
    let read: Vec<Vec<u8>> = out
        .lines()
        .iter()
        .filter(|line| line["op"] == "insert")
        .map(|line| match &line["key"] {
            Value::String(text) => text.clone().into_bytes(),
            hex => {
                let hex = hex["hex"].as_str().unwrap();
                let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                (0..hex.len()).step_by(2).map(digits).collect()
            }
        })
        .collect();
    assert_eq!(read, odd);

    let out = Shared::default();
    let (map, recorder) = Map::<u128, u64>::new().record(out.clone()).unwrap();
    map.insert(u128::MAX, 1);
    recorder.finish().unwrap();
    assert_eq!(operations(&out.lines()), [format!("insert \"{}\"", u128::MAX)]);

    let out = Shared::default();
    let (map, recorder) = Map::<i64, u64>::new().record(out.clone()).unwrap();
    map.insert(-1, 1);
    map.insert(i64::MAX, 1);
    recorder.finish().unwrap();
    assert_eq!(
        operations(&out.lines()),
        [format!("insert {}", (1_u64 << 63) - 1), format!("insert {}", u64::MAX)]
    );
}

#[test]
fn any_map_can_be_recorded() {
    let out = Shared::default();
    let map: AnyMap<u64, String> =
        Structure::named("skiplist").unwrap().map(&Options::default()).unwrap();
    map.insert(5, "five".into());
    let (map, recorder) = map.record(out.clone()).unwrap();
    let cursor_map = Arc::new(map);
    let mut cursor = cursor_map.cursor_range((Bound::Included(5), Bound::Unbounded));
    assert!(cursor.seek_to_first() && !cursor.next());
    assert!(recorder.finish().unwrap() >= 2);
}

#[test]
fn threads_have_numbers() {
    let out = Shared::default();
    let (map, recorder) = Map::<u64, u64>::new().record(out.clone()).unwrap();
    let (started, mut all) = (Barrier::new(3), BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (map, started) = (&map, &started);
            scope.spawn(move || {
                map.insert(thread, 0);
                started.wait(); // none ends before all have begun
                (1..200).for_each(|n| drop(map.insert(n * 3 + thread, n)));
            });
        }
    });
    assert_eq!(recorder.finish().unwrap(), 600);
    let lines = out.lines();
    for thread in 0..3 {
        // All lines of a thread have one number, and threads that run at once have others.
        let of =
            lines.iter().filter(|line| line["key"].as_u64().is_some_and(|key| key % 3 == thread));
        let numbers: BTreeSet<u64> = of.map(|line| line["thread"].as_u64().unwrap()).collect();
        assert_eq!(numbers.len(), 1, "{numbers:?}");
        all.extend(numbers);
    }
    assert_eq!(all.len(), 3, "{all:?}");
}

/// A writer that fails after some bytes, by an error or by a panic.
struct Failing {
    left: usize,
    panics: bool,
}

/// A writer all of whose code panics: its calls, with a payload that does when it is dropped, and
/// its own drop.
struct Vicious;

struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("a payload is dropped");
    }
}

impl Write for Vicious {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        std::panic::panic_any(Payload);
    }
    fn flush(&mut self) -> io::Result<()> {
        panic!("the writer is flushed");
    }
}

impl Drop for Vicious {
    fn drop(&mut self) {
        panic!("the writer is dropped");
    }
}

/// A value that is dropped while the index has its word would be found by its count.
#[test]
fn no_code_of_a_writer_unwinds_through_an_operation() {
    let value = Arc::new(7);
    let (mut map, recorder) = Map::<u64, Arc<u64>>::new().record(Vicious).unwrap();
    for n in 0..2000 {
        assert!(map.insert(n % 500, Arc::clone(&value)).is_none_or(|old| **old == 7));
    }
    assert_eq!(map.check().unwrap(), 500);
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| recorder.finish()));
    assert!(ended.is_err(), "the writer's drop is the caller's to catch");
    map.flush();
    assert!(map.pin().iter().all(|(_, found)| **found == 7));
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left < bytes.len() {
            assert!(!self.panics, "the writer has had enough");
            return Err(io::Error::other("the disk is full"));
        }
        self.left -= bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The operations take effect, and the error comes from `finish`.
#[test]
fn a_writer_that_fails_ends_the_recording_alone() {
    for panics in [false, true] {
        let map: Map<u64, Arc<u64>> = Map::new();
        let value = Arc::new(7);
        let (mut map, recorder) = map.record(Failing { left: 20_000, panics }).unwrap();
        for n in 0..2000 {
            assert!(map.insert(n, Arc::clone(&value)).is_none());
            assert_eq!(map.get(n).as_deref().map(|found| **found), Some(7));
        }
        let error = recorder.finish().unwrap_err().to_string();
        assert!(error.contains(if panics { "panicked" } else { "full" }), "{error}");
        assert_eq!(map.check().unwrap(), 2000);
        assert_eq!(Arc::strong_count(&value), 2001);
        drop(map);
        assert_eq!(Arc::strong_count(&value), 1);
    }
    // A writer that cannot even take the keys that are present: the map comes back.
    let value = Arc::new(7);
    let map: Map<u64, Arc<u64>> = (0..100_000).map(|n| (n, Arc::clone(&value))).collect();
    let error = map.record(Failing { left: 9000, panics: false }).unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert_eq!(error.map.len(), 100_000);
    drop(error);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_dropped_recorder_ends_the_recording() {
    let out = Shared::default();
    let (map, recorder) = Map::<u64, u64>::new().record(out.clone()).unwrap();
    map.insert(1, 1);
    drop(recorder);
    map.insert(2, 2);
    let lines = out.lines();
    assert_eq!(lines.last().unwrap()["end"], 1);
    assert_eq!(operations(&lines), ["insert 1"]);
}

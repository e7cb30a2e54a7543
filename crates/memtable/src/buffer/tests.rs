//! Groups of writers in one process, small enough for Miri.

use super::*;
use crate::index::SkipIndex;
use std::sync::Barrier;

/// Threads write at once, again and again. Under Miri, a follower that used the frame of a leader
/// which has returned would be found.
fn writers_form_groups(mode: WriteMode) {
    let (threads, rounds) = (3, if cfg!(miri) { 4 } else { 200u8 });
    let options = BufferOptions { mode, ..BufferOptions::default() };
    let buffer: WriteBuffer<SkipIndex> = WriteBuffer::new(options).unwrap();
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads as u8 {
            let (buffer, start) = (&buffer, &start);
            scope.spawn(move || {
                for round in 0..rounds {
                    start.wait();
                    let seqno = buffer.put(&[thread, round], &[round]).unwrap();
                    assert!(buffer.snapshot() >= seqno);
                    assert_eq!(buffer.get(&[thread, round]), Some(vec![round]));
                }
            });
        }
    });
    assert_eq!(buffer.snapshot(), threads as u64 * u64::from(rounds));
    let stats = buffer.stats();
    assert_eq!((stats.writes, stats.mutexes), (threads as u64 * u64::from(rounds), 0));
}

#[test]
fn writers_form_groups_in_all_modes() {
    writers_form_groups(WriteMode::Parallel);
    writers_form_groups(WriteMode::Pipelined);
    writers_form_groups(WriteMode::Serial);
    writers_form_groups(WriteMode::UnorderedUnrepeatableReads);
}

#[test]
fn options_out_of_range_are_refused() {
    let defaults = BufferOptions::default;
    let mut large_filter = defaults();
    large_filter.table.bloom = Some(crate::table::BloomOptions { bits: 1 << 30, probes: 6 });
    let mut low_limit = defaults();
    low_limit.table.limit = Some(1 << 20);
    for (options, wanted) in [
        (BufferOptions { table_bytes: 0, ..defaults() }, "`table_bytes` is 0"),
        (BufferOptions { max_frozen: 0, ..defaults() }, "`max_frozen` is 0"),
        (large_filter, "`table.bloom` is a filter of 134217728 bytes"),
        (low_limit, "`table.limit` is 1048576"),
    ] {
        let error = WriteBuffer::<SkipIndex>::new(options).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
}

/// Story: a table that was full although it was empty was frozen by each write.
#[test]
fn a_small_table_is_full_only_with_an_entry() {
    let options = BufferOptions { table_bytes: 1, max_frozen: 3, ..BufferOptions::default() };
    let buffer: WriteBuffer<SkipIndex> = WriteBuffer::new(options).unwrap();
    for key in 0..4u8 {
        buffer.put(&[key], b"").unwrap();
        assert_eq!(buffer.frozen(), usize::from(key));
    }
    assert!(matches!(buffer.put(b"5", b""), Err(WriteError::Stalled { frozen: 3 })));
}

/// A cursor that seeks a prefix stays at its keys, in both directions, and leaves tables out by
/// their filter.
#[test]
fn a_prefix_is_scanned_alone() {
    let mut options = BufferOptions::default();
    options.table.bloom = Some(crate::table::BloomOptions { bits: 1 << 12, probes: 6 });
    // No filter has the prefix of keys with an `x`, so a table with them is left out.
    options.table.prefix_of = Some(|key| key.get(..2).filter(|prefix| prefix[0] != b'x'));
    let buffer: WriteBuffer<SkipIndex> = WriteBuffer::new(options).unwrap();
    for (key, value) in [("aa1", "x"), ("ab1", "1"), ("ab2", "2"), ("b", "y")] {
        buffer.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    buffer.switch().unwrap();
    for (key, value) in [("aa2", "z"), ("ab1", "3"), ("ac", "x")] {
        buffer.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    buffer.delete(b"ab2").unwrap();
    buffer.put(b"ab3", b"4").unwrap();
    let mut cursor = buffer.cursor();
    let keys = |cursor: &mut Cursor<SkipIndex>, step: fn(&mut Cursor<SkipIndex>)| {
        let mut keys = Vec::new();
        while let Some((key, value)) = cursor.entry() {
            keys.push((key.to_vec(), value.to_vec()));
            step(cursor);
        }
        keys
    };
    let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    cursor.seek_prefix(b"ab");
    assert_eq!(keys(&mut cursor, Cursor::next), [pair(b"ab1", b"3"), pair(b"ab3", b"4")]);
    cursor.seek_prefix(b"ab");
    cursor.next();
    assert_eq!(keys(&mut cursor, Cursor::prev), [pair(b"ab3", b"4"), pair(b"ab1", b"3")]);
    buffer.put(b"xy1", b"5").unwrap();
    let mut cursor = buffer.cursor();
    cursor.seek_prefix(b"xy");
    assert!(cursor.entry().is_none(), "the filter is not asked");
    cursor.seek_prefix(b"zz");
    assert!(cursor.entry().is_none());
    assert!(!buffer.active().may_have_prefix(b"zz"), "the filter excludes it");
    cursor.seek(b"ab1");
    assert_eq!(keys(&mut cursor, Cursor::next).len(), 5, "a seek ends the bound");
}

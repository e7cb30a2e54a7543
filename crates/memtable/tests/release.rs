//! Tables are freed when nothing keeps them. The comparator of a buffer counts its tables: each has
//! a handle of it.

use silvics_memtable::{
    BufferOptions, ByteIndex, Bytewise, Comparator, Index, OrdIndex, SkipIndex, WriteBuffer,
};
use std::sync::Arc;

fn options(comparator: &Arc<dyn Comparator>) -> BufferOptions {
    BufferOptions { max_frozen: 100, ..BufferOptions::ordered_by(Arc::clone(comparator)) }
}

/// Story: a deferred call owned the replaced tables, and these own the domain that owned the call.
/// So a buffer that was dropped leaked every table that it had frozen.
fn a_dropped_buffer_keeps_no_table<I: Index>() {
    let comparator: Arc<dyn Comparator> = Arc::new(Bytewise);
    let buffer: WriteBuffer<I> = WriteBuffer::new(options(&comparator)).unwrap();
    for round in 0..5u8 {
        buffer.put(&[round], b"value").unwrap();
        assert!(buffer.switch().unwrap());
    }
    let mut cursor = buffer.cursor();
    buffer.flush(|_| Ok::<_, ()>(())).unwrap();
    drop(buffer);
    assert!(Arc::strong_count(&comparator) > 1, "the cursor keeps its tables");
    cursor.last();
    assert_eq!(cursor.entry(), Some((&[4][..], &b"value"[..])));
    drop(cursor);
    assert_eq!(Arc::strong_count(&comparator), 1);
}

/// Story: a deferred call stayed with the thread that had made it, until that thread made 63
/// others. So tables that one thread froze and another one flushed were kept.
fn a_flushed_table_is_freed<I: Index>() {
    let comparator: Arc<dyn Comparator> = Arc::new(Bytewise);
    let buffer: WriteBuffer<I> = WriteBuffer::new(options(&comparator)).unwrap();
    let empty = Arc::strong_count(&comparator);
    std::thread::scope(|scope| {
        let (ask, asked) = std::sync::mpsc::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let buffer = &buffer;
        scope.spawn(move || {
            for round in asked {
                buffer.put(&[round], b"value").unwrap();
                assert!(buffer.switch().unwrap());
                tell.send(()).unwrap();
            }
        });
        for round in 0..20u8 {
            ask.send(round).unwrap();
            told.recv().unwrap();
            buffer.flush(|_| Ok::<_, ()>(())).unwrap();
            let kept = Arc::strong_count(&comparator) - empty;
            assert!(kept <= 4, "{kept} handles of flushed tables after {round} rounds");
        }
        drop(ask);
    });
}

#[test]
fn dropped_buffers_keep_no_table() {
    a_dropped_buffer_keeps_no_table::<ByteIndex>();
    a_dropped_buffer_keeps_no_table::<SkipIndex>();
    a_dropped_buffer_keeps_no_table::<OrdIndex>();
}

#[test]
fn flushed_tables_are_freed() {
    a_flushed_table_is_freed::<ByteIndex>();
    a_flushed_table_is_freed::<SkipIndex>();
    a_flushed_table_is_freed::<OrdIndex>();
}

use super::*;
use proptest::prelude::*;
use std::io;

fn read(text: &str) -> Trace {
    Trace::read(text.as_bytes()).unwrap()
}

/// The line at which reading a trace fails, and its fault.
fn fault(text: impl AsRef<[u8]>) -> (u64, LineFault) {
    match Trace::read(text.as_ref()).unwrap_err() {
        TraceError::Line { line, fault } => (line, fault),
        other => panic!("{other}"),
    }
}

fn places(trace: &Trace) -> Vec<(&str, usize, usize)> {
    let object = |o: &TraceObject| (trace.kinds[o.kind].name.as_str(), o.address, o.size);
    trace.objects.iter().map(object).collect()
}

#[test]
fn a_census_is_a_trace() {
    let trace = read("# two kinds\n\nleaf 0x40 32\r\n  node\t0x80   48 \nleaf 0xC0 16");
    assert_eq!(places(&trace), [("leaf", 0x40, 32), ("node", 0x80, 48), ("leaf", 0xC0, 16)]);
    assert_eq!((trace.events, trace.peak_event, trace.peak_bytes), (3, 3, 96));
    let allocations: Vec<u64> = trace.kinds.iter().map(|kind| kind.allocations).collect();
    assert_eq!(allocations, [2, 1]);
}

#[test]
fn the_first_of_equal_peaks_counts() {
    let trace = read("a 0x10 8\na 0x20 8\n- 0x10\nb 0x30 8\n- 0x20\n- 0x30\n");
    assert_eq!(places(&trace), [("a", 0x10, 8), ("a", 0x20, 8)]);
    assert_eq!((trace.events, trace.peak_event, trace.peak_bytes), (6, 2, 16));
    assert_eq!((trace.kinds[0].frees, trace.kinds[1].frees), (2, 1));
}

#[test]
fn an_address_may_be_used_again_after_the_peak() {
    let trace = read("a 0x10 8\na 0x20 8\n- 0x10\nb 0x10 4\n- 0x10\nc 0x14 1\n");
    assert_eq!(places(&trace), [("a", 0x10, 8), ("a", 0x20, 8)]);
    let later = read("a 0x10 8\n- 0x10\nb 0x10 4\nb 0x20 40\n");
    assert_eq!(places(&later), [("b", 0x10, 4), ("b", 0x20, 40)]);
    assert_eq!(later.peak_event, 4);
}

#[test]
fn a_realloc_is_a_free_and_an_allocation() {
    let trace = read("a 0x10 8\n- 0x10\na 0x10 100\n");
    assert_eq!((places(&trace), trace.overlaps), (vec![("a", 0x10, 100)], 0));
    assert_eq!((trace.kinds[0].allocations, trace.kinds[0].frees), (2, 1));
}

#[test]
fn unknown_frees_are_counted_and_ignored() {
    let trace = read("- 0x10\na 0x10 8\n- 0x14\n- 0x10\n- 0x10\n");
    assert_eq!((trace.events, trace.unknown_frees, trace.kinds[0].frees), (5, 3, 1));
    assert_eq!(places(&trace), [("a", 0x10, 8)]);
}

#[test]
fn an_allocation_ends_the_objects_under_it() {
    let trace = read("a 0x10 16\na 0x20 16\na 0x30 16\nb 0x18 16\n");
    // The peak comes before the overlap, so its objects are kept.
    assert_eq!((trace.peak_event, trace.overlaps, trace.kinds[0].frees), (3, 2, 0));
    let over = read("a 0x10 16\na 0x20 16\na 0x30 16\nb 0x18 100\n");
    assert_eq!((places(&over), over.overlaps), (vec![("b", 0x18, 100)], 3));
    let inside = read("a 0x10 100\nb 0x20 8\nb 0x28 200\n");
    assert_eq!((places(&inside), inside.overlaps), (vec![("b", 0x20, 8), ("b", 0x28, 200)], 1));
}

#[test]
fn objects_of_no_bytes_occupy_their_address_only() {
    let trace = read("a 0x10 0\nb 0x11 8\n- 0x10\na 0x20 0\nb 0x20 1\n");
    assert_eq!(places(&trace), [("b", 0x11, 8), ("b", 0x20, 1)]);
    assert_eq!((trace.overlaps, trace.kinds[0].allocations, trace.kinds[0].frees), (1, 2, 1));
}

#[test]
fn short_words_stand_for_kinds() {
    let trace = read("kind lib.so!new+0x1f short k1\nk1 0x10 8\nlib.so!new+0x1f 0x20 8\nk2 0x30 8");
    let names: Vec<&str> = trace.kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["lib.so!new+0x1f", "k2"]);
    assert_eq!(trace.kinds[0].allocations, 2);
    assert_eq!(read("kind a short b\nkind a short b\nkind b short c\nc 0x1 1").kinds.len(), 1);
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one part of an object is one range")]
fn hot_bytes_may_be_declared_last_and_add_up() {
    let text = "a 0x10 64\nb 0x100 8\nc 0x200 8\nkind a hot 16 8\nkind a hot 0 8\nkind a hot 4 12\n\
                kind a hot 40 100\nkind c hot 0 0\nkind d hot 0 8\n";
    let trace = read(text);
    assert_eq!(trace.kinds[0].hot, Some(vec![0..24, 40..140]));
    assert_eq!(trace.kinds[0].hot_of(64), [0..24, 40..64]);
    assert_eq!(trace.kinds[0].hot_of(20), [0..20]);
    assert_eq!(trace.kinds[1].hot_of(8), [0..8]);
    assert_eq!(trace.kinds[2].hot_of(8), []);
    assert_eq!((trace.kinds[3].name.as_str(), trace.kinds[3].allocations), ("d", 0));
}

#[test]
fn every_fault_is_named_with_its_line() {
    let good = "# begin\na 0x10 8\n";
    let at_3 = |line: &str| {
        let (number, fault) = fault(format!("{good}{line}\nb 0x40 8\n"));
        assert_eq!(number, 3, "{line}");
        fault
    };
    for form in ["a", "a 0x10", "a 0x10 8 8", "-", "- 0x10 8", "- 0x10 8 8", "a 0x20 8 1 1 1 1"] {
        assert_eq!(at_3(form), LineFault::Form, "{form}");
    }
    for declaration in [
        "kind",
        "kind a",
        "kind a hot",
        "kind a hot 1",
        "kind a hot 1 2 3",
        "kind a cold 1 2",
        "kind a short",
        "kind a short b c",
        "kind 0x10 8",
    ] {
        assert_eq!(at_3(declaration), LineFault::Declaration, "{declaration}");
    }
    for word in ["10", "0x", "0xg", "0x+1", "0X10", "-0x10", "0x10000000000000000", "8"] {
        assert_eq!(at_3(&format!("a {word} 8")), LineFault::address(word.as_bytes()));
        assert_eq!(at_3(&format!("- {word}")), LineFault::address(word.as_bytes()));
    }
    for word in ["0x8", "-1", "+1", "8k", "1.5", "18446744073709551616"] {
        assert_eq!(at_3(&format!("a 0x20 {word}")), LineFault::number(word.as_bytes()));
        assert_eq!(at_3(&format!("kind a hot {word} 8")), LineFault::number(word.as_bytes()));
        assert_eq!(at_3(&format!("kind a hot 0 {word}")), LineFault::number(word.as_bytes()));
    }
    let last = format!("a {:#x} 8", usize::MAX - 7);
    assert_eq!(at_3(&last), LineFault::Beyond { start: usize::MAX - 7, bytes: 8 });
    let hot = format!("kind a hot 1 {}", usize::MAX);
    assert_eq!(at_3(&hot), LineFault::Beyond { start: 1, bytes: usize::MAX });
    for word in ["-", "kind", "#x"] {
        let reserved = LineFault::reserved(word.as_bytes());
        assert_eq!(at_3(&format!("kind {word} hot 0 8")), reserved);
        assert_eq!(at_3(&format!("kind a short {word}")), reserved);
    }
    let taken = LineFault::Taken { word: "a".into(), kind: "a".into() };
    assert_eq!(at_3("kind other short a"), taken);
}

#[test]
fn names_are_text_and_comments_need_not_be() {
    let (line, not_text) = fault(b"# \xff\n\xffa 0x10 8\n");
    assert_eq!((line, not_text), (2, LineFault::NotText { word: "\u{fffd}a".into() }));
    assert_eq!(fault(b"kind \xff short b\n").1, LineFault::not_text(b"\xff"));
    assert_eq!(fault(b"a 0x10 \xff\n").1, LineFault::number(b"\xff"));
    // A file that was not written to its end is full of zero bytes.
    assert_eq!(fault(b"a 0x10 8\n\0\0\0").0, 2);
}

#[test]
fn lines_have_a_limit() {
    let longest = format!("{} 0x10 8", "k".repeat(LINE_MAX - 7));
    assert_eq!(read(&longest).kinds[0].name.len(), LINE_MAX - 7);
    assert_eq!(read(&format!("{longest}\nb 0x20 8\n")).kinds.len(), 2);
    let long = format!("a 0x10 8\nk{longest}\n");
    assert_eq!(fault(long), (2, LineFault::TooLong { limit: LINE_MAX }));
    let endless = io::BufReader::new(io::repeat(b'a'));
    assert!(matches!(Trace::read(endless), Err(TraceError::Line { line: 1, .. })));
}

#[test]
fn traces_without_objects_are_refused() {
    for text in ["", "# nothing\n", "- 0x10\n", "a 0x10 0\n", "kind a hot 0 8\n"] {
        assert!(matches!(Trace::read(text.as_bytes()), Err(TraceError::Empty)), "{text}");
    }
}

#[test]
fn a_reader_that_fails_is_reported_with_the_line() {
    struct Fails;
    impl io::Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let reader = io::BufReader::new(b"a 0x10 8\na 0x20".chain(Fails));
    let error = Trace::read(reader).unwrap_err();
    assert_eq!(error.to_string(), "cannot be read beyond line 1 (gone): copy it anew");
    let error = Trace::read(io::BufReader::new(Fails)).unwrap_err();
    assert_eq!(error.to_string(), "cannot be read (gone): name a file that can");
}

#[test]
fn messages_are_short_whatever_the_line() {
    let word = "\u{1b}[31mx".repeat(1000);
    for line in [format!("a {word} 8"), format!("kind {word} short kind"), format!("a 0x1 {word}")]
    {
        let message = Trace::read(line.as_bytes()).unwrap_err().to_string();
        assert!(message.len() < 200 && !message.contains(char::is_control), "{message}");
    }
    let message = Trace::read(&b"node 100 8"[..]).unwrap_err().to_string();
    let expected = "line 1 has `100` where an address belongs: write it in hex with 0x, of at most \
                    64 bits";
    assert_eq!(message, expected);
}

/// The expected result of the pass, computed from the live objects after each event.
fn by_the_book(events: &[(bool, usize, usize)]) -> (Vec<(usize, usize)>, usize, u64, u64, u64) {
    let mut live: Vec<(usize, usize)> = Vec::new();
    let (mut best, mut peak_bytes, mut peak_event) = (Vec::new(), 0, 0);
    let (mut unknown, mut overlaps) = (0, 0);
    for (event, &(free, at, size)) in events.iter().enumerate() {
        let before = live.len();
        if free {
            live.retain(|&(start, _)| start != at);
            unknown += u64::from(live.len() == before);
        } else {
            live.retain(|&(start, bytes)| start + bytes.max(1) <= at || at + size.max(1) <= start);
            overlaps += (before - live.len()) as u64;
            live.push((at, size));
        }
        let bytes = live.iter().map(|(_, size)| size).sum();
        if bytes > peak_bytes {
            (best, peak_bytes, peak_event) = (live.clone(), bytes, event as u64 + 1);
        }
    }
    best.retain(|&(_, size)| size > 0);
    best.sort_unstable();
    (best, peak_bytes, peak_event, unknown, overlaps)
}

proptest! {
    #[test]
    fn one_pass_finds_what_keeping_everything_finds(
        events in prop::collection::vec((prop::bool::ANY, 0_usize..64, 0_usize..12), 1..200),
    ) {
        let line = |&(free, at, size): &(bool, usize, usize)| {
            if free { format!("- {at:#x}\n") } else { format!("k{} {at:#x} {size}\n", size % 3) }
        };
        let text: String = events.iter().map(line).collect();
        let (objects, peak_bytes, peak_event, unknown, overlaps) = by_the_book(&events);
        match Trace::read(text.as_bytes()) {
            Err(error) => {
                prop_assert!(matches!(error, TraceError::Empty), "{}", error);
                prop_assert!(objects.is_empty());
            }
            Ok(trace) => {
                let found: Vec<_> = trace.objects.iter().map(|o| (o.address, o.size)).collect();
                prop_assert_eq!(found, objects);
                prop_assert_eq!((trace.peak_bytes, trace.peak_event), (peak_bytes, peak_event));
                prop_assert_eq!((trace.unknown_frees, trace.overlaps), (unknown, overlaps));
                prop_assert_eq!(trace.events, events.len() as u64);
                for object in &trace.objects {
                    let expected = format!("k{}", object.size % 3);
                    prop_assert_eq!(&trace.kinds[object.kind].name, &expected);
                }
            }
        }
    }

    #[test]
    fn no_file_panics(bytes: Vec<u8>, words in prop::collection::vec("[-#akind0x1 \n]{0,20}", 0..20)) {
        let _ = Trace::read(&bytes[..]);
        let _ = Trace::read(words.concat().as_bytes());
    }
}

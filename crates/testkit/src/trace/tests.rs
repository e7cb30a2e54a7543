//! Histories written and read back, and the faults of files.

use super::*;
use crate::linearizable::ordered::EndVerb;

fn text(events: &[Vec<Event>]) -> String {
    text_with(events, &[])
}

fn text_with(events: &[Vec<Event>], ends: &[OrderedEvent<u32>]) -> String {
    let mut out = Vec::new();
    write(events, ends, |key| TraceKey::Word(u64::from(key)), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn event(thread: usize, start: u64, end: u64, op: Op) -> Event {
    Event { thread, key: 7, start, end, op }
}

fn history() -> Vec<Vec<Event>> {
    let exchange = |expected, new, outcome| Op::CompareExchange { expected, new, outcome };
    vec![
        vec![
            event(0, 10, 20, Op::Insert { value: 1, old: None }),
            event(0, 30, 40, exchange(Some(1), Some(2), Ok(()))),
            event(0, 50, 60, exchange(None, Some(3), Err(Some(2)))),
            event(0, 70, 80, Op::TryInsert { value: u64::MAX, outcome: Err(2) }),
        ],
        vec![
            event(1, 35, 45, Op::Get { found: Some(2) }),
            event(1, 85, 95, Op::Remove { old: Some(2) }),
        ],
    ]
}

#[test]
fn what_is_written_is_read_back() {
    let trace = read(text(&history()).as_bytes()).unwrap();
    let mut wanted = history().concat();
    wanted.sort_by_key(|event| event.start);
    assert_eq!(trace.events.len(), wanted.len());
    for (read, event) in trace.events.iter().zip(&wanted) {
        let key = TraceKey::Word(7);
        assert_eq!(read.op, OrderedOp::Point { key, op: event.op });
        assert_eq!((read.thread, read.start + 10), (event.thread, event.start));
        assert_eq!(read.end + 10, event.end);
    }
    assert_eq!(trace.judge(), Verdict::Linearizable);
}

#[test]
fn ends_are_written_and_read_back() {
    let end = |thread, start, end, verb, found| OrderedEvent {
        thread,
        start,
        end,
        op: OrderedOp::End { verb, found },
    };
    let ends = [
        end(0, 5, 9, EndVerb::Last, None),
        end(1, 46, 58, EndVerb::First, Some((7, 2))),
        end(1, 84, 90, EndVerb::PopFirst, Some((7, 2))),
        end(1, 90, 99, EndVerb::PopLast, None), // the clock stood still
    ];
    let mut threads = history();
    threads[1].pop();
    let trace = read(text_with(&threads, &ends).as_bytes()).unwrap();
    assert_eq!(trace.events.len(), threads.concat().len() + ends.len());
    let read: Vec<_> =
        trace.events.iter().filter(|event| matches!(event.op, OrderedOp::End { .. })).collect();
    for (read, event) in read.iter().zip(&ends) {
        let OrderedOp::End { verb, found } = event.op else { unreachable!() };
        let found = found.map(|(key, value)| (TraceKey::Word(u64::from(key)), value));
        assert_eq!(read.op, OrderedOp::End { verb, found });
        assert_eq!((read.thread, read.end + 5), (event.thread, event.end));
    }
    assert_eq!((read.len(), read[3].start + 5), (4, 91));
    assert_eq!(trace.judge(), Verdict::Linearizable);
}

#[test]
fn a_wrong_history_is_judged_wrong() {
    let mut wrong = history();
    wrong[1][0].op = Op::Get { found: Some(9) };
    let verdict = read(text(&wrong).as_bytes()).unwrap().judge();
    assert!(matches!(verdict, Verdict::Violation(_)), "{verdict:?}");
}

#[test]
fn a_call_that_never_returned_may_have_taken_effect_or_not() {
    let seen = |value: &str| {
        let lines = [
            r#"{"id":0,"process":0,"type":"invoke","f":"insert","key":"00ff","value":7,"time":0}"#,
            r#"{"id":0,"process":0,"type":"info","f":"insert","key":"00ff","time":1}"#,
            r#"{"id":1,"process":1,"type":"invoke","f":"get","key":"00ff","time":2}"#,
            &format!(
                r#"{{"id":1,"process":1,"type":"ok","f":"get","key":"00ff","value":{value},"time":3}}"#
            ),
        ];
        read((lines.join("\n") + "\n").as_bytes()).unwrap().judge()
    };
    assert_eq!(seen("7"), Verdict::Linearizable);
    assert_eq!(seen("null"), Verdict::Linearizable);
    assert!(matches!(seen("8"), Verdict::Violation(_)));
}

#[test]
fn calls_on_the_ends_are_judged_with_the_others() {
    let pop = |key: u64| {
        format!(
            "{}\n{}\n{}\n{}\n",
            r#"{"id":0,"process":0,"type":"invoke","f":"try_insert","key":4,"value":40,"time":0}"#,
            r#"{"id":0,"process":0,"type":"ok","f":"try_insert","key":4,"value":null,"time":1}"#,
            r#"{"id":1,"process":1,"type":"invoke","f":"pop_first","time":2}"#,
            format_args!(
                r#"{{"id":1,"process":1,"type":"ok","f":"pop_first","value":[{key},40],"time":3}}"#
            ),
        )
    };
    assert_eq!(read(pop(4).as_bytes()).unwrap().judge(), Verdict::Linearizable);
    assert!(matches!(read(pop(5).as_bytes()).unwrap().judge(), Verdict::Violation(_)));
}

#[test]
fn ranges_are_written_and_read_back() {
    let op = |mask, found: &[(u32, u64)]| OrderedOp::Range {
        low: 3,
        high: 9,
        mask,
        found: found.to_vec(),
    };
    let range = |thread, start, end, op| OrderedEvent { thread, start, end, op };
    let insert = Op::Insert { value: 5, old: None };
    let threads = vec![vec![event(0, 10, 11, insert)]];
    let trace = |last: u64| {
        let ranges = [
            range(0, 12, 13, op(0, &[(7, 5)])),
            range(1, 20, 30, op(64, &[(7, 5)])),
            range(0, 40, 50, op(0, &[(7, last)])),
        ];
        read(text_with(&threads, &ranges).as_bytes()).unwrap()
    };
    let read_back: Vec<_> = trace(69).events.into_iter().map(|event| event.op).collect();
    let wanted = [op(0, &[(7, 5)]), op(64, &[(7, 5)]), op(0, &[(7, 69)])];
    let wanted = wanted.map(|op| op.renamed(|key| TraceKey::Word(u64::from(*key))));
    assert_eq!(read_back[1..], wanted);
    assert_eq!(trace(69).judge(), Verdict::Linearizable);
    assert!(matches!(trace(5).judge(), Verdict::Violation(_)));
}

#[test]
fn each_thing_wrong_with_a_range_is_told() {
    let file = |f: &str, value: &str, answer: &str| {
        let line = |kind: &str, value: &str, time: u64| {
            format!(
                r#"{{"id":1,"process":1,"type":"{kind}","f":"{f}","value":{value},"time":{time}}}"#
            )
        };
        format!("{}\n{}\n", line("invoke", value, 1), line("ok", answer, 2))
    };
    for (f, value, answer, problem) in [
        ("collect_range", "[1]", "[]", "is not [first, last]"),
        ("update_range", "[1,2]", "[]", "is not [first, last, mask]"),
        ("update_range", "[1,2,0]", "[]", "the mask is 0"),
        ("collect_range", "[1,\"07\"]", "[]", "the same throughout"),
        ("collect_range", "[1,2]", "null", "no list of [key, value]"),
        ("collect_range", "[1,2]", "[[1]]", "is not [key, value]"),
        ("collect_range", "[1,2]", "[null]", "null is not [key, value]"),
    ] {
        let error = read(file(f, value, answer).as_bytes()).unwrap_err();
        assert!(error.problem.contains(problem), "{f} {value} {answer}: {error}");
    }
}

#[test]
fn each_thing_wrong_with_a_file_is_told_by_its_line() {
    let good = text(&history());
    let lines: Vec<&str> = good.lines().collect();
    let with = |at: usize, new: &str| {
        let mut lines = lines.clone();
        lines[at] = new;
        lines.join("\n") + "\n"
    };
    let time_back = lines[5].replace("\"time\":", "\"time\":1,\"was\":");
    let other_process = lines[1].replace("\"process\":0", "\"process\":5");
    let failed_get = lines.iter().position(|l| l.contains("get") && l.contains("\"ok\"")).unwrap();
    let cases: Vec<(String, usize, &str)> = vec![
        (String::new(), 1, "empty"),
        (good[..good.len() - 1].into(), 12, "cut short"),
        (good[..good.len() - 9].into(), 12, "cut short"),
        (lines[..11].join("\n") + "\n", 11, "no completion"),
        (with(3, "{\"id\":1"), 4, "cut short"),
        (with(3, "[]"), 4, "not an event"),
        (with(0, &lines[0].replace("insert", "upsert")), 1, "unknown operation `upsert`"),
        (with(0, &lines[0].replace("invoke", "call")), 1, "unknown variant `call`"),
        (with(0, &lines[0].replace(":7,", ":-7,")), 1, "-7 is not a key"),
        (with(0, &lines[0].replace(":7,", ":\"0G\",")), 1, "is not a key"),
        (with(2, &lines[2].replace(":7,", ":\"07\",")), 3, "the same throughout"),
        (with(0, &lines[0].replace("\"value\":1", "\"value\":1.5")), 1, "1.5 is not a value"),
        (with(1, lines[0]), 2, "was invoked before"),
        (with(5, &time_back), 6, "lines go by time"),
        (with(1, &other_process), 2, "another process"),
        (with(1, &lines[1].replace("insert", "remove")), 2, "operation than in line 1"),
        (with(0, lines[1]), 1, "was not invoked"),
        (with(3, &lines[3].replace("\"process\":1", "\"process\":0")), 4, "one call at a time"),
        (
            with(failed_get, &lines[failed_get].replace("\"ok\"", "\"fail\"")),
            failed_get + 1,
            "no type fail",
        ),
    ];
    for (text, line, problem) in cases {
        let error = read(text.as_bytes()).expect_err(problem);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(problem), "{error}, wanted {problem}");
    }
}

/// Beyond the limits of the search for ends, the calls on each key are still judged.
#[test]
fn a_wrong_key_is_found_where_the_ends_are_undecided() {
    let event = |thread: usize, (start, end), op| OrderedEvent { thread, start, end, op };
    let point = |key: u64, op| OrderedOp::Point { key: TraceKey::Word(key), op };
    let insert = Op::Insert { value: 1, old: None };
    let mut events: Vec<_> =
        (0..18).map(|key| event(0, (2 * key, 2 * key + 1), point(key, insert))).collect();
    // Any set of the removals may come before the lookup of the first entry.
    let remove = |key: u64| point(key, Op::Remove { old: Some(1) });
    events.extend((0..18).map(|key| event(key as usize, (100, 200), remove(key))));
    let first = OrderedOp::End { verb: EndVerb::First, found: None };
    events.push(event(18, (110, 120), first));
    // Beside another call on all keys, the search does not go key by key.
    let found = Some((TraceKey::Word(17), 1));
    events.push(event(20, (105, 150), OrderedOp::End { verb: EndVerb::First, found }));
    events.push(event(19, (300, 310), point(7, Op::Get { found: Some(5) })));
    let verdict = Trace { events }.judge();
    assert!(matches!(verdict, Verdict::Violation(violation) if violation.on.contains('7')));
}

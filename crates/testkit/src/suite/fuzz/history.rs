//! Reads history files from any bytes, and compares the checker with trying every order of few
//! calls.

use crate::history::{Event, Op};
use crate::linearizable::{
    BUDGET, Call, Refusal, Register, Verdict, is_unexplained, judge, judge_key, lanes,
};
use crate::trace::{self, TraceKey};

/// The most calls of a decoded history: few enough to try all orders one by one.
const CALLS: usize = 6;

/// Reads `data` as a history file, and decodes a history from it.
///
/// # Panics
/// Panics if the reader panics, if a history is not read back as it was written, or if its verdict
/// is wrong.
pub fn run(data: &[u8]) {
    match trace::read(data) {
        // The time to judge calls on the ends grows with the number of calls at once.
        Ok(file) if file.events.len() <= 16 => drop(file.judge()),
        Ok(_) => {}
        Err(error) => assert!(error.line >= 1 && !error.problem.is_empty()),
    }
    let events = decode(data);
    if events.is_empty() {
        return;
    }
    let verdict = judge(&events, |_| None, u32::to_string);
    let wanted = explained(&events, &mut vec![false; events.len()], None);
    let found = matches!(verdict, Verdict::Linearizable);
    assert_eq!(found, wanted, "{events:#?}\n{verdict:?}");
    if let Verdict::Violation(violation) = &verdict {
        assert!((1..=events.len()).contains(&violation.calls.len()), "{violation}");
    }
    reported(&events);

    let mut text = Vec::new();
    let key = |key: u32| TraceKey::Bytes(key.to_be_bytes().into());
    trace::write(&by_thread(&events), &[], key, &mut text).expect("memory can be written");
    let file = trace::read(&text).unwrap_or_else(|error| {
        panic!("{error}\n{}", String::from_utf8_lossy(&text));
    });
    assert_eq!(file.events.len(), events.len());
    assert_eq!(matches!(file.judge(), Verdict::Linearizable), wanted);
}

/// Checks that no order explains the calls of a report either.
fn reported(events: &[Event]) {
    let call = |event: &Event| Call {
        thread: event.thread,
        start: event.start,
        end: event.end,
        op: event.op,
    };
    let all = lanes(events.iter().map(call).collect());
    let all: Vec<&[Call<Op>]> = all.iter().map(Vec::as_slice).collect();
    if let Err(Refusal::Unexplained(bad)) = judge_key(&all, None) {
        let mut budget = BUDGET;
        let shown = lanes(bad.calls.clone());
        assert!(
            is_unexplained::<Register>(&shown, &bad.states, &mut budget),
            "{events:#?}\n{bad:#?}"
        );
    }
}

/// Decodes calls of up to three threads on one key, four bytes each.
fn decode(data: &[u8]) -> Vec<Event> {
    let mut clocks = [0_u64; 3];
    let mut events = Vec::new();
    for bytes in data.chunks_exact(4).take(CALLS) {
        let thread = usize::from(bytes[0] % 3);
        let start = clocks[thread] + u64::from(bytes[0] / 3 % 8);
        let end = start + 1 + u64::from(bytes[3] % 16);
        clocks[thread] = end + 1;
        let state = |bits: u8| Some(u64::from(bits % 4)).filter(|&value| value > 0);
        let (value, a, b) = (u64::from(bytes[1] >> 6), state(bytes[2]), state(bytes[2] >> 2));
        let outcome = |failed: Option<u64>| if bytes[2] >> 7 == 0 { Ok(()) } else { Err(failed) };
        let op = match bytes[1] % 5 {
            0 => Op::Get { found: a },
            1 => Op::TryInsert { value, outcome: a.map_or(Ok(()), Err) },
            2 => Op::Insert { value, old: a },
            3 => Op::Remove { old: a },
            _ => {
                Op::CompareExchange { expected: a, new: b, outcome: outcome(state(bytes[2] >> 4)) }
            }
        };
        events.push(Event { thread, key: 0, start, end, op });
    }
    events
}

fn by_thread(events: &[Event]) -> Vec<Vec<Event>> {
    let of = |thread| events.iter().filter(|event| event.thread == thread).cloned().collect();
    (0..3).map(of).collect()
}

/// Whether some order of the calls that are not `done` explains them from `state` on. It tries
/// every order.
fn explained(events: &[Event], done: &mut Vec<bool>, state: Option<u64>) -> bool {
    if done.iter().all(|&done| done) {
        return true;
    }
    for at in 0..events.len() {
        let first = |other: usize| done[other] || events[other].end >= events[at].start;
        if done[at] || !(0..events.len()).all(first) {
            continue;
        }
        if let Some(after) = events[at].op.apply(state) {
            done[at] = true;
            let explained = explained(events, done, after);
            done[at] = false;
            if explained {
                return true;
            }
        }
    }
    false
}

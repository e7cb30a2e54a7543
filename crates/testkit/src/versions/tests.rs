//! Histories by hand: right ones pass, and each wrong one fails for its reason.

use super::*;

/// A history with these calls, each with its thread, its start and its end.
fn history(drawn: bool, calls: &[(usize, u64, u64, Call)]) -> History {
    let event = |(thread, start, end, call): &(usize, u64, u64, Call)| Event {
        thread: *thread,
        start: *start,
        end: *end,
        call: call.clone(),
    };
    History { threads: 3, drawn, events: calls.iter().map(event).collect(), ..History::default() }
}

fn drawn(calls: &[(usize, u64, u64, Call)]) -> History {
    history(true, calls)
}

fn given(calls: &[(usize, u64, u64, Call)]) -> History {
    history(false, calls)
}

/// Checks that a history passes.
fn right(history: &History) {
    assert_eq!(judge(history).map_err(|wrong| wrong.to_string()), Ok(Judged::default()));
}

/// Checks that a history fails for this reason, and that the report has this number of calls.
fn wrong(history: &History, reason: &str, calls: usize) {
    let text = judge(history).expect_err(reason).to_string();
    assert!(text.contains(reason), "not {reason}: {text}");
    assert_eq!(text.lines().filter(|line| line.contains("thread ")).count(), calls, "{text}");
}

fn single(key: u32, value: Option<u64>, expected: Expected) -> Write {
    Write { key, value, expected }
}

fn put(key: u32, value: u64, number: u64) -> Call {
    let write = single(key, Some(value), Expected::Any);
    Call::Write { given: None, write, answer: Answer::Done(number) }
}

fn put_if(key: u32, latest: Option<u64>, value: u64, answer: Answer) -> Call {
    let write = single(key, Some(value), Expected::Latest(latest));
    Call::Write { given: None, write, answer }
}

fn delete(key: u32, answer: Answer) -> Call {
    Call::Write { given: None, write: single(key, None, Expected::Any), answer }
}

fn commit(puts: &[(u32, u64)], number: u64) -> Call {
    let writes = puts.iter().map(|&(key, value)| single(key, Some(value), Expected::Any));
    Call::Commit { writes: writes.collect(), answer: Answer::Done(number) }
}

fn put_at(key: u32, number: u64, value: u64, answer: Answer) -> Call {
    let write = single(key, Some(value), Expected::Any);
    Call::Write { given: Some(number), write, answer }
}

fn latest(key: u32, found: Found) -> Call {
    Call::Latest { key, found }
}

fn snapshot(number: u64) -> Call {
    Call::Snapshot { asked: None, answer: Ok(number) }
}

fn read(at: u64, key: u32, found: Found) -> Call {
    Call::Read { at, through: true, key, found: Ok(found) }
}

fn range(at: u64, keys: (u32, u32), found: &[(u32, u64)]) -> Call {
    Call::Range { at, through: true, keys, found: Ok(found.to_vec()) }
}

fn versions(key: u32, found: &[(u64, Option<u64>)]) -> Call {
    Call::History { key, found: found.to_vec() }
}

fn prune(number: u64) -> Call {
    Call::Prune { number, answer: Ok(()) }
}

fn publish(number: u64) -> Call {
    Call::Publish { number, answer: Ok(()) }
}

#[test]
fn right_histories_pass() {
    right(&drawn(&[
        (0, 0, 1, put(1, 10, 1)),
        (0, 2, 3, commit(&[(1, 11), (2, 20)], 2)),
        (1, 2, 4, snapshot(1)),
        (1, 5, 6, read(1, 1, Some((1, 10)))),
        (1, 7, 8, range(1, (0, 3), &[(1, 10)])),
        (0, 5, 6, delete(1, Answer::Done(3))),
        (0, 7, 8, delete(1, Answer::Nothing)),
        (2, 9, 10, snapshot(3)),
        (2, 11, 12, range(3, (0, 3), &[(2, 20)])),
        (1, 11, 12, read(1, 1, Some((1, 10)))),
        (0, 13, 14, latest(1, None)),
        (0, 15, 16, put_if(2, Some(1), 21, Answer::Conflict(Some(2)))),
        (0, 17, 18, put_if(2, Some(2), 21, Answer::Done(5))), // 4 was drawn in vain
    ]));
    right(&given(&[
        (0, 0, 1, put_at(1, 5, 50, Answer::Done(5))),
        (0, 2, 3, put_at(1, 3, 30, Answer::Done(3))),
        (1, 4, 5, latest(1, Some((5, 50)))),
        (0, 4, 5, publish(3)),
        (1, 6, 7, snapshot(3)),
        (1, 8, 9, read(3, 1, Some((3, 30)))),
        (0, 8, 9, put_at(1, 2, 20, Answer::TooLate(3))),
        (0, 10, 11, versions(1, &[(5, Some(50)), (3, Some(30))])),
    ]));
}

#[test]
fn overlapping_calls_may_take_effect_in_either_order() {
    for (number, found) in [(1, Some((1, 10))), (2, Some((2, 11)))] {
        right(&drawn(&[
            (0, 0, 1, put(1, 10, 1)),
            (0, 2, 9, put(1, 11, 2)),
            (1, 3, 4, snapshot(number)),
            (1, 5, 6, read(number, 1, found)),
            (2, 3, 8, latest(1, found)),
        ]));
    }
}

#[test]
fn a_version_that_is_visible_before_its_value() {
    let calls = |found| {
        drawn(&[
            (0, 0, 9, put(1, 10, 1)),
            (1, 1, 2, snapshot(1)),
            (1, 3, 4, read(1, 1, found)),
            (1, 10, 11, read(1, 1, Some((1, 10)))),
        ])
    };
    right(&calls(Some((1, 10))));
    wrong(&calls(None), "a reader at 1 misses version 1: at version 1, key 1 is version 1 = 10", 3);
}

#[test]
fn a_batch_that_is_visible_in_part() {
    let calls = |found: &[(u32, u64)]| {
        drawn(&[
            (0, 0, 9, commit(&[(1, 10), (2, 20)], 1)),
            (1, 1, 2, snapshot(1)),
            (1, 3, 4, range(1, (0, 3), found)),
        ])
    };
    right(&calls(&[(1, 10), (2, 20)]));
    wrong(&calls(&[(1, 10)]), "a reader at 1 sees a part of batch 1", 3);
    wrong(&calls(&[(2, 20)]), "a reader at 1 sees a part of batch 1", 3);
    wrong(&calls(&[(2, 20), (1, 10)]), "a reader at 1", 3);
}

#[test]
fn a_version_that_is_gone() {
    let calls = |found| {
        drawn(&[
            (0, 0, 1, put(1, 10, 1)),
            (1, 2, 3, snapshot(1)),
            (1, 4, 5, read(1, 1, Some((1, 10)))),
            (0, 6, 7, put(1, 11, 2)),
            (0, 8, 9, prune(2)),
            (1, 10, 11, read(1, 1, found)),
        ])
    };
    right(&calls(Some((1, 10))));
    wrong(&calls(None), "version 1, which a reader has seen, is gone", 4);
}

#[test]
fn a_snapshot_that_sees_a_later_write() {
    let calls = |found| {
        drawn(&[(1, 0, 1, snapshot(0)), (0, 2, 3, put(1, 10, 1)), (1, 4, 5, read(0, 1, found))])
    };
    right(&calls(None));
    wrong(&calls(Some((1, 10))), "a reader at 0 sees the later version 1", 3);
    wrong(&calls(Some((1, 11))), "a reader sees what no call has written", 2);
}

#[test]
fn two_winners_of_one_race() {
    let calls = |second, answer| {
        drawn(&[
            (0, 0, 1, put(1, 10, 1)),
            (0, 2, 5, put_if(1, Some(1), 11, Answer::Done(2))),
            (1, 3, 6, put_if(1, Some(second), 12, answer)),
        ])
    };
    right(&calls(2, Answer::Done(3)));
    right(&calls(1, Answer::Conflict(Some(2))));
    wrong(&calls(1, Answer::Done(3)), "a conditional write is lost", 2);
    wrong(&calls(2, Answer::Conflict(Some(2))), "refused for a version that it may replace", 2);
    wrong(&calls(1, Answer::Conflict(Some(3))), "no moment has this newest version", 2);
    wrong(&calls(1, Answer::Done(2)), "two writes have drawn the number 2", 2);
    let deleted = |latest| {
        drawn(&[
            (0, 0, 1, put(1, 10, 1)),
            (0, 2, 3, delete(1, Answer::Done(2))),
            (0, 4, 5, put_if(1, Some(1), 11, Answer::Conflict(latest))),
        ])
    };
    right(&deleted(None));
    wrong(&deleted(Some(2)), "a write is refused for a version", 2);
    let absent = drawn(&[(0, 0, 1, delete(1, Answer::Done(1)))]);
    wrong(&absent, "a conditional write is lost", 1);
}

#[test]
fn a_snapshot_sees_what_was_committed_before_it_and_nothing_later() {
    let after = |number| drawn(&[(0, 0, 1, put(1, 10, 1)), (1, 2, 3, snapshot(number))]);
    right(&after(1));
    wrong(&after(0), "the map goes back from 1 to 0", 2);
    let before = |number| drawn(&[(1, 0, 1, snapshot(0)), (0, 2, 3, put(1, 10, number))]);
    right(&before(1));
    let too_far = drawn(&[(1, 0, 1, snapshot(1)), (0, 2, 3, put(1, 10, 1))]);
    wrong(&too_far, "version 1 is written after a call has found the map at 1 already", 2);
    let both = |second| {
        drawn(&[(0, 0, 9, put(1, 10, 1)), (1, 1, 2, snapshot(1)), (2, 3, 4, snapshot(second))])
    };
    right(&both(1));
    wrong(&both(0), "the map goes back from 1 to 0", 2);
}

#[test]
fn a_write_that_returned_has_a_smaller_number_than_a_later_one() {
    let calls = |first, second| drawn(&[(0, 0, 1, put(1, 1, first)), (1, 2, 3, put(2, 2, second))]);
    right(&calls(1, 2));
    wrong(&calls(2, 1), "version 1 is written after a call has found the map at 2 already", 2);
}

#[test]
fn an_answer_that_is_too_old() {
    let calls = |found| {
        drawn(&[(0, 0, 1, put(1, 10, 1)), (0, 2, 3, put(1, 11, 2)), (1, 4, 5, latest(1, found))])
    };
    right(&calls(Some((2, 11))));
    wrong(&calls(Some((1, 10))), "no moment has this newest version of key 1", 3);
    wrong(&calls(None), "no moment has this newest version of key 1", 2);
    wrong(&calls(Some((2, 12))), "a reader sees what no call has written", 1);
    // A key cannot be old after another call has found the map further.
    let across = drawn(&[
        (0, 0, 9, commit(&[(1, 10), (2, 20)], 1)),
        (1, 1, 2, latest(1, Some((1, 10)))),
        (1, 3, 4, latest(2, None)),
    ]);
    wrong(&across, "no moment has this newest version of key 2", 3);
}

#[test]
fn readers_without_a_snapshot() {
    let at = |at, found| Call::Read { at, through: false, key: 1, found };
    let calls =
        |call| drawn(&[(0, 0, 1, put(1, 10, 1)), (0, 2, 3, put(1, 11, 2)), (1, 4, 5, call)]);
    right(&calls(at(2, Ok(Some((2, 11))))));
    right(&calls(at(1, Err(Unreadable::Pruned(2)))));
    right(&calls(at(3, Err(Unreadable::Future(2)))));
    wrong(&calls(at(3, Err(Unreadable::Future(1)))), "the map goes back from 2 to 1", 2);
    wrong(&calls(at(2, Err(Unreadable::Future(2)))), "refused at a number that it can read", 1);
    wrong(&calls(at(1, Ok(Some((1, 10))))), "the map goes back from 2 to 1", 2);
    let retained = |call| History { retains_all: true, ..calls(call) };
    right(&retained(at(1, Ok(Some((1, 10))))));
    wrong(&retained(at(1, Err(Unreadable::Pruned(2)))), "no call has pruned up to 2", 1);
    // An old number needs a snapshot that keeps it.
    let range = Call::Range { at: 1, through: false, keys: (1, 1), found: Ok(vec![(1, 10)]) };
    let asked = Call::Snapshot { asked: Some(1), answer: Ok(1) };
    for call in [range, asked] {
        right(&retained(call.clone()));
        wrong(&calls(call.clone()), "the map goes back from 2 to 1", 2);
        let life = Life { number: 1, begun: (1, 2), ended: (9, 9) };
        let mut kept = calls(call);
        kept.events.push(Event { thread: 2, start: 1, end: 2, call: snapshot(1) });
        right(&History { lives: vec![life], ..kept });
    }
    let twice = |horizon| {
        let mut calls = retained(at(1, Err(Unreadable::Pruned(horizon))));
        let prune = |at, number| Event { thread: 2, start: at, end: at, call: prune(number) };
        calls.events.extend([prune(3, 2), prune(3, 1)]);
        calls
    };
    right(&twice(2));
    let mut stale = twice(2);
    stale.events.insert(2, Event { thread: 0, start: 3, end: 3, call: put(1, 12, 3) });
    stale.events.push(Event { thread: 0, start: 3, end: 3, call: prune(3) });
    wrong(&stale, "a reader finds the horizon at 2, which is past", 2);
    let mut pruned = retained(at(1, Ok(Some((1, 10)))));
    let prune = Event { thread: 2, start: 3, end: 3, call: prune(2) };
    pruned.events.push(prune);
    wrong(&pruned, "a reader at 1 is accepted, which was pruned", 2);
}

#[test]
fn lists_of_versions() {
    let life = Life { number: 1, begun: (2, 3), ended: (20, 21) };
    let calls = |lives: &[Life], found: &[(u64, Option<u64>)]| {
        let calls = [
            (0, 0, 1, put(1, 10, 1)),
            (1, 2, 3, snapshot(1)),
            (0, 4, 5, put(1, 11, 2)),
            (0, 6, 7, prune(2)),
            (1, 8, 9, versions(1, found)),
        ];
        History { lives: lives.to_vec(), ..drawn(&calls) }
    };
    let (both, newest) = ([(2, Some(11)), (1, Some(10))], [(2, Some(11))]);
    right(&calls(&[life], &both));
    right(&calls(&[], &newest));
    wrong(&calls(&[life], &newest), "version 1, which a snapshot needs, is gone", 3);
    wrong(&calls(&[], &both), "version 1 of key 1 is left, which was pruned", 3);
    wrong(&calls(&[life], &[(1, Some(10)), (2, Some(11))]), "no moment has", 3);
    wrong(&calls(&[life], &[(2, Some(12)), (1, Some(10))]), "which no call has written", 1);
    wrong(&calls(&[life], &[]), "no moment has", 2);
    // `range_at` holds a snapshot while it runs.
    let mut ranged = calls(&[], &both);
    let call = Call::Range { at: 1, through: false, keys: (1, 1), found: Ok(vec![(1, 10)]) };
    ranged.events.push(Event { thread: 2, start: 2, end: 6, call });
    right(&ranged);
    let retained = drawn(&[
        (0, 0, 1, put(1, 10, 1)),
        (0, 2, 3, put(1, 11, 2)),
        (0, 4, 5, versions(1, &newest)),
    ]);
    right(&retained);
    let retained = History { retains_all: true, ..retained };
    wrong(&retained, "version 1, which a reader needs, is gone", 2);
}

#[test]
fn given_numbers_and_the_watermark() {
    let late = |answer| {
        given(&[(0, 0, 1, publish(3)), (1, 2, 3, snapshot(3)), (0, 4, 5, put_at(1, 3, 30, answer))])
    };
    right(&late(Answer::TooLate(3)));
    wrong(&late(Answer::Done(3)), "version 3 is written after a call has found the map at 3", 2);
    wrong(&late(Answer::TooLate(2)), "does not fit the number of the write", 1);
    let unpublished = given(&[(0, 0, 1, snapshot(3))]);
    wrong(&unpublished, "found the map at 3, which no call had published", 1);
    let back = given(&[(0, 0, 1, publish(3)), (0, 2, 3, publish(2))]);
    wrong(&back, "the map goes back from 3 to 2", 2);
    let twice = given(&[
        (0, 0, 1, put_at(1, 3, 30, Answer::Done(3))),
        (1, 0, 1, put_at(1, 3, 31, Answer::Done(3))),
    ]);
    wrong(&twice, "key 1 has got version 3 twice", 2);
    let exists = given(&[(0, 0, 1, put_at(1, 3, 30, Answer::Exists(3)))]);
    wrong(&exists, "no call has written version 3, which exists", 1);
}

#[test]
fn given_numbers_and_the_newest_version() {
    let put_if = |latest, number, value, answer| {
        let write = single(1, Some(value), Expected::Latest(latest));
        Call::Write { given: Some(number), write, answer }
    };
    let calls = |call| given(&[(0, 0, 1, put_at(1, 5, 50, Answer::Done(5))), (0, 2, 3, call)]);
    right(&calls(put_if(Some(5), 6, 60, Answer::Done(6))));
    right(&calls(put_if(Some(4), 6, 60, Answer::Conflict(Some(5)))));
    right(&calls(put_if(Some(5), 4, 40, Answer::NotNewer(5))));
    wrong(&calls(put_if(Some(4), 6, 60, Answer::Done(6))), "key 1 is not linearizable", 1);
    wrong(&calls(put_if(Some(5), 4, 40, Answer::Done(4))), "key 1 is not linearizable", 1);
    wrong(&calls(put_if(None, 6, 60, Answer::Conflict(None))), "key 1 is not linearizable", 1);
    wrong(&calls(latest(1, None)), "key 1 is not linearizable", 1);
    right(&calls(latest(1, Some((5, 50)))));
    wrong(&calls(latest(1, Some((5, 51)))), "a reader sees what no call has written", 1);
    let misfit = "does not fit the number of the write";
    wrong(&calls(put_if(Some(5), 6, 60, Answer::NotNewer(5))), misfit, 1);
    right(&calls(put_at(1, 5, 51, Answer::Exists(5))));
    wrong(&calls(put_at(1, 4, 40, Answer::Exists(5))), misfit, 1);
    let both = given(&[
        (0, 0, 1, put_at(1, 5, 50, Answer::Done(5))),
        (0, 2, 5, put_if(Some(5), 6, 60, Answer::Done(6))),
        (1, 2, 5, put_if(Some(5), 7, 70, Answer::Done(7))),
    ]);
    wrong(&both, "key 1 is not linearizable", 2);
}

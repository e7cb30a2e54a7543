//! Histories by hand: right ones pass, and each wrong one fails under its name.

use super::orders::has_order;
use super::*;

/// A history that begins with key 1 = 10 and key 2 = 20; key 3 and key 4 are absent. Its
/// transactions have a thread each.
fn history(of: &[(u64, u64, &[Operation])]) -> History {
    let transactions = of.iter().enumerate();
    let transactions = transactions
        .map(|(thread, &(start, end, operations))| committed(thread, start, end, operations));
    History { initial: vec![(1, 10), (2, 20)], transactions: transactions.collect() }
}

/// Transactions that all overlap.
fn together(of: &[&[Operation]]) -> History {
    let all: Vec<_> = of.iter().enumerate().map(|(at, of)| (at as u64, 100, *of)).collect();
    history(&all)
}

/// Transactions one after the other.
fn in_turn(of: &[&[Operation]]) -> History {
    let all = of.iter().enumerate();
    let all: Vec<_> = all.map(|(at, of)| (10 * at as u64, 10 * at as u64 + 5, *of)).collect();
    history(&all)
}

fn right(history: &History) {
    assert_eq!(check(history), Verdict::Serializable { open: 0 });
}

/// Checks the name and the number of transactions. Returns the report.
fn wrong(history: &History, kind: Kind, real_time: bool, transactions: usize) -> String {
    let verdict = check(history);
    let Verdict::Anomaly(anomaly) = &verdict else { panic!("not {kind}: {verdict:?}") };
    let text = anomaly.to_string();
    let found = (anomaly.kind, anomaly.real_time, anomaly.transactions.len());
    assert_eq!(found, (kind, real_time, transactions), "{text}");
    text
}

#[test]
fn right_histories_pass() {
    right(&History::default());
    right(&in_turn(&[
        &[read(1, 10), write(1, 11), read(1, 11), write(1, 12)],
        &[read(1, 12), find(12, 1), find(11, None), find(10, None), write(1, None), read(1, None)],
        &[scan(Range::ascending(0, 9), &[(2, 20)]), write(3, 30), find(30, 3)],
        &[scan(Range::ascending(0, 9).reversed().limited(1), &[(3, 30)])],
        &[read(1, None), write(1, 13), scan(Range::ascending(1, 1), &[(1, 13)])],
    ]));
    // The second transaction takes effect first.
    right(&together(&[
        &[read(1, 11), write(1, 12), read(2, 20)],
        &[read(1, 10), write(1, 11), read(3, None)],
        &[read(3, None), write(3, 30), read(1, 12)],
    ]));
    // A scan that reached its limit does not cover the rest of its range.
    right(&history(&[
        (0, 100, &[scan(Range::ascending(0, 9).limited(2), &[(1, 10), (2, 20)])]),
        (10, 20, &[read(3, None), write(3, 31)]),
        (30, 40, &[read(3, 31), write(3, 32)]),
    ]));
}

#[test]
fn an_absence_that_fits_two_gaps_stays_open() {
    let verdict = check(&history(&[
        (0, 100, &[read(3, None), find(31, None)]),
        (10, 20, &[read(3, None), write(3, 31)]),
        (30, 40, &[read(3, 31), write(3, None)]),
    ]));
    assert_eq!(verdict, Verdict::Serializable { open: 2 });
    // The reader sees a write that leaves one gap.
    right(&history(&[
        (0, 100, &[read(3, None), read(1, 11)]),
        (10, 20, &[read(3, None), write(3, 31)]),
        (30, 40, &[read(3, 31), write(3, None), read(1, 10), write(1, 11)]),
    ]));
    // The reader sees a write of a transaction that started after the insertion.
    right(&history(&[
        (0, 100, &[read(3, None), read(1, 11)]),
        (0, 40, &[read(3, None), write(3, 31)]),
        (50, 100, &[read(1, 10), write(1, 11)]),
        (0, 100, &[read(3, 31), write(3, None)]),
    ]));
    let skewed = history(&[
        (0, 100, &[read(3, None), read(1, 11)]),
        (10, 20, &[read(3, None), write(3, 31), read(1, 10), write(1, 11)]),
        (30, 40, &[read(3, 31), write(3, None), read(1, 11), write(1, 12)]),
    ]);
    wrong(&skewed, Kind::ReadSkew, false, 2);
}

#[test]
fn an_absence_is_outside_each_of_two_overlapping_lives() {
    // Two lives of key 3 overlap. The last transaction starts after both insertions and finds the
    // key absent, but key 1 says that it comes before the first deletion.
    let insertions_first = history(&[
        (0, 9, &[read(3, None), write(3, 31)]),
        (0, 100, &[read(3, 31), write(3, None), read(1, 10), write(1, 11)]),
        (0, 10, &[read(3, None), write(3, 32)]),
        (0, 100, &[read(3, 32), write(3, None)]),
        (50, 60, &[read(3, None), read(1, 10)]),
    ]);
    wrong(&insertions_first, Kind::ReadSkew, false, 2);
    // It ends before both deletions start, but comes after the second insertion.
    let deletions_last = history(&[
        (0, 100, &[read(3, None), write(3, 31)]),
        (90, 100, &[read(3, 31), write(3, None)]),
        (0, 100, &[read(3, None), write(3, 32), read(1, 10), write(1, 11)]),
        (91, 100, &[read(3, 32), write(3, None)]),
        (50, 60, &[read(3, None), read(1, 11)]),
    ]);
    wrong(&deletions_last, Kind::ReadSkew, false, 2);
}

#[test]
fn lives_far_apart_are_compared() {
    // Ten lives of key 3 overlap. The first one and the last one come before the others, by keys 4
    // and 5. The others follow each other, by key 1. `extra` orders the first one and the last one.
    let lives = |extra: &dyn Fn(u64) -> Vec<Operation>| {
        let mut transactions: Vec<Transaction> = Vec::new();
        for life in 0..10 {
            let mut insertion = vec![read(3, None), write(3, 30 + life)];
            let mut deletion = vec![read(3, 30 + life), write(3, None)];
            match life {
                0 => insertion.extend([read(4, None), write(4, 40)]),
                9 => insertion.extend([read(5, None), write(5, 50)]),
                _ => {
                    insertion.extend([read(1, 9 + life), write(1, 10 + life)]);
                    deletion.extend([read(4, 40), read(5, 50)]);
                }
            }
            deletion.extend(extra(life));
            let at = transactions.len();
            transactions.push(committed(at, life, 100 + life, &insertion));
            transactions.push(committed(at + 1, life, 100 + life, &deletion));
        }
        History { initial: vec![(1, 10)], transactions }
    };
    assert_eq!(check(&lives(&|_| vec![])), Verdict::Serializable { open: 1 });
    right(&lives(&|life| if life == 9 { vec![read(4, 40)] } else { vec![] }));
    right(&lives(&|life| if life == 0 { vec![read(5, 50)] } else { vec![] }));
    let both = lives(&|life| match life {
        0 => vec![read(5, 50)],
        9 => vec![read(4, 40)],
        _ => vec![],
    });
    wrong(&both, Kind::CircularFlow, false, 2);
}

#[test]
fn the_shortest_cycle_of_all_is_reported() {
    // Three transactions in a cycle, and two with many moments between them.
    let history = history(&[
        (0, 100, &[read(2, 20), write(2, 21), read(3, None)]),
        (0, 100, &[read(3, None), write(3, 30), read(4, None)]),
        (0, 100, &[read(4, None), write(4, 40), read(2, 20)]),
        (0, 5, &[read(1, 10), write(1, 11)]),
        (0, 10, &[]),
        (0, 15, &[]),
        (0, 20, &[]),
        (30, 40, &[read(1, 10)]),
    ]);
    wrong(&history, Kind::ReadSkew, true, 2);
}

/// The limit of the checker: it does not take several open choices together.
#[test]
fn an_anomaly_of_three_choices_is_missed() {
    let present = |keys: [u64; 2]| keys.map(|key| read(key, key * 10));
    let mut transactions: Vec<Vec<Operation>> = Vec::new();
    for key in 3..6 {
        transactions.push(vec![read(key, None), write(key, key * 10)]);
        transactions.push(vec![read(key, key * 10), write(key, None)]);
    }
    // Each reader is within the lives of two keys, and before or after the life of the third one.
    // Two readers are on the same side. Then each of the two must come before the other one.
    for (absent, others) in [(3, [4, 5]), (4, [5, 3]), (5, [3, 4])] {
        let mut operations = present(others).to_vec();
        operations.push(read(absent, None));
        transactions.push(operations);
    }
    let operations: Vec<&[Operation]> = transactions.iter().map(Vec::as_slice).collect();
    let two_readers = together(&operations[..8]);
    assert_eq!(check(&two_readers), Verdict::Serializable { open: 2 });
    assert!(has_order(&two_readers, true));
    let three_readers = together(&operations);
    assert_eq!(check(&three_readers), Verdict::Serializable { open: 3 });
    assert!(!has_order(&three_readers, false));
}

#[test]
fn a_write_cycle_is_g0() {
    let text = wrong(
        &together(&[
            &[read(1, 10), write(1, 11), read(2, 21), write(2, 22)],
            &[read(1, 11), write(1, 12), read(2, 20), write(2, 21)],
        ]),
        Kind::WriteCycle,
        false,
        2,
    );
    assert!(text.contains("T1 wrote key 1 = 11, which T2 overwrote"), "{text}");
}

#[test]
fn a_read_of_an_aborted_write_is_g1a() {
    let mut history = together(&[&[read(1, 10), write(1, 11)], &[read(1, 11)]]);
    history.transactions[0].outcome = End::Aborted;
    let text = wrong(&history, Kind::AbortedRead, false, 2);
    assert!(text.contains("T1 read key 1 = 11, which T2 wrote and aborted"), "{text}");
    // A deletion has no name, but nothing else deletes the key.
    let mut history = together(&[&[read(1, 10), write(1, None)], &[read(1, None)]]);
    history.transactions[0].outcome = End::Aborted;
    wrong(&history, Kind::AbortedRead, false, 2);
}

#[test]
fn a_read_of_an_overwritten_write_is_g1b() {
    let writer: &[Operation] = &[read(1, 10), write(1, 11), write(1, 12)];
    wrong(&together(&[writer, &[find(11, 1)]]), Kind::IntermediateRead, false, 2);
    let writer: &[Operation] = &[read(1, 10), write(1, None), write(1, 12)];
    let all = scan(Range::ascending(0, 9), &[(2, 20)]);
    wrong(&together(&[writer, &[all]]), Kind::IntermediateRead, false, 2);
}

#[test]
fn reads_of_each_others_writes_are_g1c() {
    let history = together(&[
        &[read(1, 10), write(1, 11), read(2, 21)],
        &[read(2, 20), write(2, 21), read(1, 11)],
    ]);
    wrong(&history, Kind::CircularFlow, false, 2);
}

#[test]
fn a_read_of_the_future_is_g1c_with_real_time() {
    let history = in_turn(&[&[read(1, 11)], &[read(1, 10), write(1, 11)]]);
    wrong(&history, Kind::CircularFlow, true, 2);
}

#[test]
fn an_update_can_be_lost() {
    let update: [&[Operation]; 2] = [&[read(1, 10), write(1, 11)], &[read(1, 10), write(1, 12)]];
    wrong(&together(&update), Kind::LostUpdate, false, 2);
    wrong(&in_turn(&update), Kind::LostUpdate, false, 2);
    let delete: [&[Operation]; 2] = [&[read(1, 10), write(1, None)], &[read(1, 10), write(1, 12)]];
    wrong(&together(&delete), Kind::LostUpdate, false, 2);
    let insert: [&[Operation]; 2] =
        [&[read(3, None), write(3, 30)], &[read(3, None), write(3, 31)]];
    wrong(&together(&insert), Kind::LostUpdate, false, 2);
}

#[test]
fn a_read_between_two_writes_is_read_skew() {
    let writer: &[Operation] = &[read(1, 10), write(1, 11), read(2, 20), write(2, 21)];
    wrong(&together(&[writer, &[read(1, 10), read(2, 21)]]), Kind::ReadSkew, false, 2);
    let text =
        wrong(&together(&[writer, &[read(1, 11), find(21, None)]]), Kind::ReadSkew, false, 2);
    assert!(text.contains("T2 did not find the value 21, which T1 wrote to key 2"), "{text}");
    let moves: &[Operation] = &[read(1, 10), write(1, None), read(3, None), write(3, 30)];
    let neither = scan(Range::ascending(0, 9), &[(2, 20)]);
    wrong(&together(&[moves, std::slice::from_ref(&neither)]), Kind::ReadSkew, false, 2);
    let twice: &[Operation] = &[read(1, 10), read(1, 11)];
    wrong(&together(&[writer, twice]), Kind::ReadSkew, false, 2);
}

#[test]
fn a_stale_read_is_read_skew_with_real_time() {
    let text =
        wrong(&in_turn(&[&[read(1, 10), write(1, 11)], &[read(1, 10)]]), Kind::ReadSkew, true, 2);
    assert!(text.contains("T2 read key 1 = 10, which T1 overwrote"), "{text}");
    assert!(text.contains("T1 ended before T2 started"), "{text}");
    let inserted = in_turn(&[&[read(3, None), write(3, 30)], &[read(3, None)]]);
    wrong(&inserted, Kind::ReadSkew, true, 2);
    let unfound = in_turn(&[&[read(3, None), write(3, 30)], &[find(30, None)]]);
    wrong(&unfound, Kind::ReadSkew, true, 2);
    // The key was deleted before, and inserted again.
    let insertion: &[Operation] = &[read(1, None), write(1, 12)];
    let again = in_turn(&[&[read(1, 10), write(1, None)], insertion, &[read(1, None)]]);
    wrong(&again, Kind::ReadSkew, true, 2);
}

#[test]
fn two_reads_of_what_the_other_overwrites_are_write_skew() {
    let both = together(&[
        &[read(1, 10), read(2, 20), write(1, 11)],
        &[read(1, 10), read(2, 20), write(2, 21)],
    ]);
    wrong(&both, Kind::WriteSkew, false, 2);
    // The first transaction overlaps the others, which follow each other.
    let skew = history(&[
        (0, 100, &[read(1, 10), read(2, 20), write(2, 21)]),
        (10, 20, &[read(1, 10), write(1, 11)]),
        (30, 40, &[read(2, 20)]),
    ]);
    wrong(&skew, Kind::WriteSkew, true, 3);
}

#[test]
fn two_scans_of_what_the_other_inserts_are_a_phantom() {
    let all = scan(Range::ascending(3, 9), &[]);
    let history = together(&[
        &[all.clone(), read(3, None), write(3, 30)],
        &[all.clone(), read(4, None), write(4, 40)],
    ]);
    let text = wrong(&history, Kind::Phantom, false, 2);
    assert!(text.contains("T1 found key 4 absent, which T2 inserted"), "{text}");
    // An absence between two lives of a key.
    let history = history_of_lives(true);
    wrong(&history, Kind::Phantom, false, 2);
    right(&history_of_lives(false));
}

/// Key 3 comes, goes and comes again, while the last transaction looks for it, and writes key 1 or
/// does not.
fn history_of_lives(writes: bool) -> History {
    let last = [read(3, None), read(1, 10), write(1, 11)];
    history(&[
        (0, 5, &[read(3, None), write(3, 30)]),
        (10, 15, &[read(3, 30), write(3, None)]),
        (20, 90, &[read(3, None), read(1, 10), write(3, 31)]),
        (21, 90, &last[..if writes { 3 } else { 1 }]),
    ])
}

#[test]
fn garbage_and_contradictions_are_found() {
    wrong(&together(&[&[read(1, 99)]]), Kind::Garbage, false, 1);
    wrong(&together(&[&[read(1, 20)]]), Kind::Garbage, false, 1);
    wrong(&together(&[&[find(10, 2)]]), Kind::Garbage, false, 1);
    wrong(&together(&[&[find(10, None)]]), Kind::Garbage, false, 1);
    wrong(&together(&[&[read(1, None)]]), Kind::Garbage, false, 1);
    let ascending = Range::ascending(1, 3);
    let internal: [&[Operation]; 13] = [
        &[read(1, None), read(1, 10), write(1, 11)],
        &[find(10, None), read(1, 10), write(1, 11)],
        &[read(1, 10), write(1, 11), read(1, 10)],
        &[read(1, 10), write(1, None), read(1, 10)],
        &[read(1, 10), write(1, 11), find(11, None)],
        &[read(1, 10), write(1, 11), find(10, 1)],
        &[read(1, 10), write(1, 11), scan(ascending, &[(2, 20)])],
        &[read(1, 11), write(1, 11)],
        &[scan(ascending, &[(2, 20), (1, 10)])],
        &[scan(ascending.reversed(), &[(1, 10), (2, 20)])],
        &[scan(ascending, &[(1, 10), (1, 10), (2, 20)])],
        &[scan(ascending.limited(1), &[(1, 10), (2, 20)])],
        &[scan(Range::ascending(2, 3), &[(1, 10), (2, 20)])],
    ];
    for operations in internal {
        wrong(&together(&[operations]), Kind::Internal, false, 1);
    }
}

#[test]
fn unfit_histories_are_named() {
    let unfit = |history: &History, why: &str| match check(history) {
        Verdict::Unfit(reason) => assert!(reason.contains(why), "{reason}"),
        verdict => panic!("not {why}: {verdict:?}"),
    };
    unfit(&together(&[&[read(1, 10), write(1, 20)]]), "value 20 is written twice");
    unfit(&together(&[&[write(1, 11)]]), "not observed");
    unfit(&history(&[(5, 4, &[])]), "ends before it starts");
    let twice = History { initial: vec![(1, 1), (1, 2)], transactions: vec![] };
    unfit(&twice, "two initial values");
}

#[test]
fn the_report_is_short() {
    let history = together(&[
        &[read(2, 20), read(1, 10), read(3, None), write(1, 11)],
        &[read(1, 10), read(2, 20), write(2, 21)],
    ]);
    let text = wrong(&history, Kind::WriteSkew, false, 2);
    let expected = "\
write skew (G2-item), 2 transactions:
  T1 (thread 0, 0 to 100): read 2 → 20; read 1 → 10; write 1 = 11
  T2 (thread 1, 1 to 100): read 1 → 10; read 2 → 20; write 2 = 21
  T1 before T2: T1 read key 2 = 20, which T2 overwrote.
  T2 before T1: T2 read key 1 = 10, which T1 overwrote.
  (stamps before and after each transaction)";
    assert_eq!(text, expected);
}

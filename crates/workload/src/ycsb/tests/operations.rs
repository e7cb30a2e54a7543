//! The kinds, the fields and the lengths of operations.

use super::*;

#[test]
fn operations_have_their_shares() {
    let text = "recordcount=100\nreadproportion=0.3\nupdateproportion=0.25\nscanproportion=0.2\n\
                insertproportion=0.15\nreadmodifywriteproportion=0.1";
    let ops = ops(&workload(text), OPS);
    for (name, share) in [
        ("READ", 0.3),
        ("UPDATE", 0.25),
        ("SCAN", 0.2),
        ("INSERT", 0.15),
        ("READ-MODIFY-WRITE", 0.1),
    ] {
        near(count(&ops, |op| op.kind_name() == name), OPS, share);
    }
    assert!(ops.iter().all(|op| (*op == Op::Insert) == op.record().is_none()));
}

#[test]
fn kinds_without_a_share_never_come() {
    for (text, name) in [
        ("readproportion=1\nupdateproportion=0", "READ"),
        ("readproportion=0\nupdateproportion=0.9999999", "UPDATE"),
        ("readproportion=0\nupdateproportion=0\nscanproportion=0.9999999", "SCAN"),
        ("readproportion=0\nupdateproportion=0\ninsertproportion=1", "INSERT"),
        ("readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1", "READ-MODIFY-WRITE"),
    ] {
        let ops = ops(&workload(&format!("recordcount=10\n{text}")), 10_000);
        assert_eq!(count(&ops, |op| op.kind_name() == name), 10_000, "{text}");
    }
}

#[test]
fn fields_are_all_or_one() {
    let text = "recordcount=10\nreadproportion=0.5\nupdateproportion=0\nfieldcount=4\n\
                readmodifywriteproportion=0.5";
    let all = Fields::All;
    for op in ops(&workload(text), 1000) {
        match op {
            Op::Read { fields, .. } => assert_eq!(fields, all),
            Op::ReadModifyWrite { read, write, .. } => {
                assert!(
                    read == all
                        && write != all
                        && (0..9).filter(|&f| write.contains(f)).count() == 1
                );
            }
            _ => panic!("{op:?}"),
        }
    }
    let turned = format!("{text}\nreadallfields=false\nwriteallfields=true");
    let (mut reads, mut each) = (0, [0; 4]);
    for op in ops(&workload(&turned), OPS) {
        let read = match op {
            Op::Read { fields, .. } => fields,
            Op::ReadModifyWrite { read, write, .. } => {
                assert!(write == all && write.contains(3));
                read
            }
            _ => panic!("{op:?}"),
        };
        let Fields::One(field) = read else { panic!("{op:?}") };
        (reads, each[field as usize]) = (reads + 1, each[field as usize] + 1);
    }
    for found in each {
        near(found, reads, 0.25);
    }
}

#[test]
fn scans_have_their_lengths() {
    let scans = |more: &str| {
        let text = "recordcount=10\nreadproportion=0\nupdateproportion=0\nscanproportion=1";
        let ops = ops(&workload(&format!("{text}\n{more}")), OPS);
        let len = |op| match op {
            Op::Scan { len, .. } => len,
            _ => panic!("{op:?}"),
        };
        ops.into_iter().map(len).collect::<Vec<u32>>()
    };
    let uniform = scans("minscanlength=11\nmaxscanlength=30");
    (11..=30).for_each(|len| near(count(&uniform, |&l| l == len), OPS, 0.05));
    assert!(uniform.iter().all(|len| (11..=30).contains(len)));
    let zipfian = scans("maxscanlength=100\nscanlengthdistribution=zipfian");
    let zeta: f64 = (1..=100).map(|k| f64::from(k).powf(-0.99)).sum();
    near(count(&zipfian, |&len| len == 1), OPS, 1.0 / zeta);
    assert!(zipfian.iter().all(|len| (1..=100).contains(len)) && zipfian.contains(&100));
    assert!(scans("maxscanlength=1").iter().all(|&len| len == 1));
}

#[test]
fn a_thread_runs_the_same_operations_again_and_others_run_others() {
    let workload = reads("requestdistribution=zipfian");
    let inserts = workload.inserts();
    let first = |seed, thread| {
        let mut block = Block::new(1);
        workload.stream(seed, Share { thread, threads: 4 }, &inserts).fill(&mut block);
        block.ops().to_vec()
    };
    assert_eq!(first(1, 0), first(1, 0));
    for (seed, thread) in [(1, 1), (1, 3), (2, 0)] {
        assert_ne!(first(1, 0), first(seed, thread));
    }
}

#[test]
fn recorded_seeds_keep_their_meaning() {
    let text = "recordcount=1000000\noperationcount=1000\nreadproportion=0.4\nupdateproportion=0.2\n\
                insertproportion=0.1\nscanproportion=0.2\nreadmodifywriteproportion=0.1\n";
    let records = |dist: &str| {
        let workload = workload(&format!("{text}requestdistribution={dist}"));
        let ops = ops(&workload, 10);
        let short = |op: Op| (op.kind_name().as_bytes()[0] as char, op.record().unwrap_or(0));
        ops.into_iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(records("uniform"), GOLDEN_UNIFORM);
    assert_eq!(records("zipfian"), GOLDEN_ZIPFIAN);
    assert_eq!(records("latest"), GOLDEN_LATEST);
}

const GOLDEN_UNIFORM: [(char, u64); 10] = [
    ('I', 0),
    ('I', 0),
    ('R', 187_954),
    ('R', 140_022),
    ('R', 597_747),
    ('U', 970_000),
    ('I', 0),
    ('R', 745_922),
    ('R', 592_393),
    ('I', 0),
];
const GOLDEN_ZIPFIAN: [(char, u64); 10] = [
    ('I', 0),
    ('I', 0),
    ('R', 205_968),
    ('R', 890_044),
    ('R', 282_985),
    ('U', 403_703),
    ('I', 0),
    ('R', 295_967),
    ('R', 484_148),
    ('I', 0),
];
const GOLDEN_LATEST: [(char, u64); 10] = [
    ('I', 0),
    ('I', 0),
    ('R', 999_991),
    ('R', 999_996),
    ('R', 996_441),
    ('U', 336_150),
    ('I', 0),
    ('R', 970_525),
    ('R', 996_705),
    ('I', 0),
];

#[test]
fn blocks_have_whole_transactions() {
    for (per_transaction, len) in [(0, 64), (1, 64), (16, 64), (10, 70), (64, 64), (100, 100)] {
        let block = Block::new(per_transaction);
        assert_eq!(block.ops().len(), len);
        let lens: Vec<usize> = block.transactions().map(<[Op]>::len).collect();
        assert_eq!(lens, vec![per_transaction.max(1); len / per_transaction.max(1)]);
    }
    assert_eq!(Block::with_transactions(0, 0).ops().len(), 1);
    let workload = reads("");
    let (inserts, mut block) = (workload.inserts(), Block::new(10));
    workload.stream(7, Share::ALONE, &inserts).fill(&mut block);
    assert_eq!(block.transactions().collect::<Vec<_>>().concat(), ops(&workload, 70));
}

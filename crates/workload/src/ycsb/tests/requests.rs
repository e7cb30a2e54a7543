//! The records that requests choose.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

#[test]
fn uniform_requests_choose_loaded_records_alike() {
    let records = records(&reads("insertstart=100\ninsertcount=50"), OPS);
    assert!(records.iter().all(|record| (100..150).contains(record)));
    (100..150).for_each(|record| near(count(&records, |&r| r == record), OPS, 0.02));
}

#[test]
fn zipfian_requests_are_scattered_as_in_ycsb() {
    let records = records(&reads("requestdistribution=zipfian"), OPS);
    // Without inserts, YCSB scatters ranks over one record more than there are.
    let place = |rank: u64| fnv_hash(rank) % 1001;
    let zeta = 26.469_028_201_783_02;
    // From rank 2 on, the distribution follows the integral of the power.
    let power = |x: f64| x.powf(0.01);
    let scale = (1.0 - (1.0 + 0.5_f64.powf(0.99)) / zeta) / (power(1e10) - power(2.0));
    // The head rank by rank, and the tail as if it were uniform.
    let mut shares = vec![0.0; 1001];
    for rank in 0..100_000_u64 {
        let from = rank as f64;
        shares[place(rank) as usize] += match rank {
            0 | 1 => (from + 1.0).powf(-0.99) / zeta,
            _ => (power(from + 1.0) - power(from)) * scale,
        };
    }
    let tail = (1.0 - shares.iter().sum::<f64>()) / 1001.0;
    let present = 1.0 - (shares[1000] + tail); // record 1000 is drawn again
    for rank in [0, 1, 2, 3] {
        let record = place(rank);
        let share = (shares[record as usize] + tail) / present;
        near(count(&records, |&r| r == record), OPS, share);
    }
    let hottest = count(&records, |&r| r == place(0)) as f64 / OPS as f64;
    assert!(hottest > 1.0 / zeta && hottest < 1.15 / zeta, "{hottest}");
}

#[test]
fn hot_records_stay_hot_while_others_are_inserted() {
    let text = "recordcount=1000\noperationcount=4000\nreadproportion=0.95\nupdateproportion=0\n\
                insertproportion=0.05\nrequestdistribution=zipfian";
    let workload = workload(text);
    let inserts = workload.inserts();
    let mut stream = workload.stream(1, Share::ALONE, &inserts);
    let hottest = fnv_hash(0) % (1000 + 400 + 1);
    assert!(hottest < 1000, "the test needs a record that is loaded");
    let mut ops = vec![Op::Insert; OPS];
    for acknowledged in [0, 200, 400] {
        while inserts.acknowledged() < acknowledged {
            inserts.begin().acknowledge();
        }
        stream.fill_ops(&mut ops);
        let records: Vec<u64> = ops.iter().filter_map(|op| op.record()).collect();
        let mut counts = HashMap::new();
        for &record in &records {
            *counts.entry(record).or_insert(0) += 1;
        }
        assert_eq!(counts.iter().max_by_key(|(_, count)| **count).unwrap().0, &hottest);
        let new = count(&records, |&record| record >= 1000);
        assert_eq!(new > 0, acknowledged > 0);
        assert!(records.iter().all(|&record| record < 1000 + acknowledged));
    }
}

#[test]
fn too_many_expected_inserts_leave_requests_skewed() {
    // The redraws that YCSB makes would nearly never end.
    let text = "recordcount=10\noperationcount=9000000000000000000\nreadproportion=0.5\n\
                updateproportion=0\ninsertproportion=0.5\nrequestdistribution=zipfian";
    let records = records(&workload(text), 20_000);
    assert!(records.iter().all(|&record| record < 10));
    let mut counts = [0; 10];
    for record in &records {
        counts[*record as usize] += 1;
    }
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 0, "{counts:?}");
    assert_eq!(counts[(fnv_hash(0) % 10) as usize], *most);
}

#[test]
fn latest_requests_prefer_the_youngest() {
    let workload = workload(
        "recordcount=1000\nreadproportion=0.95\nupdateproportion=0\ninsertproportion=0.05\n\
         requestdistribution=latest",
    );
    let inserts = workload.inserts();
    let mut stream = workload.stream(1, Share::ALONE, &inserts);
    let mut ops = vec![Op::Insert; OPS];
    for acknowledged in [0, 1, 5000] {
        while inserts.acknowledged() < acknowledged {
            inserts.begin().acknowledge();
        }
        stream.fill_ops(&mut ops);
        let records: Vec<u64> = ops.iter().filter_map(|op| op.record()).collect();
        let last = 999 + acknowledged;
        let zeta: f64 = (1..=last + 1).map(|k| (k as f64).powf(-0.99)).sum();
        near(count(&records, |&record| record == last), records.len(), 1.0 / zeta);
        near(
            count(&records, |&record| record == last - 1),
            records.len(),
            0.5_f64.powf(0.99) / zeta,
        );
        assert!(records.iter().all(|&record| record <= last));
        assert!(records.contains(&(last - last % 500)), "old records come, too");
    }
}

#[test]
fn sequential_requests_walk_and_start_again() {
    let workload = reads("requestdistribution=sequential\ninsertstart=990");
    assert_eq!(
        records(&workload, 12)[..],
        [990, 991, 992, 993, 994, 995, 996, 997, 998, 999, 990, 991]
    );
    let inserts = workload.inserts();
    let mut third = workload.stream(7, Share { thread: 1, threads: 3 }, &inserts);
    let mut ops = [Op::Insert; 5];
    third.fill_ops(&mut ops);
    assert_eq!(ops.map(|op| op.record().unwrap()), [991, 994, 997, 990, 993]);
}

#[test]
fn hotspots_are_hot() {
    let records = records(&reads("requestdistribution=hotspot\nhotspotopnfraction=0.9"), OPS);
    near(count(&records, |&record| record < 200), OPS, 0.9);
    near(count(&records, |&record| record == 100), OPS, 0.9 / 200.0);
    near(count(&records, |&record| record == 900), OPS, 0.1 / 800.0);
    for (data, ops) in [("0", "1"), ("1", "0"), ("0.0001", "1")] {
        let more = format!("hotspotdatafraction={data}\nhotspotopnfraction={ops}");
        let records = self::records(&reads(&format!("requestdistribution=hotspot\n{more}")), OPS);
        near(count(&records, |&record| record < 500), OPS, 0.5);
        assert!(records.iter().all(|&record| record < 1000));
    }
}

#[test]
fn exponential_requests_prefer_the_youngest() {
    let more = "requestdistribution=exponential\nexponential.percentile=90\nexponential.frac=0.1";
    let records = records(&reads(more), OPS);
    // Nine of ten ages are below 100, of those below 1000, which nearly all are.
    near(count(&records, |&record| record >= 900), OPS, 0.9);
    near(count(&records, |&record| record >= 800), OPS, 0.99);
    assert!(records.iter().all(|&record| record < 1000));
    let rate = -(0.1_f64).ln() / 100.0;
    near(count(&records, |&record| record == 999), OPS, 1.0 - (-rate).exp());
}

/// Readers check that no request names a record before its insert is acknowledged.
#[test]
fn requests_name_acknowledged_records_only() {
    use silvics_sync::atomic::{AtomicBool, Ordering};
    const LOADED: u64 = 100;
    for dist in ["latest", "exponential", "zipfian"] {
        let workload = workload(&format!(
            "recordcount={LOADED}\noperationcount=8000\nreadproportion=0.5\nupdateproportion=0\n\
             insertproportion=0.5\nrequestdistribution={dist}"
        ));
        let inserts = workload.inserts();
        let table: Vec<AtomicBool> = (0..20_000).map(|_| AtomicBool::new(false)).collect();
        table[..LOADED as usize].iter().for_each(|row| row.store(true, Ordering::Relaxed));
        let run = |thread| {
            let mut stream = workload.stream(3, Share { thread, threads: 3 }, &inserts);
            let mut block = Block::with_transactions(8, 1);
            let mut new = 0;
            for _ in 0..500 {
                stream.fill(&mut block);
                for op in block.ops() {
                    if let Some(record) = op.record() {
                        // Relaxed: the acknowledgement orders the write before this read.
                        assert!(table[record as usize].load(Ordering::Relaxed), "{dist} {record}");
                        new += u64::from(record >= LOADED);
                    } else {
                        let insert = inserts.begin();
                        table[insert.record() as usize].store(true, Ordering::Relaxed);
                        insert.acknowledge();
                    }
                }
            }
            assert!(new > 0, "{dist}: inserted records are requested, too");
        };
        std::thread::scope(|scope| {
            (0..3).for_each(|thread| drop(scope.spawn(move || run(thread))));
        });
    }
}

proptest! {
    #[test]
    fn every_request_names_a_present_record(
        records in 1_u64..300, start in 0_u64..300, count in 1_u64..300, acknowledged in 0_u64..50,
        dist in prop::sample::select(vec![
            "uniform", "zipfian", "latest", "sequential", "hotspot", "exponential",
        ]),
        fraction in 0.0_f64..=1.0, threads in 1_usize..400, seed: u64, operations in 0_u64..1000,
    ) {
        let start = start % records;
        let count = count.min(records - start);
        let workload = workload(&format!(
            "recordcount={records}\ninsertstart={start}\ninsertcount={count}\nreadproportion=0.5\n\
             updateproportion=0\ninsertproportion=0.5\nrequestdistribution={dist}\n\
             operationcount={operations}\nhotspotdatafraction={fraction}\n\
             exponential.frac={}\nexponential.percentile={}",
            fraction.max(1e-9), (100.0 * fraction).clamp(1e-6, 99.999),
        ));
        let inserts = workload.inserts();
        (0..acknowledged).for_each(|_| inserts.begin().acknowledge());
        let share = Share { thread: seed as usize % threads, threads };
        let mut block = Block::new(1);
        workload.stream(seed, share, &inserts).fill(&mut block);
        for record in block.ops().iter().filter_map(|op| op.record()) {
            let loaded = (start..start + count).contains(&record);
            let inserted = (records..records + acknowledged).contains(&record);
            prop_assert!(loaded || inserted, "{dist}: {record}");
        }
    }
}

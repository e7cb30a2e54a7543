//! The settings of property files, and all that follows from them without a draw.

use super::*;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn our_files_are_the_core_workloads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let none =
        Proportions { read: 0.0, update: 0.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 };
    use RequestDist::{Latest, Zipfian};
    for (letter, proportions, dist) in [
        ('a', Proportions { read: 0.5, update: 0.5, ..none }, Zipfian),
        ('b', Proportions { read: 0.95, update: 0.05, ..none }, Zipfian),
        ('c', Proportions { read: 1.0, ..none }, Zipfian),
        ('d', Proportions { read: 0.95, insert: 0.05, ..none }, Latest),
        ('e', Proportions { scan: 0.95, insert: 0.05, ..none }, Zipfian),
        ('f', Proportions { read: 0.5, read_modify_write: 0.5, ..none }, Zipfian),
    ] {
        let file = folder.join(format!("workload{letter}"));
        let properties = Properties::read([&file], ["recordcount=5000"]).unwrap();
        assert_eq!(properties.get("workload").unwrap().value, "site.ycsb.workloads.CoreWorkload");
        let workload = Workload::from_properties(&properties).unwrap();
        let settings = workload.settings();
        assert_eq!((settings.proportions, settings.request_dist), (proportions, dist), "{letter}");
        assert_eq!((settings.records, settings.operations), (5000, Some(1000)));
        assert_eq!((settings.fields, settings.field_bytes), (10, 100));
        assert!(settings.notes.is_empty() && settings.read_all_fields, "{letter}");
        assert_eq!(
            (workload.scans(), workload.inserts_records()),
            (letter == 'e', "de".contains(letter))
        );
        if letter == 'e' {
            assert_eq!((settings.scan_min, settings.scan_max), (1, 100));
            assert_eq!(settings.scan_length_dist, ScanLengthDist::Uniform);
        }
    }
}

#[test]
fn defaults_are_those_of_ycsb() {
    let workload = workload("workload=com.yahoo.ycsb.workloads.CoreWorkload\nrecordcount=50");
    let proportions =
        Proportions { read: 0.95, update: 0.05, insert: 0.0, scan: 0.0, read_modify_write: 0.0 };
    let expected = Settings {
        table: "usertable".into(),
        records: 50,
        operations: None,
        fields: 10,
        field_bytes: 100,
        field_bytes_min: 100,
        field_length_dist: FieldLengthDist::Constant,
        read_all_fields: true,
        write_all_fields: false,
        proportions,
        request_dist: RequestDist::Uniform,
        scan_min: 1,
        scan_max: 1000,
        scan_length_dist: ScanLengthDist::Uniform,
        insert_order: InsertOrder::Hashed,
        insert_start: 0,
        insert_count: 50,
        zero_padding: 1,
        threads: None,
        target: None,
        seconds: None,
        notes: vec![],
    };
    assert_eq!(workload.settings(), &expected);
    let hotspot = reads("requestdistribution=hotspot").settings().request_dist;
    assert_eq!(hotspot, RequestDist::Hotspot { data: 0.2, ops: 0.8 });
    let exponential = reads("requestdistribution=exponential").settings().request_dist;
    let fraction = 0.857_142_857_1; // YCSB's constant
    assert_eq!(exponential, RequestDist::Exponential { percentile: 95.0, fraction });
}

#[test]
fn settings_are_read_wherever_they_are_set() {
    let files = [("one", "recordcount : 10\ntable t\nfieldcount=3\n"), ("two", "recordcount=20\n")];
    let mut properties = Properties::new();
    for (name, text) in files {
        properties.add_text(name, text).unwrap();
    }
    for assignment in ["threadcount=4", "target=0", "maxexecutiontime=9", "insertstart=5"] {
        properties.set(assignment).unwrap();
    }
    properties.set("readallfields=FALSE").unwrap();
    properties.set("histogram.buckets=1000").unwrap();
    let settings = Settings::from_properties(&properties).unwrap();
    assert_eq!((settings.records, settings.insert_start, settings.insert_count), (20, 5, 15));
    assert_eq!((settings.threads, settings.target, settings.seconds), (Some(4), None, Some(9)));
    assert_eq!((settings.table.as_str(), settings.read_all_fields), ("t", false));
    let note = "the property `histogram.buckets` (-p) has no meaning here and is ignored";
    assert_eq!(settings.notes.iter().map(Note::to_string).collect::<Vec<_>>(), [note]);
}

#[test]
fn wrong_values_are_named_with_their_place_and_a_remedy() {
    let number = |most: u64| format!("write a whole number from 1 to {most}");
    for (property, remedy) in [
        ("recordcount=0", number(RECORDS_MAX)),
        ("recordcount=-5", number(RECORDS_MAX)),
        ("recordcount=many", number(RECORDS_MAX)),
        ("recordcount=4294967297", number(RECORDS_MAX)),
        ("recordcount=99999999999999999999999", number(RECORDS_MAX)),
        ("recordcount=", number(RECORDS_MAX)),
        ("operationcount=1.5", format!("write a whole number from 0 to {}", i64::MAX)),
        ("maxscanlength=0", number(u32::MAX.into())),
        ("minscanlength=1001", number(1000)),
        ("fieldcount=0", number(65536)),
        ("fieldlength=0", number(1 << 24)),
        ("insertcount=101", number(100)),
        ("insertstart=100", "write a whole number from 0 to 99".into()),
        ("threadcount=0", number(65536)),
        ("zeropadding=1001", "write a whole number from 0 to 1000".into()),
        ("readproportion=2", "write a number from 0 to 1".into()),
        ("readproportion=nan", "write a number from 0 to 1".into()),
        ("hotspotdatafraction=-1", "write a number from 0 to 1".into()),
        ("exponential.percentile=100", "write a number between 0 and 100".into()),
        ("exponential.frac=0", "write a number above 0, at most 1".into()),
        ("readallfields=yes", "write true or false".into()),
        ("insertorder=random", "write hashed or ordered".into()),
        ("scanlengthdistribution=latest", "write uniform or zipfian".into()),
        ("fieldlengthdistribution=histogram", "write constant, uniform or zipfian".into()),
        (
            "requestdistribution=zipf",
            "write uniform, zipfian, latest, sequential, hotspot or exponential".into(),
        ),
        ("workload=site.ycsb.workloads.RestWorkload", {
            "write site.ycsb.workloads.CoreWorkload or com.yahoo.ycsb.workloads.CoreWorkload".into()
        }),
    ] {
        let error = refused(&format!("recordcount=100\n\n{property}\n"));
        assert_eq!(error, format!("`{property}` (file, line 3) cannot be used: {remedy}"));
    }
    let error = refused("recordcount=9\nfieldlengthdistribution=uniform\nminfieldlength=101");
    assert!(error.ends_with("write a whole number from 0 to 100"), "{error}");
    assert_eq!(
        refused("readproportion=1"),
        "`recordcount` is not set: write for example recordcount=1000000"
    );
}

#[test]
fn proportions_must_sum_to_one() {
    let error = refused("recordcount=9\nreadproportion=0.9\nscanproportion=0.1");
    assert_eq!(
        error,
        "the proportions sum to 1.05 instead of 1, with readproportion=0.9 (file, line 2) and \
         updateproportion=0.05 (default) and scanproportion=0.1 (file, line 3): change them, or \
         set those that you do not need to 0"
    );
    let error = refused("recordcount=9\nreadproportion=0\nupdateproportion=0");
    assert!(error.starts_with("the proportions sum to 0 instead of 1: change them"), "{error}");
    let sum = |read: &str| {
        let mut properties = Properties::new();
        properties.set("recordcount=9").unwrap();
        properties.set(&format!("readproportion={read}")).unwrap();
        Workload::from_properties(&properties).is_ok()
    };
    assert!(sum("0.9500009") && sum("0.9499991") && !sum("0.950002") && !sum("0.949998"));
}

#[test]
fn keys_are_hashed_or_ordered() {
    let key = |workload: &Workload, record| {
        let mut key = Vec::new();
        workload.write_key(record, &mut key);
        (workload.key_word(record), String::from_utf8(key).unwrap())
    };
    let hashed = reads("zeropadding=21");
    assert_eq!(key(&hashed, 1), (8_517_097_267_634_966_620, "user008517097267634966620".into()));
    let ordered = reads("insertorder=ordered\nzeropadding=8");
    assert_eq!(key(&ordered, 5), (5, "user00000005".into()));
}

#[test]
fn field_lengths_follow_their_distribution() {
    let constant = reads("minfieldlength=7");
    assert!((0..100).all(|record| constant.field_len(record, 1, 2) == 100));
    let lengths = |more: &str| {
        let workload = reads(&format!("fieldlength=20\nminfieldlength=11\n{more}"));
        let of = |i: u64| workload.field_len(i % 1000, (i % 3) as u32, i);
        assert_eq!((0..50).map(of).collect::<Vec<_>>(), (0..50).map(of).collect::<Vec<_>>());
        let lengths: Vec<usize> = (0..OPS as u64).map(of).collect();
        assert!(lengths.iter().all(|len| (11..=20).contains(len)));
        lengths
    };
    let uniform = lengths("fieldlengthdistribution=uniform");
    (11..=20).for_each(|len| near(count(&uniform, |&l| l == len), OPS, 0.1));
    let zipfian = lengths("fieldlengthdistribution=zipfian");
    let zeta: f64 = (1..=10).map(|k| f64::from(k).powf(-0.99)).sum();
    near(count(&zipfian, |&len| len == 11), OPS, 1.0 / zeta);
}

#[test]
fn the_load_is_each_record_once() {
    let workload = reads("insertstart=10\ninsertcount=103");
    let parts = (0..4).flat_map(|thread| workload.load_part(Share { thread, threads: 4 }));
    assert!(parts.eq(10..113));
    assert_eq!(workload.inserts().begin().record(), 1000);
}

proptest! {
    #[test]
    fn no_value_panics(
        name in prop::sample::select(vec![
            "recordcount", "insertstart", "insertcount", "maxscanlength", "minscanlength",
            "readproportion", "requestdistribution", "exponential.frac", "fieldlength",
            "exponential.percentile", "hotspotdatafraction", "operationcount", "zeropadding",
        ]),
        value in "[0-9.e+-]{0,12}|zipfian|latest|inf|nan|-0",
    ) {
        let mut properties = Properties::new();
        properties.add_text("f", "recordcount=100\nrequestdistribution=exponential").unwrap();
        properties.set(&format!("{name}={value}")).unwrap();
        match Workload::from_properties(&properties) {
            Ok(workload) => drop(ops(&workload, 10)),
            Err(PropertyError::Proportions { .. }) => prop_assert_eq!(name, "readproportion"),
            Err(error) => prop_assert!(error.to_string().contains(name), "{error}"),
        }
    }
}

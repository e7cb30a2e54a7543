//! Definitions of tables: structures by name and by type, and mistakes.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

use silvics_store::index::{Lists, MultiLists, Points, Scans};
use silvics_store::{Error, IndexSpec, Schema, Store, Type};

#[test]
fn structures_are_chosen_by_name_and_by_type() {
    let store: Store = Store::new().unwrap();
    let of = |name: &str, index: IndexSpec| {
        Schema::new(name).column("key", Type::U64).column("value", Type::U64).index(index)
    };
    for structure in ["art", "skiplist", "edge-ext-lf:fixed", "occ-avl", "int-lf", "words"] {
        let points = matches!(structure, "occ-avl" | "int-lf");
        let spec = IndexSpec::primary(["key"]).named(structure);
        let spec = if points { spec.points_only() } else { spec };
        let table = store.create_table(of(structure, spec)).unwrap();
        let index = table.index::<u64>("primary").unwrap();
        let (key, value) =
            (table.column::<u64>("key").unwrap(), table.column::<u64>("value").unwrap());
        store
            .transact(|tx| {
                for number in 0..100_u64 {
                    tx.insert(&table, |row| {
                        row.set(key, number)?;
                        row.set(value, number * 2)
                    })?;
                }
                Ok::<(), Error>(())
            })
            .unwrap();
        let tx = store.begin();
        assert_eq!(tx.get(&index, 50).unwrap().unwrap().get(value), Ok(100));
        let scanned = tx.scan(&index, ..).rows();
        if points {
            assert_eq!(scanned.err(), Some(Error::PointsOnly { index: "primary".into() }));
        } else {
            assert_eq!(scanned.unwrap().len(), 100);
        }
    }
    let error = |spec| store.create_table(of("refused", spec)).unwrap_err().to_string();
    let unscannable = error(IndexSpec::primary(["key"]).named("citrus"));
    assert!(unscannable.starts_with(
        "the index `primary` needs scans, and `citrus` has none: choose from edge-ext-lf,"
    ));
    assert!(unscannable.contains("art, ") && !unscannable.contains("occ-avl"), "{unscannable}");
    let unknown = error(IndexSpec::primary(["key"]).named("tree"));
    assert!(unknown.starts_with("there is no structure `tree`: choose from "), "{unknown}");
    let bytes = error(IndexSpec::primary(["key", "value"]).named("words"));
    let takes = "the index `primary` has byte string keys, which `words` does not take";
    assert!(bytes.starts_with(takes), "{bytes}");
    assert!(store.table("refused").is_none(), "a refused table leaves nothing behind");
    let typed = of("typed", IndexSpec::primary(["key"]).over::<Scans<silvics::WordTree<u64>>>());
    let typed = store.create_table(typed).unwrap();
    typed.index_over::<u64, Scans<silvics::WordTree<u64>>>("primary").unwrap();
    assert!(typed.index::<u64>("primary").is_err());
    type Avl = Lists<Points<silvics::BronsonTree<silvics::Shared>>>;
    let lists = IndexSpec::primary(["key"]).over::<Avl>();
    assert!(error(lists.clone()).contains("needs scans"));
    let lists = store.create_table(of("lists", lists.points_only())).unwrap();
    let (index, key) =
        (lists.index_over::<u64, Avl>("primary").unwrap(), lists.column::<u64>("key").unwrap());
    store.transact(|tx| tx.insert(&lists, |row| row.set(key, 5))).unwrap();
    let again = store.transact(|tx| tx.insert(&lists, |row| row.set(key, 5)));
    assert!(matches!(again, Err(Error::Unique { .. })));
    assert_eq!(store.transact(|tx| tx.delete(&index, 5)), Ok(true));
    assert_eq!(store.transact(|tx| tx.delete(&index, 5)), Ok(false));
}

/// Customers by last name, as in the study's database, over a tree that cannot scan.
#[test]
fn several_rows_have_one_key_in_lists() {
    type Lists = MultiLists<Points<silvics::BronsonTree<silvics::Shared>>>;
    let store: Store = Store::new().unwrap();
    let by_name = || IndexSpec::multi("by_name", ["name"]).over::<Lists>();
    let columns = |table: &str| {
        Schema::new(table).column("id", Type::U64).column("name", Type::I64).column("n", Type::U32)
    };
    let table = store.create_table(columns("t").primary(["id"]).index(by_name())).unwrap();
    let (id, name) = (table.column::<u64>("id").unwrap(), table.column::<i64>("name").unwrap());
    let (by_id, by_name_) =
        (table.index::<u64>("primary").unwrap(), table.multi("by_name").unwrap());
    let add = |number: u64, to: i64| {
        store.transact(|tx| {
            tx.insert(&table, |row| {
                row.set(id, number)?;
                row.set(name, to)
            })
        })
    };
    // More rows than a walk copies at a time, in no order, and lists of one row beside it.
    let count = if cfg!(miri) { 40 } else { 500 };
    for number in 0..count {
        add(number * 7 % count, 5).unwrap();
    }
    for other in [i64::MIN, 4, 6, i64::MAX] {
        add(1000 + other.rem_euclid(10) as u64, other).unwrap();
    }
    let ids = |of: i64, descending: bool, limit: usize| -> Vec<u64> {
        let tx = store.begin();
        let scan = tx.find_all(&by_name_, of).limit(limit);
        let scan = if descending { scan.descending() } else { scan };
        let rows = scan.rows().unwrap();
        rows.iter().map(|row| row.get(id).unwrap()).collect()
    };
    let all: Vec<u64> = (0..count).collect();
    assert_eq!(ids(5, false, usize::MAX), all);
    assert_eq!(ids(5, false, 35), all[..35]);
    let reversed: Vec<u64> = all.iter().rev().copied().collect();
    assert_eq!(ids(5, true, usize::MAX), reversed);
    assert_eq!(ids(5, true, 35), reversed[..35]);
    for other in [i64::MIN, 4, 6, i64::MAX] {
        assert_eq!(ids(other, false, 9), [1000 + other.rem_euclid(10) as u64]);
    }
    assert!(ids(7, false, 9).is_empty());
    // The first one, one in the middle, and the last one leave; one moves to another list.
    for number in [0, count / 2, count - 1] {
        assert_eq!(store.transact(|tx| tx.delete(&by_id, number)), Ok(true));
    }
    let moved = store.transact(|tx| tx.update(&by_id, 3, |row| row.set(name, 7)));
    assert_eq!(moved, Ok::<bool, Error>(true));
    let left = all[1..].iter().filter(|of| ![3, count / 2, count - 1].contains(of));
    assert_eq!(ids(5, false, usize::MAX), left.copied().collect::<Vec<_>>());
    assert_eq!((ids(7, false, 9), table.memory()[2].entries), (vec![3], count as usize + 1));
    let refused = |schema| store.create_table(schema).unwrap_err().to_string();
    for schema in [
        columns("u").primary(["n"]).index(by_name()),
        columns("u").primary(["id"]).index(IndexSpec::multi("by_name", ["n"]).over::<Lists>()),
        columns("u")
            .primary(["id"])
            .index(IndexSpec::multi("by_name", ["n", "name"]).over::<Lists>()),
        columns("u").primary(["id"]).index(IndexSpec::unique("by_name", ["name"]).over::<Lists>()),
        columns("u").index(IndexSpec::primary(["id", "n"]).over::<Lists>()),
    ] {
        let why = refused(schema);
        assert!(
            why.contains("a list of rows for each key: declare it by `IndexSpec::multi`"),
            "{why}"
        );
    }
}

#[test]
fn wrong_definitions_are_refused() {
    let store: Store = Store::new().unwrap();
    let error = |schema| store.create_table(schema).unwrap_err().to_string();
    let t = || Schema::new("t").column("a", Type::U32);
    assert_eq!(error(Schema::new("t")), "the table `t` has no columns: add one with `column`");
    assert_eq!(error(t()), "the table `t` has no primary index: add one with `primary`");
    assert_eq!(error(t().primary(["b"])), "there is no column `b`: choose from a");
    assert_eq!(
        error(t().column("a", Type::U8).primary(["a"])),
        "the column `a` exists already: choose another name"
    );
    assert_eq!(
        error(t().primary([])),
        "the index `primary` has no columns or too many: name 1 to 8"
    );
    let two = t().primary(["a"]).index(IndexSpec::unique("primary", ["a"]));
    assert_eq!(error(two), "the index `primary` exists already: choose another name");
    let large = t().column("b", Type::Bytes(70_000)).primary(["a"]);
    assert!(error(large).starts_with("a row of the table `t` has 70008 bytes"));
    store.create_table(t().primary(["a"])).unwrap();
    assert_eq!(error(t().primary(["a"])), "the table `t` exists already: choose another name");
}

//! The versions of a storage engine: user key ascending, sequence number descending, in an order
//! that is given at run time, as RocksDB gives a comparator to a column family.
//!
//! An internal key is a struct whose kind is no part of the order. A lookup borrows the user's
//! bytes and allocates nothing.

use silvics::OrdMap;
use silvics::ord::{Comparator, Compares};
use std::cmp::Ordering;
use std::ops::Bound::{Included, Unbounded};

/// A key of the engine.
struct InternalKey {
    user_key: Vec<u8>,
    sequence: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Put,
    Delete,
}

/// The newest version of a user key that a snapshot sees.
struct Seek<'a> {
    user_key: &'a [u8],
    snapshot: u64,
}

/// The order of user keys, which the user chooses.
type UserOrder = fn(&[u8], &[u8]) -> Ordering;

struct InternalOrder(UserOrder);

impl InternalOrder {
    /// The newest version of a user key comes first.
    fn of(&self, a: (&[u8], u64), b: (&[u8], u64)) -> Ordering {
        (self.0)(a.0, b.0).then(b.1.cmp(&a.1))
    }
}

impl Comparator<InternalKey> for InternalOrder {
    fn compare(&self, a: &InternalKey, b: &InternalKey) -> Ordering {
        self.of((&a.user_key, a.sequence), (&b.user_key, b.sequence))
    }
}

impl Compares<InternalKey, InternalKey> for InternalOrder {
    fn compare_with(&self, key: &InternalKey, asked: &InternalKey) -> Ordering {
        self.compare(key, asked)
    }
}

impl Compares<InternalKey, Seek<'_>> for InternalOrder {
    fn compare_with(&self, key: &InternalKey, asked: &Seek<'_>) -> Ordering {
        self.of((&key.user_key, key.sequence), (asked.user_key, asked.snapshot))
    }
}

/// A memtable in an order of the user.
struct Memtable {
    entries: OrdMap<InternalKey, Vec<u8>, InternalOrder>,
}

impl Memtable {
    fn ordered_by(order: UserOrder) -> Self {
        Self { entries: OrdMap::ordered_by(InternalOrder(order)) }
    }

    fn add(&self, sequence: u64, kind: Kind, user_key: &[u8], value: &[u8]) {
        let key = InternalKey { user_key: user_key.to_vec(), sequence, kind };
        let is_new = self.entries.insert(key, value.to_vec()).is_none();
        assert!(is_new, "each write has a sequence number of its own");
    }

    /// The value of a user key at a snapshot.
    fn get(&self, user_key: &[u8], snapshot: u64) -> Option<Vec<u8>> {
        let view = self.entries.pin();
        let from = Seek { user_key, snapshot };
        let (key, value) = view.range::<Seek<'_>, _>((Included(&from), Unbounded)).next()?;
        let is_it = key.user_key == user_key && key.kind == Kind::Put;
        is_it.then(|| value.clone())
    }
}

fn main() {
    let table = Memtable::ordered_by(Ord::cmp);
    table.add(1, Kind::Put, b"apple", b"red");
    table.add(2, Kind::Put, b"pear", b"green");
    table.add(3, Kind::Put, b"apple", b"yellow");
    table.add(4, Kind::Delete, b"apple", b"");
    for (snapshot, color) in [(1, Some("red")), (2, Some("red")), (3, Some("yellow")), (4, None)] {
        let found = table.get(b"apple", snapshot);
        assert_eq!(found.as_deref(), color.map(str::as_bytes));
        println!("apple at {snapshot}: {}", color.unwrap_or("deleted"));
    }
    assert_eq!(table.get(b"plum", 9), None);

    // Another column family has another order: the longest key first.
    let table = Memtable::ordered_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    for (sequence, user_key) in ["b", "ccc", "aa"].into_iter().enumerate() {
        table.add(sequence as u64, Kind::Put, user_key.as_bytes(), b"");
    }
    let view = table.entries.pin();
    let order: Vec<_> =
        view.keys().map(|key| String::from_utf8_lossy(&key.user_key).into_owned()).collect();
    assert_eq!(order, ["ccc", "aa", "b"]);
    println!("the longest first: {}", order.join(", "));
}

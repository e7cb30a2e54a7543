//! The client's scans on a running server.

use super::Running;
use silvics_redis::client::{Entry, Scan, Shards};
use std::num::NonZeroUsize;
use std::ops::{Bound, RangeBounds};

/// Keys with each byte in them, in their order.
fn keys() -> Vec<Vec<u8>> {
    let three = |byte| [vec![byte], vec![byte, 0], vec![b'p', byte, 255]];
    let mut keys: Vec<_> = (0..=255_u8).flat_map(three).collect();
    keys.sort();
    keys
}

#[test]
fn scans_of_shards_are_in_order_with_each_kind_of_bound() {
    let mut running = Running::start("", "");
    let (shards, all) = (Shards::new("shards", 5).unwrap(), keys());
    for key in &all {
        let mut set = redis::cmd("OM.SET");
        set.arg(shards.map_of(key)).arg(key).arg(key);
        set.exec(&mut running.connection).unwrap();
    }
    assert!(shards.names().iter().all(|name| running.run(&format!("EXISTS {name}")) == "1"));
    let connection = &mut running.connection;
    let mut read = |scan: Scan| -> Vec<Vec<u8>> {
        let page = NonZeroUsize::new(7).unwrap();
        let entries = scan.page(page).merge(&mut *connection).collect::<Result<Vec<Entry>, _>>();
        let entries = entries.unwrap();
        assert!(entries.iter().all(|(key, value)| key == value));
        entries.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(read(shards.scan()), all);
    assert!(read(shards.scan().descending()).iter().eq(all.iter().rev()));
    let (from, to) = ([3_u8, 0], [200_u8]);
    for bounds in [
        (Bound::Included(&from[..]), Bound::Included(&to[..])),
        (Bound::Excluded(&from[..]), Bound::Excluded(&to[..])),
        (Bound::Unbounded, Bound::Excluded(&to[..])),
        (Bound::Excluded(&from[..]), Bound::Unbounded),
    ] {
        let within = |key: &&Vec<u8>| RangeBounds::<[u8]>::contains(&bounds, &key[..]);
        let expected: Vec<_> = all.iter().filter(within).cloned().collect();
        assert_eq!(read(shards.scan().range::<[u8]>(bounds)), expected, "{bounds:?}");
    }
    for prefix in [&b"p"[..], b"\xff", b"", b"p\xff"] {
        let expected: Vec<_> = all.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
        assert_eq!(read(shards.scan().prefix(prefix)), expected, "{}", prefix.escape_ascii());
    }
}

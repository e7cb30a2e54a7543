//! Scans of a memtable: by the iterator of a view, and by those that can be sent to other threads.

use crate::measure::{Figures, median, timed};
use crate::memtable::{Version, filled, shared_value, shuffled, write_user};
use crossbeam_skiplist::SkipMap;
use silvics::Map;
use silvics::map::Value;
use std::slice::from_ref;
use std::sync::Arc;

/// The number of entries of a short range.
const SHORT: usize = 50;
/// The turns of each scan.
const TURNS: usize = 3;

/// A kind of scan: its name, and a call that reads at most the given number of entries from a key
/// on, or down to it, and returns a checksum. Scans of the same entries have equal checksums.
type Scan<'m> = (&'static str, Box<dyn Fn(&Version, usize) -> u64 + 'm>);

#[inline]
fn checksum(user: &[u8], sequence: u64, value: u64) -> u64 {
    sequence ^ u64::from(user[user.len() - 1]) ^ value
}

/// The sum of checksums, without a check for overflow.
fn sum(checksums: impl Iterator<Item = u64>) -> u64 {
    checksums.fold(0, u64::wrapping_add)
}

/// Times scans in turn: short ranges, then all entries. The figures are nanoseconds for each entry,
/// medians of the turns, under the name of the scan with `short` or `whole` before it.
fn figures(count: usize, scans: &[Scan<'_>]) -> Figures {
    let key = |number: u32| {
        let mut user = [0; 16];
        write_user(number as usize, &mut user);
        Version { user: user.into(), sequence: u64::MAX }
    };
    let users = count / 2;
    let mut starts = shuffled(users - SHORT);
    starts.truncate(count / SHORT);
    let (starts, first): (Vec<_>, _) = (starts.into_iter().map(key).collect(), key(0));
    let mut figures = Figures::new();
    for (kind, starts, most) in [("short", &*starts, SHORT), ("whole", from_ref(&first), count)] {
        let scans: Vec<_> = scans.iter().filter(|scan| most > SHORT || !is_reverse(scan)).collect();
        let mut times = vec![Vec::new(); scans.len()];
        let mut wanted = None;
        for _ in 0..TURNS {
            for ((_, scan), times) in scans.iter().zip(&mut times) {
                let (found, time) = timed(|| sum(starts.iter().map(|start| scan(start, most))));
                assert_eq!(*wanted.get_or_insert(found), found, "two scans differ");
                times.push(time / (starts.len() * most) as f64);
            }
        }
        let named = scans.iter().zip(times);
        figures.extend(named.map(|((name, _), times)| (format!("{kind} {name}"), median(times))));
    }
    figures
}

fn is_reverse(scan: &Scan<'_>) -> bool {
    scan.0.starts_with("reverse")
}

/// Scans of a `Map`, whose values `make` makes and `read` reads. If `ahead`, the cursor copies
/// values together with keys.
pub(crate) fn map<V: Value + Clone>(
    count: usize,
    make: impl Fn(u64) -> V,
    read: impl Fn(&V) -> u64 + Copy,
    ahead: bool,
) -> Figures {
    let map: Arc<Map<Version, V>> = Arc::new(filled(count, make));
    let map = &map;
    let of = move |key: &Version, value: &V| checksum(&key.user, key.sequence, read(value));
    let view = move |from: &Version, most| {
        let view = map.pin();
        let entries = view.range(from..).take(most);
        sum(entries.map(|(key, value)| checksum(&key.user, key.sequence, read(&value))))
    };
    let reverse_view = move |from: &Version, most| {
        let view = map.pin();
        let entries = view.range_rev(from..).take(most);
        sum(entries.map(|(key, value)| checksum(&key.user, key.sequence, read(&value))))
    };
    let owned = move |from: &Version, most| {
        sum(map.range_owned(from..).take(most).map(|(key, value)| of(&key, &value)))
    };
    let reverse_owned = move |from: &Version, most| {
        sum(map.range_owned(from..).rev().take(most).map(|(key, value)| of(&key, &value)))
    };
    let by_ref = move |from: &Version, most| {
        let (mut range, mut total) = (map.range_owned(from..), 0u64);
        for _ in 0..most {
            let Some((key, value)) = range.next_ref() else { break };
            total = total.wrapping_add(checksum(&key.user, key.sequence, read(value)));
        }
        total
    };
    let reverse_by_ref = move |from: &Version, most| {
        let (mut range, mut total) = (map.range_owned(from..), 0u64);
        for _ in 0..most {
            let Some((key, value)) = range.next_back_ref() else { break };
            total = total.wrapping_add(checksum(&key.user, key.sequence, read(value)));
        }
        total
    };
    let by_cursor = move |from: &Version, most| {
        let cursor = map.cursor();
        let mut cursor = if ahead { cursor.values_ahead() } else { cursor };
        let (mut total, mut left) = (0u64, most);
        cursor.seek(from);
        while let Some((key, value)) = cursor.current() {
            let value = value.expect("no entry is removed");
            total = total.wrapping_add(checksum(&key.user, key.sequence, read(&value)));
            left -= 1;
            if left == 0 {
                break;
            }
            cursor.next();
        }
        total
    };
    let scans: [Scan<'_>; 7] = [
        ("view", Box::new(view)),
        ("owned", Box::new(owned)),
        ("by ref", Box::new(by_ref)),
        ("cursor", Box::new(by_cursor)),
        ("reverse view", Box::new(reverse_view)),
        ("reverse owned", Box::new(reverse_owned)),
        ("reverse by ref", Box::new(reverse_by_ref)),
    ];
    figures(count, &scans)
}

/// Scans of a `SkipMap` with shared values. Its iterators count references to entries, and are
/// `Send`.
pub(crate) fn skip_map(count: usize) -> Figures {
    let map: SkipMap<Version, Arc<[u8]>> = filled(count, shared_value);
    let map = &map;
    let of = |key: &Version, value: &Arc<[u8]>| checksum(&key.user, key.sequence, value[0].into());
    let range = move |from: &Version, most| {
        sum(map.range(from..).take(most).map(|entry| of(entry.key(), entry.value())))
    };
    let reverse = move |from: &Version, most| {
        sum(map.range(from..).rev().take(most).map(|entry| of(entry.key(), entry.value())))
    };
    let scans: [Scan<'_>; 2] = [("view", Box::new(range)), ("reverse view", Box::new(reverse))];
    figures(count, &scans)
}

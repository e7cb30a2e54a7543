//! Random calls beside a model that keeps all versions.

use super::*;
use silvics::versions::{Drawn, PutError, ReadError, Snapshot};
use std::collections::BTreeMap;
use std::ops::Bound;

/// All versions of each key, in ascending order of their numbers.
#[derive(Default)]
struct Model(BTreeMap<u64, BTreeMap<u64, Option<u64>>>);

impl Model {
    fn put(&mut self, key: u64, number: u64, value: Option<u64>) {
        assert!(self.0.entry(key).or_default().insert(number, value).is_none());
    }

    fn at(&self, key: u64, number: u64) -> Option<(u64, u64)> {
        let (number, value) = self.0.get(&key)?.range(..=number).next_back()?;
        value.map(|value| (*number, value))
    }

    fn range(&self, bounds: (Bound<u64>, Bound<u64>), number: u64) -> Vec<(u64, u64)> {
        let keys = self.0.range(bounds).map(|(key, _)| *key);
        keys.filter_map(|key| Some((key, self.at(key, number)?.1))).collect()
    }
}

fn bounds(rng: &mut Rng, keys: u64) -> (Bound<u64>, Bound<u64>) {
    let (a, b) = (rng.below(keys), rng.below(keys));
    let (low, high) = (a.min(b), a.max(b));
    let low = [Bound::Unbounded, Bound::Included(low), Bound::Excluded(low)][rng.below(3) as usize];
    // A bound behind the other one, so that the model's range does not panic.
    (low, [Bound::Unbounded, Bound::Included(high + 1)][rng.below(2) as usize])
}

/// A map that draws its numbers, and what is known of it.
struct Play<'m> {
    map: &'m VersionedMap<u64, Tracked>,
    model: Model,
    snapshots: Vec<Snapshot<&'m VersionedMap<u64, Tracked>>>,
    rng: Rng,
    keys: u64,
    live: Arc<AtomicI64>,
    retain: Retain,
    /// The least number that can be read without a snapshot.
    horizon: u64,
}

impl Play<'_> {
    fn value(&self, number: u64) -> Tracked {
        Tracked::new(number, &self.live)
    }

    fn step(&mut self, round: u64) {
        let (key, value) = (self.rng.below(self.keys), self.rng.below(1000));
        let latest = self.model.at(key, u64::MAX).map(|(number, _)| number);
        match self.rng.below(20) {
            0..10 => {
                let number = self.map.put(key, self.value(value)).unwrap();
                self.model.put(key, number, Some(value));
            }
            10..13 => {
                let number = self.map.delete(key).unwrap();
                assert_eq!(number.is_some(), latest.is_some());
                if let Some(number) = number {
                    self.model.put(key, number, None);
                }
            }
            13 => {
                let other = Some(self.rng.below(round + 1));
                let expected = if self.rng.below(2) == 0 { latest } else { other };
                match self.map.put_if_latest(key, expected, self.value(value)) {
                    Ok(number) => {
                        assert_eq!(expected, latest);
                        self.model.put(key, number, Some(value));
                    }
                    Err(PutError::Conflict { latest: found, value: back }) => {
                        assert!(expected != latest && found == latest);
                        assert_eq!(back.map(|back| back.number()), Some(value));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            14 => self.commit(),
            15 if self.snapshots.len() < 6 => self.snapshots.push(self.map.snapshot()),
            16 if !self.snapshots.is_empty() => {
                self.snapshots.swap_remove(self.rng.below(self.snapshots.len() as u64) as usize);
            }
            17 if self.retain == Retain::All => self.read_at(key),
            18 => {
                let number = self.rng.below(self.map.now() + 1) / 2;
                self.map.prune(number).unwrap();
                self.horizon = self.horizon.max(number);
            }
            _ => {}
        }
        let found = self.map.pin();
        let found = found.get_latest(key).map(|found| (found.number, found.value.number()));
        assert_eq!(found, self.model.at(key, u64::MAX));
        for snapshot in &self.snapshots {
            let found = snapshot.get_version(key).map(|(at, value)| (at, value.number()));
            assert_eq!(found, self.model.at(key, snapshot.number()), "round {round}");
        }
    }

    /// Reads at an old number, by a view and by a snapshot.
    fn read_at(&mut self, key: u64) {
        let number = self.rng.below(self.map.now() + 2);
        let view = self.map.pin();
        let found = view.get_at(key, number);
        let found = found.map(|found| found.map(|found| (found.number, found.value.number())));
        let snapshot = self.map.snapshot_at(number);
        let is_held = self.snapshots.iter().any(|snapshot| snapshot.number() == number);
        if number > self.map.now() {
            assert!(matches!(found, Err(ReadError::Future { .. })));
            assert!(matches!(snapshot, Err(ReadError::Future { .. })));
            return;
        }
        if number >= self.horizon {
            assert_eq!(found, Ok(self.model.at(key, number)));
        } else {
            assert!(matches!(found, Err(ReadError::Pruned { .. })));
            assert_eq!(snapshot.is_ok(), is_held);
        }
        if let Ok(snapshot) = snapshot {
            let found = snapshot.get_version(key).map(|(at, value)| (at, value.number()));
            assert_eq!(found, self.model.at(key, number));
            self.snapshots.push(snapshot);
        }
    }

    fn commit(&mut self) {
        let mut batch = self.map.batch();
        let writes: BTreeMap<u64, Option<u64>> = (0..self.rng.below(8))
            .map(|_| (self.rng.below(self.keys), self.rng.below(1000)))
            .map(|(key, value)| (key, Some(value).filter(|value| value % 4 > 0)))
            .collect();
        for (key, value) in &writes {
            batch.put(*key, self.value(7)); // the later write counts
            match value {
                Some(value) => batch.put(*key, self.value(*value)),
                None => batch.delete(*key),
            }
        }
        let number = batch.commit().unwrap();
        for (key, value) in writes {
            self.model.put(key, number, value);
        }
    }

    fn compare_ranges(&mut self) {
        for snapshot in &self.snapshots {
            let bounds = bounds(&mut self.rng, self.keys);
            let expected = self.model.range(bounds, snapshot.number());
            let found = snapshot.range(bounds).map(|(key, value)| (key, value.number()));
            assert_eq!(found.collect::<Vec<_>>(), expected);
            let back = snapshot.range(bounds).rev().map(|(key, value)| (key, value.number()));
            assert!(back.eq(expected.into_iter().rev()));
        }
    }
}

/// A map that draws its numbers agrees with the model, whatever snapshots are held, and drops each
/// value once.
#[test]
fn drawn_versions_agree() {
    for (seed, retain, keys) in
        [(1, Retain::Snapshots, 5), (2, Retain::Snapshots, 300), (3, Retain::All, 40)]
    {
        let map = map(retain);
        let (model, live) = {
            let (model, snapshots, live) = Default::default();
            let rng = Rng(seed);
            let mut play =
                Play { map: &map, model, snapshots, rng, keys, live, retain, horizon: 0 };
            for round in 0..work(20_000) {
                play.step(round);
                if round % 100 == 0 {
                    play.compare_ranges();
                }
            }
            (play.model, play.live)
        };
        let now = map.now();
        map.prune(now).unwrap();
        let left = model.0.keys().filter(|key| model.at(**key, now).is_some()).count();
        let mut map = map;
        assert_eq!((map.key_count(), map.check()), (left, Ok(left)));
        map.settle_memory();
        assert_eq!(live.load(Ordering::Relaxed), left as i64, "one version of each key is left");
        assert_eq!(map.memory().retained, 0);
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
}

/// Numbers that the caller gives arrive in any order. Each number reads the same as in the model.
#[test]
fn given_versions_agree_in_any_order() {
    for seed in 0..work(200).max(4) {
        let live: Arc<AtomicI64> = Arc::default();
        let map: VersionedMap<u64, Tracked, Given> = map(Retain::All);
        let (mut rng, mut model) = (Rng(seed), Model::default());
        let mut numbers: Vec<u64> = (1..=120).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, rng.below(at as u64 + 1) as usize);
        }
        for number in numbers {
            let (key, value) = (rng.below(5), Some(rng.below(1000)).filter(|n| n % 5 > 0));
            match value {
                Some(value) => map.put(key, number, Tracked::new(value, &live)).unwrap(),
                None => map.delete(key, number).unwrap(),
            }
            model.put(key, number, value);
            let again = map.put(key, number, Tracked::new(0, &live));
            assert!(matches!(again, Err(PutError::Exists { .. })), "{again:?}");
        }
        map.publish(120).unwrap();
        let view = map.pin();
        for key in 0..5 {
            for number in 0..=120 {
                let found = view.get_at(key, number).unwrap();
                let found = found.map(|found| (found.number, found.value.number()));
                assert_eq!(found, model.at(key, number), "seed {seed}, key {key}, {number}");
            }
            let history: Vec<_> = view.history(key).into_iter().map(|(number, _)| number).collect();
            let all = model.0.get(&key).into_iter().flat_map(|all| all.keys().rev().copied());
            assert!(all.eq(history));
        }
        drop(view);
        // All that readers from 60 on need is left.
        map.prune(60).unwrap();
        let view = map.pin();
        assert!(matches!(view.get_at(1, 59), Err(ReadError::Pruned { horizon: 60, .. })));
        assert!(matches!(view.get_at(1, 121), Err(ReadError::Future { now: 120, .. })));
        for (key, number) in (0..5).flat_map(|key| (60..=120).map(move |number| (key, number))) {
            let found = view.get_at(key, number).unwrap().map(|found| found.number);
            assert_eq!(found, model.at(key, number).map(|(number, _)| number));
        }
        let old = (0..5).flat_map(|key| view.history(key)).filter(|(number, _)| *number <= 60);
        assert!(old.count() <= 5);
        drop(view);
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
}

/// A range that owns its snapshot reads what was there, from both ends, on another thread.
#[test]
fn ranges_that_own_their_snapshot() {
    let map: Arc<VersionedMap<String, u64>> = Arc::new(VersionedMap::new());
    for number in 0..work(3000) {
        map.put(format!("key {number:05}"), number).unwrap();
    }
    let len = work(3000);
    let snapshot = map.snapshot_owned();
    let same = snapshot.clone();
    let mut range = snapshot.into_range("key 00010"..);
    assert_eq!(
        range.next_ref().map(|(key, value)| (key.to_string(), *value)),
        Some(("key 00010".into(), 10))
    );
    for number in (0..len).step_by(2) {
        map.delete(format!("key {number:05}")).unwrap();
        map.put(format!("key {number:05}/new"), 0).unwrap();
    }
    assert_eq!(map.snapshot_count(), 2);
    let reader = std::thread::spawn(move || {
        let last = range.next_back().unwrap();
        (last.1, range.map(|(_, value)| value).collect::<Vec<_>>())
    });
    let (last, rest) = reader.join().unwrap();
    assert_eq!(last, len - 1);
    assert!(rest.into_iter().eq(11..len - 1));
    assert!(same.iter().map(|(_, value)| *value).eq(0..len));
    let now = map.range_at(map.now(), ..).unwrap();
    assert_eq!(now.count() as u64, len);
    assert!(matches!(map.range_at(1, ..), Err(ReadError::Pruned { number: 1, .. })));
    drop(same);
    assert_eq!(map.snapshot_count(), 0);
}

/// A map of numbers takes one object of 16 bytes for each key that was written once.
#[test]
fn a_version_takes_eight_bytes_beside_its_value() {
    let map: VersionedMap<u64, u64, Drawn> = map(Retain::Snapshots);
    for key in 0..work(50_000) {
        map.put(key, key).unwrap();
    }
    let memory = map.memory();
    assert_eq!((memory.live, memory.retained), (16 * work(50_000) as usize, 0));
    for key in 0..work(50_000) {
        map.put(key, key).unwrap();
    }
    map.shrink();
    let memory = map.memory();
    assert_eq!((memory.live, memory.retained), (24 * work(50_000) as usize, 0));
    assert_eq!(memory.bytes, map.bytes());
}

/// Later writes drop what snapshots have held: keys that were deleted under a snapshot, and
/// versions that were replaced.
#[test]
fn writers_drop_what_snapshots_have_held() {
    let map: VersionedMap<u64, u64, Drawn> = map(Retain::Snapshots);
    let keys = if cfg!(miri) { 100 } else { 5000 };
    let retained = |map: &VersionedMap<u64, u64, Drawn>| map.memory().retained as u64;
    for key in 0..keys {
        map.put(key, 0).unwrap();
    }
    for round in 1..20 {
        let snapshot = map.snapshot();
        for key in 0..keys {
            map.put(key, round).unwrap();
        }
        assert!(retained(&map) >= 16 * keys, "the snapshot holds a version of each key");
        drop(snapshot);
        for key in 0..keys {
            map.put(key, round).unwrap();
        }
        assert!(retained(&map) <= 24 * (keys / 2 + 200), "{} bytes", retained(&map));
    }
    // Keys that come and go without a snapshot leave nothing behind, and nothing in the counts.
    for key in keys..10 * keys {
        map.put(key, 0).unwrap();
        map.delete(key).unwrap();
    }
    assert_eq!(map.key_count() as u64, keys);
    // Each key is deleted under a snapshot, and never written again.
    for key in keys..10 * keys {
        map.put(key, 0).unwrap();
        let snapshot = map.snapshot();
        map.delete(key).unwrap();
        drop(snapshot);
    }
    assert!(map.key_count() as u64 <= keys * 3 / 2 + 200, "{} keys", map.key_count());
    // An old snapshot, and young ones that come and go: one version of the key for the old one.
    let old = map.snapshot();
    for round in 0..work(20_000) {
        let young = map.snapshot();
        map.put(0, round).unwrap();
        drop(young);
    }
    assert!(map.pin().history(0).len() <= 4, "{:?}", map.pin().history(0));
    assert_eq!(old.get(0), Some(&19));
}

/// A range passes keys that its snapshot does not see, however many there are.
#[test]
fn ranges_pass_keys_that_are_not_seen() {
    let map: VersionedMap<u64, u64, Drawn> = map(Retain::Snapshots);
    let len = if cfg!(miri) { 1000 } else { 20_000 };
    for key in [0, len / 2, len - 1].into_iter().chain((0..len).step_by(777)) {
        map.put(key, key).unwrap();
    }
    let snapshot = map.snapshot();
    let expected: Vec<u64> = snapshot.iter().map(|(key, _)| key).collect();
    for key in 0..len {
        map.put(key, 0).unwrap();
    }
    assert!(
        snapshot
            .iter()
            .map(|(key, value)| (key, *value))
            .eq(expected.iter().map(|key| (*key, *key)))
    );
    assert!(snapshot.iter().rev().map(|(key, _)| key).eq(expected.iter().rev().copied()));
    let mut both = snapshot.iter();
    let mut found = Vec::new();
    while let (Some(front), back) = (both.next(), both.next_back()) {
        found.extend([Some(front), back].into_iter().flatten().map(|(key, _)| key));
    }
    found.sort_unstable();
    assert_eq!(found, expected);
}

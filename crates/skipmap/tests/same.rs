//! The same calls to `crossbeam-skiplist` and to this crate have the same results, also those to
//! entries that are kept, and to ranges of which some is taken before the map changes.

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::Bound;

/// Steele, Lea and Flood's `SplitMix64`.
struct Rng(Cell<u64>);

impl Rng {
    fn below(&self, bound: u64) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut word = self.0.get();
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % bound
    }

    fn bound<K>(&self, key: K) -> Bound<K> {
        match self.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    }
}

/// Defines `$name::calls`, which makes random calls to a map of `$package` and returns their
/// results.
macro_rules! calls {
    ($name:ident, $package:ident) => {
        mod $name {
            use super::{Debug, Rng};
            use $package::map::{Entry, Iter, Range};
            use $package::{SkipMap, SkipSet};

            fn shown<K: Debug, V: Debug>(entry: Option<&Entry<'_, K, V>>) -> String {
                let show = |entry: &Entry<'_, K, V>| {
                    format!("{:?} {:?} {}", entry.key(), entry.value(), entry.is_removed())
                };
                entry.map_or_else(|| "none".into(), show)
            }

            type Bounds<K> = (std::ops::Bound<K>, std::ops::Bound<K>);

            /// Calls to one map, and the entries and ranges that they keep.
            struct Calls<'m, K: Ord, F> {
                map: &'m SkipMap<K, u64>,
                key: F,
                keys: u64,
                rng: Rng,
                kept: Vec<Entry<'m, K, u64>>,
                all: Iter<'m, K, u64>,
                some: Option<Range<'m, K, Bounds<K>, K, u64>>,
                log: Vec<String>,
            }

            impl<'m, K, F> Calls<'m, K, F>
            where
                K: Ord + Clone + Debug + Send + 'static,
                F: Fn(u64) -> K,
            {
                fn key(&self) -> K {
                    (self.key)(self.rng.below(self.keys))
                }

                fn bounds(&self) -> Bounds<K> {
                    (self.rng.bound(self.key()), self.rng.bound(self.key()))
                }

                fn change(&self, value: u64) -> Option<Entry<'m, K, u64>> {
                    let (map, key) = (self.map, self.key());
                    match self.rng.below(12) {
                        0..=2 => Some(map.insert(key, value)),
                        3 => Some(map.get_or_insert(key, value)),
                        4 => Some(map.get_or_insert_with(key, || value)),
                        5 => Some(map.compare_insert(key, value, |old| old % 2 == 0)),
                        6..=8 => map.remove(&key),
                        9 if self.rng.below(8) == 0 => map.pop_front(),
                        10 if self.rng.below(8) == 0 => map.pop_back(),
                        11 if self.rng.below(60) == 0 => {
                            map.clear();
                            None
                        }
                        _ => None,
                    }
                }

                fn look(&mut self) -> Option<Entry<'m, K, u64>> {
                    let (map, key) = (self.map, self.key());
                    match self.rng.below(7) {
                        0 => map.front(),
                        1 => map.back(),
                        2 => map.get(&key),
                        3 => map.lower_bound(self.rng.bound(&key)),
                        4 => map.upper_bound(self.rng.bound(&key)),
                        5 => {
                            let keys = map.range(self.bounds()).map(|entry| entry.key().clone());
                            self.log.push(format!("{:?}", keys.collect::<Vec<_>>()));
                            None
                        }
                        _ => {
                            let is_there = map.contains_key(&key);
                            self.log.push(format!("{} {} {is_there}", map.len(), map.is_empty()));
                            None
                        }
                    }
                }

                fn walk(&mut self) -> Option<Entry<'m, K, u64>> {
                    if self.rng.below(80) == 0 {
                        self.all = self.map.iter();
                    }
                    if self.some.is_none() || self.rng.below(80) == 0 {
                        self.some = Some(self.map.range(self.bounds()));
                    }
                    let some = self.some.as_mut().expect("made above");
                    match self.rng.below(6) {
                        0 => self.all.next(),
                        1 => self.all.next_back(),
                        2 => some.next_back(),
                        _ => some.next(),
                    }
                }

                /// Makes a call to an entry that is kept.
                fn call_entry(&mut self) {
                    if self.kept.is_empty() {
                        return;
                    }
                    let at = self.rng.below(self.kept.len() as u64) as usize;
                    let entry = &mut self.kept[at];
                    match self.rng.below(8) {
                        0 => self.log.push(entry.remove().to_string()),
                        1 => self.log.push(shown(entry.next().as_ref())),
                        2 => self.log.push(shown(entry.prev().as_ref())),
                        3 => self.log.push(entry.move_next().to_string()),
                        4 => self.log.push(entry.move_prev().to_string()),
                        5 => {
                            let copy = entry.clone();
                            self.kept.push(copy);
                        }
                        _ => {}
                    }
                    self.log.push(shown(self.kept.get(at)));
                }
            }

            pub(super) fn calls<K: Ord + Clone + Debug + Send + 'static>(
                seed: u64,
                number: u64,
                key: impl Fn(u64) -> K,
            ) -> Vec<String> {
                let map: SkipMap<K, u64> = SkipMap::new();
                let keys = [3, 40, 400][seed as usize % 3];
                let (rng, kept, log) = (Rng(seed.into()), Vec::new(), Vec::new());
                let (all, some) = (map.iter(), None);
                let mut calls = Calls { map: &map, key, keys, rng, kept, all, some, log };
                for call in 0..number {
                    let entry = match calls.rng.below(20) {
                        0..=10 => calls.change(call),
                        11..=15 => calls.look(),
                        _ => calls.walk(),
                    };
                    calls.log.push(shown(entry.as_ref()));
                    calls.kept.extend(entry);
                    if calls.kept.len() > 12 {
                        calls.kept.swap_remove(calls.rng.below(12) as usize);
                    }
                    calls.call_entry();
                }
                let mut log = std::mem::take(&mut calls.log);
                drop(calls);
                log.push(format!("{map:?} {:?}", map.iter().collect::<Vec<_>>()));
                log.push(format!("{:?}", map.iter().rev().map(|e| *e.value()).collect::<Vec<_>>()));
                log.push(format!("{:?}", map.into_iter().collect::<Vec<_>>()));
                log
            }

            pub(super) fn of_sets(texts: &[&'static str]) -> Vec<String> {
                let set: SkipSet<&str> = texts.iter().copied().collect();
                let mut log = vec![format!("{set:?} {:?}", set.iter().collect::<Vec<_>>())];
                let first = set.front().expect("it has some");
                log.push(format!("{:?} {} {}", first, first.len(), set.len()));
                log.push(format!("{:?}", set.remove("b").map(|e| e.is_removed())));
                let range = set.range("b".."x");
                log.push(format!("{:?}", range.rev().map(|e| e.value().len()).collect::<Vec<_>>()));
                log.push(format!(
                    "{:?} {}",
                    set.pop_back().map(|e| *e.value()),
                    first.is_removed()
                ));
                drop(first);
                log.push(format!("{:?}", set.into_iter().collect::<Vec<_>>()));
                log
            }
        }
    };
}

calls!(theirs, crossbeam_skiplist);
calls!(ours, silvics_skipmap);

/// Two logs are the same.
fn compare<K: Ord + Clone + Debug + Send + 'static>(key: impl Fn(u64) -> K) {
    let (seeds, number) = if cfg!(miri) { (3, 150) } else { (60, 3000) };
    for seed in 0..seeds {
        let (ours, theirs) = (ours::calls(seed, number, &key), theirs::calls(seed, number, &key));
        for (line, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "line {line} of seed {seed}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn maps_of_integers_behave_the_same() {
    compare(|n| n);
    compare(|n| n as i32 - 20);
}

#[test]
fn maps_of_strings_behave_the_same() {
    compare(|n| n.to_string());
    compare(|n| ["", "a common prefix "][n as usize % 2].to_string() + &n.to_string());
}

/// A type without a head, and with a large alignment.
#[test]
fn maps_of_other_types_behave_the_same() {
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(align(64))]
    struct Aligned(u8, u64);
    compare(|n| Aligned((n % 3) as u8, n));
    compare(|n| (n % 7, Box::new(n)));
    compare(|n| u128::from(n) << 70);
}

/// Keys that are integers, looked up by another type.
#[test]
fn integers_are_found_by_other_forms() {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    #[repr(transparent)]
    struct Other(i64);
    impl std::borrow::Borrow<Other> for i64 {
        fn borrow(&self) -> &Other {
            // SAFETY: the type has the layout of its field.
            unsafe { &*std::ptr::from_ref(self).cast() }
        }
    }
    let (ours, theirs) = (silvics_skipmap::SkipMap::new(), crossbeam_skiplist::SkipMap::new());
    for n in -20..20 {
        ours.insert(3 * n, n);
        theirs.insert(3 * n, n);
    }
    for n in -70..70 {
        let (low, high) = (Bound::Excluded(Other(n)), Bound::Included(Other(n + 9)));
        assert_eq!(ours.get(&Other(n)).is_some(), theirs.get(&Other(n)).is_some());
        let lower = ours.lower_bound(Bound::Included(&Other(n))).map(|entry| *entry.value());
        let theirs_lower = theirs.lower_bound(Bound::Included(&Other(n)));
        assert_eq!(lower, theirs_lower.map(|entry| *entry.value()));
        let range = ours.range((low, high)).map(|entry| *entry.value()).collect::<Vec<_>>();
        let (low, high) = (Bound::Excluded(Other(n)), Bound::Included(Other(n + 9)));
        let theirs_range = theirs.range((low, high)).map(|entry| *entry.value());
        assert_eq!(range, theirs_range.collect::<Vec<_>>());
    }
}

#[test]
fn sets_behave_the_same() {
    for texts in [&["a"][..], &["c", "a", "bb", "a", "b", "y"], &["zz", "b", "a"]] {
        assert_eq!(ours::of_sets(texts), theirs::of_sets(texts));
    }
}

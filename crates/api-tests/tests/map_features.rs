//! Maps and sets with other crates: formats of `serde`, threads of `rayon`.

/// Stops the writers when it is dropped, also if the test fails.
struct Last<'a>(&'a silvics_sync::atomic::AtomicBool);

impl Drop for Last<'_> {
    fn drop(&mut self) {
        self.0.store(true, silvics_sync::atomic::Ordering::Relaxed);
    }
}

mod formats {
    use super::Last;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize, Serializer};
    use serde_test::{Configure, Token, assert_de_tokens, assert_ser_tokens};
    use silvics::map::{MapIndex, Value};
    use silvics::{Key, Map, NatarajanTree, Set, SkipList};
    use silvics_sync::atomic::{AtomicBool, Ordering};
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    #[derive(Key, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
    struct Message {
        room: String,
        number: u64,
    }

    impl Serialize for MessageRef<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            <Message as Key>::to_owned(self.clone()).serialize(serializer)
        }
    }

    fn message(room: &str, number: u64) -> Message {
        Message { room: room.into(), number }
    }

    /// A map is written as a `BTreeMap` is, and read back unchanged.
    fn comes_back<K, V, I>(entries: impl IntoIterator<Item = (K, V)>)
    where
        K: Key + Serialize + DeserializeOwned + Ord + Debug + Clone,
        for<'g> K::Ref<'g>: Serialize,
        V: Value + Serialize + DeserializeOwned + Clone + PartialEq + Debug,
        I: MapIndex<Key = K::Form>,
    {
        let model: BTreeMap<K, V> = entries.into_iter().collect();
        let map = Map::<K, V, I>::builder().index::<I>().build().unwrap();
        map.extend(model.iter().map(|(key, value)| (key, value.clone())));
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(json, serde_json::to_string(&model).unwrap());
        let back: Map<K, V, I> = serde_json::from_str(&json).unwrap();
        let back: Vec<(K, V)> =
            back.pin().iter().map(|(key, value)| (K::to_owned(key), V::clone(&value))).collect();
        assert!(back.into_iter().eq(model));
    }

    #[test]
    fn maps_come_back() {
        let numbers = || (0..500u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n));
        comes_back::<u64, u64, silvics::WordTree<u64>>(numbers());
        comes_back::<u64, String, SkipList<u64>>(numbers().map(|(k, v)| (k, v.to_string())));
        comes_back::<u64, Option<Vec<u8>>, NatarajanTree>(
            numbers().map(|(k, v)| (k, Some(vec![v as u8]))),
        );
        comes_back::<i32, (), silvics::WordTree<u64>>(numbers().map(|(k, _)| (k as i32, ())));
        let texts = || numbers().map(|(k, v)| (format!("\0{}\"ü", k % 1000), v));
        comes_back::<String, u64, silvics::BlockTree<[u8]>>(texts());
        comes_back::<Box<str>, String, SkipList<[u8]>>(
            texts().map(|(k, v)| (k.as_str().into(), v.to_string())),
        );
        comes_back::<u64, u64, silvics::WordTree<u64>>([]);
    }

    #[test]
    fn sets_of_tuples_and_of_structs_come_back() {
        let keys = || (0..300u64).map(|n| (format!("{}\0\u{1}", n % 17), n));
        let set: Set<(String, u64)> = keys().collect();
        let json = serde_json::to_string(&set).unwrap();
        let mut sorted: Vec<_> = keys().collect();
        sorted.sort();
        assert_eq!(json, serde_json::to_string(&sorted).unwrap());
        let back: Set<(String, u64)> = serde_json::from_str(&json).unwrap();
        assert!(back.pin().iter().eq(set.pin().iter()));

        let set: Set<Message> = keys().map(|(room, number)| Message { room, number }).collect();
        let json = serde_json::to_string(&set).unwrap();
        let sorted: Vec<_> = sorted.iter().map(|(room, number)| message(room, *number)).collect();
        assert_eq!(json, serde_json::to_string(&sorted).unwrap());
        let back: Set<Message> = serde_json::from_str(&json).unwrap();
        assert!(back.pin().iter().eq(set.pin().iter()));
    }

    #[test]
    fn a_struct_with_maps_derives_it() {
        #[derive(Serialize, Deserialize)]
        struct State {
            stock: Map<String, u64>,
            seen: Set<u32>,
        }
        let json = r#"{"stock":{"oak":1,"ash":2},"seen":[3,1,2,3]}"#;
        let state: State = serde_json::from_str(json).unwrap();
        let sorted = r#"{"stock":{"ash":2,"oak":1},"seen":[1,2,3]}"#;
        assert_eq!(serde_json::to_string(&state).unwrap(), sorted);
    }

    /// A map that equals every map with the same entries.
    #[derive(Deserialize, Debug)]
    #[serde(transparent)]
    struct Same(Map<(String, u64), u64>);

    impl PartialEq for Same {
        fn eq(&self, other: &Self) -> bool {
            self.0.pin().iter().eq(other.0.pin().iter())
        }
    }

    #[test]
    fn formats_for_machines_get_lengths_and_keys_of_any_kind() {
        let map: Map<(String, u64), u64> = [(("b", 2), 4), (("a", 1), 3)].into_iter().collect();
        let entry = |text, number, value| {
            let tuple = [Token::Tuple { len: 2 }, Token::BorrowedStr(text), Token::U64(number)];
            tuple.into_iter().chain([Token::TupleEnd, Token::U64(value)])
        };
        let tokens = |len| {
            let entries = entry("a", 1, 3).chain(entry("b", 2, 4));
            let all = [Token::Map { len }].into_iter().chain(entries).chain([Token::MapEnd]);
            all.collect::<Vec<_>>()
        };
        assert_ser_tokens(&(&map).compact(), &tokens(Some(2)));
        assert_ser_tokens(&(&map).readable(), &tokens(None));
        // JSON has no map with such keys, so the format returns an error.
        assert!(serde_json::to_string(&map).is_err());
        assert_de_tokens(&Same(map), &tokens(Some(2)));

        let set: Set<u64> = [2, 1].into_iter().collect();
        let keys = |len| [Token::Seq { len }, Token::U64(1), Token::U64(2), Token::SeqEnd];
        assert_ser_tokens(&(&set).compact(), &keys(Some(2)));
        assert_ser_tokens(&(&set).readable(), &keys(None));
    }

    #[test]
    fn the_last_of_the_same_key_wins() {
        let map: Map<u64, String> = serde_json::from_str(r#"{"1":"a","2":"b","1":"c"}"#).unwrap();
        assert_eq!(map.len(), 2);
        assert_eq!(*map.get(1).unwrap(), "c");
    }

    #[test]
    fn what_cannot_be_had_is_an_error_and_no_panic() {
        let fits = "k".repeat(512 << 10);
        let map: Map<String, u64> = serde_json::from_str(&format!(r#"{{"{fits}":1}}"#)).unwrap();
        assert_eq!(map.len(), 1);
        let refused = map.pin().try_upsert(format!("{fits}k"), 1).unwrap_err().to_string();
        let map = serde_json::from_str::<Map<String, u64>>(&format!(r#"{{"a":0,"{fits}k":1}}"#));
        let error = map.map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&refused), "{error}");
        let set = serde_json::from_str::<Set<String>>(&format!(r#"["a","{fits}k"]"#));
        let error = set.map(drop).unwrap_err().to_string();
        assert!(error.starts_with(&refused), "{error}");

        let error = |error: serde_json::Result<()>| error.unwrap_err().to_string();
        let map = |json| serde_json::from_str::<Map<u64, u64>>(json).map(drop);
        assert!(error(map("[1]")).contains("expected a map"));
        assert!(error(map(r#"{"1":"no number"}"#)).contains("expected u64"));
        assert!(error(map(r#"{"1":1"#)).contains("EOF"));
        let set = serde_json::from_str::<Set<u64>>(r#"{"1":1}"#).map(drop);
        assert!(error(set).contains("expected a sequence of keys"));
    }

    #[test]
    fn what_stays_is_written_once_while_others_write() {
        let map: Map<u64, String> = (0..2000).map(|n| (2 * n, "stays".to_string())).collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in (0..2000).cycle() {
                    map.insert(2 * n + 1, "comes".to_string());
                    map.remove(2 * ((n + 1000) % 2000) + 1);
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let _last = Last(&done);
            for _ in 0..20 {
                let back: Map<u64, String> =
                    serde_json::from_str(&serde_json::to_string(&map).unwrap()).unwrap();
                let even = back.pin().keys().filter(|key| key % 2 == 0).collect::<Vec<_>>();
                assert!(even.into_iter().eq((0..2000).map(|n| 2 * n)));
            }
        });
    }
}

mod threads {
    use super::Last;
    use rayon::prelude::*;
    use rayon::{ThreadPool, ThreadPoolBuilder};
    use silvics::map::{MapIndex, Value};
    use silvics::{Check, Key, Map, NatarajanTree, Set, SkipList};
    use silvics_api_tests::Counted;
    use silvics_sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
    use std::fmt::Debug;
    use std::ops::Bound;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::thread::yield_now;
    use std::time::{Duration, Instant};

    /// More threads than processors, so that the work is divided often.
    fn pool() -> ThreadPool {
        ThreadPoolBuilder::new().num_threads(8).build().unwrap()
    }

    fn is_the_scan<K, V, I>(entries: impl IntoIterator<Item = (K, V)>)
    where
        K: Key + Send + Sync + Debug + PartialEq,
        for<'g> K::Ref<'g>: Send,
        V: Value + Clone + PartialEq + Debug,
        I: MapIndex<Key = K::Form>,
    {
        let map = Map::<K, V, I>::builder().index::<I>().build().unwrap();
        map.extend(entries);
        let scan: Vec<(K, V)> =
            map.pin().iter().map(|(key, value)| (K::to_owned(key), V::clone(&value))).collect();
        let view = map.pin_owned();
        let owned = |(key, value): (K::Ref<'_>, silvics::ValueRef<'_, V>)| {
            (K::to_owned(key), V::clone(&value))
        };
        pool().install(|| {
            assert_eq!(view.par_iter().map(owned).collect::<Vec<_>>(), scan);
            assert_eq!(view.par_iter().count(), scan.len());
            for at in [0, 1, scan.len() / 3, scan.len().saturating_sub(1)] {
                let Some((key, _)) = scan.get(at) else { continue };
                let from = view.par_range(key..).map(owned).collect::<Vec<_>>();
                assert_eq!(from, scan[at..]);
                let to = view.par_range(..key).map(owned).collect::<Vec<_>>();
                assert_eq!(to, scan[..at]);
                let one = view.par_range(key..=key).map(owned).collect::<Vec<_>>();
                assert_eq!(one, scan[at..=at]);
                let behind = (Bound::Excluded(key), Bound::Unbounded);
                assert_eq!(view.par_range(behind).count(), scan.len() - at - 1);
                let last = &scan[scan.len() - 1].0;
                assert_eq!(view.par_range(last..key).count(), 0);
            }
        });
    }

    fn scattered(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn it_is_the_scan_of_numbers() {
        let dense = || (0..3000u64).map(|n| (n, n));
        let sparse = || (0..3000).map(|n| (scattered(n), n.to_string()));
        is_the_scan::<u64, u64, silvics::WordTree<u64>>(dense());
        is_the_scan::<u64, String, silvics::WordTree<u64>>(sparse());
        is_the_scan::<u64, String, SkipList<u64>>(sparse());
        is_the_scan::<u64, u64, NatarajanTree>(dense());
        is_the_scan::<i128, String, silvics::WordTree<u128>>(
            sparse().map(|(k, v)| (i128::from(k.cast_signed()) << 40, v)),
        );
        // All keys but one are close to each other.
        is_the_scan::<u64, u64, silvics::WordTree<u64>>(dense().chain([(u64::MAX, 0)]));
        is_the_scan::<u64, String, silvics::WordTree<u64>>([]);
        is_the_scan::<u64, String, silvics::WordTree<u64>>([(u64::MAX, String::new())]);
    }

    #[test]
    fn it_is_the_scan_of_strings() {
        let texts = || (0..3000).map(|n| (format!("user/{}", scattered(n)), n));
        is_the_scan::<String, u64, silvics::BlockTree<[u8]>>(texts());
        is_the_scan::<String, u64, SkipList<[u8]>>(texts());
        is_the_scan::<(String, u64), u64, silvics::BlockTree<[u8]>>(
            (0..3000).map(|n| ((format!("\0{}", n % 13), scattered(n)), n)),
        );
        // Each key is a prefix of the next one; in one of the runs, the added bytes are zeros.
        let nested = |byte| (0..600).map(move |len| (vec![byte; len], len));
        is_the_scan::<Vec<u8>, usize, silvics::BlockTree<[u8]>>(nested(0).chain(nested(b'a')));
        is_the_scan::<Vec<u8>, usize, SkipList<[u8]>>(nested(0).chain(nested(u8::MAX)));
        is_the_scan::<String, String, silvics::BlockTree<[u8]>>([]);
        is_the_scan::<String, u64, silvics::BlockTree<[u8]>>([(String::new(), 1)]);
    }

    #[test]
    fn sets_by_their_map_and_answers_that_end_it() {
        let set: Set<u64> = (0..10_000).collect();
        let view = set.map().pin_owned();
        pool().install(|| {
            assert_eq!(view.par_iter().map(|(key, _)| key).sum::<u64>(), 49_995_000);
            assert_eq!(view.par_iter().find_first(|(key, _)| *key > 77).unwrap().0, 78);
            assert_eq!(view.par_iter().find_last(|(key, _)| *key < 77).unwrap().0, 76);
            // The thread that finds an entry stops, and so do the others.
            let looked = AtomicU64::new(0);
            let found = view.par_iter().find_any(|(key, _)| {
                looked.fetch_add(1, Ordering::Relaxed);
                assert!(*key < 10_000);
                true
            });
            assert!(found.is_some());
            assert!(looked.load(Ordering::Relaxed) < 1000);
        });
    }

    /// The later one of equal keys wins, and each replaced value is dropped.
    fn is_collected<K, I>(key: impl Fn(u64) -> K + Sync)
    where
        K: Key + Send + Sync + Debug + Ord,
        I: MapIndex<Key = K::Form> + Check,
    {
        let live = Arc::new(AtomicI64::new(0));
        let entry = |n| (key(scattered(n % 30_000)), Counted::new(n, &live));
        let mut map: Map<K, Counted, I> =
            pool().install(|| (0..50_000).into_par_iter().map(entry).collect());
        assert_eq!(map.check(), Ok(30_000));
        // A pin of another test holds replaced values back while it lasts.
        for _ in 0..1000 {
            map.settle();
            if live.load(Ordering::Relaxed) == 30_000 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(live.load(Ordering::Relaxed), 30_000);
        for n in 0..30_000 {
            let last = if n < 20_000 { n + 30_000 } else { n };
            assert_eq!(map.get(key(scattered(n))).unwrap().number, last);
        }
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn maps_are_collected() {
        is_collected::<u64, silvics::WordTree<u64>>(|n| n);
        is_collected::<String, silvics::BlockTree<[u8]>>(|n| format!("user/{n}"));
        is_collected::<u64, SkipList<u64>>(|n| n);
        let set: Set<u64> = (0..1000u64).into_par_iter().map(|n| n % 600).collect();
        assert!(set.pin().iter().eq(0..600));
    }

    /// Fails unless all removed values are dropped: no scan has left a pin behind. An ending thread
    /// pins for a moment, perhaps after the thread that waits for it, or drops its pool, has
    /// continued.
    fn all_are_dropped(map: &mut impl Check, live: &AtomicI64) {
        let begun = Instant::now();
        while live.load(Ordering::Relaxed) > 0 && begun.elapsed() < Duration::from_secs(20) {
            map.settle();
            yield_now();
        }
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }

    /// The keys `key(2 n)` stay, and get new values. The keys between them come and go.
    fn what_stays_is_seen_once<K, I>(key: impl Fn(u64) -> K + Sync)
    where
        K: Key + Send + Sync + Debug + PartialEq + Ord,
        for<'g> K::Ref<'g>: Send,
        I: MapIndex<Key = K::Form> + Check,
    {
        const KEYS: u64 = 2000;
        let live = Arc::new(AtomicI64::new(0));
        let mut map = Map::<K, Counted, I>::builder().index::<I>().build().unwrap();
        map.extend((0..KEYS).map(|n| (key(2 * n), Counted::new(2 * n, &live))));
        let mut stay: Vec<K> = (0..KEYS).map(|n| key(2 * n)).collect();
        stay.sort();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (map, live, key, done) = (&map, &live, &key, &done);
                scope.spawn(move || {
                    for n in (0..KEYS).cycle() {
                        let n = n ^ writer;
                        map.insert(key(2 * n + 1), Counted::new(2 * n + 1, live));
                        map.insert(key(2 * n), Counted::new(2 * n, live));
                        map.remove(key(2 * ((n + KEYS / 2) % KEYS) + 1));
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let _last = Last(&done);
            let pool = pool();
            for _ in 0..25 {
                let view = map.pin_owned();
                let seen: Vec<_> = pool.install(|| view.par_iter().collect());
                // All entries are still readable, on another thread than the one that read them.
                let seen = seen.into_iter().map(|(key, value)| (K::to_owned(key), value.number));
                let seen: Vec<(K, u64)> = seen.collect();
                assert!(seen.iter().all(|(k, number)| *k == key(*number)));
                assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
                let even = seen.iter().filter(|(_, number)| number % 2 == 0).map(|(key, _)| key);
                assert!(even.eq(&stay));
            }
        });
        map.clear();
        all_are_dropped(&mut map, &live);
        map.check().unwrap();
    }

    #[test]
    fn what_stays_is_seen_once_while_others_write() {
        what_stays_is_seen_once::<u64, silvics::WordTree<u64>>(|n| n);
        what_stays_is_seen_once::<u64, SkipList<u64>>(scattered);
        what_stays_is_seen_once::<u64, NatarajanTree>(scattered);
        what_stays_is_seen_once::<String, silvics::BlockTree<[u8]>>(|n| format!("user/{n}"));
        what_stays_is_seen_once::<(String, u64), SkipList<[u8]>>(|n| ((n % 7).to_string(), n));
    }

    #[test]
    fn what_is_removed_on_the_way_stays_readable_and_is_dropped_once() {
        let live = Arc::new(AtomicI64::new(0));
        let mut map: Map<String, Counted> = Map::new();
        map.extend((0..5000).map(|n| (n.to_string(), Counted::new(n, &live))));
        let view = map.pin_owned();
        let remove = |(key, _): &(&str, _)| assert!(view.remove(*key).is_some());
        let entries: Vec<_> = pool().install(|| view.par_iter().inspect(remove).collect());
        assert!(map.is_empty());
        assert_eq!(entries.len(), 5000);
        assert!(entries.iter().all(|(key, value)| *key == value.number.to_string()));
        drop(entries);
        drop(view);
        all_are_dropped(&mut map, &live);
    }

    #[test]
    fn a_panic_leaves_no_pin_behind() {
        let live = Arc::new(AtomicI64::new(0));
        let mut map: Map<u64, Counted> = Map::new();
        map.extend((0..5000).map(|n| (n, Counted::new(n, &live))));
        let pool = pool();
        let view = map.pin_owned();
        let scan = || view.par_iter().for_each(|(key, _)| assert_ne!(key, 1234, "as it should"));
        assert!(catch_unwind(AssertUnwindSafe(|| pool.install(scan))).is_err());
        assert_eq!(pool.install(|| view.par_iter().count()), 5000);
        drop(view);
        map.clear();
        all_are_dropped(&mut map, &live);
    }
}

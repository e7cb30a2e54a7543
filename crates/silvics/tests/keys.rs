//! Encodings of keys: their order is that of the type, and decoding is exact, for each type of key, alone and as a part
//! of another, whatever follows.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

use proptest::collection::vec;
use proptest::prelude::*;
use silvics::key::{Decoder, Encoder, FormRef};
use silvics::{AsKey, AsPrefix, IndexKey, Key};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

type OwnedForm<K> = <<K as Key>::Form as IndexKey>::Owned;

/// The form of a key, kept.
fn form<K: Key>(key: &impl AsKey<K>) -> OwnedForm<K> {
    key.with_form(<K::Form as IndexKey>::to_owned)
}

fn written<K: Key>(key: &impl AsKey<K>) -> Vec<u8> {
    Encoder::encode(|to| key.write(to), <[u8]>::to_vec)
}

/// Judges two keys, whose order is `order`.
fn judge<K: Key + Debug>(
    [a, b]: [&K; 2],
    order: Ordering,
    same: impl Fn(&K, &K) -> bool,
    rest: [&[u8]; 2],
) {
    let forms = [form::<K>(a), form::<K>(b)];
    assert_eq!(forms[0].cmp(&forms[1]), order, "the order of {a:?} and {b:?}");
    let lent: FormRef<'_, K> = <K::Form as IndexKey>::borrow(&forms[0]);
    let key = K::from_form(lent);
    assert_eq!(form::<K>(&key), forms[0], "what is lent of {a:?} is the same key");
    assert!(same(&K::to_owned(key), a), "{a:?} comes back");

    let parts = [(a, rest[0]), (b, rest[1])].map(|(key, rest)| {
        let mut part = written::<K>(key);
        part.extend_from_slice(rest);
        part
    });
    let expected = if order.is_eq() { rest[0].cmp(rest[1]) } else { order };
    assert_eq!(parts[0].cmp(&parts[1]), expected, "the order of parts {a:?} and {b:?}");
    let mut from = Decoder::new(&parts[0]);
    let part = K::read(&mut from);
    assert_eq!(written::<K>(&part), written::<K>(a), "what is lent of part {a:?} is the same key");
    assert!(same(&K::part_to_owned(part), a), "part {a:?} comes back");
    assert_eq!(from.take(rest[0].len()), rest[0], "and nothing behind it");
    assert!(std::panic::catch_unwind(move || from.take(1).len()).is_err(), "which is the end");
}

/// Pairs that differ, pairs that are the same, and pairs that begin alike.
fn pairs<K: Clone + Debug>(key: impl Strategy<Value = K> + Clone) -> impl Strategy<Value = [K; 2]> {
    prop_oneof![
        4 => (key.clone(), key.clone()).prop_map(|(a, b)| [a, b]),
        1 => key.prop_map(|a| [a.clone(), a]),
    ]
}

fn keeps_order<K: Key + Ord + Clone + Debug>(key: impl Strategy<Value = K> + Clone) {
    let few = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(few);
    let rest = || vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..3);
    let judged = |([a, b], x, y): ([K; 2], Vec<u8>, Vec<u8>)| {
        judge([&a, &b], a.cmp(&b), |x, y| x == y, [&x, &y]);
        Ok(())
    };
    runner.run(&(pairs(key), rest(), rest()), judged).unwrap();
}

/// Strings of few different bytes, the special ones among them, so that many begin alike.
fn bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    vec(prop_oneof![Just(0), Just(1), Just(2), Just(255), any::<u8>()], 0..6)
}

fn text() -> impl Strategy<Value = String> + Clone {
    let characters = prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('é'), any::<char>()];
    vec(characters, 0..6).prop_map(String::from_iter)
}

macro_rules! integers {
    ($($name:ident: $type:ty;)*) => {$(
        #[test]
        fn $name() {
            keeps_order::<$type>(prop_oneof![
                any::<$type>(), Just(0), Just(1), Just(<$type>::MIN), Just(<$type>::MAX),
                Just((0 as $type).wrapping_sub(1)), Just(<$type>::MAX / 2 + 1),
            ]);
        }
    )*};
}

integers! {
    u8s: u8; u16s: u16; u32s: u32; u64s: u64; u128s: u128; usizes: usize;
    i8s: i8; i16s: i16; i32s: i32; i64s: i64; i128s: i128; isizes: isize;
}

#[test]
fn bools_and_chars() {
    keeps_order(any::<bool>());
    keeps_order(prop_oneof![
        any::<char>(),
        Just('\0'),
        Just(char::MAX),
        Just('\u{d7ff}'),
        Just('\u{e000}')
    ]);
}

macro_rules! floats {
    ($($name:ident: $type:ident;)*) => {$(
        #[test]
        fn $name() {
            let special = [
                0.0, -0.0, 1.0, -1.0, $type::INFINITY, $type::NEG_INFINITY, $type::NAN, -$type::NAN,
                $type::MIN, $type::MAX, $type::MIN_POSITIVE, -$type::MIN_POSITIVE, $type::from_bits(1),
                $type::from_bits($type::NAN.to_bits() | 1),
            ];
            let same = |a: &$type, b: &$type| a.to_bits() == b.to_bits();
            for a in special {
                for b in special {
                    judge([&a, &b], a.total_cmp(&b), same, [&[], &[7]]);
                }
            }
            proptest!(|(a: $type, b: $type)| judge([&a, &b], a.total_cmp(&b), same, [&[1], &[]]));
        }
    )*};
}

floats! { f32s: f32; f64s: f64; }

#[test]
fn strings() {
    keeps_order(text());
    keeps_order(text().prop_map(String::into_boxed_str));
    keeps_order(text().prop_map(Arc::<str>::from));
}

#[test]
fn byte_strings() {
    keeps_order(bytes());
    keeps_order(bytes().prop_map(Vec::into_boxed_slice));
    keeps_order(bytes().prop_map(Arc::<[u8]>::from));
    keeps_order(vec(any::<u8>(), 100..300)); // longer than what is encoded on the stack
}

#[test]
fn arrays() {
    keeps_order(any::<[u8; 5]>());
    keeps_order(any::<[u8; 0]>());
    keeps_order(any::<[i16; 3]>());
    keeps_order([text(), text()]);
    keeps_order([bytes(), bytes(), bytes()]);
}

#[test]
fn tuples() {
    keeps_order((any::<i32>(),));
    keeps_order((text(), any::<u64>()));
    keeps_order((any::<bool>(), text()));
    keeps_order((bytes(), bytes()));
    keeps_order((bytes(), (text(), any::<i8>()), any::<char>()));
    keeps_order((vec(any::<u8>(), 100..300), bytes(), any::<u128>()));
    let bit = any::<bool>;
    keeps_order((text(), bit(), bit(), bit(), bit(), bit(), bit(), bit(), bit(), text()));
}

#[test]
fn options() {
    keeps_order(any::<Option<u32>>());
    keeps_order(proptest::option::of(text()));
    keeps_order((proptest::option::of(bytes()), any::<Option<Option<bool>>>()));
}

#[cfg(feature = "derive")]
mod derived {
    use super::*;
    use std::borrow::Cow;

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Id(i64);

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Name {
        text: String,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Message {
        room: Name,
        from: Option<String>,
        id: Id,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[key(lent = LentPair)]
    struct Pair<A, B>(A, B)
    where
        A: Ord;

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Nothing;

    const FIRST: i16 = -7;

    /// In the order of their numbers, which is not that of their names.
    #[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(i16)]
    enum Level {
        High = 300,
        Higher,
        Low = FIRST,
        Lower,
        Least = i16::MIN,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    enum Event {
        Closed = 9,
        Opened { by: String, at: u64 } = 2,
        Moved(Level, i32),
        Renamed(String) = 1,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Either<L, R> {
        Left(L),
        Right(R),
    }

    fn level() -> impl Strategy<Value = Level> + Clone {
        use Level::{High, Higher, Least, Low, Lower};
        proptest::sample::select(vec![High, Higher, Low, Lower, Least])
    }

    fn event() -> impl Strategy<Value = Event> + Clone {
        prop_oneof![
            Just(Event::Closed),
            (text(), any::<u64>()).prop_map(|(by, at)| Event::Opened { by, at }),
            (level(), any::<i32>()).prop_map(|(level, by)| Event::Moved(level, by)),
            text().prop_map(Event::Renamed),
        ]
    }

    fn message() -> impl Strategy<Value = Message> + Clone {
        let some = (text(), proptest::option::of(text()), any::<i64>());
        some.prop_map(|(text, from, id)| Message { room: Name { text }, from, id: Id(id) })
    }

    #[test]
    fn structs() {
        keeps_order(any::<i64>().prop_map(Id));
        keeps_order(text().prop_map(|text| Name { text }));
        keeps_order(message());
        keeps_order(Just(Nothing));
        keeps_order((text(), bytes()).prop_map(|(a, b)| Pair(a, b)));
    }

    #[test]
    fn enums() {
        keeps_order(level());
        keeps_order(event());
        keeps_order(prop_oneof![
            message().prop_map(Either::Left),
            any::<u8>().prop_map(Either::Right),
        ]);
        keeps_order((level(), event(), Just(Nothing), any::<bool>()));
    }

    #[test]
    fn the_form_of_one_field_and_of_enums_without_fields_is_a_number() {
        assert_eq!(form::<Id>(&Id(-1)), form::<i64>(&-1));
        assert_eq!(
            [Level::Least, Level::Low, Level::Higher].map(|level| form::<Level>(&level)),
            [0, 1, 4]
        );
        assert_eq!(&*form::<Name>(&Name { text: "a\0".into() }), b"a\0");
    }

    #[test]
    fn what_is_lent_borrows() {
        let message =
            Message { room: Name { text: "tea".into() }, from: Some("me".into()), id: Id(3) };
        let form = form::<Message>(&message);
        let lent = Message::from_form(&form);
        assert!(matches!(&lent.room.text, Cow::Borrowed("tea")));
        assert!(matches!(&lent.from, Some(Cow::Borrowed("me"))));
        assert_eq!(lent.id, IdRef(3));
        assert_eq!(
            format!("{lent:?}"),
            r#"MessageRef { room: NameRef { text: "tea" }, from: Some("me"), id: IdRef(3) }"#
        );
        assert_eq!(lent, lent.clone());
        assert_ne!(lent, MessageRef { id: IdRef(4), ..lent.clone() });
        let pair = LentPair::<String, u8>(Cow::Borrowed("a"), 1);
        assert_eq!(
            super::form::<Pair<String, u8>>(&pair),
            super::form(&Pair("a".to_string(), 1u8))
        );
    }

    #[test]
    fn first_fields_are_prefixes() {
        proptest!(|(a in message(), b in message())| {
            let begins = b.room == a.room;
            let form = form::<Message>(&b);
            let prefix = |bytes: &[u8]| form.starts_with(bytes);
            assert_eq!(AsPrefix::<Message>::with_prefix(&(&a.room,), prefix), begins);
            let begins = begins && b.from == a.from;
            assert_eq!(AsPrefix::<Message>::with_prefix(&(&a.room, &a.from), prefix), begins);
        });
    }
}

#[test]
fn first_parts_are_prefixes() {
    proptest!(|(a in (bytes(), text()), b in (bytes(), text(), any::<u8>()))| {
        let form = form::<(Vec<u8>, String, u8)>(&b);
        let prefix = |bytes: &[u8]| form.starts_with(bytes);
        let (first, both) = (a.0 == b.0, a.0 == b.0 && a.1 == b.1);
        assert_eq!(AsPrefix::<(Vec<u8>, String, u8)>::with_prefix(&(&a.0,), prefix), first);
        assert_eq!(AsPrefix::<(Vec<u8>, String, u8)>::with_prefix(&(&a.0, &a.1), prefix), both);
    });
}

#[test]
fn keys_are_looked_up_by_what_is_lent() {
    let owned = ("tea".to_string(), 7u64, Some(b"cup".to_vec()));
    type K = (String, u64, Option<Vec<u8>>);
    assert_eq!(form::<K>(&("tea", 7, Some(b"cup"))), form::<K>(&owned));
    assert_eq!(form::<K>(&(&owned.0, &owned.1, Some(&b"cup"[..]))), form::<K>(&owned));
    assert_eq!(form::<String>(&"tea"), form::<String>(&"tea".to_string()));
    assert_eq!(form::<[String; 2]>(&["a", "b"]), form(&["a".to_string(), "b".to_string()]));
}

#[test]
fn what_is_not_a_keys_bytes_is_a_panic() {
    let refused = |read: fn(&mut Decoder<'_>)| {
        for bytes in [&b""[..], b"\x02", b"\xff\xff", b"ab\x01\x00"] {
            let outcome = std::panic::catch_unwind(|| read(&mut Decoder::new(bytes)));
            let refusal = outcome.expect_err("not written by this type");
            let sentence = refusal.downcast_ref::<String>().expect("a sentence");
            assert!(sentence.contains("the bytes of a key are not what its type"), "{sentence}");
        }
    };
    refused(|from| assert_eq!(String::read(from), ""));
    refused(|from| assert_eq!(Option::<u64>::read(from), None));
    refused(|from| assert_eq!(u128::read(from), 0));
}

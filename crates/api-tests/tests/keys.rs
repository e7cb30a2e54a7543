//! Encodings of keys: encoded keys have the order of the type, and decoding is exact. This is
//! checked for each type of key, alone and as a part of another key, with any bytes after it.

use proptest::collection::vec;
use proptest::prelude::*;
use silvics::key::{Decoder, Encoder, FormRef, check_order};
use silvics::{AsKey, AsPrefix, IndexKey, Key};
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

type OwnedForm<K> = <<K as Key>::Form as IndexKey>::Owned;

/// An owned copy of the form of a key.
fn form<K: Key>(key: &impl AsKey<K>) -> OwnedForm<K> {
    key.with_form(<K::Form as IndexKey>::to_owned)
}

fn written<K: Key>(key: &impl AsKey<K>) -> Vec<u8> {
    Encoder::encode(|to| key.write(to), <[u8]>::to_vec)
}

/// Judges two keys whose order is `order`.
fn judge<K: Key + Debug>(
    [a, b]: [&K; 2],
    order: Ordering,
    same: impl Fn(&K, &K) -> bool,
    rest: [&[u8]; 2],
) {
    let forms = [form::<K>(a), form::<K>(b)];
    assert_eq!(forms[0].cmp(&forms[1]), order, "the order of {a:?} and {b:?}");
    assert_eq!(a.compare(b), order, "the comparison of {a:?} and {b:?}");
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

/// Pairs that differ, pairs of equal keys, and pairs with a common prefix.
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

/// Strings of few different bytes, with the special ones among them, so that many share a prefix.
fn bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    vec(prop_oneof![Just(0), Just(1), Just(2), Just(255), any::<u8>()], 0..6)
}

/// Strings with runs of bytes 0, whose lengths are about those that a token counts.
fn runs() -> impl Strategy<Value = Vec<u8>> + Clone {
    let zeros = prop_oneof![0..4usize, 124..131usize, 250..258usize, 0..400usize];
    let others = vec(prop_oneof![Just(1), Just(128), Just(255), any::<u8>()], 0..4);
    let run = (zeros, others).prop_map(|(zeros, others)| [vec![0; zeros], others].concat());
    vec(run, 0..4).prop_map(|runs| runs.concat())
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
    keeps_order(runs());
    keeps_order(bytes().prop_map(bytes::Bytes::from));
}

#[test]
fn times() {
    let nanos = || prop_oneof![Just(0), Just(1), Just(999_999_999), 0..1_000_000_000u32];
    let durations = || {
        let seconds = prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()];
        (seconds, nanos()).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
    };
    keeps_order(durations());
    let epoch = SystemTime::UNIX_EPOCH;
    let near = (any::<bool>(), 0..3u64, nanos()).prop_map(move |(before, seconds, nanos)| {
        let by = Duration::new(seconds, nanos);
        if before { epoch - by } else { epoch + by }
    });
    let far = (any::<bool>(), durations()).prop_map(move |(before, by)| {
        let time = if before { epoch.checked_sub(by) } else { epoch.checked_add(by) };
        time.unwrap_or(epoch)
    });
    let first = epoch.checked_sub(Duration::from_secs(1 << 63)).unwrap_or(epoch);
    keeps_order(prop_oneof![near.clone(), far, Just(first)]);
    keeps_order((bytes(), descending(near)));
}

#[test]
fn addresses() {
    keeps_order(any::<Ipv4Addr>());
    keeps_order(any::<Ipv6Addr>());
    keeps_order(any::<IpAddr>());
    keeps_order(any::<SocketAddr>());
    keeps_order((any::<Ipv4Addr>(), 0..3u16).prop_map(|(ip, port)| SocketAddrV4::new(ip, port)));
    let v6 = (any::<Ipv6Addr>(), any::<u16>(), any::<u32>(), any::<u32>());
    keeps_order(v6.prop_map(|(ip, port, flow, scope)| SocketAddrV6::new(ip, port, flow, scope)));
    keeps_order((any::<IpAddr>(), text()));
    keeps_order(any::<u128>().prop_map(uuid::Uuid::from_u128));
    keeps_order((any::<u128>().prop_map(uuid::Uuid::from_u128), bytes()));
}

#[test]
fn numbers_that_are_not_zero() {
    keeps_order(any::<NonZero<u8>>());
    keeps_order(any::<NonZero<u16>>());
    keeps_order(any::<NonZero<u32>>());
    keeps_order(any::<NonZero<u64>>());
    keeps_order(any::<NonZero<u128>>());
    keeps_order(any::<NonZero<i8>>());
    keeps_order(any::<NonZero<i16>>());
    keeps_order(any::<NonZero<i32>>());
    keeps_order(any::<NonZero<i64>>());
    keeps_order(any::<NonZero<i128>>());
    keeps_order((any::<NonZero<u8>>(), bytes()));
}

/// Any key in the opposite order.
fn descending<K: Debug>(
    key: impl Strategy<Value = K> + Clone,
) -> impl Strategy<Value = Reverse<K>> + Clone {
    key.prop_map(Reverse)
}

#[test]
fn reversed() {
    keeps_order(descending(any::<u8>()));
    keeps_order(descending(any::<i64>()));
    keeps_order(descending(any::<u128>()));
    keeps_order(descending(text()));
    keeps_order(descending(bytes()));
    keeps_order(descending(runs()));
    keeps_order(descending(any::<[u8; 5]>()));
    keeps_order(descending(descending(bytes())));
    keeps_order(descending((bytes(), descending(text()), any::<u32>())));
    keeps_order((runs(), descending(any::<u64>())));
    keeps_order((descending(runs()), bytes(), descending(proptest::option::of(bytes()))));
    keeps_order((descending(vec(any::<u8>(), 100..300)), bytes(), any::<u128>()));
}

/// The bytes of the end, of runs of bytes 0 and of other bytes.
#[test]
fn the_bytes_of_strings_in_keys() {
    let len = |bytes: &[u8]| written::<Vec<u8>>(&bytes).len();
    assert_eq!(written::<Vec<u8>>(b"ab"), b"ab\0\0");
    assert_eq!(written::<Vec<u8>>(b"\0\0b\0"), b"\0\xfdb\0\x01");
    assert_eq!((len(&[0; 16]), len(&[0; 126]), len(&[0; 127]), len(&[0; 254])), (2, 2, 3, 4));
    assert_eq!((len(&[1; 16]), len(&[255; 16])), (18, 18));
    let numbers = [7u64.to_be_bytes(), 1000u64.to_be_bytes()].concat();
    assert_eq!(len(&numbers), 9, "two numbers with 13 bytes 0");
    let alternating: Vec<u8> = (0..100).map(|n| n % 2).collect();
    assert_eq!(len(&alternating), 152, "at most half as many again");
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

mod derived {
    use super::*;
    use std::borrow::Cow;

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Id(i64);

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Name {
        text: String,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Message {
        room: Name,
        from: Option<String>,
        id: Id,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    #[key(lent = LentPair)]
    struct Pair<A, B>(A, B)
    where
        A: Ord;

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Nothing;

    const FIRST: i16 = -7;

    /// An enum ordered by its numbers, which differs from the order of its names.
    #[derive(Key, Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(i16)]
    enum Level {
        High = 300,
        Higher,
        Low = FIRST,
        Lower,
        Least = i16::MIN,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    #[repr(u8)]
    enum Event {
        Closed = 9,
        Opened { by: String, at: u64 } = 2,
        Moved(Level, i32),
        Renamed(String) = 1,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
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

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Version {
        key: Vec<u8>,
        #[key(reverse)]
        at: u64,
        #[key(reverse)]
        by: Option<String>,
    }

    #[derive(Key, Clone, Debug, PartialEq, Eq)]
    struct Down<T>(#[key(reverse)] T);

    #[derive(Key, Clone, Debug)]
    enum Measured {
        Value(#[key(reverse)] (f64, u8)),
        Nothing,
        Named { name: String, values: [f32; 2] },
    }

    impl PartialEq for Measured {
        fn eq(&self, other: &Self) -> bool {
            self.compare(other).is_eq()
        }
    }

    impl Eq for Measured {}

    #[test]
    fn fields_in_descending_order() {
        let version = |key, at, by| Version { key, at, by };
        let versions = (runs(), any::<u64>(), proptest::option::of(text()));
        keeps_order(versions.clone().prop_map(move |(key, at, by)| version(key, at, by)));
        keeps_order(any::<i16>().prop_map(Down));
        keeps_order(text().prop_map(Down));
        keeps_order((text().prop_map(Down), bytes()));
        let one = |at, by: Option<&str>| version(vec![0], at, by.map(Into::into));
        assert!(one(2, None) < one(1, None) && one(1, Some("b")) < one(1, Some("a")));
        assert!(Down("b".to_string()) < Down("a".to_string()) && Down(2) < Down(1));
        let form = form::<Version>(&one(1, None));
        let prefix = |bytes: &[u8]| form.starts_with(bytes);
        assert!(AsPrefix::<Version>::with_prefix(&(&[0], 1), prefix));
        assert!(!AsPrefix::<Version>::with_prefix(&(&[0], 2), prefix));
    }

    #[test]
    fn floats_are_compared_by_their_total_order() {
        let float = || prop_oneof![any::<f64>(), Just(f64::NAN), Just(-f64::NAN), Just(-0.0)];
        let small = || prop_oneof![any::<f32>(), Just(f32::NAN), Just(0.0)];
        keeps_order(prop_oneof![
            (float(), 0..2u8).prop_map(Measured::Value),
            Just(Measured::Nothing),
            (text(), [small(), small()])
                .prop_map(|(name, values)| Measured::Named { name, values }),
        ]);
        let value = |of: f64| Measured::Value((of, 0));
        assert!(value(0.0) < value(-0.0) && value(f64::NAN) < value(f64::INFINITY));
    }

    #[test]
    fn an_order_that_is_not_the_encodings_is_found() {
        #[derive(Key, Clone, Debug, PartialEq, Eq)]
        #[key(own_ord)]
        struct Signed(i8);

        impl Ord for Signed {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.unsigned_abs().cmp(&other.0.unsigned_abs()).then(self.0.cmp(&other.0))
            }
        }
        impl PartialOrd for Signed {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        let mismatch = check_order(&[1, 2, 3, -2, 4].map(Signed)).unwrap_err();
        assert_eq!((mismatch.first, mismatch.second), (0, 3));
        assert_eq!((mismatch.by_ord, mismatch.by_encoding), (Ordering::Less, Ordering::Greater));
        let told = mismatch.to_string();
        assert!(told.contains("keys 0 and 3 are Less by their Ord and Greater by"), "{told}");
        assert_eq!(check_order(&[1, 2, 3].map(Signed)), Ok(()));
        assert_eq!(check_order(&[Level::High, Level::Low, Level::Lower]), Ok(()));
        assert_eq!(check_order::<u64>(&[]), Ok(()));
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

mod of_many_variants {
    use super::*;

    macro_rules! many {
        ($first:ident $($name:ident)*) => {
            /// An enum with more variants than a byte can count.
            #[derive(Key, Clone, Debug, PartialEq, Eq)]
            enum Many { $first(String), $($name),* }
            const REST: &[Many] = &[$(Many::$name),*];
        };
    }

    many! {
        V0 V1 V2 V3 V4 V5 V6 V7 V8 V9 V10 V11 V12 V13 V14 V15 V16 V17 V18 V19 V20 V21 V22 V23 V24 V25
        V26 V27 V28 V29 V30 V31 V32 V33 V34 V35 V36 V37 V38 V39 V40 V41 V42 V43 V44 V45 V46 V47 V48
        V49 V50 V51 V52 V53 V54 V55 V56 V57 V58 V59 V60 V61 V62 V63 V64 V65 V66 V67 V68 V69 V70 V71
        V72 V73 V74 V75 V76 V77 V78 V79 V80 V81 V82 V83 V84 V85 V86 V87 V88 V89 V90 V91 V92 V93 V94
        V95 V96 V97 V98 V99 V100 V101 V102 V103 V104 V105 V106 V107 V108 V109 V110 V111 V112 V113
        V114 V115 V116 V117 V118 V119 V120 V121 V122 V123 V124 V125 V126 V127 V128 V129 V130 V131
        V132 V133 V134 V135 V136 V137 V138 V139 V140 V141 V142 V143 V144 V145 V146 V147 V148 V149
        V150 V151 V152 V153 V154 V155 V156 V157 V158 V159 V160 V161 V162 V163 V164 V165 V166 V167
        V168 V169 V170 V171 V172 V173 V174 V175 V176 V177 V178 V179 V180 V181 V182 V183 V184 V185
        V186 V187 V188 V189 V190 V191 V192 V193 V194 V195 V196 V197 V198 V199 V200 V201 V202 V203
        V204 V205 V206 V207 V208 V209 V210 V211 V212 V213 V214 V215 V216 V217 V218 V219 V220 V221
        V222 V223 V224 V225 V226 V227 V228 V229 V230 V231 V232 V233 V234 V235 V236 V237 V238 V239
        V240 V241 V242 V243 V244 V245 V246 V247 V248 V249 V250 V251 V252 V253 V254 V255 V256 V257
        V258 V259 V260 V261 V262 V263 V264 V265 V266 V267 V268 V269 V270 V271 V272 V273 V274 V275
        V276 V277 V278 V279 V280 V281 V282 V283 V284 V285 V286 V287 V288 V289 V290 V291 V292 V293
        V294 V295 V296 V297 V298 V299
    }

    #[test]
    fn enums_of_many_variants() {
        assert_eq!(REST.len(), 299);
        let variant = prop_oneof![
            8 => (0..REST.len()).prop_map(|at| REST[at].clone()),
            1 => text().prop_map(Many::V0),
        ];
        keeps_order(variant);
    }
}

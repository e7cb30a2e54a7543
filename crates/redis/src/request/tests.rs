//! Arguments that are right, and each way to be wrong.

use super::*;
use std::ops::Bound::{Excluded, Included, Unbounded};

fn words(line: &str) -> impl Iterator<Item = &[u8]> {
    line.split_ascii_whitespace().map(str::as_bytes)
}

fn sentence<T: fmt::Debug>(result: Result<T, RequestError>) -> String {
    result.unwrap_err().0
}

#[test]
fn options_of_set() {
    let options = |line| set_options(&mut words(line));
    let (condition, get) = (Condition::Absent, true);
    assert_eq!(options("get nx"), Ok(SetOptions { condition, get }));
    assert_eq!(options(""), Ok(SetOptions::default()));
    assert_eq!(options("XX").map(|options| options.condition), Ok(Condition::Present));
    assert_eq!(sentence(options("NX XX")), "NX and XX exclude each other: give one of them");
    assert_eq!(sentence(options("EX")), "'EX' is not an option here: give NX, XX or GET");
}

#[test]
fn states_may_look_like_words() {
    let mut line = words("VALUE ABSENT absent more");
    assert_eq!(state(&mut line, "the expected state"), Ok(Some(&b"ABSENT"[..])));
    assert_eq!(state(&mut line, "the new state"), Ok(None));
    assert_eq!(sentence(end(&mut line)), "'more' is one argument too many");
    let missing = "the new state (ABSENT, or VALUE and a value) is missing";
    assert_eq!(sentence(state(&mut line, "the new state")), missing);
    let mut line = words("VALUE");
    assert_eq!(sentence(state(&mut line, "it")), "the value behind VALUE is missing");
}

#[test]
fn bounds_are_those_of_zrangebylex() {
    let of = |line, descends| bounds(&mut words(line), descends);
    assert_eq!(of("- +", false), Ok((Unbounded, Unbounded)));
    assert_eq!(of("[a (b", false), Ok((Included(&b"a"[..]), Excluded(&b"b"[..]))));
    assert_eq!(of("(b [a", true), Ok((Included(&b"a"[..]), Excluded(&b"b"[..]))));
    assert_eq!(of("+ -", true), Ok((Unbounded, Unbounded)));
    for (line, descends) in [("+ -", false), ("+ +", false), ("- -", false), ("- +", true)] {
        assert_eq!(of(line, descends), Ok(NOTHING), "{line}");
    }
    assert_eq!(of("[ (", false), Ok((Included(&b""[..]), Excluded(&b""[..]))));
    assert_eq!(sentence(of("a +", false)), "the minimum is 'a': give - or + or [key or (key");
    assert_eq!(sentence(of("a -", true)), "the maximum is 'a': give - or + or [key or (key");
    assert_eq!(sentence(of("-", false)), "the maximum is missing");
}

#[test]
fn slices() {
    let of = |line| slice(&mut words(line));
    let all = Slice { offset: 0, count: usize::MAX, keys_only: false };
    assert_eq!(of(""), Ok(all));
    assert_eq!(of("LIMIT 2 -1 keysonly"), Ok(Slice { offset: 2, keys_only: true, ..all }));
    assert_eq!(of("limit 0 3"), Ok(Slice { count: 3, ..all }));
    assert_eq!(sentence(of("LIMIT -1 3")), "the offset is '-1': give 0 or more");
    assert_eq!(sentence(of("LIMIT 1")), "the count behind LIMIT is missing");
    assert_eq!(sentence(of("LIMIT 1 x")), "the count is 'x': give an integer");
}

#[test]
fn counts_and_ends() {
    assert_eq!(count(&mut words("COUNT 5")), Ok(Some(5)));
    assert_eq!(sentence(count(&mut words("COUNT 0"))), "COUNT is 0: give 1 or more");
    assert_eq!(pop(&mut words("last COUNT 0")), Ok(Pop { last: true, count: Some(0) }));
    assert_eq!(pop(&mut words("")), Ok(Pop::default()));
    assert_eq!(scan_options(&mut words("KEYSONLY COUNT 7")), Ok((7, true)));
    assert_eq!(operations(&mut words("min MAX")), Ok(vec![Operation::Min, Operation::Max]));
    let missing = "the operation (SUM, MIN or MAX) is missing";
    assert_eq!(sentence(operations(&mut words(""))), missing);
}

#[test]
fn cursors_keep_any_key() {
    assert_eq!(Cursor::parse(b"0"), Ok(Cursor::Start));
    for key in [&b""[..], b":", b"0", &[0, 255, 58]] {
        let text = Cursor::text(u64::MAX - 7, key);
        assert_eq!(Cursor::parse(&text), Ok(Cursor::Behind(u64::MAX - 7, key)));
    }
    for text in [&b""[..], b"1", b"000000000000000x:a", b"0000000000000001", b"+000000000000001:a"]
    {
        assert!(Cursor::parse(text).is_err(), "{}", text.escape_ascii());
    }
    assert_eq!(
        sentence(Cursor::parse(&[b'a'; 50])),
        format!("'{}…' is not a cursor: give 0, or the cursor of the last reply", "a".repeat(40))
    );
}

#[test]
fn the_string_behind_a_prefix() {
    assert_eq!(behind(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(behind(b"a\xff\xff"), Some(b"b".to_vec()));
    assert_eq!(behind(b"\xff"), None);
    assert_eq!(behind(b""), None);
}

//! Reads key files of both formats from any bytes.

use silvics_workload::keyfile::{KeyFile, KeyFileError, parse_lines, parse_sosd};
use std::collections::BTreeSet;

/// Reads `data` as a file of lines and as one of words.
///
/// # Panics
/// Panics if a parser panics, or if its result differs from the format's definition.
pub fn run(data: &[u8]) {
    lines(data);
    words(data);
}

fn lines(data: &[u8]) {
    // The definition: every newline ends a key, and so does the end of the file unless it directly
    // follows a newline.
    let mut wanted: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    if data.is_empty() || data.ends_with(b"\n") {
        wanted.pop();
    }
    let file = match parse_lines(data) {
        Ok(file) => file,
        Err(error) => {
            assert!(matches!(error, KeyFileError::Empty) && wanted.is_empty(), "lines: {error}");
            return;
        }
    };
    let found: Vec<&[u8]> = (0..file.keys.len() as u32).map(|at| file.keys.key(at)).collect();
    same(&wanted, &found, &file);
    let longest = file.keys.longest();
    let bytes = wanted.iter().map(|line| line.len()).max();
    let first = wanted.iter().position(|line| Some(line.len()) == bytes);
    assert_eq!(
        (Some(longest.bytes), longest.line),
        (bytes, first.map(|at| at + 1)),
        "longest line"
    );
    assert_eq!(file.keys.total_bytes(), found.iter().map(|key| key.len()).sum::<usize>());

    // The keys, written again, are read as equal keys, in order and without duplicates.
    let again: Vec<u8> = found.iter().flat_map(|key| [key, &b"\n"[..]].concat()).collect();
    let file = parse_lines(&again).expect("a file with at least one line");
    let same_keys = (0..file.keys.len() as u32).map(|at| file.keys.key(at)).eq(found);
    assert!(same_keys && file.duplicates == 0 && file.unsorted_at.is_none(), "lines written again");
}

fn words(data: &[u8]) {
    let (header, rest) = data.split_at(data.len().min(8));
    let (words, tail) = rest.as_chunks::<8>();
    let wanted: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let announced = header.try_into().ok().map(u64::from_le_bytes);
    match (parse_sosd(data), announced) {
        (Err(KeyFileError::Empty), None) => assert!(data.is_empty(), "sosd: not empty"),
        (Err(KeyFileError::Empty), count) => assert!(count == Some(0) && rest.is_empty()),
        (Err(KeyFileError::NoHeader { bytes }), count) => {
            assert!(count.is_none() && bytes == data.len() as u64);
        }
        (Err(KeyFileError::Count { count, bytes }), Some(announced)) => {
            assert_eq!((count, bytes), (announced, data.len() as u64), "what the error says");
            assert!(announced != wanted.len() as u64 || !tail.is_empty(), "a count that fits");
        }
        (Ok(file), Some(announced)) => {
            assert!(
                announced == wanted.len() as u64 && tail.is_empty(),
                "a count that does not fit"
            );
            let found: Vec<u64> = (0..file.keys.len() as u32).map(|at| file.keys.key(at)).collect();
            same(&wanted, &found, &file);
        }
        (Err(error), _) => panic!("sosd: {error}"),
        (Ok(_), None) => panic!("sosd: keys without a header"),
    }
}

/// Checks that the keys found are the wanted ones, and that the file's other facts are right.
fn same<T: Ord + std::fmt::Debug, K>(wanted: &[T], found: &[T], file: &KeyFile<K>) {
    let distinct: BTreeSet<&T> = wanted.iter().collect();
    assert!(found.iter().eq(distinct), "keys {found:?} of {wanted:?}");
    assert_eq!(file.duplicates, wanted.len() - found.len(), "duplicates of {wanted:?}");
    let descent = (1..wanted.len()).find(|&at| wanted[at] < wanted[at - 1]);
    assert_eq!(file.unsorted_at, descent.map(|at| at + 1), "first descent of {wanted:?}");
}

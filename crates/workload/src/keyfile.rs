//! Keys from a file.
//!
//! * **Lines** ([`Format::Lines`]): one key per line. A key is the unchanged bytes between two
//!   newlines. NUL, carriage returns, spaces and bytes that are no text belong to it, and an empty
//!   line is the empty key. A last line without a newline counts; the empty rest after a last
//!   newline does not.
//! * **SOSD** ([`Format::Sosd`]): a 64-bit little-endian count, then that many 64-bit little-endian
//!   words (Marcus et al., "Benchmarking learned indexes", VLDB 2021).
//!
//! Keys are sorted, so that neighbouring positions of the key space are neighbouring keys.
//! Duplicates are dropped and counted.

use crate::{ByteKeys, KEYS_MAX, WordKeys};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The format of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One key per line, as bytes.
    Lines,
    /// One key per line, as bytes.
    /// A count and then 64-bit words, little-endian.
    Sosd,
}

impl Format {
    /// The format that the file's name suggests: SOSD if it ends in `_uint64` (as the data sets of
    /// that benchmark do), `.sosd`, `.u64` or `.bin`, otherwise lines.
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sosd = ["_uint64", ".sosd", ".u64", ".bin"];
        if sosd.iter().any(|end| name.ends_with(end)) { Self::Sosd } else { Self::Lines }
    }
}

/// The contents of a key file.
#[derive(Clone, Debug)]
pub struct KeyFile<K> {
    /// The keys, ascending and without duplicates.
    pub keys: K,
    /// The number of keys dropped as duplicates.
    pub duplicates: usize,
    /// The number, counted from 1, of the first key in the file that is less than the one before
    /// it.
    pub unsorted_at: Option<usize>,
}

/// The reason why a key file cannot be used. Each message continues a sentence that begins with the
/// file's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file has no keys.
    Empty,
    /// The SOSD file is too short for its own header.
    NoHeader {
        /// The length of the file.
        bytes: u64,
    },
    /// The count of the SOSD file does not match its size.
    Count {
        /// The count in the header.
        count: u64,
        /// The length of the file, header included, or where the reading stopped.
        bytes: u64,
    },
    /// The file has more than [`KEYS_MAX`] keys.
    TooMany,
    /// A line is longer than [`LINE_MAX`].
    LineTooLong {
        /// The number of the line, counted from 1.
        line: usize,
    },
}

impl From<io::Error> for KeyFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read ({error}): name a file that can"),
            Self::Empty => write!(f, "has no keys: name a file with at least one"),
            Self::NoHeader { bytes } => write!(
                f,
                "has {bytes} bytes, too few for the 8-byte count of the SOSD format: name a whole \
                 SOSD file, or choose the line format"
            ),
            Self::Count { count, bytes } => write!(
                f,
                "announces {count} words but has {bytes} bytes instead of 8 + 8 * {count}: name a \
                 whole SOSD file, or choose the line format"
            ),
            Self::LineTooLong { line } => write!(
                f,
                "has more than {LINE_MAX} bytes in line {line}: name a file with one key per line"
            ),
            Self::TooMany => write!(f, "has more than {KEYS_MAX} keys: name a smaller file"),
        }
    }
}

impl std::error::Error for KeyFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// The length of the longest line of a key file: 16 MiB. No index here takes a longer key, and a
/// device such as `/dev/zero` has a line without an end.
pub const LINE_MAX: usize = 16 << 20;

/// Reads the keys of a file of lines.
pub fn read_lines(path: &Path) -> Result<KeyFile<ByteKeys>, KeyFileError> {
    parse_lines(&bounded(File::open(path)?)?)
}

/// Reads all lines, up to one that is too long.
fn bounded(mut from: impl Read) -> Result<Vec<u8>, KeyFileError> {
    let (mut text, mut lines, mut line_start) = (Vec::new(), 0, 0);
    loop {
        let before = text.len();
        if from.by_ref().take(1 << 20).read_to_end(&mut text)? == 0 {
            return Ok(text);
        }
        for (at, _) in text[before..].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            check_line(lines, before + at - line_start)?;
            (lines, line_start) = (lines + 1, before + at + 1);
        }
        check_line(lines, text.len() - line_start)?;
    }
}

/// Checks the length of a line, behind `lines` others.
fn check_line(lines: usize, len: usize) -> Result<(), KeyFileError> {
    if lines > KEYS_MAX {
        return Err(KeyFileError::TooMany);
    }
    if len > LINE_MAX { Err(KeyFileError::LineTooLong { line: lines + 1 }) } else { Ok(()) }
}

/// Reads the keys of a SOSD file.
pub fn read_sosd(path: &Path) -> Result<KeyFile<WordKeys>, KeyFileError> {
    parse_sosd(BufReader::with_capacity(1 << 20, File::open(path)?))
}

/// Reads the keys from the content of a file of lines.
pub fn parse_lines(text: &[u8]) -> Result<KeyFile<ByteKeys>, KeyFileError> {
    if text.is_empty() {
        return Err(KeyFileError::Empty);
    }
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if lines.len() > KEYS_MAX {
        return Err(KeyFileError::TooMany);
    }
    let longest = (0..lines.len()).max_by_key(|&at| (lines[at].len(), std::cmp::Reverse(at)));
    let (unsorted_at, duplicates) = sort_and_dedup(&mut lines);
    let mut keys = ByteKeys::new(lines);
    if let Some(at) = longest {
        keys.set_longest_line(at + 1);
    }
    Ok(KeyFile { keys, duplicates, unsorted_at })
}

/// Reads the keys from the content of a SOSD file.
pub fn parse_sosd(mut reader: impl Read) -> Result<KeyFile<WordKeys>, KeyFileError> {
    let mut header = Vec::new();
    reader.by_ref().take(8).read_to_end(&mut header)?;
    let Ok(header) = <[u8; 8]>::try_from(&header[..]) else {
        return Err(match header.len() {
            0 => KeyFileError::Empty,
            bytes => KeyFileError::NoHeader { bytes: bytes as u64 },
        });
    };
    let count = u64::from_le_bytes(header);
    let (mut words, rest) = read_words(&mut reader, count)?;
    if words.len() as u64 != count || rest > 0 {
        let bytes = 8 + 8 * words.len() as u64 + rest;
        return Err(KeyFileError::Count { count, bytes });
    }
    if words.is_empty() {
        return Err(KeyFileError::Empty);
    }
    let (unsorted_at, duplicates) = sort_and_dedup(&mut words);
    words.shrink_to_fit();
    Ok(KeyFile { keys: WordKeys::listed(words), duplicates, unsorted_at })
}

/// The bytes behind the words after which reading stops. A whole file has none.
const REST_MAX: u64 = 1 << 30;

/// Reads at most `count` words. Returns them and the number of bytes that follow. A wrong count
/// reserves no memory.
fn read_words(reader: &mut impl Read, count: u64) -> Result<(Vec<u64>, u64), KeyFileError> {
    let (mut words, mut rest) = (Vec::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    let mut held = 0;
    loop {
        let read = match reader.read(&mut buffer[held..]) {
            Ok(0) => return Ok((words, rest + held as u64)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        held += read;
        let whole = held / 8 * 8;
        for word in buffer[..whole].as_chunks().0 {
            if (words.len() as u64) < count {
                words.push(u64::from_le_bytes(*word));
            } else {
                rest += 8;
            }
        }
        if words.len() > KEYS_MAX {
            return Err(KeyFileError::TooMany);
        }
        if rest > REST_MAX {
            return Ok((words, rest)); // a device without an end
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
}

/// Sorts keys and drops duplicates. Returns the number, counted from 1, of the first key out of
/// order, and how many keys were dropped.
fn sort_and_dedup<T: Ord>(keys: &mut Vec<T>) -> (Option<usize>, usize) {
    let unsorted_at = keys.windows(2).position(|pair| pair[1] < pair[0]).map(|at| at + 2);
    if unsorted_at.is_some() {
        keys.sort_unstable();
    }
    let before = keys.len();
    keys.dedup();
    (unsorted_at, before - keys.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Longest;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn keys(file: &KeyFile<ByteKeys>) -> Vec<Vec<u8>> {
        (0..file.keys.len() as u32).map(|position| file.keys.key(position).to_vec()).collect()
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let endless = || io::repeat(0);
        let refused = |text: &[u8]| match bounded(text.chain(endless())) {
            Err(KeyFileError::LineTooLong { line }) => line,
            other => panic!("{:?}", other.map(|text| text.len())),
        };
        assert_eq!((refused(b""), refused(b"a\nb\n"), refused(b"a\nb\nc")), (1, 3, 3));
        let longest = [&vec![b'x'; LINE_MAX], b"\nb".as_slice()].concat();
        assert_eq!(bounded(&longest[..]).unwrap(), longest);
        let longer = [b"x", &longest[..]].concat();
        assert!(matches!(bounded(&longer[..]), Err(KeyFileError::LineTooLong { line: 1 })));
    }

    fn sosd(count: u64, words: &[u64]) -> Vec<u8> {
        let words = std::iter::once(&count).chain(words);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn lines_are_bytes_as_they_are() {
        let file = parse_lines(b"b\r\na\0a\n\xff\xfe\n \n\n").unwrap();
        let expected: [&[u8]; 5] = [b"", b" ", b"a\0a", b"b\r", b"\xff\xfe"];
        assert_eq!(keys(&file), expected);
        assert_eq!(file.duplicates, 0);
        assert_eq!(file.unsorted_at, Some(2));
    }

    #[test]
    fn a_last_line_needs_no_newline() {
        assert_eq!(keys(&parse_lines(b"a\nb").unwrap()), keys(&parse_lines(b"a\nb\n").unwrap()));
        assert_eq!(keys(&parse_lines(b"\n").unwrap()), [b""]);
    }

    #[test]
    fn duplicates_are_dropped_and_counted_and_are_no_disorder() {
        let file = parse_lines(b"a\na\nb\nb\nb\nc\n").unwrap();
        assert_eq!((file.keys.len(), file.duplicates, file.unsorted_at), (3, 3, None));
        let file = parse_sosd(&sosd(5, &[3, 1, 3, 1, 2])[..]).unwrap();
        assert_eq!((file.keys.len(), file.duplicates, file.unsorted_at), (3, 2, Some(2)));
        assert_eq!([0, 1, 2].map(|position| file.keys.key(position)), [1, 2, 3]);
    }

    #[test]
    fn the_longest_line_is_known_by_its_number() {
        let long = vec![b'x'; 64 << 10];
        let text = [b"zz\n".as_slice(), &long, b"\na\n", &long, b"\n"].concat();
        let file = parse_lines(&text).unwrap();
        let expected = Longest { bytes: 64 << 10, line: Some(2) };
        assert_eq!(file.keys.longest(), expected);
        assert_eq!(file.duplicates, 1);
    }

    #[test]
    fn empty_files_are_refused() {
        assert!(matches!(parse_lines(b""), Err(KeyFileError::Empty)));
        assert!(matches!(parse_sosd(&[][..]), Err(KeyFileError::Empty)));
        assert!(matches!(parse_sosd(&sosd(0, &[])[..]), Err(KeyFileError::Empty)));
    }

    #[test]
    fn a_count_that_does_not_fit_is_refused() {
        let short = parse_sosd(&sosd(3, &[1, 2])[..]).unwrap_err();
        assert!(matches!(short, KeyFileError::Count { count: 3, bytes: 24 }));
        let long = parse_sosd(&sosd(1, &[1, 2])[..]).unwrap_err();
        assert!(matches!(long, KeyFileError::Count { count: 1, bytes: 24 }));
        let huge = parse_sosd(&sosd(u64::MAX, &[1])[..]).unwrap_err();
        assert!(matches!(huge, KeyFileError::Count { bytes: 16, .. }));
        let odd = [sosd(1, &[1]), vec![0; 3]].concat();
        let odd = parse_sosd(&odd[..]).unwrap_err();
        assert!(matches!(odd, KeyFileError::Count { count: 1, bytes: 19 }));
        let stub = parse_sosd(&[1, 2, 3][..]).unwrap_err();
        assert!(matches!(stub, KeyFileError::NoHeader { bytes: 3 }));
    }

    #[test]
    fn names_tell_the_format() {
        for name in ["books_200M_uint64", "a/b.u64", "keys.sosd", "x.bin"] {
            assert_eq!(Format::of(Path::new(name)), Format::Sosd, "{name}");
        }
        for name in ["paths.txt", "uint64.txt", "binary", "/dev/stdin", ""] {
            assert_eq!(Format::of(Path::new(name)), Format::Lines, "{name}");
        }
    }

    #[test]
    fn files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, b"two\none\n").unwrap();
        assert_eq!(read_lines(&path).unwrap().keys.key(0), b"one");
        std::fs::write(&path, sosd(2, &[9, 8])).unwrap();
        assert_eq!(read_sosd(&path).unwrap().keys.key(1), 9);
        let error = read_lines(&folder.path().join("none")).unwrap_err();
        assert!(error.to_string().starts_with("cannot be read ("), "{error}");
        assert!(matches!(read_sosd(folder.path()), Err(KeyFileError::Io(_))));
    }

    proptest! {
        #[test]
        fn lines_come_back_sorted_and_distinct(
            lines in prop::collection::vec(prop::collection::vec(0_u8..12, 0..4), 1..50),
        ) {
            // Bytes 0 to 11 except newline.
            let lines: Vec<Vec<u8>> = lines
                .into_iter()
                .map(|line| line.into_iter().filter(|&byte| byte != b'\n').collect())
                .collect();
            let text = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect::<Vec<u8>>();
            let file = parse_lines(&text).unwrap();
            let expected: BTreeSet<Vec<u8>> = lines.iter().cloned().collect();
            prop_assert_eq!(file.duplicates, lines.len() - expected.len());
            prop_assert_eq!(file.unsorted_at.is_none(), lines.is_sorted());
            prop_assert_eq!(keys(&file), expected.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn words_come_back_sorted_and_distinct(words in prop::collection::vec(0_u64..100, 1..100)) {
            let file = parse_sosd(&sosd(words.len() as u64, &words)[..]).unwrap();
            let found: Vec<u64> = (0..file.keys.len() as u32).map(|p| file.keys.key(p)).collect();
            let expected: BTreeSet<u64> = words.iter().copied().collect();
            prop_assert!(found.iter().eq(&expected));
        }

        #[test]
        fn no_file_panics(bytes: Vec<u8>) {
            let _ = parse_sosd(&bytes[..]);
            let _ = parse_lines(&bytes);
        }
    }
}

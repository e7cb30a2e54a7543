//! Key sets: byte strings like those that programs have as keys, made from a seed.

use crate::ByteKeys;
use crate::choice::label;
use crate::stream::below;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A kind of byte strings. All have 8 to 40 bytes of ASCII text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySet {
    /// `words`: words and phrases of 8 to 20 small letters and spaces, such as `sancle can`.
    /// Some stems and first letters are much more frequent than others.
    Words,
    /// `uuid`: random UUIDs (version 4) as 36 characters of text.
    Uuid,
    /// `email`: a first and a last name, a number, and one of 300 domains, such as
    /// `cen.samet169@coolpre.com`. Names and domains have a skewed popularity.
    Email,
    /// `url`: one of 256 hosts of skewed popularity, one or two words, and a number, such as
    /// `https://roust.org/ergro/99422`.
    Url,
}

/// The text names no key set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySetError(String);

impl KeySet {
    /// All key sets.
    pub const ALL: [Self; 4] = [Self::Words, Self::Uuid, Self::Email, Self::Url];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Uuid => "uuid",
            Self::Email => "email",
            Self::Url => "url",
        }
    }

    /// A key space of `len` distinct strings in ascending order. The seed selects them.
    ///
    /// It draws strings, sorts them, and replaces duplicates by new draws until there are none.
    /// Two million keys take about a second.
    pub fn keys(self, len: usize, seed: u64) -> ByteKeys {
        let mut source = Source::new(label(seed, self.name()));
        match self {
            Self::Words => {
                let stems = Popular::new(source.names(4096, 4..=8));
                distinct(len, |text| source.phrase(text, &stems))
            }
            Self::Uuid => distinct(len, |text| source.uuid(text)),
            Self::Email => {
                let [first, last] = [(500, 3..=8), (2000, 3..=10)]
                    .map(|(count, bytes)| Popular::new(source.names(count, bytes)));
                let domains = Popular::new(source.hosts(300, 3..=9, &MAIL_ENDINGS));
                distinct(len, |text| {
                    text.push_str(first.draw(&mut source.rng));
                    text.push('.');
                    text.push_str(last.draw(&mut source.rng));
                    source.number(text, 4);
                    text.push('@');
                    text.push_str(domains.draw(&mut source.rng));
                })
            }
            Self::Url => {
                let hosts = Popular::new(source.hosts(256, 3..=7, &WEB_ENDINGS));
                let words = Popular::new(source.names(1000, 3..=6));
                distinct(len, |text| {
                    text.push_str("https://");
                    text.push_str(hosts.draw(&mut source.rng));
                    for _ in 0..=below(&mut source.rng, 2) {
                        text.push('/');
                        text.push_str(words.draw(&mut source.rng));
                    }
                    text.push('/');
                    source.number(text, 6);
                })
            }
        }
    }
}

impl FromStr for KeySet {
    type Err = KeySetError;

    fn from_str(text: &str) -> Result<Self, KeySetError> {
        let named = Self::ALL.into_iter().find(|set| set.name() == text);
        named.ok_or_else(|| KeySetError(text.into()))
    }
}

impl fmt::Display for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for KeySetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a key set: choose words, uuid, email or url", self.0)
    }
}

impl std::error::Error for KeySetError {}

/// The bytes of the longest string.
const BYTES_MAX: usize = 40;

/// A string, followed by bytes 0. No string has a byte 0, so the arrays have the strings' order.
type Padded = [u8; BYTES_MAX];

/// Calls `draw`, which appends a string to an empty text, until there are `len` distinct strings.
#[allow(clippy::stable_sort_primitive)] // the old strings are a sorted run, which `sort` merges
fn distinct(len: usize, mut draw: impl FnMut(&mut String)) -> ByteKeys {
    let (mut text, mut strings) = (String::new(), Vec::<Padded>::with_capacity(len));
    while strings.len() < len {
        for _ in strings.len()..len {
            text.clear();
            draw(&mut text);
            let mut padded = [0; BYTES_MAX];
            padded[..text.len()].copy_from_slice(text.as_bytes());
            strings.push(padded);
        }
        strings.sort();
        strings.dedup();
    }
    ByteKeys::new(strings.iter().map(|padded| {
        let len = padded.iter().position(|&byte| byte == 0).unwrap_or(BYTES_MAX);
        &padded[..len]
    }))
}

/// The parts of a syllable, each in descending order of frequency.
const ONSETS: [&str; 30] = [
    "s", "c", "p", "", "r", "m", "d", "b", "t", "f", "h", "l", "g", "n", "w", "v", "st", "ch",
    "tr", "sh", "pr", "k", "br", "j", "cl", "gr", "th", "y", "qu", "z",
];
const NUCLEI: [&str; 12] = ["e", "a", "i", "o", "u", "ea", "io", "ou", "ai", "ee", "oo", "y"];
const CODAS: [&str; 13] = ["", "n", "r", "s", "l", "t", "d", "m", "st", "ng", "nd", "ck", "nt"];

/// The ends of domains, in descending order of frequency.
const MAIL_ENDINGS: [&str; 8] = [".com", ".net", ".org", ".de", ".edu", ".co.uk", ".fr", ".io"];
const WEB_ENDINGS: [&str; 6] = [".com", ".org", ".net", ".io", ".de", ".dev"];

/// Items whose popularity is skewed: the item of rank r has a probability proportional to 1 / r.
struct Popular<T> {
    items: Vec<T>,
    /// The sums of the weights up to each rank. They are integers, so that a seed has the same
    /// meaning on all machines.
    sums: Vec<u64>,
}

impl<T> Popular<T> {
    fn new(items: impl Into<Vec<T>>) -> Self {
        let items = items.into();
        let sums = (1..=items.len() as u64).scan(0, |sum, rank| {
            *sum += (1 << 24) / rank;
            Some(*sum)
        });
        Self { sums: sums.collect(), items }
    }

    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> &T {
        let at = below(rng, self.sums[self.sums.len() - 1]);
        &self.items[self.sums.partition_point(|&sum| sum <= at)]
    }
}

/// A source of random syllables and names.
struct Source {
    rng: Xoshiro256PlusPlus,
    /// The onsets, nuclei and codas.
    parts: [Popular<&'static str>; 3],
}

impl Source {
    fn new(seed: u64) -> Self {
        let parts = [Popular::new(ONSETS), Popular::new(NUCLEI), Popular::new(CODAS)];
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), parts }
    }

    /// Appends a syllable of at most 6 bytes.
    fn syllable(&mut self, text: &mut String) {
        for part in &self.parts {
            text.push_str(part.draw(&mut self.rng));
        }
    }

    /// Appends a number of at most the given digits. The number of digits is random, too.
    fn number(&mut self, text: &mut String, digits: u32) {
        let digits = 1 + below(&mut self.rng, digits.into()) as u32;
        text.push_str(&below(&mut self.rng, 10_u64.pow(digits)).to_string());
    }

    /// Distinct names of these lengths.
    fn names(&mut self, count: usize, bytes: RangeInclusive<usize>) -> Vec<String> {
        let (mut names, mut seen) = (Vec::with_capacity(count), HashSet::new());
        while names.len() < count {
            let mut name = String::new();
            while name.len() < *bytes.start() + below(&mut self.rng, 3) as usize {
                self.syllable(&mut name);
            }
            name.truncate(*bytes.end());
            if seen.insert(name.clone()) {
                names.push(name);
            }
        }
        names
    }

    /// Distinct names, each with one of the endings.
    fn hosts(
        &mut self,
        count: usize,
        bytes: RangeInclusive<usize>,
        endings: &[&'static str],
    ) -> Vec<String> {
        let endings = Popular::new(endings);
        let mut names = self.names(count, bytes);
        for name in &mut names {
            name.push_str(endings.draw(&mut self.rng));
        }
        names
    }

    /// Appends a stem, and then syllables, some of which begin a word: 8 to 20 bytes.
    fn phrase(&mut self, text: &mut String, stems: &Popular<String>) {
        text.push_str(stems.draw(&mut self.rng));
        let [one, other] = [0; 2].map(|least: usize| least + below(&mut self.rng, 13) as usize);
        while text.len() < 8 + one.min(other) {
            let before = text.len();
            if below(&mut self.rng, 4) == 0 {
                text.push(' ');
            }
            self.syllable(text);
            if text.len() > 20 {
                text.truncate(before); // more than 8 bytes, as a word break and a syllable are 7
                break;
            }
        }
    }

    /// Appends a UUID of random bits, of version 4 and variant 1 (RFC 9562, section 5.4).
    fn uuid(&mut self, text: &mut String) {
        let bits = [self.rng.next_u64(), self.rng.next_u64()].map(u128::from);
        let bits = bits[0] << 64 | bits[1];
        let bits = bits & !(0xf << 76 | 3 << 62) | 4 << 76 | 2 << 62;
        for digit in 0..32_u32 {
            if matches!(digit, 8 | 12 | 16 | 20) {
                text.push('-');
            }
            let value = (bits >> (124 - 4 * digit) & 15) as u32;
            text.push(char::from_digit(value, 16).unwrap_or('0'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn strings(set: KeySet, len: usize, seed: u64) -> Vec<String> {
        let keys = set.keys(len, seed);
        let string = |at| String::from_utf8(keys.key(at).to_vec()).unwrap();
        (0..keys.len() as u32).map(string).collect()
    }

    /// How often each part occurs, the most frequent first.
    fn frequencies<'s>(parts: impl Iterator<Item = &'s str>) -> Vec<usize> {
        let mut counts = HashMap::new();
        parts.for_each(|part| *counts.entry(part).or_insert(0) += 1);
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn names_are_read_and_written_alike() {
        for set in KeySet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for text in ["", "Words", "word", "urls"] {
            let error = text.parse::<KeySet>().unwrap_err();
            let sentence = format!("`{text}` is not a key set: choose words, uuid, email or url");
            assert_eq!(error.to_string(), sentence);
        }
    }

    /// A recorded seed keeps its meaning.
    #[test]
    fn the_keys_of_a_seed() {
        for (set, keys) in [
            (KeySet::Words, ["clengcle sancle can", "clengclesin", "coussinpangen"]),
            (
                KeySet::Uuid,
                [
                    "04e98855-dc19-4fd0-b6c9-f1242fef1e87",
                    "464aed09-1959-4582-9913-338c6ac4f10c",
                    "98cf357a-11e9-45d8-bd71-6e5af3e9feaf",
                ],
            ),
            (
                KeySet::Email,
                [
                    "cen.samet169@coolpre.com",
                    "pioand.peenlo3@ecest.edu",
                    "sazea.cisseam6409@buced.com",
                ],
            ),
            (
                KeySet::Url,
                [
                    "https://fer.de/gusad/gusad/79",
                    "https://ping.com/cecend/635",
                    "https://roust.org/ergro/99422",
                ],
            ),
        ] {
            assert_eq!(strings(set, 3, 1), keys);
        }
    }

    #[test]
    fn keys_are_distinct_ascending_and_of_8_to_40_bytes() {
        for set in KeySet::ALL {
            for (len, seed) in [(1, 7), (2, 0), (50_000, 1), (50_000, u64::MAX)] {
                let keys = strings(set, len, seed);
                assert_eq!(keys.len(), len);
                assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{set}, {seed}");
                let most = if set == KeySet::Words { 20 } else { BYTES_MAX };
                let fits = |key: &&String| !(8..=most).contains(&key.len()) || !key.is_ascii();
                assert_eq!(keys.iter().find(fits), None, "{set}, {seed}");
            }
        }
    }

    #[test]
    fn seeds_matter_and_repeat() {
        for set in KeySet::ALL {
            let [one, same, other] = [1, 1, 2].map(|seed| strings(set, 5000, seed));
            assert_eq!(one, same);
            let one: HashSet<String> = one.into_iter().collect();
            let common = other.iter().filter(|key| one.contains(*key)).count();
            assert!(common < 50, "{set}: {common} of 5000 keys");
        }
    }

    #[test]
    fn words_are_small_letters_with_skewed_beginnings() {
        let keys = strings(KeySet::Words, 50_000, 3);
        let well_formed = |key: &String| {
            key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ')
                && key.split(' ').all(|word| !word.is_empty())
        };
        assert_eq!(keys.iter().find(|key| !well_formed(key)), None);
        let letters = frequencies(keys.iter().map(|key| &key[..1]));
        assert!(letters.len() > 20 && letters[0] > 3 * 50_000 / letters.len(), "{letters:?}");
        let stems = frequencies(keys.iter().map(|key| &key[..4]));
        assert!(stems[0] > 20 * 50_000 / stems.len(), "{:?}", &stems[..20]);
        let phrases = keys.iter().filter(|key| key.contains(' ')).count();
        assert!((10_000..40_000).contains(&phrases), "{phrases}");
    }

    #[test]
    fn uuids_have_a_version_and_a_variant() {
        let keys = strings(KeySet::Uuid, 10_000, 3);
        for key in &keys {
            let groups: Vec<usize> = key.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{key}");
            let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            assert!(key.bytes().all(|byte| byte == b'-' || digit(byte)), "{key}");
            assert_eq!((&key[14..15], "89ab".contains(&key[19..20])), ("4", true), "{key}");
        }
        let firsts = frequencies(keys.iter().map(|key| &key[..1]));
        // The mean is 625; the limit is six standard deviations.
        assert!(firsts.len() == 16 && firsts.iter().all(|count| count.abs_diff(625) < 150));
    }

    #[test]
    fn domains_and_hosts_have_a_skewed_popularity() {
        let emails = strings(KeySet::Email, 50_000, 3);
        let of = |key: &String| key.split_once('@').is_some_and(|(name, _)| name.contains('.'));
        assert!(emails.iter().all(of));
        let domains = frequencies(emails.iter().filter_map(|key| Some(key.split_once('@')?.1)));
        let urls = strings(KeySet::Url, 50_000, 3);
        let parts = |key: &String| key.split('/').count();
        assert!(
            urls.iter().all(|key| key.starts_with("https://") && (5..=6).contains(&parts(key)))
        );
        let hosts = frequencies(urls.iter().filter_map(|key| key.split('/').nth(2)));
        for (counts, all) in [(domains, 300), (hosts, 256)] {
            assert_eq!(counts.len(), all);
            assert!(counts[0] > 20 * counts[all / 2] && counts[1] > counts[0] / 4, "{counts:?}");
        }
    }
}

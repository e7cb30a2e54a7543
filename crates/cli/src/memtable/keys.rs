//! Keys, values, and the keys that a run must leave behind.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The least bytes of a key: those of a number.
pub const KEY_LEAST: usize = size_of::<u64>();

/// The purpose of a stream of draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The fill before a run.
    Fill,
    /// The run.
    Run,
}

/// The numbers of keys that a thread draws.
pub struct Draws {
    random: Xoshiro256PlusPlus,
    end: u64,
}

impl Draws {
    /// Draws below `end`, for one thread.
    pub fn new(seed: u64, purpose: Purpose, thread: usize, end: usize) -> Self {
        let stream = (thread as u64) << 1 | u64::from(purpose == Purpose::Run);
        let random = Xoshiro256PlusPlus::seed_from_u64(mix(seed) ^ mix(!stream));
        Self { random, end: end as u64 }
    }

    /// A number. All are equally likely, but for rounding.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(self.end)) >> 64) as u64
    }
}

/// The finalizer of `SplitMix64`: it spreads the bits of a number.
#[inline]
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A key of `db_bench`: a number, most significant byte first, and zeros in ASCII behind it.
#[derive(Clone, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    pub fn new(bytes: usize) -> Self {
        Self(vec![b'0'; bytes.max(KEY_LEAST)])
    }

    #[inline]
    pub fn of(&mut self, number: u64) -> &[u8] {
        write_number(&mut self.0, number);
        &self.0
    }
}

/// Writes the number of a key.
#[inline]
pub fn write_number(key: &mut [u8], number: u64) {
    key[..KEY_LEAST].copy_from_slice(&number.to_be_bytes());
}

/// The number of a key, or `None` if it is no key of these.
#[inline]
pub fn number_of(key: &[u8]) -> Option<u64> {
    let (number, zeros) = key.split_first_chunk::<KEY_LEAST>()?;
    zeros.iter().all(|&byte| byte == b'0').then(|| u64::from_be_bytes(*number))
}

/// A value: a word that follows from its key, a byte that says whether the run has written it, and
/// bytes of no meaning. Short values have the beginning of that.
#[derive(Clone, Debug)]
pub struct Value(Vec<u8>);

/// The place of the byte that says whether the run has written a value.
const WRITTEN: usize = size_of::<u64>();

impl Value {
    pub fn new(bytes: usize, purpose: Purpose) -> Self {
        let mut value: Vec<u8> = (0..bytes as u64).map(|at| mix(at) as u8).collect();
        if let Some(written) = value.get_mut(WRITTEN) {
            *written = u8::from(purpose == Purpose::Run);
        }
        Self(value)
    }

    #[inline]
    pub fn of(&mut self, number: u64) -> &[u8] {
        if let Some(word) = self.0.first_chunk_mut() {
            *word = mix(number).to_le_bytes();
        } else {
            let bytes = self.0.len();
            self.0.copy_from_slice(&mix(number).to_le_bytes()[..bytes]);
        }
        &self.0
    }
}

/// The word of a value of any length.
#[inline]
pub fn word(value: &[u8]) -> u64 {
    if let Some(word) = value.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; size_of::<u64>()];
    word[..value.len()].copy_from_slice(value);
    u64::from_le_bytes(word)
}

/// The word of the value of this length that belongs to a key.
pub fn word_of(number: u64, value_bytes: usize) -> u64 {
    word(&mix(number).to_le_bytes()[..value_bytes.min(size_of::<u64>())])
}

/// Whether a value was written by the run. `None` if it is too short to say so.
pub fn is_of_run(value: &[u8]) -> Option<bool> {
    value.get(WRITTEN).map(|&written| written == 1)
}

/// A set of numbers below an end.
#[derive(Clone, Debug)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    /// The empty set of numbers below `end`.
    pub fn new(end: usize) -> Self {
        Self(vec![0; end.div_ceil(64)])
    }

    pub fn insert(&mut self, number: u64) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    pub fn contains(&self, number: u64) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The least number at or after another one.
    pub fn next(&self, number: u64) -> Option<u64> {
        let mut at = number as usize / 64;
        let mut word = self.0.get(at)? >> (number % 64) << (number % 64);
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        Some(64 * at as u64 + u64::from(word.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_numbers_in_order() {
        let mut key = Key::new(16);
        assert_eq!(key.of(258), b"\0\0\0\0\0\0\x01\x0200000000");
        assert_eq!(number_of(key.of(258)), Some(258));
        assert_eq!(number_of(b"\0\0\0\0\0\0\x01\x020001"), None);
        assert_eq!(number_of(b"short"), None);
    }

    #[test]
    fn values_of_any_length_have_their_word() {
        for bytes in [0, 1, 7, 8, 9, 100] {
            let mut value = Value::new(bytes, Purpose::Run);
            let written = value.of(7).to_vec();
            assert_eq!(written.len(), bytes);
            assert_eq!(word(&written), word_of(7, bytes), "{bytes}");
            assert_eq!(is_of_run(&written), (bytes > 8).then_some(true));
        }
        assert_eq!(is_of_run(Value::new(9, Purpose::Fill).of(1)), Some(false));
        assert_ne!(word_of(7, 8), word_of(8, 8));
    }

    #[test]
    fn numbers_are_found_in_order() {
        let mut numbers = Numbers::new(200);
        for number in [0, 63, 64, 199] {
            numbers.insert(number);
        }
        assert!(numbers.contains(63) && !numbers.contains(62));
        assert_eq!(numbers.len(), 4);
        let next: Vec<_> = [0, 1, 64, 65, 199, 200].map(|from| numbers.next(from)).into();
        assert_eq!(next, [Some(0), Some(63), Some(64), Some(199), Some(199), None]);
    }

    #[test]
    fn threads_and_purposes_draw_other_numbers() {
        let drawn = |purpose, thread| {
            let mut draws = Draws::new(1, purpose, thread, 1 << 40);
            [draws.draw(), draws.draw()]
        };
        let all = [
            drawn(Purpose::Fill, 0),
            drawn(Purpose::Run, 0),
            drawn(Purpose::Fill, 1),
            drawn(Purpose::Run, 1),
        ];
        for (at, draws) in all.iter().enumerate() {
            assert!(!all[..at].contains(draws));
        }
        assert_eq!(drawn(Purpose::Run, 3), drawn(Purpose::Run, 3));
    }
}

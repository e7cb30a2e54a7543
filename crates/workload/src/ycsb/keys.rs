//! Record numbers as keys.

/// YCSB's hash of a number: FNV-1a over its eight bytes, the lowest first, and the absolute value
/// of the result.
///
/// It is no bijection. The probability that two of n records share a key is about n² / 2^64, which
/// is 5 in a million for 10 million records.
#[inline]
pub const fn fnv_hash(number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = number;
    let mut octet = 0;
    while octet < 8 {
        hash = (hash ^ (rest & 0xff)).wrapping_mul(0x100_0000_01b3);
        rest >>= 8;
        octet += 1;
    }
    (hash as i64).unsigned_abs()
}

/// Numbers modulo one divisor, by a multiplication: a division takes several times as long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modulo {
    divisor: u64,
    /// `(2^64 - 1) / divisor`, rounded down.
    inverse: u64,
}

impl Modulo {
    /// Makes the operation for a divisor of at least 1.
    pub(crate) fn new(divisor: u64) -> Self {
        let divisor = divisor.max(1);
        Self { divisor, inverse: u64::MAX / divisor }
    }

    /// The rest of the number.
    #[inline]
    pub(crate) fn of(self, number: u64) -> u64 {
        // The quotient, or one less.
        let quotient = ((u128::from(number) * u128::from(self.inverse)) >> 64) as u64;
        let mut rest = number - quotient * self.divisor;
        while rest >= self.divisor {
            rest -= self.divisor;
        }
        rest
    }
}

/// Two digits for each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes `user` and a number that is padded to `width` digits.
pub(crate) fn write(number: u64, width: usize, key: &mut Vec<u8>) {
    const DIGITS: usize = 20; // of the largest word
    let mut digits = [b'0'; DIGITS];
    let (mut rest, mut at) = (number, DIGITS);
    for pair in digits.as_chunks_mut::<2>().0.iter_mut().rev() {
        *pair = PAIRS[(rest % 100) as usize];
        rest /= 100;
        at -= 2;
        if rest == 0 {
            break;
        }
    }
    if digits[at] == b'0' && at + 1 < DIGITS {
        at += 1;
    }
    key.clear();
    key.extend_from_slice(b"user");
    key.resize(b"user".len() + width.saturating_sub(DIGITS - at), b'0');
    key.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// FNV-1a as its authors state it, in arithmetic without overflow.
    fn simple(number: u64) -> u64 {
        let hash = number.to_le_bytes().iter().fold(14_695_981_039_346_656_037_u128, |hash, &b| {
            (hash ^ u128::from(b)) * 1_099_511_628_211 % (1 << 64)
        });
        // The distance to the next multiple of 2^64.
        hash.min((1 << 64) - hash) as u64
    }

    #[test]
    fn hashes_are_those_of_ycsb() {
        // The first keys that `ycsb load basic` prints.
        let published =
            [6_284_781_860_667_377_211, 8_517_097_267_634_966_620, 1_820_151_046_732_198_393];
        assert_eq!([0, 1, 2].map(fnv_hash), published);
    }

    #[test]
    fn keys_are_padded() {
        let text = |number, width| {
            let mut key = b"other".to_vec();
            write(number, width, &mut key);
            String::from_utf8(key).unwrap()
        };
        assert_eq!(text(5, 1), "user5");
        assert_eq!(text(5, 8), "user00000005");
        assert_eq!(text(0, 0), "user0");
        assert_eq!(text(1234, 3), "user1234");
        assert_eq!(text(u64::MAX, 22), "user0018446744073709551615");
    }

    proptest! {
        #[test]
        fn hashes_match_a_simple_implementation(number: u64, small in 0_u64..100_000) {
            prop_assert_eq!(fnv_hash(number), simple(number));
            prop_assert_eq!(fnv_hash(small), simple(small));
        }

        #[test]
        fn rests_are_those_of_a_division(a: u64, b: u64, shift in 0_u32..64) {
            for (number, divisor) in [(a, b >> shift), (a >> shift, b), (u64::MAX, b >> shift)] {
                let divisor = divisor.max(1);
                prop_assert_eq!(Modulo::new(divisor).of(number), number % divisor);
            }
        }

        #[test]
        fn keys_are_what_format_writes(number: u64, shift in 0_u32..64, width in 0_usize..40) {
            let number = number >> shift;
            let mut key = Vec::new();
            write(number, width, &mut key);
            prop_assert_eq!(key, format!("user{number:0width$}").into_bytes());
        }
    }
}

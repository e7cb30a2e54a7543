//! Operation mixes: the share of each kind of operation, in percent.

use std::fmt;
use std::str::FromStr;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Look a key up.
    Lookup,
    /// Insert a key.
    Insert,
    /// Remove a key.
    Remove,
    /// Read the entries from a key on.
    Scan,
    /// Insert a key that was loaded, or replace its value.
    Upsert,
}

impl Op {
    /// All kinds, in the order in which a mix names their shares.
    pub const ALL: [Self; 5] = [Self::Lookup, Self::Insert, Self::Remove, Self::Scan, Self::Upsert];
}

/// The shares of lookups, inserts, removals, scans and upserts in percent, written `90/5/5`,
/// `85/5/5/5`, `50/0/0/0/50` or `79.99/10/10/0.01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mix {
    /// In millionths.
    shares: [u32; 5],
}

/// One percent, and the decimals of a share in percent.
const PERCENT: u32 = 10_000;
const DECIMALS: usize = 4;

/// The reason why a text is no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MixError {
    /// The text is not three to five numbers between slashes.
    Form(String),
    /// The shares do not sum to 100.
    Sum {
        /// The text.
        text: String,
        /// The sum of its shares, in millionths.
        sum: u64,
    },
}

impl Mix {
    /// The mix of lookups alone.
    pub const LOOKUPS: Self = Self { shares: [Self::WHOLE, 0, 0, 0, 0] };

    /// The sum of all shares: they are in millionths.
    pub const WHOLE: u32 = 100 * PERCENT;

    /// The mix of these numbers of operations, in the order of [`Op::ALL`]. The largest share takes
    /// what rounding leaves. Without operations they are lookups.
    pub fn of_counts(counts: [u64; Op::ALL.len()]) -> Self {
        let all: u64 = counts.iter().sum();
        if all == 0 {
            return Self::LOOKUPS;
        }
        let whole = u128::from(Self::WHOLE);
        let share = |count: u64| (u128::from(count) * whole / u128::from(all)) as u32;
        let mut shares = counts.map(share);
        let rest = Self::WHOLE - shares.iter().sum::<u32>();
        if let Some(largest) = shares.iter_mut().max() {
            *largest += rest;
        }
        Self { shares }
    }

    /// The share of `op`, in millionths.
    pub fn share(self, op: Op) -> u32 {
        self.shares[op as usize]
    }

    /// Whether the mix leaves the size of an index as it is, on average: it has as many inserts as
    /// removals, and no upserts that put removed keys back.
    pub fn keeps_size(self) -> bool {
        self.growth() == 0 && !(self.upserts() && self.share(Op::Remove) > 0)
    }

    /// The share of inserts less that of removals, in millionths.
    pub fn growth(self) -> i64 {
        i64::from(self.share(Op::Insert)) - i64::from(self.share(Op::Remove))
    }

    /// Whether the mix contains scans.
    pub fn scans(self) -> bool {
        self.share(Op::Scan) > 0
    }

    /// Whether the mix contains upserts.
    pub fn upserts(self) -> bool {
        self.share(Op::Upsert) > 0
    }

    /// Whether the mix contains inserts, removals or upserts.
    pub fn writes(self) -> bool {
        [Op::Insert, Op::Remove, Op::Upsert].into_iter().any(|op| self.share(op) > 0)
    }

    /// Cumulative upper bounds of the shares, scaled to 32-bit words: a random word below the first
    /// bound is a lookup, otherwise one below the second is an insert, and so on.
    pub(crate) fn thresholds(self) -> [u64; 4] {
        let mut sum = 0;
        std::array::from_fn(|kind| {
            sum += u64::from(self.shares[kind]);
            (sum << 32) / u64::from(Self::WHOLE)
        })
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let form = || MixError::Form(text.into());
        let shares: Vec<u64> = text
            .split('/')
            .map(|share| millionths(share).ok_or_else(form))
            .collect::<Result<_, _>>()?;
        if !(3..=5).contains(&shares.len()) {
            return Err(form());
        }
        let sum = shares.iter().fold(0, |sum: u64, &share| sum.saturating_add(share));
        if sum != u64::from(Self::WHOLE) {
            let text = text.into();
            return Err(MixError::Sum { text, sum });
        }
        let mut all = [0; 5];
        for (to, from) in all.iter_mut().zip(shares) {
            *to = from as u32; // at most the whole
        }
        Ok(Self { shares: all })
    }
}

/// Reads a share in percent. Nothing if the text is something else, or has too many decimals.
fn millionths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    // `parse` would also accept a plus sign.
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || !(1..=DECIMALS).contains(&decimals.len()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    Some(whole.saturating_mul(PERCENT.into()).saturating_add(decimals))
}

/// Writes a number of millionths in percent, without decimals that are zero.
struct Percent(u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / u64::from(PERCENT), self.0 % u64::from(PERCENT));
        write!(f, "{whole}")?;
        if decimals == 0 {
            return Ok(());
        }
        write!(f, ".{}", format!("{decimals:0DECIMALS$}").trim_end_matches('0'))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lookup, insert, remove, scan, upsert] = self.shares.map(|share| Percent(share.into()));
        write!(f, "{lookup}/{insert}/{remove}")?;
        match (scan.0, upsert.0) {
            (0, 0) => Ok(()),
            (_, 0) => write!(f, "/{scan}"),
            _ => write!(f, "/{scan}/{upsert}"),
        }
    }
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                f,
                "`{text}` is not LOOKUP/INSERT/REMOVE, perhaps with /SCAN or /SCAN/UPSERT, in \
                 percent with up to {DECIMALS} decimals: write for example 90/5/5 or 79.99/10/10/0.01"
            ),
            Self::Sum { text, sum } => {
                let sum = match *sum {
                    u64::MAX => String::from("too much"),
                    sum => Percent(sum).to_string(),
                };
                write!(f, "`{text}` sums to {sum}: choose shares in percent that sum to 100")
            }
        }
    }
}

impl std::error::Error for MixError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_are_read() {
        let mix: Mix = "85/4/6/5".parse().unwrap();
        assert_eq!(Op::ALL.map(|op| mix.share(op) / PERCENT), [85, 4, 6, 5, 0]);
        assert!(mix.scans() && mix.writes());
        assert_eq!(mix.to_string(), "85/4/6/5");
        let mix: Mix = "100/0/0/0".parse().unwrap();
        assert!(!mix.scans() && !mix.writes());
        assert_eq!(mix.to_string(), "100/0/0");
        let mix: Mix = "50/0/0/0/50".parse().unwrap();
        assert!(mix.upserts() && mix.writes() && !mix.scans() && mix.keeps_size());
        for (text, keeps) in [("40/20/20/0/20", false), ("60/20/20", true), ("40/20/40", false)] {
            assert_eq!(text.parse::<Mix>().unwrap().keeps_size(), keeps, "{text}");
        }
        assert_eq!(mix.to_string(), "50/0/0/0/50");
        let mix: Mix = "79.9999/10/10.0/0.0001".parse().unwrap();
        assert_eq!(Op::ALL.map(|op| mix.share(op)), [799_999, 100_000, 100_000, 1, 0]);
        assert_eq!(mix.to_string(), "79.9999/10/10/0.0001");
        assert!(mix.scans() && mix.keeps_size());
    }

    #[test]
    fn wrong_forms_and_sums_are_told_apart() {
        for text in [
            "",
            "100",
            "50/50",
            "90/5/5/0/0/0",
            "a/b/c",
            "90/5/+5",
            "90/ 5/5",
            "90//5",
            "-1/51/50",
            "90./5/5",
            ".5/99/0.5",
            "0.00001/50/50",
        ] {
            let error = text.parse::<Mix>().unwrap_err();
            assert_eq!(error, MixError::Form(text.into()), "{text}");
        }
        for (text, sum) in [
            ("90/5/6", 1_010_000),
            ("0/0/0", 0),
            ("99.99/0/0", 999_900),
            ("18446744073709551615/1/0", u64::MAX),
        ] {
            let error = text.parse::<Mix>().unwrap_err();
            assert_eq!(error, MixError::Sum { text: text.into(), sum });
            assert!(error.to_string().contains("sum to 100"));
        }
    }

    #[test]
    fn thresholds_divide_the_words_in_the_given_shares() {
        let all = 1_u64 << 32;
        assert_eq!("100/0/0".parse::<Mix>().unwrap().thresholds(), [all; 4]);
        assert_eq!("0/0/0/100".parse::<Mix>().unwrap().thresholds(), [0, 0, 0, all]);
        let quarter = all / 4;
        assert_eq!(
            "25/25/25/25".parse::<Mix>().unwrap().thresholds(),
            [quarter, 2 * quarter, 3 * quarter, all]
        );
    }

    proptest! {
        #[test]
        fn every_mix_comes_back(cuts in proptest::array::uniform4(0_u8..=100)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let [w, x, y, z] = cuts;
            let text = format!("{w}/{}/{}/{}/{}", x - w, y - x, z - y, 100 - z);
            let mix: Mix = text.parse().unwrap();
            prop_assert_eq!(mix.to_string().parse::<Mix>(), Ok(mix));
            prop_assert_eq!(Op::ALL.iter().map(|&op| mix.share(op)).sum::<u32>(), Mix::WHOLE);
        }

        #[test]
        fn no_text_panics(text in "[0-9/+. -]{0,30}") {
            let _ = text.parse::<Mix>();
        }
    }
}

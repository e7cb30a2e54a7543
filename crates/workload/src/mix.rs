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
/// `85/5/5/5` or `50/0/0/0/50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mix {
    percent: [u8; 5],
}

/// The reason why a text is no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MixError {
    /// The text is not three to five whole numbers between slashes.
    Form(String),
    /// The shares do not sum to 100.
    Sum {
        /// The text.
        text: String,
        /// The sum of its shares.
        sum: u64,
    },
}

impl Mix {
    /// The mix of lookups alone.
    pub const LOOKUPS: Self = Self { percent: [100, 0, 0, 0, 0] };

    /// The share of `op` in percent.
    pub fn percent(self, op: Op) -> u8 {
        self.percent[op as usize]
    }

    /// Whether the mix leaves the size of an index as it is, on average: it has as many inserts as
    /// removals, and no upserts that put removed keys back.
    pub fn keeps_size(self) -> bool {
        self.growth() == 0 && !(self.upserts() && self.percent(Op::Remove) > 0)
    }

    /// The share of inserts less that of removals, in percent.
    pub fn growth(self) -> i64 {
        i64::from(self.percent(Op::Insert)) - i64::from(self.percent(Op::Remove))
    }

    /// Whether the mix contains scans.
    pub fn scans(self) -> bool {
        self.percent(Op::Scan) > 0
    }

    /// Whether the mix contains upserts.
    pub fn upserts(self) -> bool {
        self.percent(Op::Upsert) > 0
    }

    /// Whether the mix contains inserts, removals or upserts.
    pub fn writes(self) -> bool {
        [Op::Insert, Op::Remove, Op::Upsert].into_iter().any(|op| self.percent(op) > 0)
    }

    /// Cumulative upper bounds of the shares, scaled to 32-bit words: a random word below the first
    /// bound is a lookup, otherwise one below the second is an insert, and so on.
    pub(crate) fn thresholds(self) -> [u64; 4] {
        let mut sum = 0;
        std::array::from_fn(|kind| {
            sum += u64::from(self.percent[kind]);
            (sum << 32) / 100
        })
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let form = || MixError::Form(text.into());
        let shares: Vec<u64> = text
            .split('/')
            .map(|share| {
                // `parse` would also accept a plus sign.
                let digits = share.bytes().all(|byte| byte.is_ascii_digit());
                share.parse().ok().filter(|_| digits).ok_or_else(form)
            })
            .collect::<Result<_, _>>()?;
        if !(3..=5).contains(&shares.len()) {
            return Err(form());
        }
        let sum = shares.iter().fold(0, |sum: u64, &share| sum.saturating_add(share));
        if sum != 100 {
            let text = text.into();
            return Err(MixError::Sum { text, sum });
        }
        let mut percent = [0; 5];
        for (to, from) in percent.iter_mut().zip(shares) {
            *to = from as u8; // at most 100
        }
        Ok(Self { percent })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lookup, insert, remove, scan, upsert] = self.percent;
        write!(f, "{lookup}/{insert}/{remove}")?;
        match (scan, upsert) {
            (0, 0) => Ok(()),
            (scan, 0) => write!(f, "/{scan}"),
            (scan, upsert) => write!(f, "/{scan}/{upsert}"),
        }
    }
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                f,
                "`{text}` is not LOOKUP/INSERT/REMOVE, perhaps with /SCAN or /SCAN/UPSERT, in whole \
                 percent: write for example 90/5/5 or 85/5/5/5"
            ),
            Self::Sum { text, sum } => {
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
        assert_eq!(Op::ALL.map(|op| mix.percent(op)), [85, 4, 6, 5, 0]);
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
    }

    #[test]
    fn wrong_forms_and_sums_are_told_apart() {
        for text in
            ["", "100", "50/50", "90/5/5/0/0/0", "a/b/c", "90/5/+5", "90/ 5/5", "90//5", "-1/51/50"]
        {
            let error = text.parse::<Mix>().unwrap_err();
            assert_eq!(error, MixError::Form(text.into()), "{text}");
        }
        for (text, sum) in [("90/5/6", 101), ("0/0/0", 0), ("18446744073709551615/1/0", u64::MAX)] {
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
            prop_assert_eq!(Op::ALL.iter().map(|&op| u32::from(mix.percent(op))).sum::<u32>(), 100);
        }

        #[test]
        fn no_text_panics(text in "[0-9/+. -]{0,30}") {
            let _ = text.parse::<Mix>();
        }
    }
}

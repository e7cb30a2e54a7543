//! The key distributions, as the command line names them.

use std::fmt;
use std::str::FromStr;

/// The largest Zipf exponent accepted. Beyond it, nearly all operations choose a handful of keys.
pub const ZIPF_EXPONENT_MAX: f64 = 3.0;

/// The distribution from which keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dist {
    /// `uniform`: the integers from 1 up, all with equal probability.
    Uniform,
    /// `sparse`: like `uniform`, with the integers hashed one to one to 63 bits.
    Sparse,
    /// `zipf:θ`: the key of rank r has a probability proportional to `r^-θ`. Ranks are scattered
    /// over the key space, so that hot keys are not neighbours.
    Zipf(f64),
    /// `sparse+zipf:θ`: the keys of `sparse`, chosen as `zipf:θ` chooses.
    SparseZipf(f64),
    /// `sequential`: every other key is loaded, in ascending order, by threads that take turns.
    /// Then each thread walks up the key space from a random key, again and again.
    Sequential,
    /// `disjoint`: each thread has a contiguous range of keys of its own, all with equal
    /// probability.
    Disjoint,
    /// `latest`: inserts take keys in a fixed order, and removals follow behind in that order.
    /// Lookups prefer recent keys: the r-th youngest has a probability proportional to `r^-0.99`
    /// (the exponent of YCSB).
    Latest,
}

/// The exponent of [`Dist::Latest`].
pub(crate) const LATEST_EXPONENT: f64 = 0.99;

/// The reason why a text is no distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DistError {
    /// The text names no distribution.
    Unknown(String),
    /// The Zipf exponent is missing, is no number, or lies outside 0 to 3.
    Exponent(String),
}

impl Dist {
    /// Whether the integers are hashed to 63 bits: `sparse` and `sparse+zipf`.
    pub fn is_sparse(self) -> bool {
        matches!(self, Self::Sparse | Self::SparseZipf(_))
    }
}

impl FromStr for Dist {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Self, DistError> {
        Ok(match text {
            "uniform" => Self::Uniform,
            "sparse" => Self::Sparse,
            "sequential" => Self::Sequential,
            "disjoint" => Self::Disjoint,
            "latest" => Self::Latest,
            _ => {
                let of_sparse = text.strip_prefix("sparse+");
                let Some(exponent) = of_sparse.unwrap_or(text).strip_prefix("zipf") else {
                    return Err(DistError::Unknown(text.into()));
                };
                let wrong = || DistError::Exponent(text.into());
                let exponent = exponent.strip_prefix(':').ok_or_else(wrong)?;
                let exponent: f64 = exponent.parse().map_err(|_| wrong())?;
                if !(0.0..=ZIPF_EXPONENT_MAX).contains(&exponent) {
                    return Err(wrong());
                }
                let exponent = exponent.abs(); // -0 is 0
                if of_sparse.is_some() { Self::SparseZipf(exponent) } else { Self::Zipf(exponent) }
            }
        })
    }
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sparse => f.write_str("sparse"),
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Self::SparseZipf(exponent) => write!(f, "sparse+zipf:{exponent}"),
            Self::Sequential => f.write_str("sequential"),
            Self::Disjoint => f.write_str("disjoint"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

impl fmt::Display for DistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => write!(
                f,
                "`{text}` is not a distribution: choose uniform, sparse, zipf:EXPONENT, \
                 sparse+zipf:EXPONENT, sequential, disjoint or latest"
            ),
            Self::Exponent(text) => {
                let sparse = if text.starts_with("sparse+") { "sparse+" } else { "" };
                write!(
                    f,
                    "`{text}` has no exponent between 0 and 3: write for example {sparse}zipf:0.99"
                )
            }
        }
    }
}

impl std::error::Error for DistError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for text in [
            "uniform",
            "sparse",
            "zipf:0",
            "zipf:0.99",
            "zipf:3",
            "sparse+zipf:0",
            "sparse+zipf:0.99",
            "sequential",
            "disjoint",
            "latest",
        ] {
            assert_eq!(text.parse::<Dist>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_a_remedy() {
        let sums = ["sparse+", "sparse+sequential", "sparse+sparse+zipf:1", "sparse+uniform"];
        for text in ["", "Uniform", "normal", "uniform ", "latest:1"].into_iter().chain(sums) {
            let error = text.parse::<Dist>().unwrap_err();
            assert_eq!(error, DistError::Unknown(text.into()));
            assert!(error.to_string().contains("choose uniform"));
            assert!(error.to_string().contains("sparse+zipf:EXPONENT"));
        }
        for text in
            ["zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:3.01", "zipf:nan", "zipf:inf", "zipfian"]
        {
            let error = text.parse::<Dist>().unwrap_err();
            assert_eq!(error, DistError::Exponent(text.into()), "{text}");
            assert!(error.to_string().ends_with(" zipf:0.99"));
        }
        for text in ["sparse+zipf", "sparse+zipf:", "sparse+zipf:4"] {
            let error = text.parse::<Dist>().unwrap_err();
            assert_eq!(error, DistError::Exponent(text.into()), "{text}");
            assert!(error.to_string().ends_with(" sparse+zipf:0.99"));
        }
    }

    proptest! {
        #[test]
        fn any_exponent_comes_back(exponent in 0.0_f64..=3.0) {
            for dist in [Dist::Zipf(exponent), Dist::SparseZipf(exponent)] {
                prop_assert_eq!(dist.to_string().parse(), Ok(dist));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = text.parse::<Dist>();
        }
    }
}

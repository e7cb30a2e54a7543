//! `--shard I/N`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The `index`-th of `count` parts, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub index: usize,
    pub count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then_some(())
                .and_then(|()| text.parse().ok())
        };
        let parts = text.split_once('/').map(|(index, count)| (number(index), number(count)));
        match parts {
            Some((Some(index), Some(count))) if (1..=count).contains(&index) => {
                Ok(Self { index, count })
            }
            _ => Err(format!(
                "`{text}` is not a part: write I/N with I from 1 to N, for example 1/4"
            )),
        }
    }
}

impl Shard {
    /// Whether a unit, counted from 0, is of this part.
    pub fn has(self, unit: usize) -> bool {
        unit % self.count == self.index - 1
    }

    /// The part that a unit, counted from 0, is of.
    pub fn of(unit: usize, count: usize) -> Self {
        Self { index: unit % count + 1, count }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Serialize for Shard {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shard {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_of_one_part() {
        for count in 1..=5 {
            let parts = || (1..=count).map(|index| Shard { index, count });
            for unit in 0..12 {
                let of: Vec<Shard> = parts().filter(|part| part.has(unit)).collect();
                assert_eq!(of, [Shard::of(unit, count)]);
            }
        }
    }

    #[test]
    fn a_shard_is_one_of_its_parts() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
        for text in ["0/3", "4/3", "0/0", "1", "a/b", "1/", "/2", "-1/2", "+1/2", "1/2/3", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}

//! Sums, minima and maxima over the values of a range.

use crate::value::{Number, Value};
use std::cmp::Ordering;

/// The result to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The sum of the values; 0 of none.
    Sum,
    /// The smallest value, if there is one.
    Min,
    /// The largest value, if there is one.
    Max,
}

impl Operation {
    /// The operation with this name, in any case of letters.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let names: [(&[u8], Self); 3] =
            [(b"SUM", Self::Sum), (b"MIN", Self::Min), (b"MAX", Self::Max)];
        names.into_iter().find(|(text, _)| name.eq_ignore_ascii_case(text)).map(|(_, it)| it)
    }
}

/// The aggregates of the values that were added so far.
///
/// Integers are added without loss, in 128 bits. Other numbers are added as floating point numbers,
/// in the order of their keys; if there is one, the sum is a floating point number.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    integers: i128,
    floats: Option<f64>,
    min: Option<Number>,
    max: Option<Number>,
}

/// Compares an integer with a finite number, without rounding.
fn compare(integer: i64, float: f64) -> Ordering {
    /// 2⁶³, which is greater than every integer.
    const BEYOND: f64 = -(i64::MIN as f64);
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float < -BEYOND {
        return Ordering::Greater;
    }
    integer.cmp(&(float as i64)).then(0.0_f64.total_cmp(&(float.fract() + 0.0)))
}

/// Whether `a` is smaller than `b`.
fn less(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Integer(a), Number::Integer(b)) => a < b,
        (Number::Integer(a), Number::Float(b)) => compare(a, b).is_lt(),
        (Number::Float(a), Number::Integer(b)) => compare(b, a).is_gt(),
        (Number::Float(a), Number::Float(b)) => a < b,
    }
}

fn text(number: Number) -> String {
    match number {
        Number::Integer(integer) => integer.to_string(),
        Number::Float(float) => float.to_string(),
    }
}

impl Aggregate {
    /// Adds a value. Returns `None`, and adds nothing, if it is not a number.
    #[inline]
    pub fn add(&mut self, value: Value<'_>) -> Option<()> {
        let number = value.number()?;
        match number {
            Number::Integer(integer) => self.integers += i128::from(integer),
            Number::Float(float) => *self.floats.get_or_insert(0.0) += float,
        }
        if self.min.is_none_or(|min| less(number, min)) {
            self.min = Some(number);
        }
        if self.max.is_none_or(|max| less(max, number)) {
            self.max = Some(number);
        }
        Some(())
    }

    /// The decimal text of a result; `None` for the minimum or maximum of no values.
    pub fn result(&self, operation: Operation) -> Option<String> {
        match operation {
            Operation::Sum => Some(match self.floats {
                Some(floats) => (self.integers as f64 + floats).to_string(),
                None => self.integers.to_string(),
            }),
            Operation::Min => self.min.map(text),
            Operation::Max => self.max.map(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Operation::{Max, Min, Sum};
    use super::*;
    use crate::map::testing::Counting;
    use crate::value::Values;
    use std::sync::Arc;

    fn add(all: &mut Aggregate, text: &str) -> Option<()> {
        all.add(Values::new(Arc::new(Counting::default())).store(text.as_bytes()).unwrap().value())
    }

    fn of(values: &[&str]) -> [Option<String>; 3] {
        let mut all = Aggregate::default();
        for value in values {
            add(&mut all, value).unwrap();
        }
        [Sum, Min, Max].map(|operation| all.result(operation))
    }

    fn texts(texts: [&str; 3]) -> [Option<String>; 3] {
        texts.map(|text| Some(text.to_string()))
    }

    #[test]
    fn of_nothing_there_is_only_a_sum() {
        assert_eq!(of(&[]), [Some("0".to_string()), None, None]);
    }

    #[test]
    fn integers_lose_nothing() {
        let max = i64::MAX.to_string();
        let sum = (2 * i128::from(i64::MAX)).to_string();
        assert_eq!(of(&[&max, &max]), texts([&sum, &max, &max]));
        assert_eq!(of(&["-3", "1000000000", "0"]), texts(["999999997", "-3", "1000000000"]));
    }

    #[test]
    fn one_fraction_makes_the_sum_one() {
        assert_eq!(of(&["1", "0.25", "-7"]), texts(["-5.75", "-7", "1"]));
        assert_eq!(of(&["2", "2.5", "3"]), texts(["7.5", "2", "3"]));
    }

    #[test]
    fn integers_and_fractions_are_compared_without_rounding() {
        let (odd, even) = ("9007199254740993", "9007199254740992.0"); // 2^53 + 1, 2^53
        for values in [[odd, even], [even, odd]] {
            assert_eq!(of(&values)[1..], [Some(even[..16].to_string()), Some(odd.to_string())]);
        }
        let (max, beyond) = ("9223372036854775807", "9223372036854775808");
        // The shortest text that is parsed as 2^63.
        assert_eq!(of(&[beyond, max])[2].as_deref(), Some("9223372036854776000"));
        assert_eq!(of(&["-1", "-1.5", "-2"])[1..], texts(["0", "-2", "-1"])[1..]);
        assert_eq!(of(&["-1.5", "-1"])[1..], texts(["0", "-1.5", "-1"])[1..]);
        assert_eq!(
            of(&["-9223372036854775808", "-9223372036854775809"])[2].as_deref(),
            Some("-9223372036854775808")
        );
    }

    #[test]
    fn a_text_is_no_number() {
        let mut all = Aggregate::default();
        assert_eq!(add(&mut all, "seven"), None);
        assert_eq!(all.result(Sum), Some("0".to_string()));
    }

    #[test]
    fn names_in_any_case() {
        assert_eq!(Operation::parse(b"sUm"), Some(Sum));
        assert_eq!(Operation::parse(b"AVG"), None);
    }
}

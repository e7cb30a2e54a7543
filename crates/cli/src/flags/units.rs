//! Numbers as people write them.

use std::fmt;

/// A count: digits, and `k`, `M` or `G` for a thousand, a million, a milliard (in either case).
pub fn parse_count(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return None,
    };
    parse_digits(digits)?.checked_mul(unit)
}

/// A number of bytes: digits, and `K`, `M`, `G` or `T` for powers of 1024 (in either case, with or
/// without `iB` or `B`).
pub fn parse_bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let power = match unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit) {
        "" if unit == "ib" => return None,
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    parse_digits(digits)?.checked_mul(1 << (10 * power))
}

fn parse_digits(text: &str) -> Option<usize> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A number of bytes, shown in the largest unit that divides it, or with one decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["GiB", "MiB", "KiB"];
        for (unit, shift) in units.into_iter().zip([30, 20, 10]) {
            let size = 1_usize << shift;
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{} {unit}", self.0 / size);
            }
            if self.0 >= 10 * size {
                return write!(f, "{:.1} {unit}", self.0 as f64 / size as f64);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A count with a suffix where that loses nothing.
pub fn count(n: usize) -> String {
    for (unit, size) in [("M", 1_000_000), ("k", 1000)] {
        if n >= size && n.is_multiple_of(size) {
            return format!("{}{unit}", n / size);
        }
    }
    n.to_string()
}

/// The plural's ending for a count: nothing for 1, else `s`.
pub fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// A share in percent, without the digits that its binary form would add.
pub fn percent(share: f64) -> String {
    ((1e10 * share).round() / 1e8).to_string()
}

/// A probability in percent. None that is below 1 is shown as 100 %.
pub fn probability(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 99.0 && percent < 100.0 {
        format!("{:.1}", (10.0 * percent).floor() / 10.0)
    } else {
        format!("{percent:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        for of in 1..=1000 {
            assert_eq!(percent(f64::from(of) / 1000.0), (f64::from(of) / 10.0).to_string());
        }
        let shown = [0.0, 0.9375, 0.99, 0.9967, 0.999_99, 1.0].map(probability);
        assert_eq!(shown, ["0", "94", "99", "99.6", "99.9", "100"]);
    }

    #[test]
    fn counts() {
        for (text, number) in [("0", 0), ("17", 17), ("100k", 100_000), ("1M", 1_000_000)] {
            assert_eq!(parse_count(text), Some(number));
            assert_eq!(count(number), text);
        }
        assert_eq!(parse_count("10m"), Some(10_000_000));
        assert_eq!(parse_count("2G"), Some(2_000_000_000));
        for text in ["", "k", "-1", "+1", "1.5M", "1Mi", "1 M", "é", "99999999999999999999", "1kk"]
        {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn bytes() {
        for (text, number) in [
            ("4096", 4096),
            ("4k", 4096),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("64mb", 64 << 20),
            ("7B", 7),
            ("1g", 1 << 30),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse_bytes(text), Some(number), "{text}");
        }
        for text in ["", "M", "1x", "iB", "1iB", "1.5M", "99999999T", "1é"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        assert_eq!(Bytes(64 << 20).to_string(), "64 MiB");
        assert_eq!(Bytes(15_000_000).to_string(), "14.3 MiB");
        assert_eq!(Bytes(1 << 30).to_string(), "1 GiB");
        assert_eq!(Bytes(1000).to_string(), "1000 B");
    }
}

//! The scales of axes.

/// A scale from a range of figures to the length of an axis.
#[derive(Clone, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

/// The ratio of ends from which the ticks of a logarithmic scale are 1, 2, 5, 10 and so on.
const WIDE: f64 = 6.0;
/// The ratio of ends from which only powers of ten are ticks.
const VERY_WIDE: f64 = 300.0;

impl Scale {
    /// A scale from 0 to at least the largest of the figures.
    pub fn linear(figures: impl Iterator<Item = f64>) -> Self {
        let most = figures.filter(|figure| figure.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let step = step(most / 4.0);
        let steps = (most / step - 1e-9).ceil();
        let ticks = (0..=steps as u32).map(|at| f64::from(at) * step).collect();
        Self { low: 0.0, high: steps * step, is_log: false, ticks }
    }

    /// A logarithmic scale over figures above zero.
    pub fn log(figures: impl Iterator<Item = f64>) -> Self {
        let figures = figures.filter(|figure| figure.is_finite() && *figure > 0.0);
        let ends = (f64::INFINITY, 0.0_f64);
        let (low, high) = figures.fold(ends, |(low, high), at| (low.min(at), high.max(at)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        // Some room at both ends.
        let room = (high / low).powf(0.04).max(1.02);
        let (low, high) = (low / room, high * room);
        let within = |tick: &f64| (low..=high).contains(tick);
        let ticks = if high / low < WIDE {
            let step = step((high - low) / 4.0);
            let first = (low / step).ceil();
            (0..8).map(|at| (first + f64::from(at)) * step).filter(within).collect()
        } else {
            let digits: &[f64] = if high / low < VERY_WIDE { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
            let all = decades.flat_map(|power| digits.iter().map(move |d| d * 10_f64.powi(power)));
            all.filter(within).collect()
        };
        Self { low, high, is_log: true, ticks }
    }

    /// The place of a figure on the axis, from 0 to 1.
    pub fn at(&self, figure: f64) -> f64 {
        let place = if self.is_log {
            (figure / self.low).ln() / (self.high / self.low).ln()
        } else {
            (figure - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// The figures that are written at the axis, in ascending order.
    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// A round number near a length: 1, 2 or 5 times a power of ten.
fn step(length: f64) -> f64 {
    let power = 10_f64.powf(length.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= length * 0.999);
    digit.unwrap_or(10.0) * power
}

/// A figure with no more digits than it needs.
pub fn plain(figure: f64) -> String {
    let decimals = digits(figure).max(4);
    let text = format!("{figure:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// The decimals of a figure that show three digits of it.
fn digits(figure: f64) -> usize {
    let figure = figure.abs();
    if figure.is_normal() { (2.0 - figure.log10().floor()).clamp(0.0, 12.0) as usize } else { 0 }
}

/// A figure with three digits, or a little more.
pub fn three_digits(figure: f64) -> String {
    match figure {
        of if of >= 100.0 => format!("{of:.0}"),
        of if of >= 10.0 => format!("{of:.1}"),
        of if of >= 0.1 => format!("{of:.2}"),
        of => format!("{of:.0$}", digits(of)),
    }
}

/// A unit of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The number of units in a million per second.
    pub in_million: f64,
    /// The word before what is counted. Empty for ones.
    word: &'static str,
}

impl Unit {
    /// The unit that suits the largest of these rates, which are millions per second.
    pub fn of(millions: impl Iterator<Item = f64>) -> Self {
        let (in_million, word) = match millions.fold(0.0, f64::max) {
            most if most < 1e-4 && most > 0.0 => (1e6, ""),
            most if most < 0.1 && most > 0.0 => (1e3, "thousand "),
            _ => (1.0, "million "),
        };
        Self { in_million, word }
    }

    /// The name of the unit, with what is counted.
    pub fn name(self, counted: &str) -> String {
        format!("{}{counted} per second", self.word)
    }
}

/// Nanoseconds in the unit that suits them.
pub fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{} s", plain(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", plain(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} µs", plain(ns / 1e3)),
        ns => format!("{} ns", plain(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: &Scale) -> Vec<String> {
        scale.ticks().iter().map(|tick| plain(*tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_figures() {
        let linear = |most: f64| ticks(&Scale::linear([most].into_iter()));
        assert_eq!(linear(37.0), ["0", "10", "20", "30", "40"]);
        assert_eq!(linear(40.0), ["0", "10", "20", "30", "40"]);
        assert_eq!(linear(0.07), ["0", "0.02", "0.04", "0.06", "0.08"]);
        assert_eq!(linear(0.0), ["0", "0.5", "1"]);
        assert_eq!(linear(f64::NAN), ["0", "0.5", "1"]);
        let slow = ["0", "0.000005", "0.00001", "0.000015", "0.00002"];
        assert_eq!(linear(0.000_018), slow);
        let log = |low: f64, high: f64| ticks(&Scale::log([low, high].into_iter()));
        assert_eq!(log(0.2, 3.0), ["0.2", "0.5", "1", "2"]);
        assert_eq!(log(0.9, 1.25), ["0.9", "1", "1.1", "1.2"]);
        assert_eq!(log(80.0, 2e6), ["100", "1000", "10000", "100000", "1000000"]);
        assert_eq!(log(0.0, 0.0), ["0.99", "1", "1.01", "1.02"]);
    }

    #[test]
    fn figures_keep_three_digits() {
        let shown = [1234.56, 99.96, 12.345, 1.2345, 0.12345, 0.012_345, 0.000_021_24, 0.0];
        let shown = shown.map(three_digits);
        let expected = ["1235", "100.0", "12.3", "1.23", "0.12", "0.0123", "0.0000212", "0"];
        assert_eq!(shown, expected);
        assert_eq!(plain(1.0 / 3.0), "0.3333");
    }

    #[test]
    fn slow_rates_have_a_smaller_unit() {
        let unit = |millions: f64| {
            let unit = Unit::of([0.0, millions].into_iter());
            (unit.in_million * millions, unit.name("scans"))
        };
        assert_eq!(unit(0.5), (0.5, "million scans per second".into()));
        assert_eq!(unit(0.0625), (62.5, "thousand scans per second".into()));
        assert_eq!(unit(0.000_03).1, "scans per second");
        assert_eq!(unit(0.0).1, "million scans per second");
    }

    #[test]
    fn places_are_between_the_ends() {
        let log = Scale::log([1.0, 100.0].into_iter());
        assert!((log.at(10.0) - 0.5).abs() < 1e-9 && log.at(0.0) <= 0.0 && log.at(1e9) >= 1.0);
        let linear = Scale::linear([100.0].into_iter());
        assert!((linear.at(25.0) - 0.25).abs() < 1e-9);
        assert_eq!(nanoseconds(1500.0), "1.5 µs");
    }
}

//! Zipf's law by the method of Gray et al. (SIGMOD 1994), as YCSB and DBx1000 draw it.

/// The exponent of all of YCSB's Zipf distributions.
pub const YCSB_EXPONENT: f64 = 0.99;

/// The largest exponent of [`Zipf`]. The method fails at 1.
pub const EXPONENT_MAX: f64 = 0.999;

/// The terms of zeta that are added one by one.
const HEAD: u64 = 32;

/// A sampler of ranks `0..items` by Zipf's law: the probability of rank r is proportional to
/// `1 / (r + 1)^exponent`.
///
/// Ranks 0 and 1 have exactly these probabilities. The others follow a continuous approximation:
/// with exponent 0.99, rank 2 is about 20 % more frequent than by Zipf's law, rank 9 about 5 % more
/// frequent, and the tail a little less frequent. YCSB and DBx1000 have this bias, too.
///
/// # Why this method
/// A draw costs one power, 15 to 20 ns. `rand_distr::Zipf`, which [`Choice`](crate::Choice) samples
/// ahead of its runs, is exact at all ranks and all exponents, but costs several powers and rejects
/// some draws. A table of samples would be too short for the tail of ten million rows. This is also
/// the method of YCSB and of DBx1000, so the skew is that of published results.
///
/// # Departures
/// 1. The constant zeta is computed by the Euler–Maclaurin formula instead of a sum of all terms.
///    It costs 32 powers instead of one for each item, and differs by less than one part in 10^10.
/// 2. YCSB keeps one coefficient of the first number of items if items are added. Ours follows, so
///    the distribution is right at every number.
/// 3. The power of a draw is computed by two small tables and short polynomials.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    items: u64,
    exponent: f64,
    /// The first [`HEAD`] - 1 terms of zeta.
    head: f64,
    zeta: f64,
    /// `1 + 2^-exponent`: the end of rank 1.
    second: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Makes a sampler of `0..items`. None if there are no items, or if the exponent is not from 0
    /// to [`EXPONENT_MAX`].
    pub fn new(items: u64, exponent: f64) -> Option<Self> {
        if items == 0 || !(0.0..=EXPONENT_MAX).contains(&exponent) {
            return None;
        }
        let mut zipf = Self {
            items: 0,
            exponent,
            head: (1..HEAD).map(|k| (k as f64).powf(-exponent)).sum(),
            zeta: 0.0,
            second: 1.0 + 0.5_f64.powf(exponent),
            alpha: 1.0 / (1.0 - exponent),
            eta: 0.0,
        };
        zipf.set_items(items);
        Some(zipf)
    }

    /// The number of items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Changes the number of items, at least 1. It costs a few powers.
    pub fn set_items(&mut self, items: u64) {
        let items = items.max(1);
        if items == self.items {
            return;
        }
        self.items = items;
        self.zeta = zeta(items, self.exponent, self.head);
        // With one or two items, every draw ends before it uses the coefficient.
        self.eta = if items <= 2 {
            0.0
        } else {
            let rest = 1.0 - self.second / self.zeta;
            (1.0 - (2.0 / items as f64).powf(1.0 - self.exponent)) / rest
        };
    }

    /// The probability of rank 0.
    pub fn hottest(&self) -> f64 {
        self.zeta.recip()
    }

    /// The rank for a number `unit` that is uniform in `0.0..1.0`.
    #[inline]
    pub fn rank(&self, unit: f64) -> u64 {
        let mass = unit * self.zeta;
        if mass < 1.0 {
            return 0;
        }
        if mass < self.second {
            return 1.min(self.items - 1);
        }
        let share = power(self.eta * unit - self.eta + 1.0, self.alpha);
        // `i64`, because the conversion to `u64` takes several instructions.
        ((self.items as f64 * share) as i64 as u64).min(self.items - 1)
    }
}

/// `base` to the power of `exponent`, for a base in `0.0..=1.0` that is not tiny. Its relative
/// error is below 10^-12, or 10^-13 times a large exponent.
///
/// It takes less time than `powf`, which guarantees more digits, and it calls nothing, so the
/// processor overlaps several draws. It gives the same result on all machines. `powf` need not.
#[inline(always)]
fn power(base: f64, exponent: f64) -> f64 {
    /// Added to a small number, it leaves the nearest integer in the lower bits.
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    const PARTS: f64 = EXPONENTIALS.len() as f64;
    // Far more than a rank needs, so that no input makes the bits below overflow.
    let x = (exponent * log2(base)).clamp(-1000.0, 1000.0);
    let rounded = x * PARTS + ROUND;
    let parts = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i64;
    // The rest is at most 0.011, and the Taylor series of e^y ends with y^5 / 5!.
    let y = (x - (rounded - ROUND) / PARTS) * std::f64::consts::LN_2;
    let y2 = y * y;
    let series = (1.0 + y) + y2 * ((0.5 + y / 6.0) + y2 * (1.0 / 24.0 + y / 120.0));
    let part = EXPONENTIALS[parts as usize % EXPONENTIALS.len()].to_bits();
    let whole = parts.div_euclid(EXPONENTIALS.len() as i64);
    f64::from_bits(part.wrapping_add((whole << 52) as u64)) * series
}

/// The logarithm of a positive number that is not subnormal.
#[inline(always)]
fn log2(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let whole = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    let [inverse, log] = LOGARITHMS[(bits >> 46) as usize % LOGARITHMS.len()];
    // The rest is at most 1/128, and the Taylor series of ln(1 + z) ends with z^6 / 6.
    let z = mantissa * inverse - 1.0;
    let z2 = z * z;
    let tail = (1.0 / 3.0 - z / 4.0) + z2 * (1.0 / 5.0 - z / 6.0);
    let series = (z - z2 * 0.5) + z * z2 * tail;
    whole as f64 + log + series * std::f64::consts::LOG2_E
}

/// For each 64th from 1 to 2: the inverse of its middle, and the logarithm of its middle.
const LOGARITHMS: [[f64; 2]; 64] = {
    let mut table = [[0.0; 2]; 64];
    let mut at = 0;
    while at < table.len() {
        let middle = 1.0 + (at as f64 + 0.5) / table.len() as f64;
        // ln(m) = 2 artanh((m - 1) / (m + 1)), where the argument is at most 1/3.
        let s = (middle - 1.0) / (middle + 1.0);
        let (mut series, mut odd) = (0.0, 41.0);
        while odd > 0.0 {
            series = series * s * s + 1.0 / odd;
            odd -= 2.0;
        }
        table[at] = [1.0 / middle, 2.0 * s * series * std::f64::consts::LOG2_E];
        at += 1;
    }
    table
};

/// Two to the power of 0/32, 1/32 and so on, below 1.
const EXPONENTIALS: [f64; 32] = {
    let mut table = [0.0; 32];
    let mut at = 0;
    while at < table.len() {
        let y = at as f64 / table.len() as f64 * std::f64::consts::LN_2;
        let (mut series, mut divisor) = (1.0, 20.0);
        while divisor > 0.0 {
            series = 1.0 + y / divisor * series;
            divisor -= 1.0;
        }
        table[at] = series;
        at += 1;
    }
    table
};

/// The sum of `k^-exponent` for k from 1 to `items`, given the sum for k below [`HEAD`].
fn zeta(items: u64, exponent: f64, head: f64) -> f64 {
    let (s, from, to) = (exponent, HEAD as f64, items as f64);
    if items < HEAD {
        return (1..=items).map(|k| (k as f64).powf(-s)).sum();
    }
    // Euler–Maclaurin from `HEAD` to `items`: the integral, the ends, and two corrections.
    let integral = (to.powf(1.0 - s) - from.powf(1.0 - s)) / (1.0 - s);
    let (first, last) = (from.powf(-s), to.powf(-s));
    let slope = s / 12.0 * (first / from - last / to);
    let third = s * (s + 1.0) * (s + 2.0) / 720.0 * (first / from.powi(3) - last / to.powi(3));
    head + integral + f64::midpoint(first, last) + slope - third
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn sum(items: u64, exponent: f64) -> f64 {
        (1..=items).map(|k| (k as f64).powf(-exponent)).sum()
    }

    #[test]
    fn zeta_is_the_sum() {
        for exponent in [0.0, 0.3, 0.6, 0.99] {
            for items in [1, 2, 3, 31, 32, 33, 100, 1000, 100_000] {
                let zipf = Zipf::new(items, exponent).unwrap();
                let expected = sum(items, exponent);
                assert!((zipf.zeta / expected - 1.0).abs() < 1e-10, "{items} {exponent}");
            }
        }
        // The constant that YCSB states for 10^10 items.
        let zeta = Zipf::new(10_000_000_000, YCSB_EXPONENT).unwrap().zeta;
        assert!((zeta - 26.469_028_201_783_02).abs() < 1e-9, "{zeta}");
    }

    #[test]
    fn frequencies_follow_the_power_of_the_rank() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for exponent in [0.0, 0.6, 0.99] {
            let zipf = Zipf::new(1000, exponent).unwrap();
            const DRAWS: usize = 1_000_000;
            let mut counts = vec![0_u32; 1000];
            for _ in 0..DRAWS {
                let unit = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                counts[zipf.rank(unit) as usize] += 1;
            }
            let norm = sum(1000, exponent);
            // The power integrated over a rank, instead of the power itself, from rank 2 on.
            let part = |to: f64| (to.powf(1.0 - exponent) - 2.0_f64.powf(1.0 - exponent)) / norm;
            let scale = (norm - sum(2, exponent)) / part(1000.0);
            for rank in [0, 1, 2, 3, 9, 99] {
                let power = (rank as f64 + 1.0).powf(-exponent) / norm;
                let integral = (part(rank as f64 + 1.0) - part(rank as f64)) * scale / norm;
                let expected = DRAWS as f64 * if rank < 2 { power } else { integral };
                let found = f64::from(counts[rank]);
                let tolerance = 5.0 * expected.sqrt();
                assert!((found - expected).abs() < tolerance, "{exponent} {rank}: {found}");
                assert!((found / DRAWS as f64 / power - 1.0).abs() < 0.25, "{exponent} {rank}");
            }
            // The upper half, as a whole.
            let expected = DRAWS as f64 * (1.0 - sum(500, exponent) / norm);
            let found: f64 = counts[500..].iter().copied().map(f64::from).sum();
            assert!((found / expected - 1.0).abs() < 0.05, "{exponent}: {found}, {expected}");
        }
    }

    #[test]
    fn items_may_be_added_and_taken_away() {
        let mut zipf = Zipf::new(10, 0.99).unwrap();
        for items in [11, 1000, 5, 1, 2] {
            zipf.set_items(items);
            let fresh = Zipf::new(items, 0.99).unwrap();
            assert_eq!((zipf.items(), zipf.zeta, zipf.eta), (items, fresh.zeta, fresh.eta));
        }
        zipf.set_items(0);
        assert_eq!((zipf.items(), zipf.rank(0.999)), (1, 0));
    }

    #[test]
    fn other_exponents_are_refused() {
        for exponent in [0.9991, 1.0, 1.5, -0.1, f64::NAN, f64::INFINITY] {
            assert!(Zipf::new(10, exponent).is_none(), "{exponent}");
        }
        assert!(Zipf::new(0, 0.5).is_none());
    }

    proptest! {
        #[test]
        fn powers_are_close(base in 1e-3_f64..=1.0, exponent in 1.0_f64..100.0) {
            let (found, expected) = (power(base, exponent), base.powf(exponent));
            let error = (found / expected - 1.0).abs();
            prop_assert!(error < 1e-12 + 1e-13 * exponent, "{found} {expected}");
            prop_assert!((log2(base) - base.log2()).abs() < 1e-13);
        }

        #[test]
        fn ranks_are_items(items in 1_u64..1 << 40, exponent in 0.0_f64..=EXPONENT_MAX, unit in 0.0_f64..1.0) {
            let zipf = Zipf::new(items, exponent).unwrap();
            for unit in [unit, 0.0, 1.0 - f64::EPSILON / 2.0] {
                prop_assert!(zipf.rank(unit) < items);
            }
        }

        #[test]
        fn ranks_grow_with_the_unit(items in 1_u64..5000, a in 0.0_f64..1.0, b in 0.0_f64..1.0) {
            let zipf = Zipf::new(items, 0.99).unwrap();
            prop_assert!(zipf.rank(a.min(b)) <= zipf.rank(a.max(b)));
        }
    }
}

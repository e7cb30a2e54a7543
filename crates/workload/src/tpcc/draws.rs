//! Random numbers, texts and names, as clauses 2.1.6 and 4.3.2 define them.

use super::Scale;
use crate::choice::label;
use crate::stream::below;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;
use std::ops::RangeInclusive;

/// A uniform draw from a range (clause 2.1.5).
pub(super) fn uniform(rng: &mut Xoshiro256PlusPlus, range: RangeInclusive<u32>) -> u32 {
    let (from, to) = (*range.start(), *range.end());
    from + below(rng, u64::from(to - from) + 1) as u32
}

/// Whether an event of this probability in percent happens.
pub(super) fn percent(rng: &mut Xoshiro256PlusPlus, percent: u32) -> bool {
    uniform(rng, 1..=100) <= percent
}

/// Arranges items in a random order (clause 4.3.2.6).
pub(super) fn shuffle<T>(rng: &mut Xoshiro256PlusPlus, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

/// The characters of texts: letters, then digits.
const CHARACTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: usize = 52;

/// A text of letters and digits, whose length is in a range (clause 4.3.2.2).
pub(super) fn alphanumerics(rng: &mut Xoshiro256PlusPlus, lengths: RangeInclusive<u32>) -> String {
    let length = uniform(rng, lengths) as usize;
    text(rng, CHARACTERS, length)
}

/// A text of this number of letters.
pub(super) fn letters(rng: &mut Xoshiro256PlusPlus, length: usize) -> String {
    text(rng, &CHARACTERS[..LETTERS], length)
}

/// A text of this number of digits (clause 4.3.2.2).
pub(super) fn digits(rng: &mut Xoshiro256PlusPlus, length: usize) -> String {
    text(rng, &CHARACTERS[LETTERS..], length)
}

fn text(rng: &mut Xoshiro256PlusPlus, characters: &[u8], length: usize) -> String {
    let mut draw = || characters[below(rng, characters.len() as u64) as usize];
    (0..length).map(|_| char::from(draw())).collect()
}

/// The constants of the non-uniform draws (clause 2.1.6.1). A database keeps those with which it
/// was loaded, and those of the runs must fit them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The constant for last names.
    pub last_name: u32,
    /// The constant for customer numbers.
    pub customer: u32,
    /// The constant for item numbers.
    pub item: u32,
}

impl Constants {
    const LAST_NAME: u32 = 255;
    const CUSTOMER: u32 = 1023;
    const ITEM: u32 = 8191;

    /// The constants with which the tables are filled.
    pub fn of_load(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "tpcc load"));
        let mut draw = |most| uniform(&mut rng, 0..=most);
        Self {
            last_name: draw(Self::LAST_NAME),
            customer: draw(Self::CUSTOMER),
            item: draw(Self::ITEM),
        }
    }

    /// The constants of the transactions on a database that was loaded with the same seed. The
    /// constants for last names differ by 65 to 119, but neither by 96 nor by 112, so that the
    /// names that are asked for are not those that are most frequent (clause 2.1.6.1).
    pub fn of_run(seed: u64) -> Self {
        let load = Self::of_load(seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "tpcc run"));
        let (customer, item) =
            (uniform(&mut rng, 0..=Self::CUSTOMER), uniform(&mut rng, 0..=Self::ITEM));
        let last_name = loop {
            let last_name = uniform(&mut rng, 0..=Self::LAST_NAME);
            let apart = last_name.abs_diff(load.last_name);
            if (65..=119).contains(&apart) && apart != 96 && apart != 112 {
                break last_name;
            }
        };
        Self { last_name, customer, item }
    }

    /// A draw from `range` in which some numbers are more frequent: `NURand` of clause 2.1.6.
    fn skewed(
        rng: &mut Xoshiro256PlusPlus,
        (most, constant): (u32, u32),
        range: RangeInclusive<u32>,
    ) -> u32 {
        let (from, to) = (*range.start(), *range.end());
        let mixed = uniform(rng, 0..=most) | uniform(rng, range);
        (mixed + constant) % (to - from + 1) + from
    }

    /// A last name that customers of each district have. All 1000 names are drawn, and those that
    /// no customer of a reduced scale has stand for others.
    pub(super) fn last_name(&self, rng: &mut Xoshiro256PlusPlus, scale: Scale) -> LastName {
        let drawn = Self::skewed(rng, (Self::LAST_NAME, self.last_name), 0..=LastName::COUNT - 1);
        LastName((drawn % scale.last_names()) as u16)
    }

    pub(super) fn customer(&self, rng: &mut Xoshiro256PlusPlus, scale: Scale) -> u32 {
        Self::skewed(rng, (Self::CUSTOMER, self.customer), 1..=scale.customers())
    }

    pub(super) fn item(&self, rng: &mut Xoshiro256PlusPlus, scale: Scale) -> u32 {
        Self::skewed(rng, (Self::ITEM, self.item), 1..=scale.items())
    }
}

/// A last name: a number below 1000, written as three syllables (clause 4.3.2.3).
///
/// ```
/// # use silvics_workload::tpcc::LastName;
/// assert_eq!(LastName::new(371).unwrap().to_string(), "PRICALLYOUGHT");
/// assert!(LastName::new(1000).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LastName(u16);

impl LastName {
    /// The number of last names.
    pub(super) const COUNT: u32 = 1000;

    const SYLLABLES: [&'static str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

    /// The name with this number, if it is below 1000.
    pub fn new(number: u16) -> Option<Self> {
        (u32::from(number) < Self::COUNT).then_some(Self(number))
    }

    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for LastName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = [self.0 / 100, self.0 / 10 % 10, self.0 % 10];
        digits.into_iter().try_for_each(|digit| f.write_str(Self::SYLLABLES[usize::from(digit)]))
    }
}

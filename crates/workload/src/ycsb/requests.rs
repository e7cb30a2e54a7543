//! The choice of records by requests.

use super::keys::{Modulo, fnv_hash};
use super::workload::unit;
use super::{RequestDist, Settings, YCSB_EXPONENT, Zipf};
use crate::Share;
use crate::stream::below;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The draws of a zipfian request that may name no record, before the last one is scattered among
/// the records present.
pub const REDRAWS: usize = 64;

/// The number of items whose ranks YCSB scatters over the table.
const SCATTERED: u64 = 10_000_000_000;

/// Chooses records.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    source: Source,
    /// The first loaded record.
    start: u64,
    /// How many records are loaded.
    loaded: u64,
    /// The first inserted record.
    first_insert: u64,
    /// How many records are present: loaded, or inserted and acknowledged.
    present: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Uniform,
    /// Ranks, scattered over `total` records, of which the last may come later or never.
    Scattered {
        zipf: Zipf,
        total: Modulo,
    },
    /// Ages.
    Latest(Zipf),
    /// The next loaded record, and the step to the one after it.
    Sequential {
        at: u64,
        step: u64,
    },
    /// How many records are hot, and the share of operations that choose one.
    Hotspot {
        hot: u64,
        ops: f64,
    },
    /// Ages: `gamma` is the rate, `reach` the probability that an age is that of a record.
    Exponential {
        gamma: f64,
        reach: f64,
    },
}

impl Chooser {
    pub(crate) fn new(settings: &Settings, share: Share) -> Self {
        let loaded = settings.insert_count;
        let zipf = |items| match Zipf::new(items, YCSB_EXPONENT) {
            Some(zipf) => zipf,
            None => unreachable!("a workload has records"),
        };
        let source = match settings.request_dist {
            RequestDist::Uniform => Source::Uniform,
            RequestDist::Zipfian => {
                // YCSB expects twice as many inserts as there should be, and counts one too many.
                let operations = settings.operations.unwrap_or(0) as f64;
                let expected = (2.0 * operations * settings.proportions.insert) as u64;
                let total = loaded.saturating_add(expected).saturating_add(1);
                Source::Scattered { zipf: zipf(SCATTERED), total: Modulo::new(total) }
            }
            RequestDist::Latest => Source::Latest(zipf(loaded)),
            RequestDist::Sequential => Source::Sequential {
                at: share.thread as u64 % loaded,
                step: share.threads as u64 % loaded,
            },
            RequestDist::Hotspot { data, ops } => {
                let hot = (loaded as f64 * data) as u64;
                let ops = match hot {
                    0 => 0.0,
                    hot if hot == loaded => 1.0,
                    _ => ops,
                };
                Source::Hotspot { hot, ops }
            }
            RequestDist::Exponential { percentile, fraction } => {
                let range = settings.records as f64 * fraction;
                Source::Exponential { gamma: -(-percentile / 100.0).ln_1p() / range, reach: 0.0 }
            }
        };
        let (start, first_insert) = (settings.insert_start, settings.records);
        let mut chooser = Self { source, start, loaded, first_insert, present: 0 };
        chooser.set_acknowledged(0);
        chooser
    }

    /// Sets how many inserted records are acknowledged.
    #[inline]
    pub(crate) fn set_acknowledged(&mut self, acknowledged: u64) {
        let present = self.loaded + acknowledged;
        if present != self.present {
            self.present = present;
            self.follow();
        }
    }

    /// Makes the distribution follow the number of records.
    fn follow(&mut self) {
        match &mut self.source {
            Source::Latest(zipf) => zipf.set_items(self.present),
            Source::Exponential { gamma, reach } => {
                *reach = -(-*gamma * self.present as f64).exp_m1();
            }
            Source::Uniform
            | Source::Scattered { .. }
            | Source::Sequential { .. }
            | Source::Hotspot { .. } => {}
        }
    }

    /// The number of the record at a place in the order of insertion.
    #[inline]
    fn at(&self, place: u64) -> u64 {
        if place < self.loaded {
            self.start + place
        } else {
            self.first_insert + (place - self.loaded)
        }
    }

    /// The place of a record in the order of insertion, if the record is present.
    #[inline]
    fn place(&self, record: u64) -> Option<u64> {
        let place = if record >= self.first_insert {
            self.loaded + (record - self.first_insert)
        } else if record - self.start < self.loaded {
            record - self.start
        } else {
            return None;
        };
        (place < self.present).then_some(place)
    }

    /// Draws the record of the next request.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let place = match &mut self.source {
            Source::Uniform => below(rng, self.loaded),
            Source::Scattered { zipf, total } => {
                let (zipf, total) = (*zipf, *total);
                return self.draw_scattered(&zipf, total, rng);
            }
            Source::Latest(zipf) => self.present - 1 - zipf.rank(unit(rng.next_u64())),
            Source::Sequential { at, step } => {
                let place = *at;
                *at += *step;
                if *at >= self.loaded {
                    *at -= self.loaded;
                }
                place
            }
            Source::Hotspot { hot, ops } => {
                if unit(rng.next_u64()) < *ops {
                    below(rng, *hot)
                } else {
                    *hot + below(rng, self.loaded - *hot)
                }
            }
            Source::Exponential { gamma, reach } => {
                let age = -(-unit(rng.next_u64()) * *reach).ln_1p() / *gamma;
                self.present - 1 - (age as u64).min(self.present - 1)
            }
        };
        self.at(place)
    }

    #[inline]
    fn draw_scattered(&self, zipf: &Zipf, total: Modulo, rng: &mut Xoshiro256PlusPlus) -> u64 {
        for _ in 0..REDRAWS {
            let record = self.start + total.of(fnv_hash(zipf.rank(unit(rng.next_u64()))));
            if self.place(record).is_some() {
                return record;
            }
        }
        self.at(fnv_hash(zipf.rank(unit(rng.next_u64()))) % self.present)
    }
}

//! A workload: checked settings, and all that follows from them alone.

use super::fields::base;
use super::keys;
use super::{
    FieldLengthDist, InsertOrder, Inserts, Properties, PropertyError, Settings, Stream,
    YCSB_EXPONENT, Zipf, fnv_hash,
};
use crate::Share;
use std::ops::Range;

/// YCSB's core workload: a table, its load, and a stream of operations for each thread.
#[derive(Clone, Debug)]
pub struct Workload {
    settings: Settings,
    /// Distances from the shortest field, if field lengths follow Zipf's law.
    field_lengths: Option<Zipf>,
}

impl Workload {
    /// Reads a workload from properties.
    pub fn from_properties(properties: &Properties) -> Result<Self, PropertyError> {
        let settings = Settings::from_properties(properties)?;
        let lengths = u64::from(settings.field_bytes - settings.field_bytes_min) + 1;
        let field_lengths = match settings.field_length_dist {
            FieldLengthDist::Zipfian => Zipf::new(lengths, YCSB_EXPONENT),
            FieldLengthDist::Constant | FieldLengthDist::Uniform => None,
        };
        Ok(Self { settings, field_lengths })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Expects the inserts of this many runs on the same records, instead of one run: requests
    /// under Zipf's law choose among the records that are expected.
    #[must_use]
    pub fn of_runs(mut self, runs: u64) -> Self {
        let operations = self.settings.operations;
        self.settings.operations = operations.map(|all| all.saturating_mul(runs));
        self
    }

    /// Whether the workload has scans, which need an index with ranges.
    pub fn scans(&self) -> bool {
        self.settings.proportions.scan > 0.0
    }

    /// Whether the workload inserts records.
    pub fn inserts_records(&self) -> bool {
        self.settings.proportions.insert > 0.0
    }

    /// The numbers of the records that a thread loads. All shares together load each record once.
    pub fn load_part(&self, share: Share) -> Range<u64> {
        let part = share.part(self.settings.insert_count);
        let start = self.settings.insert_start;
        start + part.start..start + part.end
    }

    /// A new counter of inserted records, for all threads of one run.
    pub fn inserts(&self) -> Inserts {
        Inserts::new(self.settings.records)
    }

    /// The operations of a thread. `inserts` is the counter of the run, made by
    /// [`Workload::inserts`] of this workload.
    pub fn stream<'a>(&self, seed: u64, share: Share, inserts: &'a Inserts) -> Stream<'a> {
        Stream::new(&self.settings, seed, share, inserts)
    }

    /// The key of a record as a word: its hash if `insertorder` is `hashed`, otherwise its number.
    #[inline]
    pub fn key_word(&self, record: u64) -> u64 {
        match self.settings.insert_order {
            InsertOrder::Hashed => fnv_hash(record),
            InsertOrder::Ordered => record,
        }
    }

    /// Writes the key of a record as text into an emptied buffer: `user` and the word, padded with
    /// zeros to `zeropadding` digits.
    pub fn write_key(&self, record: u64, key: &mut Vec<u8>) {
        keys::write(self.key_word(record), self.settings.zero_padding as usize, key);
    }

    /// The length in bytes of the value that a writer with `stamp` gives to a field. It depends on
    /// nothing else, so a reader can check the length of a value by its stamp.
    #[inline]
    pub fn field_len(&self, record: u64, field: u32, stamp: u64) -> usize {
        let Settings { field_bytes: most, field_bytes_min: least, .. } = self.settings;
        if least == most {
            return most as usize;
        }
        // Not the bits that the value itself starts with.
        let word = base(record, !field, stamp);
        let extra = match &self.field_lengths {
            Some(zipf) => zipf.rank(unit(word)),
            None => ((u128::from(word) * (u128::from(most - least) + 1)) >> 64) as u64,
        };
        least as usize + extra as usize
    }
}

/// A number in `0.0..1.0` from the upper bits of a word.
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    // `i64`, because the conversion from `u64` takes several instructions.
    (word >> 11) as i64 as f64 * (1.0 / (1_u64 << 53) as f64)
}

//! The operations of a thread, one block at a time.

use super::requests::Chooser;
use super::workload::unit;
use super::{Inserts, Proportions, ScanLengthDist, Settings, YCSB_EXPONENT, Zipf};
use crate::choice::label;
use crate::stream::below;
use crate::{BLOCK_OPS, Share};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The fields that an operation reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fields {
    /// All fields of the record.
    All,
    /// The field with this number.
    One(u32),
}

impl Fields {
    /// Whether a field is among them.
    #[inline]
    pub fn contains(self, field: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == field,
        }
    }
}

/// An operation on records, which it names by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read fields of a record.
    Read {
        /// The record.
        record: u64,
        /// The fields to read.
        fields: Fields,
    },
    /// Write fields of a record.
    Update {
        /// The record.
        record: u64,
        /// The fields to write.
        fields: Fields,
    },
    /// Insert the record whose number [`Inserts::begin`] returns.
    Insert,
    /// Read fields of the records from the key of a record on.
    Scan {
        /// The record whose key is the first.
        record: u64,
        /// How many records to read, at least 1.
        len: u32,
        /// The fields to read.
        fields: Fields,
    },
    /// Read fields of a record, then write fields of it.
    ReadModifyWrite {
        /// The record.
        record: u64,
        /// The fields to read.
        read: Fields,
        /// The fields to write.
        write: Fields,
    },
}

impl Op {
    /// The name of the kind in YCSB's reports.
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Read { .. } => "READ",
            Self::Update { .. } => "UPDATE",
            Self::Insert => "INSERT",
            Self::Scan { .. } => "SCAN",
            Self::ReadModifyWrite { .. } => "READ-MODIFY-WRITE",
        }
    }

    /// The record that the operation names. None for an insert.
    #[inline]
    pub fn record(self) -> Option<u64> {
        match self {
            Self::Insert => None,
            Self::Read { record, .. }
            | Self::Update { record, .. }
            | Self::Scan { record, .. }
            | Self::ReadModifyWrite { record, .. } => Some(record),
        }
    }
}

/// A block of operations, in transactions of one length.
#[derive(Clone, Debug)]
pub struct Block {
    ops: Vec<Op>,
    per_transaction: usize,
}

impl Block {
    /// Makes a block of whole transactions with `per_transaction` operations each (at least 1). It
    /// has the smallest number of transactions with at least [`BLOCK_OPS`] operations.
    pub fn new(per_transaction: usize) -> Self {
        let per_transaction = per_transaction.max(1);
        Self::with_transactions(BLOCK_OPS.div_ceil(per_transaction), per_transaction)
    }

    /// Makes a block of a number of transactions (at least 1) with `per_transaction` operations
    /// each (at least 1). A block of one operation sees all inserts that are acknowledged before
    /// it.
    pub fn with_transactions(transactions: usize, per_transaction: usize) -> Self {
        let per_transaction = per_transaction.max(1);
        let len = transactions.max(1).saturating_mul(per_transaction);
        Self { ops: vec![Op::Insert; len], per_transaction }
    }

    /// The operations.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The operations of each transaction. A transaction may name a record more than once.
    #[inline]
    pub fn transactions(&self) -> std::slice::ChunksExact<'_, Op> {
        self.ops.chunks_exact(self.per_transaction)
    }
}

/// The endless operations of one thread, made by [`Workload::stream`](super::Workload::stream).
///
/// The operations of a block are in the order in which they are drawn. A draw under Zipf's law
/// costs one power; the others cost less.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    rng: Xoshiro256PlusPlus,
    inserts: &'a Inserts,
    /// The ends of the kinds' shares, in the order of [`Proportions`]: the last has none.
    bounds: [f64; 4],
    chooser: Chooser,
    fields: u64,
    read_all: bool,
    write_all: bool,
    scan_min: u32,
    /// How many lengths a scan may have.
    scan_lengths: u64,
    scan_zipf: Option<Zipf>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(settings: &Settings, seed: u64, share: Share, inserts: &'a Inserts) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "ycsb"));
        for _ in 0..share.thread {
            rng.jump(); // by 2^128 words, so that the threads' sequences do not overlap
        }
        let scan_lengths = u64::from(settings.scan_max - settings.scan_min) + 1;
        Self {
            rng,
            inserts,
            bounds: bounds(settings.proportions),
            chooser: Chooser::new(settings, share),
            fields: settings.fields.into(),
            read_all: settings.read_all_fields,
            write_all: settings.write_all_fields,
            scan_min: settings.scan_min,
            scan_lengths,
            scan_zipf: match settings.scan_length_dist {
                ScanLengthDist::Uniform => None,
                ScanLengthDist::Zipfian => Zipf::new(scan_lengths, YCSB_EXPONENT),
            },
        }
    }

    /// Fills the block with the next operations.
    pub fn fill(&mut self, block: &mut Block) {
        self.fill_ops(&mut block.ops);
    }

    /// Replaces `ops` by the next operations. They choose among the records that are acknowledged
    /// now.
    pub fn fill_ops(&mut self, ops: &mut [Op]) {
        self.chooser.set_acknowledged(self.inserts.acknowledged());
        for op in ops {
            *op = self.draw();
        }
    }

    #[inline]
    fn draw(&mut self) -> Op {
        let share = unit(self.rng.next_u64());
        let kind = self.bounds.iter().filter(|&&bound| share >= bound).count();
        if kind == 2 {
            return Op::Insert;
        }
        let record = self.chooser.draw(&mut self.rng);
        match kind {
            0 => Op::Read { record, fields: self.read_fields() },
            1 => Op::Update { record, fields: self.write_fields() },
            3 => Op::Scan { record, len: self.scan_len(), fields: self.read_fields() },
            _ => {
                Op::ReadModifyWrite { record, read: self.read_fields(), write: self.write_fields() }
            }
        }
    }

    #[inline]
    fn scan_len(&mut self) -> u32 {
        let extra = match &self.scan_zipf {
            Some(zipf) => zipf.rank(unit(self.rng.next_u64())),
            None => below(&mut self.rng, self.scan_lengths),
        };
        self.scan_min + extra as u32
    }

    #[inline]
    fn read_fields(&mut self) -> Fields {
        if self.read_all { Fields::All } else { self.one_field() }
    }

    #[inline]
    fn write_fields(&mut self) -> Fields {
        if self.write_all { Fields::All } else { self.one_field() }
    }

    #[inline]
    fn one_field(&mut self) -> Fields {
        Fields::One(below(&mut self.rng, self.fields) as u32)
    }
}

/// The ends of the shares of reads, updates, inserts and scans.
///
/// The end of the last kind that has a share is exactly 1, because the sum is made in the same
/// order. So no number below 1 reaches further.
fn bounds(proportions: Proportions) -> [f64; 4] {
    let Proportions { read, update, insert, scan, read_modify_write } = proportions;
    let sum = read + update + insert + scan + read_modify_write;
    let mut end = 0.0;
    [read, update, insert, scan].map(|share| {
        end += share;
        end / sum
    })
}

//! The records, their keys and fields, and the transactions of a thread.

use crate::drive::draws::shuffled;
use crate::flags::error::Error;
use crate::store::engine::Wrong;
use silvics_workload::Share;
use silvics_workload::ycsb::{
    Block, Fields, InsertOrder, Inserts, Op, Request, Stream, Study, StudyStream, Workload,
    check_head, fill_field,
};
use std::ops::Range;

/// A benchmark.
pub enum Job {
    /// A core workload of YCSB, and the greatest key that is loaded, if it scans.
    Core(Box<Workload>, u64),
    /// The YCSB of the study, and the order in which its rows are inserted.
    Study(Study, Vec<u64>),
}

/// The bytes of a field of the study that do not change. The others are a part of the stamp.
const STUDY_FIXED: usize = 4;

/// The transactions of a block in the study.
const STUDY_BLOCK: usize = 4;

impl Job {
    /// A core workload of YCSB.
    pub fn core(workload: Workload) -> Self {
        let records = if workload.scans() { workload.load_part(Share::ALONE) } else { 0..0 };
        let last = records.map(|record| workload.key_word(record)).max();
        Self::Core(Box::new(workload), last.unwrap_or(0))
    }

    /// The YCSB of the study. Its rows are inserted in random order, as in `reproduce bst/1.9`,
    /// because most trees of the study do not balance themselves.
    pub fn study(study: Study, seed: u64) -> Self {
        Self::Study(study, shuffled(study.rows, seed))
    }

    /// The number of fields of a record.
    pub fn fields(&self) -> u32 {
        match self {
            Self::Core(workload, _) => workload.settings().fields,
            Self::Study(..) => Study::FIELDS,
        }
    }

    /// The bytes of the longest field.
    pub fn field_bytes(&self) -> u32 {
        match self {
            Self::Core(workload, _) => workload.settings().field_bytes,
            Self::Study(..) => Study::FIELD_BYTES,
        }
    }

    /// The operations of a transaction, if the benchmark sets their number.
    pub fn requests(&self) -> Option<usize> {
        match self {
            Self::Core(..) => None,
            Self::Study(study, _) => Some(study.requests),
        }
    }

    /// The records of the load.
    pub fn records(&self) -> u64 {
        match self {
            Self::Core(workload, _) => {
                let part = workload.load_part(Share::ALONE);
                part.end - part.start
            }
            Self::Study(study, _) => study.rows,
        }
    }

    /// The places of a thread in the order in which records are loaded.
    pub fn load_part(&self, share: Share) -> Range<u64> {
        match self {
            Self::Core(workload, _) => workload.load_part(share),
            Self::Study(study, _) => share.part(study.rows),
        }
    }

    /// The record at a place of that order.
    #[inline]
    pub fn loaded(&self, place: u64) -> u64 {
        match self {
            Self::Core(..) => place,
            Self::Study(_, order) => order[place as usize],
        }
    }

    /// Whether the load inserts keys in ascending order.
    pub fn inserts_ascending(&self) -> bool {
        matches!(self, Self::Core(workload, _)
            if workload.settings().insert_order == InsertOrder::Ordered)
    }

    /// Whether its transactions scan.
    pub fn scans(&self) -> bool {
        matches!(self, Self::Core(workload, _) if workload.scans())
    }

    /// The key of a record.
    #[inline]
    pub fn key(&self, record: u64) -> u64 {
        match self {
            Self::Core(workload, _) => workload.key_word(record),
            Self::Study(..) => record,
        }
    }

    /// The greatest key that is loaded, if transactions scan.
    pub fn last_loaded_key(&self) -> u64 {
        match self {
            Self::Core(_, last) => *last,
            Self::Study(..) => 0,
        }
    }

    /// The count of inserted records.
    pub fn inserts(&self) -> Inserts {
        match self {
            Self::Core(workload, _) => workload.inserts(),
            Self::Study(study, _) => Inserts::new(study.rows),
        }
    }

    /// Writes a field into `to`, and returns its bytes.
    #[inline]
    pub fn fill<'a>(&self, record: u64, field: u32, stamp: u64, to: &'a mut [u8]) -> &'a [u8] {
        match self {
            Self::Core(workload, _) => {
                let value = &mut to[..workload.field_len(record, field, stamp)];
                fill_field(record, field, stamp, value);
                value
            }
            Self::Study(..) => {
                let value = &mut to[..Study::FIELD_BYTES as usize];
                let (fixed, rest) = value.split_at_mut(STUDY_FIXED);
                fill_field(record, field, stamp, fixed);
                // The high half of a stamp numbers the thread, the low half its transactions.
                let stamp = (stamp ^ (stamp >> 32)).to_le_bytes();
                rest.copy_from_slice(&stamp[..rest.len()]);
                value
            }
        }
    }

    /// Checks the first bytes of a field.
    #[inline]
    pub fn check(&self, record: u64, field: u32, value: &[u8]) -> Result<(), Wrong> {
        let head = match self {
            Self::Core(..) => value,
            Self::Study(..) => value.get(..STUDY_FIXED).unwrap_or(value),
        };
        check_head(record, field, head).map(|_| ()).map_err(|error| error.to_string())
    }

    /// The first of the fields, which is checked.
    pub fn checked(fields: Fields) -> u32 {
        match fields {
            Fields::All => 0,
            Fields::One(field) => field,
        }
    }

    /// The operations of a thread.
    pub fn stream<'a>(
        &self,
        seed: u64,
        share: Share,
        inserts: &'a Inserts,
        per_transaction: usize,
    ) -> Result<Transactions<'a>, Error> {
        Ok(match self {
            Self::Core(workload, _) => Transactions::Core {
                stream: workload.stream(seed, share, inserts),
                block: Block::new(per_transaction),
            },
            Self::Study(study, _) => {
                let stream = study.stream(seed, share);
                let stream = stream.map_err(|error| Error::value("--study", error))?;
                let room = STUDY_BLOCK * study.requests;
                Transactions::Study {
                    stream,
                    requests: vec![Request::default(); room],
                    ops: vec![Op::Insert; room],
                }
            }
        })
    }
}

/// The transactions of a thread.
pub enum Transactions<'a> {
    Core { stream: Stream<'a>, block: Block },
    Study { stream: StudyStream, requests: Vec<Request>, ops: Vec<Op> },
}

impl Transactions<'_> {
    /// Draws some transactions, and calls `run` with the operations of each. Returns false if there
    /// are no more, or if `run` returns false.
    pub fn next_block(&mut self, run: impl FnMut(&[Op]) -> bool) -> bool {
        match self {
            Self::Core { stream, block } => {
                stream.fill(block);
                block.transactions().all(run)
            }
            Self::Study { stream, requests, ops } => {
                let each = stream.study().requests;
                let filled = stream.fill(requests);
                for (op, request) in ops.iter_mut().zip(&*requests) {
                    let field = (request.key % u64::from(Study::FIELDS)) as u32;
                    let (record, fields) = (request.key, Fields::One(field));
                    *op = if request.is_update {
                        Op::Update { record, fields }
                    } else {
                        Op::Read { record, fields: Fields::All }
                    };
                }
                ops.chunks_exact(each).take(filled).all(run) && filled == STUDY_BLOCK
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::ycsb::Properties;

    #[test]
    fn wrong_fields_are_seen() {
        let mut properties = Properties::new();
        properties.set("recordcount=100").unwrap();
        let core = Job::core(Workload::from_properties(&properties).unwrap());
        for job in [core, Job::study(Study { rows: 100, ..Study::ATC18 }, 1)] {
            let mut buffer = vec![0; job.field_bytes() as usize];
            for stamp in [0, (5 << 32) | 7] {
                let value = job.fill(3, 2, stamp, &mut buffer).to_vec();
                assert_eq!(job.check(3, 2, &value), Ok(()));
                assert!(job.check(4, 2, &value).is_err(), "that of another record");
                assert!(job.check(3, 1, &value).is_err(), "another field");
                let mut damaged = value;
                damaged[0] ^= 1;
                assert!(job.check(3, 2, &damaged).is_err());
            }
        }
    }
}

//! The translations and cache lines that transactions need, in a model of a machine.
//!
//! # Method
//! A store is loaded as the one that is measured, over an index that records its reads. Then one
//! thread runs transactions of the workload. The model reads, for each operation:
//!
//! * in the index: what its lookups read, and in the study's lists the cell that leads to the row;
//!   an insertion counts as a lookup of its key;
//! * in the table: each part of the row;
//! * at the commit: the parts of the row again, its columns only if they are written.
//!
//! The memory of the transaction itself and the locks of absent keys are left out: they are some
//! pages, and lie where they lie whatever the index. Writes count as reads. Lookups by `get_many`
//! count in the same order as single ones.

use super::contenders::Contender;
use super::job::Job;
use super::plan::Plan;
use super::run::{self, Context, Fault, Tally};
use super::traced::{Step, Traced};
use crate::drive::replayed::{Misses, Part, Replayed};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::host::memory::Mappings;
use crate::interrupt;
use serde::Serialize;
use silvics_layout::PageSize;
use silvics_workload::Share;
use silvics_workload::ycsb::{Fields, Inserts, Op};
use std::collections::BTreeSet;
use std::ops::Range;

/// The operations that count; as many before them fill the model.
const OPERATIONS: usize = 40_000;

/// The misses of a transaction, on average.
#[derive(Clone, Debug, Serialize)]
pub struct Modelled {
    /// The machine of the model.
    pub machine: &'static str,
    /// The transactions that count.
    pub transactions: usize,
    /// The size of the pages of most of the index, and of most rows.
    pub index_pages: &'static str,
    pub row_pages: &'static str,
    /// The misses in the index, and in rows.
    pub index: Misses,
    pub rows: Misses,
}

impl Modelled {
    /// Loads the store of a contender, and runs its transactions through the model, if the plan has
    /// one.
    pub fn of(contender: &Contender, plan: &Plan, crew: &Crew) -> Result<Option<Self>, Error> {
        Self::with(contender, plan, crew, OPERATIONS)
    }

    /// As `of`, with the number of operations that count.
    fn with(
        contender: &Contender,
        plan: &Plan,
        crew: &Crew,
        operations: usize,
    ) -> Result<Option<Self>, Error> {
        let Some(machine) = &plan.model else { return Ok(None) };
        let store = contender.make_recorded(plan)?;
        run::load(store.engine(), plan, crew).map_err(|fault| fault.of(contender))?;
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        let replayed = Replayed::new(machine);
        let replayed = replayed.map_err(|error| Error::value("--model", error))?;
        let pages = pages(&*store, plan, contender.place.page_size());
        let pages = pages.map_err(|fault| fault.of(contender))?;
        let mut run = Run { replayed, pages, done: 0 };
        run.of(&*store, plan, operations).map_err(|fault| fault.of(contender))?;
        let transactions = run.done - run.done / 2;
        let [index, rows] = run.replayed.per_transaction(transactions);
        let [index_pages, row_pages] = pages.map(PageSize::name);
        let machine = machine.name;
        Ok(Some(Self { machine, transactions, index_pages, row_pages, index, rows }))
    }

    /// The misses in the index and in rows.
    pub fn all(&self) -> Misses {
        self.index.and(self.rows)
    }
}

/// A run of transactions through the model.
struct Run {
    replayed: Replayed,
    /// The pages of the index and of rows.
    pages: [PageSize; 2],
    /// The transactions so far.
    done: usize,
}

impl Run {
    /// Runs the transactions of a thread, of which the second half counts.
    fn of(&mut self, store: &dyn Traced, plan: &Plan, operations: usize) -> Result<(), Fault> {
        let inserts = plan.job.inserts();
        let stream = plan.job.stream(plan.seed, Share::ALONE, &inserts, plan.transaction);
        let mut stream = stream.map_err(Fault::Error)?;
        let mut context = context(plan, &inserts);
        // A thread of the study has no more transactions.
        let most = match &plan.job {
            Job::Core(..) => usize::MAX,
            Job::Study(study, _) => study.transactions as usize,
        };
        let wanted = most.min(2 * operations.div_ceil(plan.transaction));
        let mut fault = None;
        let mut next = |ops: &[Op]| {
            context.stamp += 1;
            if self.done == wanted / 2 {
                self.replayed.warm();
            }
            match store.trace(ops, &mut context) {
                Ok(steps) => self.replay(&steps),
                Err(stop) => fault = Some(Fault::Stop(stop)),
            }
            fault.is_none() && self.done < wanted
        };
        while stream.next_block(&mut next) {
            if interrupt::pending() {
                return Err(Fault::Failure(Failure::Interrupted));
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Reads what a transaction has read.
    fn replay(&mut self, steps: &[Step]) {
        self.done += 1;
        let [of_index, of_rows] = self.pages;
        for step in steps {
            for read in &step.path {
                self.replayed.read(Part::Index, read.address, read.bytes, of_index);
            }
            for part in &step.row {
                self.replayed.read(Part::Rows, part.address, part.bytes, of_rows);
            }
        }
        for step in steps {
            let [heads @ .., columns] = &step.row[..] else { continue };
            let written = step.writes.then_some(columns);
            for part in heads.iter().chain(written) {
                self.replayed.read(Part::Rows, part.address, part.bytes, of_rows);
            }
        }
    }
}

fn context<'a>(plan: &'a Plan, inserts: &'a Inserts) -> Context<'a> {
    let (job, get_many, tally) = (&plan.job, plan.get_many, Tally::default());
    Context { job, inserts, stamp: 0, get_many, tally }
}

/// The records that are looked up to see where index and rows lie.
const PLACES: u64 = 500;

/// The pages of most of the index, and of most rows. If the system does not tell, they are the
/// `wanted` ones.
fn pages(store: &dyn Traced, plan: &Plan, wanted: PageSize) -> Result<[PageSize; 2], Fault> {
    let inserts = plan.job.inserts();
    let mut context = context(plan, &inserts);
    let (mut of_index, mut of_rows) = (BTreeSet::new(), BTreeSet::new());
    let small = PageSize::Small.bytes();
    let (first, records) = (plan.job.load_part(Share::ALONE).start, plan.job.records());
    for place in 0..records.min(PLACES) {
        let record = plan.job.loaded(first + place * (records / records.min(PLACES)));
        let read = Op::Read { record, fields: Fields::All };
        for step in store.trace(&[read], &mut context).map_err(Fault::Stop)? {
            of_index.extend(step.path.iter().map(|read| read.address / small * small));
            of_rows.extend(step.row.iter().map(|part| part.address / small * small));
        }
    }
    let mappings = Mappings::now();
    Ok([of_index, of_rows].map(|pages| {
        let pages: Vec<Range<usize>> = pages.into_iter().map(|page| page..page + small).collect();
        let share = mappings.as_ref().and_then(|mappings| mappings.holding(&pages).huge_share());
        match share {
            Some(share) if share < 0.5 => PageSize::Small,
            Some(_) => PageSize::Huge,
            None => wanted,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lies;
    use silvics::Options;
    use silvics::structures::STRUCTURES;
    use silvics_store::index::Named;

    fn modelled(plan: &Plan, operations: usize) -> Vec<Modelled> {
        let of = |contender| Modelled::with(contender, plan, &Crew::new(), operations);
        plan.contenders.iter().map(|contender| of(contender).unwrap().unwrap()).collect()
    }

    const READS: &str = "-p readproportion=1 -p updateproportion=0 -p requestdistribution=uniform";

    /// A row of 8 + 8 + 10 x 104 bytes begins a line and has 17 of them, of which each read finds
    /// none in the first level of caches, and the commit finds the first one again.
    #[test]
    fn reads_are_those_of_index_and_rows() {
        let plan = lies::plan(&format!("--model haswell -p recordcount=5000 {READS}"));
        let modelled = &modelled(&plan, OPERATIONS)[0];
        assert_eq!((modelled.machine, modelled.transactions), ("haswell", OPERATIONS));
        let Misses { tlb, walks, l1, memory } = modelled.rows;
        assert!((16.5..=17.0).contains(&l1), "{modelled:?}");
        assert!(walks < 0.01, "5 MB lie within the translations: {modelled:?}");
        assert!(memory < 0.5 && tlb <= 1.3, "and in the last level: {modelled:?}");
        assert!((1.0..10.0).contains(&modelled.index.l1), "{modelled:?}");
    }

    /// More rows than the translations of small pages, and than the caches.
    #[test]
    fn pages_and_caches_count() {
        let flags = "--model haswell -p recordcount=40k --pages 4k,thp";
        let plan = lies::plan(&format!("{flags} {READS}"));
        let [small, huge] = &modelled(&plan, 20_000)[..] else { panic!("two contenders") };
        assert_eq!(small.row_pages, "4 KiB");
        assert!(small.rows.walks > 0.5 && small.rows.memory > 2.0, "{small:?}");
        assert!(huge.row_pages == "4 KiB" || huge.rows.walks < 0.1, "{huge:?}");
    }

    /// The cell, the wrapper, the row, the lock and the columns lie on pages of their own.
    #[test]
    fn the_studys_rows_are_scattered() {
        let flags = "--policy no-wait --row-layout inline,study --pages 4k --model haswell";
        let plan = lies::plan(&format!("{flags} -p recordcount=40k -p fieldlength=4 {READS}"));
        let [inline, study] = &modelled(&plan, 20_000)[..] else { panic!("two contenders") };
        assert!(study.all().tlb > inline.all().tlb + 2.0, "{inline:?} {study:?}");
        assert!(study.rows.l1 > inline.rows.l1 + 1.0, "{inline:?} {study:?}");
    }

    /// Each structure that can be an index records its reads, those of insertions included.
    #[test]
    fn each_index_is_recorded() {
        for name in STRUCTURES.iter().map(|structure| structure.name) {
            let inserts = "-p readproportion=0.5 -p updateproportion=0 -p insertproportion=0.5";
            let flags = format!("--model haswell --index {name} --placement shared {inserts}");
            let is_index = Named::<u64>::with_structure(name, true, &Options::default()).is_ok();
            let plan = lies::try_plan(&flags);
            assert_eq!(plan.is_ok(), is_index, "{name}");
            for modelled in plan.iter().flat_map(|plan| modelled(plan, 500)) {
                assert!(modelled.index.l1 > 0.1, "{name}: {modelled:?}");
            }
        }
    }
}

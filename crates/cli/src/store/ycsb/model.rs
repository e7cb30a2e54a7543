//! The translations and cache lines that transactions need, in a model of a machine.
//!
//! # Method
//! A store is loaded as the one that is measured, over an index that records its reads. Then one
//! thread runs transactions of the workload. The model reads, for each operation:
//!
//! * in the index: what its lookups read. An insertion counts as a lookup of its key;
//! * in the table: each part of the row, and in the study's layouts the cell that leads to it;
//! * at the commit: the lock of the row again. For a row that is written, it also reads again what
//!   leads to the row's columns, and those words of them that have changed.
//!
//! # What is left out
//! * The copies of rows that a transaction makes, the locks of absent keys and the latches of the
//!   study's lists. They are some pages that stay in the translations, so the figures on
//!   translations hardly depend on them. They take room in the first cache, so its misses are a
//!   lower bound.
//! * Writes count as reads, and the nodes that an insertion makes are not read.
//! * A read-modify-write looks its key up twice; both lookups come before the row. The model
//!   ignores `--get-many`: it reads index and row of each operation in turn.

use super::job::Job;
use super::make::make_recorded;
use super::plan::Plan;
use super::recorder::CELL;
use super::run::{self, Context};
use super::traced::{Step, Traced};
use crate::drive::replayed::{Misses, Part, Replayed};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::host::memory::Mappings;
use crate::interrupt;
use crate::names::{self, Name};
use crate::store::contenders::Contender;
use crate::store::meter::{Fault, Tally};
use serde::{Deserialize, Serialize};
use silvics_layout::{Machine, PageSize};
use silvics_workload::Share;
use silvics_workload::ycsb::{Fields, Inserts, Op};
use std::collections::BTreeSet;
use std::ops::Range;

/// The operations that count; as many before them fill the model.
const OPERATIONS: usize = 40_000;

/// The mean misses of a transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Modelled {
    /// The machine of the model.
    #[serde(deserialize_with = "names::one")]
    pub machine: Name,
    /// The transactions that count.
    pub transactions: usize,
    /// The size of the pages of most of the index.
    #[serde(deserialize_with = "names::one")]
    pub index_pages: Name,
    /// The size of the pages of most rows.
    #[serde(deserialize_with = "names::one")]
    pub row_pages: Name,
    /// The misses in the index.
    pub index: Misses,
    /// The misses in rows.
    pub rows: Misses,
}

impl Modelled {
    /// Loads the store of a contender, and runs its transactions through the model of a machine.
    pub fn of(
        contender: &Contender,
        plan: &Plan,
        machine: &Machine,
        crew: &Crew,
    ) -> Result<Self, Error> {
        Self::with(contender, plan, machine, crew, OPERATIONS)
    }

    /// As `of`, with the number of operations that count.
    fn with(
        contender: &Contender,
        plan: &Plan,
        machine: &Machine,
        crew: &Crew,
        operations: usize,
    ) -> Result<Self, Error> {
        let replayed = Replayed::new(machine);
        let replayed = replayed.map_err(|error| Error::value("--model", error))?;
        let store = make_recorded(contender, plan)?;
        run::load(store.engine(), plan, crew).map_err(|fault| fault.of(contender))?;
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        let pages = pages(&*store, plan, contender.place.page_size());
        let pages = pages.map_err(|fault| fault.of(contender))?;
        let mut run = Run { replayed, pages, done: 0 };
        run.of(&*store, plan, operations).map_err(|fault| fault.of(contender))?;
        let transactions = run.done - run.done / 2;
        let [index, rows] = run.replayed.per_transaction(transactions);
        let [index_pages, row_pages] = pages.map(PageSize::name);
        let machine = machine.name;
        Ok(Self { machine, transactions, index_pages, row_pages, index, rows })
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
        let most = match &plan.job {
            // Rows that the measured runs do not insert would make the table larger.
            Job::Core(workload, _) if workload.inserts_records() => plan.operations,
            Job::Core(..) => None,
            Job::Study(study, _) => Some(study.transactions * study.requests as u64),
        };
        let most = most.map_or(2 * operations, |most| (2 * operations).min(most as usize));
        let wanted = most.div_ceil(plan.transaction);
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
        let mut read = |part, address, bytes| {
            let pages = if part == Part::Index { of_index } else { of_rows };
            self.replayed.read(part, address, bytes, pages);
        };
        for step in steps {
            for of in &step.path {
                let is_cell = of.layout.kind == CELL.kind;
                read(if is_cell { Part::Rows } else { Part::Index }, of.address, of.bytes);
            }
            for part in &step.row {
                read(Part::Rows, part.address, part.bytes);
            }
        }
        commit(steps, &mut |address, bytes| read(Part::Rows, address, bytes));
    }
}

/// Calls `read` with the address and the bytes of each read of a commit.
fn commit(steps: &[Step], read: &mut dyn FnMut(usize, usize)) {
    for step in steps {
        let is_written = !step.written.is_empty();
        for part in &step.row {
            if part.name == "lock" || (is_written && part.name != "columns") {
                read(part.address, part.bytes);
            }
        }
        for &(address, bytes) in &step.written {
            read(address, bytes);
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
    use crate::store::ycsb::lies;
    use silvics::Options;
    use silvics::structures::STRUCTURES;
    use silvics_store::index::Named;

    fn modelled(plan: &Plan, operations: usize) -> Vec<Modelled> {
        let (machine, crew) = (plan.model.as_ref().unwrap(), Crew::new());
        let of = |contender| Modelled::with(contender, plan, machine, &crew, operations);
        plan.contenders.iter().map(|contender| of(contender).unwrap()).collect()
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

    /// The sum of what a transaction has read, in an empty model: each line misses once.
    fn lines(steps: &[Step]) -> [f64; 2] {
        let machine = Machine::named("i7-2630qm").unwrap().without_prefetch();
        let replayed = Replayed::new(&machine).unwrap();
        let mut run = Run { replayed, pages: [PageSize::Small; 2], done: 0 };
        run.replay(steps);
        run.replayed.per_transaction(1).map(|misses| misses.l1)
    }

    /// Transactions of the study's layout and of the default one, with the lines of each part. A
    /// row of the study has its parts in five lines or more; an update changes up to three words.
    #[test]
    fn a_commit_reads_what_the_store_reads() {
        let flags = "--policy no-wait --row-layout inline,study-padded --pages 4k --model haswell";
        let plan = lies::plan(&format!("{flags} -p fieldlength=10"));
        for contender in &plan.contenders {
            let store = make_recorded(contender, &plan).unwrap();
            run::load(store.engine(), &plan, &Crew::new()).map_err(|_| "the load").unwrap();
            let inserts = plan.job.inserts();
            let mut context = context(&plan, &inserts);
            context.stamp = 9;
            let mut trace = |op| store.trace(&[op], &mut context).map_err(|_| "wrong").unwrap();
            let [read] = &trace(Op::Read { record: 7, fields: Fields::All })[..] else { panic!() };
            let fields = Fields::One(3);
            let [update] = &trace(Op::Update { record: 7, fields })[..] else { panic!() };
            assert_eq!(read.row, update.row, "a row keeps its place");
            assert!(read.written.is_empty() && !read.path.is_empty());
            let columns = update.row.last().unwrap();
            let of_row = columns.address..columns.address + columns.bytes;
            let changed: usize = update.written.iter().map(|(_, bytes)| bytes).sum();
            assert!((1..=24).contains(&changed), "{:?}", update.written);
            for (address, bytes) in &update.written {
                assert!(of_row.contains(address) && address + bytes <= of_row.end);
            }
            // In an empty model, the commit meets the lines that its row has brought.
            let path = |step: &Step| Step { path: Vec::new(), ..step.clone() };
            let row = lines(&[path(read)])[1];
            assert_eq!(lines(&[path(update)])[1].to_string(), row.to_string());
            let names: Vec<&str> = read.row.iter().map(|part| part.name).collect();
            let is_study = contender.row_layout() == "study-padded";
            assert!(if is_study { row >= 5.0 } else { (3.0..=4.0).contains(&row) }, "{row}");
            assert_eq!(names.len(), if is_study { 4 } else { 2 });
            assert_eq!(again(read), [1, 0]);
            assert_eq!(again(update), [names.len() - 1, update.written.len()]);
        }
    }

    /// The reads of the parts of a row, and of words in its columns, that a commit makes.
    fn again(step: &Step) -> [usize; 2] {
        let mut seen = Vec::new();
        commit(std::slice::from_ref(step), &mut |address, _| seen.push(address));
        let part = |address: &&usize| step.row.iter().any(|part| part.address == **address);
        let parts = seen.iter().filter(part).count();
        [parts, seen.len() - parts]
    }

    /// Rows that the measured runs do not insert would make the table larger.
    #[test]
    fn a_workload_that_inserts_runs_no_longer_than_asked_for() {
        for (share, transactions) in [("1", 1000), ("0", 3000)] {
            let shares = format!("-p readproportion=0 -p insertproportion={share}");
            let update = if share == "0" { "1" } else { "0" };
            let flags = format!("--model haswell {shares} -p updateproportion={update}");
            let modelled = &modelled(&lies::plan(&flags), 3000)[0];
            assert_eq!(modelled.transactions, transactions, "of 2000 operations");
        }
    }

    /// Each structure that can be an index records its reads, those of insertions included.
    #[test]
    fn each_index_is_recorded() {
        for name in STRUCTURES.iter().map(|structure| structure.name) {
            let inserts = "-p readproportion=0 -p updateproportion=0 -p insertproportion=1";
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

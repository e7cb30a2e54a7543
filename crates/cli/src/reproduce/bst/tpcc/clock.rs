//! Runs that are timed, and their evidence.

use super::engine::Engine;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::progress::Progress;
use crate::reproduce::bst::placed::clock::{Clocked, Lap, THREADS, Times, measure, until_first};
use crate::reproduce::bst::placed::heap::{Divided, Places};
use crate::reproduce::bst::placed::times::{Claims, Order, of_tree};
use crate::reproduce::bst::placed::trees::{TREES, Tree};
use crate::reproduce::evidence::{Evidence, Level};
use crate::reproduce::lab::Lab;
use silvics_tpcc::Session;
use silvics_workload::tpcc::{Scale, Transaction};

/// The transactions of a thread, and those in a quick run.
const TRANSACTIONS: usize = 8_000;
const FEW: usize = 250;

/// A subject of the clock.
struct Subject<'a> {
    engine: Engine,
    crew: &'a Crew,
    transactions: usize,
}

impl Clocked for Subject<'_> {
    fn tree(&self) -> &'static str {
        self.engine.tree()
    }

    /// Both places get the same transactions in a round.
    fn run(&self, round: u64) -> Result<Vec<Lap>, Failure> {
        let draw = |share| {
            let mut terminal = self.engine.terminal(share).in_round(round as usize);
            Ok(std::iter::repeat_with(|| terminal.draw()).take(self.transactions).collect())
        };
        until_first(self.crew, draw, |transactions: Vec<Transaction>, over| {
            let mut session = Session::default();
            Lap::of(transactions.into_iter(), over, |transaction| {
                self.engine.transact(&transaction, &mut session)
            })
        })
    }

    fn check(&self) -> Result<(), Failure> {
        self.engine.check()
    }

    fn aborts(&self) -> u64 {
        self.engine.aborts()
    }
}

/// The times of a tree, mixed and segregated.
pub fn of_places(lab: &Lab, tree: Tree, scale: Scale) -> Result<[Times; 2], Error> {
    let crew = Crew::new().loading(THREADS).running(THREADS);
    let transactions = if lab.plan.quick { FEW } else { TRANSACTIONS };
    let subject = |places| {
        let heap = Divided::size_class(places);
        let engine = Engine::loaded(&crew, tree, heap, (scale, lab.plan.seed))?;
        Ok::<_, Error>(Subject { engine, crew: &crew, transactions })
    };
    let subjects = [subject(Places::Mixed)?, subject(Places::Segregated)?];
    let [mixed, segregated] = &mut measure(lab, &subjects)?[..] else {
        return Ok([Times::default(), Times::default()]);
    };
    Ok([std::mem::take(mixed), std::mem::take(segregated)])
}

/// The lines on all trees.
pub fn all(lab: &Lab, scale: Scale) -> Result<Vec<Evidence>, Error> {
    let progress = Progress::new(TREES.len());
    let (mut lines, mut order) = (Vec::new(), Order::default());
    for tree in TREES {
        progress.doing(format!("{}: transactions", tree.name));
        let times = of_places(lab, *tree, scale)?;
        lines.extend(of_tree(tree.name, claims(tree.name), times.each_ref()));
        order.add(tree.name, times.each_ref());
        progress.step();
    }
    lines.extend(order.lines());
    lines.push(large());
    Ok(lines)
}

/// The claims of the source on a tree.
pub fn claims(tree: &str) -> Claims {
    let (index, database) = match tree {
        "occ-avl:fixed" => ("10 s less", Some("2 s more")),
        "edge-ext-lf:fixed" => ("10 s less", Some("6 s more")),
        _ => ("faster", None),
    };
    Claims { index, all: "up to 7.6 %", database }
}

/// The line on a build that is not here.
fn large() -> Evidence {
    let what = "int-lf with nodes of 64 bytes and descriptors of 112 bytes: time in the index and \
                in the database, mixed / segregated";
    let why = "no build has them: the descriptors of int-lf:fixed and int-lf:baseline have 64 \
               bytes (the source: 113 → 97 s and 135 → 140 s)";
    Evidence::missing(Level::Clock, what.into(), why.into()).aside()
}

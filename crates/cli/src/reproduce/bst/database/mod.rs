//! bst/1.9: YCSB in a database whose index is a tree.
//!
//! | module | holds |
//! |---|---|
//! | `engine` | the database |
//! | `loaded` | databases with their rows |
//! | `model` | the translations of transactions |
//! | `clock` | runs that are timed |
//! | `lines` | evidence of facts and of the model |
//! | `times` | evidence of the clock |

mod clock;
mod engine;
mod lines;
mod loaded;
mod model;
mod times;

use crate::drive::draws::shuffled;
use crate::flags::error::Error;
use crate::flags::place;
use crate::progress::Progress;
use crate::reproduce::bst::placed::facts::Facts;
use crate::reproduce::bst::placed::heap::{Divided, Places};
use crate::reproduce::bst::placed::model::Modelled;
use crate::reproduce::bst::placed::trees::{Lock, TREES, Tree};
use crate::reproduce::evidence::{Evidence, Level};
use crate::reproduce::lab::Lab;
use loaded::Recorded;
use silvics::Tuning;

/// The rows of the table.
const ROWS: usize = 500_000;

/// The trees whose nodes have the size class of the source's locks without padding, and a tree of
/// another class.
const BESIDE_LOCKS: [&str; 6] =
    [EDGE_INT_LF, "int-lf:fixed", "citrus:fixed", "ticket:fixed", "ext-lf:fixed", "occ-avl:fixed"];
/// The tree that the source names for the false sharing of locks.
const EDGE_INT_LF: &str = "edge-int-lf:fixed";
/// The tree whose TLB misses the source gives. It stands for the others in another allocator.
const OCC_AVL_2: &str = "occ-avl-2:fixed";

/// A database in one place.
#[derive(Clone, Debug, Default)]
struct Seen {
    facts: Facts,
    /// The kinds and size classes of the objects that an insertion allocates, in this order.
    order: Vec<(&'static str, usize)>,
    model: Modelled,
}

/// A database in both places.
struct Both {
    tree: &'static str,
    lock: Lock,
    mixed: Seen,
    segregated: Seen,
}

/// bst/1.9.
pub fn database(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let rows = lab.plan.keys(ROWS);
    let mut lines = Vec::new();
    if lab.looks() {
        lines.extend(places(lab, rows)?);
    }
    if lab.wants(Level::Clock) {
        lines.extend(times::all(lab, rows)?);
    }
    Ok(lines)
}

/// The lines on facts and on the model.
fn places(lab: &Lab, rows: usize) -> Result<Vec<Evidence>, Error> {
    let (keys, mut lines) = (shuffled(rows as u64, lab.plan.seed), Vec::new());
    let progress = Progress::new(TREES.len() + BESIDE_LOCKS.len());
    for tree in TREES {
        progress.doing(format!("{}: padded locks", tree.name));
        let both = both(lab, *tree, Lock::Padded, &keys, Divided::size_class)?;
        lines.extend(lines::of_tree(lab, &both));
        progress.step();
    }
    if lab.wants(Level::Fact) {
        for tree in BESIDE_LOCKS.iter().filter_map(|name| Tree::named(name)) {
            progress.doing(format!("{}: locks without padding", tree.name));
            let both = both(lab, tree, Lock::Bare, &keys, Divided::size_class)?;
            lines.extend(lines::beside_locks(&both));
            progress.step();
        }
    }
    if lab.wants(Level::Fact) {
        lines.extend(in_jemalloc(lab, &keys)?);
    }
    Ok(lines)
}

/// Loads a database in both places, and looks at each.
fn both(
    lab: &Lab,
    tree: Tree,
    lock: Lock,
    keys: &[u64],
    heap: impl Fn(Places) -> Divided,
) -> Result<Both, Error> {
    let seen = |places| {
        let loaded = Recorded::new(tree, lock, heap(places), keys)?;
        let facts = Facts::of(&loaded.heap.live(), &lab.plan.machine);
        let order = loaded.last.iter().map(|block| (block.kind, block.class)).collect();
        let models = lab.wants(Level::Model) && lock == Lock::Padded;
        let model = models.then(|| model::replayed(lab, tree.name, &loaded)).transpose()?;
        Ok::<_, Error>(Seen { facts, order, model: model.unwrap_or_default() })
    };
    let (mixed, segregated) = (seen(Places::Mixed)?, seen(Places::Segregated)?);
    Ok(Both { tree: tree.name, lock, mixed, segregated })
}

/// The allocators.
const JEMALLOC: [&str; 2] = ["jemalloc", "segregated-jemalloc"];

/// Lines on a tree in jemalloc, if the command was built with it. Its arenas depend on what the
/// process has done before, so the verdict does not depend on them.
fn in_jemalloc(lab: &Lab, keys: &[u64]) -> Result<Vec<Evidence>, Error> {
    let Some(tree) = Tree::named(OCC_AVL_2) else { return Ok(Vec::new()) };
    if !JEMALLOC.iter().all(|name| place::names().contains(name)) {
        let why = "it needs a build with --features jemalloc".into();
        let what = format!("{OCC_AVL_2} in jemalloc, mixed and segregated");
        return Ok(vec![Evidence::missing(Level::Fact, what, why).aside()]);
    }
    let heap = |name: &str| {
        let place = place::of(name, "4k", Tuning::default())?.swap_remove(0);
        let none = || Error::value("--placement", format!("`{name}` has no heap"));
        place.options(None).heap.ok_or_else(none)
    };
    let [one, apart] = [heap(JEMALLOC[0])?, heap(JEMALLOC[1])?];
    let both = both(lab, tree, Lock::Padded, keys, |places| match places {
        Places::Mixed => Divided::one(one.clone()),
        Places::Segregated => Divided::of([apart.clone(), apart.clone(), one.clone()]),
    })?;
    Ok(lines::in_jemalloc(lab, &both))
}

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    const FEW: usize = 3000;

    fn at(name: &str, lock: Lock) -> Both {
        let (lab, tree) = (lab(), Tree::named(name).unwrap());
        both(&lab, tree, lock, &shuffled(FEW as u64, 1), Divided::size_class).unwrap()
    }

    /// Nodes lie on pages of their own, and each insertion allocates what that of the study does.
    #[test]
    #[ignore = "takes seconds: `just stress` runs it"]
    fn segregated_nodes_are_close_together() {
        for tree in ["occ-avl:fixed", "edge-ext-lf:fixed"] {
            let both = at(tree, Lock::Padded);
            let lines = lines::of_places(&both);
            assert_eq!(verdict(&lines), Verdict::CannotBeShown, "few regions: {lines:#?}");
            let wrong = lines.iter().filter(|line| line.verdict == Verdict::Contradicted);
            assert_eq!(wrong.count(), 0, "{lines:#?}");
            // The reverse of the claim contradicts it.
            let (mixed, segregated) = (both.segregated, both.mixed);
            let lines = lines::of_places(&Both { mixed, segregated, ..both });
            assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
            assert_eq!(lines::of_model(&at(tree, Lock::Padded)).len(), 2);
        }
    }

    /// Nodes of the locks' size hide that locks share lines.
    #[test]
    fn nodes_between_locks_hide_false_sharing() {
        let lines = lines::beside_locks(&at(EDGE_INT_LF, Lock::Bare));
        assert_eq!(verdict(&lines), Verdict::Confirmed, "{lines:#?}");
        let padded = Both { lock: Lock::Bare, ..at(EDGE_INT_LF, Lock::Padded) };
        let lines = lines::beside_locks(&padded);
        assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
    }

    #[test]
    fn transactions_are_timed_and_their_updates_counted() {
        let mut lab = lab();
        lab.plan.keys = Some(1000);
        let tree = Tree::named("occ-avl-2:fixed").unwrap();
        let subjects = [Places::Mixed, Places::Segregated].map(|places| clock::Subject {
            tree,
            lock: Lock::Padded,
            places,
        });
        let times = clock::measure(&lab, 1000, &subjects).unwrap();
        for times in &times {
            let parts = times.index.iter().zip(&times.database);
            assert!(parts.into_iter().all(|(index, database)| *index > 0.0 && *database > 0.0));
        }
    }
}

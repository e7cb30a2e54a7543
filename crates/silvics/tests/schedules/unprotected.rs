//! Scans under a guard that pins nothing, beside readers that free what was removed before.

use super::SCHEDULES;
use silvics::{BlockTree, Lookup, Options, OrderedScan};
use silvics_testkit::schedules::{
    Model, Program, Task, beside_one_another, explore_program, hunt_programs,
};

type Tree = BlockTree<u64, Model>;

fn tree(keys: u64) -> Tree {
    let tree = Tree::with_options(&Options::default()).expect("the model has memory");
    for key in 0..keys {
        tree.pin().insert(key, key).expect("the model has memory");
    }
    tree
}

/// Reads all keys with a pin for each scan, and frees what waits for the pin.
fn reads(tree: &Tree) {
    for _ in 0..2 {
        assert!(tree.pin().range(..).all(|(key, value)| key == value));
    }
}

fn remove(tree: &Tree, key: u64) {
    tree.pin().remove(key).expect("a removal takes no memory");
}

/// # Safety
/// The contract is that of `Domain::unprotected`.
unsafe fn scan(tree: &Tree) -> Vec<u64> {
    // SAFETY: the caller's promise.
    let guard = unsafe { tree.domain().unprotected() };
    tree.range(.., &guard).map(|(key, _)| key).collect()
}

/// One task writes and then scans, while another one reads and frees.
const QUIET: Program = Program {
    name: "unprotected-scan",
    play: || {
        let writes: Task<Tree> = Box::new(|tree| {
            (0..6).filter(|key| key % 2 == 0).for_each(|key| remove(tree, key));
            tree.pin().insert(9, 9).expect("the model has memory");
            // SAFETY: this task alone writes, and not any more.
            assert_eq!(unsafe { scan(tree) }, [1, 3, 5, 9]);
        });
        drop(beside_one_another(tree(6), vec![writes, Box::new(reads)]));
    },
};

/// The same scan beside a task that writes, which the contract excludes.
const MISUSE: Program = Program {
    name: "unprotected-scan-beside-a-writer",
    play: || {
        // SAFETY: the contract is broken. The model finds reads of freed objects before they touch
        // memory that is in use again.
        let scans: Task<Tree> = Box::new(|tree| assert!(!unsafe { scan(tree) }.is_empty()));
        let writes: Task<Tree> = Box::new(|tree| (0..5).for_each(|key| remove(tree, key)));
        drop(beside_one_another(tree(6), vec![scans, writes]));
    },
};

#[test]
fn scans_without_a_pin_see_what_was_written() {
    explore_program("blocks", QUIET, SCHEDULES);
}

#[test]
fn a_scan_without_a_pin_beside_a_writer_is_found() {
    assert!(hunt_programs(&[MISUSE], SCHEDULES).is_some(), "no schedule shows it");
}

//! Allocations that fail, and closures and keys of users that panic: the call has not happened, no
//! lock stays, the transaction can go on or is undone, and the next one works.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

#[path = "durability/disk.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod disk;
#[path = "faults/heap.rs"]
mod heap;
#[path = "faults/memory.rs"]
mod memory;
#[path = "faults/panics.rs"]
mod panics;
mod support;

use silvics_store::Policy;
use support::{Model, Op, Person, World};

/// Inserts five people and three marks.
pub(crate) fn fill<P: Policy>(world: &World<P>) -> Model {
    let mut model = Model::default();
    let mut ops: Vec<Op> = (0..5)
        .map(|id| Op::Insert(id, Person { code: id, town: id as u8 % 3, balance: 7 * id as i64 }))
        .collect();
    ops.extend((0..3).map(|number| Op::Mark(number, number)));
    assert_eq!(world.transaction(&mut model, &ops, support::End::Commit), None);
    model
}

/// Checks that the store has the content of the model, that nothing is locked, and that the next
/// transactions work.
pub(crate) fn check<P: Policy>(world: &World<P>, model: &mut Model) {
    world.check(model).unwrap();
    world.check_unlocked(model);
    world.check(model).unwrap();
    world.check_entries(model);
    let more = [Op::Insert(7, Person { code: 7, town: 1, balance: 70 }), Op::Delete(7)];
    let new = model.people.contains_key(&7);
    if !new {
        assert_eq!(world.transaction(model, &more, support::End::Commit), None);
        world.check(model).unwrap();
        world.check_entries(model);
    }
}

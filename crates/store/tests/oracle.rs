//! Random transactions beside a model, under each policy: one transaction at a time.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

mod support;

use proptest::prelude::*;
use silvics_store::lock::Latched;
use silvics_store::{Locking, NoWait, Optimistic, Policy, StoreOptions, Study, WaitDie};
use silvics_sync::pthread::PthreadLock;
use support::{End, Model, Op, Structures, World, op};

fn end() -> impl Strategy<Value = End> {
    prop_oneof![5 => Just(End::Commit), 1 => Just(End::Abort), 1 => Just(End::Drop)]
}

/// Runs transactions one after the other.
fn run<P: Policy>(structures: Structures, transactions: &[(Vec<Op>, End)]) {
    let world = World::<P>::new(&StoreOptions::default(), structures).unwrap();
    let mut model = Model::default();
    for (ops, end) in transactions {
        let ended = world.transaction(&mut model, ops, *end);
        assert_eq!(ended, None, "nobody is in the way");
        world.check(&model).unwrap();
        world.check_entries(&model);
    }
    world.check_unlocked(&model);
    world.check(&model).unwrap();
    world.check_entries(&model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 1000 }))]
    #[test]
    fn stores_behave_as_maps(
        transactions in prop::collection::vec((prop::collection::vec(op(), 0..12), end()), 1..8),
    ) {
        run::<Optimistic>(("words", "blocks"), &transactions);
        run::<Locking<NoWait>>(("skiplist", "art"), &transactions);
        run::<Locking<WaitDie>>(("lfca-tree", "lfca-tree"), &transactions);
        run::<Locking<NoWait, Study<Latched<PthreadLock>>>>(("art", "skiplist"), &transactions);
    }
}

//! Closures and keys of users that panic: the transaction is undone, and no lock stays.

use super::heap::{Fault, end, in_heap};
use super::memory::scripts;
use super::support::kinds::{STRUCTURES, each_policy, within};
use super::support::{End, Op, Person, Structures, World};
use super::{check, fill};
use silvics::key::{AsKey, Encoder};
use silvics_store::{Error, Optimistic, Policy, StoreOptions, Tx};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Unwinds at the point at which a countdown comes to 0.
struct Fuse(AtomicUsize);

impl Fuse {
    fn burn(&self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            resume_unwind(Box::new("planned"));
        }
    }
}

/// A number as a key, whose methods may panic.
struct Key<'a>(u64, &'a Fuse);

impl AsKey<u64> for Key<'_> {
    fn with_form<R>(&self, then: impl FnOnce(u64) -> R) -> R {
        self.1.burn();
        let done = then(self.0);
        self.1.burn(); // locks are held by now
        done
    }
    fn form(&self) -> Option<u64> {
        self.1.burn();
        Some(self.0)
    }
    fn write(&self, to: &mut Encoder) {
        self.1.burn();
        self.0.write(to);
    }
}

impl AsKey<u8> for Key<'_> {
    fn with_form<R>(&self, then: impl FnOnce(u64) -> R) -> R {
        AsKey::<u8>::with_form(&(self.0 as u8), then)
    }
    fn write(&self, to: &mut Encoder) {
        self.1.burn();
        (self.0 as u8).write(to);
        self.1.burn();
    }
}

/// Every call with code of a user.
fn body<P: Policy>(world: &World<P>, tx: &Tx<'_, P>, fuse: &Fuse) -> Result<(), Error> {
    let people = &world.people;
    let id = people.index::<u64>("primary")?;
    let (by_code, by_town) = (people.index::<u64>("by_code")?, people.multi::<u8>("by_town")?);
    let [number, code] = ["number", "code"].map(|name| people.column::<u64>(name));
    let (number, code) = (number?, code?);
    let on = ControlFlow::Continue(());
    tx.get(&id, Key(1, fuse))?;
    tx.get(&id, Key(66, fuse))?;
    tx.get_many(&id, &[Key(0, fuse), Key(77, fuse)], &mut [None; 2])?;
    tx.insert(people, |row| {
        fuse.burn();
        row.set(number, 6)?;
        row.set(code, 66)?;
        row.set(people.column::<str>("email")?, "66")?;
        fuse.burn();
        Ok::<(), Error>(())
    })?;
    tx.update(&id, Key(2, fuse), |row| {
        fuse.burn();
        row.set(code, 99)
    })?;
    tx.scan(&by_code, 0..).for_each(|_| {
        fuse.burn();
        Ok::<_, Error>(on)
    })?;
    tx.find_all(&by_town, Key(1, fuse)).for_each(|row| {
        tx.update(&id, row.get(number)?, |row| {
            fuse.burn();
            row.set(code, 98)
        })?;
        Ok::<_, Error>(ControlFlow::Break(()))
    })?;
    tx.delete(&id, Key(3, fuse))?;
    tx.update(&id, Key(6, fuse), |row| {
        row.set(code, 3)?;
        fuse.burn();
        Ok::<(), Error>(())
    })?;
    tx.delete(&by_code, Key(4, fuse))?;
    fuse.burn();
    Err(Error::Nested) // the end of the test: everything is undone
}

/// Unwinds at the n-th point. Returns whether there is one.
fn panics_at<P: Policy>(nth: usize, retries: bool) -> bool {
    let world = World::<P>::new(&StoreOptions::default(), ("words", "blocks")).unwrap();
    let mut model = fill(&world);
    let fuse = Fuse(AtomicUsize::new(nth));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        if retries {
            world.store.transact(|tx| body(&world, tx, &fuse))
        } else {
            let tx = world.store.begin();
            body(&world, &tx, &fuse)
        }
    }));
    assert!(matches!(unwound, Err(_) | Ok(Err(Error::Nested))), "{unwound:?}");
    check(&world, &mut model);
    unwound.is_err()
}

fn each_point<P: Policy>() {
    for retries in [false, true] {
        let mut nth = 0;
        while within("unwinding", move || panics_at::<P>(nth, retries)) {
            nth += 1;
        }
        assert!(nth > 25, "{nth} points");
    }
}

#[test]
fn code_of_users_may_panic_at_each_point() {
    each_policy!(each_point());
}

/// Runs a script in a heap whose n-th allocation unwinds, and goes on. Returns whether there was
/// such an allocation.
fn goes_on<P: Policy>(structures: Structures, ops: &[Op], nth: u64) -> bool {
    let (world, heap) = in_heap::<P>(structures);
    let mut model = fill(&world);
    heap.arm(nth, Fault::Unwinds);
    let (tx, mut now) = (world.store.begin(), model.clone());
    let mut has_unwound = false;
    for op in ops {
        match catch_unwind(AssertUnwindSafe(|| world.run(&tx, &mut now, op))) {
            Ok(Ok(())) => assert!(!has_unwound, "{op:?} is done after a part of another one"),
            Ok(Err(error)) => assert!(has_unwound && error == Error::Unwound, "{op:?}: {error}"),
            Err(_) => has_unwound = true,
        }
    }
    let committed = tx.commit();
    if has_unwound {
        assert_eq!(committed, Err(Error::Unwound));
    } else if committed.is_ok() {
        model = now;
    } else {
        assert!(matches!(committed, Err(Error::Alloc(_))), "{committed:?}");
    }
    let was_refused = heap.refused() > 0;
    heap.disarm();
    check(&world, &mut model);
    end(world, &heap);
    was_refused
}

#[test]
fn what_a_heap_has_interrupted_is_not_committed() {
    fn all<P: Policy>(ops: &[Op], structures: Structures, unwound: &mut u64) {
        let mut nth = 1;
        while goes_on::<P>(structures, ops, nth) {
            nth += 1;
        }
        *unwound += nth - 1;
    }
    for ops in scripts() {
        let mut unwound = 0;
        for structures in STRUCTURES {
            each_policy!(all(&ops, structures, &mut unwound));
        }
        assert!(unwound > 20, "{unwound} panics: {ops:?}");
    }
}

/// A closure that goes on after a panic gets an error instead of a second call.
#[test]
fn interrupted_transactions_do_not_run_again() {
    let (world, heap) = in_heap::<Optimistic>(STRUCTURES[0]);
    let mut model = fill(&world);
    let mut calls = 0;
    let done = world.store.transact(|tx| {
        calls += 1;
        heap.arm(1, Fault::Unwinds);
        let insert = Op::Insert(5, Person { code: 5, town: 1, balance: 1 });
        let call = || world.run(tx, &mut model.clone(), &insert);
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        Ok::<(), Error>(())
    });
    heap.disarm();
    assert_eq!((done, calls), (Err(Error::Unwound), 1));
    check(&world, &mut model);
    end(world, &heap);
}

/// A key that uses its transaction while it is written.
struct Nested<'a, 's, P: Policy>(&'a World<P>, &'a Tx<'s, P>);

impl<P: Policy> AsKey<u8> for Nested<'_, '_, P> {
    fn with_form<R>(&self, then: impl FnOnce(u64) -> R) -> R {
        then(1)
    }
    fn write(&self, to: &mut Encoder) {
        let mut model = super::Model::default();
        let person = Person { code: 55, town: 1, balance: 1 };
        let refused = self.0.run(self.1, &mut model, &Op::Insert(55, person));
        assert_eq!(refused, Err(Error::Nested));
        1_u8.write(to);
    }
}

fn keys_try_the_transaction<P: Policy>() {
    let world = World::<P>::new(&StoreOptions::default(), ("words", "blocks")).unwrap();
    let mut model = fill(&world);
    let by_town = world.people.multi::<u8>("by_town").unwrap();
    let tx = world.store.begin();
    let rows = tx.find_all(&by_town, Nested(&world, &tx)).rows().unwrap();
    assert_eq!(rows.len(), 2, "people 1 and 4");
    drop(rows);
    drop(tx);
    assert_eq!(world.transaction(&mut model, &[], End::Commit), None);
    check(&world, &mut model);
}

#[test]
fn keys_cannot_use_the_transaction() {
    each_policy!(keys_try_the_transaction());
}

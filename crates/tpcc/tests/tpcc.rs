//! Transactions of TPC-C on small databases, under each policy.

mod support;

use silvics_store::index::{Lists, MultiLists, Named, Points, Scannable, Search};
use silvics_store::lock::{Latched, PthreadLock};
use silvics_store::{Error, Locking, NoWait, Optimistic, Policy, Study, WaitDie};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_tpcc::{Condition, Database, Failure, Outcome, Session, Structures, keys};
use silvics_workload::Share;
use silvics_workload::tpcc::{Customer, Mix, Population, Scale, Transaction};
use std::collections::HashSet;
use support::{NOW, SEED, Words, loaded, scale, words};

type Avl = Points<silvics::BronsonTree>;

pub(crate) fn is_consistent<P: Policy, I>(database: &Database<P, I>, scale: Scale)
where
    I: Scannable + Search<Form = u64>,
{
    let violations = database.check(scale).unwrap();
    assert!(violations.is_empty(), "{}", violations[0]);
}

/// Runs transactions on two threads. Returns the number of each outcome.
fn run<P: Policy, I>(database: &Database<P, I>, scale: Scale, mix: Mix, each: usize) -> [u64; 6]
where
    I: Scannable + Search<Form = u64>,
{
    let counts: [AtomicU64; 6] = Default::default();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let counts = &counts;
            scope.spawn(move || {
                let mut terminal = scale.terminal(mix, SEED, Share { thread, threads: 2 });
                let mut session = Session::default();
                for number in 0..each {
                    let transaction = terminal.draw();
                    let now = NOW + number as u64;
                    let outcome = database.run(&transaction, &mut session, now).unwrap();
                    let at = match outcome {
                        Outcome::Entered(entered) => {
                            assert!(entered.total > 0 && entered.count >= 5);
                            0
                        }
                        Outcome::RolledBack => 1,
                        Outcome::Paid(_) => 2,
                        Outcome::Status(last) => {
                            assert!((5..=15).contains(&last.lines), "{last:?}");
                            3
                        }
                        Outcome::Delivered(_) => 4,
                        Outcome::Low(_) => 5,
                    };
                    counts[at].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    counts.map(AtomicU64::into_inner)
}

fn all_transactions_keep_the_conditions<P: Policy>() {
    let scale = scale(2);
    let database = loaded::<P, Words>(scale, &words());
    is_consistent(&database, scale);
    let [entered, rolled_back, paid, status, delivered, low] =
        run(&database, scale, Mix::Standard, 1000);
    assert_eq!((entered + rolled_back, paid), (900, 860));
    assert_eq!((status, delivered, low), (80, 80, 80));
    assert!(rolled_back > 0);
    is_consistent(&database, scale);
}

#[test]
fn all_transactions_keep_the_conditions_under_each_policy() {
    all_transactions_keep_the_conditions::<Optimistic>();
    all_transactions_keep_the_conditions::<Locking<NoWait>>();
    all_transactions_keep_the_conditions::<Locking<WaitDie>>();
}

/// The study's database: trees that cannot scan, and lists.
#[test]
fn orders_and_payments_run_over_trees_without_scans() {
    type StudyPolicy = Locking<NoWait, Study<Latched<PthreadLock>>>;
    type Tree = Lists<Named<u64>>;
    let tree = |options: &silvics::Options| {
        Lists::around(Named::<u64>::with_structure("occ-avl", false, options)?, options)
    };
    let structures: Structures<Tree> = Structures::points(tree, |spec| {
        spec.made_by(|options| {
            let tree = Named::<u64>::with_structure("occ-avl", false, options)?;
            MultiLists::around(tree, options)
        })
    });
    let scale = scale(2);
    let database = loaded::<StudyPolicy, Tree>(scale, &structures);
    assert!(!database.scans());
    let [entered, rolled_back, paid, ..] = run(&database, scale, Mix::Half, 500);
    assert_eq!((entered + rolled_back, paid), (500, 500));
    is_consistent(&database, scale);
    let mut terminal = scale.terminal(Mix::Standard, SEED, Share::ALONE);
    let mut refused = HashSet::new();
    for _ in 0..100 {
        let transaction = terminal.draw();
        if let Err(failure) = database.run(&transaction, &mut Session::default(), NOW) {
            assert!(matches!(failure, Failure::NoScans), "{failure}");
            refused.insert(std::mem::discriminant(&transaction));
        }
    }
    assert_eq!(refused.len(), 3, "status, delivery, and stock level");
    is_consistent(&database, scale);
}

/// Both kinds of indexes find the same customers by name, and book the same.
#[test]
fn lists_and_ranges_find_the_same_customers() {
    let scale = scale(1);
    let one = loaded::<Optimistic, Words>(scale, &words());
    let lists = Structures::points(
        |options| Ok(Words::make(options)?),
        silvics_store::IndexSpec::over::<MultiLists<Avl>>,
    );
    let other = loaded::<Optimistic, Words>(scale, &lists);
    let mut terminal = scale.terminal(Mix::Half, 3, Share::ALONE);
    let (mut a, mut b) = (Session::default(), Session::default());
    for _ in 0..500 {
        let transaction = terminal.draw();
        let outcomes = (one.run(&transaction, &mut a, NOW), other.run(&transaction, &mut b, NOW));
        assert_eq!(outcomes.0.unwrap(), outcomes.1.unwrap(), "{transaction:?}");
    }
}

/// The one in the middle pays, if several customers have a name.
#[test]
fn the_customer_in_the_middle_pays() {
    let scale = scale(1);
    let database = loaded::<Optimistic, Words>(scale, &words());
    let mut terminal = scale.terminal(Mix::Half, 9, Share::ALONE);
    let mut shared = 0;
    for _ in 0..400 {
        let transaction = terminal.draw();
        let Transaction::Payment(input) = &transaction else { continue };
        let Customer::LastName(name) = input.customer else { continue };
        let (warehouse, district) = (input.customer_warehouse, input.customer_district);
        let customers = Population::new(scale, SEED, NOW).customers(warehouse, district);
        let named = customers.filter(|(customer, _)| customer.last == name);
        let mut named: Vec<_> = named.map(|(of, _)| (of.first, of.id)).collect();
        named.sort_unstable();
        shared += usize::from(named.len() > 2);
        let middle = named[named.len().div_ceil(2) - 1].1;
        let outcome = database.run(&transaction, &mut Session::default(), NOW).unwrap();
        let Outcome::Paid(paid) = outcome else { panic!("{outcome:?}") };
        assert_eq!(paid.customer, middle, "{named:?}");
    }
    assert!(shared > 20, "{shared} names of three customers or more");
}

/// An order takes the next number, and all its lines; a delivery ends it.
#[test]
fn an_order_is_entered_and_delivered() {
    let scale = scale(1);
    let database = loaded::<Optimistic, Words>(scale, &words());
    let mut terminal = scale.terminal(Mix::Standard, 1, Share::ALONE);
    let mut session = Session::default();
    let mut draw = |wanted: fn(&Transaction) -> bool| loop {
        let transaction = terminal.draw();
        if wanted(&transaction) {
            return transaction;
        }
    };
    let is_order = |of: &Transaction| matches!(of, Transaction::NewOrder(o) if !o.rolls_back());
    let order = draw(is_order);
    for next in 1..3 {
        let outcome = database.run(&order, &mut session, NOW).unwrap();
        let Outcome::Entered(entered) = outcome else { panic!("{outcome:?}") };
        assert_eq!(entered.order, scale.customers() + next);
    }
    let rolled_back = draw(|of| matches!(of, Transaction::NewOrder(o) if o.rolls_back()));
    let outcome = database.run(&rolled_back, &mut session, NOW).unwrap();
    assert_eq!(outcome, Outcome::RolledBack);
    is_consistent(&database, scale);
    // The oldest new orders of the load go first, one of each district.
    let delivery = draw(|of| matches!(of, Transaction::Delivery(_)));
    for round in 0..3 {
        let outcome = database.run(&delivery, &mut session, NOW).unwrap();
        let Outcome::Delivered(delivered) = outcome else { panic!("{outcome:?}") };
        let first = scale.delivered_orders() + 1 + round;
        assert_eq!(delivered.orders, [Some(first); 10]);
    }
    is_consistent(&database, scale);
}

/// A row that must be there is named.
#[test]
fn a_database_of_another_scale_is_noticed() {
    let database = loaded::<Optimistic, Words>(scale(1), &words());
    let mut terminal = scale(2).terminal(Mix::Half, 1, Share { thread: 1, threads: 2 });
    let failed = database.run(&terminal.draw(), &mut Session::default(), NOW);
    let Err(failure @ Failure::Missing { table: "warehouse", key: 2 }) = failed else {
        panic!("{failed:?}")
    };
    assert!(failure.to_string().contains("load the database at the scale"), "{failure}");
    let missing = database.check(scale(2));
    assert!(matches!(missing, Err(Failure::Missing { table: "warehouse", key: 2 })));
}

/// Each condition notices the change of a row that breaks it.
#[test]
fn each_condition_notices_a_mistake() {
    let scale = scale(1);
    let mut noticed = HashSet::new();
    let district = keys::district(1, 3);
    let new = keys::order(district, scale.customers());
    let delivered = keys::order(district, 1);
    for (table, key, column, change) in [
        ("warehouse", 1, "ytd", 1),
        ("district", district, "ytd", 1),
        ("district", district, "next_order", 1),
        ("customer", keys::customer(district, 5), "balance", 1),
        ("customer", keys::customer(district, 5), "ytd_payment", 1),
        ("customer", keys::customer(district, 5), "deliveries", 1),
        ("history", keys::customer(district, 5), "amount", 1),
        ("orders", new, "carrier", 1),
        ("orders", new, "lines", 1),
        ("order_line", keys::line(new, 1), "delivery", 1),
        ("order_line", keys::line(delivered, 1), "amount", 1),
        ("order_line", keys::line(delivered, 1), "", 0),
        ("new_order", keys::order(district, scale.customers() - 2), "", 0),
        ("stock", keys::stock(1, 5), "", 0),
        ("stock", keys::stock(1, 5), "ytd", 1),
    ] {
        let database = loaded::<Optimistic, Words>(scale, &words());
        damage(&database, (table, key), column, change).unwrap();
        let violations = database.check(scale).unwrap();
        assert!(!violations.is_empty(), "{table}.{column} is not noticed");
        assert!(violations[0].to_string().contains("does not hold"));
        noticed.extend(violations.iter().map(|violation| violation.condition.number));
    }
    let all: HashSet<u8> = Condition::all().iter().map(|condition| condition.number).collect();
    assert_eq!(noticed, all);
}

/// Adds to a column of a row, or deletes the row.
fn damage(
    database: &Database<Optimistic, Words>,
    (table, key): (&str, u64),
    column: &str,
    change: u8,
) -> Result<(), Error> {
    let store = database.store();
    let table = store.table(table).unwrap();
    let rows = table.index_over::<u64, Words>("primary")?;
    store.transact(|tx| {
        if column.is_empty() {
            assert!(tx.delete(&rows, key)?);
            return Ok(());
        }
        let found = tx.update(&rows, key, |row| {
            macro_rules! add {
                ($($number:ty)+) => {$(
                    if let Ok(column) = table.column::<$number>(column) {
                        return row.set(column, row.get(column)? + <$number>::from(change));
                    }
                )+};
            }
            add!(i64 u64 u32 u8);
            Err(Error::Foreign)
        })?;
        assert!(found);
        Ok(())
    })
}

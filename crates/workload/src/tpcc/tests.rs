use super::*;
use crate::Share;
use std::collections::{HashMap, HashSet};

mod population;

fn draws(warehouses: u32, mix: Mix, thread: usize, count: usize) -> Vec<Transaction> {
    draws_at(Scale::new(warehouses).unwrap(), mix, thread, count)
}

fn draws_at(scale: Scale, mix: Mix, thread: usize, count: usize) -> Vec<Transaction> {
    let share = Share { thread, threads: thread + 1 };
    let mut terminal = scale.terminal(mix, 7, share);
    (0..count).map(|_| terminal.draw()).collect()
}

/// Whether a share is what it must be, within five standard deviations.
fn is_near(count: usize, of: usize, share: f64) -> bool {
    let (expected, of) = (share * of as f64, of as f64);
    (count as f64 - expected).abs() <= 5.0 * (of * share * (1.0 - share)).sqrt()
}

#[test]
fn the_mixes_have_their_shares() {
    let counts = |mix| {
        let mut counts = [0; 5];
        for transaction in draws(2, mix, 0, 1000) {
            counts[match transaction {
                Transaction::NewOrder(_) => 0,
                Transaction::Payment(_) => 1,
                Transaction::OrderStatus(_) => 2,
                Transaction::Delivery(_) => 3,
                Transaction::StockLevel(_) => 4,
            }] += 1;
        }
        counts
    };
    assert_eq!(counts(Mix::Standard), [450, 430, 40, 40, 40]);
    assert_eq!(counts(Mix::Half), [500, 500, 0, 0, 0]);
}

#[test]
fn new_orders_are_those_of_the_specification() {
    let orders: Vec<NewOrder> = draws(3, Mix::Half, 4, 100_000)
        .into_iter()
        .filter_map(|transaction| match transaction {
            Transaction::NewOrder(order) => Some(order),
            _ => None,
        })
        .collect();
    let lines: usize = orders.iter().map(|order| order.lines().len()).sum();
    let (mut remote, mut rolled_back) = (0, 0);
    for order in &orders {
        assert_eq!(order.warehouse, 2, "five threads, three warehouses");
        assert!((1..=DISTRICTS).contains(&order.district));
        assert!((1..=CUSTOMERS).contains(&order.customer));
        assert!((5..=LINES).contains(&order.lines().len()));
        let (last, others) = order.lines().split_last().unwrap();
        assert!(others.iter().all(|line| (1..=ITEMS).contains(&line.item)));
        assert_eq!(order.rolls_back(), last.item == UNUSED_ITEM);
        for line in order.lines() {
            assert!((1..=3).contains(&line.supplier) && (1..=10).contains(&line.quantity));
            remote += usize::from(line.supplier != 2);
        }
        assert_eq!(order.is_local(), order.lines().iter().all(|line| line.supplier == 2));
        rolled_back += usize::from(order.rolls_back());
    }
    assert!(is_near(remote, lines, 0.01), "{remote} of {lines} lines are remote");
    assert!(is_near(rolled_back, orders.len(), 0.01), "{rolled_back} orders are rolled back");
    let mean = lines as f64 / orders.len() as f64;
    assert!((mean - 10.0).abs() < 0.1, "{mean} lines for each order");
}

#[test]
fn payments_are_those_of_the_specification() {
    let payments: Vec<Payment> = draws(4, Mix::Half, 1, 100_000)
        .into_iter()
        .filter_map(|transaction| match transaction {
            Transaction::Payment(payment) => Some(payment),
            _ => None,
        })
        .collect();
    let remote = payments.iter().filter(|payment| payment.customer_warehouse != 2).count();
    assert!(is_near(remote, payments.len(), 0.15), "{remote} payments are remote");
    let named = |payment: &&Payment| matches!(payment.customer, Customer::LastName(_));
    let by_name = payments.iter().filter(named).count();
    assert!(is_near(by_name, payments.len(), 0.6), "{by_name} payments are by name");
    for payment in payments {
        assert!((100..=500_000).contains(&payment.cents));
        assert!((1..=4).contains(&payment.customer_warehouse));
        if payment.customer_warehouse == payment.warehouse {
            assert_eq!(payment.customer_district, payment.district);
        }
    }
}

/// One warehouse has no remote ones.
#[test]
fn a_single_warehouse_supplies_itself() {
    for transaction in draws(1, Mix::Standard, 3, 10_000) {
        match transaction {
            Transaction::NewOrder(order) => assert!(order.is_local()),
            Transaction::Payment(payment) => assert_eq!(payment.customer_warehouse, 1),
            Transaction::OrderStatus(OrderStatus { warehouse, .. })
            | Transaction::Delivery(Delivery { warehouse, .. })
            | Transaction::StockLevel(StockLevel { warehouse, .. }) => assert_eq!(warehouse, 1),
        }
    }
}

/// Clause 2.1.6.1 bounds the difference of the constants; the draws reach the whole range, and some
/// numbers are far more frequent than others.
#[test]
fn skewed_draws_are_those_of_the_specification() {
    for seed in 0..200 {
        let (load, run) = (Constants::of_load(seed), Constants::of_run(seed));
        let apart = load.last_name.abs_diff(run.last_name);
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{seed}: {apart}");
        assert_eq!(run, Constants::of_run(seed));
    }
    let mut customers: HashMap<u32, u32> = HashMap::new();
    for transaction in draws(1, Mix::Half, 0, 400_000) {
        if let Transaction::NewOrder(order) = transaction {
            *customers.entry(order.customer).or_default() += 1;
        }
    }
    assert!(customers.len() > 2700, "{} customers are drawn", customers.len());
    let most = customers.values().max().unwrap();
    assert!(*most > 5 * 200_000 / CUSTOMERS, "the most frequent customer has {most} orders");
}

/// A terminal of a reduced scale names items, customers and last names that this scale has, and
/// nearly all of them.
#[test]
fn a_reduced_scale_draws_what_it_has() {
    let scale = Scale::reduced(2).unwrap();
    let (mut items, mut numbers, mut names) = (HashSet::new(), HashSet::new(), HashSet::new());
    for transaction in draws_at(scale, Mix::Half, 0, 20_000) {
        match transaction {
            Transaction::NewOrder(order) => {
                items.extend(order.lines().iter().map(|line| line.item));
                numbers.insert(order.customer);
            }
            Transaction::Payment(Payment { customer: Customer::Number(number), .. }) => {
                numbers.insert(number);
            }
            Transaction::Payment(Payment { customer: Customer::LastName(name), .. }) => {
                names.insert(name);
            }
            _ => unreachable!("half new orders, half payments"),
        }
    }
    assert!(items.remove(&UNUSED_ITEM));
    assert!(items.iter().all(|item| (1..=1000).contains(item)));
    assert!(items.len() > 950, "{} items are drawn", items.len()); // the rarest in 0.002 % of lines
    assert_eq!(numbers, (1..=60).collect());
    assert_eq!(names, (0..20).filter_map(LastName::new).collect());
}

#[test]
fn scales_without_warehouses_are_refused() {
    for warehouses in [0, WAREHOUSES_MAX + 1] {
        let error = Scale::new(warehouses).unwrap_err();
        assert_eq!(Scale::reduced(warehouses), Err(error));
        let text = format!(
            "a database of TPC-C cannot have {warehouses} warehouses: choose from 1 to 10000"
        );
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn rounds_differ_and_keep_the_constants() {
    let terminal = || Scale::new(2).unwrap().terminal(Mix::Half, 3, Share::ALONE);
    let draws = |mut terminal: Terminal| -> Vec<Transaction> {
        std::iter::repeat_with(|| terminal.draw()).take(50).collect()
    };
    let rounds: Vec<_> = (0..3).map(|round| draws(terminal().in_round(round))).collect();
    assert_eq!(rounds[0], draws(terminal()));
    assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2] && rounds[0] != rounds[2]);
}

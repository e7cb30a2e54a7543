//! The population has the columns of clause 4.3.3.1, is consistent, and depends on keys alone.

use super::*;
use proptest::prelude::*;
use std::ops::RangeInclusive;

const NOW: u64 = 1_700_000_000_000_000;

fn full() -> Population {
    Population::new(Scale::new(4).unwrap(), 42, NOW)
}

fn reduced() -> Population {
    Population::new(Scale::reduced(2).unwrap(), 42, NOW)
}

/// Checks that values lie in a range and come within 2 % of its ends.
fn fill(column: &str, values: impl IntoIterator<Item = i64>, range: RangeInclusive<i64>) {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for value in values {
        (least, most) = (least.min(value), most.max(value));
    }
    let (start, end) = (*range.start(), *range.end());
    let slack = (end - start) / 50;
    let near = (start..=start + slack).contains(&least) && (end - slack..=end).contains(&most);
    assert!(near, "{column}: {least} to {most}");
}

/// Checks that texts have these lengths and consist of all of these characters, but of no others.
fn spell<'a>(
    column: &str,
    texts: impl IntoIterator<Item = &'a String>,
    lengths: RangeInclusive<i64>,
    is_allowed: fn(&u8) -> bool,
) {
    let texts: Vec<&String> = texts.into_iter().collect();
    fill(column, texts.iter().map(|text| text.len() as i64), lengths);
    let found: HashSet<u8> = texts.iter().flat_map(|text| text.bytes()).collect();
    assert_eq!(found, (0..=u8::MAX).filter(is_allowed).collect(), "{column}");
}

/// Checks the columns of at least a thousand addresses.
fn check_addresses<'a>(addresses: impl Iterator<Item = &'a Address>) {
    let addresses: Vec<&Address> = addresses.collect();
    let all = || addresses.iter();
    spell("street 1", all().map(|address| &address.street_1), 10..=20, u8::is_ascii_alphanumeric);
    spell("street 2", all().map(|address| &address.street_2), 10..=20, u8::is_ascii_alphanumeric);
    spell("city", all().map(|address| &address.city), 10..=20, u8::is_ascii_alphanumeric);
    spell("state", all().map(|address| &address.state), 2..=2, u8::is_ascii_alphabetic);
    spell("zip", all().map(|address| &address.zip), 9..=9, u8::is_ascii_digit);
    assert!(all().all(|address| address.zip.ends_with("11111")));
}

/// Checks the data of items or stocks.
fn check_brands<'a>(data: impl Iterator<Item = &'a String> + Clone) {
    spell("data", data.clone(), 26..=50, u8::is_ascii_alphanumeric);
    let places: Vec<(usize, usize)> = data
        .clone()
        .filter_map(|text| Some((text.find("ORIGINAL")?, text.len() - "ORIGINAL".len())))
        .collect();
    let (count, of) = (places.len(), data.count());
    assert!(is_near(count, of, 0.1), "{count} of {of} data have the text ORIGINAL");
    assert!(places.iter().any(|&(at, _)| at == 0));
    assert!(places.iter().any(|&(at, last)| at == last));
}

#[test]
fn items_and_stocks_are_those_of_the_specification() {
    let items: Vec<ItemRow> = full().items(1..=ITEMS).collect();
    assert!(items.iter().map(|item| item.id).eq(1..=100_000));
    fill("image", items.iter().map(|item| item.image.into()), 1..=10_000);
    fill("price", items.iter().map(|item| item.price_cents), 100..=10_000);
    spell("name", items.iter().map(|item| &item.name), 14..=24, u8::is_ascii_alphanumeric);
    check_brands(items.iter().map(|item| &item.data));

    let stocks: Vec<StockRow> = full().stock(3, 1..=20_000).collect();
    assert!(stocks.iter().map(|stock| stock.item).eq(1..=20_000));
    assert!(stocks.iter().all(|stock| stock.warehouse == 3));
    fill("quantity", stocks.iter().map(|stock| stock.quantity.into()), 10..=100);
    let infos = stocks.iter().flat_map(|stock| &stock.district_infos);
    spell("info", infos, 24..=24, u8::is_ascii_alphabetic);
    assert!(stocks.iter().all(|stock| (stock.ytd, stock.orders, stock.remotes) == (0, 0, 0)));
    check_brands(stocks.iter().map(|stock| &stock.data));
}

#[test]
fn warehouses_and_districts_are_those_of_the_specification() {
    let population = Population::new(Scale::new(1000).unwrap(), 42, NOW);
    let warehouses: Vec<WarehouseRow> = (1..=1000).map(|w| population.warehouse(w)).collect();
    assert!(warehouses.iter().map(|row| row.id).eq(1..=1000));
    spell("name", warehouses.iter().map(|row| &row.name), 6..=10, u8::is_ascii_alphanumeric);
    fill("tax", warehouses.iter().map(|row| row.tax.into()), 0..=2000);
    check_addresses(warehouses.iter().map(|row| &row.address));
    assert!(warehouses.iter().all(|row| row.ytd_cents == 30_000_000));

    let districts: Vec<DistrictRow> = (1..=100)
        .flat_map(|w| (1..=DISTRICTS).map(move |district| population.district(w, district)))
        .collect();
    spell("name", districts.iter().map(|row| &row.name), 6..=10, u8::is_ascii_alphanumeric);
    fill("tax", districts.iter().map(|row| row.tax.into()), 0..=2000);
    check_addresses(districts.iter().map(|row| &row.address));
    for (district, at) in districts.iter().zip(0..) {
        assert_eq!((district.warehouse, u32::from(district.id)), (at / 10 + 1, at % 10 + 1));
        assert_eq!((district.ytd_cents, district.next_order), (3_000_000, 3001));
    }
}

#[test]
fn customers_are_those_of_the_specification() {
    let (customers, history): (Vec<CustomerRow>, Vec<HistoryRow>) = full().customers(2, 7).unzip();
    assert!(customers.iter().map(|row| row.id).eq(1..=3000));
    spell("first", customers.iter().map(|row| &row.first), 8..=16, u8::is_ascii_alphanumeric);
    spell("phone", customers.iter().map(|row| &row.phone), 16..=16, u8::is_ascii_digit);
    spell("data", customers.iter().map(|row| &row.data), 300..=500, u8::is_ascii_alphanumeric);
    fill("discount", customers.iter().map(|row| row.discount.into()), 0..=5000);
    check_addresses(customers.iter().map(|row| &row.address));
    let bad = customers.iter().filter(|row| !row.credit_is_good).count();
    assert!(is_near(bad, 3000, 0.1), "{bad} customers have bad credit");
    for row in &customers {
        assert_eq!((row.warehouse, row.district, row.since), (2, 7, NOW));
        assert_eq!(row.middle, "OE");
        assert_eq!((row.balance_cents, row.ytd_payment_cents), (-1000, 1000));
        assert_eq!((row.credit_limit_cents, row.payments, row.deliveries), (5_000_000, 1, 0));
    }
    spell("history", history.iter().map(|row| &row.data), 12..=24, u8::is_ascii_alphanumeric);
    for (row, customer) in history.iter().zip(1..) {
        assert_eq!((row.warehouse, row.district), (2, 7));
        assert_eq!((row.customer_warehouse, row.customer_district, row.customer), (2, 7, customer));
        assert_eq!((row.date, row.amount_cents), (NOW, 1000));
    }
}

/// The first thousand customers of a district have all names. The draw for the others prefers
/// numbers whose lower 8 bits are set, and adds the load's constant to them.
#[test]
fn last_names_are_those_of_the_specification() {
    let names: Vec<LastName> = (0..1000).filter_map(LastName::new).collect();
    let mut counts: HashMap<LastName, u32> = HashMap::new();
    for district in 1..=DISTRICTS {
        let drawn: Vec<LastName> = full().customers(1, district).map(|(row, _)| row.last).collect();
        assert_eq!(drawn[..1000], names);
        for &name in &drawn[1000..] {
            *counts.entry(name).or_default() += 1;
        }
    }
    let mut by_count: Vec<LastName> = counts.keys().copied().collect();
    by_count.sort_unstable_by_key(|name| std::cmp::Reverse(counts[name]));
    let constant = Constants::of_load(42).last_name as usize;
    let expected: HashSet<LastName> =
        [255, 511, 767].into_iter().map(|number| names[(number + constant) % 1000]).collect();
    assert_eq!(by_count[..3].iter().copied().collect::<HashSet<_>>(), expected);

    let few: Vec<LastName> = reduced().customers(1, 1).map(|(row, _)| row.last).collect();
    assert_eq!(few[..20], names[..20]);
    assert!(few[20..].iter().all(|name| names[..20].contains(name)));
}

#[test]
fn orders_are_those_of_the_specification() {
    let orders: Vec<(OrderRow, Vec<OrderLineRow>, bool)> = full().orders(4, 10).collect();
    assert!(orders.iter().map(|(order, ..)| order.id).eq(1..=3000));
    let mut customers: Vec<u32> = orders.iter().map(|(order, ..)| order.customer).collect();
    let unmoved = customers.iter().zip(1..).filter(|&(&customer, order)| customer == order);
    assert!(unmoved.count() < 10);
    assert!(!full().orders(4, 9).map(|(order, ..)| order.customer).eq(customers.iter().copied()));
    customers.sort_unstable();
    assert!(customers.into_iter().eq(1..=3000));
    fill("carrier", orders.iter().filter_map(|(order, ..)| Some(order.carrier?.into())), 1..=10);
    fill("lines", orders.iter().map(|(order, ..)| order.line_count.into()), 5..=15);
    for (order, lines, is_new) in &orders {
        assert_eq!((order.warehouse, order.district, order.entry), (4, 10, NOW));
        assert!(order.is_local);
        assert_eq!(*is_new, order.id > 2100);
        assert_eq!(order.carrier.is_none(), *is_new);
        assert!(lines.iter().map(|line| line.number).eq(1..=order.line_count));
        for line in lines {
            assert_eq!((line.warehouse, line.district, line.order), (4, 10, order.id));
            assert_eq!((line.supplier, line.quantity), (4, 5));
            assert_eq!(line.delivery, (!is_new).then_some(NOW));
        }
    }
    let lines = || orders.iter().flat_map(|(_, lines, _)| lines);
    fill("item", lines().map(|line| line.item.into()), 1..=100_000);
    spell("info", lines().map(|line| &line.district_info), 24..=24, u8::is_ascii_alphabetic);
    let (delivered, new): (Vec<_>, Vec<_>) = lines().partition(|line| line.delivery.is_some());
    assert!(delivered.iter().all(|line| line.amount_cents == 0));
    fill("amount", new.iter().map(|line| line.amount_cents), 1..=999_999);
}

/// Checks the consistency conditions of clause 3.3.2 for a warehouse. The number of a condition is
/// behind its check.
fn check_consistency(population: Population, scale: Scale, warehouse: u32) {
    let districts = (1..=DISTRICTS).map(|district| population.district(warehouse, district));
    let mut ytd_cents = 0;
    for district in districts {
        ytd_cents += district.ytd_cents;
        let (customers, history): (Vec<CustomerRow>, Vec<HistoryRow>) =
            population.customers(warehouse, district.id).unzip();
        let paid: i64 = history.iter().map(|payment| payment.amount_cents).sum();
        assert_eq!(district.ytd_cents, paid); // 9
        let (mut debts, mut numbers, mut new) = (HashMap::new(), Vec::new(), Vec::new());
        for (order, lines, is_new) in population.orders(warehouse, district.id) {
            assert_eq!(usize::from(order.line_count), lines.len()); // 4, 6
            assert_eq!(order.carrier.is_none(), is_new); // 5
            for line in &lines {
                assert_eq!(line.delivery.is_none(), is_new); // 7
                assert!((1..=scale.items()).contains(&line.item));
            }
            let delivered = lines.iter().filter(|line| line.delivery.is_some());
            let owed: i64 = delivered.map(|line| line.amount_cents).sum();
            assert_eq!(debts.insert(order.customer, owed), None, "a customer has two orders");
            numbers.push(order.id);
            new.extend(is_new.then_some(order.id));
        }
        assert!(numbers.iter().copied().eq(1..district.next_order)); // 2
        assert!(new.iter().copied().eq(scale.delivered_orders() + 1..district.next_order)); // 2, 3
        assert_eq!(numbers.len() - new.len(), scale.delivered_orders() as usize); // 11
        assert_eq!(debts.len(), customers.len());
        for (customer, payment) in customers.iter().zip(history) {
            let owed = debts[&customer.id];
            assert_eq!(customer.balance_cents, owed - payment.amount_cents); // 10
            assert_eq!(customer.balance_cents + customer.ytd_payment_cents, owed); // 12
        }
    }
    assert_eq!(population.warehouse(warehouse).ytd_cents, ytd_cents); // 1, 8 with 9
}

#[test]
fn the_population_is_consistent() {
    check_consistency(full(), Scale::new(4).unwrap(), 3);
    let scale = Scale::reduced(2).unwrap();
    assert_eq!((scale.items(), scale.customers(), scale.delivered_orders()), (1000, 60, 42));
    for warehouse in 1..=2 {
        check_consistency(reduced(), scale, warehouse);
        assert_eq!(reduced().warehouse(warehouse).ytd_cents, 600_000);
    }
    assert_eq!(reduced().items(0..=u32::MAX).count(), 1000);
    assert_eq!(reduced().stock(2, 0..=u32::MAX).count(), 1000);
    assert_eq!(reduced().items(1001..=2000).count(), 0);
}

/// Parts of a table that differ in any argument hold other texts.
#[test]
fn rows_depend_on_the_seed_and_the_key() {
    let other_seed = Population::new(Scale::reduced(2).unwrap(), 43, NOW);
    let data = |population: Population, warehouse, district| -> Vec<String> {
        population.customers(warehouse, district).map(|(customer, _)| customer.data).collect()
    };
    let parts = [
        data(reduced(), 1, 1),
        data(reduced(), 1, 2),
        data(reduced(), 2, 1),
        data(other_seed, 1, 1),
    ];
    assert_eq!(parts.iter().flatten().collect::<HashSet<_>>().len(), 4 * 60);
    let (items, stock) = (reduced().items(1..=1000), reduced().stock(1, 1..=1000));
    let data: HashSet<String> =
        items.map(|row| row.data).chain(stock.map(|row| row.data)).collect();
    assert_eq!(data.len(), 2000);
}

/// A recorded seed keeps its meaning in later versions.
#[test]
fn the_population_of_a_seed_stays() {
    let item = reduced().items(7..=7).next().unwrap();
    assert_eq!((item.name.as_str(), item.price_cents), ("gMSANTTHWytlXL9dIB8K7Fh4", 2136));
    let stock = reduced().stock(1, 7..=7).next().unwrap();
    assert_eq!(stock.district_infos[9], "RoTocHhtxGdveKAAmxmXHdKd");
    assert_eq!(reduced().warehouse(1).address.street_2, "99zAapaZ31pDM");
    assert_eq!(reduced().district(1, 1).address.zip, "277511111");
    let (customer, payment) = reduced().customers(1, 1).last().unwrap();
    assert_eq!(customer.first, "IeKA9ihlvGJt");
    assert_eq!(payment.data, "kBsbZIV0X1NtrjTQWg");
    let (order, lines, _) = reduced().orders(2, 3).last().unwrap();
    assert_eq!((order.customer, order.line_count, lines[0].amount_cents), (34, 9, 378_914));
}

proptest! {
    #[test]
    fn any_split_yields_the_same_rows(mut cuts in prop::collection::vec(0_u32..1100, 3)) {
        cuts.sort_unstable();
        let starts = [&[0], &cuts[..]].concat();
        let ends = [&cuts[..], &[1100]].concat();
        let ranges = || starts.iter().zip(&ends).map(|(&start, &end)| start + 1..=end);
        let items = ranges().flat_map(|range| reduced().items(range));
        prop_assert!(items.eq(reduced().items(1..=1000)));
        let stock = ranges().flat_map(|range| reduced().stock(2, range));
        prop_assert!(stock.eq(reduced().stock(2, 1..=1000)));
    }
}

//! The nine tables and their indexes.
//!
//! Each table has a primary index of packed [keys](crate::keys). There are two more indexes, which
//! depend on the structure:
//!
//! | index | if the structure scans | otherwise |
//! |---|---|---|
//! | customers by last name | unique, of last name and customer | lists of customers |
//! | orders by customer | unique, of customer and order | lists of orders |
//!
//! A table of the standard without a primary key, the history, has the number of the entry as one.

use silvics::Options;
use silvics_store::index::Search;
use silvics_store::{Column, Error, Index, IndexSpec, Multi, Policy, Schema, Store, Table, Type};
use std::sync::Arc;

/// A function that makes an index.
type Make<I> = Arc<dyn Fn(&Options) -> Result<I, Error> + Send + Sync>;

/// A function that chooses the structure of an index in which several rows have one key.
type Lists = Arc<dyn Fn(IndexSpec) -> IndexSpec + Send + Sync>;

/// The structures of the indexes.
pub struct Structures<I> {
    make: Make<I>,
    lists: Option<Lists>,
}

impl<I> Clone for Structures<I> {
    fn clone(&self) -> Self {
        Self { make: Arc::clone(&self.make), lists: self.lists.clone() }
    }
}

impl<I: Search<Form = u64>> Structures<I> {
    /// Indexes that scan, all made by `make`.
    pub fn scanning(make: impl Fn(&Options) -> Result<I, Error> + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), lists: None }
    }

    /// Indexes that need not scan: only new orders and payments can run on them. `lists` chooses
    /// the structure of an index in which several rows have one key, such as
    /// [`MultiLists`](silvics_store::index::MultiLists).
    pub fn points(
        make: impl Fn(&Options) -> Result<I, Error> + Send + Sync + 'static,
        lists: impl Fn(IndexSpec) -> IndexSpec + Send + Sync + 'static,
    ) -> Self {
        Self { make: Arc::new(make), lists: Some(Arc::new(lists)) }
    }

    fn unique(&self, spec: IndexSpec, scans: bool) -> IndexSpec {
        let make = Arc::clone(&self.make);
        let spec = spec.made_by(move |options| make(options));
        if scans && self.lists.is_none() { spec } else { spec.points_only() }
    }

    fn primary(&self, scans: bool) -> IndexSpec {
        self.unique(IndexSpec::primary(["key"]), scans)
    }

    /// A second index, of the column `column`.
    fn second(&self, name: &str, column: &str) -> IndexSpec {
        match &self.lists {
            None => self.unique(IndexSpec::unique(name, [column]), true),
            Some(lists) => lists(IndexSpec::multi(name, [column])),
        }
    }
}

/// Declares a table with a key and these columns.
macro_rules! table {
    ($(#[$doc:meta])* $table:ident, $name:literal { $($column:ident: $field:ty, $kind:expr;)+ }) => {
        $(#[$doc])*
        pub(crate) struct $table<P: Policy, I> {
            pub(crate) table: Table<P>,
            pub(crate) rows: Index<P, u64, I>,
            pub(crate) key: Column<u64>,
            $(pub(crate) $column: Column<$field>,)+
        }

        impl<P: Policy, I: Search<Form = u64>> $table<P, I> {
            /// The name of the table.
            const NAME: &'static str = $name;

            fn schema() -> Schema {
                Schema::new($name).column("key", Type::U64)
                    $(.column(stringify!($column), $kind))+
            }

            fn of(table: Table<P>) -> Result<Self, Error> {
                Ok(Self {
                    rows: table.index_over("primary")?,
                    key: table.column("key")?,
                    $($column: table.column(stringify!($column))?,)+
                    table,
                })
            }
        }
    };
}

table! {
    /// Warehouses.
    Warehouses, "warehouse" {
        name: [u8], Type::Bytes(10);
        street_1: [u8], Type::Bytes(20);
        street_2: [u8], Type::Bytes(20);
        city: [u8], Type::Bytes(20);
        state: [u8], Type::Bytes(2);
        zip: [u8], Type::Bytes(9);
        tax: u32, Type::U32;
        ytd: i64, Type::I64;
    }
}

table! {
    /// Districts.
    Districts, "district" {
        ytd: i64, Type::I64;
        tax: u32, Type::U32;
        next_order: u32, Type::U32;
        name: [u8], Type::Bytes(10);
        street_1: [u8], Type::Bytes(20);
        street_2: [u8], Type::Bytes(20);
        city: [u8], Type::Bytes(20);
        state: [u8], Type::Bytes(2);
        zip: [u8], Type::Bytes(9);
    }
}

table! {
    /// Customers.
    Customers, "customer" {
        by_name: u64, Type::U64;
        balance: i64, Type::I64;
        ytd_payment: i64, Type::I64;
        payments: u32, Type::U32;
        deliveries: u32, Type::U32;
        discount: u32, Type::U32;
        credit: [u8], Type::Bytes(2);
        credit_limit: i64, Type::I64;
        since: u64, Type::U64;
        first: [u8], Type::Bytes(16);
        middle: [u8], Type::Bytes(2);
        last: [u8], Type::Bytes(16);
        street_1: [u8], Type::Bytes(20);
        street_2: [u8], Type::Bytes(20);
        city: [u8], Type::Bytes(20);
        state: [u8], Type::Bytes(2);
        zip: [u8], Type::Bytes(9);
        phone: [u8], Type::Bytes(16);
        data: [u8], Type::Bytes(500);
    }
}

table! {
    /// The history of payments.
    History, "history" {
        customer: u64, Type::U64;
        district: u64, Type::U64;
        date: u64, Type::U64;
        amount: i64, Type::I64;
        data: [u8], Type::Bytes(24);
    }
}

table! {
    /// Orders that are not delivered.
    NewOrders, "new_order" {
        order: u64, Type::U64;
    }
}

table! {
    /// Orders.
    Orders, "orders" {
        by_customer: u64, Type::U64;
        customer: u64, Type::U64;
        entry: u64, Type::U64;
        carrier: u8, Type::U8;
        lines: u8, Type::U8;
        is_local: u8, Type::U8;
    }
}

table! {
    /// The lines of orders.
    OrderLines, "order_line" {
        item: u32, Type::U32;
        supplier: u32, Type::U32;
        delivery: u64, Type::U64;
        amount: i64, Type::I64;
        quantity: u8, Type::U8;
        district_info: [u8], Type::Bytes(24);
    }
}

table! {
    /// Items.
    Items, "item" {
        image: u32, Type::U32;
        price: i64, Type::I64;
        name: [u8], Type::Bytes(24);
        data: [u8], Type::Bytes(50);
    }
}

table! {
    /// The stock of warehouses.
    Stocks, "stock" {
        quantity: i32, Type::I32;
        ytd: u32, Type::U32;
        orders: u32, Type::U32;
        remotes: u32, Type::U32;
        data: [u8], Type::Bytes(50);
        district_infos: [u8], Type::Bytes(240);
    }
}

/// The bytes of the text for a district in a row of the stock.
pub(crate) const DISTRICT_INFO: usize = 24;

/// An index by which several rows are found.
pub(crate) enum Second<P: Policy, I> {
    /// Unique: rows lie side by side.
    Range(Index<P, u64, I>),
    /// A key leads to a list of rows.
    Lists(Multi<P, u64>),
}

impl<P: Policy, I: Search<Form = u64>> Second<P, I> {
    fn of(table: &Table<P>, name: &str) -> Result<Self, Error> {
        match table.multi(name) {
            Ok(lists) => Ok(Self::Lists(lists)),
            Err(_) => Ok(Self::Range(table.index_over(name)?)),
        }
    }
}

/// The handles of all tables.
pub(crate) struct Tables<P: Policy, I> {
    pub(crate) warehouses: Warehouses<P, I>,
    pub(crate) districts: Districts<P, I>,
    pub(crate) customers: Customers<P, I>,
    pub(crate) by_name: Second<P, I>,
    pub(crate) history: History<P, I>,
    pub(crate) new_orders: NewOrders<P, I>,
    pub(crate) orders: Orders<P, I>,
    pub(crate) by_customer: Second<P, I>,
    pub(crate) lines: OrderLines<P, I>,
    pub(crate) items: Items<P, I>,
    pub(crate) stocks: Stocks<P, I>,
}

impl<P: Policy, I: Search<Form = u64>> Tables<P, I> {
    /// Creates the tables in a store without any.
    pub(crate) fn create(store: &Store<P>, structures: &Structures<I>) -> Result<(), Error> {
        let points = || structures.primary(false);
        let ranges = || structures.primary(true);
        let customers = Customers::<P, I>::schema().index(points());
        let orders = Orders::<P, I>::schema().index(points());
        for schema in [
            Warehouses::<P, I>::schema().index(points()),
            Districts::<P, I>::schema().index(points()),
            customers.index(structures.second("by_name", "by_name")),
            History::<P, I>::schema().index(ranges()),
            NewOrders::<P, I>::schema().index(ranges()),
            orders.index(structures.second("by_customer", "by_customer")),
            OrderLines::<P, I>::schema().index(ranges()),
            Items::<P, I>::schema().index(points()),
            Stocks::<P, I>::schema().index(points()),
        ] {
            store.create_table(schema)?;
        }
        Ok(())
    }

    /// The handles of the tables in a store.
    pub(crate) fn of(store: &Store<P>) -> Result<Self, Error> {
        let table = |name: &'static str| store.table(name).ok_or(Error::Foreign);
        let (customers, orders) = (table(Customers::<P, I>::NAME)?, table(Orders::<P, I>::NAME)?);
        Ok(Self {
            by_name: Second::of(&customers, "by_name")?,
            by_customer: Second::of(&orders, "by_customer")?,
            warehouses: Warehouses::of(table(Warehouses::<P, I>::NAME)?)?,
            districts: Districts::of(table(Districts::<P, I>::NAME)?)?,
            customers: Customers::of(customers)?,
            history: History::of(table(History::<P, I>::NAME)?)?,
            new_orders: NewOrders::of(table(NewOrders::<P, I>::NAME)?)?,
            orders: Orders::of(orders)?,
            lines: OrderLines::of(table(OrderLines::<P, I>::NAME)?)?,
            items: Items::of(table(Items::<P, I>::NAME)?)?,
            stocks: Stocks::of(table(Stocks::<P, I>::NAME)?)?,
        })
    }

    /// All tables, by name.
    pub(crate) fn all(&self) -> [&Table<P>; 9] {
        [
            &self.warehouses.table,
            &self.districts.table,
            &self.customers.table,
            &self.history.table,
            &self.new_orders.table,
            &self.orders.table,
            &self.lines.table,
            &self.items.table,
            &self.stocks.table,
        ]
    }
}

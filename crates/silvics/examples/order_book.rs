//! An order book: `cargo run --release -p silvics --example order_book`.
//!
//! Orders of a side are by price, then by when they came. The best bid is the last entry, the best ask the first one, and
//! both can be told, and taken, while other threads place and cancel orders.

use silvics::{Key, Map};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Where an order stands: in the order of its fields.
#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    price: u32,
    number: u64,
}

#[derive(Default)]
struct Book {
    /// How much is wanted, or offered.
    asks: Map<Place, u64>,
    /// Of equal prices the older order is served first, so that their numbers count down.
    bids: Map<Place, u64>,
    orders: AtomicU64,
}

impl Book {
    fn ask(&self, price: u32, amount: u64) -> Place {
        let number = self.orders.fetch_add(1, Ordering::Relaxed);
        let place = Place { price, number };
        self.asks.insert(place, amount);
        place
    }

    fn bid(&self, price: u32, amount: u64) -> Place {
        let number = u64::MAX - self.orders.fetch_add(1, Ordering::Relaxed);
        let place = Place { price, number };
        self.bids.insert(place, amount);
        place
    }

    fn best_ask(&self) -> Option<u32> {
        self.asks.first().map(|(place, _)| place.price)
    }

    fn best_bid(&self) -> Option<u32> {
        self.bids.last().map(|(place, _)| place.price)
    }

    /// Buys at the best ask, whatever it is; how much it was.
    fn take_ask(&self) -> u64 {
        self.asks.pop_first().map_or(0, |(_, amount)| *amount)
    }

    /// How much is offered up to a price.
    fn depth(&self, price: u32) -> u64 {
        let asks = self.asks.pin();
        asks.range(..Place { price: price + 1, number: 0 }).map(|(_, amount)| *amount).sum()
    }
}

fn main() {
    let book = Book::default();
    let (offered, taken) = (AtomicI64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2u32 {
            let (book, offered) = (&book, &offered);
            scope.spawn(move || {
                for round in 0..100_000u32 {
                    let amount = u64::from(round % 7 + 1);
                    let place = book.ask(1000 + (round * 31 + thread) % 50, amount);
                    offered.fetch_add(amount as i64, Ordering::Relaxed);
                    book.bid(999 - (round * 17 + thread) % 50, amount);
                    if round % 5 == 0
                        && let Some(amount) = book.asks.remove(place)
                    {
                        offered.fetch_sub(*amount as i64, Ordering::Relaxed); // cancelled in time
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50_000 {
                taken.fetch_add(book.take_ask(), Ordering::Relaxed);
                if let (Some(bid), Some(ask)) = (book.best_bid(), book.best_ask()) {
                    assert!(bid < ask);
                }
            }
        });
    });
    let left = book.depth(u32::MAX - 1);
    let (offered, taken) = (offered.load(Ordering::Relaxed) as u64, taken.load(Ordering::Relaxed));
    assert_eq!(taken + left, offered, "what was offered has been taken, or is there");
    println!("best bid {:?}, best ask {:?}", book.best_bid(), book.best_ask());
    println!("{offered} offered, {taken} taken, {} up to 1010", book.depth(1010));
}

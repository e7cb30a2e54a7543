//! An order book: `cargo run --release -p silvics --example order_book`.
//!
//! The orders of a side are sorted by price, then by their time. The best bid is the last entry,
//! and the best ask is the first one. A thread can read and take both while other threads place and
//! cancel orders.

use silvics::{Key, Map};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The position of an order: by price, then by number.
#[derive(Key, Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    price: u32,
    number: u64,
}

#[derive(Default)]
struct Book {
    /// The amounts that are offered.
    asks: Map<Place, u64>,
    /// The amounts that are wanted. Among equal prices the older order is served first, so the
    /// numbers of bids count down.
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

    /// Buys at the best ask, and returns the amount.
    fn take_ask(&self) -> u64 {
        self.asks.pop_first().map_or(0, |(_, amount)| *amount)
    }

    /// The amount that is offered up to a price.
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

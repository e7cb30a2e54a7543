//! Terminals, which draw transactions.

use super::draws::{Constants, percent, shuffle, uniform};
use super::inputs::{
    Customer, Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};
use super::{DISTRICTS, LINES, Scale, UNUSED_ITEM};
use crate::Share;
use crate::choice::label;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The shares of the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// 45 % new orders, 43 % payments, 4 % each of the others (clause 5.2.3).
    Standard,
    /// The ATC'18 study's: half new orders, half payments.
    Half,
}

/// The cards of a deck: as many as percent.
const CARDS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Card {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Mix {
    fn deck(self) -> [Card; CARDS] {
        use Card::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
        let shares = match self {
            Self::Standard => [45, 43, 4, 4, 4],
            Self::Half => [50, 50, 0, 0, 0],
        };
        let cards = [NewOrder, Payment, OrderStatus, Delivery, StockLevel];
        let mut deck = [NewOrder; CARDS];
        let mut at = 0;
        for (card, share) in cards.into_iter().zip(shares) {
            deck[at..at + share].fill(card);
            at += share;
        }
        deck
    }
}

/// A terminal: the transactions of one thread, in turn.
#[derive(Clone, Debug)]
pub struct Terminal {
    scale: Scale,
    warehouse: u32,
    constants: Constants,
    rng: Xoshiro256PlusPlus,
    deck: [Card; CARDS],
    /// The next card of the deck, which is shuffled when all were drawn.
    next: usize,
}

impl Scale {
    /// The terminal of a thread. Its home warehouse is that with the thread's number, or, if there
    /// are more threads than warehouses, one that several threads share.
    pub fn terminal(self, mix: Mix, seed: u64, share: Share) -> Terminal {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "tpcc"));
        for _ in 0..share.thread {
            rng.jump(); // by 2^128 words, so that the threads' sequences do not overlap
        }
        Terminal {
            scale: self,
            warehouse: (share.thread as u64 % u64::from(self.warehouses)) as u32 + 1,
            constants: Constants::of_run(seed),
            rng,
            deck: mix.deck(),
            next: CARDS,
        }
    }
}

impl Terminal {
    /// The home warehouse.
    pub fn warehouse(&self) -> u32 {
        self.warehouse
    }

    /// The same terminal in another round of a benchmark: it draws other transactions in each.
    #[must_use]
    pub fn in_round(mut self, round: usize) -> Self {
        for _ in 0..round {
            self.rng.long_jump(); // by 2^192 words, more than all threads use
        }
        self
    }

    /// Draws the next transaction.
    pub fn draw(&mut self) -> Transaction {
        if self.next == CARDS {
            shuffle(&mut self.rng, &mut self.deck);
            self.next = 0;
        }
        self.next += 1;
        match self.deck[self.next - 1] {
            Card::NewOrder => Transaction::NewOrder(self.new_order()),
            Card::Payment => Transaction::Payment(self.payment()),
            Card::OrderStatus => Transaction::OrderStatus(OrderStatus {
                warehouse: self.warehouse,
                district: self.district(),
                customer: self.customer(),
            }),
            Card::Delivery => {
                let carrier = uniform(&mut self.rng, 1..=10) as u8;
                Transaction::Delivery(Delivery { warehouse: self.warehouse, carrier })
            }
            Card::StockLevel => Transaction::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district(),
                threshold: uniform(&mut self.rng, 10..=20) as u8,
            }),
        }
    }

    fn district(&mut self) -> u8 {
        uniform(&mut self.rng, 1..=u32::from(DISTRICTS)) as u8
    }

    /// A customer by last name in 60 % of all cases (clauses 2.5.1.2 and 2.6.1.2).
    fn customer(&mut self) -> Customer {
        if percent(&mut self.rng, 60) {
            Customer::LastName(self.constants.last_name(&mut self.rng, self.scale))
        } else {
            Customer::Number(self.constants.customer(&mut self.rng, self.scale))
        }
    }

    /// Another warehouse, or this one if there is no other.
    fn remote(&mut self) -> u32 {
        let others = self.scale.warehouses - 1;
        if others == 0 {
            return self.warehouse;
        }
        let other = uniform(&mut self.rng, 1..=others);
        other + u32::from(other >= self.warehouse)
    }

    fn new_order(&mut self) -> NewOrder {
        let district = self.district();
        let customer = self.constants.customer(&mut self.rng, self.scale);
        let count = uniform(&mut self.rng, 5..=LINES as u32) as u8;
        let rolls_back = percent(&mut self.rng, 1);
        let mut lines = [Line::default(); LINES];
        for line in &mut lines[..usize::from(count)] {
            let item = self.constants.item(&mut self.rng, self.scale);
            let is_remote = percent(&mut self.rng, 1);
            let supplier = if is_remote { self.remote() } else { self.warehouse };
            let quantity = uniform(&mut self.rng, 1..=10) as u8;
            *line = Line { item, supplier, quantity };
        }
        if rolls_back {
            lines[usize::from(count) - 1].item = UNUSED_ITEM;
        }
        NewOrder { warehouse: self.warehouse, district, customer, lines, count }
    }

    fn payment(&mut self) -> Payment {
        let (warehouse, district) = (self.warehouse, self.district());
        let is_local = percent(&mut self.rng, 85);
        let (customer_warehouse, customer_district) =
            if is_local { (warehouse, district) } else { (self.remote(), self.district()) };
        let customer = self.customer();
        let cents = uniform(&mut self.rng, 100..=500_000);
        Payment { warehouse, district, customer_warehouse, customer_district, customer, cents }
    }
}

//! A service of many tasks over one map: `cargo run --release -p silvics --example tokio_service`.
//!
//! Calls of the map never wait for a task, so tasks make them in place. A borrowed value is used
//! before the next `await`, or is held across it under an owned pin. A scan over several `await`s
//! uses an owned range, which holds no pin between steps.

use silvics::Map;
use silvics::map::{Compute, Operation};
use std::sync::Arc;
use tokio::task::yield_now;

type Accounts = Map<String, u64>;

/// Takes the amount from an account, and returns false if the balance is too small.
fn withdraw(accounts: &Accounts, name: &str, amount: u64) -> bool {
    let take = |balance: Option<&u64>| match balance {
        Some(balance) if *balance >= amount => Operation::Insert(balance - amount),
        _ => Operation::Abort(()),
    };
    matches!(accounts.pin().compute(name, take), Compute::Updated { .. })
}

fn deposit(accounts: &Accounts, name: &str, amount: u64) {
    let add = |balance: Option<&u64>| {
        Operation::Insert::<_, ()>(balance.copied().unwrap_or_default() + amount)
    };
    accounts.pin().compute(name, add);
}

async fn transfers(accounts: Arc<Accounts>, task: usize) -> u64 {
    let mut made = 0;
    for round in 0..2000 {
        let (from, to) = (format!("{:03}", (task + round) % 100), format!("{:03}", round % 100));
        if withdraw(&accounts, &from, 7) {
            yield_now().await; // for example, a message to the other bank
            deposit(&accounts, &to, 7);
            made += 1;
        }
    }
    made
}

/// Clears a log and sends its lines, which stay valid under an owned pin.
async fn send(log: Arc<Map<u64, String>>) -> usize {
    let mut sent = 0;
    let view = log.pin_owned();
    let lines: Vec<_> = (0..100).filter_map(|line| view.get(line)).collect();
    log.clear();
    for text in lines {
        yield_now().await; // may continue on another thread
        sent += text.len(); // still valid
    }
    sent
}

/// Reads all balances while other tasks change them, and returns their number.
async fn audit(accounts: Arc<Accounts>) -> usize {
    let mut seen = 0;
    for (_name, _balance) in accounts.range_owned(..) {
        seen += 1;
        yield_now().await; // nothing is pinned here
    }
    seen
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let accounts: Arc<Accounts> = Arc::new((0..100).map(|n| (format!("{n:03}"), 1000)).collect());
    let log: Arc<Map<u64, String>> = Arc::new((0..100).map(|n| (n, format!("line {n}"))).collect());
    runtime.block_on(async {
        let tasks: Vec<_> =
            (0..50).map(|task| tokio::spawn(transfers(Arc::clone(&accounts), task))).collect();
        let (sender, auditor) =
            (tokio::spawn(send(Arc::clone(&log))), tokio::spawn(audit(Arc::clone(&accounts))));
        let mut made = 0;
        for task in tasks {
            made += task.await?;
        }
        let sum: u64 = accounts.pin().values().map(|balance| *balance).sum();
        assert_eq!(sum, 100_000, "nothing is lost");
        println!(
            "{made} transfers, {} accounts audited, {} bytes sent",
            auditor.await?,
            sender.await?
        );
        Ok(())
    })
}

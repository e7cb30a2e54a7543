//! Transactions over a `VersionedMap`: they read a snapshot, and write if nobody has written the
//! same accounts meanwhile.
//!
//! A transfer reads two accounts at a snapshot, decides, and commits two conditional writes in one
//! batch. If another transfer has changed an account since the snapshot, the batch fails as a
//! whole, and the transfer begins again. An auditor sums up all accounts at a snapshot while
//! transfers run: no sum has a transfer in part.

use silvics::VersionedMap;
use silvics::versions::BatchError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const ACCOUNTS: u64 = 100;
const DEPOSIT: i64 = 1000;

/// The reason why a transfer did not take place.
#[derive(Debug, PartialEq)]
enum Refused {
    NoAccount(u64),
    NotEnough { account: u64, balance: i64 },
}

/// Moves an amount between accounts. Returns the number of attempts.
fn transfer(
    bank: &VersionedMap<u64, i64>,
    from: u64,
    to: u64,
    amount: i64,
) -> Result<u32, Refused> {
    for attempt in 1.. {
        let now = bank.snapshot();
        let read = |account| now.get_version(account).ok_or(Refused::NoAccount(account));
        let ((from_version, &from_balance), (to_version, &to_balance)) = (read(from)?, read(to)?);
        if from_balance < amount {
            return Err(Refused::NotEnough { account: from, balance: from_balance });
        }
        let mut batch = bank.batch();
        batch.put_if_latest(from, Some(from_version), from_balance - amount);
        batch.put_if_latest(to, Some(to_version), to_balance + amount);
        match batch.commit() {
            Ok(_) => return Ok(attempt),
            Err(BatchError::Conflict { .. }) => {} // read again
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the attempts have no end")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bank: VersionedMap<u64, i64> = VersionedMap::new();
    for account in 0..ACCOUNTS {
        bank.put(account, DEPOSIT)?;
    }
    assert_eq!(transfer(&bank, 0, ACCOUNTS, 1), Err(Refused::NoAccount(ACCOUNTS)));
    let opened = bank.snapshot();

    let (attempts, audits, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let transfers = 2 * 5000;
    thread::scope(|scope| {
        let clerks: Vec<_> = (0..2u64)
            .map(|clerk| {
                let (bank, attempts) = (&bank, &attempts);
                scope.spawn(move || {
                    for n in 0..5000 {
                        // Few accounts take part, so that transfers conflict.
                        let (from, to) = (n % 5, (3 * n + clerk + 1) % 5);
                        if from == to {
                            continue;
                        }
                        if let Ok(tries) = transfer(bank, from, to, 1) {
                            attempts.fetch_add(u64::from(tries), Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let now = bank.snapshot();
                let sum: i64 = now.iter().map(|(_, balance)| *balance).sum();
                assert_eq!(sum, ACCOUNTS as i64 * DEPOSIT, "at version {}", now.number());
                audits.fetch_add(1, Ordering::Relaxed);
            }
        });
        for clerk in clerks {
            clerk.join().expect("a clerk ends");
        }
        done.store(true, Ordering::Relaxed);
    });

    // The first snapshot reads what was there when it began.
    assert!(opened.iter().all(|(_, balance)| *balance == DEPOSIT));
    let retained = bank.memory().retained;
    drop(opened);
    bank.prune(bank.now())?;
    bank.flush();
    println!(
        "at most {transfers} transfers in {} attempts, {} audits, version {}; {retained} bytes of \
         older versions while the first snapshot lived, {} now",
        attempts.into_inner(),
        audits.into_inner(),
        bank.now(),
        bank.memory().retained,
    );
    Ok(())
}

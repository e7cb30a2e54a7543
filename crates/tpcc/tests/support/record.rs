//! Recorded transactions of two threads.

use super::support::{NOW, SEED, Words};
use silvics_store::Policy;
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::Transaction;
use silvics_tpcc::serial::Recorder;
use silvics_tpcc::{Database, Failure};
use silvics_workload::Share;
use silvics_workload::tpcc::{Mix, Scale};

/// Runs transactions on two threads, and returns those that did not fail, as recorded.
pub(crate) fn record<P: Policy>(
    database: &Database<P, Words>,
    (scale, mix): (Scale, Mix),
    round: usize,
    each: usize,
    failed: fn(&Failure),
) -> Vec<Transaction> {
    let clock = Clock::new();
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| {
            let clock = &clock;
            scope.spawn(move || {
                let terminal = scale.terminal(mix, SEED, Share { thread, threads: 2 });
                let (mut terminal, mut recorder) =
                    (terminal.in_round(round), Recorder::new(clock, thread));
                for number in 0..each {
                    let now = NOW + (round * each + number) as u64;
                    if let Err(failure) = recorder.run(database, &terminal.draw(), now) {
                        failed(&failure);
                    }
                }
                recorder.committed()
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

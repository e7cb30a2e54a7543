//! Lookups of one thread while another one updates the table.

use crate::contenders::{Contender, Ours, Rotonda, sum_of_batches};
use crate::tables::{Family, draw};
use crate::{ROUNDS, median, own_time};
use ipnet::IpNet;
use silvics::Lpm;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::hint::black_box;
use std::thread::scope;
use std::time::{Duration, Instant};

/// The updates of a second.
const RATE: u64 = 100_000;
const BURST: u64 = 10;

/// Calls `update` at the rate until `done`. Returns the number of calls.
fn write(done: &AtomicBool, mut update: impl FnMut(u64)) -> u64 {
    let (start, mut made) = (Instant::now(), 0);
    while !done.load(Ordering::Relaxed) {
        let due = start.elapsed().as_nanos() as u64 * RATE / 1_000_000_000;
        if made + BURST > due {
            std::thread::sleep(Duration::from_micros(20));
            continue;
        }
        for _ in 0..BURST {
            update(made);
            made += 1;
        }
    }
    made
}

/// The nanoseconds of the reader for a lookup, and the updates of a second meanwhile.
fn run(
    writes: bool,
    count: usize,
    lookups: impl Fn() -> u64,
    update: impl FnMut(u64) + Send,
) -> (f64, f64) {
    let (done, made) = (AtomicBool::new(!writes), AtomicU64::new(0));
    let start = Instant::now();
    let mut nanoseconds = 0.0;
    scope(|s| {
        s.spawn(|| made.store(write(&done, update), Ordering::Relaxed));
        if writes {
            std::thread::sleep(Duration::from_millis(5));
        }
        let start = own_time();
        black_box(lookups());
        nanoseconds = (own_time() - start).as_nanos() as f64 / count as f64;
        done.store(true, Ordering::Relaxed);
    });
    (nanoseconds, made.into_inner() as f64 / start.elapsed().as_secs_f64())
}

/// An update of our table: of four, two give a prefix another number, one removes it, and one puts
/// it back.
fn update(table: &Lpm<u32>, nets: &[(IpNet, u32)], number: u64) {
    let at = (number / 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize % nets.len();
    let (net, value) = nets[at];
    if number % 4 == 1 {
        table.remove(net).expect("there is memory");
    } else {
        table.insert(net, value ^ (number % 4 == 0) as u32).expect("there is memory");
    }
}

pub fn measure<F: Family>(nets: &[(IpNet, u32)]) {
    let addresses: Vec<F> = draw(nets, 1 << 20, 7).into_iter().map(F::of).collect();
    let mut ours = Ours(Lpm::new());
    let mut rotonda = Rotonda::default();
    for (net, value) in nets {
        Contender::<F>::insert(&mut ours, *net, *value);
        Contender::<F>::insert(&mut rotonda, *net, *value);
    }
    let names = ["silvics", "silvics, get_many of 64", "rotonda-store"];
    let mut figures: [[Vec<f64>; 2]; 3] = Default::default();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..2 * ROUNDS {
        let order: [usize; 6] =
            if round % 2 == 0 { [0, 1, 2, 3, 4, 5] } else { [5, 4, 3, 2, 1, 0] };
        for turn in order {
            let (who, writes) = (turn / 2, turn % 2 == 1);
            let list = &addresses[..];
            let ours_update = |number| update(&ours.0, nets, number);
            let (nanoseconds, rate) = match who {
                0 => run(writes, list.len(), || ours.sum(list), ours_update),
                1 => run(writes, list.len(), || sum_of_batches(&ours.0, list), ours_update),
                _ => {
                    let put = |number: u64| {
                        let at = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize % nets.len();
                        rotonda.put(nets[at].0, nets[at].1 ^ (number & 1) as u32);
                    };
                    let list = &list[..list.len() / 32];
                    run(writes, list.len(), || rotonda.sum(list), put)
                }
            };
            figures[who][usize::from(writes)].push(nanoseconds);
            if writes {
                rates[who].push(rate);
            }
        }
    }
    println!("\n{}: lookups beside a writer", F::NAME);
    println!("| table | ns a lookup, no writer | with the writer | kept | updates/s |");
    println!("|---|---|---|---|---|");
    for who in 0..3 {
        let ((quiet, ..), (busy, ..)) = (median(&figures[who][0]), median(&figures[who][1]));
        let rate = median(&rates[who]).0;
        println!("| {} | {quiet:.1} | {busy:.1} | {:.2} | {rate:.0} |", names[who], quiet / busy);
    }
}

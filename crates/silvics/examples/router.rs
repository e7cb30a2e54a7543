//! A router: one thread forwards packets while another applies updates of routes.
//!
//! The forwarding thread looks up packets in batches. Each lookup sees the table as it was at one
//! moment: a route that is withdrawn is replaced by the next shorter one at once, and no packet is
//! dropped in between.
//!
//! ```sh
//! cargo run --release -p silvics --features lpm --example router
//! ```

use ipnet::{IpNet, Ipv4Net};
use silvics::Lpm;
use silvics::lpm::{Match, parse_prefix};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::error::Error;
use std::net::Ipv4Addr;
use std::thread::scope;
use std::time::Instant;

/// The next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hop {
    Upstream,
    Customer(u16),
}

/// Numbers without a pattern, by which packets and updates are drawn.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 31
    }
}

/// The network of a customer: one of 65 536 of length 24, inside 10.0.0.0/8.
fn network(customer: u16) -> IpNet {
    let address = Ipv4Addr::from(0x0A00_0000 | u32::from(customer) << 8);
    IpNet::V4(Ipv4Net::new_assert(address, 24))
}

/// The counts of the forwarding thread.
#[derive(Default)]
struct Forwarded {
    upstream: u64,
    customers: u64,
    dropped: u64,
}

/// Forwards packets in batches of 64 until `done`.
fn forward(routes: &Lpm<Hop>, done: &AtomicBool) -> Forwarded {
    let (mut draw, mut counts) = (Draw(1), Forwarded::default());
    let mut view = routes.pin();
    while !done.load(Ordering::Relaxed) {
        let packets: [Ipv4Addr; 64] =
            std::array::from_fn(|_| Ipv4Addr::from(0x0A00_0000 | draw.next() as u32 >> 8));
        let mut found: [Option<Match<'_, Hop>>; 64] = [const { None }; 64];
        view.get_many(&packets, &mut found);
        for (packet, hop) in packets.iter().zip(&found) {
            match hop.as_deref() {
                Some(Hop::Upstream) => counts.upstream += 1,
                Some(Hop::Customer(customer)) => {
                    // The route is that of the packet's own network.
                    assert!(network(*customer).contains(&std::net::IpAddr::from(*packet)));
                    counts.customers += 1;
                }
                None => counts.dropped += 1,
            }
        }
        view.repin(); // so that replaced nodes can be freed
    }
    counts
}

fn main() -> Result<(), Box<dyn Error>> {
    // Prefixes of a configuration file are checked: `10.0.0.1/8` would be refused.
    let all = parse_prefix("10.0.0.0/8")?;
    let routes: Lpm<Hop> = Lpm::new();
    routes.insert(all, Hop::Upstream)?;
    for customer in (0..u16::MAX).step_by(2) {
        routes.insert(network(customer), Hop::Customer(customer))?;
    }
    println!("{} routes in {} KiB", routes.len(), routes.bytes() >> 10);

    let done = AtomicBool::new(false);
    let updates = if cfg!(debug_assertions) { 20_000 } else { 500_000 };
    let start = Instant::now();
    let counts = scope(|s| -> Result<Forwarded, Box<dyn Error>> {
        let forwarding = s.spawn(|| forward(&routes, &done));
        let mut draw = Draw(2);
        let mut update = || -> Result<(), Box<dyn Error>> {
            for _ in 0..updates {
                let customer = draw.next() as u16;
                if draw.next().is_multiple_of(2) {
                    routes.remove(network(customer))?;
                } else {
                    routes.insert(network(customer), Hop::Customer(customer))?;
                }
            }
            Ok(())
        };
        let updated = update();
        done.store(true, Ordering::Relaxed);
        updated?;
        Ok(forwarding.join().expect("the forwarding thread does not panic"))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let packets = counts.upstream + counts.customers + counts.dropped;
    println!(
        "{updates} updates beside {packets} packets in {seconds:.2} s: {:.1} M packets/s",
        packets as f64 / seconds / 1e6
    );
    println!(
        "{} to customers, {} upstream, {} dropped",
        counts.customers, counts.upstream, counts.dropped
    );
    assert_eq!(counts.dropped, 0, "there is a route for each packet at every moment");

    let view = routes.pin();
    let around = view.covering(network(0)).count();
    let inside = view.covered(parse_prefix("10.0.0.0/16")?).count();
    println!("{around} routes contain {}, and {inside} lie in 10.0.0.0/16", network(0));
    Ok(())
}

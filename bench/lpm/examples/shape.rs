//! Prints the nodes and the memory of `silvics::Lpm` with real tables.
//!
//! ```sh
//! cargo run --release --example shape
//! ```

#[allow(dead_code)] // an example draws no addresses
#[path = "../src/tables.rs"]
mod tables;

use silvics::Lpm;
use std::error::Error;
use tables::{Source, load};

fn main() -> Result<(), Box<dyn Error>> {
    for source in [Source::Bart, Source::Iptrie] {
        let entries = load(source)?;
        for is_v4 in [true, false] {
            let mut table: Lpm<u32> = Lpm::new();
            let of_family = entries.iter().filter(|(net, _)| net.addr().is_ipv4() == is_v4);
            for (net, value) in of_family {
                table.insert(*net, *value)?;
            }
            let prefixes = table.len() as f64;
            let before = table.bytes();
            table.settle();
            table.shrink();
            let memory = table.memory();
            println!(
                "{}, {}: {prefixes} prefixes, {:?}; bytes a prefix: {:.1} held, {:.1} after \
                 `shrink`, {:.1} in nodes",
                source.name(),
                if is_v4 { "IPv4" } else { "IPv6" },
                table.reachable()?,
                before as f64 / prefixes,
                memory.bytes as f64 / prefixes,
                memory.index as f64 / prefixes,
            );
        }
    }
    Ok(())
}

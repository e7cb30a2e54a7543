#[path = "../src/tables.rs"]
#[allow(dead_code)]
mod tables;
use silvics::Lpm;
fn main() {
    for source in [tables::Source::Bart, tables::Source::Iptrie] {
        let all = tables::load(source).unwrap();
        println!("{:?}: first {:?}", source, &all[..2]);
        for four in [true, false] {
            let mut t: Lpm<u32> = Lpm::new();
            let mut n = 0;
            let start = std::time::Instant::now();
            for (net, v) in all.iter().filter(|(n, _)| n.addr().is_ipv4() == four) { t.insert(*net, *v).unwrap(); n += 1; }
            let s = start.elapsed().as_secs_f64();
            let m = t.memory();
            println!("v4 {four}: {n} prefixes, {:.2} us each, held {:.1}, live {:.1} B/prefix; {:?}", s * 1e6 / n as f64, m.bytes as f64 / n as f64, m.index as f64 / n as f64, t.reachable().unwrap());
            t.settle();
            t.shrink();
            let m = t.memory();
            println!("   after shrink held {:.1}, live {:.1} B/prefix, check {:?}", m.bytes as f64 / n as f64, m.index as f64 / n as f64, t.check());
        }
    }
}

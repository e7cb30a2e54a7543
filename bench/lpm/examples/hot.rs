#[path = "../src/tables.rs"]
#[allow(dead_code)]
mod tables;
use silvics::{Lpm, lpm::Match};
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::Family;
fn run<F: Family>(what: &str) {
    let all: Vec<_> = tables::load(tables::Source::Bart).unwrap().into_iter().filter(|(n, _)| F::has(n)).collect();
    let t: Lpm<u32> = Lpm::new();
    for (net, v) in &all { t.insert(*net, *v).unwrap(); }
    let a: Vec<F> = tables::draw(&all, 1 << 20, 7).into_iter().map(F::of).collect();
    let rounds = std::env::args().nth(2).map_or(15, |r| r.parse().unwrap());
    let (mut one, mut many) = (vec![], vec![]);
    for _ in 0..rounds {
        let mut view = t.pin();
        let mut s = 0u64;
        let st = std::time::Instant::now();
        if what != "many" { for some in a.chunks(64) { for x in some { if let Some((_, v)) = view.lookup(*x) { s += *v as u64; } } view.repin(); } }
        one.push(st.elapsed().as_secs_f64() * 1e9 / a.len() as f64);
        let mut s2 = 0u64;
        let st = std::time::Instant::now();
        if what != "one" { for some in a.chunks(64) { 
            let mut f: [Option<Match<'_, u32>>; 64] = [const { None }; 64];
            view.get_many(some, &mut f);
            for m in f.iter().flatten() { s2 += **m as u64; }
            drop(f);
            view.repin(); } }
        many.push(st.elapsed().as_secs_f64() * 1e9 / a.len() as f64);
        std::hint::black_box((s, s2));
    }
    one.sort_by(f64::total_cmp); many.sort_by(f64::total_cmp);
    println!("{}: one {:.1} (min {:.1}), many {:.1} (min {:.1})", F::NAME, one[rounds / 2], one[0], many[rounds / 2], many[0]);
}
fn main() { let w = std::env::args().nth(1).unwrap_or("both".into()); if w != "v6" { run::<Ipv4Addr>(&w); } run::<Ipv6Addr>(&w); }

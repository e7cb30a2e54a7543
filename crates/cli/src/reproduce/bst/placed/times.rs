//! Evidence of the clock.

use super::clock::Times;
use super::heap::Places;
use crate::reproduce::evidence::{Evidence, Level};
use crate::reproduce::turns::median;

/// The source's claims on the times of a tree, mixed and segregated.
#[derive(Clone, Copy)]
pub struct Claims {
    pub index: &'static str,
    pub all: &'static str,
    /// On the database's own time, of which the source expects no gain.
    pub database: Option<&'static str>,
}

/// The lines on the times of a tree.
pub fn of_tree(tree: &str, claims: Claims, [mixed, segregated]: [&Times; 2]) -> Vec<Evidence> {
    let faster = |what: &str, claimed: &str, part: fn(&Times) -> &Vec<f64>| {
        let what = format!("{tree}: {what}, mixed / segregated");
        let us = |times| median(part(times)) / 1000.0;
        let figures = format!("({:.2} → {:.2} µs of a transaction)", us(mixed), us(segregated));
        Evidence::faster(what, claimed, mixed.over(segregated, part)).with(&figures)
    };
    vec![
        faster("time in the index", claims.index, |times| &times.index),
        faster("time of transactions", claims.all, |times| &times.all),
        database(tree, claims.database, [mixed, segregated]),
    ]
}

/// A line on the database's own time, of which the source says little.
fn database(tree: &str, claimed: Option<&str>, [mixed, segregated]: [&Times; 2]) -> Evidence {
    let ratio = mixed.over(segregated, |times| &times.database);
    let us = |times: &Times| median(&times.database) / 1000.0;
    let found = format!(
        "{:.2} ({:.2} – {:.2}) ({:.2} → {:.2} µs; {:.4} → {:.4} aborts of a transaction)",
        ratio.median,
        ratio.low,
        ratio.high,
        us(mixed),
        us(segregated),
        mixed.aborts,
        segregated.aborts
    );
    let what = format!("{tree}: time in the database, mixed / segregated");
    let line = Evidence::noted(Level::Clock, what, found);
    let claimed = claimed.map(|claimed| format!("(the source: {claimed})"));
    Evidence { expected: claimed.unwrap_or_default(), ..line }
}

/// The times of trees in their indexes, in both places.
#[derive(Default)]
pub struct Order([Vec<(&'static str, f64)>; 2]);

impl Order {
    /// Adds a tree.
    pub fn add(&mut self, tree: &'static str, times: [&Times; 2]) {
        for (trees, times) in self.0.iter_mut().zip(times) {
            trees.push((tree, times.in_index()));
        }
    }

    /// A line on each place.
    pub fn lines(self) -> impl Iterator<Item = Evidence> {
        [Places::Mixed, Places::Segregated].into_iter().zip(self.0).map(|(places, trees)| {
            let what = format!("order of the trees by their index time, {}", places.name());
            Evidence::noted(Level::Clock, what, ordered(trees))
        })
    }
}

/// The names of trees with their times, the fastest first.
fn ordered(mut trees: Vec<(&str, f64)>) -> String {
    trees.sort_by(|a, b| a.1.total_cmp(&b.1));
    let name = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let of = |(tree, ns): &(&str, f64)| format!("{} {:.1} µs", name(tree), ns / 1000.0);
    trees.iter().map(of).collect::<Vec<_>>().join(", ")
}

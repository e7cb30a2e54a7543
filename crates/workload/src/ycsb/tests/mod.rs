//! Properties become settings, and settings become operations of the right shares.

use super::*;
use crate::Share;

mod operations;
mod requests;
mod settings;

fn workload(text: &str) -> Workload {
    let mut properties = Properties::new();
    properties.add_text("text", text).unwrap();
    Workload::from_properties(&properties).unwrap()
}

/// A workload of 1000 records with reads alone, changed by `more`.
fn reads(more: &str) -> Workload {
    workload(&format!("recordcount=1000\nreadproportion=1\nupdateproportion=0\n{more}"))
}

fn refused(text: &str) -> String {
    let mut properties = Properties::new();
    properties.add_text("file", text).unwrap();
    Workload::from_properties(&properties).unwrap_err().to_string()
}

const OPS: usize = 200_000;

/// The first operations of a thread that runs alone.
fn ops(workload: &Workload, count: usize) -> Vec<Op> {
    let inserts = workload.inserts();
    let mut ops = vec![Op::Insert; count];
    workload.stream(7, Share::ALONE, &inserts).fill_ops(&mut ops);
    ops
}

fn records(workload: &Workload, count: usize) -> Vec<u64> {
    ops(workload, count).into_iter().filter_map(Op::record).collect()
}

/// Checks a number of successes in a number of attempts against their probability.
#[track_caller]
fn near(found: usize, of: usize, probability: f64) {
    let expected = of as f64 * probability;
    let tolerance = 5.0 * (expected * (1.0 - probability)).sqrt() + 1e-9;
    assert!((found as f64 - expected).abs() <= tolerance, "{found} of {of}, expected {expected}");
}

fn count<T>(all: &[T], is: impl Fn(&T) -> bool) -> usize {
    all.iter().filter(|one| is(one)).count()
}

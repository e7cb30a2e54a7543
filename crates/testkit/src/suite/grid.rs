//! Keys with fixed roles for scans among writes. In every four neighbours, one key is present
//! throughout, two come and go, and one is never present.

use crate::crew::together;
use crate::failure::ensure;
use crate::keys::{belongs, lend, nth, show, tagged};
use crate::rng::{Rng, scattered};
use crate::{Failure, Outcome, Subject, size};
use silvics::{Guard, OwnedKey, PinIndex};
use std::collections::BTreeMap;

/// The keys numbered below a length, and their roles.
#[derive(Debug)]
pub(crate) struct Grid<I: Subject + ?Sized> {
    numbers: BTreeMap<OwnedKey<I>, u64>,
    pub(crate) len: u64,
}

impl<I: Subject + ?Sized> Grid<I> {
    /// Makes `len` keys, and inserts those that stay into the index.
    pub(crate) fn plant(index: &I, len: u64) -> Result<Self, Failure> {
        let numbers: BTreeMap<_, _> = (0..len).map(|n| (nth::<I>(n), n)).collect();
        let padded = len.next_power_of_two();
        let order = (0..padded).map(|at| scattered(at, padded));
        for n in order.filter(|n| *n < len && Self::stays(*n)) {
            index.pin().insert(lend::<I>(&nth::<I>(n)), tagged(n, 0))?;
        }
        Ok(Self { numbers, len })
    }

    /// Whether key `n` is present throughout.
    pub(crate) fn stays(n: u64) -> bool {
        n.is_multiple_of(4)
    }

    /// Whether key `n` may be present.
    pub(crate) fn may_appear(n: u64) -> bool {
        n % 4 != 3
    }

    /// Makes a few random writes near each other: every verb inserts and removes the keys that come
    /// and go, and gives new values to keys that stay.
    pub(crate) fn write(&self, index: &I, rng: &mut Rng, guard: &Guard) -> Outcome {
        let first = rng.below(self.len);
        for n in (first..self.len.min(first + 6)).filter(|n| Self::may_appear(*n)) {
            let owned = nth::<I>(n);
            let key = lend::<I>(&owned);
            let value = tagged(n, rng.word());
            match rng.below(4) {
                0 => {
                    index.insert(key, value, guard)?;
                }
                1 => {
                    let present = index.get(key, guard);
                    let to = (Self::stays(n) || present.is_none()).then_some(value);
                    // Another writer may come first: either outcome is fine.
                    let _ = index.compare_exchange(key, present, to, guard);
                }
                _ if Self::stays(n) => {}
                2 => {
                    let _ = index.try_insert(key, value, guard);
                }
                _ => {
                    index.remove(key, guard)?;
                }
            }
        }
        Ok(())
    }

    /// The number of a key that a scan saw with `value`. Fails if no scan may see this.
    pub(crate) fn seen(&self, key: &OwnedKey<I>, value: u64) -> Result<u64, Failure> {
        let Some(&n) = self.numbers.get(key) else {
            return Err(Failure::new(format!("unknown key {} seen", show::<I>(key))));
        };
        ensure!(Self::may_appear(n), "key {n} seen, which is never present");
        ensure!(belongs(n, value), "key {n} seen with another key's value {value:#x}");
        Ok(n)
    }

    /// Fails if a key that stays lies strictly between two neighbours of a scan.
    pub(crate) fn nothing_skipped(low: Option<u64>, high: Option<u64>, len: u64) -> Outcome {
        let from = low.map_or(0, |low| low + 1);
        let to = high.unwrap_or(len);
        if let Some(missed) = (from..to).find(|n| Self::stays(*n)) {
            return Err(Failure::new(format!(
                "key {missed} was present throughout and not seen between {low:?} and {high:?}"
            )));
        }
        Ok(())
    }
}

/// Runs `read` while two threads write to the grid, each under guards of its own.
pub(crate) fn among_writers<I: Subject + ?Sized>(
    index: &I,
    grid: &Grid<I>,
    read: impl Fn(&mut Rng) -> Outcome + Sync,
) -> Outcome {
    together(3, |thread, crew| {
        let mut rng = Rng::new(size::seed(), thread);
        if thread == 0 {
            read(&mut rng)?;
            crew.stop();
            return Ok(());
        }
        while !crew.stopped() {
            grid.write(index, &mut rng, &index.domain().pin())?;
        }
        Ok(())
    })?;
    Ok(())
}

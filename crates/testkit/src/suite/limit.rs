//! Property: memory may run out in the middle of any operation. The operation then reports the
//! failure and the index is unchanged. Lookups and removals still work, and the memory that
//! removals free can be used again.

use crate::crew::together;
use crate::failure::ensure;
use crate::key_sum::{Balance, settle_accounts};
use crate::keys::{TestKey, belongs, lend, nth, tagged};
use crate::make::Make;
use crate::memory::settle;
use crate::reference::same_content;
use crate::rng::Rng;
use crate::{Failure, Outcome, Subject, size};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::{AllocError, Options, OwnedKey, Pages, PinIndex};
use std::collections::BTreeMap;

/// Runs all verbs under limits from a few bytes above an empty index to some MiB, so that memory
/// runs out at every allocation of an operation. The limits rise in steps of a word, for placements
/// that ask the system for each object, and in steps of 16 KiB, for those that ask for slabs.
pub fn limits<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    let base = make(&Options::default())?.bytes();
    let words = (0..size::pick(80, 12, 12)).map(|step| (step * 8, Pages::Small));
    let slabs = (1..size::pick(40, 6, 2)).map(|step| (step * (16 << 10), Pages::Small));
    let large = [((3 << 20) / 2, Pages::Small), (5 << 20, Pages::Thp)];
    let large = &large[..size::pick(2, 2, 0)];
    for (room, pages) in words.chain(slabs).chain(large.iter().copied()) {
        let options = Options { memory_limit: Some(base + room), pages, ..Options::default() };
        AtLimit::run(make, &options)
            .map_err(|f| f.at(format_args!("limit {} bytes, {pages}", base + room)))?;
    }
    Ok(())
}

/// An index with little room and its model.
struct AtLimit<I: Subject + ?Sized> {
    index: Box<I>,
    model: BTreeMap<OwnedKey<I>, u64>,
    limit: usize,
}

impl<I: Subject + ?Sized> AtLimit<I> {
    fn run(make: Make<I>, options: &Options) -> Outcome {
        let Ok(index) = make(options) else {
            return Ok(()); // no room for an empty one: reported as an error value
        };
        let mut this = Self {
            index,
            model: BTreeMap::new(),
            limit: options.memory_limit.unwrap_or(usize::MAX),
        };
        this.fill()?;
        same_content(&mut *this.index, &this.model).map_err(|f| f.at("filled"))?;
        this.verbs()?;
        same_content(&mut *this.index, &this.model).map_err(|f| f.at("written at the limit"))?;
        this.batches()?;
        same_content(&mut *this.index, &this.model).map_err(|f| f.at("written in batches"))?;
        this.remove_and_refill()?;
        same_content(&mut *this.index, &this.model).map_err(|f| f.at("refilled"))
    }

    /// Inserts by each verb in turn until each was refused many times.
    fn fill(&mut self) -> Outcome {
        let mut refused = [0; 3];
        let mut n = 0u64;
        while refused.iter().any(|&times| times < 12) {
            ensure!(n < 2_000_000, "the limit is never met");
            let verb = (n % 3) as usize;
            // The numbers are scattered, and now and then a key is large.
            let scattered = n.reverse_bits() >> 24;
            let key = match n % 97 {
                5 => <I::Key as TestKey>::bulky(scattered),
                _ => nth::<I>(scattered),
            };
            if self.add(verb, &key, n)?.is_err() {
                refused[verb] += 1;
            }
            n += 1;
        }
        Ok(())
    }

    /// Adds an absent key by one of three verbs, and applies the outcome to the model.
    fn add(
        &mut self,
        verb: usize,
        key: &OwnedKey<I>,
        value: u64,
    ) -> Result<Result<(), AllocError>, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Err(Failure::new(format!("verb {verb} on an absent key: {error}")))
        };
        let lent = lend::<I>(key);
        let view = self.index.pin();
        let result = match verb {
            0 => match view.try_insert(lent, value) {
                Ok(()) => Ok(()),
                Err(TryInsertError::Alloc(error)) => Err(error),
                Err(error) => return wrong(&error),
            },
            1 => match view.insert(lent, value) {
                Ok(None) => Ok(()),
                Ok(Some(old)) => return wrong(&format!("replaced {old}")),
                Err(error) => Err(error),
            },
            _ => match view.compare_exchange(lent, None, Some(value)) {
                Ok(()) => Ok(()),
                Err(CompareExchangeError::Alloc(error)) => Err(error),
                Err(error) => return wrong(&error),
            },
        };
        let wanted = result.is_ok().then_some(value);
        let found = view.get(lent);
        ensure!(found == wanted, "verb {verb} returns {result:?}, and then get returns {found:?}");
        drop(view);
        self.within_limit()?;
        if result.is_ok() {
            self.model.insert(key.clone(), value);
        }
        Ok(result)
    }

    fn within_limit(&self) -> Outcome {
        let (bytes, limit) = (self.index.bytes(), self.limit);
        ensure!(bytes <= limit, "{bytes} bytes are held, {limit} allowed");
        Ok(())
    }

    /// Up to a hundred of the present keys, spread over all of them.
    fn some_keys(&self) -> Vec<OwnedKey<I>> {
        let stride = self.model.len() / 100 + 1;
        self.model.keys().step_by(stride).cloned().collect()
    }

    /// Calls every verb on present keys: each call succeeds, or is refused and changes nothing.
    fn verbs(&mut self) -> Outcome {
        for (at, key) in self.some_keys().iter().enumerate() {
            let old = self.model[key];
            let new = old ^ 1;
            let lent = lend::<I>(key);
            let view = self.index.pin();
            let after = match at % 5 {
                0 => match view.insert(lent, new) {
                    Ok(Some(found)) if found == old => Some(new),
                    Err(_) => Some(old),
                    other => return Err(Failure::new(format!("insert returns {other:?}"))),
                },
                1 => match view.compare_exchange(lent, Some(old), Some(new)) {
                    Ok(()) => Some(new),
                    Err(CompareExchangeError::Alloc(_)) => Some(old),
                    other => return Err(Failure::new(format!("compare_exchange: {other:?}"))),
                },
                2 => match view.try_insert(lent, new) {
                    Err(TryInsertError::Occupied(found)) if found == old => Some(old),
                    Err(TryInsertError::Alloc(_)) => Some(old),
                    other => return Err(Failure::new(format!("try_insert returns {other:?}"))),
                },
                3 => match view.compare_exchange(lent, Some(new), None) {
                    Err(CompareExchangeError::Mismatch(found)) if found == Some(old) => Some(old),
                    Err(CompareExchangeError::Alloc(_)) => Some(old),
                    other => return Err(Failure::new(format!("compare_exchange: {other:?}"))),
                },
                _ => match view.compare_exchange(lent, Some(old), None) {
                    Ok(()) => None,
                    Err(CompareExchangeError::Alloc(_)) => Some(old),
                    other => return Err(Failure::new(format!("compare_exchange: {other:?}"))),
                },
            };
            let found = view.get(lent);
            ensure!(found == after, "verb {at} % 5, and then get returns {found:?}, not {after:?}");
            drop(view);
            match after {
                Some(value) => self.model.insert(key.clone(), value),
                None => self.model.remove(key),
            };
            self.within_limit()?;
        }
        Ok(())
    }

    /// Inserts batches of absent and present keys until some were refused in the middle. The
    /// entries that a batch reports as done are in the index, and no others.
    fn batches(&mut self) -> Outcome {
        let present = self.some_keys();
        for round in 0..8u64 {
            let absent = (0..20).map(|at| nth::<I>(1 << 50 | round << 8 | at));
            let keys = absent.zip(present.iter().cycle().skip(round as usize * 3));
            let keys: Vec<_> = keys.flat_map(|(new, old)| [new, old.clone()]).collect();
            let lent: Vec<_> =
                keys.iter().zip(0..).map(|(key, at)| (lend::<I>(key), round << 8 | at)).collect();
            let done = match self.index.pin().insert_many(&lent, &mut []) {
                Ok(_) => lent.len(),
                Err(refused) => refused.done,
            };
            ensure!(done <= lent.len(), "of {} entries {done} are done", lent.len());
            let values = lent.iter().map(|(_, value)| *value);
            self.model.extend(keys.iter().cloned().zip(values).take(done));
            self.within_limit()?;
        }
        Ok(())
    }

    /// Removes half of the entries, and fails unless many of them can be added again. Neighbours go
    /// together: an object of several entries may need memory to become smaller, and there is none.
    /// If the index has objects of many sizes, its slabs of one size cannot take those of another:
    /// what is freed can be lost among them if it is less than what was lost when it was full.
    fn remove_and_refill(&mut self) -> Outcome {
        let keys = self.model.keys().enumerate().filter(|(at, _)| at / 8 % 2 == 0);
        let keys: Vec<_> = keys.map(|(_, key)| key.clone()).collect();
        let mut removed = Vec::new();
        let full = live_bytes(&*self.index);
        // The bytes that a full index has in slabs and cannot use, as they are of other sizes.
        let unusable = self.index.bytes().saturating_sub(full);
        for key in keys {
            let old = self.model[&key];
            // Some structures allocate to remove, and may have to wait until garbage is freed.
            for _ in 0..4 {
                match self.index.pin().remove(lend::<I>(&key)) {
                    Ok(Some(found)) if found == old => {
                        self.model.remove(&key);
                        removed.push(key);
                        break;
                    }
                    Err(_) => {}
                    other => return Err(Failure::new(format!("remove returns {other:?}"))),
                }
            }
        }
        settle(&*self.index);
        let freed = full.saturating_sub(live_bytes(&*self.index));
        let wanted = removed.len() / 4;
        let mut added = 0;
        for (at, key) in removed.iter().enumerate() {
            // A refused writer has sealed its garbage, which is free some pins later.
            for _ in 0..4 {
                if self.add(at % 3, key, at as u64)?.is_ok() {
                    added += 1;
                    break;
                }
            }
        }
        let few = crate::memory::extra_slots(&*self.index, 1);
        ensure!(
            self.model.is_empty() || !removed.is_empty(),
            "nothing can be removed at the limit"
        );
        ensure!(
            added >= wanted || removed.len() < 2 * few || freed < unusable,
            "{} entries were removed, and only {added} can be added again; {freed} bytes were freed, \
             and a full index cannot use {unusable}",
            removed.len()
        );
        Ok(())
    }
}

/// The bytes of all objects in pools; all bytes of an index without pools.
fn live_bytes<I: Subject + ?Sized>(index: &I) -> usize {
    match &index.pool_stats()[..] {
        [] => index.bytes(),
        pools => pools.iter().map(|pool| pool.live_bytes).sum(),
    }
}

/// Threads insert and remove at the limit, where some of their calls are refused. The key-sum rule
/// holds.
pub fn limit_among_threads<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    const THREADS: usize = 2;
    let base = make(&Options::default())?.bytes();
    let operations = size::pick(600_000, 40_000, 200);
    for room in [2 << 10, 40 << 10, 3 << 19] {
        let options =
            Options { memory_limit: Some(base + room), pages: Pages::Small, ..Options::default() };
        let Ok(mut index) = make(&options) else {
            continue;
        };
        let balances = together(THREADS, |thread, _| {
            let mut rng = Rng::new(size::seed(), thread);
            let mut balance = Balance::new();
            for _ in 0..operations / THREADS {
                write_or_be_refused(&*index, &mut rng, 60_000, &mut balance)?;
            }
            Ok(balance)
        })?;
        settle_accounts(make, &mut *index, balances)
            .map_err(|f| f.at(format_args!("{room} bytes of room")))?;
    }
    Ok(())
}

/// Writes once to a key below `keys`, and enters the change in `balance` if the write succeeds.
pub(crate) fn write_or_be_refused<I: Subject + ?Sized>(
    index: &I,
    rng: &mut Rng,
    keys: u64,
    balance: &mut Balance,
) -> Outcome {
    let n = rng.below(keys);
    let owned = nth::<I>(n);
    let (key, value) = (lend::<I>(&owned), tagged(n, rng.word()));
    let view = index.pin();
    let mut met = None;
    let change = match rng.below(5) {
        0 => match view.try_insert(key, value) {
            Ok(()) => 1,
            Err(TryInsertError::Occupied(present)) => {
                met = Some(present);
                0
            }
            Err(_) => 0,
        },
        1 => match view.insert(key, value) {
            Ok(None) => 1,
            Ok(old) => {
                met = old;
                0
            }
            Err(_) => 0,
        },
        2 => i64::from(view.compare_exchange(key, None, Some(value)).is_ok()),
        3 => {
            met = view.get(key);
            let taken = met.is_some() && view.compare_exchange(key, met, None).is_ok();
            -i64::from(taken)
        }
        _ => {
            met = view.remove(key).unwrap_or(None);
            -i64::from(met.is_some())
        }
    };
    let right = met.is_none_or(|value| belongs(n, value));
    ensure!(right, "key {n} returned another key's value {met:?}");
    *balance.entry(n).or_default() += change;
    Ok(())
}

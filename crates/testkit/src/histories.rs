//! Property: short concurrent runs on few keys are linearizable, whatever verbs meet.

use crate::crew::together;
use crate::history::{Clock, Event, Recorder};
use crate::keys::{lend, nth, own, show};
use crate::reference::counts;
use crate::rng::Rng;
use crate::{Outcome, ScanSubject, Subject, linearizable, size};
use silvics::{Cursor, Guard, Options, OwnedKey};
use std::sync::Arc;

/// The keys of a run: few and adjacent, so that every operation meets every other one, in the
/// same nodes and in neighbouring ones.
const KEYS: u64 = 10;
/// Calls of a thread between two meetings.
const BURST: usize = 32;
/// Indexes that are put to it, one after the other.
const RUNS: usize = size::pick(600, 300, 1);

/// What a thread knows while it runs.
struct Caller<'a, I: Subject> {
    index: &'a I,
    recorder: Recorder<'a, I>,
    rng: Rng,
    /// The state each key was last seen in: what a compare-exchange expects.
    seen: Vec<Option<u64>>,
    written: u64,
    thread: usize,
}

impl<I: Subject> Caller<'_, I> {
    /// A value nobody writes twice.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        self.written * 8 + self.thread as u64
    }

    /// A random point operation on one of the `keys` from number `first` on.
    fn point(&mut self, first: u64, keys: u64, guard: &Guard) -> Outcome {
        let n = first + self.rng.below(keys);
        let key = nth::<I>(n);
        let seen = self.seen[n as usize];
        match self.rng.below(8) {
            0 | 1 => self.seen[n as usize] = self.recorder.get(&key, guard),
            2 => {
                let value = self.fresh();
                self.recorder.try_insert(&key, value, guard)?;
            }
            3 => {
                let value = self.fresh();
                self.recorder.insert(&key, value, guard)?;
                self.seen[n as usize] = Some(value);
            }
            4 => self.recorder.remove(&key, guard)?,
            5 | 6 => {
                let new = self.rng.percent(70).then(|| self.fresh());
                self.recorder.compare_exchange(&key, seen, new, guard)?;
                self.seen[n as usize] = new;
            }
            _ => {
                let batch: Vec<_> = (first..first + keys).map(nth::<I>).collect();
                self.recorder.get_many(&batch, guard);
            }
        }
        Ok(())
    }
}

/// Runs bursts of `call` on several threads and checks what they recorded.
fn runs<I: Subject>(
    runs: usize,
    call: impl Fn(&mut Caller<'_, I>, &Arc<I>, u64, u64, &Guard) -> Outcome + Sync,
) -> Outcome {
    let bursts = size::pick(60, 30, 2);
    for run in 0..runs {
        let mut index = Arc::new(I::with_options(&Options::default())?);
        let clock = Clock::default();
        let recorded = together(2 + run % 2, |thread, crew| {
            let mut caller = Caller {
                index: &*index,
                recorder: Recorder::new(&index, &clock, thread),
                rng: Rng::new(size::seed() + run as u64, thread),
                seen: vec![None; KEYS as usize],
                written: 0,
                thread,
            };
            // The same keys for all threads, other ones in each burst.
            let mut shared = Rng::new(size::seed(), run);
            for _ in 0..bursts {
                let keys = 1 + shared.below(4);
                let first = shared.below(KEYS - keys);
                crew.meet()?;
                for _ in 0..BURST {
                    let guard = caller.index.domain().pin();
                    call(&mut caller, &index, first, keys, &guard)?;
                }
            }
            Ok(caller.recorder.into_events())
        })?;
        let events: Vec<Event<OwnedKey<I>>> = recorded.into_iter().flatten().collect();
        linearizable::check(&events, |_| None, show::<I>)?;
        if let Some(index) = Arc::get_mut(&mut index) {
            let guard = index.domain().pin();
            let present =
                (0..KEYS).filter(|&n| index.get(lend::<I>(&nth::<I>(n)), &guard).is_some());
            let present = present.count();
            drop(guard);
            counts(index, present)?;
        }
    }
    Ok(())
}

/// All point operations against each other.
pub fn histories<I: Subject>() -> Outcome {
    runs::<I>(RUNS, |caller, _, first, keys, guard| caller.point(first, keys, guard))
}

/// The same for some minutes.
pub fn long_histories<I: Subject>() -> Outcome {
    runs::<I>(200 * RUNS, |caller, _, first, keys, guard| caller.point(first, keys, guard))
}

/// The same with ranges and cursors among them: what a scan saw of a key must be what a lookup of
/// it might have seen.
pub fn scan_histories<I: ScanSubject>() -> Outcome {
    runs::<I>(RUNS, |caller, index, first, keys, guard| {
        if caller.rng.percent(80) {
            return caller.point(first, keys, guard);
        }
        let all: Vec<_> = (0..KEYS).map(nth::<I>).collect();
        let n = first + caller.rng.below(keys);
        let low = &all[n as usize];
        let entry = |(key, value)| (own::<I>(key), value);
        match caller.rng.below(3) {
            0 => caller.recorder.scan(&all[n as usize..], || {
                index.range(lend::<I>(low).., guard).map(entry).collect()
            }),
            1 => caller.recorder.scan(&all[..=n as usize], || {
                index.range_rev(..=lend::<I>(low), guard).map(entry).collect()
            }),
            _ => {
                // A cursor that lands beyond the key has not seen it.
                let mut cursor = index.cursor();
                caller.recorder.scan(std::slice::from_ref(low), || {
                    cursor.seek(lend::<I>(low));
                    let at = cursor.key().map(own::<I>).zip(cursor.value());
                    at.into_iter().filter(|(key, _)| key == low).collect()
                })
            }
        }
    })
}

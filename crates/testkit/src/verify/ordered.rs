//! The calls of a history that need the order of keys: scans, and the first and last entry.

use crate::history::Recorder;
use crate::keys::{lend, own};
use crate::linearizable::ordered::EndVerb;
use crate::mapped::AnyMapped;
use crate::{Outcome, ScanSubject, Subject, TestKey};
use silvics::{Cursor, Guard, OrderedEnds, OwnedKey};
use std::sync::Arc;

/// The calls of a history that need the order of keys.
pub trait OrderedCalls<I: Subject + ?Sized>: Copy + Send + Sync {
    /// Whether the index has ends. If not, [`OrderedCalls::end`] is not called.
    const ENDS: bool = false;

    /// Scans `count` keys from number `first` on, by the verb with the given number.
    fn scan(
        self,
        recorder: &mut Recorder<'_, I>,
        _index: &Arc<I>,
        first: u32,
        _count: u32,
        _verb: u64,
        guard: &Guard,
    ) -> Outcome {
        recorder.get(first, guard); // for an index without scans
        Ok(())
    }

    /// Makes a call on an end. Returns the number of the key found, with its value.
    fn end(
        self,
        _recorder: &mut Recorder<'_, I>,
        _index: &I,
        verb: EndVerb,
        _guard: &Guard,
    ) -> Result<Option<(u32, u64)>, crate::Failure> {
        unreachable!("`{}` of an index without ends", verb.name())
    }
}

/// No such calls, for an index without ranges.
#[derive(Clone, Copy, Debug)]
pub struct NoScans;

impl<I: Subject + ?Sized> OrderedCalls<I> for NoScans {}

/// Scans by ranges in both directions and by cursors.
#[derive(Clone, Copy, Debug)]
pub struct AllScans;

impl<I: ScanSubject + ?Sized> OrderedCalls<I> for AllScans {
    fn scan(
        self,
        recorder: &mut Recorder<'_, I>,
        index: &Arc<I>,
        first: u32,
        count: u32,
        verb: u64,
        guard: &Guard,
    ) -> Outcome {
        scan(recorder, index, first, count, verb, guard)
    }
}

/// All scans, and the four calls on the ends.
#[derive(Clone, Copy, Debug)]
pub struct ScansAndEnds;

impl<I: ScanSubject + OrderedEnds + ?Sized> OrderedCalls<I> for ScansAndEnds {
    const ENDS: bool = true;

    fn scan(
        self,
        recorder: &mut Recorder<'_, I>,
        index: &Arc<I>,
        first: u32,
        count: u32,
        verb: u64,
        guard: &Guard,
    ) -> Outcome {
        scan(recorder, index, first, count, verb, guard)
    }

    fn end(
        self,
        recorder: &mut Recorder<'_, I>,
        index: &I,
        verb: EndVerb,
        guard: &Guard,
    ) -> Result<Option<(u32, u64)>, crate::Failure> {
        recorder.end(verb, || {
            let found = match verb {
                EndVerb::First => index.first(guard),
                EndVerb::Last => index.last(guard),
                EndVerb::PopFirst => index.pop_first(guard)?,
                EndVerb::PopLast => index.pop_last(guard)?,
            };
            Ok(found.map(|(key, value)| (own::<I>(key), value)))
        })
    }
}

/// The four calls on the ends of a map. A map as an index has no scans.
#[derive(Clone, Copy, Debug)]
pub struct MapEnds;

impl<K: TestKey + ?Sized> OrderedCalls<dyn AnyMapped<K>> for MapEnds {
    const ENDS: bool = true;

    fn end(
        self,
        recorder: &mut Recorder<'_, dyn AnyMapped<K>>,
        index: &dyn AnyMapped<K>,
        verb: EndVerb,
        _guard: &Guard,
    ) -> Result<Option<(u32, u64)>, crate::Failure> {
        recorder.end(verb, || index.end(verb))
    }
}

fn scan<I: ScanSubject + ?Sized>(
    recorder: &mut Recorder<'_, I>,
    index: &Arc<I>,
    first: u32,
    count: u32,
    verb: u64,
    guard: &Guard,
) -> Outcome {
    let entry = |(key, value)| (own::<I>(key), value);
    let keys = recorder.keys();
    let low: &OwnedKey<I> = &keys[first as usize];
    let high: &OwnedKey<I> = &keys[(first + count - 1) as usize];
    match verb {
        0 => recorder.scan(first, count, false, |seen| {
            let range = lend::<I>(low)..=lend::<I>(high);
            seen.extend(index.range(range, guard).map(entry));
        }),
        1 => recorder.scan(first, count, true, |seen| {
            let range = lend::<I>(low)..=lend::<I>(high);
            seen.extend(index.range_rev(range, guard).map(entry));
        }),
        _ => {
            let mut cursor = index.cursor();
            recorder.scan(first, count, false, |seen| {
                let mut at = cursor.seek(lend::<I>(low));
                while at && let Some((key, value)) = cursor.key().zip(cursor.value()) {
                    let key = own::<I>(key);
                    if key > *high {
                        break;
                    }
                    seen.push((key, value));
                    at = cursor.next();
                }
            })
        }
    }
}

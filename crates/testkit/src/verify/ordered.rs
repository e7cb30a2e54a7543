//! The calls of a history that need the order of keys: scans, the first and last entry, and atomic
//! ranges.

use crate::history::Recorder;
use crate::keys::{lend, own};
use crate::linearizable::ordered::EndVerb;
use crate::mapped::AnyMapped;
use crate::{Outcome, ScanSubject, Subject, TestKey};
use silvics::index::Cursor;
use silvics::{AtomicRanges, Guard, OrderedEnds, OwnedKey, RangeUpdates};
use std::sync::Arc;

/// The calls of a history that need the order of keys.
pub trait OrderedCalls<I: Subject + ?Sized>: Copy + Send + Sync {
    /// Whether the index has ends. If not, [`OrderedCalls::end`] is not called.
    const ENDS: bool = false;
    /// The atomic ranges that the index has. If none, [`OrderedCalls::range`] is not called.
    const RANGES: Ranges = Ranges::None;

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

    /// Reads `count` keys from number `first` on atomically, or if the mask is not zero, turns
    /// over its bits in their values.
    fn range(
        self,
        _recorder: &mut Recorder<'_, I>,
        _index: &I,
        (_first, _count): (u32, u32),
        _mask: u64,
        _guard: &Guard,
    ) -> Outcome {
        unreachable!("an atomic range of an index without them")
    }
}

/// The atomic ranges that an index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// None.
    None,
    /// Those that are read.
    Read,
    /// Those that are read, and those that are updated.
    Updated,
}

/// No such calls, for an index without ranges.
#[derive(Clone, Copy, Debug)]
pub struct NoScans;

impl<I: Subject + ?Sized> OrderedCalls<I> for NoScans {}

/// Declares the calls of an index with some capabilities.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $($bound:ident)+ {
        scan $(, $end:ident)? $(; $ranges:ident by $range:ident)?
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<I: $($bound +)+ ?Sized> OrderedCalls<I> for $name {
            $(const ENDS: bool = calls!(@ has $end);)?
            $(const RANGES: Ranges = Ranges::$ranges;)?

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

            $(fn end(
                self,
                recorder: &mut Recorder<'_, I>,
                index: &I,
                verb: EndVerb,
                guard: &Guard,
            ) -> Result<Option<(u32, u64)>, crate::Failure> {
                $end(recorder, index, verb, guard)
            })?

            $(fn range(
                self,
                recorder: &mut Recorder<'_, I>,
                index: &I,
                keys: (u32, u32),
                mask: u64,
                guard: &Guard,
            ) -> Outcome {
                $range(recorder, index, keys, mask, guard)
            })?
        }
    )*};
    (@ has $end:ident) => { true };
}

calls! {
    /// Scans by ranges in both directions and by cursors.
    AllScans: ScanSubject { scan }
    /// All scans, and the four calls on the ends.
    ScansAndEnds: ScanSubject OrderedEnds { scan, end }
    /// All scans, the four calls on the ends, and atomic reads of ranges.
    RangesRead: ScanSubject OrderedEnds AtomicRanges { scan, end; Read by read_range }
    /// All scans, the four calls on the ends, and atomic reads and updates of ranges.
    RangesUpdated: ScanSubject OrderedEnds RangeUpdates { scan, end; Updated by update_range }
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

fn read_range<I: Subject + AtomicRanges + ?Sized>(
    recorder: &mut Recorder<'_, I>,
    index: &I,
    (first, count): (u32, u32),
    _mask: u64,
    guard: &Guard,
) -> Outcome {
    let keys = &recorder.keys()[first as usize..][..count as usize];
    recorder.range((first, count), 0, || {
        let (low, high) = (lend::<I>(&keys[0]), lend::<I>(&keys[keys.len() - 1]));
        let found = index.collect_range(low..=high, guard)?;
        Ok(found.into_iter().map(|(key, value)| (own::<I>(key), value)).collect())
    })
}

fn update_range<I: Subject + RangeUpdates + ?Sized>(
    recorder: &mut Recorder<'_, I>,
    index: &I,
    (first, count): (u32, u32),
    mask: u64,
    guard: &Guard,
) -> Outcome {
    if mask == 0 {
        return read_range(recorder, index, (first, count), mask, guard);
    }
    let keys = &recorder.keys()[first as usize..][..count as usize];
    recorder.range((first, count), mask, || {
        let (low, high) = (lend::<I>(&keys[0]), lend::<I>(&keys[keys.len() - 1]));
        let mut found = Vec::new();
        index.update_range(low..=high, guard, |key, value| {
            found.push((own::<I>(key), value));
            value ^ mask
        })?;
        Ok(found)
    })
}

fn end<I: Subject + OrderedEnds + ?Sized>(
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

//! The scans in histories of an index, if it supports scans.

use crate::history::Recorder;
use crate::keys::{lend, own};
use crate::{Outcome, ScanSubject, Subject};
use silvics::{Cursor, Guard, OwnedKey};
use std::sync::Arc;

/// The scans of a history.
pub trait Scans<I: Subject + ?Sized>: Copy + Send + Sync {
    /// Scans `count` keys from number `first` on, by the verb with the given number.
    fn scan(
        self,
        recorder: &mut Recorder<'_, I>,
        index: &Arc<I>,
        first: u32,
        count: u32,
        verb: u64,
        guard: &Guard,
    ) -> Outcome;
}

/// No scans, for an index without ranges.
#[derive(Clone, Copy, Debug)]
pub struct NoScans;

impl<I: Subject + ?Sized> Scans<I> for NoScans {
    fn scan(
        self,
        recorder: &mut Recorder<'_, I>,
        _index: &Arc<I>,
        first: u32,
        _count: u32,
        _verb: u64,
        guard: &Guard,
    ) -> Outcome {
        recorder.get(first, guard);
        Ok(())
    }
}

/// Scans by ranges in both directions and by cursors.
#[derive(Clone, Copy, Debug)]
pub struct AllScans;

impl<I: ScanSubject + ?Sized> Scans<I> for AllScans {
    fn scan(
        self,
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
}

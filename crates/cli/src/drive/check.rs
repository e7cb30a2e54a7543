//! The checks of a contender's answers: of a value, of the entries of a scan, and of everything.

use super::run::{Failure, Tally};
use super::worker::Calls;
use crate::drive::keys::BenchKey;
use crate::interrupt;
use silvics_workload::{BLOCK_OPS, Share};

/// The failure of an answer with a wrong value.
#[cold]
pub(super) fn wrong_value<K: BenchKey + ?Sized>(key: K::Ref<'_>, value: u64) -> Failure {
    Failure::Wrong(format!(
        "{} has the value {:#x} instead of {:#x}",
        show(&key),
        value,
        K::value_of(key)
    ))
}

/// A key in a message, cut short.
pub(super) fn show(key: &impl std::fmt::Debug) -> String {
    let text = format!("key {key:?}");
    if text.len() <= 100 {
        return text;
    }
    let cut = text.char_indices().map(|(at, _)| at).take_while(|&at| at <= 100);
    format!("{}…", &text[..cut.last().unwrap_or(0)])
}

/// Checks the entries of one scan.
pub(super) struct ScanCheck<K: BenchKey + ?Sized> {
    from: K::Owned,
    last: Option<K::Owned>,
    seen: usize,
    wrong: Option<String>,
}

impl<K: BenchKey + ?Sized> ScanCheck<K> {
    pub(super) fn new(from: K::Ref<'_>) -> Self {
        Self { from: K::to_owned(from), last: None, seen: 0, wrong: None }
    }

    pub(super) fn visit(&mut self, key: K::Ref<'_>, value: u64) {
        self.seen += 1;
        if self.wrong.is_some() {
            return;
        }
        let owned = K::to_owned(key);
        if owned < self.from {
            self.wrong = Some(format!("a scan from {:?} gave {}", self.from, show(&key)));
        } else if self.last.as_ref().is_some_and(|last| owned <= *last) {
            self.wrong = Some(format!("a scan gave {} out of order", show(&key)));
        } else if value != K::value_of(key)
            && let Failure::Wrong(what) = wrong_value::<K>(key, value)
        {
            self.wrong = Some(format!("in a scan {what}"));
        }
        self.last = Some(owned);
    }

    /// How many entries the scan gave, if all were right.
    pub(super) fn finish(self, count: usize, limit: usize) -> Result<u64, Failure> {
        if let Some(what) = self.wrong {
            return Err(Failure::Wrong(what));
        }
        if count != self.seen || count > limit {
            let seen = self.seen;
            return Err(Failure::Wrong(format!(
                "a scan of {limit} entries gave {seen} and counted {count}"
            )));
        }
        Ok(count as u64)
    }
}

/// Looks up this share of the key space; what is found counts as inserted. In ascending order,
/// since neighbours are found faster. Also gives the least key found.
pub(super) fn look_up_all<K: BenchKey + ?Sized>(
    session: &mut dyn Calls<K>,
    space: &K::Space,
    share: Share,
) -> Result<(Tally, Option<K::Owned>), Failure> {
    /// Positions sorted at a time.
    const CHUNK: usize = 1 << 18;
    let mut tally = Tally::default();
    let mut least: Option<K::Owned> = None;
    let mut part = share.part(K::len(space) as u64);
    let mut chunk: Vec<u32> = Vec::new();
    loop {
        chunk.clear();
        chunk.extend(part.by_ref().take(CHUNK).map(|position| position as u32));
        if chunk.is_empty() {
            return Ok((tally, least));
        }
        chunk.sort_unstable_by(|&a, &b| K::key(space, a).cmp(&K::key(space, b)));
        for block in chunk.chunks(BLOCK_OPS) {
            for &position in block {
                let key = K::key(space, position);
                if let Some(value) = session.get(key) {
                    if value != K::value(space, position) {
                        return Err(wrong_value::<K>(key, value));
                    }
                    tally.inserted += 1;
                    if least.as_ref().is_none_or(|least| K::shorten(K::borrow(least)) > key) {
                        least = Some(K::to_owned(key));
                    }
                    tally.weight = tally.weight.wrapping_add(K::weight(space, position));
                }
            }
            session.refresh();
        }
        if interrupt::pending() {
            return Err(Failure::Interrupted);
        }
    }
}

/// Scans everything from a key on; what is seen counts as inserted.
pub(super) fn scan_all<K: BenchKey + ?Sized>(
    session: &mut dyn Calls<K>,
    mut from: K::Owned,
) -> Result<Tally, Failure> {
    /// Entries read at a time; each part but the first starts with the last of the one before.
    const PART: usize = 4096;
    let mut tally = Tally::default();
    let mut first_part = true;
    loop {
        let mut check = ScanCheck::<K>::new(K::borrow(&from));
        let count = session.scan(K::borrow(&from), PART, &mut |key, value| {
            check.visit(key, value);
            let again = check.seen == 1 && K::shorten(K::borrow(&from)) == K::shorten(key);
            if first_part || !again {
                tally.weight = tally.weight.wrapping_add(K::weight_of(key));
                tally.inserted += 1;
            }
        });
        let last = check.last.take();
        check.finish(count, PART)?;
        session.refresh();
        match last {
            Some(last) if count == PART => from = last,
            _ => return Ok(tally),
        }
        if interrupt::pending() {
            return Err(Failure::Interrupted);
        }
        first_part = false;
    }
}

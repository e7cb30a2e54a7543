//! Property: cursors. Alone, a cursor moves as the model does, also when its entry is removed.
//! Under writers it skips no key that stays. A cursor can be sent to another thread, and holds no
//! pin while it is parked.

use crate::failure::ensure;
use crate::grid::{Grid, among_writers};
use crate::keys::{Shown, TestKey, lend, nth, own, show};
use crate::make::Make;
use crate::memory::{self, UNSEALED};
use crate::reference::{Move, Position, step};
use crate::rng::Rng;
use crate::sequential::{config, reject};
use crate::{Failure, Outcome, ScanSubject, size};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use silvics::index::Cursor;
use silvics::{Options, OwnedKey, PinIndex};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One step of a program with a cursor.
#[derive(Debug)]
enum Step<O> {
    Move(Move<O>),
    Insert(O, u64),
    Remove(O),
    /// Removes the entry at which the cursor stands.
    RemoveHere,
}

fn steps<K: TestKey + ?Sized>() -> impl Strategy<Value = Step<Shown<K>>> {
    let key = || K::strategy().prop_map(Shown::<K>);
    prop_oneof![
        3 => key().prop_map(|k| Step::Move(Move::Seek(k))),
        3 => key().prop_map(|k| Step::Move(Move::SeekForPrev(k))),
        6 => Just(()).prop_map(|()| Step::Move(Move::Next)),
        6 => Just(()).prop_map(|()| Step::Move(Move::Prev)),
        6 => (key(), any::<u64>()).prop_map(|(k, v)| Step::Insert(k, v)),
        1 => key().prop_map(Step::Remove),
        2 => Just(()).prop_map(|()| Step::RemoveHere),
    ]
}

/// Makes random moves among random writes of one thread, and compares them with the model.
pub fn oracle<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let mut runner = TestRunner::new(config(size::pick(1000, 300, 4)));
    let programs = proptest::collection::vec(steps::<I::Key>(), 1..size::pick(200, 120, 20));
    let result = runner.run(&programs, |program| {
        let index: Arc<I> = Arc::from(make(&Options::default()).map_err(reject)?);
        let mut walk = Walk::new(&index);
        for (at, one) in program.iter().enumerate() {
            walk.step(one).map_err(|f| reject(f.at(format_args!("step {at}, {one:?}"))))?;
        }
        Ok(())
    });
    result.map_err(|failure| Failure::new(failure.to_string()))
}

/// A cursor and its model.
struct Walk<I: ScanSubject + ?Sized> {
    index: Arc<I>,
    cursor: I::Cursor,
    entries: BTreeMap<OwnedKey<I>, u64>,
    at: Position<OwnedKey<I>>,
}

impl<I: ScanSubject + ?Sized> Walk<I> {
    fn new(index: &Arc<I>) -> Self {
        Self {
            index: Arc::clone(index),
            cursor: index.cursor(),
            entries: BTreeMap::new(),
            at: Position::BeforeFirst,
        }
    }

    fn step(&mut self, one: &Step<Shown<I::Key>>) -> Outcome {
        match one {
            Step::Move(to) => self.go(to)?,
            Step::Insert(key, value) => {
                self.index.pin().insert(lend::<I>(&key.0), *value)?;
                self.entries.insert(key.0.clone(), *value);
            }
            Step::Remove(key) => {
                self.index.pin().remove(lend::<I>(&key.0))?;
                self.entries.remove(&key.0);
            }
            Step::RemoveHere => {
                if let Position::At(key, _) = &self.at {
                    self.index.pin().remove(lend::<I>(key))?;
                    self.entries.remove(key);
                }
            }
        }
        self.agree()
    }

    fn go(&mut self, to: &Move<Shown<I::Key>>) -> Outcome {
        let (found, to) = match to {
            Move::Seek(key) => (self.cursor.seek(lend::<I>(&key.0)), Move::Seek(key.0.clone())),
            Move::SeekForPrev(key) => {
                (self.cursor.seek_for_prev(lend::<I>(&key.0)), Move::SeekForPrev(key.0.clone()))
            }
            Move::Next => (self.cursor.next(), Move::Next),
            Move::Prev => (self.cursor.prev(), Move::Prev),
        };
        self.at = step(&self.entries, &self.at, &to);
        let wanted = matches!(self.at, Position::At(..));
        ensure!(found == wanted, "the move returns {found}, wanted {wanted}");
        Ok(())
    }

    /// Fails unless the cursor stands where the model does.
    fn agree(&self) -> Outcome {
        let (key, value) = match &self.at {
            Position::At(key, value) => (Some(key), Some(*value)),
            _ => (None, None),
        };
        let found = self.cursor.key().map(own::<I>);
        let name = |key: Option<&OwnedKey<I>>| key.map_or("nowhere".into(), show::<I>);
        ensure!(
            found.as_ref() == key,
            "the cursor stands at {}, wanted {}",
            name(found.as_ref()),
            name(key)
        );
        let found = self.cursor.value();
        ensure!(found == value, "its value is {found:?}, wanted {value:?}");
        Ok(())
    }
}

/// Walks randomly while other threads write, some of them near the cursor. No move may skip a key
/// that stays or go the wrong way. Runs over one key that is replaced all the time, over a few
/// keys, and over many.
pub fn under_writers<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let moves = size::pick(1_000_000, 50_000, 100);
    for (keys, moves, seeks) in [(1, 2 * moves, 90), (12, moves, 20), (200, moves, 5)] {
        let index: Arc<I> = Arc::from(make(&Options::default())?);
        let grid = Grid::plant(&*index, keys)?;
        among_writers(&*index, &grid, |rng| walk(&index, &grid, rng, moves, seeks))
            .map_err(|f| f.at(format_args!("{keys} keys")))?;
        memory::follows(make, &*index, index.len(), 4)?;
    }
    Ok(())
}

/// Moves a cursor in runs of one direction, with turns, and seeks in about `seeks` of 100 moves.
fn walk<I: ScanSubject + ?Sized>(
    index: &Arc<I>,
    grid: &Grid<I>,
    rng: &mut Rng,
    moves: usize,
    seeks: u64,
) -> Outcome {
    let mut cursor = index.cursor();
    let mut at = At::Before;
    let mut forth = true;
    for _ in 0..moves {
        if rng.percent(10) {
            forth = !forth;
        }
        at = if rng.percent(seeks) {
            seek(grid, &mut cursor, rng.below(grid.len), forth)?
        } else {
            advance(grid, &mut cursor, at, forth)?
        };
    }
    Ok(())
}

/// The place at which a cursor of the run stands, by the number of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Before,
    Key(u64),
    After,
}

/// The place at which the cursor says that it stands, after a move in the given direction.
fn position<I: ScanSubject + ?Sized>(
    grid: &Grid<I>,
    cursor: &I::Cursor,
    moved: bool,
    forth: bool,
) -> Result<At, Failure> {
    match (cursor.key().map(own::<I>), cursor.value()) {
        (Some(key), Some(value)) if moved => grid.seen(&key, value).map(At::Key),
        (None, None) if !moved => Ok(if forth { At::After } else { At::Before }),
        (key, value) => Err(Failure::new(format!(
            "a move returned {moved}, the key is {}, the value {value:?}",
            key.as_ref().map_or("none".into(), show::<I>)
        ))),
    }
}

fn seek<I: ScanSubject + ?Sized>(
    grid: &Grid<I>,
    cursor: &mut I::Cursor,
    to: u64,
    forth: bool,
) -> Result<At, Failure> {
    let owned = nth::<I>(to);
    let moved = if forth {
        cursor.seek(lend::<I>(&owned))
    } else {
        cursor.seek_for_prev(lend::<I>(&owned))
    };
    let now = position(grid, cursor, moved, forth)?;
    let (name, low, high) =
        if forth { ("seek", to.checked_sub(1), now) } else { ("seek_for_prev", Some(to + 1), now) };
    beyond::<I>(low, high, forth, grid.len).map_err(|f| f.at(format_args!("{name} to {to}")))?;
    Ok(now)
}

fn advance<I: ScanSubject + ?Sized>(
    grid: &Grid<I>,
    cursor: &mut I::Cursor,
    from: At,
    forth: bool,
) -> Result<At, Failure> {
    let moved = if forth { cursor.next() } else { cursor.prev() };
    let now = position(grid, cursor, moved, forth)?;
    let from = match from {
        At::Key(n) => Some(n),
        At::Before if forth => None,
        At::After if !forth => None,
        end => {
            ensure!(now == end, "a move beyond the end, {end:?}, led to {now:?}");
            return Ok(now);
        }
    };
    let name = if forth { "next" } else { "prev" };
    beyond::<I>(from, now, forth, grid.len)
        .map_err(|f| f.at(format_args!("{name} of {from:?}")))?;
    Ok(now)
}

/// Fails unless a move from `from` (`None`: from outside) to `now` went the right way and skipped
/// no key that stays.
fn beyond<I: ScanSubject + ?Sized>(from: Option<u64>, now: At, forth: bool, len: u64) -> Outcome {
    let now = match now {
        At::Key(n) => Some(n),
        At::Before | At::After => None,
    };
    if let (Some(from), Some(now)) = (from, now) {
        ensure!((now > from) == forth && now != from, "led to {now}, the wrong way");
    }
    if forth {
        Grid::<I>::nothing_skipped(from, now, len)
    } else {
        Grid::<I>::nothing_skipped(now, from, len)
    }
}

/// A cursor moves to another thread, walks there, comes back, and outlives every other handle of
/// the index. While it is parked it holds no pin, so retired objects are freed.
pub fn sent_and_parked<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let index: Arc<I> = Arc::from(make(&Options::default())?);
    let keys = size::pick(4000, 2000, 60) as u64;
    for n in 0..keys {
        index.pin().insert(lend::<I>(&nth::<I>(n)), n)?;
    }
    let mut cursor = index.cursor();
    let middle = nth::<I>(keys / 2);
    ensure!(cursor.seek(lend::<I>(&middle)), "seek to the middle");
    let one = memory::live_slots(&*index) / keys as usize + 1;
    for n in 1..keys - 1 {
        index.pin().remove(lend::<I>(&nth::<I>(n)))?;
    }
    let live = memory::settle(&*index);
    let most = 3 * one + memory::extra_slots(&*index, 1) + 8;
    ensure!(
        live <= most,
        "{live} slots stay in use while a cursor is parked and 2 entries are left: it holds a pin \
         (at most {most} expected: {UNSEALED} per pool may be unsealed)"
    );
    let parked = (cursor.key().map(own::<I>), cursor.value());
    ensure!(parked == (Some(middle), Some(keys / 2)), "the parked cursor forgot its entry");
    let mut cursor = std::thread::scope(|scope| {
        let away = scope.spawn(move || {
            let moved = cursor.next();
            (moved && cursor.value() == Some(keys - 1) && !cursor.next()).then_some(cursor)
        });
        let back = away.join();
        back.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .ok_or_else(|| Failure::new("next on another thread does not reach the last key"))?;
    drop(index);
    let mut values = Vec::new();
    while cursor.prev() {
        values.push(cursor.value());
    }
    ensure!(
        values == [Some(keys - 1), Some(0)],
        "prev, with no other handle of the index left, leads to {values:?}"
    );
    Ok(())
}

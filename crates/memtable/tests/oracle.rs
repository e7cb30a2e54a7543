//! A buffer beside a model that keeps every version.

use proptest::prelude::*;
use silvics_memtable::{
    BloomOptions, BufferOptions, ByteIndex, Bytewise, Comparator, Cursor, Index, LogFolder,
    OrdIndex, ReverseBytewise, SkipIndex, WriteBatch, WriteBuffer, WriteMode, WriteOptions,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

type Bytes = Vec<u8>;

/// The order of lengths, then of bytes: one that no index knows.
struct ByLength;

impl Comparator for ByLength {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
    fn name(&self) -> &'static str {
        "by length"
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(Bytes, Bytes),
    Delete(Bytes),
    DeleteRange(Bytes, Bytes),
    Batch(Vec<(Bytes, Option<Bytes>)>),
    Switch,
    Reopen,
}

/// All states by sequence number.
struct Model {
    comparator: Arc<dyn Comparator>,
    states: Vec<BTreeMap<Bytes, Bytes>>,
}

impl Model {
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<Bytes, Bytes>, &dyn Comparator)) {
        let mut state = self.states.last().expect("a first state").clone();
        change(&mut state, &*self.comparator);
        self.states.push(state);
    }

    fn sorted(&self, snapshot: usize) -> Vec<(Bytes, Bytes)> {
        let mut all: Vec<_> = self.states[snapshot].clone().into_iter().collect();
        all.sort_by(|a, b| self.comparator.compare(&a.0, &b.0));
        all
    }
}

fn forward<I: Index>(cursor: &mut Cursor<I>) -> Vec<(Bytes, Bytes)> {
    collected(cursor, Cursor::next)
}

fn collected<I: Index>(
    cursor: &mut Cursor<I>,
    step: impl Fn(&mut Cursor<I>),
) -> Vec<(Bytes, Bytes)> {
    let mut all = Vec::new();
    while let Some((key, value)) = cursor.entry() {
        all.push((key.to_vec(), value.to_vec()));
        step(cursor);
    }
    all
}

fn check<I: Index>(buffer: &WriteBuffer<I>, model: &Model, keys: &[Bytes]) {
    let last = model.states.len() - 1;
    assert_eq!(buffer.snapshot(), last as u64);
    let view = buffer.view();
    for snapshot in [0, last / 3, last / 2, last] {
        let state = &model.states[snapshot];
        for key in keys {
            let wanted = state.get(key).map(|value| &value[..]);
            assert_eq!(view.get_at(key, snapshot as u64), wanted, "{key:?} at {snapshot}");
        }
        let sorted = model.sorted(snapshot);
        let mut cursor = buffer.cursor_at(snapshot as u64);
        cursor.first();
        assert_eq!(forward(&mut cursor), sorted);
        cursor.last();
        let mut backward = collected(&mut cursor, Cursor::prev);
        backward.reverse();
        assert_eq!(backward, sorted);
        for key in keys {
            let compare = |entry: &(Bytes, Bytes)| model.comparator.compare(&entry.0, key);
            let at = sorted.partition_point(|entry| compare(entry).is_lt());
            let behind = sorted.partition_point(|entry| compare(entry).is_le());
            let entry = |at: Option<&(Bytes, Bytes)>| at.cloned();
            let shown = |cursor: &Cursor<I>| {
                cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()))
            };
            cursor.seek(key);
            assert_eq!(shown(&cursor), entry(sorted.get(at)));
            cursor.prev();
            let before = at.checked_sub(1).filter(|_| at < sorted.len());
            assert_eq!(shown(&cursor), entry(before.and_then(|at| sorted.get(at))));
            cursor.seek_for_prev(key);
            assert_eq!(shown(&cursor), entry(behind.checked_sub(1).and_then(|at| sorted.get(at))));
            cursor.next();
            let next = (behind > 0).then_some(behind);
            assert_eq!(shown(&cursor), entry(next.and_then(|at| sorted.get(at))));
        }
    }
}

fn run<I: Index>(comparator: &Arc<dyn Comparator>, steps: &[Step], mode: WriteMode) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = BufferOptions::ordered_by(Arc::clone(comparator));
    options.max_frozen = 1000;
    options.mode = mode;
    options.table.bloom = Some(BloomOptions { bits: 512, probes: BloomOptions::PROBES });
    let open = || {
        let storage = Arc::new(LogFolder::open(folder.path()).unwrap());
        let (buffer, recovery) = WriteBuffer::<I>::recover(options.clone(), storage).unwrap();
        assert_eq!(recovery.stopped, None);
        buffer
    };
    let mut buffer = open();
    let mut model = Model { comparator: Arc::clone(comparator), states: vec![BTreeMap::new()] };
    let mut keys: Vec<Bytes> = vec![vec![], vec![9, 9]];
    for step in steps {
        match step {
            Step::Put(key, value) => {
                buffer.put(key, value).unwrap();
                keys.push(key.clone());
                model.change(|state, _| drop(state.insert(key.clone(), value.clone())));
            }
            Step::Delete(key) => {
                buffer.delete(key).unwrap();
                model.change(|state, _| drop(state.remove(key)));
            }
            Step::DeleteRange(a, b) => {
                let (from, to) = if comparator.compare(a, b).is_le() { (a, b) } else { (b, a) };
                assert_eq!(buffer.delete_range(to, from).is_err(), from != to);
                if from == to {
                    model.change(|_, _| ());
                }
                buffer.delete_range(from, to).unwrap();
                model.change(|state, comparator| {
                    state.retain(|key, _| {
                        comparator.compare(key, from).is_lt() || comparator.compare(key, to).is_ge()
                    });
                });
            }
            Step::Batch(ops) => {
                let mut batch = WriteBatch::new();
                for (key, value) in ops {
                    match value {
                        Some(value) => batch.put(key, value).unwrap(),
                        None => batch.delete(key).unwrap(),
                    }
                    keys.push(key.clone());
                    model.change(|state, _| match value {
                        Some(value) => drop(state.insert(key.clone(), value.clone())),
                        None => drop(state.remove(key)),
                    });
                }
                buffer.write(&batch, WriteOptions { sync: true }).unwrap();
            }
            Step::Switch => drop(buffer.switch().unwrap()),
            Step::Reopen => {
                drop(buffer);
                buffer = open();
            }
        }
    }
    keys.sort();
    keys.dedup();
    check(&buffer, &model, &keys);
    drop(buffer);
    check(&open(), &model, &keys);
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop::collection::vec(prop::sample::select(vec![0u8, 1, 97, 255]), 0..3);
    let value = || prop::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => key().prop_map(Step::Delete),
        2 => (key(), key()).prop_map(|(from, to)| Step::DeleteRange(from, to)),
        2 => prop::collection::vec((key(), prop::option::of(value())), 0..4)
            .prop_map(Step::Batch),
        1 => Just(Step::Switch),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 10 }))]
    #[test]
    fn buffers_behave_as_maps_with_versions(steps in prop::collection::vec(step(), 0..40)) {
        let (forward, reverse, other): (Arc<dyn Comparator>, Arc<dyn Comparator>, Arc<dyn Comparator>) =
            (Arc::new(Bytewise), Arc::new(ReverseBytewise), Arc::new(ByLength));
        run::<ByteIndex>(&forward, &steps, WriteMode::Parallel);
        run::<ByteIndex>(&reverse, &steps, WriteMode::Serial);
        run::<SkipIndex>(&forward, &steps, WriteMode::Serial);
        run::<SkipIndex>(&reverse, &steps, WriteMode::Parallel);
        run::<SkipIndex>(&other, &steps, WriteMode::UnorderedUnrepeatableReads);
        run::<OrdIndex>(&other, &steps, WriteMode::Parallel);
    }
}

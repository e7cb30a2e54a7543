//! An index under a workload, with the program around it.

use super::host::Host;
use super::logged::Logged;
use super::plan::{Plan, Setup};
use crate::drive::inspected::Inspected;
use crate::drive::keys::BenchKey;
use crate::drive::subject::{Change, Traffic};
use crate::flags::error::Error;
use crate::flags::values::{parse, single};
use crate::interrupt;
use silvics::{AllocError, Compression, Heap};
use silvics_layout::Census;
use silvics_layout::record::Read;
use silvics_pool::Global;
use silvics_workload::{Block, Choice, Mix, Share};
use std::sync::Arc;

/// A loaded index.
pub struct Built<'t, K: BenchKey + ?Sized> {
    traffic: &'t Traffic<K>,
    index: Box<dyn Inspected<K>>,
    host: Host,
    /// The heap of the index and the program, unless the index has pools.
    heap: Option<Arc<Logged>>,
    name: String,
}

/// The keys of an inspection.
pub fn traffic<K: BenchKey + ?Sized>(plan: &Plan) -> Traffic<K> {
    let len = 2 * plan.keys;
    let space = match plan.set {
        Some(set) => K::of_set(set, len, plan.seed),
        None => K::generate(plan.dist, len, K::TYPE),
    };
    Traffic { space, choice: Choice::new(plan.dist, len, plan.seed) }
}

impl Setup {
    /// The name of the index that is inspected.
    pub fn name(&self) -> String {
        self.chosen.name()
    }
}

/// The changes to an index after its load.
pub fn changes<K: BenchKey + ?Sized>(
    plan: &Plan,
    traffic: &Traffic<K>,
) -> impl Iterator<Item = Change> + use<K> {
    come_and_go(traffic.choice.load_part(Share::ALONE).cycle().take(plan.updates))
}

/// Removes keys that are present, and inserts each again after the next one has been removed.
fn come_and_go(positions: impl Iterator<Item = u32>) -> impl Iterator<Item = Change> {
    let mut gone = None;
    positions.map(Some).chain([None]).flat_map(move |next| {
        let back = std::mem::replace(&mut gone, next);
        let changes = [next.map(Change::Remove), back.map(Change::Insert)];
        // A key must be present when it is removed.
        let changes = if next == back { [changes[1], changes[0]] } else { changes };
        changes.into_iter().flatten()
    })
}

/// The heap of the program around an index with these options: the index's own heap, unless it has
/// pools.
pub fn heap_beside(options: &silvics::Options) -> Arc<dyn Heap> {
    options.heap.clone().unwrap_or_else(|| Arc::new(Global))
}

impl<'t, K: BenchKey + ?Sized> Built<'t, K> {
    /// Builds an index and loads it.
    pub fn new(plan: &Plan, setup: &Setup, traffic: &'t Traffic<K>) -> Result<Self, Error> {
        let name = setup.name();
        let failed = |error: AllocError| Error::Alloc { index: name.clone(), error };
        let Some(make) = setup.chosen.inspect::<K>(setup.place) else {
            return Err(Error::KeyType { index: name, key_type: K::TYPE });
        };
        let mut options = setup.place.options(None);
        let beside = heap_beside(&options);
        let heap = (!setup.place.is_pooled()).then(|| Arc::new(Logged::new(Arc::clone(&beside))));
        if let Some(heap) = &heap {
            options.heap = Some(Arc::clone(heap) as Arc<dyn Heap>);
        }
        let beside = options.heap.clone().unwrap_or(beside);
        let host = Host::new(setup.host.clone(), beside, plan.seed);
        let index = make(&options).map_err(failed)?;
        let mut built = Self { traffic, index, host, heap, name: name.clone() };
        built.load(plan).map_err(failed)?;
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        Ok(built)
    }

    fn load(&mut self, plan: &Plan) -> Result<(), AllocError> {
        let held = plan.no_reuse.then(|| self.index.hold());
        let space = &self.traffic.space;
        for position in self.traffic.choice.load_part(Share::ALONE) {
            self.index.insert(K::key(space, position), K::value(space, position))?;
            self.host.allocate()?;
        }
        drop(held);
        for change in changes(plan, self.traffic) {
            match change {
                Change::Remove(position) => _ = self.index.remove(K::key(space, position))?,
                Change::Insert(position) => {
                    self.index.insert(K::key(space, position), K::value(space, position))?;
                }
            }
        }
        Ok(())
    }

    /// Every object of the index, every object of the program, and the free blocks that held
    /// objects before.
    pub fn census(&mut self) -> Result<Census, Error> {
        let wrong = |what| Error::Wrong { index: self.name.clone(), what };
        let mut census = self.index.census().map_err(|violation| wrong(violation.to_string()))?;
        self.host.census(&mut census);
        if let Some(heap) = &self.heap {
            heap.census(&mut census);
        }
        Ok(census)
    }

    /// The nodes that compressed paths save, in an index that has such paths.
    pub fn compression(&mut self) -> Option<Compression> {
        self.index.compression()
    }

    /// Looks up the loaded keys, each once, or at most `most` of them, spread over the load. It
    /// passes the reads of each lookup to `see`.
    pub fn each_key(&self, most: usize, mut see: impl FnMut(&[Read])) -> Result<(), Error> {
        let mut reads = Vec::new();
        let keys = self.traffic.choice.load_part(Share::ALONE);
        let step = keys.len().div_ceil(most).max(1);
        for position in keys.step_by(step) {
            reads.clear();
            let found = self.index.get(K::key(&self.traffic.space, position), &mut reads);
            if found != Some(K::value(&self.traffic.space, position)) {
                let what = format!("key {position} was loaded, and {found:?} was found");
                return Err(Error::Wrong { index: self.name.clone(), what });
            }
            see(&reads);
        }
        if interrupt::pending() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Looks up keys of the distribution until `count` were found, and passes the reads of each of
    /// these lookups to `see`. Each call looks up the same keys.
    pub fn lookups(&self, count: usize, see: impl FnMut(&[Read])) -> Result<(), Error> {
        self.lookups_by(&self.traffic.choice, count, see)
    }

    /// Looks up keys that `choice` chooses from the key space, until `count` were found, or until a
    /// hundred times as many were looked up. It passes the reads of the lookups that found their
    /// key to `see`.
    pub fn lookups_by(
        &self,
        choice: &Choice,
        count: usize,
        mut see: impl FnMut(&[Read]),
    ) -> Result<(), Error> {
        let space = &self.traffic.space;
        let lookups: Mix = single("--lookups", "100/0/0", parse)?;
        let mut stream = choice.stream(lookups, 0, Share::ALONE, choice.start());
        let (mut block, mut reads, mut left) = (Block::new(1), Vec::new(), count);
        let mut tries = 100 * count;
        while left > 0 && tries > 0 && !interrupt::pending() {
            stream.fill(&mut block);
            tries = tries.saturating_sub(block.len());
            for position in block.positions() {
                reads.clear();
                match self.index.get(K::key(space, *position), &mut reads) {
                    None => {}
                    Some(value) if value != K::value(space, *position) => {
                        let what = format!("the value of key {position} is another's");
                        return Err(Error::Wrong { index: self.name.clone(), what });
                    }
                    Some(_) if left == 0 => break,
                    Some(_) => {
                        see(&reads);
                        left -= 1;
                    }
                }
            }
        }
        if interrupt::pending() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The index.
    pub fn index(&self) -> &dyn Inspected<K> {
        &*self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_again_when_the_next_has_gone() {
        use Change::{Insert, Remove};
        let of = |positions: &[u32]| come_and_go(positions.iter().copied()).collect::<Vec<_>>();
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[7]), [Remove(7), Insert(7)]);
        // This happens with fewer keys than updates: a key must be present when it is removed
        // again.
        let changes = [Remove(1), Remove(2), Insert(1), Remove(1), Insert(2), Insert(1)];
        assert_eq!(of(&[1, 2, 1]), changes);
        assert_eq!(of(&[1, 1]), [Remove(1), Insert(1), Remove(1), Insert(1)]);
    }
}

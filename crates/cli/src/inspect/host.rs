//! The program around the index, which allocates objects between inserts.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics::{AllocError, Heap};
use silvics_layout::Census;
use std::alloc::Layout;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::Arc;

/// A kind of objects that the program allocates for each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostKind {
    /// Its name. Names that begin with `lock` are locks. The name is read from the command line
    /// once and lives as long as the command, because heaps may ask for it.
    pub name: &'static str,
    /// The bytes of its objects.
    pub bytes: RangeInclusive<usize>,
}

/// The largest object a program of this kind allocates.
const LARGEST: usize = 1 << 20;

impl HostKind {
    /// Reads `row:64` or `noise:16-256`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a kind of objects: write NAME:BYTES or NAME:LEAST-MOST with 1 to {LARGEST} \
                 bytes, for example row:64 or noise:16-256"
            )
        };
        let (name, bytes) = text.split_once(':').ok_or_else(wrong)?;
        let (least, most) = bytes.split_once('-').unwrap_or((bytes, bytes));
        let bytes = |text: &str| match text.parse() {
            Ok(bytes) if (1..=LARGEST).contains(&bytes) => Ok(bytes),
            _ => Err(wrong()),
        };
        let (least, most) = (bytes(least)?, bytes(most)?);
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(plain) || least > most {
            return Err(wrong());
        }
        Ok(Self { name: name.to_owned().leak(), bytes: least..=most })
    }

    /// Whether its objects are locks.
    pub fn is_lock(&self) -> bool {
        self.name.starts_with("lock")
    }
}

/// The program.
pub struct Host {
    kinds: Vec<HostKind>,
    heap: Arc<dyn Heap>,
    objects: Vec<(u32, NonNull<u8>, Layout)>,
    rng: Xoshiro256PlusPlus,
}

impl Host {
    /// A program that has not yet allocated from this heap.
    pub fn new(kinds: Vec<HostKind>, heap: Arc<dyn Heap>, seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { kinds, heap, objects: Vec::new(), rng }
    }

    /// Allocates an object of each kind, as for one key, and writes to it.
    pub fn allocate(&mut self) -> Result<(), AllocError> {
        for (number, kind) in self.kinds.iter().enumerate() {
            let span = (kind.bytes.end() - kind.bytes.start() + 1) as u64;
            let bytes = kind.bytes.start() + (self.rng.next_u64() % span) as usize;
            let refused = AllocError::System { requested: bytes };
            let layout = Layout::from_size_align(bytes, 8).map_err(|_| refused)?;
            let object = self.heap.alloc(kind.name, layout).ok_or(refused)?;
            // SAFETY: the object was allocated just now with this many bytes, and nothing else
            // refers to it.
            unsafe { object.write_bytes(1, bytes) };
            self.objects.push((number as u32, object, layout));
        }
        Ok(())
    }

    /// Adds its objects to a census.
    pub fn census(&self, census: &mut Census) {
        let ids: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| {
                // A lookup of the index reads none of the objects. All bytes of a lock count.
                let hot = if kind.is_lock() { None } else { Some(Vec::new()) };
                let id = census.kind(kind.name, hot);
                if kind.is_lock() {
                    census.are_locks(id);
                }
                id
            })
            .collect();
        for (kind, object, layout) in &self.objects {
            census.add_sized(ids[*kind as usize], object.addr().get(), layout.size());
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for (kind, object, layout) in self.objects.drain(..) {
            let name = self.kinds[kind as usize].name;
            // SAFETY: allocated with this kind and layout, freed once.
            unsafe { self.heap.free(name, object, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics::{Pages, SizeClassHeap};

    #[test]
    fn kinds_are_read_or_refused() {
        let kind = |name, bytes| Ok(HostKind { name, bytes });
        assert_eq!(HostKind::parse("row:64"), kind("row", 64..=64));
        assert_eq!(HostKind::parse("noise:16-256"), kind("noise", 16..=256));
        for wrong in ["row", "row:", ":64", "row:0", "row:9-8", "row:2M", "a b:8", "x:1-2-3"] {
            let problem = HostKind::parse(wrong).unwrap_err();
            assert!(problem.starts_with(&format!("`{wrong}` is not a kind")), "{problem}");
        }
    }

    #[test]
    fn each_key_gets_an_object_of_each_kind() {
        let heap = Arc::new(SizeClassHeap::new(Pages::Small));
        let kinds = ["row:64", "noise:16-256", "lock:48"];
        let kinds = kinds.map(|kind| HostKind::parse(kind).unwrap()).to_vec();
        let mut host = Host::new(kinds, heap, 1);
        for _ in 0..1000 {
            host.allocate().unwrap();
        }
        let mut census = Census::default();
        host.census(&mut census);
        assert_eq!(census.kinds().collect::<Vec<_>>(), ["row", "noise", "lock"]);
        let of = |kind: &'static str| census.objects().filter(move |object| object.0 == kind);
        assert_eq!((of("row").count(), of("lock").count()), (1000, 1000));
        let (least, most) = (of("noise").map(|o| o.2).min(), of("noise").map(|o| o.2).max());
        assert!(least >= Some(16) && least < Some(20) && most > Some(250) && most <= Some(256));
    }
}

//! Every index the command knows.
//!
//! | module | holds |
//! |---|---|
//! | `ours` | the indexes of this library |
//! | `peers` | the ordered maps of other crates |
//! | `foreign` | the entries of maps with the traits of peers |
//! | `select` | reads `--index`: which of them are meant |

mod foreign;
mod ours;
#[cfg(feature = "peers")]
mod peers;
pub mod select;

use crate::contender::Upserts;
use crate::drive::inspected::Inspected;
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::place;
use crate::flags::types::{KeyType, Types};
use silvics::{AllocError, Options};
use silvics_layout::NodeLayout;
use silvics_testkit::clock::Clock;
use silvics_testkit::verify;
use std::any::Any;
use std::sync::LazyLock;

/// An index of ours, or a peer.
pub struct Entry {
    /// Its name on the command line.
    pub name: String,
    /// Its origin: the crate and its version.
    pub origin: &'static str,
    /// The publication of the algorithm; empty if there is none.
    pub paper: &'static str,
    /// Its shape.
    pub topology: &'static str,
    /// How its threads synchronise.
    pub sync: &'static str,
    /// The groups that it belongs to, beside `all`.
    pub groups: &'static [&'static str],
    /// The longest byte key it takes, if there is a limit.
    pub max_key_bytes: Option<usize>,
    /// Its upserts.
    pub upserts: Upserts,
    /// Its variants, the default one first.
    pub variants: Vec<Variant>,
}

/// A variant of an index: the same algorithm with another policy.
pub struct Variant {
    /// Its name after the colon.
    pub name: &'static str,
    /// Its constructor for these types of keys and values and this place of the nodes. `None` if
    /// the variant has none. A peer places its nodes itself, and has constructors for
    /// [`Nodes::Pooled`] alone.
    pub make: fn(Types, Nodes) -> Option<AnyMaker>,
    /// The objects that it allocates, beginning with those that a search passes through. Empty for
    /// peers, whose objects are not known.
    pub objects: &'static [NodeLayout],
    /// The oversights that the ATC'18 study found in it.
    pub oversights: &'static [&'static str],
    /// Whether it takes lookups only after its load.
    pub lookups_only: bool,
    /// Whether `silvics inspect` advises it to users of another variant.
    pub advice: Advice,
    /// The type of the index for keys of a type, as the table of structures has it.
    pub rust: Option<fn(KeyType) -> Option<&'static str>>,
}

/// Whether a variant is advised to users of another variant that is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advice {
    /// Before all others: the variant that fixes what the study found.
    First,
    /// After that.
    Next,
    /// Never: it is worse than another variant, on purpose.
    Never,
}

impl Variant {
    /// Whether it adapts its shape to contention.
    pub fn adapts(&self) -> bool {
        let makers = KeyType::OF_INDEXES
            .into_iter()
            .filter_map(|key_type| (self.make)(Types::words(key_type), Nodes::Pooled));
        makers.fold(false, |some, maker| some | maker.adapts)
    }

    /// Whether there is a constructor for these types, in some place.
    pub fn takes(&self, types: Types) -> bool {
        [Nodes::Pooled, Nodes::Shared].into_iter().any(|nodes| (self.make)(types, nodes).is_some())
    }
}

/// The place of an index's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// In a pool for each kind of object.
    Pooled,
    /// In an allocator that all kinds share.
    Shared,
}

/// The constructors of an index with keys of type `K`.
pub struct Maker<K: BenchKey + ?Sized> {
    /// Makes an index to be measured.
    pub subject: Make<K>,
    /// Whether the index can scan.
    pub scans: bool,
    /// Whether the index adapts its shape to contention, and tells it.
    pub adapts: bool,
    /// Records histories of the index and checks them. `None` for peers.
    pub verify: Option<Verify>,
    /// Makes an index whose reads are recorded. `None` where reads cannot be recorded.
    pub inspect: Option<Inspect<K>>,
}

/// A [`Maker`] for some type of keys.
pub struct AnyMaker {
    /// See [`Maker::scans`].
    pub scans: bool,
    /// See [`Maker::adapts`].
    pub adapts: bool,
    /// See [`Maker::verify`].
    pub verify: Option<Verify>,
    /// Whether there is a constructor of an index whose reads are recorded.
    pub inspects: bool,
    maker: Box<dyn Any>,
}

impl AnyMaker {
    /// The constructors, for keys of type `K`. `None` if they are for another type.
    pub fn keyed<K: BenchKey + ?Sized>(self) -> Option<Maker<K>> {
        self.maker.downcast().ok().map(|maker| *maker)
    }
}

impl<K: BenchKey + ?Sized> From<Maker<K>> for AnyMaker {
    fn from(maker: Maker<K>) -> Self {
        let Maker { scans, adapts, verify, inspect, .. } = maker;
        Self { scans, adapts, verify, inspects: inspect.is_some(), maker: Box::new(maker) }
    }
}

/// Records and checks histories.
pub type Verify = fn(&verify::Plan, &Clock) -> verify::Report;

/// A constructor of an index whose reads are recorded.
pub type Inspect<K> = fn(&Options) -> Result<Box<dyn Inspected<K>>, AllocError>;

/// A constructor.
pub type Make<K> = fn(&Options) -> Result<Subject<K>, AllocError>;

/// The name of the only variant of an index without any.
pub const DEFAULT_VARIANT: &str = "default";

impl Entry {
    /// Whether it is a structure of another crate.
    pub fn is_peer(&self) -> bool {
        self.groups.contains(&"peers")
    }

    /// The key types it takes, by name.
    pub fn keys(&self) -> Vec<&'static str> {
        let taken = KeyType::OF_INDEXES.into_iter().filter(|&key_type| self.takes(key_type));
        taken.map(KeyType::name).collect()
    }

    /// The key types it can scan, by name.
    pub fn ranges(&self) -> Vec<&'static str> {
        let scanned = KeyType::OF_INDEXES.into_iter().filter(|&key_type| self.scans(key_type));
        scanned.map(KeyType::name).collect()
    }

    /// Whether it can scan keys of a type.
    pub fn scans(&self, key_type: KeyType) -> bool {
        let makers = self.variants.iter().filter_map(|variant| {
            (variant.make)(Types::words(key_type), Nodes::Pooled).map(|maker| maker.scans)
        });
        makers.fold(false, |some, scans| some | scans)
    }

    /// Whether it takes keys of a type.
    pub fn takes(&self, key_type: KeyType) -> bool {
        self.variants.iter().any(|variant| variant.takes(Types::words(key_type)))
    }

    /// The names of the places that its nodes can have. A peer places its nodes itself.
    pub fn placements(&self) -> Vec<&'static str> {
        let can_share = self.variants.iter().any(|variant| {
            let types = KeyType::OF_INDEXES.map(Types::words);
            types.into_iter().any(|types| (variant.make)(types, Nodes::Shared).is_some())
        });
        match (self.is_peer(), can_share) {
            (true, _) => vec!["own"],
            (false, true) => place::names(),
            (false, false) => vec!["pooled"],
        }
    }
}

/// All indexes, those of this library first.
pub fn all() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let entries = ours::entries();
        #[cfg(feature = "peers")]
        let entries = [entries, peers::entries()].into_iter().flatten().collect();
        entries
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::types::ValueType;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_every_entry_can_be_made() {
        let names: HashSet<&str> = all().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), all().len());
        for entry in all() {
            assert!(!entry.keys().is_empty(), "{}", entry.name);
            assert!(!entry.topology.is_empty() && !entry.sync.is_empty());
            for variant in &entry.variants {
                let mut made = 0;
                for nodes in [Nodes::Pooled, Nodes::Shared] {
                    made += usize::from(makes::<u64>(variant, KeyType::U64, nodes));
                    made += usize::from(makes::<u128>(variant, KeyType::U128, nodes));
                    made += usize::from(makes::<[u8]>(variant, KeyType::Bytes, nodes));
                    made += usize::from(makes::<[u8]>(variant, KeyType::String, nodes));
                }
                assert!(made > 0, "{}:{}", entry.name, variant.name);
            }
        }
    }

    /// Whether a variant has constructors for a type of keys. Those that it has must work, and be
    /// for this type.
    fn makes<K: BenchKey + ?Sized>(variant: &Variant, key: KeyType, nodes: Nodes) -> bool {
        let values = [ValueType::U64, ValueType::Arc];
        let makers = values.map(|value| (variant.make)(Types { key, value }, nodes));
        let makers: Vec<AnyMaker> = makers.into_iter().flatten().collect();
        let some = !makers.is_empty();
        for maker in makers {
            let maker = maker.keyed::<K>().unwrap();
            let options = Options::default();
            assert!((maker.subject)(&options).is_ok());
            assert!(maker.inspect.is_none_or(|make| make(&options).is_ok()));
        }
        some
    }
}

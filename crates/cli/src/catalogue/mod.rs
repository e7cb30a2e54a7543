//! Every index the command knows.
//!
//! | module | holds |
//! |---|---|
//! | `ours` | the indexes of this library |
//! | `peers` | the ordered maps of other crates |
//! | `select` | reads `--index`: which of them are meant |

mod ours;
#[cfg(feature = "peers")]
mod peers;
pub mod select;

use crate::drive::inspected::Inspected;
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::place;
use crate::flags::types::{KeyType, Types};
use silvics::{AllocError, Options};
use silvics_layout::NodeLayout;
use silvics_testkit::clock::Clock;
use silvics_testkit::verify;
use std::sync::LazyLock;

/// An index of ours, or a peer.
pub struct Entry {
    /// As it is named on the command line.
    pub name: String,
    /// Where it comes from: the crate and its version for a peer.
    pub origin: &'static str,
    /// Where the algorithm was published; empty if nowhere.
    pub paper: &'static str,
    /// The shape.
    pub topology: &'static str,
    /// How threads get along.
    pub sync: &'static str,
    /// Whether it can scan, by key type.
    pub ranges: Ranges,
    /// Which groups, beside `all`, it belongs to.
    pub groups: &'static [&'static str],
    /// The longest byte key it takes, if there is a limit.
    pub max_key_bytes: Option<usize>,
    /// Its variants, the default one first.
    pub variants: Vec<Variant>,
}

/// A variant of an index: the same algorithm with another policy.
pub struct Variant {
    /// Its name after the colon.
    pub name: &'static str,
    /// With a pool per object kind; a peer the way it always is.
    pub own: Makers,
    /// With everything from the global allocator, where that can be chosen.
    pub shared: Option<Makers>,
    /// What it allocates: first what a search passes through. Of a peer nothing is known.
    pub objects: &'static [NodeLayout],
    /// What the study found to be amiss with it.
    pub oversights: &'static [&'static str],
    /// Whether nothing can be written once it is loaded.
    pub lookups_only: bool,
}

/// For which key types an index can scan.
#[derive(Clone, Copy, Default)]
pub struct Ranges {
    /// For 64-bit words.
    pub word: bool,
    /// For byte strings.
    pub bytes: bool,
}

/// Constructors, by key type.
#[derive(Clone, Copy, Default)]
pub struct Makers {
    /// For 64-bit words.
    pub word: Option<Make<u64>>,
    /// For byte strings.
    pub bytes: Option<Make<[u8]>>,
    /// What records and checks histories, by the same.
    pub verify_word: Option<Verify>,
    /// For byte strings.
    pub verify_bytes: Option<Verify>,
    /// Of a map of any types: for others than the above.
    pub maps: Maps,
    /// What makes one whose reads are recorded, for 64-bit words.
    pub inspect_word: Option<Inspect<u64>>,
    /// For byte strings.
    pub inspect_bytes: Option<Inspect<[u8]>>,
}

/// Constructors of maps, by the types of their keys and values.
#[derive(Clone, Copy, Default)]
pub struct Maps {
    /// From words to `Arc<[u8]>`.
    pub word_arc: Option<Make<u64>>,
    /// From byte strings to `Arc<[u8]>`.
    pub bytes_arc: Option<Make<[u8]>>,
    /// From `String` to words.
    pub string: Option<Make<[u8]>>,
    /// From `String` to `Arc<[u8]>`.
    pub string_arc: Option<Make<[u8]>>,
}

impl Makers {
    /// Whether there is one for these types.
    pub fn make(&self, types: Types) -> bool {
        match types.key {
            KeyType::U64 => <u64 as BenchKey>::make(self, types).is_some(),
            KeyType::Bytes | KeyType::String => <[u8] as BenchKey>::make(self, types).is_some(),
        }
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
        [KeyType::U64, KeyType::Bytes]
            .into_iter()
            .filter(|&key_type| self.takes(key_type))
            .map(KeyType::name)
            .collect()
    }

    /// The key types it can scan, by name.
    pub fn ranges(&self) -> Vec<&'static str> {
        let scanned = [KeyType::U64, KeyType::Bytes].into_iter().filter(|&t| self.scans(t));
        scanned.map(KeyType::name).collect()
    }

    /// Whether it can scan keys of a type.
    pub fn scans(&self, key_type: KeyType) -> bool {
        match key_type {
            KeyType::U64 => self.ranges.word,
            KeyType::Bytes | KeyType::String => self.ranges.bytes,
        }
    }

    /// Whether it takes keys of a type.
    pub fn takes(&self, key_type: KeyType) -> bool {
        self.variants.iter().any(|variant| variant.own.make(Types::words(key_type)))
    }

    /// Where its nodes can live, by name. Peers place theirs themselves.
    pub fn placements(&self) -> Vec<&'static str> {
        let can_share = self.variants.iter().any(|variant| variant.shared.is_some());
        match (self.is_peer(), can_share) {
            (true, _) => vec!["own"],
            (false, true) => place::names(),
            (false, false) => vec!["pooled"],
        }
    }
}

/// All of them, ours first.
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
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_every_entry_can_be_made() {
        let names: HashSet<&str> = all().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), all().len());
        for entry in all() {
            assert!(!entry.keys().is_empty(), "{}", entry.name);
            assert!(!entry.topology.is_empty() && !entry.sync.is_empty());
            for variant in &entry.variants {
                for makers in [Some(variant.own), variant.shared].into_iter().flatten() {
                    let options = Options::default();
                    if let Some(make) = makers.word {
                        assert!(make(&options).is_ok());
                    }
                    if let Some(make) = makers.bytes {
                        assert!(make(&options).is_ok());
                    }
                }
            }
        }
    }
}

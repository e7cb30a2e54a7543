//! The facts of the rows of the table.

use crate::index::Objects;
use silvics_layout::NodeLayout;

/// A structure: one row of the table.
#[derive(Clone, Copy, Debug)]
pub struct StructureFacts {
    /// The name in the catalogue.
    pub name: &'static str,
    /// The groups of the catalogue that the structure belongs to, besides `ours`.
    pub groups: &'static [&'static str],
    /// The capabilities of the structure.
    pub capability: Capability,
    /// The publication of the algorithm.
    pub paper: &'static str,
    /// The shape.
    pub topology: &'static str,
    /// The means of synchronisation.
    pub sync: &'static str,
    /// The progress guarantee.
    pub progress: &'static str,
    /// The scans; their guarantee is that of [`OrderedScan`](crate::OrderedScan).
    pub scans: &'static str,
    /// The folder of the module, in `crates/silvics/src`.
    pub page: &'static str,
    /// The tests that check the structure.
    pub checked: &'static str,
    /// The length of the longest byte key, if there is a limit.
    pub max_key_bytes: Option<usize>,
    /// The builds, the default one first.
    pub builds: &'static [Build],
}

/// A build of a structure: the same algorithm under another policy.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The name after the colon.
    pub name: &'static str,
    /// The oversights that the ATC'18 study found in it.
    pub oversights: &'static [&'static str],
    /// The types of keys: `u64_keys`, `u128_keys`, `byte_keys`.
    pub keys: &'static [&'static str],
    /// The name of the type, with its parameters.
    pub types: &'static [&'static str],
    /// The objects that the build allocates with its first type of keys.
    pub objects: &'static [NodeLayout],
}

/// The capabilities of a structure. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Operations on single keys, and batches.
    Points,
    /// Ranges and cursors.
    Scans,
    /// The first and the last entry.
    Ends,
    /// Atomic reads of ranges.
    Atomic,
    /// Atomic updates of ranges.
    Updates,
}

macro_rules! facts {
    (() $({
        ident: $structure:ident, name: $name:literal, groups: [$($group:literal),*],
        caps: $caps:ident, paper: $paper:literal, topology: $topology:literal,
        sync: $sync:literal, progress: $progress:literal, scans: $scans:literal,
        page: $page:literal, checked: $checked:literal, max_key_bytes: $max:expr,
        builds: { $({
            ident: $build:ident, name: $build_name:literal,
            oversights: [$($oversight:literal),*], runs: $runs:ident, faults: $faults:ident,
            types: { $first:ident: $index:ty, $($keys:ident: $other:ty,)* }
        })+ }
    })+) => {
        /// The rows of the table.
        pub const STRUCTURES: &[StructureFacts] = &[$(StructureFacts {
            name: $name,
            groups: &[$($group),*],
            capability: facts!(@ $caps),
            paper: $paper,
            topology: $topology,
            sync: $sync,
            progress: $progress,
            scans: $scans,
            page: $page,
            checked: $checked,
            max_key_bytes: $max,
            builds: &[$(Build {
                name: $build_name,
                oversights: &[$($oversight),*],
                keys: &[stringify!($first), $(stringify!($keys)),*],
                types: &[stringify!($index), $(stringify!($other)),*],
                objects: <$index>::OBJECTS,
            }),+],
        }),+];
    };
    (@ points) => { Capability::Points };
    (@ scans) => { Capability::Scans };
    (@ ends) => { Capability::Ends };
    (@ atomic) => { Capability::Atomic };
    (@ updates) => { Capability::Updates };
}

crate::for_each_structure!((facts));

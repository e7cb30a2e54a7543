//! The facts about a peer.

use crate::contender::{Contender, Upserts};

/// The facts about a peer in the catalogue. `default()` is an empty map.
pub trait Peer: Contender + Default {
    /// Its name on the command line, without `peer:`.
    const NAME: &'static str;
    /// The crate it comes from, with the version.
    const CRATE: &'static str;
    /// The publication it follows by its own account; empty if it names none.
    const PAPER: &'static str;
    /// Its topology.
    const TOPOLOGY: &'static str;
    /// How its readers and writers synchronise.
    const SYNC: &'static str;
    /// Whether sessions may be asked to scan. Differs between key types for `masstree`.
    const SCANS: bool;
    /// Its upserts.
    const UPSERTS: Upserts = Upserts::Any;
    /// The longest byte string it takes as a key; `None` if there is no limit, or if its keys are
    /// integers. A longer one makes it panic.
    const MAX_KEY_BYTES: Option<usize>;
}

//! The keys of peers, as they are borrowed.

use crate::drive::keys::BenchKey;
use std::borrow::Borrow;

/// A key that can be borrowed as the `&Q` of `Borrow`-style signatures.
pub trait PeerKey: BenchKey<Owned: Borrow<Self>> + Ord {
    /// The key behind a reference.
    fn lend<'a>(key: &'a Self::Ref<'_>) -> &'a Self;
}

impl PeerKey for u64 {
    #[inline(always)]
    fn lend(key: &u64) -> &u64 {
        key
    }
}

impl PeerKey for [u8] {
    #[inline(always)]
    fn lend<'a>(key: &'a &[u8]) -> &'a [u8] {
        key
    }
}

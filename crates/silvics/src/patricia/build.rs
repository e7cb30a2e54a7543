//! The builds of nodes, and the alphabets.

use super::compact::CompactNodes;
use super::digit_set::{Bytes, DigitSet, Few, Sixteen};
use super::key::PatriciaKey;
use super::node::Nodes;
use super::paper::PaperNodes;
use super::sync::NodeLock;

/// A build of nodes. Sealed.
pub trait Build: private::Sealed + 'static {
    /// The nodes of a trie with these keys and locks.
    #[doc(hidden)]
    type Nodes<K: PatriciaKey + ?Sized, L: NodeLock>: Nodes<Key = K, Lock = L>;
}

/// The paper's nodes: 32 bytes and a pointer for each of the `A` characters of the alphabet. See
/// the [module](super).
#[derive(Clone, Copy, Debug)]
pub struct Paper<const A: usize>;

/// Nodes that are as large as what they hold. See the [module](super).
#[derive(Clone, Copy, Debug)]
pub struct Compact<const A: usize>;

/// An alphabet of `A` characters, which is 2, 4, 16 or 256.
#[derive(Clone, Copy, Debug)]
pub struct Alphabet<const A: usize>;

/// The size of an alphabet. Sealed.
pub trait AlphabetSize: private::Sealed + 'static {
    /// The digits that have a slot.
    #[doc(hidden)]
    type Digits: DigitSet;
    /// The bits of a character.
    #[doc(hidden)]
    const BITS: u32;
}

mod private {
    pub trait Sealed {}
    impl<const A: usize> Sealed for super::Paper<A> {}
    impl<const A: usize> Sealed for super::Compact<A> {}
    impl<const A: usize> Sealed for super::Alphabet<A> {}
}

impl AlphabetSize for Alphabet<2> {
    type Digits = Few;
    const BITS: u32 = 1;
}

impl AlphabetSize for Alphabet<4> {
    type Digits = Few;
    const BITS: u32 = 2;
}

impl AlphabetSize for Alphabet<16> {
    type Digits = Sixteen;
    const BITS: u32 = 4;
}

impl AlphabetSize for Alphabet<256> {
    type Digits = Bytes;
    const BITS: u32 = 8;
}

impl<const A: usize> Build for Paper<A>
where
    Alphabet<A>: AlphabetSize,
{
    type Nodes<K: PatriciaKey + ?Sized, L: NodeLock> = PaperNodes<K, L, A>;
}

impl<const A: usize> Build for Compact<A>
where
    Alphabet<A>: AlphabetSize,
{
    type Nodes<K: PatriciaKey + ?Sized, L: NodeLock> = CompactNodes<K, L, A>;
}

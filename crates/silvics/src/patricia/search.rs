//! The descent that all operations share: the paper's `search`.

use super::Patricia;
use super::build::Build;
use super::digits::{chars, digit};
use super::key::PatriciaKey;
use super::node::{Node, Nodes, Slot};
use super::policy::Policy;
use super::retry::{Abort, Level, Section, Tries};
use super::sync::{Coupled, Held, Mode};
use super::transaction::Transactions as _;
use crate::domain::Guard;
use silvics_pool::Placement;

/// The nodes of a trie.
pub(super) type NodesOf<K, B, S> = <B as Build>::Nodes<K, <S as Policy>::Lock>;

/// A place above the node where a search ended: a node, or the top of the trie.
pub(super) struct Above<'g, N: Nodes> {
    pub(super) held: Held<'g, N::Lock>,
    /// The node; none at the top of the trie.
    pub(super) node: Option<Node<'g, N>>,
    /// The first character of the node's label.
    pub(super) from: u32,
    /// The digit of the child on the path, and the slot that leads to it.
    pub(super) digit: u32,
    pub(super) slot: &'g Slot,
}

/// The node where a search ended.
pub(super) struct Here<'g, N: Nodes> {
    pub(super) held: Held<'g, N::Lock>,
    pub(super) node: Node<'g, N>,
    /// The first character of the node's label.
    pub(super) from: u32,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The node's path is the key.
    Exact,
    /// The node's path is a prefix of the key. The node has no child for the key's next digit.
    Missing(u32),
    /// The key differs from the node's path in this character, or ends there.
    Differs(u32),
}

/// The part of the path that a search keeps.
pub(super) trait Trail<'g, N: Nodes>: Sized {
    /// Whether the search is a lookup, which may skip labels.
    const LOOKUP: bool;

    /// Begins at the top of the trie.
    fn begin(top: Above<'g, N>) -> Self;
    /// Goes on below another node.
    fn pass(&mut self, above: Above<'g, N>);
    /// The hold on the parent.
    fn parent(&self) -> &Held<'g, N::Lock>;
}

/// A lookup keeps the hold on the parent until it is in the child.
pub(super) struct Glance<'g, N: Nodes>(Held<'g, N::Lock>);

impl<'g, N: Nodes> Trail<'g, N> for Glance<'g, N> {
    const LOOKUP: bool = true;

    #[inline(always)]
    fn begin(top: Above<'g, N>) -> Self {
        Self(top.held)
    }
    #[inline(always)]
    fn pass(&mut self, above: Above<'g, N>) {
        self.0 = above.held;
    }
    #[inline(always)]
    fn parent(&self) -> &Held<'g, N::Lock> {
        &self.0
    }
}

/// A writer keeps parent and grandparent.
pub(super) struct Ancestors<'g, N: Nodes> {
    pub(super) parent: Above<'g, N>,
    pub(super) grandparent: Option<Above<'g, N>>,
}

impl<'g, N: Nodes> Trail<'g, N> for Ancestors<'g, N> {
    const LOOKUP: bool = false;

    #[inline(always)]
    fn begin(top: Above<'g, N>) -> Self {
        Self { parent: top, grandparent: None }
    }
    #[inline(always)]
    fn pass(&mut self, above: Above<'g, N>) {
        self.grandparent = Some(std::mem::replace(&mut self.parent, above));
    }
    #[inline(always)]
    fn parent(&self) -> &Held<'g, N::Lock> {
        &self.parent.held
    }
}

/// The result of a search, with grandparent, parent and node held: the paper's `pt_result_t`.
pub(super) struct Found<'g, N: Nodes, T> {
    pub(super) trail: T,
    /// The node; none if the trie is empty.
    pub(super) here: Option<(Here<'g, N>, End)>,
}

impl<K, B, S, P> Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    const BITS: u32 = NodesOf::<K, B, S>::BITS;

    /// Finds the node where the path of a key ends, entering each node before it leaves the one
    /// above.
    ///
    /// It has validated the last node, unless the path is the key: then the caller validates when
    /// it has read the value.
    ///
    /// A lookup does not compare labels if each entry has its whole key. Then `Exact` says only
    /// that the node's path has the key's length, and that the compared characters are the key's.
    #[inline(always)]
    pub(super) fn search<'g, M, T>(
        &'g self,
        key: &[u8],
        _guard: &'g Guard,
    ) -> Result<Found<'g, NodesOf<K, B, S>, T>, Abort>
    where
        M: Mode<S::Lock>,
        T: Trail<'g, NodesOf<K, B, S>>,
    {
        let skips = T::LOOKUP && NodesOf::<K, B, S>::SKIPS;
        let chars = chars(Self::BITS, key.len());
        let held = M::enter(&self.top.lock)?;
        // SAFETY: I4: the guard is of the trie's domain.
        let root = unsafe { self.top.root.load::<NodesOf<K, B, S>>() };
        let top = Above { held, node: None, from: 0, digit: 0, slot: &self.top.root };
        let (mut trail, mut from) = (T::begin(top), 0);
        let Some(mut node) = root else {
            trail.parent().validate()?;
            return Ok(Found { trail, here: None });
        };
        loop {
            let held = M::enter(NodesOf::<K, B, S>::lock(node))?;
            trail.parent().validate()?;
            let end = NodesOf::<K, B, S>::end(node);
            let differs = if skips {
                (end > chars || node.is_leaf() && end != chars).then_some(chars.min(end))
            } else {
                let label = NodesOf::<K, B, S>::label(node, from);
                label.differs(Self::BITS, key, from, end)
            };
            if differs.is_some() || end >= chars {
                P::saw(|| NodesOf::<K, B, S>::reads(node, None));
                let end = differs.map_or(End::Exact, End::Differs);
                if end != End::Exact {
                    held.validate()?;
                }
                return Ok(Found { trail, here: Some((Here { held, node, from }, end)) });
            }
            let digit = digit(Self::BITS, key, end);
            P::saw(|| NodesOf::<K, B, S>::reads(node, Some(digit)));
            let slot = NodesOf::<K, B, S>::slot(node, digit);
            // SAFETY: I4: the slot is in a node that was found under the guard.
            let child = slot.and_then(|slot| unsafe { slot.load() }.map(|child| (slot, child)));
            let Some((slot, child)) = child else {
                held.validate()?;
                let here = Here { held, node, from };
                return Ok(Found { trail, here: Some((here, End::Missing(digit))) });
            };
            NodesOf::<K, B, S>::prefetch(child);
            trail.pass(Above { held, node: Some(node), from, digit, slot });
            (node, from) = (child, end + 1);
        }
    }

    /// One try of a lookup.
    #[inline(always)]
    fn try_find<M: Mode<S::Lock>>(&self, key: &[u8], guard: &Guard) -> Result<Option<u64>, Abort> {
        let found = self.search::<M, Glance<'_, _>>(key, guard)?;
        let Some((Here { held, node, .. }, End::Exact)) = found.here else { return Ok(None) };
        let is_entry = !NodesOf::<K, B, S>::SKIPS || NodesOf::<K, B, S>::has_key(node, key);
        let value = if is_entry { NodesOf::<K, B, S>::value(node) } else { None };
        held.validate()?; // LP(get): see the module docs
        Ok(value)
    }

    /// One try of a lookup, at a level.
    #[inline(always)]
    fn try_find_at(&self, level: Level, key: &[u8], guard: &Guard) -> Result<Option<u64>, Abort> {
        match level {
            Level::Transaction => {
                let section = || self.try_find::<S::InTransaction>(key, guard);
                S::Transactions::run(&self.retries, section)
            }
            Level::Optimistic => self.try_find::<S::Fast>(key, guard),
            Level::Locked => self.try_find::<Coupled>(key, guard),
        }
    }

    /// The level of the first try of an operation.
    #[inline(always)]
    pub(super) fn first_level() -> Level {
        if S::Transactions::ARE_THERE && S::Transactions::can_run() {
            Level::Transaction
        } else {
            Level::Optimistic
        }
    }

    /// The value of a key: the paper's `find_string`. The guard is of the trie's domain.
    #[inline(always)]
    pub(super) fn find(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        let bytes = K::bytes(key);
        match self.try_find_at(Self::first_level(), bytes.as_ref(), guard) {
            Ok(value) => value,
            Err(abort) => self.find_again(bytes.as_ref(), abort, guard),
        }
    }

    /// The value of a key, after a try has been aborted.
    #[cold]
    #[inline(never)]
    fn find_again(&self, key: &[u8], abort: Abort, guard: &Guard) -> Option<u64> {
        let (mut tries, mut abort) = (Tries::new(Self::first_level()), abort);
        loop {
            self.retries.aborted(&mut tries, Section::Read, abort);
            match self.try_find_at(tries.level, key, guard) {
                Ok(value) => {
                    self.retries.done(&tries);
                    return value;
                }
                Err(another) => abort = another,
            }
        }
    }
}

//! Ranges in both directions, by the list.
//!
//! A scan starts with a search. From then on each node at which it stands was in the list at some
//! moment since the scan began (I5, I6). From such a node `a` it moves on to the `b` that `a` leads
//! to: if `a` is still in the list, nothing is between the two at that moment; if not, nothing was
//! when `a` left it, which was during the scan. Either way a key between the two was absent at some
//! moment of the scan. The link to `pred` may lag behind an insertion that is not complete; so a
//! descending scan follows it and then comes forward again as far as it can: `before` in `ops.rs`.
//! The value of a node that is given was the key's at that moment ([`Node::state`]).

use super::Drachsler;
use super::build::Build;
use super::node::Node;
use super::ops::Place;
use crate::bst::Keys;
use crate::bst::build::Fixed;
use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::frame::{AlgorithmBounds, Index, Ordered};
use silvics_pool::{Placement, Pooled};
use std::sync::Arc;

/// The position of a scan.
enum At<'g, W> {
    /// At a node it has given, or does not want.
    Past(&'g Node<W>),
    /// At a node it is to look at next.
    Before(&'g Node<W>),
    Over,
}

/// An ascending scan of a [`DrachslerTree`](super::DrachslerTree); see
/// [`OrderedScan`](crate::OrderedScan) for what it promises.
pub struct Range<'g, P: Placement = Pooled, B: Build = Fixed> {
    tree: &'g Drachsler<P, B>,
    at: At<'g, B::Words>,
    last: u64,
}

/// A descending scan of a [`DrachslerTree`](super::DrachslerTree); see
/// [`OrderedScan`](crate::OrderedScan) for what it promises.
pub struct RangeRev<'g, P: Placement = Pooled, B: Build = Fixed> {
    tree: &'g Drachsler<P, B>,
    guard: &'g Guard,
    at: At<'g, B::Words>,
    first: u64,
}

impl<P: Placement, B: Build> Ordered for Drachsler<P, B> {
    type OrderedAt<Q: Placement> = Drachsler<Q, B>;
    type Range<'g> = Range<'g, P, B>;
    type RangeRev<'g> = RangeRev<'g, P, B>;

    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> Range<'g, P, B> {
        let keys = Keys::within(&bounds);
        let at = keys.map_or(At::Over, |keys| match self.locate(keys.first(), guard) {
            Place::Node(node) => At::Before(node),
            Place::Gap { succ, .. } => At::Before(succ),
        });
        Range { tree: self, at, last: keys.map_or(0, Keys::last) }
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> RangeRev<'g, P, B> {
        let keys = Keys::within(&bounds);
        let at = keys.map_or(At::Over, |keys| match self.locate(keys.last(), guard) {
            Place::Node(node) => At::Before(node),
            Place::Gap { pred, .. } => At::Before(pred),
        });
        RangeRev { tree: self, guard, at, first: keys.map_or(0, Keys::first) }
    }

    fn cursor(index: Arc<Index<Self>>) -> KeyCursor<Index<Self>> {
        KeyCursor::new(index)
    }
}

impl<P: Placement, B: Build> Iterator for Range<'_, P, B> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let node = match std::mem::replace(&mut self.at, At::Over) {
                // SAFETY: I6: the scan has come to `node` by a walk under the guard of `'g`, so it
                // was in the list.
                At::Past(node) => unsafe { node.succ() },
                At::Before(node) => node,
                At::Over => return None,
            };
            let key = node.key();
            if node.is(self.tree.tail()) || key > self.last {
                return None;
            }
            self.at = At::Past(node);
            if let Some(value) = node.state() {
                return Some((key, value));
            }
        }
    }
}

impl<P: Placement, B: Build> Iterator for RangeRev<'_, P, B> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let node = match std::mem::replace(&mut self.at, At::Over) {
                At::Past(node) => self.tree.before(node, self.guard),
                At::Before(node) => node,
                At::Over => return None,
            };
            let key = node.key();
            if node.is(self.tree.head()) || key < self.first {
                return None;
            }
            self.at = At::Past(node);
            if let Some(value) = node.state() {
                return Some((key, value));
            }
        }
    }
}

//! Left and right, and the step of descents to a key.

use std::hint::select_unpredictable;
use std::ops::Index;

/// Which child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side(bool);

impl Side {
    /// Of the smaller keys.
    pub const LEFT: Self = Self(false);
    /// Of the larger ones.
    pub const RIGHT: Self = Self(true);

    /// Where a search for `key` goes on from a node with `node_key`: in an external tree to the left
    /// too if they are the same.
    #[inline(always)]
    pub fn of(key: u64, node_key: u64) -> Self {
        Self(key > node_key)
    }

    /// The other one.
    #[inline(always)]
    pub fn other(self) -> Self {
        Self(!self.0)
    }

    /// 0 or 1.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// What the link on this side holds, for a descent.
    ///
    /// Both links are loaded, and one is selected without a jump, so that neither waits for the
    /// comparison of keys. Two of eight nodes of 24 or 40 bytes have their key in one line and a link in
    /// the next: then both lines come at the same time, where a link chosen before it is loaded would
    /// have the second miss begin when the first is over. A node within a line spares the load's few
    /// cycles.
    ///
    /// Loom and shuttle see the link itself loaded only: no operation can tell, and every load
    /// multiplies the executions there are.
    #[inline(always)]
    pub fn load<A, L>(self, links: &[A; 2], load: impl Fn(&A) -> L) -> L {
        if cfg!(any(silvics_loom, silvics_shuttle)) {
            return load(&links[self]);
        }
        let [left, right] = links;
        select_unpredictable(self.0, load(right), load(left))
    }
}

impl<T> Index<Side> for [T; 2] {
    type Output = T;

    #[inline(always)]
    fn index(&self, side: Side) -> &T {
        &self[side.index()]
    }
}

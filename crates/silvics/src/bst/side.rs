//! Left and right, and the step of a descent to a key.

use std::hint::select_unpredictable;
use std::ops::Index;

/// One of the two children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side(bool);

impl Side {
    /// The child with the smaller keys.
    pub const LEFT: Self = Self(false);
    /// The child with the larger keys.
    pub const RIGHT: Self = Self(true);

    /// The side on which a search for `key` continues from a node with `node_key`. In an external
    /// tree equal keys are on the left, too.
    #[inline(always)]
    pub fn of(key: u64, node_key: u64) -> Self {
        Self(key > node_key)
    }

    /// The other side.
    #[inline(always)]
    pub fn other(self) -> Self {
        Self(!self.0)
    }

    /// The index of this side: 0 for left, 1 for right.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The value of the link on this side, for a descent.
    ///
    /// Both links are loaded, and one is selected without a jump, so that neither waits for the
    /// comparison of keys. Two of eight nodes of 24 or 40 bytes have their key in one line and a
    /// link in the next. Then both lines are fetched at once. If the link were chosen before it is
    /// loaded, the second miss would begin when the first is over. For a node within a line this
    /// saves the few cycles of the load.
    ///
    /// Loom and shuttle see only the load of the link itself. No operation can notice the
    /// difference, and every load multiplies the number of executions.
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

//! The shape of algorithms that adapt to contention.

use super::{Algorithm, Index};
use crate::adaptation::{Adaptation, Adapts};
use crate::domain::Guard;
use crate::index::Lookup;

/// An algorithm that adapts its shape to contention. The guard that its method takes is of the
/// index's domain.
pub trait Adapting: Algorithm {
    /// See [`Adapts::adaptation`].
    fn adaptation(&self, guard: &Guard) -> Adaptation;
}

impl<A: Adapting> Adapts for Index<A> {
    fn adaptation(&self, guard: &Guard) -> Adaptation {
        self.0.adaptation(&self.domain().enter(guard))
    }
}

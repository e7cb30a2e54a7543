//! The shape of algorithms that adapt to contention.

use super::{Algorithm, Index};
use crate::adaptation::{Adaptation, Adapts};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::Lookup;

/// An algorithm that adapts its shape to contention. The guard that its method takes is of the
/// index's domain.
pub trait Adapting: Algorithm {
    /// See [`Adapts::adaptation`].
    fn adaptation(&self, guard: &Guard) -> Adaptation;

    /// See [`Adapts::divide_for`].
    fn divide_for(&mut self, _threads: usize) -> Result<(), AllocError> {
        Ok(())
    }
}

impl<A: Adapting> Adapts for Index<A> {
    fn adaptation(&self, guard: &Guard) -> Adaptation {
        self.0.adaptation(&self.domain().enter(guard))
    }

    fn divide_for(&mut self, threads: usize) -> Result<(), AllocError> {
        self.0.divide_for(threads)
    }
}

//! The methods of a map itself, each with a pin of its own: see `verbs.rs`.

use super::key::{AsKey, Key};
use super::outcome::{OrPanic, Repeatable};
use super::verbs::{end_verbs, entry_verbs, point_verbs, sweep_verbs};
use super::{
    CompareExchangeError, Compute, ExtendError, KeyRange, Map, MapIndex, Operation, Rejected,
    RemoveIfError, TryInsertError, Value, ValueGuard,
};
use crate::error::AllocError;
use crate::index::OrderedEnds;
use std::ops::Bound;

/// Implements verbs with a pin for each call. An operation of a map keeps no value that it reads,
/// except in its result.
macro_rules! one_shot {
    (reads: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe { $self.held(|pin| $self.$operation($($pass,)* pin)) }
    };
    (writes: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        $self.twice((), |()| unsafe { $self.held(|pin| $self.$operation($($pass,)* pin)) }, drop)
    };
    (computes: $self:ident, $operation:ident($($pass:expr),*)) => {{
        // SAFETY: an operation keeps no value, except in its result.
        let call = |()| unsafe { $self.held_twice(|pin| $self.$operation($($pass,)* pin)) };
        $self.twice((), call, drop)
    }};
    (writes $argument:ident: $self:ident, $operation:ident($($pass:expr),*)) => {{
        // SAFETY: an operation keeps no value, except in its result.
        let attempt = |$argument| unsafe { $self.held(|pin| $self.$operation($($pass,)* pin)) };
        $self.twice($argument, attempt, std::convert::identity)
    }};
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.$operation($($pass,)* None)
    };
}

/// Methods that pin for the call: the values that they return hold the pin. A [`View`] has all of
/// them and more, and pins once for many calls.
///
/// If an allocation fails, a method unpins, returns free memory by [`Map::shrink`], and tries once
/// more. A method that panics on allocation failure, or on a key longer than the index takes, has a
/// `try_` variant.
///
/// [`View`]: super::View
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    point_verbs!(one_shot, ValueGuard<'_, V>);
    entry_verbs!(one_shot, K, ValueGuard<'_, V>, Self::owned_key_of);
    sweep_verbs!(one_shot);

    /// Repeats a call once if its first attempt fails for want of memory, after freeing removed
    /// entries and shrinking the map. No pin is held in between.
    #[inline(always)]
    fn twice<A, T, E: Repeatable>(
        &self,
        argument: A,
        mut attempt: impl FnMut(A) -> Result<T, E>,
        again: impl FnOnce(E::Argument) -> A,
    ) -> Result<T, E> {
        attempt(argument).or_else(|error| {
            let argument = again(error.argument()?);
            self.shrink(); // slabs of one kind become available for another kind
            attempt(argument)
        })
    }
}

/// The methods at both ends of the map. They pin for the call, and return copies of keys.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> Map<K, V, I> {
    end_verbs!(one_shot, K, ValueGuard<'_, V>, Self::owned_key_of);
}

//! The methods of a map itself, each with a pin of its own: see `verbs.rs`.

use super::key::{AsKey, Key};
use super::lend::Lends;
use super::outcome::OrPanic;
use super::verbs::{end_verbs, entry_verbs, point_verbs, rank_verbs, sweep_verbs};
use super::{
    CompareExchangeError, Compute, ExtendError, KeyRange, Keyed, Map, MapIndex, Operation,
    Rejected, RemoveIfError, TryInsertError, Value, ValueGuard,
};
use crate::error::AllocError;
use crate::index::{OrderStatistics, OrderedEnds};
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
        unsafe { $self.held_or_repeated((), |(), pin| $self.$operation($($pass,)* pin), drop) }
    };
    (computes: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe { $self.held_twice((), |(), pin| $self.$operation($($pass,)* pin), drop) }
    };
    (writes $argument:ident: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps no value, except in its result.
        unsafe {
            $self.held_or_repeated(
                $argument,
                |$argument, pin| $self.$operation($($pass,)* pin),
                std::convert::identity,
            )
        }
    };
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.$operation($($pass,)* None)
    };
}

/// Methods that pin for the call: the values that they return hold the pin. A [`View`] has all of
/// them and more, and pins once for many calls.
///
/// If an allocation fails, a method unpins, returns free memory by [`Map::shrink`], and tries once
/// more. A method that panics on allocation failure, or on a key longer than the index takes, has a
/// `try_` variant, except for `get_or_insert`.
///
/// [`View`]: super::View
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    point_verbs!(one_shot, ValueGuard<'_, V>);
    entry_verbs!(one_shot, K, ValueGuard<'_, V>, Self::owned_key_of);
    sweep_verbs!(one_shot);
}

/// The methods at both ends of the map. They pin for the call, and return copies of keys.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> Map<K, V, I> {
    end_verbs!(one_shot, K, ValueGuard<'_, V>, Self::owned_key_of);
}

/// The methods of a map whose index counts its keys: see
/// [`Builder::counted`](super::Builder::counted). They pin for the call, and return copies of keys.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderStatistics> Map<K, V, I> {
    rank_verbs!(one_shot, K, ValueGuard<'_, V>, Self::owned_key_of);
}

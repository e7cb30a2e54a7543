//! The four writing verbs as one: what each wants done with the state it finds.

use crate::error::{CompareExchangeError, TryInsertError};

/// A verb with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Update {
    TryInsert(u64),
    Insert(u64),
    Remove,
    CompareExchange { expected: Option<u64>, new: Option<u64> },
}

/// What to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: the operation ends with the state found.
    Keep,
    /// Make it present with this value.
    Put(u64),
    /// Make it absent. Only ever wanted of a present key.
    Take,
}

impl Update {
    /// What this verb does with a key in `state`.
    #[inline(always)]
    pub(crate) fn step(self, state: Option<u64>) -> Step {
        match (self, state) {
            (Self::TryInsert(value), None) | (Self::Insert(value), _) => Step::Put(value),
            (Self::Remove, Some(_)) => Step::Take,
            (Self::CompareExchange { expected, new }, state) if state == expected => {
                match (new, state) {
                    (Some(value), _) => Step::Put(value),
                    (None, Some(_)) => Step::Take,
                    (None, None) => Step::Keep,
                }
            }
            _ => Step::Keep,
        }
    }

    /// Whether it may need a new node.
    #[inline(always)]
    pub(crate) fn may_put(self) -> bool {
        !matches!(self, Self::Remove | Self::CompareExchange { new: None, .. })
    }
}

/// The result of `try_insert`, given the state it found.
pub(crate) fn try_inserted(found: Option<u64>) -> Result<(), TryInsertError> {
    found.map_or(Ok(()), |value| Err(TryInsertError::Occupied(value)))
}

/// The result of `compare_exchange`, given the state it expected and the one it found.
pub(crate) fn exchanged(
    expected: Option<u64>,
    found: Option<u64>,
) -> Result<(), CompareExchangeError> {
    if found == expected { Ok(()) } else { Err(CompareExchangeError::Mismatch(found)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_is_wanted_of_present_keys_only() {
        let exchange = |expected, new| Update::CompareExchange { expected, new };
        assert_eq!(Update::Remove.step(None), Step::Keep);
        assert_eq!(Update::Remove.step(Some(1)), Step::Take);
        assert_eq!(Update::TryInsert(2).step(Some(1)), Step::Keep);
        assert_eq!(Update::TryInsert(2).step(None), Step::Put(2));
        assert_eq!(Update::Insert(2).step(Some(1)), Step::Put(2));
        assert_eq!(exchange(None, None).step(None), Step::Keep);
        assert_eq!(exchange(None, Some(2)).step(None), Step::Put(2));
        assert_eq!(exchange(None, Some(2)).step(Some(1)), Step::Keep);
        assert_eq!(exchange(Some(1), None).step(Some(1)), Step::Take);
        assert_eq!(exchange(Some(1), None).step(Some(3)), Step::Keep);
        assert_eq!(exchange(Some(1), Some(1)).step(Some(1)), Step::Put(1));
    }
}

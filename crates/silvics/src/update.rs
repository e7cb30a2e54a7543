//! The four writing verbs as one: [`Update`] maps the state of a key to a [`Step`].

/// A writing verb with its arguments, for [`crate::OrderedIndex::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Puts this value if the key is absent: [`crate::OrderedIndex::try_insert`].
    TryInsert(u64),
    /// Puts this value: [`crate::OrderedIndex::insert`].
    Insert(u64),
    /// Makes the key absent: [`crate::OrderedIndex::remove`].
    Remove,
    /// Changes the state if it is the expected one: [`crate::OrderedIndex::compare_exchange`].
    CompareExchange {
        /// The state that the key must be in; `None` is *absent*.
        expected: Option<u64>,
        /// The new state; `None` is *absent*.
        new: Option<u64>,
    },
}

/// The change that a verb makes to a key in a given state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No change: the operation returns the state found.
    Keep,
    /// The key gets this value.
    Put(u64),
    /// The key becomes absent. Only a present key gets this step.
    Take,
}

impl Update {
    /// The step of this verb for a key in `state`.
    #[inline(always)]
    pub fn step(self, state: Option<u64>) -> Step {
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

    /// Whether the verb changes every key that is present, or every key that is absent, whatever
    /// its value.
    #[inline(always)]
    pub(crate) fn changes(self, present: bool) -> bool {
        match self {
            Self::Insert(_) => true,
            Self::TryInsert(_) => !present,
            Self::Remove => present,
            Self::CompareExchange { expected, new } => {
                expected.is_none() && new.is_some() && !present
            }
        }
    }

    /// The value that the verb may put.
    #[inline(always)]
    pub(crate) fn value(self) -> Option<u64> {
        match self {
            Self::Insert(value) | Self::TryInsert(value) => Some(value),
            Self::CompareExchange { new, .. } => new,
            Self::Remove => None,
        }
    }

    /// Whether the verb may need a new node.
    #[inline(always)]
    pub(crate) fn may_put(self) -> bool {
        !matches!(self, Self::Remove | Self::CompareExchange { new: None, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_key_whatever_its_value_never_keeps_it() {
        let exchange = |expected, new| Update::CompareExchange { expected, new };
        let verbs = [
            Update::TryInsert(1),
            Update::Insert(1),
            Update::Remove,
            exchange(None, None),
            exchange(None, Some(1)),
            exchange(Some(1), None),
            exchange(Some(1), Some(2)),
        ];
        for verb in verbs {
            let keeps = |state| verb.step(state) == Step::Keep;
            assert_eq!(verb.changes(false), !keeps(None), "{verb:?}");
            let always = [1, 2, 3].iter().all(|value| !keeps(Some(*value)));
            assert_eq!(verb.changes(true), always, "{verb:?}");
        }
    }

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

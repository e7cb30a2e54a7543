//! The results and errors of a map's methods.

use super::ExtendError;
use crate::error::AllocError;
use std::error::Error;
use std::fmt;

/// A value that could not be inserted, and the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejected<V> {
    /// The value, which the caller gets back.
    pub value: V,
    /// The allocation failure, or the key length that the index does not take. The map is
    /// unchanged.
    pub error: AllocError,
}

impl<V> Rejected<V> {
    pub(super) fn some(self) -> Rejected<Option<V>> {
        Rejected { value: Some(self.value), error: self.error }
    }
}

/// The reason why [`View::try_insert`](super::View::try_insert) did not insert. Each variant
/// returns the value to the caller. `R` is the type of a borrowed value.
#[derive(Debug)]
#[non_exhaustive]
pub enum TryInsertError<R, V> {
    /// The key is present.
    Occupied {
        /// The value of the key.
        present: R,
        /// The value that was to be inserted.
        value: V,
    },
    /// An allocation failed, or the key is too long.
    Alloc(Rejected<V>),
}

/// The reason why [`View::compare_exchange`](super::View::compare_exchange) did not exchange. Each
/// variant returns the new value to the caller. `R` is the type of a borrowed value.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompareExchangeError<R, V> {
    /// The key is in another state than the expected one.
    Mismatch {
        /// The value of the key; `None` if the key is absent.
        present: Option<R>,
        /// The new state that was to replace it.
        new: Option<V>,
    },
    /// An allocation failed, or the key is too long.
    Alloc(Rejected<Option<V>>),
}

/// The reason why [`View::try_remove_if`](super::View::try_remove_if) did not remove a key that is
/// present. `R` is the type of a borrowed value.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoveIfError<R> {
    /// The condition does not hold for this value of the key.
    Kept(R),
    /// The index allocates to remove, and an allocation failed.
    Alloc(AllocError),
}

/// The decision of the closure of [`View::compute`](super::View::compute).
///
/// ```
/// use silvics::Map;
/// use silvics::map::{Compute, Operation};
///
/// let stock: Map<String, u32> = Map::new();
/// let stock = stock.pin();
/// stock.insert("tea", 1);
/// let take = |left: Option<&u32>| match left {
///     Some(1) => Operation::Remove,
///     Some(left) => Operation::Insert(left - 1),
///     None => Operation::Abort("sold out"),
/// };
/// assert!(matches!(stock.compute("tea", take), Compute::Removed(Some(_))));
/// assert!(matches!(stock.compute("tea", take), Compute::Aborted("sold out")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V, T = ()> {
    /// Gives the key this value, whether the key is present or not.
    Insert(V),
    /// Makes the key absent.
    Remove,
    /// Changes nothing, and returns this to the caller.
    Abort(T),
}

/// The effect of [`View::compute`](super::View::compute). `R` is the type of a borrowed value.
#[derive(Clone, Copy, Debug)]
pub enum Compute<R, T = ()> {
    /// The key was absent and now has this value.
    Inserted(R),
    /// The key had one value and now has another one.
    Updated {
        /// The former value.
        old: R,
        /// The present value.
        new: R,
    },
    /// The key is absent. It had this value before; `None` if it was absent before.
    Removed(Option<R>),
    /// Nothing changed; the closure returned this.
    Aborted(T),
}

impl<V> fmt::Display for Rejected<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<R, V> fmt::Display for TryInsertError<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied { .. } => write!(f, "the key is present"),
            Self::Alloc(rejected) => rejected.fmt(f),
        }
    }
}

impl<R, V> fmt::Display for CompareExchangeError<R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { present: Some(_), .. } => write!(f, "the key has another value"),
            Self::Mismatch { present: None, .. } => write!(f, "the key is absent"),
            Self::Alloc(rejected) => rejected.fmt(f),
        }
    }
}

impl<R> fmt::Display for RemoveIfError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(_) => write!(f, "the condition does not hold"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl<V: fmt::Debug> Error for Rejected<V> {}
impl<R: fmt::Debug, V: fmt::Debug> Error for TryInsertError<R, V> {}
impl<R: fmt::Debug, V: fmt::Debug> Error for CompareExchangeError<R, V> {}
impl<R: fmt::Debug> Error for RemoveIfError<R> {}

/// The result of a `try_` method, which the method without that prefix unwraps.
pub(super) trait OrPanic {
    type Output;

    /// Panics if an allocation failed or the key is too long.
    fn or_panic(self) -> Self::Output;
}

/// Ends a call that cannot return an allocation failure.
#[cold]
pub(super) fn refuse(error: AllocError) -> ! {
    panic!("{error}")
}

impl<T, V> OrPanic for Result<T, Rejected<V>> {
    type Output = T;

    #[inline(always)]
    fn or_panic(self) -> T {
        self.unwrap_or_else(|rejected| refuse(rejected.error))
    }
}

impl<T> OrPanic for Result<T, AllocError> {
    type Output = T;

    #[inline(always)]
    fn or_panic(self) -> T {
        self.unwrap_or_else(|error| refuse(error))
    }
}

impl<T, R> OrPanic for Result<T, RemoveIfError<R>> {
    type Output = Result<T, R>;

    #[inline(always)]
    fn or_panic(self) -> Result<T, R> {
        self.map_err(|error| match error {
            RemoveIfError::Kept(value) => value,
            RemoveIfError::Alloc(error) => refuse(error),
        })
    }
}

impl<T, Q, V, E: Iterator<Item = (Q, V)>> OrPanic for Result<T, ExtendError<Q, V, E>> {
    type Output = T;

    #[inline(always)]
    fn or_panic(self) -> T {
        self.unwrap_or_else(|error| refuse(error.error))
    }
}

/// Whether freeing removed entries may give a failed call the memory it needs.
pub(super) fn is_shortage(error: AllocError) -> bool {
    matches!(
        error,
        AllocError::Limit { .. } | AllocError::System { .. } | AllocError::Mappings { .. }
    )
}

/// An error after which a call may be repeated once removed entries are freed.
pub(crate) trait Repeatable: Sized {
    /// The argument that the error returns.
    type Argument;

    /// Returns the argument for the repetition, or the error if repeating the call cannot help.
    fn argument(self) -> Result<Self::Argument, Self>;
}

impl Repeatable for AllocError {
    type Argument = ();

    fn argument(self) -> Result<(), Self> {
        if is_shortage(self) { Ok(()) } else { Err(self) }
    }
}

impl<W> Repeatable for Rejected<W> {
    type Argument = W;

    fn argument(self) -> Result<W, Self> {
        if is_shortage(self.error) { Ok(self.value) } else { Err(self) }
    }
}

impl<R, V> Repeatable for TryInsertError<R, V> {
    type Argument = V;

    fn argument(self) -> Result<V, Self> {
        match self {
            Self::Alloc(rejected) => rejected.argument().map_err(Self::Alloc),
            occupied @ Self::Occupied { .. } => Err(occupied),
        }
    }
}

impl<R, V> Repeatable for CompareExchangeError<R, V> {
    type Argument = Option<V>;

    fn argument(self) -> Result<Option<V>, Self> {
        match self {
            Self::Alloc(rejected) => rejected.argument().map_err(Self::Alloc),
            mismatch @ Self::Mismatch { .. } => Err(mismatch),
        }
    }
}

impl<R> Repeatable for RemoveIfError<R> {
    type Argument = ();

    fn argument(self) -> Result<(), Self> {
        match self {
            Self::Alloc(error) => error.argument().map_err(Self::Alloc),
            kept @ Self::Kept(_) => Err(kept),
        }
    }
}

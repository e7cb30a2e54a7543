//! The values that a map returns by reference, and the pins that protect them.
//!
//! A value may be read while a guard of the map's domain lives that was taken before the value's
//! word was read (M3). A call that returns values has one of three reasons why that guard lives
//! long enough, and a [`Pin`] carries it:
//! * A [`View`](super::View) owns the guard, and the values borrow the view.
//! * An [`OwnedView`](super::OwnedView) owns an older guard, and the values borrow that view.
//! * A method of [`Map`] takes its guards before it reads, and each value takes one along
//!   ([`ValueGuard`]). [`Lends::held`] and the two functions below it do so, and nothing else.

use super::multi::Insertion;
use super::outcome::{
    CompareExchangeError, Compute, Rejected, RemoveIfError, Repeatable, TryInsertError,
};
use super::{Key, Map, MapIndex, Value, ValueRef};
use crate::domain::{Domain, Guard, OwnedGuard};
use crate::error::AllocError;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, forget};
use std::ops::Deref;

/// A guard of the map's domain for a call of the index. Values that are read under it stay readable
/// for `'g`, which may be longer than the guard lives.
#[derive(Clone, Copy)]
pub(crate) struct Pin<'g: 'c, 'c> {
    pub(crate) guard: &'c Guard,
    lends: PhantomData<&'g ()>,
}

impl<'g> From<&'g Guard> for Pin<'g, 'g> {
    #[inline(always)]
    fn from(guard: &'g Guard) -> Self {
        Self { guard, lends: PhantomData }
    }
}

impl<'g: 'c, 'c> Pin<'g, 'c> {
    /// A pin for a call under `guard`, whose values an older guard protects.
    ///
    /// # Safety
    /// Both guards are of the map's domain, and `guard` is the younger one.
    #[inline(always)]
    pub(crate) unsafe fn beside(guard: &'c Guard, _older: &'g OwnedGuard) -> Self {
        Self { guard, lends: PhantomData }
    }
}

/// A value together with a guard that keeps it readable: what the methods of [`Map`] itself return.
/// It cannot leave its thread; an [`OwnedValueGuard`] can.
pub struct ValueGuard<'m, V: Value> {
    value: ValueRef<'m, V>,
    _guard: Guard,
}

impl<V: Value> Deref for ValueGuard<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V: Value + fmt::Debug> fmt::Debug for ValueGuard<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<V: Value + PartialEq> PartialEq for ValueGuard<'_, V> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<V: Value + PartialEq> PartialEq<V> for ValueGuard<'_, V> {
    fn eq(&self, other: &V) -> bool {
        **self == *other
    }
}

/// A value together with an owned pin that keeps it readable: a [`ValueGuard`] that can be sent to
/// another thread and held across an `await`. It is made by [`Map::get_owned`] and
/// [`OwnedView::into_value`](super::OwnedView::into_value).
///
/// While it lives, no removed entry of the map can be freed. Making one registers with the
/// collector, which takes some hundred nanoseconds: for many values, use one
/// [`OwnedView`](super::OwnedView).
pub struct OwnedValueGuard<'m, V: Value> {
    value: ValueRef<'m, V>,
    _guard: OwnedGuard,
}

impl<V: Value> OwnedValueGuard<'_, V> {
    /// Pairs a value with the guard that protects it.
    ///
    /// # Safety
    /// The guard was taken before the word of the value was read, and is of the domain of a map
    /// that lives as long as the result.
    pub(crate) unsafe fn new(value: ValueRef<'_, V>, guard: OwnedGuard) -> Self {
        // SAFETY: the caller's promise; the guard lives as long as the value.
        Self { value: unsafe { value.lengthen() }, _guard: guard }
    }
}

impl<V: Value> Deref for OwnedValueGuard<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V: Value + fmt::Debug> fmt::Debug for OwnedValueGuard<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<V: Value + PartialEq> PartialEq for OwnedValueGuard<'_, V> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<V: Value + PartialEq> PartialEq<V> for OwnedValueGuard<'_, V> {
    fn eq(&self, other: &V) -> bool {
        **self == *other
    }
}

/// The guard of a call, which [`Lent::hold`] moves out or drops.
pub(crate) type GuardPlace<'a> = &'a mut ManuallyDrop<Guard>;

/// A result that may have a value, which borrows a map for `'m`.
///
/// # Safety
/// [`Lent::hold`] gives each value of the result that borrows the map a guard that was taken before
/// the value was read: the guard of the call, or one that the result carries along.
pub(crate) unsafe trait Lent<'m, V: Value> {
    /// The result with a guard for its value.
    type Held;

    /// Moves the guard to the value, or drops it if there is no value, and returns `then` of the
    /// result. In this form the compiler builds the result in its place: the guard is not copied
    /// once for each layer of the result.
    ///
    /// # Safety
    /// The value was read after the guard was taken. The caller does not use the guard any more.
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R;
}

/// Drops the guard of a result without a value.
///
/// # Safety
/// The caller does not use the guard any more.
#[inline(always)]
pub(crate) unsafe fn without_value<R>(guard: GuardPlace<'_>, result: R) -> R {
    // SAFETY: the caller's promise.
    unsafe { ManuallyDrop::drop(guard) };
    result
}

// SAFETY: the result is the value, and takes the guard of the call.
unsafe impl<'m, V: Value> Lent<'m, V> for ValueRef<'m, V> {
    type Held = ValueGuard<'m, V>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller does not use the guard any more.
        then(ValueGuard { value: self, _guard: unsafe { ManuallyDrop::take(guard) } })
    }
}

/// An entry with a copy of its key.
// SAFETY: the value takes the guard of the call; the key is a copy.
unsafe impl<'m, V: Value, K> Lent<'m, V> for (K, ValueRef<'m, V>) {
    type Held = (K, ValueGuard<'m, V>);

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe { self.1.hold(guard, |value| then((self.0, value))) }
    }
}

// SAFETY: `L` gives its values their guards, and `None` has no value.
unsafe impl<'m, V: Value, L: Lent<'m, V>> Lent<'m, V> for Option<L> {
    type Held = Option<L::Held>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Some(lent) => lent.hold(guard, |held| then(Some(held))),
                None => without_value(guard, then(None)),
            }
        }
    }
}

// SAFETY: `L` or `E` gives its values their guards.
unsafe impl<'m, V: Value, L: Lent<'m, V>, E: Lent<'m, V>> Lent<'m, V> for Result<L, E> {
    type Held = Result<L::Held, E::Held>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Ok(lent) => lent.hold(guard, |held| then(Ok(held))),
                Err(error) => error.hold(guard, |error| then(Err(error))),
            }
        }
    }
}

/// The result of a computation, which may have two values, and a second guard.
// SAFETY: one value takes the guard of the call, the other the guard that came with it.
unsafe impl<'m, V: Value, T> Lent<'m, V> for (Compute<ValueRef<'m, V>, T>, Guard) {
    type Held = Compute<ValueGuard<'m, V>, T>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self.0 {
                Compute::Inserted(new) => new.hold(guard, |new| then(Compute::Inserted(new))),
                Compute::Updated { old, new } => {
                    let new = ValueGuard { value: new, _guard: self.1 };
                    old.hold(guard, |old| then(Compute::Updated { old, new }))
                }
                Compute::Removed(old) => old.hold(guard, |old| then(Compute::Removed(old))),
                Compute::Aborted(result) => without_value(guard, then(Compute::Aborted(result))),
            }
        }
    }
}

// SAFETY: the value that the map has takes the guard of the call.
unsafe impl<'m, V: Value, W> Lent<'m, V> for TryInsertError<ValueRef<'m, V>, W> {
    type Held = TryInsertError<ValueGuard<'m, V>, W>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Occupied { present, value } => {
                    present.hold(guard, |present| then(TryInsertError::Occupied { present, value }))
                }
                Self::Alloc(rejected) => {
                    without_value(guard, then(TryInsertError::Alloc(rejected)))
                }
            }
        }
    }
}

// SAFETY: the value that the map has takes the guard of the call.
unsafe impl<'m, V: Value> Lent<'m, V> for CompareExchangeError<ValueRef<'m, V>, V> {
    type Held = CompareExchangeError<ValueGuard<'m, V>, V>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Mismatch { present, new } => present
                    .hold(guard, |present| then(CompareExchangeError::Mismatch { present, new })),
                Self::Alloc(rejected) => {
                    without_value(guard, then(CompareExchangeError::Alloc(rejected)))
                }
            }
        }
    }
}

// SAFETY: the value that the map has takes the guard of the call.
unsafe impl<'m, V: Value> Lent<'m, V> for RemoveIfError<ValueRef<'m, V>> {
    type Held = RemoveIfError<ValueGuard<'m, V>>;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self::Held) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Kept(value) => value.hold(guard, |value| then(RemoveIfError::Kept(value))),
                Self::Alloc(error) => without_value(guard, then(RemoveIfError::Alloc(error))),
            }
        }
    }
}

/// Implements [`Lent`] for results that never have a value.
macro_rules! never_lent {
    ($([$($W:ident)?] $type:ty;)*) => {$(
        // SAFETY: the type has no value that borrows a map; `W` is the caller's own.
        unsafe impl<V: Value, $($W)?> Lent<'_, V> for $type {
            type Held = Self;

            #[inline(always)]
            unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self) -> R) -> R {
                // SAFETY: the caller's promise.
                unsafe { without_value(guard, then(self)) }
            }
        }
    )*};
}

never_lent! {
    [] bool;
    [] usize;
    [W] Insertion<W>;
    [] AllocError;
    [W] Rejected<W>;
}

/// Drops the guard of a call that panics.
struct Unwound<'a>(&'a mut ManuallyDrop<Guard>);

impl Drop for Unwound<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this drop runs only if the call panics, and then nothing else uses the guard.
        unsafe { ManuallyDrop::drop(self.0) };
    }
}

/// Runs `call` under a guard, which stays with the caller unless `call` panics.
///
/// # Safety
/// The guard is not dropped yet. `call` keeps no value that it reads, except in its result.
#[inline(always)]
unsafe fn under<'m, R>(guard: GuardPlace<'_>, call: impl FnOnce(Pin<'m, '_>) -> R) -> R {
    let unwound = Unwound(guard);
    let result = call(Pin { guard: unwound.0, lends: PhantomData });
    forget(unwound);
    result
}

/// A map with values `V`, whose methods pin for one call each.
pub(crate) trait Lends<V: Value> {
    /// Its domain.
    fn domain(&self) -> &Domain;

    /// Drops some removed values, and pins.
    fn one_shot(&self) -> Guard;

    /// Returns free memory to the system, so that slabs of one kind become available for another.
    fn give_back(&self);

    /// Runs `call` under a pin of its own, and pairs the value that it returns with that pin.
    ///
    /// # Safety
    /// `call` keeps no value that it reads, except in its result.
    #[inline(always)]
    unsafe fn held<'m, L: Lent<'m, V>>(&'m self, call: impl FnOnce(Pin<'m, '_>) -> L) -> L::Held {
        let mut guard = ManuallyDrop::new(self.one_shot());
        // SAFETY: the guard was taken before `call` reads anything, and `call` keeps no value.
        let lent = unsafe { under(&mut guard, call) };
        // SAFETY: the values of `lent` were read under the guard, which is not used below.
        unsafe { lent.hold(&mut guard, |held| held) }
    }

    /// Runs `call` like [`Lends::held`]. If it fails for want of memory, runs it once more with the
    /// argument that the error returns, under a new pin, after freeing removed entries and
    /// shrinking the map.
    ///
    /// # Safety
    /// `call` keeps no value that it reads, except in its result.
    #[inline(always)]
    unsafe fn held_or_repeated<'m, A, L, E>(
        &'m self,
        argument: A,
        mut call: impl FnMut(A, Pin<'m, '_>) -> Result<L, E>,
        again: impl FnOnce(E::Argument) -> A,
    ) -> Result<L::Held, E::Held>
    where
        L: Lent<'m, V>,
        E: Lent<'m, V> + Repeatable,
    {
        let mut guard = ManuallyDrop::new(self.one_shot());
        // SAFETY: the guard was taken before `call` reads anything, and `call` keeps no value.
        let mut lent = unsafe { under(&mut guard, |pin| call(argument, pin)) };
        if let Err(error) = lent {
            lent = error.argument().and_then(|argument| {
                // SAFETY: an error that returns its argument has no value, and `call` keeps none.
                unsafe { self.under_new(&mut guard, || again(argument), call) }
            });
        }
        // SAFETY: the values of `lent` were read under the guard, which is not used below.
        unsafe { lent.hold(&mut guard, |held| held) }
    }

    /// Unpins, runs `again`, shrinks the map, and runs `call` under a new guard, with the argument
    /// that `again` returned. No pin is held in between, and none is left behind if `again` panics:
    /// it may drop a value of the user.
    ///
    /// # Safety
    /// The guard is not dropped yet, and protects no value any more. `call` keeps no value that it
    /// reads, except in its result.
    #[cold]
    #[inline(never)]
    unsafe fn under_new<'m, A, R>(
        &'m self,
        guard: GuardPlace<'_>,
        again: impl FnOnce() -> A,
        call: impl FnOnce(A, Pin<'m, '_>) -> R,
    ) -> R {
        // SAFETY: the caller does not use the guard that is dropped here, only the next one.
        unsafe { ManuallyDrop::drop(guard) };
        let argument = again();
        self.give_back();
        *guard = ManuallyDrop::new(self.one_shot());
        // SAFETY: the guard is new, and `call` keeps no value.
        unsafe { under(guard, |pin| call(argument, pin)) }
    }

    /// Runs `call`, which may return two values, like [`Lends::held_or_repeated`] and with a second
    /// pin for the second value.
    ///
    /// The second pin, too, comes before the values are read, since a later one may protect less:
    /// in a destructor of a thread-local, the thread's table of registrations may be gone, and each
    /// pin is a registration of its own.
    ///
    /// # Safety
    /// `call` keeps no value that it reads, except in its result.
    #[inline(always)]
    unsafe fn held_twice<'m, A, T, E: Lent<'m, V> + Repeatable>(
        &'m self,
        argument: A,
        mut call: impl FnMut(A, Pin<'m, '_>) -> Result<Compute<ValueRef<'m, V>, T>, E>,
        again: impl FnOnce(E::Argument) -> A,
    ) -> Result<Compute<ValueGuard<'m, V>, T>, E::Held> {
        let call = |argument, pin: Pin<'m, '_>| {
            let second = self.domain().pin();
            call(argument, pin).map(|computed| (computed, second))
        };
        // SAFETY: the caller's `call` keeps no value.
        unsafe { self.held_or_repeated(argument, call, again) }
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Lends<V> for Map<K, V, I> {
    #[inline(always)]
    fn domain(&self) -> &Domain {
        self.index.domain()
    }

    #[inline(always)]
    fn one_shot(&self) -> Guard {
        self.values.drop_some();
        self.index.domain().pin()
    }

    fn give_back(&self) {
        self.shrink();
    }
}

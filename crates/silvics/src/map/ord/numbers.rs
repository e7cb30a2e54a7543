//! Integers in their natural order, as the nodes of a tree have them: numbers of 64 bits in the
//! same order.

use crate::map::value;
use std::any::TypeId;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::Bound;

/// The place of a value among the numbers: the least one that is not smaller, if there is one, and
/// whether it is equal.
#[derive(Clone, Copy)]
pub(super) struct Position {
    at: Option<u64>,
    is_exact: bool,
}

impl Position {
    pub(super) fn exactly(number: u64) -> Self {
        Self { at: Some(number), is_exact: true }
    }

    /// The number, if it is equal to the value.
    #[inline(always)]
    pub(super) fn if_exact(self) -> Option<u64> {
        self.at.filter(|_| self.is_exact)
    }
}

/// A bound among the numbers in place of one at a value. No number lies between two neighbours.
#[inline(always)]
pub(super) fn bound(bound: Bound<Position>, is_low: bool) -> Bound<u64> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(Position { at: Some(at), is_exact: true }) => Bound::Included(at),
        Bound::Excluded(Position { at: Some(at), is_exact: true }) => Bound::Excluded(at),
        // The value lies before the number.
        Bound::Included(Position { at, .. }) | Bound::Excluded(Position { at, .. }) => {
            match (at, is_low) {
                (Some(at), true) => Bound::Included(at),
                (Some(at), false) => Bound::Excluded(at),
                // It lies behind all numbers.
                (None, true) => Bound::Excluded(u64::MAX),
                (None, false) => Bound::Unbounded,
            }
        }
    }
}

macro_rules! integers {
    ($($integer:ty: $least:expr;)*) => {
        /// Whether this is a type of integers of at most 64 bits.
        #[inline(always)]
        pub(super) fn is_number<K>() -> bool {
            $(type_of::<K>() == TypeId::of::<$integer>())||*
        }

        /// The number of an integer: its distance from the least one of the type.
        #[inline(always)]
        pub(super) fn number_of<K>(key: &K) -> u64 {
            $(if type_of::<K>() == TypeId::of::<$integer>() {
                // SAFETY: the types are the same.
                let key = unsafe { *std::ptr::from_ref(key).cast::<$integer>() };
                return key.wrapping_sub($least) as u64 & MASK >> (64 - <$integer>::BITS);
            })*
            unreachable!("the type is one of integers")
        }

        /// The word of the integer that has this number: see `value.rs`.
        #[inline(always)]
        pub(super) fn word_of<K>(number: u64) -> u64 {
            $(if type_of::<K>() == TypeId::of::<$integer>() {
                return value::word_of::<$integer>((number as $integer).wrapping_add($least));
            })*
            unreachable!("the type is one of integers")
        }

        /// The largest number of an integer of this type.
        fn largest<K>() -> u64 {
            $(if type_of::<K>() == TypeId::of::<$integer>() {
                return MASK >> (64 - <$integer>::BITS);
            })*
            unreachable!("the type is one of integers")
        }
    };
}

const MASK: u64 = u64::MAX;

/// The integer in a word.
///
/// # Safety
/// The word is the result of [`word_of`] for this type.
#[inline(always)]
pub(super) unsafe fn key_in<K>(word: &u64) -> &K {
    // SAFETY: our contract. No such type is larger than a word or has a greater alignment.
    unsafe { &*std::ptr::from_ref(word).cast() }
}

integers! {
    u8: 0; u16: 0; u32: 0; u64: 0; usize: 0;
    i8: i8::MIN; i16: i16::MIN; i32: i32::MIN; i64: i64::MIN; isize: isize::MIN;
}

/// The type of `T`, with all its lifetimes taken for `'static`.
#[inline(always)]
pub(super) fn type_of<T: ?Sized>() -> TypeId {
    trait Typed {
        fn type_of(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T: ?Sized> Typed for PhantomData<T> {
        #[inline(always)]
        fn type_of(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let typed: &dyn Typed = &PhantomData::<T>;
    // SAFETY: only the bound on a lifetime is changed, and a type's identity does not depend on it.
    // The method reads no value.
    unsafe { std::mem::transmute::<&dyn Typed, &(dyn Typed + 'static)>(typed) }.type_of()
}

/// The place of a value among the numbers of type `K`, which `compare` compares with one.
#[inline(always)]
pub(super) fn position<K, Q: ?Sized>(asked: &Q, compare: impl Fn(&K) -> Ordering) -> Position {
    if type_of::<Q>() == type_of::<K>() {
        // SAFETY: the types are the same, and `K` has no lifetimes: it is a type of integers.
        let number = unsafe { &*std::ptr::from_ref(asked).cast::<K>() };
        return Position::exactly(number_of(number));
    }
    search(compare)
}

/// The place of a value of another type than `K`.
#[cold]
fn search<K>(compare: impl Fn(&K) -> Ordering) -> Position {
    let order = |number: u64| {
        let word = word_of::<K>(number);
        // SAFETY: the word is that of an integer of this type.
        compare(unsafe { key_in::<K>(&word) })
    };
    // All numbers below `low` are smaller than the value, and those above `high` are not.
    let (mut low, mut high) = (0, largest::<K>());
    while low < high {
        let middle = low + (high - low) / 2;
        if order(middle) == Ordering::Less { low = middle + 1 } else { high = middle }
    }
    match order(low) {
        Ordering::Less => Position { at: None, is_exact: false },
        order => Position { at: Some(low), is_exact: order == Ordering::Equal },
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn keeps_order<K: Ord + Copy + std::fmt::Debug + 'static>(keys: &[K]) {
        for a in keys {
            let word = word_of::<K>(number_of(a));
            // SAFETY: the word is that of an integer of this type.
            assert_eq!(unsafe { key_in::<K>(&word) }, a);
            assert!(number_of(a) <= largest::<K>());
            let found = search::<K>(|key| key.cmp(a));
            assert_eq!(found.if_exact(), Some(number_of(a)), "{a:?}");
            for b in keys {
                assert_eq!(number_of(a).cmp(&number_of(b)), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn numbers_have_the_order_of_integers() {
        keeps_order(&[0_u8, 1, 127, 128, 255]);
        keeps_order(&[i8::MIN, -1, 0, 1, i8::MAX]);
        keeps_order(&[0_u32, 1, 1 << 31, u32::MAX]);
        keeps_order(&[i32::MIN, -7, 0, 7, i32::MAX]);
        keeps_order(&[0_u64, 1, 1 << 63, u64::MAX]);
        keeps_order(&[i64::MIN, -7, 0, 7, i64::MAX]);
        keeps_order(&[isize::MIN, 0, isize::MAX]);
    }

    /// Values between two integers, and beyond all of them.
    #[test]
    fn values_between_integers_have_a_place() {
        let at = |value: f64| search::<i8>(|key| f64::from(*key).total_cmp(&value));
        let number = |key: i8| number_of(&key);
        assert_eq!((at(0.5).at, at(0.5).is_exact), (Some(number(1)), false));
        assert_eq!((at(-1000.0).at, at(1000.0).at), (Some(0), None));
        assert_eq!(bound(Bound::Included(at(0.5)), true), Bound::Included(number(1)));
        assert_eq!(bound(Bound::Included(at(0.5)), false), Bound::Excluded(number(1)));
        assert_eq!(bound(Bound::Excluded(at(1000.0)), false), Bound::Unbounded);
        assert_eq!(bound(Bound::Excluded(at(1000.0)), true), Bound::Excluded(u64::MAX));
    }
}

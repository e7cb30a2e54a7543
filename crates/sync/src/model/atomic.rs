//! The machine's atomics, with a scheduling point and a check for freed memory before each
//! operation.

use super::{freed, step};
use crate::facade::machine;

pub use crate::facade::machine::Ordering;

/// The machine's fence, after a scheduling point.
pub fn fence(ordering: Ordering) {
    step();
    machine::fence(ordering);
}

/// Defines the methods that all atomic types have.
macro_rules! common {
    ($name:ident [$($generic:ident)?], $value:ty) => {
        impl $(<$generic>)? $name $(<$generic>)? {
            /// Makes a word that contains `value`.
            #[inline]
            pub const fn new(value: $value) -> Self {
                Self(machine::$name::new(value))
            }

            /// The machine's word, after other tasks may have run.
            fn word(&self) -> &machine::$name $(<$generic>)? {
                step();
                freed::check(std::ptr::from_ref(self).addr());
                &self.0
            }

            /// Returns the value.
            pub fn load(&self, ordering: Ordering) -> $value {
                self.word().load(ordering)
            }

            /// Replaces the value.
            pub fn store(&self, value: $value, ordering: Ordering) {
                self.word().store(value, ordering);
            }

            /// Replaces the value and returns the previous one.
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.word().swap(value, ordering)
            }

            /// Replaces the value if it is `current`.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.word().compare_exchange(current, new, success, failure)
            }

            /// Replaces the value if it is `current`; it may fail spuriously.
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.word().compare_exchange_weak(current, new, success, failure)
            }

            /// Replaces the value by `update` of it, repeatedly, until that succeeds or `update`
            /// returns `None`.
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(failure);
                while let Some(new) = update(seen) {
                    match self.compare_exchange_weak(seen, new, success, failure) {
                        Ok(seen) => return Ok(seen),
                        Err(now) => seen = now,
                    }
                }
                Err(seen)
            }

            /// The value, under exclusive access.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// The value.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }

        impl $(<$generic>)? std::fmt::Debug for $name $(<$generic>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl $(<$generic>)? Default for $name $(<$generic>)? {
            fn default() -> Self {
                Self(machine::$name::default())
            }
        }

        impl $(<$generic>)? From<$value> for $name $(<$generic>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

/// Defines read-modify-write methods.
macro_rules! fetch {
    ($name:ident, $value:ty: $($verb:ident)*) => {
        impl $name {
            $(
                /// Applies the operation of its name and returns the previous value.
                pub fn $verb(&self, value: $value, ordering: Ordering) -> $value {
                    self.word().$verb(value, ordering)
                }
            )*
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty;)*) => {
        $(
            /// An integer with the methods of `std`'s type of that name.
            #[repr(transparent)]
            pub struct $name(machine::$name);
            common!($name [], $value);
            fetch!($name, $value:
                fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_nand fetch_max fetch_min);
        )*
    };
}

integers! {
    AtomicI64 i64;
    AtomicU8 u8;
    AtomicU16 u16;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicUsize usize;
}

/// A truth value with the methods of `std`'s type of that name.
#[repr(transparent)]
pub struct AtomicBool(machine::AtomicBool);
common!(AtomicBool [], bool);
fetch!(AtomicBool, bool: fetch_and fetch_or fetch_xor fetch_nand);

/// A pointer with the methods of `std`'s type of that name.
#[repr(transparent)]
pub struct AtomicPtr<T>(machine::AtomicPtr<T>);
common!(AtomicPtr[T], *mut T);

const _: () = assert!(size_of::<AtomicBool>() == 1 && size_of::<AtomicU64>() == 8);
const _: () = assert!(align_of::<AtomicPtr<u8>>() == align_of::<*mut u8>());

//! The structures of the table, compiled once for all test binaries.
//!
//! A structure is generic, so each binary that uses it compiles its code again. But at
//! `opt-level = 1` or less, rustc takes the code of a generic function from a dependency that has
//! compiled it for the same types. So debug builds compile the structures here: the test binaries
//! of `crates/silvics` then take half the time. At higher levels each crate compiles its own code,
//! and there is nothing here.

use crate::make;
use silvics::structures::At;
use silvics::{Pooled, Shared};

/// Compiles the code of all indexes of the table, and returns the addresses of their makers. Nobody
/// needs to call it.
pub fn compiled() -> Vec<*const ()> {
    let mut makers: Vec<*const ()> = Vec::new();
    macro_rules! compile {
        ($structure:ident $build:ident $keys:ident alias $($rest:tt)*) => {};
        ($structure:ident $build:ident $keys:ident suite $face:ident $faults:ident $index:ty) => {
            makers.push(make::points::<At<$index, Pooled>> as *const ());
            makers.push(make::$face::<At<$index, Pooled>> as *const ());
        };
        ($structure:ident $build:ident $keys:ident full $face:ident $faults:ident $index:ty) => {
            compile!($structure $build $keys suite $face $faults $index);
            makers.push(make::points::<At<$index, Shared>> as *const ());
            makers.push(make::$face::<At<$index, Shared>> as *const ());
        };
    }
    silvics::for_each_index! { compile }
    makers
}

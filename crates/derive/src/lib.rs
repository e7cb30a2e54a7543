//! The macro `#[derive(Key)]` of `silvics`, which documents and re-exports it.
//!
//! ```text
//! #[derive(Clone, Debug, PartialEq, Eq, silvics::Key)]
//! struct Order { customer: u64, name: String }
//! ```
//!
//! Use it through `silvics`: the generated code names items of that crate.

mod expand;
mod order;
mod shape;

use proc_macro::TokenStream;

/// Implements `Key`, `PartialOrd` and `Ord` for a struct or an enum, in one order.
///
/// * Structs are ordered by their fields, the first one first. A struct of one field has the form
///   of that field, so `struct Id(u64)` costs as much as a `u64`.
/// * Enums are ordered by the discriminants of their variants, explicit ones included, and within a
///   variant like structs.
/// * Every field must be a key, and so must every type parameter: the macro adds this bound. A type
///   without fields must be `Clone`, `Debug` and `PartialEq`.
/// * `#[key(reverse)]` on a field sorts it in descending order.
/// * `Eq` must be implemented, as by `#[derive(PartialEq, Eq)]`. A second `Ord`, derived or written
///   by hand, is an error of the compiler (E0119). So a map and a `BTreeMap` sort such keys alike.
/// * Floats are compared by `total_cmp`. They have no `Eq`, so a type with floats implements
///   `PartialEq` by hand as `Key::compare(self, other).is_eq()`, and `Eq`.
/// * `#[key(own_ord)]` on the type leaves `PartialOrd` and `Ord` to you. A map uses the derived
///   order nevertheless: test with `silvics::key::check_order` that yours is the same. A type with
///   floats that needs no `Ord` uses this option, too.
///
/// For `struct Name` the macro also defines `struct NameRef<'a>`, the borrowed form in which a map
/// returns such a key. Its fields have the same names, and their types are borrowed forms: strings
/// become `Cow`s. `#[key(lent = Other)]` gives it
/// another name. A type without fields has no borrowed form and is returned by value.
///
/// A tuple of the first one to four fields of a struct is a prefix of its keys, unless these are
/// all of its fields.
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

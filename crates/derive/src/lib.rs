//! The macro `#[derive(Key)]` of `silvics`, which documents and re-exports it.
//!
//! ```text
//! #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, silvics::Key)]
//! struct Order { customer: u64, name: String }
//! ```
//!
//! Use it through `silvics`: the generated code names items of that crate.

mod expand;
mod shape;

use proc_macro::TokenStream;

/// Implements `Key` for a struct or an enum, in the order of `#[derive(Ord)]`.
///
/// * Structs are ordered by their fields, the first one first. A struct of one field has the form
///   of that field, so `struct Id(u64)` costs as much as a `u64`.
/// * Enums are ordered by the discriminants of their variants, explicit ones included, and within a
///   variant like structs.
/// * Every field must be a key, and so must every type parameter: the macro adds this bound. A type
///   without fields must be `Clone`, `Debug` and `PartialEq`.
/// * **A handwritten `Ord` is ignored**, because a macro cannot see it. If the order of a type is
///   not the derived one, write its `Key` by hand too.
///
/// For `struct Name` the macro also defines `struct NameRef<'a>` with equal fields, the borrowed
/// form in which a map returns such a key; strings become `Cow`s. `#[key(lent = Other)]` gives it
/// another name. A type without fields has no borrowed form and is returned by value.
///
/// The first one to four fields of a struct, but never all of them, form a prefix of its keys, as a
/// tuple.
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

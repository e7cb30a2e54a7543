//! `#[derive(Key)]` of `silvics`, which documents and re-exports it.

mod expand;
mod shape;

use proc_macro::TokenStream;

/// Makes a struct or an enum a `Key` of maps, in the order that `#[derive(Ord)]` gives it.
///
/// * Structs are ordered by their fields, the first one first. A struct of one field has the form of that, so that
///   `struct Id(u64)` costs what a `u64` does.
/// * Enums are ordered by their variants' discriminants, explicit ones included, and within a variant as structs.
/// * Every field must be a key, and with it type parameters. The type must be `Clone`, `Debug` and `PartialEq` if it is
///   an enum without fields or a struct without any.
/// * **An `Ord` written by hand is ignored**: no macro sees it. A type whose order is not the derived one needs a
///   `Key` written by hand, too.
///
/// For `struct Name` it also makes `struct NameRef<'a>`, with the same fields, as which a map lends such a key: strings are
/// `Cow`s. `#[key(lent = Other)]` gives it another name. What has no fields is lent as it is.
///
/// All but the last fields of a struct, the first few as a tuple, are prefixes of such keys.
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

//! Generates the order of the type, which is that of its encoding.

use crate::shape::{Shape, Variant, is_reversed};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Implements `PartialOrd` and `Ord`, unless the user does.
pub(crate) fn implement(shape: &Shape<'_>) -> TokenStream {
    if shape.own_ord {
        return TokenStream::new();
    }
    let name = shape.name;
    let mut generics = shape.generics.clone();
    // `Ord` needs `Eq`, which the user derives with bounds of its own.
    if !generics.params.is_empty() {
        let (_, of_type, _) = shape.generics.split_for_impl();
        let eq = syn::parse_quote!(#name #of_type: ::core::cmp::Eq);
        generics.make_where_clause().predicates.push(eq);
    }
    let (of_impl, of_type, bounds) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #of_impl ::core::cmp::PartialOrd for #name #of_type #bounds {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> ::core::option::Option<::core::cmp::Ordering> {
                ::core::option::Option::Some(::silvics::Key::compare(self, other))
            }
        }

        #[automatically_derived]
        impl #of_impl ::core::cmp::Ord for #name #of_type #bounds {
            #[inline]
            fn cmp(&self, other: &Self) -> ::core::cmp::Ordering {
                ::silvics::Key::compare(self, other)
            }
        }
    }
}

/// Defines `Key::compare`: by the ranks of variants, then by the fields.
pub(crate) fn compare(shape: &Shape<'_>) -> TokenStream {
    let name = shape.name;
    let path = quote!(#name);
    let same = shape.variants.iter().map(|variant| same(variant, &path));
    let others = (shape.variants.len() > 1).then(|| {
        let rank = |of: TokenStream| {
            let ranks = shape.variants.iter().enumerate().map(|(at, variant)| {
                let (name, rank) = (variant.name, format_ident!("__R{at}"));
                quote!(#path::#name { .. } => #rank,)
            });
            quote!(match #of { #(#ranks)* })
        };
        let (one, other) = (rank(quote!(self)), rank(quote!(other)));
        quote!(_ => ::core::cmp::Ord::cmp(&#one, &#other),)
    });
    quote! {
        #[inline]
        fn compare(&self, other: &Self) -> ::core::cmp::Ordering {
            match (self, other) { #(#same)* #others }
        }
    }
}

/// Compares two values of one variant, field by field.
fn same(variant: &Variant<'_>, path: &TokenStream) -> TokenStream {
    let (one, other) = (variant.with_variables(path, "x"), variant.with_variables(path, "y"));
    let fields = variant.bound("x").into_iter().zip(variant.bound("y"));
    let orders = fields.map(|((field, one), (_, other))| {
        let of = &field.ty;
        let (one, other) = if is_reversed(field) { (other, one) } else { (one, other) };
        quote!(.then_with(|| <#of as ::silvics::Key>::compare(#one, #other)))
    });
    quote!((#one, #other) => ::core::cmp::Ordering::Equal #(#orders)*,)
}

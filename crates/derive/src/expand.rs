//! Generates the derived code.

use crate::order;
use crate::shape::{Shape, Variant, is_reversed};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Fields, Member, Result};

/// The most fields of a struct that a prefix may have.
const PREFIX_FIELDS: usize = 4;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let shape = Shape::of(input)?;
    let lent = if shape.has_fields() { lent(&shape) } else { TokenStream::new() };
    let (ranks, key, prefixes) = (ranks(&shape), key(&shape), prefixes(&shape));
    let order = order::implement(&shape);
    Ok(quote! {
        #lent
        const _: () = {
            #ranks
            #key
            #order
            #prefixes
        };
    })
}

/// Defines the borrowed form of the type: the one that a map returns.
fn lent(shape: &Shape<'_>) -> TokenStream {
    let Shape { visibility, lent, generics, name, .. } = shape;
    let mut with_lifetime = generics.clone();
    with_lifetime.params.insert(0, syn::parse_quote!('__a));
    let (of_impl, of_type, bounds) = with_lifetime.split_for_impl();
    let fields = shape.variants.iter().map(|variant| {
        let fields = variant.fields.iter().map(|field| {
            let (visibility, name, of) = (&field.vis, &field.ident, &field.ty);
            let name = name.as_ref().map(|name| quote!(#name:));
            let documented = quote!(#[allow(missing_docs)]);
            quote!(#documented #visibility #name <#of as ::silvics::Key>::Part<'__a>)
        });
        let fields = match variant.fields {
            Fields::Named(_) => quote!({ #(#fields),* }),
            Fields::Unnamed(_) => quote!((#(#fields),*)),
            Fields::Unit => quote!(),
        };
        let name = variant.name.map(|name| quote!(#[allow(missing_docs)] #name));
        quote!(#name #fields)
    });
    let about = format!("A borrowed [`{name}`], as a map returns it.");
    let definition = if shape.is_enum {
        quote!(#[doc = #about] #visibility enum #lent #with_lifetime #bounds { #(#fields),* })
    } else {
        let end = if matches!(shape.variants[0].fields, Fields::Unnamed(_)) {
            quote!(#(#fields)* #bounds;)
        } else {
            quote!(#bounds #(#fields)*)
        };
        quote!(#[doc = #about] #visibility struct #lent #with_lifetime #end)
    };
    let path = quote!(#lent);
    let (clones, debugs, equals) = (
        shape.variants.iter().map(|variant| clone_arm(variant, &path)),
        shape.variants.iter().map(|variant| debug_arm(variant, &path)),
        shape.variants.iter().map(|variant| equal_arm(variant, &path)),
    );
    quote! {
        #definition

        #[automatically_derived]
        impl #of_impl ::core::clone::Clone for #lent #of_type #bounds {
            fn clone(&self) -> Self {
                match self { #(#clones)* }
            }
        }

        #[automatically_derived]
        impl #of_impl ::core::fmt::Debug for #lent #of_type #bounds {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self { #(#debugs)* }
            }
        }

        #[automatically_derived]
        impl #of_impl ::core::cmp::PartialEq for #lent #of_type #bounds {
            fn eq(&self, other: &Self) -> bool {
                match (self, other) { #(#equals)* #[allow(unreachable_patterns)] _ => false }
            }
        }
    }
}

fn clone_arm(variant: &Variant<'_>, path: &TokenStream) -> TokenStream {
    let (pattern, whole) = (variant.with_variables(path, "x"), variant.with_variables(path, "y"));
    let (from, to) = (variables(variant, "x"), variables(variant, "y"));
    quote!(#pattern => { #(let #to = ::core::clone::Clone::clone(#from);)* #whole })
}

fn debug_arm(variant: &Variant<'_>, path: &TokenStream) -> TokenStream {
    let pattern = variant.with_variables(path, "x");
    let name = variant.name.map_or_else(|| path.to_string(), ToString::to_string);
    let fields = variant.bound("x").into_iter().map(|(field, variable)| {
        let name = field.ident.as_ref().map(ToString::to_string);
        let name = name.map(|name| quote!(#name,));
        quote!(.field(#name #variable))
    });
    let debug = match variant.fields {
        Fields::Named(_) => quote!(f.debug_struct(#name)),
        Fields::Unnamed(_) | Fields::Unit => quote!(f.debug_tuple(#name)),
    };
    quote!(#pattern => #debug #(#fields)* .finish(),)
}

fn equal_arm(variant: &Variant<'_>, path: &TokenStream) -> TokenStream {
    let (one, other) = (variant.with_variables(path, "x"), variant.with_variables(path, "y"));
    let (left, right) = (variables(variant, "x"), variables(variant, "y"));
    quote!((#one, #other) => true #(&& #left == #right)*,)
}

fn variables(variant: &Variant<'_>, prefix: &str) -> Vec<syn::Ident> {
    variant.bound(prefix).into_iter().map(|(_, variable)| variable).collect()
}

/// Defines constants such as `__R3`, the rank of variant 3 in the order of all variants.
fn ranks(shape: &Shape<'_>) -> TokenStream {
    if !shape.is_enum {
        return TokenStream::new();
    }
    let (number, count) = (&shape.number, shape.variants.len());
    let discriminants = shape.variants.iter().enumerate().map(|(at, variant)| {
        let name = format_ident!("__D{at}");
        let value = match (variant.discriminant, at.checked_sub(1)) {
            (Some(value), _) => quote!(#value),
            (None, Some(before)) => {
                let before = format_ident!("__D{before}");
                quote!(#before + 1)
            }
            (None, None) => quote!(0),
        };
        quote!(const #name: #number = #value;)
    });
    let names = (0..count).map(|at| format_ident!("__D{at}"));
    let ranks = (0..count).map(|at| {
        let name = format_ident!("__R{at}");
        quote!(const #name: u16 = __RANKS[#at];)
    });
    quote! {
        #(#discriminants)*
        const __RANKS: [u16; #count] = ::silvics::key::ranks([#(#names as i128),*]);
        #(#ranks)*
    }
}

/// Writes the rank of variant `at`, which precedes its fields, to an encoder.
fn rank(shape: &Shape<'_>, at: usize) -> TokenStream {
    let rank = format_ident!("__R{at}");
    if shape.variants.len() > 256 {
        return quote!(__to.push(&u16::to_be_bytes(#rank)););
    }
    quote!(__to.push(&[#rank as u8]);)
}

/// Writes a field, to which `key` is a reference, to an encoder.
fn written(field: &syn::Field, key: &TokenStream, to: &TokenStream) -> TokenStream {
    let of = &field.ty;
    if is_reversed(field) {
        return quote!(#to.reversed(|__to| ::silvics::AsKey::<#of>::write(#key, __to)););
    }
    quote!(::silvics::AsKey::<#of>::write(#key, #to);)
}

fn write(shape: &Shape<'_>, path: &TokenStream) -> TokenStream {
    let arms = shape.variants.iter().enumerate().map(|(at, variant)| {
        let pattern = variant.with_variables(path, "x");
        let fields = variant
            .bound("x")
            .into_iter()
            .map(|(field, variable)| written(field, &quote!(#variable), &quote!(__to)));
        let rank = if shape.is_enum { rank(shape, at) } else { TokenStream::new() };
        quote!(#pattern => { #rank #(#fields)* })
    });
    quote! {
        #[inline]
        fn write(&self, __to: &mut ::silvics::key::Encoder) {
            match self { #(#arms)* }
        }
    }
}

/// Builds `path` from its fields, which are read one after the other or copied.
fn each(
    shape: &Shape<'_>,
    path: &TokenStream,
    value: impl Fn(&syn::Field, &syn::Ident) -> TokenStream,
) -> Vec<TokenStream> {
    let of_variant = |variant: &Variant<'_>| {
        let whole = variant.with_variables(path, "y");
        let bound = variant.bound("y");
        let fields = bound.iter().map(|(field, variable)| {
            let value = value(field, variable);
            quote!(let #variable = #value;)
        });
        quote!({ #(#fields)* #whole })
    };
    shape.variants.iter().map(of_variant).collect()
}

fn read(shape: &Shape<'_>, path: &TokenStream) -> TokenStream {
    let parts = each(shape, path, |field, _| {
        let of = &field.ty;
        if is_reversed(field) {
            return quote!(__from.reversed(<#of as ::silvics::Key>::read));
        }
        quote!(<#of as ::silvics::Key>::read(__from))
    });
    let body = if shape.is_enum {
        let ranks = (0..parts.len()).map(|at| format_ident!("__R{at}"));
        let rank = if parts.len() > 256 {
            quote!(u16::from_be_bytes(__from.array()))
        } else {
            quote!(u16::from(__from.array::<1>()[0]))
        };
        quote!(match #rank { #(#ranks => #parts,)* _ => ::silvics::key::no_variant() })
    } else {
        quote!(#(#parts)*)
    };
    quote! {
        #[inline]
        fn read<'__a>(__from: &mut ::silvics::key::Decoder<'__a>) -> Self::Part<'__a> {
            #body
        }
    }
}

/// Implements the traits of keys for the type and for its borrowed form.
fn key(shape: &Shape<'_>) -> TokenStream {
    let Shape { name, lent, generics, .. } = shape;
    let (of_impl, of_type, bounds) = generics.split_for_impl();
    let mut with_lifetime = generics.clone();
    with_lifetime.params.insert(0, syn::parse_quote!('__a));
    let (lent_impl, lent_type, _) = with_lifetime.split_for_impl();
    let is_lent = shape.has_fields();
    let lent_path = if is_lent { quote!(#lent) } else { quote!(#name) };
    let part = if is_lent { quote!(#lent #lent_type) } else { quote!(Self) };

    let (form, with_form, from_form) = form(shape, &lent_path);
    let (read, compare) = (read(shape, &lent_path), order::compare(shape));
    let to_owned = if is_lent {
        let owned = each(shape, &quote!(#name), |field, variable| {
            let of = &field.ty;
            quote!(<#of as ::silvics::Key>::part_to_owned(#variable))
        });
        let patterns = shape.variants.iter().map(|variant| variant.with_variables(&lent_path, "y"));
        quote!(match part { #(#patterns => #owned,)* })
    } else {
        quote!(part)
    };
    let as_key = |of_impl: TokenStream, of: TokenStream, path: &TokenStream| {
        let write = write(shape, path);
        quote! {
            #[automatically_derived]
            impl #of_impl ::silvics::AsKey<#name #of_type> for #of #bounds {
                #with_form
                #write
            }
        }
    };
    let of_self = as_key(quote!(#of_impl), quote!(#name #of_type), &quote!(#name));
    let of_lent = is_lent.then(|| as_key(quote!(#lent_impl), part.clone(), &lent_path));
    quote! {
        #[automatically_derived]
        impl #of_impl ::silvics::Key for #name #of_type #bounds {
            type Form = #form;
            type Ref<'__a> = #part;
            type Part<'__a> = #part;

            #[inline]
            fn from_form<'__a>(form: ::silvics::key::FormRef<'__a, Self>) -> Self::Ref<'__a> {
                #from_form
            }
            #read
            #compare
            #[inline]
            fn into_part<'__a>(key: Self::Ref<'__a>) -> Self::Part<'__a> {
                key
            }
            fn part_to_owned(part: Self::Part<'_>) -> Self {
                #to_owned
            }
        }
        #of_self
        #of_lent
    }
}

/// The stored form of the type, and the conversions to and from it.
///
/// A struct of one field has the form of that field, and an enum without fields that of its
/// variant's number. Every other type has the form of its encoded bytes.
fn form(shape: &Shape<'_>, lent: &TokenStream) -> (TokenStream, TokenStream, TokenStream) {
    let name = shape.name;
    let (_, of_type, _) = shape.generics.split_for_impl();
    let with_form = |body: TokenStream, form: Option<TokenStream>| {
        let form = form.map(|form| {
            quote! {
                #[inline(always)]
                fn form(&self) -> ::core::option::Option<::silvics::key::FormRef<'_, #name #of_type>> {
                    #form
                }
            }
        });
        quote! {
            #form
            #[inline]
            fn with_form<__T>(
                &self,
                then: impl ::core::ops::FnOnce(::silvics::key::FormRef<'_, #name #of_type>) -> __T,
            ) -> __T {
                #body
            }
        }
    };
    if let Some(field) = shape.only_field() {
        let of = &field.ty;
        let member = field.ident.clone().map_or_else(|| Member::from(0), Member::from);
        if is_reversed(field) {
            let of = quote!(::core::cmp::Reverse<#of>);
            let body = quote! {
                let key = ::core::cmp::Reverse(&self.#member);
                ::silvics::AsKey::<#of>::with_form(&key, then)
            };
            return (
                quote!(<#of as ::silvics::Key>::Form),
                with_form(body, None),
                quote!(#lent { #member: <#of as ::silvics::Key>::from_form(form).0 }),
            );
        }
        let body = quote!(::silvics::AsKey::<#of>::with_form(&self.#member, then));
        let part =
            quote!(<#of as ::silvics::Key>::into_part(<#of as ::silvics::Key>::from_form(form)));
        return (
            quote!(<#of as ::silvics::Key>::Form),
            with_form(body, Some(quote!(::silvics::AsKey::<#of>::form(&self.#member)))),
            quote!(#lent { #member: #part }),
        );
    }
    if shape.is_enum && !shape.has_fields() {
        let ranks: Vec<_> = (0..shape.variants.len()).map(|at| format_ident!("__R{at}")).collect();
        let path = quote!(#name);
        let names: Vec<_> =
            shape.variants.iter().map(|variant| variant.with_variables(&path, "x")).collect();
        let body = quote!(then(u64::from(match self { #(#names => #ranks,)* })));
        let back =
            quote!(match form as u16 { #(#ranks => #names,)* _ => ::silvics::key::no_variant() });
        return (quote!(u64), with_form(body, None), back);
    }
    let body = quote! {
        ::silvics::key::Encoder::encode(|to| ::silvics::AsKey::<#name #of_type>::write(self, to), then)
    };
    let back = quote!(<Self as ::silvics::Key>::read(&mut ::silvics::key::Decoder::new(form)));
    (quote!([u8]), with_form(body, None), back)
}

/// Declares the first fields of a struct, as tuples, to be prefixes of it.
fn prefixes(shape: &Shape<'_>) -> TokenStream {
    if shape.is_enum {
        return TokenStream::new();
    }
    let (name, fields) = (shape.name, shape.variants[0].fields);
    let (_, of_type, bounds) = shape.generics.split_for_impl();
    let most = fields.len().saturating_sub(1).min(PREFIX_FIELDS);
    let of_some = (1..=most).map(|count| {
        let parts: Vec<_> = (0..count).map(|at| format_ident!("__Q{at}")).collect();
        let types: Vec<_> = fields.iter().take(count).map(|field| &field.ty).collect();
        let writes = fields.iter().take(count).enumerate().map(|(at, field)| {
            let place = syn::Index::from(at);
            written(field, &quote!(&self.#place), &quote!(to))
        });
        let mut generics = shape.generics.clone();
        for (part, of) in parts.iter().zip(&types) {
            generics.params.push(syn::parse_quote!(#part: ::silvics::AsKey<#of>));
        }
        let (of_impl, _, _) = generics.split_for_impl();
        quote! {
            #[automatically_derived]
            impl #of_impl ::silvics::AsPrefix<#name #of_type> for (#(#parts,)*) #bounds {
                fn with_prefix<__T>(&self, then: impl ::core::ops::FnOnce(&[u8]) -> __T) -> __T {
                    ::silvics::key::Encoder::encode(
                        |to| { #(#writes)* },
                        then,
                    )
                }
            }
        }
    });
    quote!(#(#of_some)*)
}

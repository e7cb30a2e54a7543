//! The shape of a type for which a key is derived. A struct is treated as an enum of one variant
//! without a number.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, Generics, Ident, Result, Visibility};

/// The options of a type, `#[key(…)]`.
struct Options {
    /// The name of the borrowed form.
    lent: Ident,
    /// Whether the user writes `Ord`.
    own_ord: bool,
}

/// Whether a field is in the opposite order: `#[key(reverse)]`.
pub(crate) fn is_reversed(field: &Field) -> bool {
    field.attrs.iter().any(|attribute| attribute.path().is_ident("key"))
}

/// Checks the options of a field.
fn check_field(field: &Field) -> Result<()> {
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("key")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("reverse") {
                return Ok(());
            }
            Err(meta
                .error("unknown option of a field: #[key(reverse)] sorts it in descending order"))
        })?;
    }
    Ok(())
}

/// A struct, or a variant of an enum.
pub(crate) struct Variant<'a> {
    /// The variant's name, or `None` for a struct.
    pub(crate) name: Option<&'a Ident>,
    pub(crate) fields: &'a Fields,
    pub(crate) discriminant: Option<&'a Expr>,
}

impl Variant<'_> {
    /// The fields, each with the variable to which it is bound. The names of the variables begin
    /// with `prefix`.
    pub(crate) fn bound(&self, prefix: &str) -> Vec<(&Field, Ident)> {
        let bind = |(at, field)| (field, format_ident!("__{prefix}{at}"));
        self.fields.iter().enumerate().map(bind).collect()
    }

    /// The variant with its variables, such as `path { a: __x0 }` or `path(__x0)`. It can be a
    /// pattern or an expression.
    pub(crate) fn with_variables(&self, path: &TokenStream, prefix: &str) -> TokenStream {
        let path = self.name.map_or_else(|| path.clone(), |name| quote!(#path::#name));
        let variables = self.bound(prefix).into_iter().map(|(field, variable)| {
            let name = field.ident.as_ref().map(|name| quote!(#name:));
            quote!(#name #variable)
        });
        match self.fields {
            Fields::Named(_) => quote!(#path { #(#variables),* }),
            Fields::Unnamed(_) => quote!(#path(#(#variables),*)),
            Fields::Unit => path,
        }
    }
}

pub(crate) struct Shape<'a> {
    pub(crate) visibility: &'a Visibility,
    pub(crate) name: &'a Ident,
    pub(crate) lent: Ident,
    pub(crate) generics: Generics,
    pub(crate) is_enum: bool,
    /// Whether the user writes `Ord`.
    pub(crate) own_ord: bool,
    /// The type of the discriminants.
    pub(crate) number: Ident,
    pub(crate) variants: Vec<Variant<'a>>,
}

impl<'a> Shape<'a> {
    pub(crate) fn of(input: &'a DeriveInput) -> Result<Self> {
        let name = &input.ident;
        if let Some(lifetime) = input.generics.lifetimes().next() {
            let message = "a key owns its fields: derive Key for a type without lifetimes";
            return Err(Error::new_spanned(lifetime, message));
        }
        let variants: Vec<_> = match &input.data {
            Data::Struct(data) => {
                vec![Variant { name: None, fields: &data.fields, discriminant: None }]
            }
            Data::Enum(data) => {
                let variant = |variant: &'a syn::Variant| Variant {
                    name: Some(&variant.ident),
                    fields: &variant.fields,
                    discriminant: variant.discriminant.as_ref().map(|(_, number)| number),
                };
                data.variants.iter().map(variant).collect()
            }
            Data::Union(_) => {
                return Err(Error::new_spanned(name, "a union has no order: use an enum"));
            }
        };
        if variants.is_empty() {
            return Err(Error::new_spanned(
                name,
                "an enum without variants has no values: add a variant",
            ));
        }
        for field in variants.iter().flat_map(|variant| variant.fields) {
            check_field(field)?;
        }
        let mut generics = input.generics.clone();
        for parameter in generics.type_params_mut() {
            parameter.bounds.push(syn::parse_quote!(::silvics::Key));
        }
        let Options { lent, own_ord } = options(input)?;
        Ok(Self {
            visibility: &input.vis,
            name,
            lent,
            own_ord,
            generics,
            is_enum: matches!(input.data, Data::Enum(_)),
            number: number(input)?,
            variants,
        })
    }

    /// Whether the type has fields, and so a borrowed form.
    pub(crate) fn has_fields(&self) -> bool {
        self.variants.iter().any(|variant| !variant.fields.is_empty())
    }

    /// The field of a struct that has exactly one.
    pub(crate) fn only_field(&self) -> Option<&Field> {
        let [Variant { name: None, fields, .. }] = &self.variants[..] else { return None };
        fields.iter().next().filter(|_| fields.len() == 1)
    }
}

/// The options of the type.
fn options(input: &DeriveInput) -> Result<Options> {
    let mut options = Options { lent: format_ident!("{}Ref", input.ident), own_ord: false };
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("key")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("lent") {
                options.lent = meta.value()?.parse()?;
            } else if meta.path.is_ident("own_ord") {
                options.own_ord = true;
            } else if meta.path.is_ident("reverse") {
                return Err(meta.error(
                    "#[key(reverse)] belongs to a field; the key Reverse<T> reverses a whole key",
                ));
            } else {
                return Err(meta.error(
                    "unknown option: #[key(lent = Name)] names the borrowed form, and \
                     #[key(own_ord)] says that you write Ord yourself",
                ));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// The type of an enum's discriminants.
fn number(input: &DeriveInput) -> Result<Ident> {
    let mut number = format_ident!("isize");
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if let Some(name) = meta.path.get_ident() {
                let name_is = name.to_string();
                if name_is.starts_with(['u', 'i']) {
                    number = name.clone();
                }
            }
            if meta.input.peek(syn::token::Paren) {
                let _: proc_macro2::Group = meta.input.parse()?; // align(8)
            }
            Ok(())
        })?;
    }
    Ok(number)
}

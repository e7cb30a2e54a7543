//! Keys of maps ([`Key`]), keys of indexes ([`IndexKey`]), and the encoding of the former as the
//! latter.
//!
//! # Encodings
//! An index holds keys in one of three forms: `u64`, `u128`, or a byte string. The form keeps the
//! order of the type: `a < b` if and only if the form of `a` is smaller than the form of `b`. It
//! also keeps the order as a part of a longer key, whatever parts follow. Different keys have
//! different forms.
//!
//! | type | as a whole key | as a part of another key |
//! |---|---|---|
//! | unsigned integers, `bool` | `u64` or `u128`: the number | big-endian, in as many bytes as the type has (`usize`: 8) |
//! | signed integers | the number with the sign bit flipped | that number, big-endian, in as many bytes as the type has |
//! | `char` | `u64`: the code point | 3 bytes, big-endian |
//! | `f32`, `f64` | the bits, in the order of `total_cmp`: all flipped for negative numbers, else only the sign bit | those bits, big-endian |
//! | strings, byte strings | their bytes | bytes 0 and 1 become (1, 1) and (1, 2), and a byte 0 follows |
//! | tuples, arrays, structs | their parts in order | their parts in order |
//! | `Option`, enums | one byte (two if there are more than 256 variants) that counts the smaller variants, then the parts | the same bytes |
//!
//! A part encodes its own end, so a part that is a prefix of another one comes first: the end of a
//! string is smaller than every byte that can follow instead.
//!
//! # Limits
//! The limits are on the form of a key.
//!
//! | index | longest form |
//! |---|---|
//! | [`ArtTree`](crate::ArtTree), the default of a map | 512 KiB |
//! | [`SkipList`](crate::SkipList) | none |
//!
//! A longer key is refused with [`AllocError::KeyLength`](crate::AllocError::KeyLength), which
//! contains the limit. No other index takes byte strings. The field `max_key_bytes` of
//! [`StructureFacts`](crate::structures::StructureFacts) has the limit of each index.

// Nothing inside the crate imports from here. Structures import from `encoding`, which is below
// them; `map::key` is above them, since a map's key must suit the map's default index.
pub use crate::encoding::{
    Decoder, Encoder, IndexKey, decode_i64, decode_u64, decode_u128, encode_i64, encode_u64,
    encode_u128,
};
#[doc(hidden)]
pub use crate::encoding::{no_variant, ranks};
pub use crate::map::key::{AsKey, AsPrefix, FormRef, Key};
#[doc(hidden)]
pub use crate::map::key::{Form, Forms};

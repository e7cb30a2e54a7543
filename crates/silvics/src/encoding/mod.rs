//! Keys as indexes take them, and the bytes of keys that have several parts.
//!
//! This module depends on no structure: `index_key.rs` has [`IndexKey`] and the encodings of
//! integers; `buffer.rs` has [`Encoder`] and [`Decoder`], which write and read the parts of a key.
//! `map::key` uses them for the keys of maps. The public module [`crate::key`] re-exports both.

mod buffer;
mod index_key;
mod prefixed;

pub use buffer::{Decoder, Encoder, no_variant, ranks};
pub(crate) use buffer::{text, text_of};
pub(crate) use index_key::common_prefix;
pub use index_key::{
    ByteKey, IndexKey, decode_i64, decode_u64, decode_u128, encode_i64, encode_u64, encode_u128,
};
pub use prefixed::Prefixed;

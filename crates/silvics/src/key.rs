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
//! | `NonZero` integers | as the integer | as the integer |
//! | signed integers | the number with the sign bit flipped | that number, big-endian, in as many bytes as the type has |
//! | `char` | `u64`: the code point | 3 bytes, big-endian |
//! | `f32`, `f64` | the bits, in the order of `total_cmp`: all flipped for negative numbers, else only the sign bit | those bits, big-endian |
//! | `String`, `Box<str>`, `Arc<str>`, `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>`, `Bytes` | their bytes | their bytes; each run of bytes 0, and the end, becomes two bytes ([below](#strings-in-keys)) |
//! | `Ipv4Addr`, `SocketAddrV4`, `Ipv6Addr`, `Uuid` | `u64` or `u128`: the address, then the port | those numbers, big-endian, in 4, 6 or 16 bytes |
//! | `SocketAddrV6` | address, port, flow information and scope, big-endian | the same 26 bytes |
//! | `IpAddr`, `SocketAddr` | a byte 0 for version 4 or 1 for version 6, then the address | the same bytes |
//! | `Duration`, `SystemTime` | `u128`: seconds (of a time since 1970, with the sign bit flipped), then 32 bits of nanoseconds | that number, big-endian, in 12 bytes |
//! | `Reverse` of a key | all bits flipped of a number, or of the bytes as a part of another key | all bits flipped |
//! | tuples, arrays, structs | their parts in order | their parts in order |
//! | `Option`, enums | one byte (two if there are more than 256 variants) that counts the smaller variants, then the parts | the same bytes |
//!
//! A part encodes its own end, so a part that is a prefix of another one comes first: the end of a
//! string is smaller than every byte that can follow instead. An [`Instant`](std::time::Instant)
//! is no key, since it has no number.
//!
//! # Strings in keys
//! In a key of several parts, a run of up to 126 bytes 0 takes two bytes, and a longer one takes
//! another byte for each 127. The end takes two bytes, which count the bytes 0 before it. So 16
//! bytes 0 take two bytes. A string of *n* bytes takes at most 1.5 *n* + 2, if each second byte is
//! 0, and *n* + 2 if none is.
//!
//! A string without a byte 0 is borrowed from the index; one with a byte 0 is copied when it is
//! read.
//!
//! # Limits
//! The limits are on the form of a key.
//!
//! | index | longest form |
//! |---|---|
//! | [`BlockTree`](crate::BlockTree), the default for byte strings | 512 KiB |
//! | [`ArtTree`](crate::ArtTree), [`PatriciaTree`](crate::PatriciaTree) | 512 KiB |
//! | [`CaTree`](crate::CaTree), [`LfcaTree`](crate::LfcaTree) | 512 KiB |
//! | [`SkipList`](crate::SkipList) | none |
//!
//! So a key of several parts whose strings have 65 535 bytes in total, of any content, always fits.
//!
//! A longer key is refused with [`AllocError::KeyLength`](crate::AllocError::KeyLength), which
//! contains the limit. The field `max_key_bytes` of
//! [`StructureFacts`](crate::structures::StructureFacts) has the limit of each index.

// Nothing inside the crate imports from here. Structures import from `encoding`, which is below
// them; `map::key` is above them, since a map's key must suit the map's default index.
pub use crate::encoding::{
    ByteKey, Decoder, Encoder, IndexKey, Prefixed, decode_i64, decode_u64, decode_u128, encode_i64,
    encode_u64, encode_u128,
};
#[doc(hidden)]
pub use crate::encoding::{no_variant, ranks};
pub use crate::map::key::{AsKey, AsPrefix, FormRef, Key, OrderMismatch, check_order};
#[doc(hidden)]
pub use crate::map::key::{Form, Forms};

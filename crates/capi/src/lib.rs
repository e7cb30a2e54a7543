//! A C interface to the maps of silvics: [the page](../../../docs/c.md) shows how to use it.
//!
//! Each function translates its arguments for a method of [`AnyMap`](silvics::dynamic::AnyMap), and
//! the result for C. The header `include/silvics.h` is generated from this crate, and a test
//! compares it. `include/silvics.hpp` is a C++ interface over the header.
//!
//! # Rules of the interface
//! 1. A function that can fail returns a code (`status.rs`), and no panic leaves it.
//! 2. Handles are opaque: maps, cursors, budgets. A guard is memory of the program, since pinning
//!    must not allocate.
//! 3. Memory of a map that a call returns is a buffer or a byte key. It is protected by a guard,
//!    which is an argument of such a call: without one the call fails. A cursor has copies of keys.
//! 4. A map owns the buffers that it has, and the destructor of its options destroys them.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `status.rs` | codes, their sentences, and the frame of each call |
//! | `types.rs` | keys, values, options |
//! | `handle.rs` | handles and their lives: invariants H1 to H4 |
//! | `registry.rs` | the open handles of debug builds |
//! | `guard.rs` | pins |
//! | `points.rs`, `batch.rs`, `ends.rs`, `cursor.rs`, `whole.rs` | the calls |

// The names are those of the header.
#![allow(non_camel_case_types)]

// The header has the functions in this order.
mod status;

mod types;

mod handle;

mod guard;

mod points;

mod batch;

mod ends;

mod cursor;

mod whole;

mod registry;

pub use batch::*;
pub use cursor::*;
pub use ends::*;
pub use guard::*;
pub use handle::*;
pub use points::*;
pub use status::*;
pub use types::*;
pub use whole::*;

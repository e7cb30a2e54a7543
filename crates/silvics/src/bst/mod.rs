//! Binary search trees over `u64` keys.
//!
//! | name | module | topology | synchronisation |
//! |---|---|---|---|
//! | `occ-avl` | [`bronson`] | partially external, relaxed AVL | fine locks, optimistic lookups |
//! | `edge-ext-lf`, `edge-ext-lf-2` | [`natarajan`] | external | lock-free, marks on edges |
//! | `ext-lf` | [`ellen`] | external | lock-free, descriptors |
//! | `ticket` | [`ticket`] | external | a versioned lock per edge |
//! | `int-lf` | [`howley`] | internal | lock-free, descriptors |
//! | `edge-int-lf` | [`ramachandran`] | internal | lock-free, marks on edges |
//! | `log-int` | [`drachsler`] | internal, and an ordered list | fine locks, lock-free lookups |
//! | `citrus` | [`citrus`] | internal | fine locks, lookups announced to removers |

pub mod align;
pub mod bronson;
pub mod build;
pub mod citrus;
mod claim;
pub mod drachsler;
pub mod ellen;
pub mod external;
mod home;
pub mod howley;
pub mod natarajan;
pub mod ramachandran;
mod scan;
mod side;
pub mod ticket;
pub mod walk;

pub use scan::Keys;

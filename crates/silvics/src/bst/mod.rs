//! Binary search trees over `u64` keys.
//!
//! [`crate::structures`] has their topologies and synchronisation.
//!
//! | name | module |
//! |---|---|
//! | `occ-avl`, `occ-avl-2` | [`bronson`] |
//! | `edge-ext-lf`, `edge-ext-lf-2` | [`natarajan`] |
//! | `ext-lf` | [`ellen`] |
//! | `ticket` | [`ticket`] |
//! | `int-lf` | [`howley`] |
//! | `edge-int-lf` | [`ramachandran`] |
//! | `log-int` | [`drachsler`] |
//! | `citrus` | [`citrus`] |

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

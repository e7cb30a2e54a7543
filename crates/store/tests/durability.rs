//! Durable stores: losses of power, failing storages, damaged files.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

#[path = "durability/disk.rs"]
mod disk;
#[path = "durability/power.rs"]
mod power;
mod support;

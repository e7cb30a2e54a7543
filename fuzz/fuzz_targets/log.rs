//! See `silvics_memtable::log::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| silvics_memtable::log::fuzz::run(data));

//! See `silvics_testkit::fuzz::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| silvics_testkit::fuzz::index::run(data));

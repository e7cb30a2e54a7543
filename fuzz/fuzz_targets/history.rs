//! See `silvics_testkit::fuzz::history`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| silvics_testkit::fuzz::history::run(data));

//! See `silvics_testkit::fuzz::key_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| silvics_testkit::fuzz::key_file::run(data));

//! See `silvics_testkit::fuzz::encodings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| silvics_testkit::fuzz::encodings::run(data));

/work/main/crates/silvics/tests/target/shuttle/debug/deps/smallvec-d579d5069f4db04d.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libsmallvec-d579d5069f4db04d.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs:

/work/main/crates/silvics/tests/target/shuttle/debug/deps/scopeguard-43c43e0093900436.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scopeguard-1.2.0/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libscopeguard-43c43e0093900436.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scopeguard-1.2.0/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scopeguard-1.2.0/src/lib.rs:

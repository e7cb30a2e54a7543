/work/main/crates/silvics/tests/target/shuttle/debug/deps/rustc_hash-c1284c1807bf13bf.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/seeded_state.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/librustc_hash-c1284c1807bf13bf.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/seeded_state.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rustc-hash-2.1.3/src/seeded_state.rs:

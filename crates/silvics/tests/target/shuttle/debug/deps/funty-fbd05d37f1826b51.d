/work/main/crates/silvics/tests/target/shuttle/debug/deps/funty-fbd05d37f1826b51.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/funty-2.0.0/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libfunty-fbd05d37f1826b51.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/funty-2.0.0/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/funty-2.0.0/src/lib.rs:

/work/main/crates/silvics/tests/target/shuttle/debug/deps/radium-8d1f1c55517c0f00.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/macros.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/types.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libradium-8d1f1c55517c0f00.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/macros.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/types.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/macros.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/radium-0.7.0/src/types.rs:

/work/main/crates/silvics/tests/target/shuttle/debug/deps/cfg_if-76a909741137d306.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libcfg_if-76a909741137d306.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs:

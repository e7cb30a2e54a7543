/work/main/crates/silvics/tests/target/shuttle/debug/deps/scoped_tls-d10e2c6ed5c26638.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libscoped_tls-d10e2c6ed5c26638.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs:

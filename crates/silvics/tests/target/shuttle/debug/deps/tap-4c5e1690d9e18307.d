/work/main/crates/silvics/tests/target/shuttle/debug/deps/tap-4c5e1690d9e18307.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/conv.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/pipe.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/tap.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libtap-4c5e1690d9e18307.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/conv.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/pipe.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/tap.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/conv.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/pipe.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tap-1.0.1/src/tap.rs:

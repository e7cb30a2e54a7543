/work/main/crates/silvics/tests/target/shuttle/debug/deps/wyz-0a256f564385305c.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/bidi.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/comu.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/fmt.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/range.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libwyz-0a256f564385305c.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/bidi.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/comu.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/fmt.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/range.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/bidi.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/comu.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/fmt.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/wyz-0.5.1/src/range.rs:

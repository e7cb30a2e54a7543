/work/main/crates/silvics/tests/target/shuttle/debug/deps/assoc-97915973c87742a6.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/mod.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/entry.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/ext.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libassoc-97915973c87742a6.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/mod.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/entry.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/ext.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/mod.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/entry.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/assoc-0.1.3/src/vec/ext.rs:

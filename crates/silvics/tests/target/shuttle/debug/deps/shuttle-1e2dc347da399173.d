/work/main/crates/silvics/tests/target/shuttle/debug/deps/shuttle-1e2dc347da399173.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/future.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lazy_static.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/rand.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/sync/mod.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/thread.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/scheduler/mod.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libshuttle-1e2dc347da399173.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/future.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lazy_static.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/rand.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/sync/mod.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/thread.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/scheduler/mod.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/future.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/lazy_static.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/rand.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/sync/mod.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/thread.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/shuttle-0.9.9/src/scheduler/mod.rs:

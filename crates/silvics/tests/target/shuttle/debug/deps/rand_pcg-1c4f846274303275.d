/work/main/crates/silvics/tests/target/shuttle/debug/deps/rand_pcg-1c4f846274303275.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg128.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg64.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/librand_pcg-1c4f846274303275.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg128.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg64.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg128.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/rand_pcg-0.3.1/src/pcg64.rs:

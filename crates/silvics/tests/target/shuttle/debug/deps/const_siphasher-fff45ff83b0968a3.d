/work/main/crates/silvics/tests/target/shuttle/debug/deps/const_siphasher-fff45ff83b0968a3.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip128.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/../README.md

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libconst_siphasher-fff45ff83b0968a3.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip128.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/../README.md

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/sip128.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/const-siphasher-1.0.2/src/../README.md:

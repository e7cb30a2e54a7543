/work/main/crates/silvics/tests/target/shuttle/debug/deps/pin_project_lite-5879af8a5cebdea3.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libpin_project_lite-5879af8a5cebdea3.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs:

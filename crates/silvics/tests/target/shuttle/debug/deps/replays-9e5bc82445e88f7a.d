/work/main/crates/silvics/tests/target/shuttle/debug/deps/replays-9e5bc82445e88f7a.d: /work/main/clippy.toml crates/silvics/tests/replays.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libreplays-9e5bc82445e88f7a.rmeta: /work/main/clippy.toml crates/silvics/tests/replays.rs Cargo.toml

/work/main/clippy.toml:
crates/silvics/tests/replays.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

/work/main/crates/silvics/tests/target/shuttle/debug/deps/canaries-782545b5c7c03234.d: /work/main/clippy.toml crates/silvics/tests/canaries.rs crates/silvics/tests/scenarios/mod.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libcanaries-782545b5c7c03234.rmeta: /work/main/clippy.toml crates/silvics/tests/canaries.rs crates/silvics/tests/scenarios/mod.rs Cargo.toml

/work/main/clippy.toml:
crates/silvics/tests/canaries.rs:
crates/silvics/tests/scenarios/mod.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

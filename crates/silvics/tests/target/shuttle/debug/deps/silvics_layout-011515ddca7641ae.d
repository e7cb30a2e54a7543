/work/main/crates/silvics/tests/target/shuttle/debug/deps/silvics_layout-011515ddca7641ae.d: /work/main/clippy.toml crates/layout/src/lib.rs crates/layout/src/class.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libsilvics_layout-011515ddca7641ae.rmeta: /work/main/clippy.toml crates/layout/src/lib.rs crates/layout/src/class.rs Cargo.toml

/work/main/clippy.toml:
crates/layout/src/lib.rs:
crates/layout/src/class.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

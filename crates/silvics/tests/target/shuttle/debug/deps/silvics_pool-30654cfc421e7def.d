/work/main/crates/silvics/tests/target/shuttle/debug/deps/silvics_pool-30654cfc421e7def.d: /work/main/clippy.toml crates/pool/src/lib.rs crates/pool/src/budget.rs crates/pool/src/bytes.rs crates/pool/src/core.rs crates/pool/src/error.rs crates/pool/src/magazine.rs crates/pool/src/pages.rs crates/pool/src/placement.rs crates/pool/src/slab.rs crates/pool/src/typed.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libsilvics_pool-30654cfc421e7def.rmeta: /work/main/clippy.toml crates/pool/src/lib.rs crates/pool/src/budget.rs crates/pool/src/bytes.rs crates/pool/src/core.rs crates/pool/src/error.rs crates/pool/src/magazine.rs crates/pool/src/pages.rs crates/pool/src/placement.rs crates/pool/src/slab.rs crates/pool/src/typed.rs Cargo.toml

/work/main/clippy.toml:
crates/pool/src/lib.rs:
crates/pool/src/budget.rs:
crates/pool/src/bytes.rs:
crates/pool/src/core.rs:
crates/pool/src/error.rs:
crates/pool/src/magazine.rs:
crates/pool/src/pages.rs:
crates/pool/src/placement.rs:
crates/pool/src/slab.rs:
crates/pool/src/typed.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

/work/main/crates/silvics/tests/target/shuttle/debug/deps/schedules-c1f13432beb5f460.d: /work/main/clippy.toml crates/silvics/tests/schedules.rs crates/silvics/tests/scenarios/mod.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libschedules-c1f13432beb5f460.rmeta: /work/main/clippy.toml crates/silvics/tests/schedules.rs crates/silvics/tests/scenarios/mod.rs Cargo.toml

/work/main/clippy.toml:
crates/silvics/tests/schedules.rs:
crates/silvics/tests/scenarios/mod.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

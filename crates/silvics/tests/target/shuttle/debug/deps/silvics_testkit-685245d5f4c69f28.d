/work/main/crates/silvics/tests/target/shuttle/debug/deps/silvics_testkit-685245d5f4c69f28.d: /work/main/clippy.toml crates/testkit/src/lib.rs crates/testkit/src/clock.rs crates/testkit/src/failure.rs crates/testkit/src/history.rs crates/testkit/src/keys.rs crates/testkit/src/linearizable/mod.rs crates/testkit/src/linearizable/ordered.rs crates/testkit/src/linearizable/search.rs crates/testkit/src/rest.rs crates/testkit/src/rng.rs crates/testkit/src/schedules/mod.rs crates/testkit/src/schedules/placement.rs crates/testkit/src/schedules/progress.rs crates/testkit/src/schedules/scenario.rs crates/testkit/src/size.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libsilvics_testkit-685245d5f4c69f28.rmeta: /work/main/clippy.toml crates/testkit/src/lib.rs crates/testkit/src/clock.rs crates/testkit/src/failure.rs crates/testkit/src/history.rs crates/testkit/src/keys.rs crates/testkit/src/linearizable/mod.rs crates/testkit/src/linearizable/ordered.rs crates/testkit/src/linearizable/search.rs crates/testkit/src/rest.rs crates/testkit/src/rng.rs crates/testkit/src/schedules/mod.rs crates/testkit/src/schedules/placement.rs crates/testkit/src/schedules/progress.rs crates/testkit/src/schedules/scenario.rs crates/testkit/src/size.rs Cargo.toml

/work/main/clippy.toml:
crates/testkit/src/lib.rs:
crates/testkit/src/clock.rs:
crates/testkit/src/failure.rs:
crates/testkit/src/history.rs:
crates/testkit/src/keys.rs:
crates/testkit/src/linearizable/mod.rs:
crates/testkit/src/linearizable/ordered.rs:
crates/testkit/src/linearizable/search.rs:
crates/testkit/src/rest.rs:
crates/testkit/src/rng.rs:
crates/testkit/src/schedules/mod.rs:
crates/testkit/src/schedules/placement.rs:
crates/testkit/src/schedules/progress.rs:
crates/testkit/src/schedules/scenario.rs:
crates/testkit/src/size.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR
# env-dep:SILVICS_HALVINGS

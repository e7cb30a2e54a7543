/work/main/crates/silvics/tests/target/shuttle/debug/deps/silvics_sync-95e4d963a16275ae.d: /work/main/clippy.toml crates/sync/src/lib.rs crates/sync/src/backoff.rs crates/sync/src/counter.rs crates/sync/src/facade.rs crates/sync/src/lock.rs crates/sync/src/model/mod.rs crates/sync/src/model/atomic.rs crates/sync/src/model/freed.rs crates/sync/src/model/schedule.rs crates/sync/src/model/stop.rs crates/sync/src/per_thread.rs crates/sync/src/pthread/mod.rs crates/sync/src/pthread/spin.rs crates/sync/src/rcu.rs crates/sync/src/stamp.rs crates/sync/src/tagged.rs crates/sync/src/version.rs Cargo.toml

/work/main/crates/silvics/tests/target/shuttle/debug/deps/libsilvics_sync-95e4d963a16275ae.rmeta: /work/main/clippy.toml crates/sync/src/lib.rs crates/sync/src/backoff.rs crates/sync/src/counter.rs crates/sync/src/facade.rs crates/sync/src/lock.rs crates/sync/src/model/mod.rs crates/sync/src/model/atomic.rs crates/sync/src/model/freed.rs crates/sync/src/model/schedule.rs crates/sync/src/model/stop.rs crates/sync/src/per_thread.rs crates/sync/src/pthread/mod.rs crates/sync/src/pthread/spin.rs crates/sync/src/rcu.rs crates/sync/src/stamp.rs crates/sync/src/tagged.rs crates/sync/src/version.rs Cargo.toml

/work/main/clippy.toml:
crates/sync/src/lib.rs:
crates/sync/src/backoff.rs:
crates/sync/src/counter.rs:
crates/sync/src/facade.rs:
crates/sync/src/lock.rs:
crates/sync/src/model/mod.rs:
crates/sync/src/model/atomic.rs:
crates/sync/src/model/freed.rs:
crates/sync/src/model/schedule.rs:
crates/sync/src/model/stop.rs:
crates/sync/src/per_thread.rs:
crates/sync/src/pthread/mod.rs:
crates/sync/src/pthread/spin.rs:
crates/sync/src/rcu.rs:
crates/sync/src/stamp.rs:
crates/sync/src/tagged.rs:
crates/sync/src/version.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# env-dep:CLIPPY_CONF_DIR

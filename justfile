# What CI calls, and what takes longer. `just --list` shows this.

# Format and lints.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p silvics-cli --no-default-features --features canaries --all-targets -- -D warnings
    RUSTFLAGS="--cfg silvics_shuttle" cargo clippy --target-dir target/shuttle -p silvics -p silvics-testkit \
        --no-default-features --features silvics/canaries --lib --test schedules --test canaries --test replays -- -D warnings
    RUSTFLAGS="--cfg silvics_loom" cargo clippy --profile test --target-dir target/loom -p silvics-sync -p silvics-pool \
        -p silvics --lib -- -D warnings
    RUSTFLAGS="--cfg silvics_loom" cargo clippy --target-dir target/loom -p silvics-sync --test loom -- -D warnings
    RUSTFLAGS="--cfg silvics_poison --cfg silvics_poison_asan" cargo clippy --target-dir target/poison -p silvics-pool -- -D warnings

# All tests of the gate.
test:
    cargo test --workspace

# Every execution of the small pieces under the C11 memory model.
loom:
    RUSTFLAGS="--cfg silvics_loom" cargo test --profile model --target-dir target/loom -p silvics-sync --test loom
    RUSTFLAGS="--cfg silvics_loom" cargo test --profile model --target-dir target/loom -p silvics-pool -p silvics --lib loom

# Whole structures in many orders, on a machine without other work about twenty minutes; `just
# schedules 2000` is what CI runs. A failure prints its schedule; SILVICS_SCHEDULE_FILE=folder
# writes it to a file there, SILVICS_REPLAY=file SILVICS_SCENARIO=name plays that again: the failure
# says the name.
shuttle: (schedules "100000")

# The same with so many schedules per scenario and scheduler, and every canary.
schedules count:
    RUSTFLAGS="--cfg silvics_shuttle" SILVICS_SCHEDULES={{count}} cargo test --profile model --target-dir target/shuttle \
        -p silvics -p silvics-testkit --no-default-features --features silvics/canaries --lib --test schedules --test canaries --test replays

# Most of what can refute the structures, in one long run; its figures for docs/trust.md.
stress: && trust
    .ci/stress

# The figures of the last long run, into docs/trust.md.
trust:
    cargo run -p silvics-testkit --example trust -- target/trust docs/trust.md

# AddressSanitizer and LeakSanitizer, which must first find planted bugs.
asan:
    .ci/sanitize asan

# ThreadSanitizer, in the same way.
tsan:
    .ci/sanitize tsan

# Valgrind's memcheck, in the same way.
valgrind:
    .ci/sanitize valgrind

# That lookups take as many instructions with the recorder compiled out as without its calls. Needs valgrind.
recorder:
    .ci/recorder

# Miri, in the same way.
miri:
    .ci/sanitize miri

# Each fuzz target for a minute, after it has found a planted bug. Needs cargo-fuzz (fuzz/README.md).
fuzz seconds="60":
    .ci/fuzz {{seconds}}

# Histories of real threads, checked while they are recorded.
verify seconds="60":
    cargo run --release -- verify --seconds {{seconds}}

# The default comparison.
bench:
    cargo run --release -- bench

# Pools beside the system's malloc.
bench-pool:
    cargo bench -p silvics-pool --bench malloc

# The whole gate.
ci:
    .ci/run

# The checks and the tools, by name: `just --list` shows them. The commands are in `.ci/step`, which
# needs no `just`: `.ci/step NAME` does what `just NAME` does.

# Format, lints, prose, dependencies.
check: format atomics tidy deny clippy
    .ci/step clippy-configurations

# That rustfmt would change nothing.
format:
    .ci/step format

# Lints of everything that the default features compile.
clippy:
    .ci/step clippy

# That atomics come from silvics-sync alone.
atomics:
    .ci/step atomics

# Width, length and wording of comments and documents, and their links. Paths restrict it.
tidy *paths:
    .ci/step tidy {{paths}}

# Licences, bans and sources of dependencies. Skipped with a message if cargo-deny is missing.
deny:
    .ci/step deny

# All tests of the default features.
test:
    .ci/step tests

# Every execution of the small pieces under the C11 memory model.
loom:
    .ci/step loom

# Whole structures in many orders: about twenty minutes on an idle machine; CI runs fewer. A failure
# prints its schedule; SILVICS_SCHEDULE_FILE=folder writes it to a file there, and
# SILVICS_REPLAY=file SILVICS_SCENARIO=name plays it again (the failure says the name).
shuttle: (schedules "100000")

# As `shuttle`, with this number of schedules per scenario and scheduler, and every canary.
schedules count:
    .ci/step shuttle {{count}}

# Most of what can refute the structures, in one long run; its figures for docs/trust.md.
stress: && trust
    .ci/stress

# The figures of the last long run, into docs/trust.md.
trust:
    cargo run -p silvics-testkit --example trust -- target/trust docs/trust.md

# AddressSanitizer and LeakSanitizer, which must first find planted bugs.
asan:
    .ci/sanitize asan

# ThreadSanitizer, which must first find planted bugs.
tsan:
    .ci/sanitize tsan

# Valgrind's memcheck, which must first find planted bugs.
valgrind:
    .ci/sanitize valgrind

# Miri, which must first find planted bugs.
miri:
    .ci/sanitize miri

# That the recorder adds no instruction to lookups that nobody records. Needs valgrind.
recorder *structures:
    .ci/step recorder {{structures}}

# Each fuzz target for a minute, after it has found a planted bug. Needs cargo-fuzz.
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

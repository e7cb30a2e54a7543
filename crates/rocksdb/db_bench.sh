#!/usr/bin/env bash
# The memtables under RocksDB's own db_bench, which is not changed: the plug-in is preloaded.
#
#     db_bench.sh [--quick] [--num N] [--rounds N] [--plugin FILE] [--json FILE] [MEMTABLE…]
#
# Each round runs every case with the memtables in one order, then in the opposite one. The table
# has medians of thousand operations a second, and ratios to the first memtable. With one seed all
# memtables get the same operations, so reads must find equally many keys. `--json` writes all runs
# into a file, in their order, for `silvics reproduce memtable/2.3 --db-bench FILE`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

num=1000000 rounds=2 plugin='' json='' names=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) num=10000 rounds=1 ;;
    --num) num=$2; shift ;;
    --rounds) rounds=$2; shift ;;
    --plugin) plugin=$2; shift ;;
    --json) json=$2; shift ;;
    -*) echo "db_bench.sh: there is no option $1" >&2; exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
[ ${#names[@]} -gt 0 ] || names=(skip_list silvics_art silvics_skiplist)

packages=(librocksdb-dev rocksdb-tools)
if ! { command -v db_bench && [ -e /usr/include/rocksdb/version.h ]; } >/dev/null \
    && ! { apt-get update && apt-get install -y --no-install-recommends "${packages[@]}"; } >&2; then
  echo "skipped: RocksDB is missing (apt-get install -y --no-install-recommends ${packages[*]})"
  exit
fi
if [ -z "$plugin" ]; then
  (cd "$here" && cargo build --quiet --locked --release --features plugin)
  target=${CARGO_TARGET_DIR:-$here/../../target}
  plugin=$target/release/libsilvics_rocksdb.so
fi
[ -e "$plugin" ] || { echo "db_bench.sh: there is no file $plugin" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The flags of RocksDB's commit D50589, which brought concurrent inserts.
flushing=(--level0_slowdown_writes_trigger=9999 --level0_stop_writes_trigger=9999
  --disable_auto_compactions --max_write_buffer_number=8 --max_background_flushes=8
  --write_buffer_size=160000000 --block_size=16384)
# A write buffer that never fills.
staying=(--write_buffer_size=100000000000 --disable_auto_compactions)

# A case: its name, a memtable, and flags of db_bench. Each line of the results is a name, a
# memtable, and a number. The fill of a case of reads is not among the runs: the case of writes with
# this name has another write buffer.
bench() {
  local case=$1 name=$2 output
  shift 2
  rm -rf "$folder/db"
  if ! output=$(LD_PRELOAD=$plugin db_bench --db="$folder/db" --memtablerep="$name" --seed=1 \
      --value_size=100 --disable_wal --histogram=0 --stats_interval=1000000000 "$@" 2>&1); then
    tail -n 3 <<<"$output" >&2
    echo "db_bench.sh: db_bench failed: $case, $name" >&2
    exit 1
  fi
  tr '\r' '\n' <<<"$output" >>"$folder/log"
  tr '\r' '\n' <<<"$output" | awk -v case="$case" -v name="$name" -v runs="$folder/runs" '
    function run(workload,    part, many, at, value) {
      many = split(case, part, /[ ,]+/)
      for (at = 1; at < many; ++at) value[part[at]] = part[at + 1]
      if (case ~ /unordered/) workload = workload "-unordered"
      printf "{\"memtable\":\"%s\",\"workload\":\"%s\",\"threads\":%d,\"batch\":%d,\"ops_per_s\":%s,\"bytes\":%s}\n",
        name, workload, value["threads"], value["batch"] ? value["batch"] : 1, 1000 * speed,
        bytes ? bytes : "null" >> runs
    }
    / ops\/sec / {
      for (at = 1; at <= NF; ++at) if ($at == "ops/sec") speed = $(at - 1) / 1000
      print case, $1 "|" name "|" speed "|kop/s"
      if ($1 != "fillrandom" || case ~ /batch|unordered/) run($1)
      if (match($0, /\([0-9]+ of [0-9]+ found\)/) && $1 != "readwhilewriting")
        print case, $1 "|" name "|" substr($0, RSTART + 1) + 0 "|found"
    }
    /cur-size-all-mem-tables: / { bytes = $NF }
    /num-entries-active-mem-table: / { print case, "memtable|" name "|" bytes / $NF "|bytes an entry" }
  ' >>"$folder/results"
}

writes() {
  local threads
  for threads in 1 2 8; do
    bench "threads $threads, batch 1," "$1" --benchmarks=fillrandom --threads="$threads" \
      --num=$((num / threads)) --batch_size=1 --allow_concurrent_memtable_write "${flushing[@]}"
  done
  bench "threads 1, batch 100," "$1" --benchmarks=fillrandom --num="$num" --batch_size=100 "${flushing[@]}"
  bench "threads 8, unordered," "$1" --benchmarks=fillrandom --threads=8 --num=$((num / 8)) \
    --batch_size=1 --allow_concurrent_memtable_write --unordered_write \
    --enable_pipelined_write=false "${flushing[@]}"
}

# The reads are those of the memtable that the same process has filled.
reads() {
  bench "threads 1," "$1" --benchmarks=fillrandom,memstats,readrandom,seekrandom,readwhilewriting \
    --num="$num" --reads=$((num / 4)) --seek_nexts=10 "${staying[@]}"
  bench "threads 2," "$1" --benchmarks=fillrandom,readrandom --threads=2 --num="$num" \
    --reads=$((num / 4)) "${staying[@]}"
}

for ((round = 0; round < rounds; ++round)); do
  order=("${names[@]}")
  for ((at = ${#names[@]} - 1; at >= 0; --at)); do order+=("${names[at]}"); done
  for name in "${order[@]}"; do
    writes "$name"
    reads "$name"
  done
done

if [ -n "$json" ]; then
  { echo '['; sed '$!s/$/,/' "$folder/runs"; echo ']'; } >"$json"
fi

echo "$num entries, $((2 * rounds)) runs of each, load $(cut -d ' ' -f 1-3 /proc/loadavg) at the end"
if grep -q 'Assertions are enabled' "$folder/log"; then
  echo "This build of RocksDB has assertions, which make skip_list slower than a build without them."
fi
awk -F '|' -v names="${names[*]}" '
  function median(key,    n, all, i, j, t) {
    n = split(values[key], all, " ")
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && all[j - 1] + 0 > all[j] + 0; --j) {
      t = all[j]; all[j] = all[j - 1]; all[j - 1] = t
    }
    return n % 2 ? all[(n + 1) / 2] : (all[n / 2] + all[n / 2 + 1]) / 2
  }
  $4 == "found" {
    if ($1 in found && found[$1] != $3) {
      print "db_bench.sh: " $1 " found " $3 " keys with " $2 ", and " found[$1] " before"
      wrong = 1
    }
    found[$1] = $3
    next
  }
  {
    key = $1 " (" $4 ")"
    if (!(key in known)) { known[key] = 1; keys[++count] = key }
    values[key, $2] = values[key, $2] " " $3
  }
  END {
    many = split(names, name, " ")
    printf "%-50s", ""
    for (at = 1; at <= many; ++at) printf " %21s", name[at]
    print ""
    for (at = 1; at <= count; ++at) {
      printf "%-50s", keys[at]
      first = median(keys[at] SUBSEP name[1])
      for (of = 1; of <= many; ++of) {
        it = median(keys[at] SUBSEP name[of])
        printf " %10.1f (%6.2f x)", it, it / first
      }
      print ""
    }
    exit wrong
  }
' "$folder/results"

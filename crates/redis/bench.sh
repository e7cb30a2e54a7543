#!/usr/bin/env bash
# Measures the module beside the server's own types, on one server, in alternating runs:
#
#     bench.sh [--quick] [--valkey]
#
# It prints Markdown tables: requests a second by redis-benchmark (medians of the runs, and the
# lowest and highest of the ratios of runs that follow each other), and bytes per entry. Both sides
# have all keys before the first run, and take turns in running first.
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh

entries=1000000 requests=1000000 ranges=300000 runs=5 server=redis-server
for option in "$@"; do
  case $option in
    --quick) entries=20000 requests=40000 ranges=4000 runs=2 ;;
    --valkey) server='' ;;
    *) echo "bench.sh: there is no option $option" >&2; exit 2 ;;
  esac
done
packages
[ -n "$server" ] || server=$(valkey)
build_module release

folder=$(mktemp -d)
port=$(python3 -c 'from socket import *; s = socket(); s.bind(("", 0)); print(s.getsockname()[1])')
"$server" --port $port --bind 127.0.0.1 --save '' --appendonly no --dir "$folder" \
  --logfile "$folder/log" --loadmodule "$module" &
pid=$!
trap 'kill $pid 2>/dev/null || true; wait $pid 2>/dev/null || true; rm -rf "$folder"' EXIT
ask() { redis-cli -p $port "$@"; }
for _ in $(seq 100); do ask ping >/dev/null 2>&1 && break; sleep 0.05; done
if ! ask info server 2>/dev/null | grep -q "process_id:$pid"; then
  echo "bench.sh: the server did not start; its log ends with:" >&2
  tail -5 "$folder/log" >&2
  exit 1
fi

# Requests a second of a command.
rate() {
  local count=$1
  shift
  redis-benchmark -p $port -P 32 -c 50 -n "$count" -r $entries --csv "$@" 2>/dev/null \
    | tail -1 | awk -F'","' '{print $2}'
}

# A row of two commands, whose runs alternate.
row() {
  local name=$1 count=$2 ours=$3 theirs=$4 a=() b=()
  local run
  # shellcheck disable=SC2086 # the words of a command
  for run in $(seq $runs); do
    [ $((run % 2)) = 0 ] || b+=("$(rate "$count" $theirs)")
    a+=("$(rate "$count" $ours)")
    [ $((run % 2)) = 1 ] || b+=("$(rate "$count" $theirs)")
  done
  python3 - "$name" "${a[*]}" "${b[*]}" <<'P'
import statistics, sys
name, ours, theirs = sys.argv[1], *([float(x) for x in text.split()] for text in sys.argv[2:])
ratios = [a / b for a, b in zip(ours, theirs)]
print(f"| {name} | {statistics.median(ours) / 1000:.0f} | {statistics.median(theirs) / 1000:.0f} "
      f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |")
P
}

# All keys, in random order, for maps and sorted sets.
python3 - $port $entries <<'P'
import random, socket, sys
port, entries = int(sys.argv[1]), int(sys.argv[2])
connection = socket.create_connection(("127.0.0.1", port))
replies = connection.makefile("rb")
def send(commands):
    words = lambda command: b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)
    request = lambda command: b"*%d\r\n%s" % (len(command), words(command))
    connection.sendall(b"".join(request(command) for command in commands))
    for _ in commands:
        assert replies.readline()[:1] in b"+:"
order = list(range(entries))
random.Random(1).shuffle(order)
for start in range(0, entries, 500):
    keys = [(number, b"key:%012d" % number) for number in order[start:start + 500]]
    send([(b"ZADD", b"scores", b"%d" % number, key) for number, key in keys])
    send([(b"ZADD", b"zset", b"0", key) for _, key in keys])
    send([(b"OM.SET", b"numbers", key, b"%d" % number) for number, key in keys])
    send([(b"OM.SET", b"texts", key, b"value:%014d" % number) for number, key in keys])
    send([(b"HSET", b"htexts", key, b"value:%014d" % number) for number, key in keys])
    send([(b"HSET", b"hnumbers", key, b"%d" % number) for number, key in keys])
def ask(*command):
    words = (b"$%d\r\n%s\r\n" % (len(word), word) for word in command)
    connection.sendall(b"*%d\r\n" % len(command) + b"".join(words))
    lines = int(replies.readline()[1:])
    return [replies.read(int(replies.readline()[1:]) + 2)[:-2] for _ in range(lines)]
start = b"[key:%012d" % (entries // 2)
ours = ask(b"OM.RANGE", b"numbers", start, b"+", b"LIMIT", b"0", b"100", b"KEYSONLY")
theirs = ask(b"ZRANGEBYLEX", b"zset", start, b"+", b"LIMIT", b"0", b"100")
assert len(ours) == 100 and ours == theirs
P

# By MEMORY USAGE, before values are replaced.
usage() { ask MEMORY USAGE "$1" SAMPLES 0; }
sizes=$(usage numbers; usage scores; usage texts; usage htexts)

echo "$("$server" --version | sed 's/ sha=.*//'), $entries entries, $runs runs"
echo
echo "| commands | module, thousand/s | server's type, thousand/s | ratio | ratios |"
echo "|---|---|---|---|---|"
for size in '5 bytes:numbers:hnumbers:value' '20 bytes:texts:htexts:value-of-20-bytes-xx'; do
  IFS=: read -r bytes map hash value <<<"$size"
  row "OM.SET and HSET, $bytes" $requests \
    "OM.SET $map key:__rand_int__ $value" "HSET $hash key:__rand_int__ $value"
  row "OM.GET and HGET, $bytes" $requests \
    "OM.GET $map key:__rand_int__" "HGET $hash key:__rand_int__"
done
# No command has made keys or failed unseen.
for type in OM.LEN:numbers OM.LEN:texts HLEN:hnumbers HLEN:htexts; do
  if [ "$(ask "${type%:*}" "${type#*:}")" != $entries ]; then
    echo "bench.sh: $type is not $entries" >&2
    exit 1
  fi
done
row '100 keys of a range: OM.RANGE and ZRANGEBYLEX' $ranges \
  'OM.RANGE numbers [key:__rand_int__ + LIMIT 0 100 KEYSONLY' \
  'ZRANGEBYLEX zset [key:__rand_int__ + LIMIT 0 100'
echo
echo "| keys of 16 bytes with | OM, bytes per entry | server's type | ratio |"
echo "|---|---|---|---|"
python3 - $entries "$sizes" <<'P'
import sys
entries, sizes = int(sys.argv[1]), [int(size) / int(sys.argv[1]) for size in sys.argv[2].split()]
for name, ours, theirs in [
    ("numbers and scores (ZSET)", *sizes[:2]), ("texts of 20 bytes (HASH)", *sizes[2:])
]:
    print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |")
P

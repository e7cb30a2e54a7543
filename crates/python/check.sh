#!/usr/bin/env bash
# Builds the wheel in a fresh environment, and runs its tests, its example and a short benchmark.
# With --quick the wheel is built with the profile `dev`, and threads run for a shorter time. With
# --wheel it is built and installed in the environment, and nothing is run. If a tool is missing,
# the script ends without an error, and with one if SILVICS_REQUIRE=1.
set -euo pipefail
cd "$(dirname "$0")"

profile=release
if [ "${1:-}" = --quick ]; then
  profile=dev
  export SILVICS_TEST_SECONDS=0.4
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
export CARGO_TARGET_DIR=$target
place=$target/python
mkdir -p "$place"

skip() {
  echo "skipped: $1"
  [ "${SILVICS_REQUIRE:-0}" != 1 ]
  exit
}

# Makes the environment, unless it is there.
environment() {
  [ -x "$place/venv/bin/pip" ] && return
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    && python3 -m venv --clear "$place/venv"
}
if ! environment >"$place/venv.log" 2>&1 \
    && ! { apt-get update && apt-get install -y --no-install-recommends python3-venv && environment; } >&2; then
  skip "Python 3.11 or its venv is missing (apt-get install -y --no-install-recommends python3-venv)"
fi
python=$place/venv/bin/python
# The versions with which the tests and the figures of docs/python.md were made.
packages=(maturin==1.16.0 numpy==2.4.6 pytest==9.2.0 sortedcontainers==2.4.0)
if ! "$python" -m pip install -q --disable-pip-version-check "${packages[@]}"; then
  skip "pip could not install ${packages[*]}"
fi

rm -rf "$place/wheels"
"$python" -m maturin build -q --locked --profile "$profile" -i "$python" -o "$place/wheels"
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$place"/wheels/*.whl
[ "${1:-}" != --wheel ] || exit 0
# No file is written beside the sources.
export PYTHONDONTWRITEBYTECODE=1
"$python" -X dev -m pytest -q -p no:cacheprovider tests
"$python" original.py
"$python" examples/leaderboard.py
"$python" bench.py --quick

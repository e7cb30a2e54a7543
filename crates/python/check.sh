#!/usr/bin/env bash
# Builds the wheel in a fresh environment, and runs its tests, its example and a short benchmark.
# With --quick the wheel is built with the profile `dev`, and threads run for a shorter time.
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

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "skipped: Python 3.11 or later is missing (apt-get install python3-venv)"
  exit
fi
if ! [ -x "$place/venv/bin/pip" ] && ! python3 -m venv --clear "$place/venv" >"$place/venv.log" 2>&1; then
  echo "skipped: Python's venv is missing (apt-get install python3-venv)"
  exit
fi
python=$place/venv/bin/python
packages=(maturin numpy pytest sortedcontainers)
if ! "$python" -c 'import maturin, numpy, pytest, sortedcontainers' 2>/dev/null \
    && ! "$python" -m pip install -q --disable-pip-version-check "${packages[@]}"; then
  echo "skipped: pip could not install ${packages[*]}"
  exit
fi

rm -rf "$place/wheels"
"$python" -m maturin build -q --locked --profile "$profile" -i "$python" -o "$place/wheels"
"$python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$place"/wheels/*.whl
# No file is written beside the sources.
export PYTHONDONTWRITEBYTECODE=1
"$python" -X dev -m pytest -q -p no:cacheprovider tests
"$python" original.py
"$python" examples/leaderboard.py
"$python" bench.py --quick

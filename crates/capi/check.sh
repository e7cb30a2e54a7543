#!/usr/bin/env bash
# Checks the C library with the compilers of this machine:
#
#     check.sh [release|asan|tsan]
#
# Without an argument it builds a debug library, looks at its symbols, and compiles and runs the
# tests and the examples with gcc and clang, against the shared and the static library. Then it runs
# them under gcc's AddressSanitizer. `release` does the first with a release library. `asan` runs
# them under AddressSanitizer with an instrumented library; `tsan` runs those with threads under
# ThreadSanitizer. Both need a nightly toolchain with rust-src. A sanitizer must first find a
# planted mistake.
set -euo pipefail
cd "$(dirname "$0")"
what=${1:-}
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")

packages=(gcc g++ binutils clang pkg-config)
has_all() { command -v gcc && command -v g++ && command -v objcopy && command -v clang++ && command -v pkg-config; }
install() { apt-get update && apt-get install -y --no-install-recommends "${packages[@]}"; }
if ! has_all >/dev/null && ! install >&2; then
  echo "skipped: a compiler is missing (apt-get install -y --no-install-recommends ${packages[*]})"
  exit
fi

sanitizer=''
case $what in
  '' | release) ;;
  asan) sanitizer=address ;;
  tsan) sanitizer=thread ;;
  *) echo "check.sh: there is no check $what: there are release, asan and tsan" >&2; exit 2 ;;
esac
if [ -n "$sanitizer" ]; then
  rustup component list --toolchain nightly --installed 2>/dev/null | grep -q rust-src \
    || timeout 120 rustup component add --toolchain nightly rust-src >/dev/null 2>&1 \
    || { echo "skipped: nightly has no rust-src (rustup component add --toolchain nightly rust-src)"; exit; }
  export RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_TARGET_DIR=$target/$what-c
  export CARGO_BUILD_TARGET=x86_64-unknown-linux-gnu RUSTUP_TOOLCHAIN=nightly
  # An uninstrumented standard library gives false alarms of races, and none of memory.
  [ $what = asan ] || export SILVICS_CARGO_FLAGS=-Zbuild-std
  export SILVICS_CFLAGS="-fsanitize=$sanitizer"
  [ $what = asan ] || SILVICS_CFLAGS+=" -fPIC -O1 $PWD/tests/c/tsan.c"
fi

prefix=$target/silvics-c-${what:-debug}
debug=(--debug)
[ "$what" = release ] && debug=()
./build.sh "${debug[@]}" --prefix "$prefix"
SILVICS_CFLAGS=${sanitizer:+-fsanitize=$sanitizer}
unset RUSTFLAGS CARGO_BUILD_TARGET RUSTUP_TOOLCHAIN

warn=(-Wall -Wextra -Wpedantic -Werror -O1 -g -pthread)
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# compiled COMPILER STANDARD SOURCE LIBRARIES…: the path of the program.
compiled() {
  local compiler=$1 standard=$2 source=$3 program
  program=$prefix/$(basename "$source").$1
  shift 3
  rm -f "$program"
  "$compiler" "${warn[@]}" -std="$standard" $(pkg-config --cflags silvics) ${SILVICS_CFLAGS:-} \
    "$source" -o "$program" "$@" || return 1
  echo "$program"
}
shared=($(pkg-config --libs silvics) "-Wl,-rpath,$prefix/lib")
static=("$prefix/lib/libsilvics.a" -lm -lgcc_s)

# Runs the tests under a sanitizer.
sanitized() {
  local threads
  threads=$(compiled gcc c11 tests/c/threads.c "${shared[@]}")
  if "$threads" mistake >"$prefix/mistake.log" 2>&1; then
    echo "check.sh: the sanitizer does not find the planted mistake"
    return 1
  fi
  grep -q -e heap-use-after-free -e 'data race' -e 'race on' "$prefix/mistake.log"
  for _ in 1 2 3 4 5; do "$threads"; done
  "$(compiled gcc c11 examples/stock.c "${shared[@]}")"
  "$(compiled g++ c++20 examples/sessions.cpp "${shared[@]}")"
  "$(compiled g++ c++20 tests/c/faces.cpp "${shared[@]}")"
  if [ "$what" != tsan ]; then "$(compiled gcc c11 tests/c/behaviour.c "${shared[@]}")" debug; fi
}
if [ -n "$sanitizer" ]; then
  sanitized
  exit
fi

# No symbol but those of the interface, each with its version.
others=$(nm --dynamic --defined-only "$prefix/lib/libsilvics.so" \
  | grep -v -e ' T silvics_[a-z_]*@@SILVICS_0.1$' -e ' A SILVICS_0.1$' || true)
others+=$(nm --extern-only --defined-only --format=just-symbols "$prefix/lib/libsilvics.a" \
  | grep -v -e '^silvics_' -e ':$' -e '^$' || true)
[ -z "$others" ] || { echo "check.sh: symbols outside of the interface: $others"; exit 1; }
readelf --dynamic "$prefix/lib/libsilvics.so" | grep -q 'soname: \[libsilvics.so.0\]'

for pair in gcc:g++ clang:clang++; do
  c=${pair%:*} cxx=${pair#*:}
  for standard in c99 c23; do
    [ $standard = c23 ] && standard=c2x
    echo '#include <silvics.h>' \
      | "$c" "${warn[@]}" -std=$standard $(pkg-config --cflags silvics) -fsyntax-only -x c -
  done
  for libraries in shared static; do
    declare -n to=$libraries
    "$(compiled "$c" c11 tests/c/behaviour.c "${to[@]}")" "${debug[@]#--}"
    "$(compiled "$c" c11 tests/c/threads.c "${to[@]}")"
    "$(compiled "$c" c11 examples/stock.c "${to[@]}")"
    "$(compiled "$cxx" c++20 tests/c/faces.cpp "${to[@]}")"
    "$(compiled "$cxx" c++20 examples/sessions.cpp "${to[@]}")"
  done
  "$(compiled "$c" c11 tests/c/allocations.c "${shared[@]}" -ldl)"
done

# The library is not instrumented here, but the buffers belong to the program.
if [ -z "$what" ]; then
  SILVICS_CFLAGS=-fsanitize=address
  sanitized
fi

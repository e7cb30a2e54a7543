#!/usr/bin/env bash
# Builds the C library and installs it into a folder:
#
#     build.sh [--debug] [--prefix DIR]
#
# DIR gets include/silvics.h, include/silvics.hpp, lib/libsilvics.a, lib/libsilvics.so and
# lib/pkgconfig/silvics.pc. It is target/silvics-c unless it is given. A debug library finds wrong
# handles. The script needs Rust, a C compiler and binutils. CC is the compiler.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

profile=release prefix=''
while [ $# -gt 0 ]; do
  case $1 in
    --debug) profile=dev ;;
    --prefix) prefix=${2:?build.sh: --prefix needs a folder}; shift ;;
    *) echo "build.sh: there is no option $1" >&2; exit 2 ;;
  esac
  shift
done
for tool in "${CC:-cc}" ld objcopy nm readelf ar; do
  command -v "$tool" >/dev/null || {
    echo "build.sh: $tool is missing (apt-get install -y --no-install-recommends gcc binutils)" >&2
    exit 1
  }
done

target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")
export CARGO_TARGET_DIR=$target
prefix=$(realpath -m "${prefix:-$target/silvics-c}")
cd "$here"
folder=$([ $profile = release ] && echo release || echo debug)
cargo build --quiet --locked --profile $profile ${SILVICS_CARGO_FLAGS:-} \
  ${CARGO_BUILD_TARGET:+--target "$CARGO_BUILD_TARGET"}
archive=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$folder/libsilvics_capi.a

mkdir -p "$prefix"/{include,lib/pkgconfig}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One object, in which all symbols are local but those of the interface.
roots=()
while read -r symbol; do roots+=(-u "$symbol"); done < <(sed -n 's/^.*[ *]\(silvics_[a-z_]*\)(.*$/\1/p' \
  include/silvics.h | grep -v -e _key -e _value | sort -u)
ld -r --gc-sections "${roots[@]}" -o "$work/silvics.o" "$archive"
strip=()
[ $profile = release ] && strip=(--strip-debug)
# The bitcode of the standard library is of no use, and a plug-in of binutils may stumble over it.
objcopy --remove-section=.llvmbc --remove-section=.llvmcmd "${strip[@]}" "$work/silvics.o"
nm --extern-only --defined-only --format=just-symbols "$work/silvics.o" \
  | grep -v -e '^silvics_' -e ':$' >"$work/others"
# Functions of newer C libraries, which the standard library uses where they are: `ld -r` has made
# them necessary.
readelf --symbols --wide "$archive" 2>/dev/null \
  | awk '$5 == "WEAK" && $7 == "UND" { print $8 }' | sort -u >"$work/weak"
objcopy --localize-symbols="$work/others" --weaken-symbols="$work/weak" "$work/silvics.o"
rm -f "$prefix/lib/libsilvics.a"
ar rcs "$prefix/lib/libsilvics.a" "$work/silvics.o"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' ../../Cargo.toml | head -1)
"${CC:-cc}" -shared ${SILVICS_CFLAGS:-} -o "$prefix/lib/libsilvics.so.$version" "$work/silvics.o" \
  -Wl,-soname,libsilvics.so.0 -Wl,--version-script=silvics.map -Wl,--no-undefined -Wl,-z,relro,-z,now \
  -lpthread -ldl -lm -lgcc_s
ln -sf "libsilvics.so.$version" "$prefix/lib/libsilvics.so.0"
ln -sf libsilvics.so.0 "$prefix/lib/libsilvics.so"
cp include/silvics.h include/silvics.hpp "$prefix/include"
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" silvics.pc.in >"$prefix/lib/pkgconfig/silvics.pc"
echo "$prefix"

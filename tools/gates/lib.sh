# Sourced by the gates, in the top folder: $build, $scratch (removed at the end), $jobs, build_target, skip.
build=${SHARDLINGS_BUILD:-$PWD/build}
jobs=$(nproc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
  echo "skipped: $*"
  exit 77
}

# Builds targets of the default build folder; the output is shown only when it fails.
build_target() {
  [ -f "$build/build.ninja" ] || cmake --preset default -B "$build" >/dev/null
  cmake --build "$build" --target "$@" >"$scratch/build.log" 2>&1 || {
    cat "$scratch/build.log"
    exit 1
  }
}

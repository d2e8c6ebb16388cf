#!/bin/sh
# lib-sanitize.sh PRESET: builds common_tests, every solution's tests and, with asan, those of MPI with the preset and runs them; used by the gates asan and tsan.
set -eu
. tools/gates/lib.sh
preset=$1
folder=$PWD/build-$preset
cmake --preset "$preset" >"$scratch/log" 2>&1 || {
  cat "$scratch/log"
  exit 1
}
targets=$(cmake --build "$folder" --target help | sed -n 's/^\(sol_[a-z0-9_]*\|common_tests\|mpi_tests\|mpi_process_tests\): phony.*/\1/p' | sort -u)
[ -n "$targets" ]
begin=$(date +%s)
# shellcheck disable=SC2086 # a list of words
cmake --build "$folder" --target $targets >"$scratch/log" 2>&1 || {
  tail -n 60 "$scratch/log"
  exit 1
}
echo "built in $(($(date +%s) - begin)) s"
# halt_on_error: the first report fails the test, which prints it. Thread ranks and OpenMP's sleeping workers make detours slow, not wrong.
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
  ctest --test-dir "$folder" -L 'common|solution|mpi' -j "$jobs" --no-tests=error --output-on-failure >"$scratch/log" 2>&1 || {
  tail -n 150 "$scratch/log"
  exit 1
}
tail -n 8 "$scratch/log"

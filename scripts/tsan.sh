#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of threads and of what they share, under ThreadSanitizer. src/core/ needs nothing above
# it, so its tests are compiled in seconds; sessions that share a model need the whole library
# (`tsan.sh core` leaves them out).
set -eu
cd "$(dirname "$0")/.."
work=build/tsan-core
mkdir -p "$work"
# Older sanitizers stop where the system spreads addresses widely.
plain=''
if setarch -R true 2>/dev/null; then plain='setarch -R'; fi
for name in threads/threads tensor/derived; do
    ${CC:-cc} -std=c17 -g -O1 -fsanitize=thread -ffp-contract=off -D_XOPEN_SOURCE=700 \
        -D_FILE_OFFSET_BITS=64 -DTARE_VERSION_STRING='""' -Isrc -Itests -Iinclude \
        "tests/unit/core/${name%/*}/test_${name#*/}.c" tests/support/processors.c tests/support/faults.c $(find src/core -name "*.c") \
        -lcmocka -ljansson -lxxhash -lm -pthread -o "$work/${name#*/}"
    $plain "$work/${name#*/}"
done
[ "${1:-}" != core ] || exit 0

tests='shared_model threads'
cmake --preset tsan >"$work/configure.log"
for name in $tests; do set -- "$@" --target "unit_runtime_session_$name"; done
cmake --build --preset tsan "$@"
for name in $tests; do $plain "build/tsan/tests/unit_runtime_session_$name"; done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of threads and of what they share, under ThreadSanitizer. src/core/ needs nothing above
# it, so these are compiled in seconds; the preset tsan builds everything.
set -eu
cd "$(dirname "$0")/.."
work=build/tsan-core
mkdir -p "$work"
# Older sanitizers stop where the system spreads addresses widely.
plain=''
if setarch -R true 2>/dev/null; then plain='setarch -R'; fi
for name in threads derived; do
    ${CC:-cc} -std=c17 -g -O1 -fsanitize=thread -ffp-contract=off -D_XOPEN_SOURCE=700 \
        -D_FILE_OFFSET_BITS=64 -DTARE_VERSION_STRING='""' -Isrc -Itests -Iinclude \
        "tests/unit/core/test_$name.c" tests/support/processors.c src/core/*.c \
        -lcmocka -ljansson -lm -pthread -o "$work/$name"
    $plain "$work/$name"
done

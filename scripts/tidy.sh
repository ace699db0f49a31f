#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy over the library and the command line, or over the sources named.
# usage: tidy.sh [FILE..]    Needs the compile commands of the dev build (make test leaves them).
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2046 # No name of ours has a space.
[ $# -gt 0 ] || set -- $(git ls-files -co --exclude-standard 'src/*.c' 'cli/*.c')

# Kernels of another machine are not compiled here. One file a process: clang-tidy 14 mixes up the
# va_lists of one file with those of the next.
status=0
for file in "$@"; do
    if grep -q "/$file\"" build/dev/compile_commands.json; then echo "$file"; fi
done | xargs -P "$(nproc)" -n 1 clang-tidy -p build/dev --quiet 2>&1 || status=$?
exit "$status"

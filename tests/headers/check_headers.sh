#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles every public header alone, with nothing before it.
# usage: check_headers.sh INCLUDE_FOLDER COMPILER LANGUAGE STANDARD
set -eu
include=$1 compiler=$2 language=$3 standard=$4
if ! command -v "$compiler" >/dev/null 2>&1; then
    echo "no compiler for $language here"
    exit 77
fi
count=0 failures=0
for header in "$include"/tare/*.h; do
    [ -e "$header" ] || continue
    count=$((count + 1))
    name=tare/$(basename "$header")
    printf '#include "%s"\ntypedef int not_empty;\n' "$name" |
        "$compiler" -x "$language" "-std=$standard" -pedantic-errors -Wall -Wextra -Werror \
            -fsyntax-only -I "$include" - || { echo "$name: not $standard by itself"; failures=$((failures + 1)); }
done
echo "$count headers as $standard, $failures failed"
[ "$failures" -eq 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every function of the public headers has a comment of its own: the line before its declaration is a /// comment.
# usage: check_comments.sh INCLUDE_FOLDER
set -eu
include=$1

# Prints the declarations without one; fails if there are any.
uncommented() {
    awk '/^[^\/#]*TARE_API/ && before !~ /^\/\/\// { print FILENAME ":" FNR ": no comment: " $0; failures++ }
         { before = $0 }
         END { exit failures > 0 }' "$@"
}

# Two functions cannot share a comment, and a comment behind a declaration does not count.
if printf '/// Counts.\nTARE_API int a(void);\nTARE_API int b(void); // NULL is fine\n' |
    uncommented >/dev/null; then
    echo "the check does not find a missing comment"
    exit 1
fi
count=$(cat "$include"/tare/*.h | grep -c '^TARE_API')
[ "$count" -gt 300 ]
uncommented "$include"/tare/*.h
echo "$count functions, each with a comment"

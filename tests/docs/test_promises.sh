#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every test that docs/reliability.md names for a promise is there.
set -eu
page=docs/reliability.md
missing=0 count=0

# unit.core.system.file is tests/unit/core/system/test_file.c; cli.names a script; fuzz.NAME a fuzzer; others stand in
# the build files.
is_there() {
    folder=tests/$(echo "${1%.*}" | tr . /)
    last=${1##*.}
    case $1 in
    fuzz.\*) return 0 ;;
    fuzz.*) [ -e "tests/fuzz/fuzz_$last.c" ] ;;
    examples.*) grep -q '^// ctest:' "examples/$last.c" ;;
    *.*) [ -e "$folder/test_$last.c" ] || [ -e "$folder/test_$last.sh" ] ;;
    *) grep -Rqw -e "tare_add_test($1" -e "NAME $1" cmake ;;
    esac
}

# The last column of each table of promises.
names=$(awk -F ' [|] ' '/^[|] promise /{on=1; next} /^[^|]/{on=0} on && NF > 1 {print $NF}' "$page" |
    grep -oE '`[a-z0-9_.*]+`' | tr -d '`' | sort -u)
for name in $names; do
    count=$((count + 1))
    is_there "$name" || { echo "$page: there is no test '$name'"; missing=1; }
done
echo "$count tests are named"
[ "$count" -gt 30 ] && [ "$missing" = 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare-replay from outside: what it takes, what it prints, how it ends.
set -u
replay=${TARE_REPLAY:?}
cases=${TARE_SOURCE_DIR:?}/tests/cases
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# expect STATUS PATTERN ARGUMENTS..: the exit status, and a line that stands in the output.
expect() {
    status=$1 pattern=$2
    shift 2
    "$replay" "$@" >"$folder/out" 2>&1
    found=$?
    if [ "$found" -ne "$status" ] || ! grep -q -e "$pattern" "$folder/out"; then
        echo "tare-replay $*: expected status $status and '$pattern', found $found and:"
        cat "$folder/out"
        failed=1
    fi
}

expect 0 '^usage: tare-replay' --help
expect 2 'no CASE'
expect 2 'did you mean --verbose' --verbos "$cases"
expect 2 '--jobs needs a number' --jobs 0 "$cases"
expect 2 '--known needs a value' "$cases" --known
expect 2 'no/such/list' --known no/such/list "$cases"
expect 2 'no/such/case' no/such/case
expect 2 'there is no case in it' "$folder"
expect 2 'is no zip archive' "$cases/pack.py"

# From any directory, one process or several.
cd "$folder" || exit 1
expect 0 '^12 passed, 0 failed$' "$cases/conv1d.zip"
expect 0 '^12 passed, 0 failed$' --jobs 1 --verbose "$cases/linear_bn.zip"
expect 0 '^known shared_module_x86_lowered_0: torch ' "$cases/shared_module.zip"

# From the exported program, which only some cases bring.
expect 0 '^15 passed, 0 failed$' --from-pt2 "$cases/from_pt2.zip"
expect 1 '^fail conv1d_.*: read: the case has no model.pt2' --from-pt2 "$cases/conv1d.zip"

# Without the list of known differences they fail, with a reason.
: >nothing
expect 1 "^fail shared_module_x86_lowered_0: output 'converted'" --known=nothing \
    "$cases/shared_module.zip"
echo 'no colon' >wrong
expect 2 'wrong: line 1' --known wrong "$cases/conv1d.zip"

# A case that cannot be read is one failure.
mkdir broken
echo '{"kind": "lowered"}' >broken/case.json
expect 1 '^fail broken: cannot be read' broken
expect 1 '^12 passed, 1 failed$' broken "$cases/conv1d.zip"
exit $failed

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants one violation at a time in a copy of the tree; check_layers.sh must name each of them, and
# must accept what is allowed.  usage: selftest.sh ROOT
set -eu
root=$1
check=$root/tests/layers/check_layers.sh
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
for folder in include src cli examples bench; do
    mkdir -p "$copy/$folder"
    [ -d "$root/$folder" ] && cp -R "$root/$folder/." "$copy/$folder/"
done
failures=0

# plant WANTED FILE INCLUDE: WANTED is the expected exit status.
plant() {
    mkdir -p "$copy/$(dirname "$2")"
    printf '#include %s\n' "$3" >"$copy/$2"
    status=0
    output=$(sh "$check" "$copy") || status=$?
    rm "$copy/$2"
    if [ "$status" -ne "$1" ]; then
        echo "planted '#include $3' in $2: status $status, expected $1"
        failures=$((failures + 1))
    elif [ "$1" -ne 0 ] && ! printf '%s\n' "$output" | grep -q "^$2:1: "; then
        echo "planted '#include $3' in $2: refused, but not named in: $output"
        failures=$((failures + 1))
    fi
}

plant 0 src/core/planted.c '"tare/planted.h"'
plant 0 src/config/planted.c '"core/planted.h"'
plant 0 src/runtime/gemm/planted.c '"runtime/kernels/planted.h"'
plant 0 src/runtime/plan/planted.c '"runtime/steps/planted.h"'
plant 0 src/flow/export/planted.c '"quantizers/planted.h"'
plant 0 src/debug/planted.c '"runtime/planted.h"'
plant 0 src/core/planted.c '<stdio.h>'
plant 0 src/flow/fx/planted.c '"flow/fx/prepare.h"'
plant 0 cli/planted.c '"tare/planted.h"'
plant 1 src/core/planted.c '"ir/planted.h"'
plant 1 src/ops/families/planted.h '"flow/planted.h"'
plant 1 src/ir/planted.def '"ops/planted.def"'
plant 1 src/runtime/kernels/planted.c '"runtime/plan/planted.h"'
plant 1 src/quantizers/data/planted.c '"flow/export/planted.h"'
plant 1 src/flow/export/planted.c '"flow/lower/export/planted.h"'
plant 1 src/io/native/planted.c '"io/images/planted.h"'
plant 1 src/flow/fx/planted.c '"runtime/planted.h"'
plant 1 src/runtime/planted.c '"flow/fx/prepare.h"'
plant 1 src/core/planted.c '"planted.h"'
plant 1 src/core/planted.c '"../ir/planted.h"'
plant 1 src/nowhere/planted.c '"core/planted.h"'
plant 1 include/tare/planted.h '"core/planted.h"'
plant 1 cli/planted.c '"core/planted.h"'
plant 1 cli/planted.c '<config/embedded.h>'
plant 1 examples/planted.c '"../src/config/embedded.h"'
plant 1 bench/planted.c '"config/embedded.h"'

[ "$failures" -eq 0 ] && echo "every planted violation was seen"

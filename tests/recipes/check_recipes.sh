#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each patch of docs/recipes applies to this tree by itself, all of them apply together, and the tests that they touch
# pass. The patched tree stays in WORK/tree, with its build, so that the next run compiles what changed. To renew a
# patch, edit WORK/tree and compare it with the source folder.
# usage: check_recipes.sh SOURCE WORK CMAKE [OPTION..]   OPTION: for configuring, such as -DCMAKE_C_COMPILER=gcc
set -eu
source=$1 work=$2 cmake=$3
shift 3
command -v git >/dev/null 2>&1 || { echo "no git to apply patches with"; exit 77; }
fresh=$work/fresh tree=$work/tree
export GIT_CEILING_DIRECTORIES="$work" # the copies are no repository

copy_tree() {
    rm -rf "$fresh"
    mkdir -p "$fresh" "$tree"
    (cd "$source" && tar --exclude=./build --exclude=./.git -cf - .) | (cd "$fresh" && tar -xf -)
}

apply_patches() {
    for patch in "$source"/docs/recipes/*.patch; do
        (cd "$fresh" && git apply --check "$patch") || { echo "$patch does not apply alone"; exit 1; }
    done
    (cd "$fresh" && git apply "$source"/docs/recipes/*.patch)
}

# What did not change keeps its time, so that it is not compiled again.
update_tree() {
    (cd "$fresh" && find . -type f) | while IFS= read -r file; do
        cmp -s "$fresh/$file" "$tree/$file" && continue
        mkdir -p "$(dirname "$tree/$file")"
        cp -p "$fresh/$file" "$tree/$file"
        touch "$tree/$file"
    done
    (cd "$tree" && find . -name build -prune -o -type f -print) | while IFS= read -r file; do
        [ -e "$fresh/$file" ] || rm "$tree/$file"
    done
}

# tests/unit/ir/test_graph.c is the test unit.ir.graph; one such name a line.
tests_of() {
    sed -nE 's|^\+\+\+ b/tests/(.*)test_([^/]*)\.(c\|sh)$|\1\2|p' "$@" | tr / . | sort -u
}

copy_tree
apply_patches
update_tree
for patch in "$source"/docs/recipes/*.patch; do
    [ -n "$(tests_of "$patch")" ] || { echo "$patch has no test"; exit 1; }
done
names=$(tests_of "$source"/docs/recipes/*.patch)
targets=$(echo "$names" | grep '^unit\.' | tr . _)
# Nothing that no recipe needs: it would have to be compiled.
"$cmake" -S "$tree" -B "$tree/build/dev" "$@" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 -DTARE_WERROR=ON \
    -DTARE_EXAMPLES=OFF -DTARE_ONEDNN=OFF -DTARE_ONNX=OFF -DTARE_PNG=OFF -DTARE_JPEG=OFF >"$work/configure.log" || {
    cat "$work/configure.log"
    exit 1
}
# shellcheck disable=SC2086 # a target a word
"$cmake" --build "$tree/build/dev" --target tare_cli $targets >"$work/build.log" || {
    tail -n 40 "$work/build.log"
    exit 1
}
sh "$tree/tests/layers/check_layers.sh" "$tree"
cd "$tree/build/dev"
for name in $names; do
    "$(dirname "$cmake")/ctest" --no-tests=error --output-on-failure -R "^$name\$" >"$work/test.log" || {
        cat "$work/test.log"
        exit 1
    }
    echo "$name: passed"
done

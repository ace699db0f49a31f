#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/abi.sh lets additions to a small library pass, and refuses what breaks its users.
# usage: selftest.sh SOURCE_DIR CC
set -eu
abi=$(cd "$1" && pwd)/scripts/abi.sh cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/include"

header='#include <stddef.h>
typedef enum tare_kind { TARE_KIND_A, TARE_KIND_B ENUMERATOR } tare_kind;
typedef struct tare_options { // what to do
    size_t struct_size;
    int FIRST threads; MEMBER
} tare_options;
typedef struct tare_pair { int a, b; LONGER } tare_pair;
typedef struct tare_thing tare_thing;
int tare_thing_run(tare_thing *thing, const tare_options *options, tare_kind kind);
int tare_thing_count(COUNTED thing);
int tare_thing_sum(const tare_pair *pair);
MORE'
source='#include "thing.h"
struct tare_thing { int hidden; HIDDEN };
int tare_thing_run(tare_thing *t, const tare_options *o, tare_kind k) { return t->hidden + o->threads + (int)k; }
int tare_thing_sum(const tare_pair *p) { return p->a + p->b; }
int NAME(COUNTED thing) { return thing != 0; }
MORE_SOURCE'

# build EDIT..: the small library after these edits of its words; words left over vanish.
build() {
    printf '%s\n' "$header" >"$work/include/thing.h"
    printf '%s\n' "$source" >"$work/thing.c"
    for edit in "$@" s/ENUMERATOR// s/MEMBER// s/FIRST// s/LONGER// s/HIDDEN// s/MORE_SOURCE// s/MORE// \
        's/COUNTED/const tare_thing */' s/NAME/tare_thing_count/; do
        sed -i "$edit" "$work/include/thing.h" "$work/thing.c"
    done
    "$cc" -g -shared -fPIC -I"$work/include" "$work/thing.c" -o "$work/thing.so"
}

check() { sh "$abi" check "$work/thing.so" "$work/include" "$work/thing.abi" >"$work/said"; }

passes() {
    what=$1
    shift
    build "$@"
    check || { echo "$what was refused:"; cat "$work/said"; exit 1; }
}

# breaks WHAT TEXT EDIT..: is refused, and the report names TEXT.
breaks() {
    what=$1 text=$2 status=0
    shift 2
    build "$@"
    check || status=$?
    [ "$status" -eq 1 ] || { echo "$what: status $status, expected 1"; exit 1; }
    grep -qF "$text" "$work/said" || { echo "$what: '$text' is not named:"; cat "$work/said"; exit 1; }
}

build
status=0
sh "$abi" record "$work/thing.so" "$work/include" "$work/thing.abi" || status=$?
[ "$status" -eq 0 ] || exit "$status"
passes 'the same library'
passes 'a new function' 's/MORE_SOURCE/int tare_thing_new(void) { return 1; }/' \
    's/MORE$/int tare_thing_new(void);/'
passes 'a new enumerator' 's/ENUMERATOR/, TARE_KIND_C/'
passes 'a hidden member' 's/HIDDEN/double more;/'
breaks 'a removed function' tare_thing_count s/NAME/tare_thing_other/
passes 'a longer struct that says its size' 's/MEMBER/double scale;/'
breaks 'a member before others' tare_options 's/FIRST/other,/'
breaks 'a longer struct that does not say its size' tare_pair 's/LONGER/double scale;/'
breaks 'another argument type' tare_thing_count 's/COUNTED/long/'
breaks 'a renumbered enumerator' TARE_KIND_B 's/TARE_KIND_A,/TARE_KIND_A, TARE_KIND_NEW,/'

# What a tag promised stays promised, though the record beside it was made anew.
command -v git >/dev/null || exit 0
mkdir -p "$work/tree/scripts" "$work/tree/abi"
cp "$abi" "$work/tree/scripts/"
cd "$work/tree"
echo 'project(tare VERSION 0.1.0 LANGUAGES C' >CMakeLists.txt
abi=scripts/abi.sh
build
sh "$abi" record "$work/thing.so" "$work/include" >/dev/null
git init -q
git add .
git -c user.name=a -c user.email=a@example.org commit -qm first
build 's/LONGER/double scale;/'
sh "$abi" record "$work/thing.so" "$work/include" >/dev/null
sh "$abi" check "$work/thing.so" "$work/include" >"$work/said" || { echo 'untagged: refused'; exit 1; }
git tag v0.1.0
! sh "$abi" check "$work/thing.so" "$work/include" >"$work/said" || { echo 'tagged: not refused'; exit 1; }
grep -qF 'would break (v0.1.0)' "$work/said" || { cat "$work/said"; exit 1; }

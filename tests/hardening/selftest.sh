#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_hardened.sh finds each protection that a small library and a small program lack.
# usage: selftest.sh CC
set -eu
cc=$1
check=$(dirname "$0")/check_hardened.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $("$cc" -dumpmachine) in
x86_64-*linux*) ;;
*) echo 'written for x86-64 Linux'; exit 77 ;;
esac

cat >"$work/small.c" <<'END'
#include <stdio.h>
#include <string.h>
int tare_small(const char *text);
int tare_small(const char *text) {
    char copy[32];
    volatile char pages[20000];
    pages[0] = text[0];
    strcpy(copy, text);
    return printf("%s %d\n", copy, pages[0]);
}
int main(int count, char **arguments) { return tare_small(arguments[count - 1]); }
END
good='-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
    -fcf-protection=full -fPIC -Wl,-z,relro,-z,now,-z,noexecstack'

# build KIND FLAG..: $work/small.so or $work/small.
build() {
    kind=$1 out=$work/small
    shift
    [ "$kind" != -shared ] || out=$work/small.so
    # shellcheck disable=SC2086 # Flags are words.
    "$cc" $good "$@" "$kind" "$work/small.c" -o "$out" 2>/dev/null
}

# misses TEXT KIND FLAG..: what is built with these flags is refused with that text.
misses() {
    text=$1
    shift
    build "$@"
    ! sh "$check" "$out" >"$work/said" || { echo "$*: not refused"; exit 1; }
    grep -qF -- "$text" "$work/said" || { echo "$*: expected '$text', found:"; cat "$work/said"; exit 1; }
}

for kind in -shared -pie; do
    build "$kind"
    sh "$check" "$out"
    misses 'no stack protector' "$kind" -fno-stack-protector
    misses 'no FORTIFY' "$kind" -U_FORTIFY_SOURCE
    misses 'no RELRO' "$kind" -Wl,-z,norelro
    misses 'no BIND_NOW' "$kind" -Wl,-z,lazy
    misses 'its stack holds no code' "$kind" -Wl,-z,execstack
    misses 'names folders to load from' "$kind" -Wl,-rpath,/nowhere
done
misses 'no marked targets' -shared -fcf-protection=none
misses 'no stack-clash protection' -shared -fno-stack-clash-protection
misses 'no PIE' -no-pie -fno-pie

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports the public names, tare_noun_verb, and nothing else; every function of
# the headers carries TARE_API, which a build that hides no names would not miss.
# usage: check_exports.sh LIBRARY INCLUDE_DIR
set -eu
bare=$(cat "$2"/tare/*.h | sed 's|//.*||; /^#/d' | tr '\n;{}' ' \n\n\n' |
    grep -E '\btare_[a-z0-9_]+\(' | grep -vE 'TARE_API|typedef|static') || true
[ -z "$bare" ] || { printf 'without TARE_API:\n%s\n' "$bare"; exit 1; }
nm -D --defined-only "$1" | awk '
    { count++ }
    $NF !~ /^tare_[^_]/ { print "exported by mistake: " $NF; bad++ }
    END { printf "%d names exported, %d by mistake\n", count, bad; exit bad > 0 || count == 0 }'

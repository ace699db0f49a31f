#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports the public names, tare_noun_verb, in the node NODE of symbol versions, and
# nothing else; every function of the headers carries TARE_API, which a build that hides no names
# would not miss.
# usage: check_exports.sh LIBRARY INCLUDE_DIR NODE
set -eu
bare=$(cat "$2"/tare/*.h | sed 's|//.*||; /^#/d' | tr '\n;{}' ' \n\n\n' |
    grep -E '\btare_[a-z0-9_]+\(' | grep -vE 'TARE_API|typedef|static') || true
[ -z "$bare" ] || { printf 'without TARE_API:\n%s\n' "$bare"; exit 1; }
nm -D --with-symbol-versions --defined-only "$1" | awk -v node="$3" '
    $NF == node && $2 == "A" { next } # the node itself
    { count++ }
    $NF !~ /^tare_[^_]/ { print "exported by mistake: " $NF; bad++; next }
    substr($NF, index($NF, "@")) != "@@" node { print "not of the version " node ": " $NF; bad++ }
    END { printf "%d names exported, %d by mistake\n", count, bad; exit bad > 0 || count == 0 }'

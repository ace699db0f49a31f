#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports the public names, tare_noun_verb, and nothing else.
# usage: check_exports.sh LIBRARY
set -eu
nm -D --defined-only "$1" | awk '
    { count++ }
    $NF !~ /^tare_[^_]/ { print "exported by mistake: " $NF; bad++ }
    END { printf "%d names exported, %d by mistake\n", count, bad; exit bad > 0 || count == 0 }'

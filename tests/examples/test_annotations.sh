#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples on annotations print what torch printed: converted.txt and annotate.txt are recorded by
# tools/record_backend_quantizer.py and tools/record_annotate.py. Graphs are equal; of scales the last digits may
# differ, since no two float convolutions sum in the same order.
set -eu
examples=$(dirname "$TARE_CLI")/../examples
[ -x "$examples/annotate" ] || { echo 'the examples are not built'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

floats='[0-9][0-9]*\.[0-9][0-9]*\(e-[0-9][0-9]*\)*\|[0-9][0-9]*e-[0-9][0-9]*'

# same_graph MINE RECORDED
same_graph() {
    sed "s/$floats/F/g" "$1" >"$work/mine"
    sed "s/$floats/F/g" "$2" >"$work/recorded"
    diff "$work/mine" "$work/recorded" || fail "$2: another graph"
    grep -o "$floats" "$1" >"$work/mine"
    grep -o "$floats" "$2" >"$work/recorded"
    paste "$work/mine" "$work/recorded" | awk '
        { difference = $1 - $2; if (difference < 0) difference = -difference
          if (difference > 1e-4 * $2) { print "scale " $1 ", recorded " $2; exit 1 } }' || fail "$2: other scales"
}

"$examples/annotate" examples/data/annotate.pt2 examples/data/annotate_input.npy >"$work/annotate"
same_graph "$work/annotate" tests/data/annotate.txt

data=tests/data/small_resnet18
"$examples/backend_quantizer" $data/model.pt2 $data/input.npz >"$work/printed"
tail -n 3 "$work/printed" >"$work/result"
head -n -3 "$work/printed" >"$work/graph"
same_graph "$work/graph" $data/converted.txt
grep -q '^69 of 69 operators in integers$' "$work/result" || fail 'something is left in float'

# What the integers give, beside torch's simulation in floats: a rounding here and there differs.
tail -n 2 "$work/result" | head -n 1 | tr ' ' '\n' >"$work/mine"
tr ' ' '\n' <$data/output.txt >"$work/recorded"
[ "$(wc -l <"$work/mine")" -eq 20 ] || fail 'not 20 outputs'
paste "$work/mine" "$work/recorded" | awk '
    { signal += $2 * $2; noise += ($1 - $2) ^ 2 }
    END { if (noise * 1000 > signal) { print "noise " noise ", signal " signal; exit 1 } }' || fail 'other outputs'

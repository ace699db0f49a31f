#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare print, and model files that are not in order.
. tests/cli/support.sh

expect 0 print "$digits"
says '  (conv1): Conv2d(1, 48, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)'
says '    add = bn4 + pool'
expect 0 print "$digits" --nodes
says '%conv1 : [num_users=1] = call_module[target=conv1](args = (%x,), kwargs = {})'
expect 0 print "$digits" --json
says '"tare-graph"'
expect 0 print "$digits" --dot
says 'digraph'
"$tare" print - <"$digits" >"$work/piped"
"$tare" print "$digits" | cmp - "$work/piped"

refuses 1 'no_such.safetensors' print "$work/no_such.safetensors"
: >"$work/empty.safetensors"
refuses 1 'empty.safetensors' print "$work/empty.safetensors"
for size in 4 8 100 20000 400000; do
    head -c $size "$digits" >"$work/cut.safetensors"
    refuses 1 'cut.safetensors' print "$work/cut.safetensors"
done

# Bits flipped in the header: in its length, in its JSON, in the graph inside it.
for place in '0 377' '7 001' '8 133' '9 000' '30 377' '3000 001' '6000 042'; do
    cp "$digits" "$work/flipped.safetensors"
    # shellcheck disable=SC2086 # Two words.
    patch "$work/flipped.safetensors" $place
    refuses 1 'flipped.safetensors' print "$work/flipped.safetensors"
done

# An unknown class is told with its place.
sed 's/torch.nn.AdaptiveAvgPool2d/torch.nn.AdaptiveAvgPool7d/' "$digits" >"$work/class.safetensors"
refuses 1 'AdaptiveAvgPool7d' print "$work/class.safetensors"
complains 'modules['

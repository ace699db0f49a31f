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
says 'conv1\ntorch.nn.Conv2d", fillcolor=white];'

# Drawings of a converted model: islands in boxes, each kind in its colour, the same text again.
printf '{"global": null, "module_name": [["conv1", {"activation": {"class": "MinMaxObserver", "kwargs": {}}, "weight": {"class": "MinMaxObserver", "kwargs": {"dtype": "torch.qint8", "qscheme": "torch.per_tensor_symmetric"}}}]]}' >"$work/conv1.json"
"$tare" quantize "$digits" --backend x86 --qconfig "$work/conv1.json" --stop prepare -o "$work/prepared" >/dev/null
expect 0 print "$work/prepared" --dot
says 'shape=note, fillcolor=lightblue'
cp "$work/stdout" "$work/prepared.dot"
"$tare" quantize "$work/prepared" --backend x86 --calibrate random:8:0:1x8x8 -o "$work/int8" >/dev/null
expect 0 print "$work/int8" --dot
says 'fillcolor=palegreen];'
says 'fillcolor=lightsalmon];'
says 'shape=cds, fillcolor=khaki];'
says 'label="integers"'
says 'label="float"'
[ "$(grep -c 'subgraph cluster' "$work/stdout")" -eq 2 ] || fail 'expected one island of each kind'
cp "$work/stdout" "$work/int8.dot"
"$tare" print "$work/int8" --dot | cmp - "$work/int8.dot"
if command -v dot >/dev/null 2>&1; then
    for drawing in "$work/prepared.dot" "$work/int8.dot"; do
        dot -Tplain "$drawing" >"$work/plain" || fail 'graphviz refuses the drawing'
        [ "$(grep -c '^node' "$work/plain")" -eq "$(grep -c '\[label=' "$drawing")" ] || fail 'graphviz misses nodes'
    done
    expect 0 print "$work/int8" --svg
    says '</svg>'
fi
status=0
PATH=/nonexistent "$tare" print "$work/int8" --svg >"$work/stdout" 2>"$work/stderr" || status=$?
[ "$status" -eq 1 ] || fail "without graphviz: status $status"
complains 'there is no such program'
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

# Files of ours are held against their digests; --verify packs their weights once more.
"$tare" export "$work/int8" --to tare --packed -o "$work/packed.safetensors"
"$tare" print "$work/packed.safetensors" >"$work/form"
expect 0 print "$work/packed.safetensors" --verify
says 'the graph and '
says ' tensors are unchanged since they were written'
says ' packed weights are correct'
expect 0 print "$digits" --verify
says 'the file has no digests of its graph and tensors'
refuses 2 '--state and --verify exclude each other' print "$digits" --verify --state

# Packed weights stand in front of all other tensors.
cp "$work/packed.safetensors" "$work/random.safetensors"
data=$(($(od -An -tu8 -N8 "$work/random.safetensors") + 8))
head -c 64 /dev/urandom | dd of="$work/random.safetensors" bs=1 seek="$data" conv=notrunc 2>/dev/null
for command in print explain 'run --input random:4' 'bench'; do
    # shellcheck disable=SC2086 # Words.
    set -- $command
    name=$1
    shift
    refuses 1 'expected the digest' "$name" "$work/random.safetensors" "$@"
    complains 'random.safetensors: tare.digests: packed weights '
    complains 'damaged or edited'
done
# Without digests, the bytes themselves are looked at.
LC_ALL=C sed 's/tare\.digests/else.digests/' "$work/random.safetensors" >"$work/undigested.safetensors"
expect 0 print "$work/undigested.safetensors"
cmp "$work/stdout" "$work/form"
refuses 1 'packed weights differ from the result of packing' print "$work/undigested.safetensors" --verify
LC_ALL=C sed 's/tare\.digests/else.digests/' "$work/packed.safetensors" >"$work/undigested.safetensors"
expect 0 print "$work/undigested.safetensors" --verify
says 'the file has no digests of its graph and tensors'
says ' packed weights are correct'

# The last byte is the last tensor's.
cp "$work/int8" "$work/flipped.safetensors"
size=$(wc -c <"$work/flipped.safetensors")
if [ "$(tail -c 1 "$work/flipped.safetensors" | od -An -to1 | tr -d ' ')" = 101 ]; then other=102; else other=101; fi
patch "$work/flipped.safetensors" $((size - 1)) $other
refuses 1 'expected the digest' print "$work/flipped.safetensors"

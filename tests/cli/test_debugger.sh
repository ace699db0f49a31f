#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare quantize --debug-handles and tare compare --layers.
. tests/cli/support.sh

net=tests/data/debugger/model.pt2
data=tests/data/debugger/input.npz

# Of a program, with torch's handles: the converted form has every value, the lowered one the last of each chain.
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" --stop reference -o "$work/reference"
expect 0 compare "$net" "$work/reference" --data "$data" --layers
says '     3  conv2d_1 '
says '     4  relu_1                dequantize_per_tensor_default_5 '
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" -o "$work/int8"
expect 0 compare "$net" "$work/int8" --data "$data" --layers --json --report "$work/report"
cmp "$work/stdout" "$work/report/compare.json"
says '"matched_by": "handle"'
says '"operator": "torch.ops.aten.relu.default"'

# Worst first: the numbers grow.
"$tare" compare "$net" "$work/int8" --data "$data" --layers --worst --json |
    awk '/"sqnr_db"/ { sub(/,/, "", $2); n++; if ($2 < last) { print; bad = 1 } last = $2 } END { exit bad || n != 7 }' ||
    fail 'not sorted'

# A model whose file has no handles gets them; both models get the same.
digits=data/digits/digits.safetensors
train=data/digits/train.npz
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --debug-handles -o "$work/digits"
expect 0 compare "$digits" "$work/digits" --data "$train" --limit 64 --layers
says '     3  relu1                 conv1 '
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 -o "$work/plain"
expect 0 compare "$digits" "$work/plain" --data "$train" --limit 64 --layers
says '     -  relu1                 conv1 '

# One definition of error, with layers or without: what layers say of the last is what the table says.
"$tare" compare "$digits" "$work/plain" --data "$train" --limit 64 --json >"$work/table"
"$tare" compare "$digits" "$work/plain" --data "$train" --limit 64 --layers --json >"$work/layers"
for file in table layers; do
    grep '"sqnr_db"' "$work/$file" | sed 's/ *//; s/,$//' | sort -u >"$work/$file.db"
done
grep -vxF -f "$work/table.db" "$work/layers.db" && fail 'layers and table differ'

# Swapped and unrelated models are no comparison.
refuses 1 'the first model is quantized and the second is not' compare "$work/plain" "$digits" --data "$train"
expect 0 quantize examples/data/tutorial_conv_relu.safetensors --backend x86 \
    --calibrate examples/data/tutorial_input.npy -o "$work/other"
refuses 1 'the models are not related: of the ' compare "$digits" "$work/other" --data "$train"

refuses 2 '--worst has no effect without --layers' compare "$net" "$work/int8" --data "$data" --worst
refuses 2 '--dry-run and --debug-handles exclude each other' \
    quantize "$digits" --backend x86 --stop prepare --dry-run --debug-handles
expect 0 quantize "$digits" --backend x86 --stop prepare -o "$work/prepared"
refuses 1 'the model is prepared already: --debug-handles has no effect' \
    quantize "$work/prepared" --backend x86 --calibrate "$train" --debug-handles -o "$work/out"

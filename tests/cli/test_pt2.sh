#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of torch.export on the command line: read, written, read again; and refused with one clear error.
. tests/cli/support.sh

files=tests/fuzz/corpus/pt2

expect 0 print $files/open
cp "$work/stdout" "$work/before"
expect 0 export $files/open --to pt2 -o "$work/own.pt2"
[ ! -s "$work/stdout" ] || fail 'something was printed'
"$tare" print "$work/own.pt2" | cmp - "$work/before"

# A pipe does for output, and our own format in between changes nothing.
"$tare" export $files/open --to pt2 -o - | "$tare" print - | cmp - "$work/before"
expect 0 export $files/open --to tare -o "$work/own.safetensors"
expect 0 export "$work/own.safetensors" --to pt2 -o "$work/again.pt2"
! cmp -s "$work/own.pt2" "$work/again.pt2" || fail 'the folder is not named after the file'
mkdir "$work/folder"
expect 0 export "$work/own.safetensors" --to pt2 -o "$work/folder/own.pt2"
cmp "$work/own.pt2" "$work/folder/own.pt2"

expect 0 export $files/open --to pt2 -o "$work/own.pt2" --json
says '"format": "pt2"'

refuses 1 'expected a file to write, found a folder' export $files/open --to pt2 -o "$work"
refuses 1 'programs call operators, not modules' export "$digits" --to pt2 -o "$work/out.pt2"
complains 'stage `reference`'

# What quantize stops at tells what a program can hold.
small=tests/fuzz/corpus/pt2/arguments
refuses 1 'export the model with an open batch (dynamic_shapes' run $small --input random:3 -o "$work/y.npz"
for stage in prepare reference lower; do
    expect 0 quantize $small --quantizer XNNPACKQuantizer --calibrate random:2 --stop $stage -q \
        -o "$work/$stage.safetensors"
done
refuses 1 'prepare the model with --qat' export "$work/prepare.safetensors" --to pt2 -o "$work/out.pt2"
refuses 1 '--to pt2 programs up to --stop reference' quantize $small --quantizer XNNPACKQuantizer --calibrate random:2 \
    --stop reference -o "$work/refused.pt2"
refuses 1 'the model is lowered to integers' export "$work/lower.safetensors" --to pt2 -o "$work/out.pt2"
complains 'quantize --stop reference writes the form that programs hold'
expect 0 export "$work/reference.safetensors" --to pt2 -o "$work/own.pt2"
expect 0 print "$work/own.pt2"
says 'torch.ops.quantized_decomposed.quantize_per_tensor.default('

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ONNX files on the command line: read, sized, exported, quantized; and refused with one clear error.
. tests/cli/support.sh

if "$tare" version | grep -q 'no ONNX'; then
    echo "skipped: this build reads no ONNX"
    exit 77
fi
files=tests/fuzz/corpus/onnx

# Observers are no part of a file for others, though they compute nothing.
expect 0 quantize tests/fuzz/corpus/pt2/arguments --quantizer XNNPACKQuantizer --calibrate random:2 --stop prepare -q \
    -o "$work/prepared"
refuses 1 'observers and fake quantizers are not part of a finished model' export "$work/prepared" --to onnx -o "$work/out.onnx"
[ ! -e "$work/out.onnx" ] || fail 'a refused file was written'

expect 0 print $files/conv
says '  (conv): Conv2d(2, 3, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))'
"$tare" print - <$files/conv | cmp - "$work/stdout"

# Whatever is left of training was decided at export, for modules that only hold others too.
expect 0 print $files/scopes --json
says '"training": false'
! grep -q '"training": true' "$work/stdout" || fail 'a module is left in training'

# The first dimension is the batch, whatever the file says; other open sizes stay open, or may be given.
expect 0 run $files/conv --input random:5 --output "$work/y.npz"
says '5 samples'
expect 0 print $files/open_size
for size in 1 4 9; do
    expect 0 run $files/open_size --input "random:3:0:$size" --output "$work/y.npz"
    says '3 samples'
done
expect 0 run $files/open_size --input random:3 --output "$work/y.npz"
says '3 samples'
expect 0 print $files/open_size --dim M=4
expect 0 print $files/open_size --shape x=1x4
expect 0 print $files/open_size --dim N=2,M=4
refuses 1 "a dimension 'K'" print $files/open_size --dim M=4,K=4
refuses 1 "the name 'z'" print $files/open_size --shape x=1x4,z=1
refuses 1 'expected NAME=SIZE' print $files/open_size --dim M
many=$(seq -s, -f 'D%g=1' 33)
refuses 1 'more than 32 names' print $files/open_size --dim "$many"
refuses 1 'more than 32 inputs' print $files/open_size --shape "$many"
refuses 1 'expected INPUT=' print $files/open_size --shape x=1x
refuses 1 'only ONNX files' print "$digits" --dim N=1

expect 0 bench $files/open_size --dim M=4 --seconds 1
cp $files/open_size "$work/open.onnx"
expect 0 bench "$work/open.onnx" --against "$work/open.onnx" --dim M=4 --seconds 1
refuses 1 'only ONNX files' bench "$digits" --dim M=4

# Outputs are called as in the file, also through our own format and in a file that is written.
expect 0 run $files/conv --input random:2 --output "$work/y.safetensors" --json
says '"name": "y"'
expect 0 export $files/conv --to tare -o "$work/named.safetensors"
expect 0 export $files/conv --to onnx -o "$work/named.onnx"
for named in "$work/named.safetensors" "$work/named.onnx"; do
    expect 0 run "$named" --input x=random:2 --output "$work/again.safetensors"
    cmp "$work/y.safetensors" "$work/again.safetensors"
done

# Written once in our own format, it is the same model.
expect 0 export $files/open_size --to tare --dim M=4 -o "$work/own.safetensors"
"$tare" print $files/open_size --dim M=4 >"$work/before"
"$tare" print "$work/own.safetensors" | cmp - "$work/before"
expect 0 bench "$work/own.safetensors" --against "$work/open.onnx" --dim M=4 --seconds 1
refuses 1 'tare'\''s own format' export $files/conv --to tare -o "$work/out.onnx"
refuses 1 'tare'\''s own format' quantize $files/conv --backend x86 \
    --calibrate random:8 -o "$work/out.onnx"
# Written as ONNX, it is the same model when it is read back.
expect 0 export $files/open_size --to onnx --dim M=4 -o "$work/again.onnx" --report "$work/report.json"
"$tare" print "$work/again.onnx" | cmp - "$work/before"
grep -q '"batch":"open"' "$work/report.json" || fail 'the batch is not open'
expect 0 export $files/conv --to onnx --external-data --opset 21 -o "$work/conv.onnx"
expect 0 run "$work/conv.onnx" --input random:3 --output "$work/y.npz"
refuses 1 '13 to 21 can be written' export $files/conv --to onnx --opset 22 -o "$work/out.onnx"
refuses 2 '--opset has an effect with --to onnx only' export $files/conv --to tare --opset 18 -o "$work/out.safetensors"
refuses 1 "no input 'z'" export $files/conv --to onnx --input-shape z=1x4 -o "$work/out.onnx"
refuses 1 'expected INPUT=' export $files/conv --to onnx --input-shape z=NxN -o "$work/out.onnx"
refuses 2 "found 'caffe'" export $files/conv --to caffe -o "$work/out.safetensors"

expect 0 quantize $files/conv --backend x86 --calibrate random:8 -o "$work/q.safetensors"
[ ! -s "$work/stderr" ] || fail 'a note without need'
# Training is what batch norms are kept for, and torch's ONNX exporters fold them away.
expect 0 quantize $files/conv --backend x86 --qat --calibrate random:8 -o "$work/trained.safetensors"
complains 'was exported with its batch norms folded into its convolutions'
says '3 of 3 operators in integers'
rm "$work/q.safetensors"

# One line: the file, the place in it, what is wrong, what helps; and nothing is written.
wrong() {
    refuses 1 "$3" quantize "$1" --backend x86 --calibrate random:8 -o "$work/none.safetensors"
    complains "tare: $1: $2"
    complains "($4"
    [ ! -e "$work/none.safetensors" ] || fail "a model of $1"
}
wrong $files/external "tensor 'w': " "in '../w.bin', outside of the model's folder" 'data files must be'
wrong $files/circle "" "has a cycle: node 'a' (Relu) needs node 'b' (Relu)" 'no exporter writes'
wrong $files/unknown_op "node 'a' (FancyOp): " "the operator 'FancyOp' is not known" 'export the part without it'
wrong $files/opset_99 "" 'has opset 99, expected 11 to 21' 'export it with opset_version=17'
wrong $files/bomb "byte " 'nested more than 64 deep' 'no exporter writes'
wrong $files/function_circle "node 'y' (F): " "the function 'F' calls itself" 'no exporter writes'
wrong $files/function_bomb "node 'y' (F0): " 'take more than 64 MiB' 'no exporter writes'
refuses 1 'too large' print $files/huge_dims
refuses 1 'damaged or cut off' print $files/cut
printf '\377\330\377\340\000\020JFIF\000\001' >"$work/photo.onnx"
wrong "$work/photo.onnx" "expected a model (tare's own .safetensors, .pt2, or ONNX), " 'found a JPEG image' 'data is given with'
printf 'PK\003\004\024\000\000\000\010\000' >"$work/model.pt2"
refuses 1 'found a zip archive' print "$work/model.pt2"

# Data beside the file: the same tensor with a location that is not there.
sed 's|\.\./w\.bin|ab/w.bin|' $files/external >"$work/missing.onnx"
wrong "$work/missing.onnx" "tensor 'w': " "data is in 'ab/w.bin', which is missing" "copy it to the model's folder"
mkdir "$work/ab"
printf 123 >"$work/ab/w.bin"
wrong "$work/missing.onnx" "tensor 'w': " "16 bytes at offset 0 of 'ab/w.bin', which has 3" 'the data file is cut off'
head -c 16 /dev/zero >"$work/ab/w.bin"
expect 0 print "$work/missing.onnx"
says 'x + w'

# A reference form computes in floats, and bench says so; weights in blocks of bits are multiplied as they are.
expect 0 quantize $files/conv --backend x86 --calibrate random:2 --stop reference -q -o "$work/reference"
expect 0 bench "$work/reference" --seconds 1 -q
complains 'computes in floats between quantize and dequantize'
expect 0 bench $files/matmul_n_bits --seconds 1 -q
! grep -q 'computes in floats' "$work/stderr" || fail 'MatMulNBits is said to compute in floats'

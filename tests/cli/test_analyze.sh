#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare analyze names the planted faults (tests/data/record_faults.py) before what follows from them, and anything else.
. tests/cli/support.sh
faults=tests/data/faults

analyze() { expect 0 analyze "$faults/model.safetensors" --backend qnnpack --qconfig qnnpack \
    --calibrate "$faults/calibrate.npz" "$@"; }

analyze --data "$faults/test.npz"
sed -n '/^findings/,/^layer/p' "$work/stdout" | grep -E '^  [a-z]' | head -n 5 >"$work/first"
for fault in 'outlier-weight-channel at wide' 'tiny-weight-scale at tiny' 'uncalibrated at side_1' \
    'outlier-sample at extra_1' 'quantized-mask at softmax'; do
    grep -qF "$fault" "$work/first" || fail "not among the first five findings: $fault"
done
[ "$(grep -c 'remedy: ' "$work/stdout")" -ge 8 ] || fail 'findings without a remedy'

# On the calibration data itself the outlier sample is named.
analyze
says "in sample 5 the model's input"

# Caches change what is computed again, and nothing else.
analyze --json
mv "$work/stdout" "$work/cached"
analyze --json --cache-memory 1 --cache-disk 1
cmp "$work/stdout" "$work/cached" || fail 'without caches the analysis differs'
analyze --json --cache-memory 1
cmp "$work/stdout" "$work/cached" || fail 'with values on the disk the analysis differs'

# The reference form of a file serves as well; other forms are refused.
expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --stop reference --no-check -o "$work/reference"
expect 0 analyze "$work/reference" --data data/digits/test.npz --worst 3
says 'right in float'
refuses 1 'there is no data to analyze' analyze "$work/reference"
expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --no-check -o "$work/int8"
refuses 1 'the model is quantized already' analyze "$work/int8" --backend x86 --data data/digits/test.npz

# Data that no range should be taken from are named when they calibrate, and by the analysis.
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 1, 8, 8), }"
    i=0
    while [ "$i" -lt 1024 ]; do
        printf '\000\000\200\076' # 0.25
        i=$((i + 1))
    done
} >"$work/equal.npy"
expect 0 quantize "$digits" --backend x86 --calibrate "$work/equal.npy" --no-check -o "$work/int8"
complains 'warning: the 16 samples that calibrate are equal'
expect 0 quantize "$faults/model.safetensors" --backend qnnpack --qconfig qnnpack --calibrate "$faults/calibrate.npz" --no-check -o "$work/int8"
complains 'warning: side: it is 0 in all samples that calibrate'
expect 0 analyze "$digits" --backend x86 --calibrate "$work/equal.npy" --data data/digits/test.npz
sed -n '/^findings/,/remedy/p' "$work/stdout" >"$work/first"
grep -q 'constant-input at' "$work/first" || fail 'the constant input is not the first finding'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare run, compare and bench.
. tests/cli/support.sh
test_data=data/digits/test.npz
int8=$work/int8.safetensors
"$tare" quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 64 -o "$int8" >/dev/null

expect 0 run "$digits" --input "$test_data"
says '360 samples, 360 right: accuracy 100.00 %'
expect 0 run "$digits" --input "$test_data" --limit 50 --batch 7 --json
says '"samples": 50'
says '"accuracy": 1'

# One run of the arrays as they stand, whatever their shapes.
expect 0 run "$digits" --input "$test_data" --as-is
says '1 sample'
refuses 1 'only arrays can be taken as they are' run "$digits" --input random:1:0:3x8x8 --as-is

# Batches, threads and instruction sets change nothing in integers.
"$tare" run "$int8" --input "$test_data" --limit 50 -o "$work/base.npz" >/dev/null
"$tare" run "$int8" --input "$test_data" --limit 50 --batch 7 --threads 2 -o "$work/batches.npz" >/dev/null
cmp "$work/base.npz" "$work/batches.npz"
# Nor do the processors of threads, and how long they look for work.
"$tare" run "$int8" --input "$test_data" --limit 50 --threads 2 --spin 0 -o "$work/slept.npz" >/dev/null
cmp "$work/base.npz" "$work/slept.npz"
refuses 2 '--spin has no effect without --threads 2 or more' run "$int8" --input "$test_data" --threads 1 --spin 5
refuses 2 '--spin has no effect without --threads or --affinity' run "$int8" --input "$test_data" --spin 5
refuses 2 "--spin: expected a number from 0 to 1000000, found '5ms'" run "$int8" --input "$test_data" --threads 2 --spin 5ms
refuses 1 "affinity '0-': expected" run "$int8" --input "$test_data" --affinity 0-
own=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status 2>/dev/null || true)
if [ -n "$own" ]; then
    "$tare" run "$int8" --input "$test_data" --limit 50 --affinity "$own" -o "$work/kept.npz" >/dev/null
    refuses 1 'spin_us has no effect with one thread' run "$int8" --input "$test_data" --affinity "$own" --spin 5
    cmp "$work/base.npz" "$work/kept.npz"
    refuses 1 "each of 2 threads, found 1" run "$int8" --input "$test_data" --threads 2 --affinity "$own"
    refuses 1 "processor 8191 is not among" bench "$int8" --affinity 8191
    expect 0 bench "$int8" --seconds 1 --affinity "$own" --json
    says "\"affinity\": \"$own\""
    says '"threads": 1'
fi
TARE_ISA=scalar "$tare" run "$int8" --input "$test_data" --limit 50 -o "$work/scalar.npz" >/dev/null
cmp "$work/base.npz" "$work/scalar.npz"
"$tare" run "$int8" --input "$test_data" --limit 50 -o - >"$work/piped" 2>/dev/null
cmp "$work/base.npz" "$work/piped"
# Packed weights in the file change nothing but the time to start.
expect 0 export "$int8" --to tare --packed -o "$work/packed.safetensors"
for isa in scalar "$("$tare" version --json | sed -n 's/.*"isa": "\(.*\)".*/\1/p')"; do
    TARE_ISA=$isa "$tare" run "$work/packed.safetensors" --input "$test_data" --limit 50 -o "$work/isa.npz" >/dev/null
    cmp "$work/base.npz" "$work/isa.npz"
done
expect 0 export "$work/packed.safetensors" --to tare -o "$work/plain.safetensors"
cmp "$int8" "$work/plain.safetensors"
refuses 2 '--packed has an effect with --to tare only' export "$int8" --to onnx --packed -o "$work/out.onnx"
expect 0 run "$int8" --input "$test_data" --limit 3 --output "$work/three.npy"
[ "$(wc -c <"$work/three.npy")" -eq 248 ] || fail '3 x 10 scores are not 128 + 120 bytes'
expect 0 run "$int8" --input "$test_data" --limit 3 --output "$work/three.safetensors"

"$tare" run "$int8" --input - --limit 50 -o "$work/fed.npz" <"$test_data" >/dev/null
cmp "$work/base.npz" "$work/fed.npz"

# What could not be written is said before anything is read.
refuses 1 'does not say the format' run no_such_model --input "$test_data" --output "$work/out.txt"
refuses 1 'found a folder' quantize no_such_model --backend x86 -o "$work"
refuses 1 'No such file' quantize no_such_model --backend x86 -o "$work/no_such/out"
refuses 1 'Not a directory' quantize no_such_model --backend x86 --report "$test_data" -o "$work/out"
refuses 1 'No such file' compare "$digits" "$int8" --data "$test_data" --report "$work/no_such/report"
npy "$work/none.npy" '(0, 1, 8, 8)' 0
refuses 1 'none.npy: there are no samples in it' run "$digits" --input "$work/none.npy"

refuses 1 'no_such.npz' run "$int8" --input "$work/no_such.npz" --output "$work/out.npz"
refuses 1 "node 'conv1'" run "$digits" --input random:1:0:3x8x8 --output "$work/out.npz"
(export TARE_ISA=quantum && refuses 1 'quantum' run "$int8" --input "$test_data" --limit 1 --output "$work/out.npz")

expect 0 compare "$digits" "$int8" --data "$test_data" --limit 100
says 'conv1                     relu1 '
says 'add_relu                  relu4 '
says '100 samples, accuracy 100.00 % float and'
expect 0 compare "$digits" "$int8" --data "$test_data" --limit 20 --json --report "$work/report"
cmp "$work/stdout" "$work/report/compare.json"
says '"quantized_node": "conv4"'
says '"float_node": "bn4"'
says '"agreement": '
# A model equals itself; no layer is off by so much that it is another one's.
expect 0 compare "$digits" "$digits" --data "$test_data" --limit 2
says 'relu4                     relu4                       equal'
"$tare" compare "$digits" "$int8" --data "$test_data" --limit 100 --json |
    awk '/"sqnr_db"/ { sub(/,/, "", $2); n++; if ($2 < 15) { print; bad = 1 } } END { exit bad || n < 9 }' ||
    fail 'a layer is less than 15 dB above its noise'
refuses 1 "array 'output'" compare "$digits" "$int8" --data "$work/base.npz"
refuses 2 'QUANTIZED is missing' compare "$digits" --data "$test_data"

# What calibration saw of the inputs' shapes is what bench makes up.
expect 0 bench "$int8" --against "$digits" --seconds 1 --memory --json
for key in isa median_ms p90_ms speed_ratio peak_bytes load_ms; do says "\"$key\""; done
expect 0 bench "$int8" --input "$test_data" --batch 2 --seconds 1
says 'samples/s'
says 'batch 2, 1 thread'
# What layers take beside the float model's, and why; where results lie; the picture.
expect 0 bench "$int8" --against "$digits" --seconds 1 --layers --memory --roofline "$work/roof.svg"
says "the machine's peak, 1 thread"
grep -q '^conv1 .*qu8_product__.*integers: product' "$work/stdout" || fail 'no line tells of conv1'
grep -q 'results between layers: [0-9]* bytes in one block' "$work/stdout" || fail 'no line tells of memory'
grep -q '<title>conv1 (.*of the peak' "$work/roof.svg" || fail 'the picture lacks conv1'
grep -q '>conv1</text>' "$work/roof.svg" || fail 'the picture does not name conv1'
[ "$(grep -c '</svg>' "$work/roof.svg")" = 1 ] || fail 'the picture has no end'
expect 0 bench "$digits" --input "$test_data" --seconds 1 --layers --json
says '"bits_may_differ": '
says '"int8_gops": '
refuses 1 'roof.svg' bench "$int8" --seconds 1 --roofline "$work/nowhere/roof.svg"
refuses 1 'random:N:SEED:3x32x32' bench "$digits"
refuses 1 'there are only' bench "$int8" --input "$test_data" --batch 1000

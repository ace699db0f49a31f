#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calibration as a step of its own: shards merge to the bytes of one pass, wrong ones are refused.
. tests/cli/support.sh
train=data/digits/train.npz

minmax=examples/minmax.json
prepared=$work/prepared
expect 0 quantize "$digits" --backend x86 --qconfig "$minmax" --stop prepare -o "$prepared"
expect 0 quantize "$prepared" --backend x86 --calibrate "$train" --limit 500 -o "$work/direct"

for i in 0 1 2; do
    expect 0 calibrate "$prepared" --data "$train" --limit 500 --shard $i/3 -o "$work/$i.state"
    says '1 of 3 shards'
done
expect 0 calibrate --merge "$work/2.state" "$work/0.state" -o "$work/part.state" --json
says '"done_shards": 2'
expect 0 calibrate --merge "$work/part.state" "$work/1.state" -o "$work/all.state"
says '500 samples, 3 of 3 shards'
expect 0 quantize "$prepared" --backend x86 --state "$work/all.state" -o "$work/merged"
cmp "$work/direct" "$work/merged" || fail "three shards give another model than one pass"
# From the float model too: preparing it gives the same model.
expect 0 quantize "$digits" --backend x86 --qconfig "$minmax" --state "$work/all.state" \
    -o "$work/merged"
expect 0 calibrate "$prepared" --data "$train" --limit 500 -o "$work/whole.state"
says '500 samples'
expect 0 quantize "$prepared" --backend x86 --state "$work/whole.state" -o "$work/merged"
cmp "$work/direct" "$work/merged" || fail "a state in between changes the model"

refuses 1 'only 2 of 3 shards are in it' \
    quantize "$prepared" --backend x86 --state "$work/part.state" -o "$work/out"
expect 0 quantize "$prepared" --backend x86 --state "$work/part.state" --lenient -o "$work/some"
refuses 1 'shard 0 is in two states' calibrate --merge "$work/part.state" "$work/0.state" -o "$work/out"
refuses 1 'in the first state in 3' calibrate --merge "$work/0.state" "$work/whole.state" -o "$work/out"
expect 0 quantize "$digits" --backend x86 --stop prepare -o "$work/histograms"
refuses 1 'cannot be merged exactly' \
    calibrate "$work/histograms" --data "$train" --shard 0/2 -o "$work/out"
refuses 1 'belongs to' quantize "$work/histograms" --backend x86 --state "$work/all.state" -o "$work/out"
refuses 1 'is not a calibration state' calibrate --merge "$digits" -o "$work/out"
refuses 1 'expected a prepared model' calibrate "$digits" --data "$train" -o "$work/out"
refuses 2 'expected I/N' calibrate "$prepared" --data "$train" --shard 3/3 -o "$work/out"
refuses 2 'expected I/N' calibrate "$prepared" --data "$train" --shard one -o "$work/out"
refuses 2 '--data DATA is missing' calibrate "$prepared" -o "$work/out"
refuses 2 '--merge and --data exclude each other' calibrate --merge a b --data c -o "$work/out"
refuses 2 'one operand too many' calibrate "$prepared" b --data c -o "$work/out"
refuses 2 '--calibrate and --state exclude each other' \
    quantize "$prepared" --backend x86 --state a --calibrate b -o "$work/out"

# On a terminal the way is shown, with rate and remaining time, and wiped at the end.
if command -v script >/dev/null 2>&1; then
    script -qec "$tare calibrate $prepared --data $train -o $work/x.state" "$work/typescript" >/dev/null </dev/null
    grep -q 'calibrating \[.* of .*/s, .* left' "$work/typescript" || fail "no progress on a terminal"
    # No line is longer than the terminal has columns.
    script -qec "stty cols 40; $tare calibrate $prepared --data $train -o $work/x.state" "$work/typescript" \
        >/dev/null </dev/null
    tr '\r' '\n' <"$work/typescript" | sed 's/.\[K$//' | grep '^calibrating' >"$work/lines" || fail 'no progress'
    awk 'length($0) > 39 { exit 1 }' "$work/lines" || fail "$(cat "$work/lines")"
    script -qec "$tare calibrate $prepared --data $train -q -o $work/x.state" "$work/typescript" >/dev/null </dev/null
    ! grep -q 'calibrating' "$work/typescript" || fail "progress in spite of --quiet"
fi
refuses 2 'PREPARED|STATE is missing' calibrate --merge -o "$work/out"
refuses 2 'PREPARED|STATE is missing' calibrate -o "$work/out"

# All cuts of the data give the same file.
sed 's/"class": "MinMaxObserver"/"class": "tare.MergeableHistogramObserver"/' "$minmax" >"$work/histogram.json"
expect 0 quantize "$digits" --backend x86 --qconfig "$work/histogram.json" --stop prepare -o "$work/own"
expect 0 calibrate "$work/own" --data "$train" --limit 300 -o "$work/one.state"
expect 0 calibrate "$work/own" --data "$train" --limit 300 --batch 7 --threads 3 -o "$work/two.state"
cmp "$work/one.state" "$work/two.state" || fail "the size of batches shows"
for i in 0 1; do
    expect 0 calibrate "$work/own" --data "$train" --limit 300 --batch 9 --shard $i/2 -o "$work/$i.state"
done
expect 0 calibrate --merge "$work/1.state" "$work/0.state" -o "$work/two.state"
cmp "$work/one.state" "$work/two.state" || fail "the shards show"
# Short data does not reach every shard.
expect 0 calibrate "$work/own" --data "$train" --limit 5 -o "$work/one.state"
for i in 0 1; do expect 0 calibrate "$work/own" --data "$train" --limit 5 --shard $i/2 -o "$work/$i.state"; done
says '0 samples, 1 of 2 shards'
expect 0 calibrate --merge "$work/0.state" "$work/1.state" -o "$work/two.state"
cmp "$work/one.state" "$work/two.state" || fail "an empty shard shows"
expect 0 calibrate "$work/own" --data "$train" --limit 300 --batch 9 --shard 0/2 -o "$work/0.state"
expect 0 calibrate "$work/own" --data "$train" --limit 300 --batch 8 --shard 1/2 -o "$work/1.state"
refuses 1 'batches of 8' calibrate --merge "$work/0.state" "$work/1.state" -o "$work/out"

# An exported program, prepared by a quantizer that derives the biases' parameters.
sed 's/"HistogramObserver"/"tare.MergeableHistogramObserver"/' examples/data/toy_quantizer.json >"$work/toy.json"
program=examples/data/annotate.pt2
expect 0 quantize "$program" --quantizer "$work/toy.json" --stop prepare -o "$work/exported"
expect 0 calibrate "$work/exported" --data random:40:1 -o "$work/one.state"
for i in 0 1 2; do
    expect 0 calibrate "$work/exported" --data random:40:1 --batch 3 --threads 2 --shard $i/3 -o "$work/$i.state"
done
expect 0 calibrate --merge "$work/1.state" "$work/0.state" "$work/2.state" -o "$work/two.state"
cmp "$work/one.state" "$work/two.state" || fail "the shards of a program show"
expect 0 quantize "$work/exported" --state "$work/two.state" -o "$work/merged"
expect 0 quantize "$work/exported" --calibrate random:40:1 --no-check -o "$work/direct"
cmp "$work/direct" "$work/merged" || fail "a state in between changes the program"
refuses 1 "the state belongs to another model: its node is" \
    quantize "$work/own" --backend x86 --state "$work/two.state" -o "$work/out"

# A killed job goes on where it was, to the same bytes.
long=random:6000:3:1x8x8
expect 0 calibrate "$work/own" --data "$long" -o "$work/whole.state"
"$TARE_CLI" calibrate "$work/own" --data "$long" --resume --every 32 -o "$work/killed.state" \
    >"$work/log" 2>&1 &
job=$!
tries=0
while [ ! -e "$work/killed.state" ] && [ $tries -lt 600 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -9 $job || fail "the job was over before it could be killed"
wait $job 2>"$work/log" || true
refuses 1 'is not finished' calibrate --merge "$work/killed.state" -o "$work/out"
refuses 1 'is not finished' quantize "$work/own" --backend x86 --state "$work/killed.state" -o "$work/out"
refuses 1 'belongs to another job' calibrate "$work/own" --data "$long" --batch 8 --resume -o "$work/killed.state"
expect 0 calibrate "$work/own" --data "$long" --resume --threads 2 -o "$work/killed.state"
cmp "$work/whole.state" "$work/killed.state" || fail "a kill shows"
expect 0 calibrate "$work/own" --data "$long" --resume -o "$work/killed.state"
says '6000 samples'
refuses 2 '--every has no effect without --resume' calibrate "$work/own" --data "$train" --every 8 -o "$work/out"
refuses 2 'that is a file' calibrate "$work/own" --data "$train" --resume -o -

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare improve recovers the planted faults (tests/data/record_faults.py) within its budget, says what it did,
# and goes on after a kill.
. tests/cli/support.sh
faults=tests/data/faults

improve() { ${as_job:-} "$tare" improve "$faults/model.safetensors" --backend qnnpack --qconfig qnnpack --calibrate "$faults/calibrate.npz" \
    --check-data "$faults/test.npz" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null; }
number() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*\$/\1/p" "$2" | head -n 1; }

# Nine tenths of the noise go: 10 dB more. What a model may cost is given, so that no clock decides.
improve --budget 60 --max-slower 100 --max-larger 100 --ladder "$work/ladder" --json -o "$work/a.safetensors" || fail 'improve failed'
before=$(number before_db "$work/stdout") after=$(number after_db "$work/stdout")
awk "BEGIN { exit !($after >= $before + 10) }" || fail "improved from $before to $after dB only"
says '"kept": true'
"$tare" explain "$work/a.safetensors" >"$work/explained"
grep -q 'quantized by itself it leaves' "$work/explained" || fail 'the record lacks the steps'

# The file has every outcome: nothing is tried again, and the model is the same.
improve --budget 60 --max-slower 100 --max-larger 100 --ladder "$work/ladder" --json -o "$work/b.safetensors" || fail 'the second run failed'
! grep -q '"resumed": false' "$work/stdout" || fail 'what was known is tried again'
cmp "$work/a.safetensors" "$work/b.safetensors" || fail 'resumed, the model is another one'

# And why a trial was not kept; a number for no reason is an error.
awk '$5 == 1 && !done { $5 = 3; done = 1 } { print }' "$work/ladder" >"$work/slow"
improve --budget 60 --max-slower 100 --max-larger 100 --ladder "$work/slow" -o "$work/b.safetensors" || fail 'a trial refused for its time'
grep -q '^  per-channel .* not kept: it is too slow, from the state' "$work/stderr" || fail 'the reason of a trial is not kept'
awk 'NR == 3 { $5 = 9 } { print }' "$work/ladder" >"$work/wrong"
! improve --max-slower 100 --max-larger 100 --ladder "$work/wrong" -q -o "$work/out" || fail 'a reason that there is not'
complains 'line 3 is not the outcome of a trial'

# Killed on the way: the best model so far is there and whole, and the rest follows.
as_job=exec improve --budget 60 --ladder "$work/killed" -o "$work/c.safetensors" & # the job is the program itself
job=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -s "$work/killed" ] && [ "$(wc -l <"$work/killed")" -ge 3 ] && break
    sleep 0.1
done
kill -9 "$job" 2>/dev/null || :
wait "$job" 2>/dev/null || :
[ -s "$work/c.safetensors" ] || fail 'no model is left by a killed job'
expect 0 run "$work/c.safetensors" --input "$faults/test.npz"
improve --budget 60 --ladder "$work/killed" --json -o "$work/c.safetensors" || fail 'the resumed run failed'
says '"resumed": true'

# The limits of time and bytes are options, also below 20 dB, and part of what a file of trials belongs to.
improve --steps precision --max-larger 1 --max-slower 1 --json -o "$work/g.safetensors" || fail 'narrow limits'
grown() { sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" "$work/stdout"; }
before=$(grown before_bytes | head -n 1)
sed -n '/"before_bytes"/,/"kept"/p' "$work/stdout" | awk -v most="$before" '/"after_bytes"/ { gsub(/[^0-9]/, ""); bytes = $0 }
    /"kept": true/ && bytes > most * 1.01 { exit 1 }' || fail 'a kept model is larger than the limit'
refuses 1 'belongs to another model, other data, steps or limits' improve "$faults/model.safetensors" --backend qnnpack --qconfig qnnpack \
    --calibrate "$faults/calibrate.npz" --check-data "$faults/test.npz" --max-slower 5 --ladder "$work/ladder" -q -o "$work/out"
refuses 2 '--max-slower: expected a number from 1 up' improve "$digits" --backend x86 --calibrate data/digits/train.npz --max-slower no \
    -o "$work/out"

# What is better on the check samples alone is not kept: on pictures of half the brightness a narrower range is, on those
# of the calibration it clips.
gzip -dc data/digits/digits.csv.gz | head -n 8 | awk -F, -v OFS=, '{ for (i = 1; i < NF; i++) $i = $i / 32; print }' >"$work/faint.csv"
expect 0 improve "$digits" --backend x86 --calibrate data/digits/train.npz --limit 64 --check-data "$work/faint.csv" --steps observers \
    -o "$work/h.safetensors"
complains 'percentile 99.9: 38.9 dB, not kept: it gains on few samples only'

# Steps by name, in this order; a file of another job is refused; no time, and the first model.
improve --steps observers,per-channel -o "$work/d.safetensors" || fail 'steps by name'
! grep -q '^  precision' "$work/stderr" || fail 'a step that was not asked for'
refuses 1 "there is no step 'observer'" improve "$faults/model.safetensors" --backend qnnpack --calibrate "$faults/calibrate.npz" \
    --check-data "$faults/test.npz" --steps observer -q -o "$work/out"
refuses 1 'belongs to another model' improve "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 \
    --ladder "$work/ladder" -q -o "$work/out"

# Every step can be taken alone, and what it did stands in the record.
cat >"$work/coarse.json" <<'EOF2'
{"global": {"activation": {"class": "HistogramObserver", "kwargs": {"dtype": "torch.quint8"}},
            "weight": {"class": "PerChannelMinMaxObserver", "kwargs": {"dtype": "torch.qint8",
                       "qscheme": "torch.per_channel_symmetric", "quant_min": -2, "quant_max": 1}}}}
EOF2
alone() { expect 0 improve "$digits" --backend x86 --qconfig "$work/coarse.json" --calibrate data/digits/train.npz --limit 48 \
    --steps "$1" -o "$work/f.safetensors" && says 'trials kept'
    "$tare" explain "$work/f.safetensors" --node conv2 >"$work/explained"
    grep -q "$2" "$work/explained" || fail "the record lacks what $1 did"; }
alone weight-clipping 'the range of its weight is the one of least squared error'
alone gptq 'its weight is rounded to suit its input'

# Weights of 3 bits in groups: rounding to suit the input is far better than to the nearest, and the check says who changed
# the float weights.
expect 0 improve "$digits" --backend tare --qconfig tests/data/weights_3_bits_groups.json --calibrate data/digits/train.npz --limit 64 --steps gptq --json \
    -o "$work/i.safetensors"
before=$(number before_db "$work/stdout") after=$(number after_db "$work/stdout")
awk "BEGIN { exit !($after >= $before + 6) }" || fail "weights of 3 bits: from $before to $after dB only"
expect 0 quantize "$digits" --backend tare --qconfig tests/data/weights_3_bits_groups.json --calibrate data/digits/train.npz --limit 64 --auto --steps gptq \
    -o "$work/j.safetensors"
says 'before anything was quantized, fusing, preparing and improving kept only'
cmp "$work/i.safetensors" "$work/j.safetensors"

# Inputs of linear layers quantized in each run: by row where the backend takes that, else as a whole.
expect 0 improve "$digits" --backend tare --calibrate data/digits/train.npz --limit 64 --steps dynamic -o "$work/k.safetensors"
complains "dynamic          rows of linear layers' inputs"
expect 0 improve "$digits" --backend x86 --calibrate data/digits/train.npz --limit 64 --steps dynamic -o "$work/l.safetensors"
complains "dynamic          linear layers' inputs"
! grep -q "rows of linear layers" "$work/stderr" || fail 'x86 has no form for rows'

# --auto is the same within quantize.
expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --auto --budget 5 --steps observers,bias-correction \
    -o "$work/e.safetensors"
says 'improved from'

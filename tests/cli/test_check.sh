#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The verdict at the end of tare quantize: on samples that calibrated nothing, with limits that fail.
. tests/cli/support.sh

train=data/digits/train.npz faults=tests/data/faults

# Samples behind --limit are held out, and the model is the one that --no-check gives.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 -o "$work/a.safetensors"
says 'held-out sample'
says ' dB, cosine 0.99'
says 'right in float'
says 'worst layers, '
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --no-check -o "$work/b.safetensors"
! grep -q accuracy "$work/stdout" || fail '--no-check checks'
cmp "$work/a.safetensors" "$work/b.safetensors" || fail 'the check changes the model'

# Without --limit the last eight samples calibrate nothing: the model is that of the others.
expect 0 quantize "$digits" --backend x86 --calibrate random:64:3:1x8x8 -o "$work/a.safetensors"
expect 0 quantize "$digits" --backend x86 --calibrate random:64:3:1x8x8 --limit 56 --no-check -o "$work/b.safetensors"
cmp "$work/a.safetensors" "$work/b.safetensors" || fail 'held-out samples calibrate'
expect 0 quantize "$digits" --backend x86 --calibrate random:7:3:1x8x8 -o "$work/a.safetensors"
says 'not checked: all samples were used for calibration'

# Limits: kept, not kept (no model is left), and no numbers.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --min-sqnr 20 --max-drop 0.5 -o "$work/a.safetensors"
refuses 1 'less than --min-sqnr 90' quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --min-sqnr 90 -o "$work/out"
refuses 1 'no sample is left to check' quantize "$digits" --backend x86 --calibrate random:4:3:1x8x8 --min-sqnr 9 -o "$work/out"
refuses 2 'is no number' quantize "$digits" --backend x86 --calibrate "$train" --min-sqnr good -o "$work/out"

# The model as it was given is what the verdict compares with: its batch norms are not folded.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --json -o "$work/a.safetensors"
grep -q '"preparation_db": 1[0-9][0-9]' "$work/stdout" || fail 'the float model is not the given one'
expect 0 analyze "$digits" --backend x86 --calibrate "$train" --samples 8 --seconds 1 --json
grep -q '"preparation_db": 1[0-9][0-9]' "$work/stdout" || fail 'the float model is not the given one'
# A job that begins with a prepared model has no other to compare with.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --stop prepare -o "$work/p.safetensors"
expect 0 quantize "$work/p.safetensors" --backend x86 --check-data data/digits/test.npz --json -o "$work/a.safetensors"
says '"preparation_db": null'

# Data of its own, and a metric of the user's.
cat >"$work/metric" <<'END'
#!/bin/sh
[ -s "$1" ] && echo "metric: $(cat "$0.value")"
END
chmod +x "$work/metric"
echo 0.75 >"$work/metric.value"
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --check-data data/digits/test.npz \
    --metric "$work/metric" --max-drop 0 --json -o "$work/a.safetensors"
says '"float_metric": 0.75'
says '"quantized_metric": 0.75'
echo none >"$work/metric.value"
refuses 1 'printed no number' quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --metric "$work/metric" -o "$work/out"
refuses 1 'failed (exit status 3)' quantize "$digits" --backend x86 --calibrate "$train" --limit 64 --metric 'exit 3; ' -o "$work/out"

# A broken model is not handed out silently, and with a limit not at all. The worst layers have causes.
model=$faults/model.safetensors
expect 0 quantize "$model" --backend qnnpack --qconfig qnnpack --calibrate "$faults/calibrate.npz" \
    --check-data "$faults/test.npz" -o "$work/a.safetensors"
complains 'warning: the outputs keep only'
says 'remedy: '
refuses 1 'less than --min-sqnr 10' quantize "$model" --backend qnnpack --qconfig qnnpack \
    --calibrate "$faults/calibrate.npz" --check-data "$faults/test.npz" --min-sqnr 10 -o "$work/out"

# Exported programs, also of a fixed batch of two.
expect 0 quantize tests/data/small_resnet18/model.pt2 --quantizer XNNPACKQuantizer --calibrate random:16 -o "$work/a.safetensors"
says 'held-out sample'
small="tests/fuzz/corpus/pt2/arguments --quantizer XNNPACKQuantizer --calibrate random:16"
# shellcheck disable=SC2086 # Words.
for more in '--check-data random:4' '--never-slower' '--limit 8'; do
    expect 0 quantize $small $more -o "$work/a.safetensors"
done

# What fails in the check alone leaves a model that runs: there is no room for the values of two forms.
expect 0 quantize "$digits" --backend x86 --calibrate random:16:1:1x8x8 --batch 1 --max-memory 30K -o "$work/a.safetensors"
says 'not checked: its float form, or a comparison with it, failed'
complains 'note: the model was not checked: a result torch.float32 [1, 64, 8, 8] would take 16 KiB'

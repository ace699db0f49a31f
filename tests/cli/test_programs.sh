#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare quantize on programs of torch.export, by quantizers.
. tests/cli/support.sh

net=tests/data/small_resnet18/model.pt2
data=tests/data/small_resnet18/input.npz
int8=$work/int8.safetensors

expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" --print --report "$work/report" -o "$int8"
says 'of 69 operators in integers'
says "next: tare compare $net $int8 --data $data"
[ -s "$work/report/explain.json" ] || fail 'no report'
expect 0 compare "$net" "$int8" --data "$data"
expect 0 run "$int8" --input "$data" -o "$work/ran.npz"
expect 0 explain "$int8" --node conv2d
says 'rule conv_relu [global]'
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" --stop reference --json -o "$work/reference"
says '"stage": "reference"'
# Backends know modules and torch's functions.
expect 0 quantize "$net" --backend x86 --stop prepare --dry-run
complains 'is an exported program'
for engine in x86 fbgemm qnnpack onednn; do
    expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" --engine $engine -o "$work/$engine"
done

# In two steps, and with a state, it comes out the same. A prepared program needs no quantizer.
prepared=$work/prepared.safetensors
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --stop prepare -o "$prepared"
says "next: tare quantize $prepared --calibrate DATA -o OUT"
expect 0 quantize "$prepared" --calibrate "$data" -o "$work/two_steps"
cmp "$int8" "$work/two_steps"
expect 0 calibrate "$prepared" --data "$data" -o "$work/state"
expect 0 quantize "$prepared" --state "$work/state" -o "$work/by_state"
cmp "$int8" "$work/by_state"
refuses 1 '--quantizer has no effect (leave it out)' \
    quantize "$prepared" --quantizer XNNPACKQuantizer --calibrate "$data" -o "$work/out"
refuses 1 '--qat has no effect' quantize "$prepared" --qat --calibrate "$data" -o "$work/out"
refuses 1 'the model was prepared by a quantizer: --backend has no effect' \
    quantize "$prepared" --backend x86 --calibrate "$data" -o "$work/out"
refuses 1 'has seen no data' quantize "$prepared" -o "$work/out"
refuses 1 'the model is quantized already' quantize "$int8" --quantizer XNNPACKQuantizer -o "$work/out"

# A converted program is lowered as it is, from our format and from torch's.
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --calibrate "$data" --stop reference -o "$work/converted"
expect 0 quantize "$work/converted" -o "$work/lowered"
complains 'is quantized already; its quantize nodes were lowered as they are'
cmp "$int8" "$work/lowered"
expect 0 export "$work/converted" --to pt2 -o "$work/converted.pt2"
expect 0 quantize "$work/converted.pt2" -o "$work/lowered"
says '49 of 49 operators in integers'
expect 0 run "$work/lowered" --input "$data" -o "$work/lowered.npz"
cmp "$work/ran.npz" "$work/lowered.npz"
for late in '--quantizer XNNPACKQuantizer' '--backend x86' "--calibrate $data" --qat --lenient --never-slower; do
    # shellcheck disable=SC2086
    refuses 1 "the model is quantized already: ${late%% *} has no effect (leave it out" \
        quantize "$work/converted.pt2" $late -o "$work/out"
done
refuses 1 'the model is quantized already: --stop prepare is too late' \
    quantize "$work/converted.pt2" --stop prepare -o "$work/out"

# The same from our own format, built-in, composed and data quantizers alike, for training too.
expect 0 export "$net" --to tare -o "$work/program.safetensors"
expect 0 quantize "$work/program.safetensors" --quantizer XNNPACKQuantizer --calibrate "$data" -o "$work/again"
cmp "$int8" "$work/again"
for quantizer in X86InductorQuantizer ArmInductorQuantizer XPUInductorQuantizer examples/data/toy_quantizer.json \
    EmbeddingQuantizer,XNNPACKQuantizer EmbeddingQuantizer,examples/data/toy_quantizer.json; do
    expect 0 quantize "$net" --quantizer $quantizer --calibrate "$data" -o "$work/other"
    says 'of 69 operators in integers'
done
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --qat --calibrate "$data" --print -o "$work/qat"
says 'of 69 operators in integers'
refuses 1 'training needs configs of fake quantizers' \
    quantize "$net" --quantizer examples/data/toy_quantizer.json --qat --calibrate "$data" -o "$work/out"

# Settings: in one file, for any quantizer; what they ask for and do not get is told.
printf '{"global": {"default": {"is_per_channel": true}}, "module_name": [["layer4", {"default": {}}]]}' >"$work/settings.json"
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/settings.json" --stop reference \
    --calibrate "$data" --print -o "$work/set"
says 'quantize_per_channel'
expect 0 explain "$work/set" --node conv2d_19
says '[module_name: layer4]'
printf '{"module_name": [["avgpool", {"default": {}}], ["maxpool", {"default": {}}]]}' >"$work/only.json"
refuses 1 "the module_name selector 'maxpool' asks to quantize it, but it stays float" \
    quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/only.json" --strict --calibrate "$data" -o "$work/out"
printf '{"module_name": [["layer9", {"default": {}}]]}' >"$work/none.json"
refuses 1 "the model has no module 'layer9'" \
    quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/none.json" --calibrate "$data" -o "$work/out"
expect 0 quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/none.json" --lenient --calibrate "$data" \
    -o "$work/lenient"
says '0 of 69 operators in integers'
printf '{"globl": null}' >"$work/bad.json"
refuses 1 "bad.json: \$: unknown key 'globl' (did you mean 'global'?)" \
    quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/bad.json" --calibrate "$data" -o "$work/out"
printf '{"operator": [["torch.ops.aten.conv2d.default", null], ["torch.ops.aten.conv2d.default", {"default": {}}]]}' >"$work/bad.json"
refuses 1 "\$.operator[1]: 'torch.ops.aten.conv2d.default' is set twice" \
    quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/bad.json" --calibrate "$data" -o "$work/out"
refuses 1 "two quantizers are called 'XNNPACKQuantizer'" \
    quantize "$net" --quantizer XNNPACKQuantizer,XNNPACKQuantizer --calibrate "$data" -o "$work/out"
printf '{"global": {"default": {"is_qat": true}}}' >"$work/qat.json"
refuses 1 'says is_qat: true' \
    quantize "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/qat.json" --calibrate "$data" -o "$work/out"
printf '{"quantizers": {"XNNPACKQuantizer": {"global": null}}}' >"$work/composed.json"
expect 0 quantize "$net" --quantizer EmbeddingQuantizer,XNNPACKQuantizer --quantizer-config "$work/composed.json" \
    --calibrate "$data" -o "$work/composed"
says '0 of 69 operators in integers'
printf '{"quantizers": {"ArmInductorQuantizer": {"global": null}}}' >"$work/unused.json"
refuses 1 'settings for a quantizer that is not used' quantize "$net" --quantizer EmbeddingQuantizer,XNNPACKQuantizer \
    --quantizer-config "$work/unused.json" --calibrate "$data" -o "$work/out"

# What is dynamic or weight-only needs no data.
printf '{"global": {"default": {"is_dynamic": true}}}' >"$work/dynamic.json"
set -- "$net" --quantizer XNNPACKQuantizer --quantizer-config "$work/dynamic.json" --stop reference
expect 0 quantize "$@" -o "$work/unseen"
expect 0 quantize "$@" --calibrate "$data" -o "$work/seen"
"$tare" print "$work/unseen" >"$work/unseen.txt"
"$tare" print "$work/seen" | cmp - "$work/unseen.txt"
grep -q 'choose_qparams' "$work/unseen.txt" || fail 'nothing is dynamic'

# Before any data.
expect 0 quantize "$net" --quantizer X86InductorQuantizer --stop prepare --dry-run
says 'island 1, integers: conv2d'
says 'conversions: '

# What does not go together is refused.
refuses 1 "no built-in quantizer 'XNNPACKQuantiser' (did you mean 'XNNPACKQuantizer'?)" \
    quantize "$net" --quantizer XNNPACKQuantiser --calibrate "$data" -o "$work/out"
refuses 1 'no_such.json' quantize "$net" --quantizer no_such.json --calibrate "$data" -o "$work/out"
refuses 1 'an empty name' quantize "$net" --quantizer XNNPACKQuantizer, --calibrate "$data" -o "$work/out"
refuses 2 '--backend and --quantizer exclude each other' \
    quantize "$net" --quantizer XNNPACKQuantizer --backend x86 -o "$work/out"
refuses 2 '--qconfig has no effect without --backend' quantize "$net" --quantizer XNNPACKQuantizer --qconfig x86 -o "$work/out"
refuses 2 '--equalize has no effect without --backend' \
    quantize "$net" --quantizer XNNPACKQuantizer --equalize "$work/bad.json" -o "$work/out"
refuses 2 '--quantizer-config has no effect without --quantizer' \
    quantize "$digits" --backend x86 --quantizer-config "$work/bad.json" -o "$work/out"
refuses 2 '--quantizer and --stop fuse exclude each other' \
    quantize "$net" --quantizer XNNPACKQuantizer --stop fuse -o "$work/out"
refuses 2 '--engine has an effect with --stop lower only' \
    quantize "$net" --quantizer XNNPACKQuantizer --stop prepare --engine x86 -o "$work/out"
refuses 1 'it is made of modules and functions (export it with torch.export.save, or quantize it with --backend)' \
    quantize "$digits" --quantizer XNNPACKQuantizer --calibrate data/digits/train.npz -o "$work/out"
expect 0 quantize "$digits" --backend x86 --stop prepare -o "$work/fx"
refuses 1 'the model was prepared with a backend: --quantizer has no effect' \
    quantize "$work/fx" --quantizer XNNPACKQuantizer -o "$work/out"
refuses 2 '--backend NAME|FILE or --quantizer NAME|FILE is missing' quantize "$work/fx" -o "$work/out"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare quantize and tare explain: the whole way, its stations, and what goes wrong on it.
. tests/cli/support.sh
train=data/digits/train.npz
int8=$work/int8.safetensors

expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 32 --print --report "$work/report" -o "$int8"
says '(conv1): QuantizedConvReLU2d(1, 48'
says 'torch.ops.quantized.add_relu(conv4, pool'
says '17 of 17 operators in integers, 100.0 % of multiply-accumulates'
says '0 float islands'
says "next: tare compare $digits $int8 --data $train"
[ ! -s "$work/stderr" ] || fail 'no terminal, yet something on standard error'
for file in explain.json coverage.json model.txt; do
    [ -s "$work/report/$file" ] || fail "the report lacks $file"
done
"$tare" print "$int8" | cmp - "$work/report/model.txt"
grep -q '"quantized_operators": 17' "$work/report/coverage.json"

# The same job gives the same bytes, to a file and to standard output.
"$tare" quantize "$digits" --backend x86 --calibrate "$train" --limit 32 -o - >"$work/piped" 2>"$work/stderr"
cmp "$int8" "$work/piped"
complains '17 of 17 operators'

# In two steps, through a file, it comes out the same.
expect 0 quantize "$digits" --backend x86 --stop prepare -o "$work/prepared.safetensors"
says 'next: tare quantize'
expect 0 quantize "$work/prepared.safetensors" --backend x86 --calibrate "$train" --limit 32 -o "$work/two_steps"
says '17 of 17 operators'
cmp "$int8" "$work/two_steps"
expect 0 quantize "$digits" --backend x86 --stop fuse --print -o "$work/fused.safetensors"
says '(conv1): ConvReLU2d('
expect 0 quantize "$digits" --backend x86 --stop reference --calibrate "$train" --limit 32 --print -o "$work/reference.safetensors"
says 'QuantizedConv2d(Reference)'
says 'next: tare explain'
expect 0 quantize "$work/reference.safetensors" -o "$work/lowered"
cmp "$int8" "$work/lowered"

# In the form of training, with the batch norms' own statistics: nearly the same integers.
expect 0 quantize "$digits" --backend x86 --qat --calibrate "$train" --limit 64 --batch 8 -o "$work/qat.safetensors"
says '17 of 17 operators in integers'
expect 0 quantize "$digits" --backend x86 --qat --stop prepare --print -o "$work/qat_prepared.safetensors"
says '(conv1): ConvBnReLU2d('
says 'FusedMovingAvgObsFakeQuantize('
expect 0 quantize "$work/qat_prepared.safetensors" --backend x86 --calibrate "$train" --limit 64 --batch 8 -o "$work/qat_two_steps"
cmp "$work/qat.safetensors" "$work/qat_two_steps"
refuses 1 'the model is prepared already: --qat has no effect' quantize "$work/qat_prepared.safetensors" \
    --backend x86 --qat -o "$work/none"
refuses 2 '--qat and --stop fuse exclude each other' quantize "$digits" --backend x86 --qat --stop fuse -o "$work/none"

# explain: a sentence an operator.
expect 0 explain "$int8"
[ "$(grep -c ': quantized: ' "$work/stdout")" -eq 17 ] || fail 'explain: not 17 operators quantized'
expect 0 explain "$int8" --node conv1
says 'conv1 (torch.nn.Conv2d): quantized'
says '  prepare: observed'
expect 0 explain "$int8" --json
says '"bn4"'
refuses 1 "no decision about a node 'conv9' (did you mean 'conv1'?)" explain "$int8" --node conv9
refuses 1 'carries no decisions' explain "$digits"

# Experiments with a backend of one's own: what it lacks stays float, and is told.
expect 0 quantize "$digits" --backend examples/my_backend.json --qconfig examples/my_mapping.json \
    --calibrate "$train" --limit 32 -o "$work/mine"
says '1 of 17 operators in integers'
expect 0 explain "$work/mine" --node conv1
says "left float: the backend 'my_backend' has it only in patterns such as (torch.nn.Conv2d, torch.nn.ReLU)"
expect 0 quantize "$digits" --backend examples/my_backend.json --calibrate "$train" --limit 32 -o "$work/none"
says '0 of 17 operators in integers'
says "next: tare explain $work/none"

# What goes wrong is one clear error, and leaves no file behind.
out=$work/out.safetensors
refuses 1 "(did you mean 'x86'?)" quantize "$digits" --backend x68 -o "$out"
refuses 1 "(did you mean 'fbgemm'?)" quantize "$digits" --backend x86 --qconfig fbgem --calibrate "$train" -o "$out"
refuses 1 'has seen no data' quantize "$digits" --backend x86 -o "$out"
complains '--calibrate'
expect 0 quantize "$digits" --backend x86 --lenient -o "$work/lenient"
"$tare" explain "$work/lenient" | grep -q '^warning: ' || fail 'lenient: no warning in the record'
refuses 1 'the model is quantized already' quantize "$int8" --backend x86 -o "$out"
refuses 1 '--qconfig has no effect' quantize "$work/prepared.safetensors" --backend x86 --qconfig x86 -o "$out"

sed 's/"global": null/"module_name": [["conv9", null]]/' examples/my_mapping.json >"$work/module.json"
refuses 1 "'conv9' matches no module of the model" \
    quantize "$digits" --backend x86 --qconfig "$work/module.json" --calibrate "$train" -o "$out"
expect 0 quantize "$digits" --backend x86 --qconfig "$work/module.json" --calibrate "$train" --limit 8 \
    --lenient -o "$work/lenient_module"
sed 's/"torch.nn.Linear"/"torch.nn.Linaer"/' examples/my_mapping.json >"$work/type.json"
refuses 1 "'torch.nn.Linaer' is not a known module class (did you mean 'torch.nn.Linear'?)" \
    quantize "$digits" --backend x86 --qconfig "$work/type.json" --calibrate "$train" -o "$out"
expect 0 quantize "$digits" --backend x86 --qconfig "$work/type.json" --calibrate "$train" --limit 8 \
    --lenient -o "$work/lenient_type"
sed 's/"quant_max"/"quant_mx"/' examples/my_mapping.json >"$work/argument.json"
refuses 1 "MinMaxObserver has no argument 'quant_mx' (did you mean 'quant_max'?)" \
    quantize "$digits" --backend x86 --qconfig "$work/argument.json" --calibrate "$train" -o "$out"
complains 'argument.json: $.object_type[0][1].activation.kwargs.quant_mx: MinMaxObserver'
sed 's/"torch.qint8"/"torch.qint9"/' examples/my_mapping.json >"$work/argument.json"
refuses 1 "argument.json: \$.object_type[0][1].weight: MinMaxObserver: argument 'dtype' must be a dtype" \
    quantize "$digits" --backend x86 --qconfig "$work/argument.json" --calibrate "$train" -o "$out"
sed 's/"root_module"/"root_modul"/' examples/my_backend.json >"$work/key.json"
refuses 1 "key.json: \$.configs[0]" quantize "$digits" --backend "$work/key.json" --calibrate "$train" -o "$out"
complains "(did you mean 'root_module'?)"
head -c 400 examples/my_mapping.json >"$work/cut.json"
refuses 1 'cut.json' quantize "$digits" --backend x86 --qconfig "$work/cut.json" --calibrate "$train" -o "$out"
head -c 50000 "$digits" >"$work/cut.safetensors"
refuses 1 'cut.safetensors' quantize "$work/cut.safetensors" --backend x86 --calibrate "$train" -o "$out"

refuses 1 "node 'conv1'" quantize "$digits" --backend x86 --calibrate random:4:0:3x8x8 -o "$out"
complains '[4, 3, 8, 8]'
refuses 1 'random:N:SEED:3x32x32' quantize "$digits" --backend x86 --calibrate random:4 -o "$out"
refuses 1 'no_such.npz' quantize "$digits" --backend x86 --calibrate "$work/no_such.npz" -o "$out"
head -c 9000 "$train" >"$work/cut.npz"
refuses 1 'cut.npz' quantize "$digits" --backend x86 --calibrate "$work/cut.npz" -o "$out"
"$tare" run "$digits" --input "$train" --limit 2 -o "$work/wrong_name.npz" >/dev/null
refuses 1 "wrong_name.npz: array 'output' is no input of the model, which has 'x'" \
    quantize "$digits" --backend x86 --calibrate "$work/wrong_name.npz" -o "$out"
npy "$work/nan.npy" '(2, 1, 8, 8)' 512
expect 0 quantize "$digits" --backend x86 --calibrate "$work/nan.npy" -o "$work/zeros"
patch "$work/nan.npy" 402 300
patch "$work/nan.npy" 403 177
refuses 1 'nan.npy' quantize "$digits" --backend x86 --calibrate "$work/nan.npy" -o "$out"
complains 'NaN'

refuses 1 'no_such_folder' quantize "$digits" --backend x86 --calibrate "$train" --limit 2 -o "$work/no_such_folder/out"
# A model that cannot be written takes its report with it.
expect 1 quantize "$digits" --backend x86 --calibrate "$train" --limit 2 --report "$work/lost" \
    -o "$work/no_such_folder/out"
[ -z "$(ls "$work/lost")" ] || fail 'a report without its model'

# Custom configs: a quantized output stays quantized, what selects nothing is refused.
printf '{"output_quantized_idxs": [0]}' >"$work/prepare.json"
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 8 --prepare-config "$work/prepare.json" \
    -o "$out" --print
says '    return fc'
rm "$out"
printf '{"non_traceable_module_name": ["conv9"]}' >"$work/prepare.json"
refuses 1 "the non_traceable_module_name selector 'conv9' matches no module" \
    quantize "$digits" --backend x86 --calibrate "$train" --prepare-config "$work/prepare.json" -o "$out"
printf '{"output_quantized": [0]}' >"$work/prepare.json"
refuses 1 'output_quantized_idxs' \
    quantize "$digits" --backend x86 --calibrate "$train" --prepare-config "$work/prepare.json" -o "$out"
refuses 2 '--convert-config and --stop prepare exclude each other' \
    quantize "$digits" --backend x86 --stop prepare --convert-config "$work/prepare.json" -o "$out"
printf '{"global": "default_equalization_qconfig"}' >"$work/equalize.json"
printf '{"global": "default_qconfig"}' >"$work/global.json"
expect 0 quantize "$digits" --backend x86 --qconfig "$work/global.json" --calibrate "$train" --limit 8 \
    --equalize "$work/equalize.json" -o "$out" --print
says '_equalization_scale0 = self.x_equalization_scale0'
# It keeps what the network computes: behind a layer that is not equalized itself, and beside a shared observer.
expect 0 quantize "$digits" --backend x86 --qconfig "$work/global.json" --calibrate "$train" --limit 64 \
    --equalize "$work/equalize.json" --min-sqnr 30 -o "$out"

# Before any data: what would become of it.
rm -f "$work/out.safetensors"
expect 0 quantize "$digits" --backend examples/toy_accelerator.json --qconfig fbgemm --stop prepare --dry-run
says 'island 2, float: avgpool'
says 'conversions: 1 tensors quantized, 1 dequantized'
says "float: fc (torch.nn.Linear): the backend 'toy_accelerator' has no pattern for it"
refuses 2 '--dry-run has an effect with --stop prepare only' quantize "$digits" --backend x86 --dry-run
refuses 2 '--dry-run and -o exclude each other' quantize "$digits" --backend x86 --stop prepare --dry-run -o "$work/dry"
refuses 2 '-o OUT is missing' quantize "$digits" --backend x86

# What a selector asks for and does not get is a failure where the user says so.
tutorial=examples/data/tutorial_conv_bn_relu.safetensors
set -- --backend examples/my_backend.json --qconfig examples/my_mapping.json \
    --calibrate examples/data/tutorial_input.npy
expect 0 quantize $tutorial "$@" -o "$work/tutorial"
refuses 1 "the object_type selector 'torch.nn.Conv2d' asks to quantize it, but it stays float" \
    quantize $tutorial "$@" --strict -o "$work/strict"
[ ! -e "$work/strict" ] || fail 'a model is left behind'
expect 0 quantize examples/data/tutorial_conv_relu.safetensors "$@" --strict -o "$work/strict"
# The model as a whole is asked for, too: nothing of it in integers is a failure.
sed 's/torch.quint8/torch.qint8/g' examples/my_backend.json >"$work/other_dtype.json"
refuses 1 'the whole model was asked for, but all ' quantize examples/data/tutorial_conv_relu.safetensors \
    --backend "$work/other_dtype.json" --calibrate examples/data/tutorial_input.npy --strict -o "$work/strict2"

refuses 2 '--lenient and --strict exclude each other' quantize $tutorial "$@" --strict --lenient -o "$work/strict"

# Corrected biases: the record says which; how many threads correct them does not show.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 32 --bias-correction -o "$work/corrected"
says 'bias correction: 5 layers with 32 samples'
expect 0 explain "$work/corrected" --node conv1
says 'correct biases: corrected'
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 32 --bias-correction --threads 3 \
    -o "$work/corrected3"
cmp "$work/corrected" "$work/corrected3"
if cmp -s "$work/corrected" "$int8"; then fail 'nothing was corrected'; fi
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 32 --bias-correction --bias-data "$train" \
    --bias-samples 32 -o "$work/corrected3"
cmp "$work/corrected" "$work/corrected3"
# What is told is of the model that was kept, not of the last one that was tried.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 8 --bias-correction --never-slower --json \
    -o "$work/fast"
told=$(grep -c '"largest_shift"' "$work/stdout" || true)
expect 0 explain "$work/fast" --json
recorded=$(grep -o '"decision":"corrected"' "$work/stdout" | wc -l)
[ "$told" -eq "$recorded" ] || fail "$told corrected layers are told, $recorded are in the model"
refuses 2 '--bias-correction has no effect without --calibrate or --bias-data' \
    quantize "$work/prepared.safetensors" --backend x86 --state "$work/state" --bias-correction -o "$work/fast"
refuses 2 '--bias-correction and --stop prepare exclude each other' \
    quantize "$digits" --backend x86 --calibrate "$train" --bias-correction --stop prepare -o "$work/fast"
refuses 2 '--bias-samples has no effect without --bias-correction' \
    quantize "$digits" --backend x86 --calibrate "$train" --bias-samples 4 -o "$work/fast"
refuses 2 '--bias-correction and --qat exclude each other' \
    quantize "$digits" --backend x86 --calibrate "$train" --bias-correction --qat -o "$work/fast"
refuses 2 '--equalize and --bias-correction exclude each other' \
    quantize "$digits" --backend x86 --calibrate "$train" --bias-correction --equalize x.json -o "$work/fast"
refuses 1 'no layer has a quantized weight' quantize tests/data/small_resnet18/model.pt2 \
    --quantizer EmbeddingQuantizer --calibrate tests/data/small_resnet18/input.npz --bias-correction -o "$work/out.safetensors"
refuses 2 'which standard input cannot' \
    quantize "$digits" --backend x86 --calibrate - --bias-correction -o "$work/fast"

# Packed at once is what packing the file gives.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 8 -o "$work/plain"
expect 0 export "$work/plain" --to tare --packed -o "$work/packed"
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 8 --packed -o "$work/packed2"
cmp "$work/packed" "$work/packed2"
refuses 2 '--packed has an effect with --stop lower only' \
    quantize "$digits" --backend x86 --packed --stop prepare -o "$work/fast"

# What is slower in integers stays float; the model says what everything took.
expect 0 quantize "$digits" --backend x86 --calibrate "$train" --limit 8 --never-slower --run-threads 2 -o "$work/fast"
says 'never slower: '
expect 0 explain "$work/fast"
says ' us in integers, '
says '2 threads)'
refuses 2 '--never-slower has an effect with --stop lower only' \
    quantize "$digits" --backend x86 --never-slower --stop prepare -o "$work/fast"
refuses 2 '--run-threads has no effect without --never-slower' \
    quantize "$digits" --backend x86 --calibrate "$train" --run-threads 2 -o "$work/fast"

# What is predicted to be slower in integers stays float under tare's own mapping; the model says what was predicted.
cat >"$work/slow.json" <<'END'
{"format": "tare-machine-1", "int8_gops": 1, "float_gflops": 1000, "l2_gbs": 100, "l3_gbs": 90, "memory_gbs": 30}
END
predict="--calibrate $train --limit 8"
expect 0 quantize "$digits" --backend x86 $predict --machine "$work/slow.json" -o "$work/fast"
says 'layers stay float, predicted to be slower in integers'
expect 0 explain "$work/fast"
says 'left float: predicted '
says '1 GOPS of int8, 1000 GFLOPS, 100 GB/s'
export TARE_MACHINE="$work/slow.json"
expect 0 quantize "$digits" --backend x86 $predict -o "$work/default"
cmp "$work/fast" "$work/default"
expect 0 quantize "$digits" --backend x86 $predict --no-predict -o "$work/integers"
cmp "$work/plain" "$work/integers"
# With torch's mapping the graph stays torch's unless the prediction is asked for.
expect 0 quantize "$digits" --backend x86 --qconfig x86 $predict -o "$work/torch"
expect 0 explain "$work/torch"
! grep -q 'predicted' "$work/stdout" || fail "torch's mapping was predicted"
expect 0 quantize "$digits" --backend x86 --qconfig x86 $predict --predict -o "$work/torch"
expect 0 explain "$work/torch"
says 'left float: predicted '
# A machine without a file is measured once.
expect 0 quantize "$digits" --backend x86 $predict --machine "$work/new.json" -o "$work/fast"
grep -q '"int8_gops"' "$work/new.json" || fail 'the peaks of the machine were not written'
echo '{}' >"$work/none.json"
refuses 1 'format' quantize "$digits" --backend x86 $predict --machine "$work/none.json" -o "$work/fast"
refuses 2 '--predict and --never-slower exclude each other' \
    quantize "$digits" --backend x86 $predict --predict --never-slower -o "$work/fast"

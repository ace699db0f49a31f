#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What every command prints with --json is what its schema in docs/schemas says.
. tests/cli/support.sh
: "${TARE_SCHEMA_CHECK:?the checker}"
used=" "

# fits SCHEMA ARGUMENT..: the command succeeds and prints one document that fits.
fits() {
    schema=$1
    shift
    used="$used$schema "
    "$tare" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || fail "tare $*: failed"
    "$TARE_SCHEMA_CHECK" "docs/schemas/$schema.json" <"$work/stdout" || fail "tare $*: does not fit $schema"
}

# wrong SCHEMA DOCUMENT: the checker refuses it.
wrong() {
    ! printf '%s' "$2" | "$TARE_SCHEMA_CHECK" "docs/schemas/$1.json" 2>/dev/null ||
        fail "the checker takes $2 for $1"
}

int8=$work/int8.safetensors test=data/digits/test.npz
fits quantize quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 64 \
    --report "$work/report" --json -o "$int8"
"$TARE_SCHEMA_CHECK" docs/schemas/coverage.json <"$work/report/coverage.json" || fail 'coverage.json'
"$TARE_SCHEMA_CHECK" docs/schemas/explain.json <"$work/report/explain.json" || fail 'explain.json'
used="${used}coverage "
fits quantize quantize "$digits" --backend x86 --stop reference --lenient --json -o "$work/reference"
fits quantize quantize "$digits" --backend x86 --stop fuse --json -o "$work/fused"
fits quantize quantize "$digits" --backend x86 --stop prepare --json -o "$work/prepared"
fits analyze analyze "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --data "$test" --samples 16 --json
fits improve improve "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --budget 2 --json -o "$work/improved"
fits preview quantize "$digits" --backend x86 --stop prepare --dry-run --json
for model in "$digits" "$int8" "$work/prepared" "$work/reference" "$work/fused"; do
    fits print print "$model" --json
done
fits calibrate calibrate "$work/prepared" --data "$test" --limit 32 --json -o "$work/state"
fits calibrate calibrate --merge "$work/state" --json -o "$work/merged"
fits run run "$int8" --input "$test" --limit 32 --json
fits run run "$int8" --input random:3:0:1x8x8 --json
fits bench bench "$int8" --input "$test" --seconds 1 --json
fits bench bench "$int8" --against "$digits" --input "$test" --seconds 1 --layers --memory --json
fits explain explain "$int8" --json
fits explain explain "$int8" --node conv1 --json
fits compare compare "$digits" "$int8" --data "$test" --limit 32 --json
fits compare compare "$digits" "$digits" --data random:3:0:1x8x8 --json
fits compare_layers compare "$digits" "$int8" --data "$test" --limit 32 --layers --json
"$tare" quantize "$digits" --backend x86 --calibrate "$test" --limit 32 --debug-handles --quiet -o "$work/numbered" >/dev/null
fits compare_layers compare "$digits" "$work/numbered" --data "$test" --limit 32 --layers --worst --json
fits report report "$digits" "$int8" --data "$test" --samples 16 --bench-seconds 1 --json
fits report report "$digits" "$int8" --data "$test" --samples 16 --no-bench --backend x86 --calibrate data/digits/train.npz \
    --limit 32 --json
used="${used}verdict tensors "
fits preprocess preprocess "$digits" --json
fits preprocess_write preprocess "$digits" --set imagenet --json -o "$work/imagenet"
fits preprocess preprocess "$work/imagenet" --json
fits preprocess_write preprocess "$digits" --set resize=3x4,interpolation=nearest,dtype=uint8 --json -o "$work/bytes"
fits preprocess preprocess "$work/bytes" --json
fits export export "$digits" --to tare --json -o "$work/exported"
if ! "$tare" version | grep -q 'no ONNX'; then
    fits export export "$int8" --to onnx --report "$work/report.json" --json -o "$work/exported.onnx"
    "$TARE_SCHEMA_CHECK" docs/schemas/export_report.json <"$work/report.json" || fail 'export report'
fi
used="${used}export_report "
fits version version --json
fits completion completion bash --json
fits backend_list backend list --json
for backend in $("$tare" backend list); do
    fits backend-config backend show "$backend" --json
    fits backend_table backend table "$backend" --json
done
expect 1 backend check native --json # it has findings
"$TARE_SCHEMA_CHECK" docs/schemas/backend_check.json <"$work/stdout" || fail 'backend check'
fits backend_check backend check examples/my_backend.json --json
fits qconfig_list qconfig list --json
fits qconfig_show qconfig show x86 --json
fits qconfig_show qconfig show default_qconfig --json
program=tests/data/small_resnet18/model.pt2 batch=tests/data/small_resnet18/input.npz
fits preview quantize "$program" --quantizer XNNPACKQuantizer --stop prepare --dry-run --json
fits quantize quantize "$program" --quantizer XNNPACKQuantizer --calibrate "$batch" --json -o "$work/program"
fits explain explain "$work/program" --json
fits quantize quantize "$program" --quantizer XNNPACKQuantizer --calibrate "$batch" --bias-correction --json \
    -o "$work/program"
fits explain explain "$work/program" --json
fits quantize quantize "$program" --quantizer XNNPACKQuantizer --calibrate "$batch" --never-slower --json \
    -o "$work/program"
printf '{"format": "tare-machine-1", "int8_gops": 1, "float_gflops": 1e3, "l2_gbs": 100, "l3_gbs": 90, "memory_gbs": 30}' \
    >"$work/slow.json"
fits quantize quantize "$program" --quantizer XNNPACKQuantizer --calibrate "$batch" --machine "$work/slow.json" --json \
    -o "$work/program"
fits explain explain "$work/program" --json
fits quantizer_list quantizer list --json
for quantizer in $("$tare" quantizer list) EmbeddingQuantizer,XNNPACKQuantizer examples/data/toy_quantizer.json \
    examples/npu_quantizer.json examples/xnnpack_quantizer.json; do
    fits quantizer_show quantizer show "$quantizer" --json
    fits quantizer_check quantizer check "$quantizer" --json
done
sed 's/"over_256": {/"unused": {/; s/"over_256"/null/g' examples/data/toy_quantizer.json >"$work/unused.json"
expect 1 quantizer check "$work/unused.json" --json
"$TARE_SCHEMA_CHECK" docs/schemas/quantizer_check.json <"$work/stdout" || fail 'quantizer check'

# Files that users write.
fits_file() {
    used="$used$1 "
    "$TARE_SCHEMA_CHECK" "docs/schemas/$1.json" <"$2" || fail "$2: does not fit $1"
}
fits_file quantizer examples/data/toy_quantizer.json
fits_file quantizer examples/data/attention_quantizer.json
fits_file quantizer examples/npu_quantizer.json
fits_file quantizer examples/xnnpack_quantizer.json
fits_file quantizer-settings examples/data/quantizer_settings.json
"$tare" quantize "$program" --quantizer XNNPACKQuantizer --quantizer-config examples/data/quantizer_settings.json \
    --stop prepare -o "$work/settings" >/dev/null || fail 'quantizer_settings.json'
wrong quantizer '{"format": "tare-quantizer", "version": 2, "name": "a", "config": {}, "rules": []}'
wrong quantizer-settings '{"globl": null}'

# The keys of a schema are those that its reader knows: a key more is refused by a hint that lists them.
# same_keys SCHEMA DOCUMENT.. -- ARGUMENT..: the documents use every list of keys of the schema; tare reads
# the file FILE.
same_keys() {
    schema=$1 documents='' program=$(realpath "$tare")
    shift
    while [ "$1" != -- ]; do
        fits_file "$schema" "$1"
        documents="$documents $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # Paths are words.
    "$TARE_SCHEMA_CHECK" --strangers "docs/schemas/$schema.json" $documents >"$work/strangers" || fail "$schema"
    while IFS= read -r keys; do
        case $keys in unused*) fail "$schema: no document of the test has an object of the keys ${keys#unused }" ;; esac
        IFS= read -r document
        printf '%s' "$document" >"$work/FILE"
        ! (cd "$work" && "$program" "$@") >"$work/stdout" 2>"$work/stderr" </dev/null || fail "$schema: took $document"
        found=$(sed -n "s/.*'~'.*(\(the keys here\|its arguments\|inputs\) are \(.*\))\$/\2/p" "$work/stderr" |
            sed 's/,//g; s/ and / /' | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')
        grep -q "'~'.*(it takes none)" "$work/stderr" || [ -n "$found" ] ||
            fail "$schema: $document: $(cat "$work/stderr")"
        [ "${found% }" = "$keys" ] || fail "$schema: has the keys '$keys', the reader '${found% }'"
    done <"$work/strangers"
}

cat >"$work/backend.json" <<'EOF'
{"$schema": "backend-config.json", "name": "mine", "extends": "native",
 "dtypes": {"act": {"dtype": "torch.quint8", "scale_power_of_two": true}},
 "dtype_configs": {"int8": {"input_dtype": "act", "output_dtype": "act", "weight_dtype": "torch.qint8"}},
 "configs": [{"pattern": "torch.nn.Linear", "dtype_configs": ["int8", {"input_dtype": {"dtype": "quint8"}}],
   "root_module": "torch.nn.Linear",
   "reference_quantized_module_for_root": "torch.ao.nn.quantized.reference.Linear"},
  {"pattern": "torch.nn.functional.linear", "input_type_to_index": {"weight": 1, "bias": 2}}]}
EOF
cat >"$work/mapping.json" <<'EOF'
{"$schema": "qconfig-mapping.json", "default": "x86", "global": "default_qconfig",
 "object_type": [
  ["a", {"activation": {"class": "MinMaxObserver", "kwargs": {}}, "weight": null}],
  ["b", {"activation": {"class": "MovingAverageMinMaxObserver", "kwargs": {}}}],
  ["c", {"activation": {"class": "PerChannelMinMaxObserver", "kwargs": {}}}],
  ["d", {"activation": {"class": "MovingAveragePerChannelMinMaxObserver", "kwargs": {}}}],
  ["e", {"activation": {"class": "HistogramObserver", "kwargs": {"bins": 256}}}],
  ["f", {"activation": {"class": "tare.MergeableHistogramObserver", "kwargs": {}}}],
  ["o", {"activation": {"class": "tare.PerGroupMinMaxObserver", "kwargs": {}}}],
  ["p", {"activation": {"class": "tare.MSEObserver", "kwargs": {}}}],
  ["q", {"activation": {"class": "tare.PerChannelMSEObserver", "kwargs": {}}}],
  ["r", {"activation": {"class": "tare.PerGroupMSEObserver", "kwargs": {}}}],
  ["g", {"activation": {"class": "FixedQParamsObserver", "kwargs": {"scale": 1, "zero_point": 0}}}],
  ["h", {"activation": {"class": "PlaceholderObserver", "kwargs": {}}}],
  ["i", {"activation": {"class": "NoopObserver", "kwargs": {}}}],
  ["j", {"activation": {"class": "ReuseInputObserver", "kwargs": {}}}],
  ["l", {"activation": {"class": "FakeQuantize", "kwargs": {"observer": {"class": "MinMaxObserver"}}}}],
  ["m", {"activation": {"class": "FixedQParamsFakeQuantize", "kwargs": {"observer":
   {"class": "FixedQParamsObserver", "kwargs": {"scale": 1, "zero_point": 0}}}}}],
  ["n", {"activation": {"class": "_LearnableFakeQuantize", "kwargs": {"observer": {"class": "MinMaxObserver"}}}}]],
 "module_name_regex": [["conv.*", null]], "module_name": [["fc", null]],
 "module_name_object_type_order": [["", "torch.add", 0, "default_qconfig"]]}
EOF
cat >"$work/equalization.json" <<'EOF'
{"global": {"input_activation": {"class": "_InputEqualizationObserver", "kwargs": {}},
            "weight": {"class": "_WeightEqualizationObserver"}}}
EOF
cat >"$work/prepare.json" <<'EOF'
{"standalone_module_name": [["fc", {"default": "x86"}, null, {"input_quantized_idxs": [0]}, "x86"]],
 "float_to_observed_custom_module_class": {"static": {}}, "preserved_attributes": []}
EOF
cat >"$work/convert.json" <<'EOF'
{"observed_to_quantized_custom_module_class": {"static": {}}, "preserved_attributes": []}
EOF
sed 's/"specs": {/"specs": {"shared": {"spec": "SharedQuantizationSpec", "edge_or_node": {"node": "x"}},/
     s/"name": "add",/"name": "add", "examples": [[{"shape": [1, 4]}, [1, 4]]],/' \
    examples/data/toy_quantizer.json >"$work/quantizer.json"
cat >"$work/settings.json" <<'EOF'
{"module_name": [["a", {"default": {}}],
  ["b", {"input_activation": {"spec": "SharedQuantizationSpec", "edge_or_node": {"node": "x"}}}],
  ["c", {"input_activation": {"spec": "FixedQParamsQuantizationSpec", "dtype": "torch.uint8", "scale": 1,
                              "zero_point": 0, "quant_min": 0, "quant_max": 255, "qscheme": "torch.per_tensor_affine"},
         "bias": {"spec": "DerivedQuantizationSpec", "dtype": "torch.int32", "derived_from": [{"node": "x"}],
                  "derive_qparams_fn": "_derive_bias_qparams_from_act_and_weight_qparams"}}]]}
EOF
cp "$digits" "$work/digits.safetensors"
same_keys backend-config "$work/backend.json" examples/toy_accelerator.json examples/my_backend.json -- backend check FILE
same_keys qconfig-mapping "$work/mapping.json" "$work/equalization.json" examples/my_mapping.json examples/minmax.json \
    -- qconfig show FILE
same_keys prepare-custom-config "$work/prepare.json" -- \
    quantize digits.safetensors --backend x86 --prepare-config FILE --stop prepare -o prepared --quiet
same_keys convert-custom-config "$work/convert.json" -- \
    quantize prepared --backend x86 --convert-config FILE --lenient --stop reference -o out --quiet
same_keys quantizer "$work/quantizer.json" examples/data/attention_quantizer.json examples/npu_quantizer.json \
    examples/xnnpack_quantizer.json -- quantizer check ./FILE
cp "$program" "$work/program.pt2"
same_keys quantizer-settings examples/data/quantizer_settings.json "$work/settings.json" -- \
    quantize program.pt2 --quantizer XNNPACKQuantizer --quantizer-config FILE --stop prepare -o settings --quiet
for backend in backends/*.json; do fits_file backend-config "$backend"; done
for mapping in backends/qconfigs/mapping_*.json; do fits_file qconfig-mapping "$mapping"; done
for mapping in $("$tare" qconfig list | sed -n '/^qconfigs/q; s/^ //p'); do
    fits qconfig-mapping qconfig show "$mapping" --json
done
wrong qconfig-mapping '{"object_type": [["torch.nn.Linear"]]}'
wrong qconfig-mapping '{"global": {"activation": {"class": "MinMaxObserver", "kwargs": {"ch_axis": 0}}}}'
wrong qconfig-mapping '{"global": "defalt_qconfig"}'
wrong prepare-custom-config '{"standalone_module_name": [["fc", {"globl": null}, null, null, null]]}'
wrong backend-config '{"dtypes": {"act": "torch.quint8"}}'

fits help help --json
fits help help run --json

# Every schema was used, and every command has a schema and --json.
for file in docs/schemas/*.json; do
    name=$(basename "$file" .json)
    case $used in *" $name "*) ;; *) fail "no test of docs/schemas/$name.json" ;; esac
done
for command in $("$tare" help --json | sed -n 's/^   "name": "\(.*\)",$/\1/p'); do
    [ -e "docs/schemas/$command.json" ] || ls docs/schemas/"$command"_*.json >/dev/null || fail "$command has no schema"
    "$tare" help "$command" | grep -q -e '--json' || fail "$command has no --json"
done

# The checker can say no.
wrong version '{"version": "1", "features": "", "isa": "mmx"}'
wrong version '{"version": "1", "features": ""}'
wrong version '{"version": 1, "features": "", "isa": "avx2"}'
wrong version '{"version": "1", "features": "", "isa": "avx2", "more": 1}'
wrong run '{"samples": -1}'
wrong run '{"samples": 1, "accuracy": 1.5}'
wrong preprocess '{"center_crop": [3]}'
wrong preprocess '{"resize": {"shorter": 3, "size": [3, 3]}}'
wrong help '{"commands": [{}]}'
wrong backend-config '{"configs": [{"pattern": "a.B", "fuser": 1}]}'
wrong backend-config '{"configs": [{"dtype_configs": [{"input_dtype": {"quant_min_lower_bound": 0}}]}]}'
wrong backend-config '{"configs": [{"num_tensor_args_to_observation_type": {"0": "NEVER"}}]}'
wrong explain '{"operators": [], "decisions": [], "nodes": [{"name": "x"}], "edges": []}'
wrong help '{"commands": '

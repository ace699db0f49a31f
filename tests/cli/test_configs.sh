#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare backend, tare qconfig.
. tests/cli/support.sh

expect 0 backend list
for name in native x86 fbgemm qnnpack onednn tensorrt executorch; do
    says "$name"
    expect 0 backend show "$name"
    says "$name: "
    # What is written is read back, and written again the same.
    "$tare" backend show "$name" --json >"$work/$name.json"
    "$tare" backend show "$work/$name.json" --json | cmp - "$work/$name.json"
    expect 0 backend list
done
expect 0 backend list --json
says '"x86"'
"$tare" backend show - --json <"$work/x86.json" | cmp - "$work/x86.json"

expect 0 backend check examples/my_backend.json
says 'no findings'
expect 0 backend check examples/my_backend.json --json
says '"findings": []'
expect 0 backend table examples/my_backend.json
says '| `torch.nn.Linear` | quint8'

refuses 1 "(did you mean 'x86'?)" backend show x68
refuses 1 'no_such.json' backend show "$work/no_such.json"
sed 's/"observation_type"/"observation_typ"/' examples/my_backend.json >"$work/key.json"
refuses 1 "\$.configs[0]" backend check "$work/key.json"
complains "key.json"
complains "(did you mean 'observation_type'?)"
head -c 700 examples/my_backend.json >"$work/cut.json"
refuses 1 'cut.json' backend check "$work/cut.json"
complains 'line '
# Nothing converts values of 16 bits.
sed 's/torch.quint8/torch.int16/' examples/my_backend.json >"$work/words.json"
expect 1 backend check "$work/words.json"
says '$.configs[0].dtype_configs[0].input_dtype: pattern'
says 'no quantize operator for torch.int16: the values stay float (name torch.quint8 or torch.qint8)'
# A fused module that no fuser makes is allowed, and pointless.
sed '/"fuser_method"/d; s/\("fused_module": .*\),$/\1/' examples/my_backend.json >"$work/pointless.json"
expect 1 backend check "$work/pointless.json"
says '$.configs[1].fused_module: pattern'
says '(give a fuser_method, or drop it)'
complains 'finding'
expect 1 backend check "$work/pointless.json" --json
says '"remedy": "give a fuser_method, or drop it"'

# What extends another config has findings in its own patterns alone, at their places in the file; quantize shows them.
cat >"$work/mine.json" <<'END'
{"name": "mine", "extends": "x86", "configs": [
 {"pattern": "torch.nn.Conv1d", "dtype_configs": []},
 {"pattern": "torch.nn.Linear", "dtype_configs": [{"input_dtype": "torch.int8", "output_dtype": "torch.int8",
  "weight_dtype": "torch.int8", "bias_dtype": "torch.float32"}], "root_module": "torch.nn.Linear",
  "reference_quantized_module_for_root": "torch.ao.nn.quantized.reference.Linear"}]}
END
expect 1 backend check "$work/mine.json"
says '$.configs[1].dtype_configs[0].input_dtype: '
says 'the observers of a qconfig give torch.qint8, not torch.int8'
! grep -q hardsigmoid "$work/stdout" || fail 'findings of the config that is extended'
expect 0 quantize "$digits" --backend "$work/mine.json" --calibrate data/digits/train.npz --limit 8 -o "$work/mine"
complains 'warning: '
complains '$.configs[1].dtype_configs[0].weight_dtype: pattern torch.nn.Linear: the observers of a qconfig give torch.qint8'

expect 0 qconfig list
says 'default_per_channel_qconfig'
for name in x86 fbgemm qnnpack onednn symmetric_qnnpack; do
    says "  $name"
    "$tare" qconfig show "$name" >"$work/mapping.json"
    "$tare" qconfig show "$name" --json >"$work/compact.json"
    "$tare" qconfig show "$work/mapping.json" --json | cmp - "$work/compact.json"
    expect 0 qconfig list
done
expect 0 qconfig list --json
says '"mappings": ['
expect 0 qconfig show default_qconfig
says '"activation"'
refuses 1 "(did you mean 'fbgemm'?)" qconfig show fbgem
refuses 1 "(did you mean 'default_qconfig'?)" qconfig show default_qconfg
refuses 1 "no default mapping is called 'x87' (did you mean 'x86'?)" \
    quantize "$digits" --backend x86 --qconfig x87 --dry-run --stop prepare

# Quantizers: the same three words.
expect 0 quantizer list
says 'X86InductorQuantizer'
expect 0 quantizer show XNNPACKQuantizer
says '    weight: int8 -127..127 per_tensor_symmetric by MinMaxObserver'
says '    conv_relu'
expect 0 quantizer show examples/data/toy_quantizer.json
says 'toy (rules)'
expect 0 quantizer check examples/data/toy_quantizer.json
says 'toy: no findings'
sed 's/"over_256": {/"unused": {/; s/"over_256"/null/g' examples/data/toy_quantizer.json >"$work/unused.json"
expect 1 quantizer check "$work/unused.json"
says "\$.specs.unused: nothing uses the spec 'unused' (use it, or take it out)"
complains '1 finding'
sed 's/"keeps_observer"/"keep_observer"/' examples/data/toy_quantizer.json >"$work/key.json"
refuses 1 "key.json: \$: unknown key 'keep_observer' (did you mean 'keeps_observer'?)" quantizer check "$work/key.json"
refuses 1 "(did you mean 'ArmInductorQuantizer'?)" quantizer show ArmInductorQuantiser

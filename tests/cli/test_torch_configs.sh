#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/torch_configs.py writes torch's own configs as the built-in ones are.
. tests/cli/support.sh
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
python3 -c 'import torch.ao.quantization' 2>/dev/null || { echo 'skipped: no torch'; exit 77; }
cat >"$work/configs.py" <<'EOF'
import torch
from torch.ao.quantization import default_dynamic_qconfig, get_default_qat_qconfig_mapping, get_default_qconfig_mapping
from torch.ao.quantization.backend_config.onednn import get_onednn_backend_config
from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
backend = get_onednn_backend_config()
def x86(): return get_default_qconfig_mapping("x86")
def x86_qat(): return get_default_qat_qconfig_mapping("x86")
mine = x86().set_module_name("fc", default_dynamic_qconfig).set_module_name_regex("a.*", None)
prepare = PrepareCustomConfig().set_input_quantized_indexes([0])
nothing = 1
EOF
written() { python3 tools/torch_configs.py "$work/configs.py:$1" -o "$work/$1.json" || fail "$1"; }
for config in backend x86 x86_qat mine prepare; do written "$config"; done
# torch writes some functions by another of their names.
names='s/torch\.nn\.functional\./torch./; s/torch\._C\._nn\./torch./'
"$tare" backend show "$work/backend.json" --json | sed "$names" >"$work/found"
"$tare" backend show onednn --json | sed "$names" | cmp - "$work/found" || fail 'another backend'
"$tare" qconfig show "$work/x86.json" >"$work/found"
"$tare" qconfig show x86 | cmp - "$work/found" || fail 'another mapping'
echo '{"default_qat": "x86"}' >"$work/default.json"
"$tare" qconfig show "$work/x86_qat.json" >"$work/found"
"$tare" qconfig show "$work/default.json" | cmp - "$work/found" || fail 'another mapping for training'
"$tare" quantize "$digits" --backend x86 --qconfig "$work/mine.json" --lenient --prepare-config "$work/prepare.json" \
    --stop prepare --quiet -o "$work/prepared" >/dev/null || fail 'prepare config'
! python3 tools/torch_configs.py "$work/configs.py:nothing" -o "$work/nothing.json" 2>"$work/stderr" || fail 'took a number'
grep -q 'expected one of BackendConfig' "$work/stderr" || fail 'no reason'

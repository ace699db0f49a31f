#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --max-memory: what files of others cannot take.
. tests/cli/support.sh
test_data=data/digits/test.npz

# A megabyte of zeros is a kilobyte when it is deflated.
npy "$work/zeros.npy" '(4096, 1, 8, 8)' 1048576
expect 0 export "$digits" --to tare -o "$work/copy.safetensors"
expect 0 run "$digits" --input "$work/zeros.npy" --output "$work/result.npz"
python3 - "$work/zeros.npy" "$work/zeros.npz" <<'PY' 2>/dev/null || cp "$test_data" "$work/zeros.npz"
import sys, zipfile
with zipfile.ZipFile(sys.argv[2], 'w', zipfile.ZIP_DEFLATED) as z:
    z.write(sys.argv[1], 'x.npy')
PY
expect 0 run "$digits" --input "$work/zeros.npz"
expect 0 run "$digits" --input "$work/zeros.npz" --max-memory 2M
refuses 1 "zeros.npz: member 'x.npy' would take" run "$digits" --input "$work/zeros.npz" --max-memory 64K
complains '--max-memory'

# Runs: the first convolution's results.
refuses 1 'a result torch.float32 [32,' run "$digits" --input "$test_data" --max-memory 100K
complains "node '"
refuses 1 'would take' bench "$digits" --batch 32 --input random:32:0:1x8x8 --max-memory 100K
refuses 1 'would take' quantize "$digits" --backend x86 --calibrate random:32:0:1x8x8 --max-memory 30K -o "$work/out.safetensors"
expect 0 quantize "$digits" --backend x86 --calibrate random:32:0:1x8x8 --stop prepare -o "$work/prepared.safetensors"
refuses 1 'would take' calibrate "$work/prepared.safetensors" --data random:32:0:1x8x8 --max-memory 30K -o "$work/out.state"
expect 0 calibrate "$work/prepared.safetensors" --data random:32:0:1x8x8 --max-memory 100M -o "$work/state"
refuses 1 'a batch of 1000000000 samples' run "$digits" --input random:1000000000:0:1x8x8 --batch 1000000000

for command in "print $digits" "explain $work/prepared.safetensors" "preprocess $digits" \
    "compare $digits $digits --data random:2:0:1x8x8" "export $digits --to tare -o $work/exported"; do
    # shellcheck disable=SC2086
    expect 0 $command --max-memory 1G
done
refuses 2 'such as 512M or 2G' run "$digits" --input "$test_data" --max-memory 5X
refuses 2 'such as 512M or 2G' run "$digits" --input "$test_data" --max-memory 0
refuses 2 'such as 512M or 2G' run "$digits" --input "$test_data" --max-memory 99999999999T
refuses 2 '--merge and --max-memory exclude each other' calibrate --merge "$work/state" --max-memory 1G -o "$work/out.state"

# Standard input, which may never end.
status=0
head -c 2097152 /dev/zero | "$tare" print - --max-memory 1M >"$work/stdout" 2>"$work/stderr" || status=$?
[ "$status" -eq 1 ] || fail "too much standard input: status $status"
complains 'tare: standard input: expected at most 1.0 MiB, found more ('
complains '--max-memory'

# Numbers that no integer holds.
refuses 2 'expected a number from 1 to 2147483647' bench "$digits" --batch 9223372036854775807
refuses 1 'expected random:N' bench "$digits" --input random:9223372036854775807
npy "$work/one.npy" '(1, 1, 8, 8)' 256
echo 1e300 >"$work/labels.txt"
refuses 1 'expected one whole number a line' run "$digits" --input "x=$work/one.npy,labels=$work/labels.txt"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example that hands a graph over to an accelerator walks any model to its end: recorded networks and
# programs, with graphs inside of graphs, float, prepared, in reference form and lowered.
set -eu
examples=$(dirname "$TARE_CLI")/../examples
[ -x "$examples/handoff" ] || { echo 'the examples are not built'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# Every node but reads of tensors and dequantizes is in a line, and every line is whole.
walk() {
    "$examples/handoff" "$1" >"$work/walked" 2>"$work/said" || fail "$1: $(cat "$work/said")"
    tail -n 1 "$work/walked" | grep -q '^; [0-9]* commands, [0-9]* operators on the host$' || fail "$1: no end"
    grep -q '^OUTPUT ' "$work/walked" || fail "$1: no output"
    [ "$(grep -c '^HOST ' "$work/walked")" -eq "$(tail -n 1 "$work/walked" | sed 's/.* commands, \([0-9]*\) .*/\1/')" ] ||
        fail "$1: another number of operators on the host"
    if grep -vE '^(INPUT|OUTPUT|HOST|QUANTIZE|CONV|CONV_RELU|MAXPOOL|ADD_RELU) +%|^;' "$work/walked"; then
        fail "$1: lines that are no commands"
    fi
}

for archive in networks network_programs programs quantized zoo; do
    mkdir "$work/$archive"
    python3 -m zipfile -e "tests/data/$archive.zip" "$work/$archive"
    find "$work/$archive" -name '*.pt2' -o -name '*.onnx' -o -name 'model.safetensors' >"$work/list"
    [ -s "$work/list" ] || fail "$archive: no models"
    while read -r model; do walk "$model"; done <"$work/list"
done

for stage in prepare reference lower; do
    for program in choice cond pictures; do
        "$TARE_CLI" quantize "$work/programs/$program.pt2" --quantizer XNNPACKQuantizer --calibrate random:2 --stop $stage \
            --lenient --no-check -q -o "$work/stage.safetensors" >/dev/null
        walk "$work/stage.safetensors"
    done
    "$TARE_CLI" quantize "$work/networks/mobilenet_v3_small/model.safetensors" --backend x86 --calibrate random:1 --stop $stage \
        --lenient --no-check -q -o "$work/stage.safetensors" >/dev/null
    walk "$work/stage.safetensors"
done

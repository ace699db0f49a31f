#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what the documents tell a reader to type: every `$ tare ..` of a console block, in order, in a folder that
# holds the files that the document speaks of. `$ python3 ..` runs where torch is installed; without it the file that
# it would write is the one in examples/data.
set -eu
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/build"
ln -s "$(realpath "$TARE_CLI")" "$work/bin/tare"
PATH=$work/bin:$PATH

# The commands of a document, one a line; a backslash at the end of a line joins the next one.
commands() {
    awk '/^```console/ { on = 1; next } /^```/ { on = 0 }
         on && (joined != "" || /^\$ /) {
             line = $0; sub(/^\$ /, "", line)
             more = sub(/\\$/, "", line)
             joined = joined line
             if (!more) { print joined; joined = "" }
         }' "$1"
}

run_document() { # document, folder to run in
    count=0
    commands "$top/$1" >"$work/commands"
    while IFS= read -r command; do
        case $command in
        tare\ *) ;;
        python3\ *) python3 -c 'import torch' 2>/dev/null || { echo "$1: no torch, skipped: $command"; continue; } ;;
        *) continue ;;
        esac
        (cd "$2" && eval "$command" </dev/null >"$work/output" 2>&1) || {
            echo "$1: '$command' failed:"
            cat "$work/output"
            exit 1
        }
        count=$((count + 1))
    done <"$work/commands"
    [ "$count" -gt 0 ] || { echo "$1: found no command to run"; exit 1; }
    echo "$1: $count commands"
}

cp "$top"/data/digits/*.safetensors "$top"/data/digits/*.npz "$top"/data/digits/*.onnx "$work"
cp -r "$top/examples" "$top/tools" "$work"
cp "$top/examples/data/my_network.safetensors" "$work"
cp "$top/examples/data/my_network_inputs.safetensors" "$work/inputs.safetensors"
cp "$top/tests/data/small_resnet18/model.pt2" "$work/network.pt2"
cp "$top/tests/data/small_resnet18/input.npz" "$work/samples.npz"
run_document README.md "$work"
run_document docs/tutorial.md "$work"
run_document docs/tour.md "$work"
run_document docs/backend-config.md "$work"
run_document docs/qconfig.md "$work"
run_document docs/pytorch.md "$work"
run_document docs/pt2e.md "$work"

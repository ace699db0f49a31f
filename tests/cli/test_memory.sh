#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole commands in limited address space, from the least that the program starts in up to where
# the command succeeds: within each limit it gives the very result of a run without one, or exit
# status 1, a line about memory, and no output. Each command is tried within a dozen limits; with
# TARE_TEST_LONG in the environment in steps of 256 KB.
. tests/cli/support.sh

# Sanitizers reserve more address space than there is memory.
if ! (ulimit -v 1000000 && exec "$tare" version) >/dev/null 2>&1; then
    echo "skipped: this build does not start in 1 GB of address space"
    exit 77
fi
steps=12
out=$work/out
given=$work/given
mkdir "$given"

# within LIMIT ARGUMENT..: runs tare in so many KB (none: all there are); what it writes into $out
# alone is its output.
within() {
    limit=$1
    shift
    rm -rf "$out"
    mkdir "$out"
    status=0
    (
        ulimit -c 0
        [ "$limit" = none ] || ulimit -v "$limit"
        exec "$tare" "$@"
    ) >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
}

# is_held LIMIT ARGUMENT..: whether the command succeeded; what it may not do fails the test.
is_held() {
    within "$@"
    if [ $status -eq 0 ]; then
        diff -r "$work/whole" "$out" >/dev/null || fail "within $*: another result"
        [ "$2" = bench ] || cmp -s "$work/said" "$work/stdout" || fail "within $*: says something else"
        return 0
    fi
    [ $status -eq 1 ] || fail "within $*: status $status"
    grep -qiE 'out of memory|memory is exhausted|Cannot allocate memory|the system provides' "$work/stderr" ||
        fail "within $*: does not say that memory is gone"
    [ -z "$(ls -A "$out")" ] || fail "within $*: leaves $(ls -A "$out")"
    return 1
}

# The least limit that the program starts in: below it the dynamic linker ends it.
least=8192
enough=1000000
while [ $((enough - least)) -gt 64 ]; do
    middle=$(((least + enough) / 2))
    if (ulimit -c 0 && ulimit -v $middle && exec "$tare" version) >/dev/null 2>&1; then
        enough=$middle
    else
        least=$middle
    fi
done
least=$enough

# holds ARGUMENT..: the command within all limits.
holds() {
    within none "$@"
    [ $status -eq 0 ] || fail "tare $*: status $status"
    rm -rf "$work/whole"
    mv "$out" "$work/whole"
    mv "$work/stdout" "$work/said"
    limit_kb=$least
    most=$((least + 2048))
    until is_held $most "$@"; do most=$((most + (most - least))); done
    if [ -n "${TARE_TEST_LONG:-}" ]; then step=256; else step=$(((most - least) / steps + 1)); fi
    while [ $limit_kb -lt $most ]; do
        is_held $limit_kb "$@" || true
        limit_kb=$((limit_kb + step))
    done
}

data=data/digits/test.npz
net=tests/data/small_resnet18/model.pt2
net_data=tests/data/small_resnet18/input.npz
expect 0 quantize "$digits" --backend x86 --stop prepare -q -o "$given/prepared"
expect 0 quantize "$digits" --backend x86 --calibrate $data --limit 16 -q -o "$given/int8"
expect 0 quantize $net --quantizer XNNPACKQuantizer --calibrate $net_data --limit 1 \
    --stop reference -q -o "$given/reference"
npy "$given/x.npy" '(4, 1, 8, 8)' 1024

# With a limit the check looks at all samples and layers: its words do not depend on the clock.
holds quantize "$digits" --backend x86 --calibrate $data --limit 16 --min-sqnr 1 --report "$out/report" -o "$out/int8"
holds quantize $net --quantizer XNNPACKQuantizer --calibrate $net_data --limit 1 --min-sqnr 1 --print -o "$out/int8"
holds calibrate "$given/prepared" --data $data --limit 16 -o "$out/state"
holds run "$digits" --input $data -o "$out/y.npz"
holds run "$digits" --input "$given/x.npy" --threads 3 -o "$out/y.npy"
holds run "$given/int8" --input $data -o "$out/y.safetensors"
[ -z "${TARE_TEST_LONG:-}" ] || holds bench "$digits" --input $data --seconds 1 --json
holds compare "$digits" "$given/int8" --data $data --limit 16
holds export "$given/reference" --to pt2 -o "$out/net.pt2"
holds export $net --to tare -o "$out/net"
holds print $net
holds explain "$given/int8"
if ! "$tare" version | grep -q 'no ONNX'; then
    files=tests/fuzz/corpus/onnx
    holds export "$given/int8" --to onnx --report "$out/report.json" -o "$out/net.onnx"
    holds export data/digits/digits.onnx --to onnx --external-data -o "$out/net.onnx"
    holds print $files/conv
    printf '1,2,3,4,0\n4,3,2,1,1\n' >"$given/rows.csv"
    holds run $files/open_size --dim M=4 --input "$given/rows.csv" -o "$out/y.npz"
fi
if "$tare" version | grep -q 'libpng; libjpeg;'; then
    mkdir "$given/pictures"
    cp tests/fuzz/corpus/image/png_rgb "$given/pictures/a.png"
    cp tests/fuzz/corpus/image/jpeg_2 "$given/pictures/b.jpg"
    expect 0 preprocess "$digits" --set resize=8x8,color=gray,scale=16/255 -o "$given/sees"
    holds run "$given/sees" --input "$given/pictures" -o "$out/y.npz"
fi

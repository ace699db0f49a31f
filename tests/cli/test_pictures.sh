#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pictures through the whole job: declared once, applied when calibrating, running and comparing.
. tests/cli/support.sh
corpus=tests/fuzz/corpus/image

"$tare" version | grep -q 'libpng; libjpeg;' || {
    echo "skipped: this build reads no PNG or no JPEG"
    exit 77
}

mkdir -p "$work/photos/one" "$work/photos/two"
cp "$corpus/png_rgb" "$work/photos/one/a.png"
cp "$corpus/jpeg_2" "$work/photos/one/b.jpg"
cp "$corpus/png_grey16" "$work/photos/two/c.png"
printf 'photos/one/a.png 1\nphotos/two/c.png 0\n' >"$work/list.txt"
steps=resize=8x8,color=gray,scale=16/255

refuses 1 'does not say how a picture becomes its input' \
    quantize "$digits" --backend x86 --calibrate "$work/photos" -o "$work/out"
refuses 1 "no step 'rezise' (did you mean 'resize'?)" \
    quantize "$digits" --backend x86 --preprocess rezise=8 -o "$work/out"
refuses 1 'no.json: cannot open' preprocess "$digits" --set "$work/no.json" -o "$work/out"
refuses 2 '--set has no effect without -o' preprocess "$digits" --set imagenet
refuses 2 '--set and --clear exclude each other' preprocess "$digits" --set imagenet --clear -o "$work/out"

expect 0 quantize "$digits" --backend x86 --preprocess $steps --calibrate "$work/photos" -o "$work/int8"
expect 0 preprocess "$work/int8" --json
says '{"resize":{"size":[8,8],"interpolation":"bilinear","antialias":true},"color":"gray",'
expect 0 run "$work/int8" --input "$work/photos" --json
says '"samples": 3'
says '"correct":'
expect 0 run "$work/int8" --input "$work/list.txt" --batch 1 -o "$work/listed.npy"
says '2 samples'
expect 0 run "$work/int8" --input "$work/photos/one/b.jpg" -o "$work/one.npy"
says '1 sample'
# The float model says nothing; the quantized one is asked.
expect 0 compare "$digits" "$work/int8" --data "$work/photos"
says '3 samples, accuracy'
expect 0 bench "$work/int8" --input "$work/photos" --seconds 1 --json

# The declaration travels: set in the float model, it is in what is made of it.
expect 0 preprocess "$digits"
says 'declares no preprocessing'
expect 0 preprocess "$digits" --json
says 'null'
expect 0 preprocess "$digits" --set $steps -o "$work/float"
expect 0 quantize "$work/float" --backend x86 --calibrate "$work/photos" -o "$work/same"
cmp "$work/int8" "$work/same" || fail "declared before or at quantizing, the models differ"
expect 0 preprocess "$work/float" --json
cp "$work/stdout" "$work/steps.json"
expect 0 preprocess "$digits" --set "$work/steps.json" -o "$work/again"
cmp "$work/float" "$work/again" || fail "the JSON form declares something else"
expect 0 preprocess "$work/float" --clear -o "$work/cleared"
expect 0 preprocess "$work/cleared"
says 'declares no preprocessing'
expect 0 preprocess "$digits" --set to_tensor -o "$work/other"
refuses 1 'the models declare different preprocessing' compare "$work/other" "$work/int8" --data "$work/photos"

head -c 60 "$corpus/png_rgb" >"$work/photos/one/cut.png"
refuses 1 "$work/photos/one/cut.png: the" run "$work/int8" --input "$work/photos"

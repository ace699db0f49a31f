#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of tare report in headless Chromium: what it shows, sorting, filters, search, zoom, keys, themes, a phone, hostile
# names and ten thousand nodes (check_page.py).
. tests/cli/support.sh
python3 -c 'import sys; sys.path.insert(0, "tests/report"); import browser; sys.exit(not browser.find_program())' 2>/dev/null || {
    echo "skipped: there is no python3, or no Chromium"
    exit 77
}

expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --no-check -o "$work/int8.safetensors"
expect 0 report "$digits" "$work/int8.safetensors" --data data/digits/test.npz --samples 16 --bench-seconds 1 --backend x86 \
    --calibrate data/digits/train.npz --limit 32 -o "$work/page.html"

# A record as a hostile file would have it: of the same length, so that the file stays whole. U+202E turns the direction of text.
LC_ALL=C sed 's/"tare.digests"/"tare.digestX"/; s/fused into ConvReLU2d/<\/script><img>\\\\u202e/g' "$work/int8.safetensors" \
    >"$work/hostile<b>.safetensors"
expect 0 report "$digits" "$work/hostile<b>.safetensors" --data data/digits/test.npz --samples 8 --no-bench -o "$work/hostile.html"

# The lowered model alone: no analysis, but ranges of the values that it quantizes.
expect 0 report "$digits" "$work/int8.safetensors" --data data/digits/test.npz --samples 8 --no-bench -o "$work/alone.html"

python3 tests/report/check_page.py "$work" || fail 'the page does not do what it should'

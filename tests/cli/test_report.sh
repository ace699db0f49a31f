#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tare report: what is in the page and in its data, without a browser. tests/report/test_page.sh opens it in one.
. tests/cli/support.sh
test=data/digits/test.npz
expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --no-check -o "$work/int8"

report() { expect 0 report "$digits" "$@" --data "$test" --samples 16; }
has() { grep -qF -- "$1" "$work/page.html" || fail "the page lacks: $1"; }
lacks() { ! grep -qE -- "$1" "$work/page.html" || fail "the page holds: $1"; }

report "$work/int8" --no-bench --backend x86 --calibrate data/digits/train.npz --limit 32 -o "$work/page.html"
says 'next: open'
for id in verdict graph layers tensors time roofline memory decisions data; do has "id=\"$id\""; done
has "default-src 'none'"
has '"topic": "accuracy"'
has '"histogram": ['
has '"decisions":['
lacks '\{\{|\}\}[A-Z]'
# Nothing is loaded: there is no address but that of SVG's names.
lacks '(src|href)="?(https?:)?//'
[ "$(grep -oE 'https?://[^"'"' ]*" "$work/page.html" | grep -v '^http://www.w3.org/2000/svg' | wc -l)" -eq 0 ] || fail 'the page names an address'

# --json prints what the page holds, with line breaks and without escapes; the date alone differs.
# held: what is left of standard input without these.
held() { sed 's/"date": "[^"]*"//; s/</\\u003c/g' | tr -d ' \n'; }
report "$work/int8" --no-bench --backend x86 --calibrate data/digits/train.npz --limit 32 --json
held <"$work/stdout" >"$work/data"
sed -n 's/.*id="data">\(.*\)<\/script>$/\1/p' "$work/page.html" | held >"$work/held"
[ -s "$work/held" ] || fail 'the page holds no data'
cmp "$work/data" "$work/held" || fail 'the page and --json differ'

# Of the lowered model alone: no layers one by one, but all else; the hint says what is missing. Histograms are of the
# float model's values, with the ranges that the lowered one's results have.
report "$work/int8" --bench-seconds 1 -o "$work/page.html"
says 'single layers were not analyzed'
has '"speed_ratio":'
has '"against_layers": ['
has '"against_memory": {'
has '"tensors": ['
lacks '"findings"'
report "$work/int8" --no-bench --json
tr -d ' \n' <"$work/stdout" >"$work/data"
# range: what is known of one value: its range and, of 64 bins, how many hold something.
range() { grep -o "\"node\":\"$1\",\"value\":[^{}]*" "$work/data"; }
range quantize_per_tensor | grep -q '"value":"","layer":"","weight":false,"scale":[0-9.e-]*,"zero_point":0,"quant_min":0,"quant_max":255' ||
    fail 'the input has no range'
range quantize_per_tensor | grep -q '"seen_low":0,"seen_high":1,"elements":1024,"saturated":0,' || fail 'the input has no values'
for node in conv1 conv2 conv3; do
    range $node | grep -q '"value":"relu' || fail "$node has no range"
    range $node | grep -qE '"histogram":\[[0-9,]*[1-9]' || fail "$node has no histogram"
done

# The reference form serves for everything: it is lowered to run.
expect 0 quantize "$digits" --backend x86 --calibrate data/digits/train.npz --limit 32 --no-check --stop reference -o "$work/reference"
report "$work/reference" --no-bench -o "$work/page.html"
has '"tensors": ['
has '"operator": "torch.ao.nn.intrinsic.quantized.ConvReLU2d"'

# What a model says is text. Its record is edited as a hostile file would have it, and so is its name.
hostile="$work/<b>&amp;<!--.safetensors"
LC_ALL=C sed 's/"tare.digests"/"tare.digestX"/; s/fused into ConvReLU2d/<\/script><img src=xy>/g' "$work/int8" >"$hostile"
report "$hostile" --no-bench -o "$work/page.html"
has '\u003c/script>\u003cimg src=xy>'
lacks '</script><img'
has '<title>&lt;b>&amp;amp;&lt;!--.safetensors'
[ "$(grep -c '</script>' "$work/page.html")" -eq 2 ] || fail 'an element of the page ends too early'

refuses 2 '-o OUT.html is missing (or --json)' report "$digits" "$work/int8" --data "$test"
refuses 2 '--calibrate DATA or --state STATE is missing' report "$digits" "$work/int8" --data "$test" --backend x86 -o "$work/out"
refuses 1 'expected a quantized model' report "$digits" "$digits" --data "$test" -o "$work/out"
refuses 1 'the models are not related' report tests/data/faults/model.safetensors "$work/int8" --data "$test" -o "$work/out"
refuses 1 'needs the reference form' report "$digits" "$work/int8" --data "$test" --metric true -o "$work/out"
refuses 1 'cannot be made' report "$digits" "$work/int8" --data "$test" -o "$work/no/out"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What any careful tester gives: files that are not what they say, values that cannot be meant, paths that cannot be
# used. Every one ends with status 1 (the job failed) or 2 (wrong usage) and one line `tare: place: what (hint)`, which
# holds the words that say where and what; with nothing on standard output, and nothing of an output left.
. tests/cli/support.sh

count=0
# bad STATUS PLACE WORDS ARGUMENT..: $work/out* are outputs.
bad() {
    wanted=$1
    place=$2
    words=$3
    shift 3
    count=$((count + 1))
    status=0
    timeout 20 "$tare" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
    if [ -n "${SURVEY:-}" ]; then
        echo "$count [$status/$wanted] tare $*" | sed "s|$work/||g"
        sed "s|$work/||g" "$work/stderr"
        [ ! -s "$work/stdout" ] || echo "  STDOUT: $(head -c 200 "$work/stdout")"
        for left in "$work"/out*; do [ ! -e "$left" ] || echo "  LEFT $left"; rm -rf "$left"; done
        grep -qF -- "$place" "$work/stderr" || echo "  LACKS place $place"
        grep -qF -- "$words" "$work/stderr" || echo "  LACKS words $words"
        grep -q '^tare: .*: .* (.*)$' "$work/stderr" || echo "  LACKS form"
        return 0
    fi
    [ "$status" -eq "$wanted" ] || fail "tare $*: status $status, expected $wanted"
    [ ! -s "$work/stdout" ] || fail "tare $*: something stands on standard output"
    [ "$(wc -l <"$work/stderr")" -eq 1 ] || fail "tare $*: expected one line of error"
    grep -q '^tare: .*: .* (.*)$' "$work/stderr" || fail "tare $*: the error has not the form 'tare: place: what (hint)'"
    complains "$place"
    complains "$words"
    for left in "$work"/out*; do
        [ ! -e "$left" ] || fail "tare $*: left $left behind"
    done
}

train=data/digits/train.npz
test_data=data/digits/test.npz
corpus=tests/fuzz/corpus
out=$work/out.safetensors
"$tare" quantize "$digits" --backend x86 --qconfig examples/minmax.json --stop prepare -q -o "$work/prepared" >/dev/null
"$tare" quantize "$digits" --backend x86 --calibrate $train --limit 64 -q -o "$work/int8" >/dev/null

# --- models ---
: >"$work/empty"
head -c 1000 "$digits" >"$work/cut"
tail -c +5000 "$digits" | head -c 3000 >"$work/garbage"
mkdir "$work/folder"
printf '\377\377\377\377\377\377\377\177{}' >"$work/huge"
safetensors() { # FILE JSON: a header (of less than 256 bytes) and 16 bytes of data
    printf "\\$(printf %o ${#2})\\0\\0\\0\\0\\0\\0\\0%s" "$2" >"$1"
    printf '\0\0\200\77\0\0\200\77\0\0\200\77\0\0\200\77' >>"$1"
}
safetensors "$work/twice" '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}'
safetensors "$work/beyond" '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8000]}}'
safetensors "$work/nogaph" '{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
for file in empty cut garbage huge twice beyond nogaph; do
    bad 1 "$file: " '' print "$work/$file"
done
bad 1 "$work/folder" 'folder' print "$work/folder"
bad 1 "$work/missing" 'No such file' print "$work/missing"
bad 1 "$digits/model" 'Not a directory' print "$digits/model"

# Names that a terminal would act on, or that are no text.
newline=$(printf 'a\nb')
escape=$(printf 'a\033[31mb')
latin=$(printf 'a\377b')
for name in "$newline" "$escape" "$latin"; do
    bad 1 ': cannot open: ' 'No such file' print "$work/$name"
    bad 1 ': cannot open: ' 'No such file' run "$digits" --input "$work/$name.npz"
done
bad 2 'command line' 'no command' "$newline"
bad 2 'print' 'no option' print "--$escape"
long=$(head -c 5000 /dev/zero | tr '\0' a)
bad 1 'aaa' 'name too long' print "$work/$long"
bad 1 'aaa' '' quantize "$digits" --backend "$long" --calibrate $train -o "$out"
bad 1 'aaa' 'too long' quantize "$digits" --backend x86 --calibrate $train -o "$work/$long"

head -c 300 $corpus/onnx/conv >"$work/cut.onnx"
cp "$work/garbage" "$work/garbage.onnx"
: >"$work/empty.onnx"
for file in cut garbage empty; do
    bad 1 "$file.onnx: " '' print "$work/$file.onnx"
done
head -c 900 $corpus/pt2/open >"$work/cut.pt2"
{ head -c 60 $corpus/pt2/open; cat "$work/garbage"; } >"$work/garbage.pt2"
: >"$work/empty.pt2"
for file in cut garbage empty; do
    bad 1 "$file.pt2: " '' print "$work/$file.pt2"
done

# --- arrays ---
array() { # FILE HEADER BYTES: an .npy of any header
    {
        printf '\223NUMPY\001\000\166\000'
        printf '%-117s\n' "$2"
        head -c "$3" /dev/zero
    } >"$1"
}
array "$work/good.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }" 512
array "$work/complex.npy" "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 1, 8, 8), }" 1024
array "$work/object.npy" "{'descr': '|O', 'fortran_order': False, 'shape': (2, 1, 8, 8), }" 1024
array "$work/short.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }" 100
array "$work/negative.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 1, 8, 8), }" 512
array "$work/vast.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }" 512
array "$work/big.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999, 1, 8, 8), }" 512
array "$work/noheader.npy" "none" 512
array "$work/flat.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (128,), }" 512
array "$work/none.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1, 8, 8), }" 0
array "$work/longs.npy" "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1, 8, 8), }" 1024
cp "$work/garbage" "$work/magic.npy"
: >"$work/empty.npy"
head -c 50 "$work/good.npy" >"$work/header.npy"
{ head -c 128 "$work/good.npy"; printf '\0\0\300\177'; tail -c +133 "$work/good.npy"; } >"$work/nan.npy"
{ head -c 252 "$work/good.npy"; printf '\0\0\200\377'; tail -c +257 "$work/good.npy"; } >"$work/inf.npy"
for file in complex object short negative vast big noheader none magic empty header nan; do
    bad 1 "$file.npy: " '' run "$digits" --input "$work/$file.npy"
done
bad 1 "node 'conv1'" 'must have 4 and 4 dimensions' run "$digits" --input "$work/flat.npy"
bad 1 "node 'conv1'" 'must be torch.float32, found torch.int64' run "$digits" --input "$work/longs.npy"
bad 1 "node 'conv1'" 'must have 4 and 4 dimensions' quantize "$digits" --backend x86 --calibrate "$work/flat.npy" -o "$out"
bad 1 "node 'conv1'" 'must have 4 and 4 dimensions' calibrate "$work/prepared" --data "$work/flat.npy" -o "$work/out.state"
bad 1 'nan.npy: ' 'is NaN at [0, 0, 0, 0]' quantize "$digits" --backend x86 --calibrate "$work/nan.npy" -o "$out"
bad 1 'inf.npy: ' 'is -inf at [0, 0, 3, 7]' quantize "$digits" --backend x86 --calibrate "$work/inf.npy" -o "$out"
bad 1 'inf.npy: ' 'is -inf at [0, 0, 3, 7]' calibrate "$work/prepared" --data "$work/inf.npy" -o "$work/out.state"
bad 1 'nan.npy: ' 'is NaN at [0, 0, 0, 0]' calibrate "$work/prepared" --data "$work/nan.npy" -o "$work/out.state"
bad 1 'nan.npy: ' 'is NaN at' compare "$digits" "$work/int8" --data "$work/nan.npy"
head -c 2000 $test_data >"$work/cut.npz"
cp "$work/garbage" "$work/garbage.npz"
: >"$work/empty.npz"
mkdir "$work/folder.npz" "$work/mixed"
: >"$work/mixed/notes.doc"
for file in cut.npz garbage.npz empty.npz; do
    bad 1 "$file: " '' run "$digits" --input "$work/$file"
done
bad 1 'folder.npz' 'the folder has no data in it' run "$digits" --input "$work/folder.npz"
bad 1 'mixed' "'notes.doc' is none of" run "$digits" --input "$work/mixed"
bad 1 'missing.npz' 'No such file' run "$digits" --input "$work/missing.npz"
bad 1 'README' 'does not say which kind of data it is' run "$digits" --input README.md
bad 1 'z=' "'z' is no input of the model" run "$digits" --input "z=$test_data"
bad 1 'missing.txt' 'No such file' run "$digits" --input "x=$work/good.npy,labels=$work/missing.txt"
printf '1\n77\n' >"$work/range.txt"
printf '1\n-2\n' >"$work/minus.txt"
printf '1\n' >"$work/one.txt"
printf '1\nblue\n' >"$work/word.txt"
bad 1 'x=' "expected data after 'x='" run "$digits" --input x=
bad 1 'x=' "input 'x' is given twice" run "$digits" --input "x=$work/good.npy,x=$work/good.npy"
for file in range minus one word; do
    bad 1 "$file.txt" '' run "$digits" --input "x=$work/good.npy,labels=$work/$file.txt"
done
bad 1 'random:' 'random:' run "$digits" --input random:-3
bad 1 'random:' 'random:' run "$digits" --input random:99999999999999999999
bad 1 'random:' 'random:' run "$digits" --input random:many
bad 1 "node 'conv1'" '3' run "$digits" --input random:1:0:3x8x8

# The last element of the last tensor in the file.
cp "$digits" "$work/nan_weight"
printf '\0\0\300\177' |
    dd of="$work/nan_weight" bs=1 seek=$(($(wc -c <"$digits") - 4)) conv=notrunc 2>/dev/null
bad 1 "node 'fc'" "weight 'fc.weight' is NaN at [9, 63]" quantize "$work/nan_weight" --backend x86 --calibrate $train \
    -o "$out"
bad 1 "node 'fc'" "weight 'fc.weight' is NaN at [9, 63]" quantize "$work/nan_weight" --backend x86 --stop prepare -o "$out"

row=$(seq -s, 1 64)
printf '%s,3\n1,2,3\n' "$row" >"$work/ragged.csv"
printf 'one,two\nthree,four\n' >"$work/words.csv"
printf '%s,1.5\n' "$row" >"$work/label.csv"
printf 'nan,%s,1\n' "$(seq -s, 2 64)" >"$work/nan.csv"
printf '1e999,%s,1\n' "$(seq -s, 2 64)" >"$work/inf.csv"
: >"$work/empty.csv"
printf '1,2,3\n' >"$work/few.csv"
for file in ragged words label nan empty; do
    bad 1 "$file.csv: " '' run "$digits" --input "$work/$file.csv"
done
bad 1 "node 'conv1'" '[1, 2]' run "$digits" --input "$work/few.csv"
bad 1 'inf.csv: ' '' quantize "$digits" --backend x86 --calibrate "$work/inf.csv" -o "$out"
cp "$work/garbage" "$work/garbage.csv.gz"
bad 1 'garbage.csv.gz: ' '' run "$digits" --input "$work/garbage.csv.gz"

# --- pictures ---
cp "$work/garbage" "$work/garbage.json"
steps=resize=8x8,color=gray,scale=16/255
if "$tare" version | grep -q 'libpng; libjpeg;'; then
    for ending in png jpg; do
        : >"$work/empty.$ending"
        cp "$work/garbage" "$work/garbage.$ending"
        for file in empty garbage; do
            bad 1 "$file.$ending" '' quantize "$digits" --backend x86 --preprocess $steps --calibrate "$work/$file.$ending" \
                -o "$out"
        done
    done
    head -c 60 $corpus/image/png_rgb >"$work/cut.png"
    head -c 200 $corpus/image/jpeg_2 >"$work/cut.jpg"
    cp $corpus/image/png_rgb "$work/rgb.png"
    for file in cut.png cut.jpg; do
        bad 1 "$file" '' quantize "$digits" --backend x86 --preprocess $steps --calibrate "$work/$file" -o "$out"
    done
    bad 1 'rgb.png' 'does not say how a picture becomes its input' run "$digits" --input "$work/rgb.png"
    printf 'missing.png 1\n' >"$work/list.txt"
    bad 1 'missing.png' 'No such file' quantize "$digits" --backend x86 --preprocess $steps --calibrate "$work/list.txt" \
        -o "$out"
fi
bad 1 'preprocess' "'sharpen' is neither a preset nor KEY=VALUE" preprocess "$digits" --set sharpen -o "$out"
bad 1 'resize' '-8' preprocess "$digits" --set resize=-8x8 -o "$out"
bad 1 'scale' '0' preprocess "$digits" --set scale=0 -o "$out"
bad 1 'garbage.json' 'not valid JSON' preprocess "$digits" --set "$work/garbage.json" -o "$out"

# --- configs ---
config() { # FILE JSON of the one pattern's fields
    printf '{"name": "wrong", "configs": [{%s}]}' "$2" >"$1"
}
linear='"pattern": "torch.nn.Linear"'
config "$work/crossed.json" "$linear, \"dtype_configs\": [{\"input_dtype\": {\"dtype\": \"torch.quint8\",
 \"quant_min_lower_bound\": 9, \"quant_max_upper_bound\": 1}}]"
config "$work/fused.json" "$linear, \"fused_module\": \"torch.ao.nn.intrinsic.LinearReLU\""
config "$work/key.json" "$linear, \"dtype_config\": []"
config "$work/dtype.json" "$linear, \"dtype_configs\": [{\"input_dtype\": {\"dtype\": \"torch.quint7\"}}]"
config "$work/number.json" "$linear, \"dtype_configs\": [{\"input_dtype\": {\"dtype\": \"torch.quint8\",
 \"quant_min_lower_bound\": 1e999}}]"
printf '{"name": "a", "name": "b", "configs": []}' >"$work/double.json"
printf '{"name": "\377\376", "configs": []}' >"$work/latin.json"
printf '{"name": "a\\u0000b", "configs": []}' >"$work/nul.json"
printf '[1, 2' >"$work/open.json"
head -c 100000 /dev/zero | tr '\0' '[' >"$work/deep.json"
: >"$work/empty.json"
for file in crossed fused key dtype number double latin nul open deep garbage empty; do
    case $file in
        crossed | fused) place="backend config 'wrong': \$.configs[0]" ;;
        *) place="$file.json" ;;
    esac
    bad 1 "$place" '' quantize "$digits" --backend "$work/$file.json" --calibrate $train -o "$out"
done
bad 1 "$work/folder" '' backend show "$work/folder"
bad 1 'backend' "did you mean 'x86'?" backend check x68
qconfig() { # FILE KWARGS
    printf '{"global": {"activation": {"class": "MinMaxObserver", "kwargs": {%s}}}}' "$2" >"$1"
}
qconfig "$work/eps.json" '"eps": 0'
qconfig "$work/below.json" '"eps": -0.5'
qconfig "$work/bounds.json" '"quant_min": 100, "quant_max": 5'
qconfig "$work/reversed.json" '"quant_min": 5, "quant_max": -5'
qconfig "$work/argument.json" '"epsilon": 1'
qconfig "$work/type.json" '"quant_min": "low", "quant_max": 9'
printf '{"global": {"activation": {"class": "MaxMinObserver"}}}' >"$work/class.json"
printf '{"globl": null}' >"$work/section.json"
printf '{"module_name": [["no.such", null]]}' >"$work/nothing.json"
for file in eps below bounds reversed argument type; do
    bad 1 "$file.json: \$.global.activation" '' qconfig show "$work/$file.json"
    bad 1 "$file.json: \$.global.activation" '' quantize "$digits" --backend x86 --qconfig "$work/$file.json" \
        --calibrate $train -o "$out"
done
bad 1 'qconfig, MaxMinObserver' "did you mean 'MinMaxObserver'" quantize "$digits" --backend x86 --qconfig "$work/class.json" \
    --calibrate $train -o "$out"
bad 1 'section.json' "globl" qconfig show "$work/section.json"
bad 1 'no.such' 'matches no module' quantize "$digits" --backend x86 --qconfig "$work/nothing.json" \
    --calibrate $train -o "$out"
toy=examples/data/toy_quantizer.json
program=$corpus/pt2/arguments
sed 's/"quant_min": -127, "quant_max": 127/"quant_min": -1270, "quant_max": 127/' $toy >"$work/wide_rules.json"
sed 's/"quant_min": -127, "quant_max": 127/"quant_min": 127, "quant_max": -127/' $toy >"$work/crossed_rules.json"
sed 's/"eps": 0.000244140625/"eps": 0/' $toy >"$work/eps_rules.json"
sed 's/"scale": 0.00390625/"scale": -1/' $toy >"$work/scale_rules.json"
sed 's/"keeps_observer"/"keep_observer"/' $toy >"$work/key_rules.json"
for file in wide crossed eps scale key; do
    bad 1 '$' '' quantize $program --quantizer "$work/${file}_rules.json" --calibrate random:2 -o "$out"
done
bad 1 'XNNPACKQuantiser' 'XNNPACKQuantizer' quantize $program --quantizer XNNPACKQuantiser --calibrate random:2 -o "$out"
bad 1 'garbage.json' '' quantize $program --quantizer XNNPACKQuantizer --quantizer-config "$work/garbage.json" \
    --calibrate random:2 -o "$out"
for option in --prepare-config --equalize --convert-config; do
    bad 1 'garbage.json' '' quantize "$digits" --backend x86 $option "$work/garbage.json" --calibrate $train -o "$out"
    bad 1 'missing.json' 'No such file' quantize "$digits" --backend x86 $option "$work/missing.json" \
        --calibrate $train -o "$out"
done

# --- states ---
"$tare" calibrate "$work/prepared" --data $train --limit 32 --shard 0/2 -q -o "$work/0.state" >/dev/null
"$tare" calibrate "$work/prepared" --data $train --limit 32 --shard 1/2 -q -o "$work/1.state" >/dev/null
sed 's/"MinMaxObserver"/"tare.MergeableHistogramObserver"/' examples/minmax.json >"$work/histograms.json"
"$tare" quantize "$digits" --backend x86 --qconfig "$work/histograms.json" --stop prepare -q -o "$work/other" >/dev/null
"$tare" calibrate "$work/other" --data $train --limit 32 -q -o "$work/other.state" >/dev/null
head -c 500 "$work/0.state" >"$work/cut.state"
for file in empty cut.state garbage missing folder 0.state other.state; do
    bad 1 "$work/$file" '' quantize "$work/prepared" --backend x86 --state "$work/$file" -o "$out"
done
bad 1 '0.state' '' calibrate --merge "$work/0.state" "$work/0.state" -o "$work/out.state"
bad 1 'state' '' calibrate --merge "$work/0.state" "$work/other.state" -o "$work/out.state"
bad 1 'missing.state' 'No such file' calibrate --merge "$work/0.state" "$work/missing.state" -o "$work/out.state"
bad 1 "$digits" 'found a float one' calibrate "$digits" --data $train -o "$work/out.state"
bad 2 '--shard' "'2/2'" calibrate "$work/prepared" --data $train --shard 2/2 -o "$work/out.state"

# --- numbers and options ---
for number in 0 -1 two 1.5 99999999999999999999 '1 '; do
    bad 2 '--threads' "found '$number'" run "$digits" --input $test_data --threads "$number"
    bad 2 '--batch' "found '$number'" quantize "$digits" --backend x86 --calibrate $train --batch "$number" -o "$out"
done
bad 2 '--threads' "expected a number from 1 to 1024, found '5000'" run "$digits" --input $test_data --threads 5000
bad 2 '--limit' "found '-5'" compare "$digits" "$work/int8" --data $test_data --limit -5
bad 2 '--seconds' "found '0'" bench "$digits" --seconds 0
bad 2 '--stop' "expected fuse, prepare, reference or lower, found 'lowr' (did you mean 'lower'?)" quantize "$digits" --backend x86 --stop lowr -o "$out"
bad 2 '--engine' "expected x86, fbgemm, qnnpack or onednn, found 'qnpack' (did you mean 'qnnpack'?)" quantize "$digits" --backend x86 --engine qnpack -o "$out"
bad 2 '--backend' 'missing' quantize "$digits" -o "$out"
bad 2 '--strict' 'exclude each other' quantize "$digits" --backend x86 --strict --lenient -o "$out"
bad 2 'export' "--to: expected tare, pt2 or onnx, found 'tflite'" export "$digits" --to tflite -o "$out"
bad 2 'command line' "no command 'frobnicate'" frobnicate
bad 2 "'--nodez'" '--nodes' print "$digits" --nodez
bad 2 "'-o'" 'needs a value' export "$digits" --to onnx -o
bad 1 'quantize' "no built-in backend is called 'no_such'" quantize "$digits" --backend no_such --calibrate $train -o "$out"
bad 1 '--dim' 'expected NAME=SIZE' print $corpus/onnx/open_size --dim M=-4
bad 1 '--shape' 'expected INPUT=' print $corpus/onnx/open_size --shape x=0x4
bad 1 'no_such_node' '' explain "$work/int8" --node no_such_node
(export TARE_ISA=quantum && bad 1 'TARE_ISA' 'quantum' run "$digits" --input $test_data --limit 1)
bad 1 'garbage: ' '' run "$work/garbage" --input $test_data

for size in 9223372036854775807 99999999999999999999; do
    bad 1 "$size" '' print $corpus/onnx/open_size --dim "M=$size"
    bad 1 "random:1:0:$size" 'SHAPE' run "$digits" --input "random:1:0:${size}x${size}x8"
done
bad 1 'affinity' '' bench "$work/int8" --affinity 99999-99999999
bad 1 'garbage.json' 'not valid JSON' run "$work/int8" --input $test_data --limit 1 --tune-cache "$work/garbage.json"
bad 1 'folder' '' run "$work/int8" --input $test_data --limit 1 --tune-cache "$work/folder"
bad 1 'compare' '' compare "$digits" $corpus/onnx/conv --data $test_data

# --- the wrong stage ---
bad 1 "$work/int8" 'quantized' quantize "$work/int8" --backend x86 --calibrate $train -o "$out"
bad 1 'int8' 'found a quantized one' calibrate "$work/int8" --data $train -o "$work/out.state"
bad 1 "node 'conv1'" 'operators, not modules' export "$digits" --to pt2 -o "$work/out.pt2"

# --- outputs ---
bad 1 "$work/folder" 'found a folder' quantize "$digits" --backend x86 --calibrate $train -o "$work/folder"
bad 1 "$work/no/out" 'No such file' quantize "$digits" --backend x86 --calibrate $train -o "$work/no/out"
bad 1 "$digits/out" 'Not a directory' export "$digits" --to tare -o "$digits/out"
bad 1 "$digits" 'Not a directory' quantize "$digits" --backend x86 --calibrate $train --report "$digits" -o "$out"
bad 1 'out.txt' 'does not say the format' run "$digits" --input $test_data --output "$work/out.txt"
bad 1 'folder' '' calibrate "$work/prepared" --data $train -o "$work/folder"

# An output that is an input.
for file in model.safetensors prepared data.npz a.state b.state; do
    case $file in
        model*) cp "$digits" "$work/$file" ;;
        data*) cp $train "$work/$file" ;;
        *.state) cp "$work/0.state" "$work/$file" ;;
    esac
done
ln "$work/model.safetensors" "$work/linked"
replaces='the output would take the place of'
bad 2 'model.safetensors' "$replaces" quantize "$work/model.safetensors" --backend x86 --calibrate $train \
    -o "$work/model.safetensors"
bad 2 'linked' "$replaces" export "$work/model.safetensors" --to tare -o "$work/linked"
bad 2 'data.npz' "$replaces" quantize "$digits" --backend x86 --calibrate "$work/data.npz" -o "$work/data.npz"
bad 2 'prepared' "$replaces" calibrate "$work/prepared" --data $train -o "$work/prepared"
bad 2 'b.state' "$replaces" calibrate --merge "$work/a.state" "$work/b.state" -o "$work/b.state"
bad 2 'data.npz' "$replaces" run "$digits" --input "$work/data.npz" --output "$work/data.npz"
# Named within a list, or lying in a folder that is named.
mkdir "$work/arrays" "$work/told" "$work/judged"
cp "$work/good.npy" "$work/a.npy"
cp "$work/good.npy" "$work/arrays/a.npy"
cp "$digits" "$work/told/model.txt"
cp "$work/int8" "$work/judged/compare.json"
bad 2 'a.npy' "$replaces" run "$digits" --input "x=$work/a.npy" -o "$work/a.npy"
bad 2 'a.npy' "$replaces" run "$digits" --input "$work/arrays" -o "$work/arrays/a.npy"
bad 2 'model.safetensors' "$replaces" preprocess "$work/model.safetensors" --set imagenet -o "$work/model.safetensors"
# Files that are written beside the result.
bad 2 'model.safetensors' "$replaces" export "$work/model.safetensors" --to onnx --report "$work/model.safetensors" \
    --input-shape x=1x1x8x8 -o "$work/out.onnx"
bad 2 'model.safetensors' "$replaces" bench "$work/model.safetensors" --input "$work/good.npy" --seconds 1 \
    --roofline "$work/model.safetensors"
bad 2 'told/model.txt' "$replaces" quantize "$work/told/model.txt" --backend x86 --calibrate $train --limit 16 \
    --report "$work/told" -o "$out"
bad 2 'judged/compare.json' "$replaces" compare "$digits" "$work/judged/compare.json" --data $test_data --limit 16 \
    --report "$work/judged"
bad 2 'model.safetensors' "$replaces" run "$work/model.safetensors" --input $test_data --limit 1 \
    --tune-cache "$work/model.safetensors"
cmp "$digits" "$work/model.safetensors"
cmp $train "$work/data.npz"
cmp "$work/good.npy" "$work/a.npy"
cmp "$work/good.npy" "$work/arrays/a.npy"
cmp "$digits" "$work/told/model.txt"
cmp "$work/int8" "$work/judged/compare.json"

# Two outputs of one name, and two inputs from one stream.
bad 2 'out.onnx' "$replaces" export "$digits" --to onnx --input-shape x=1x1x8x8 --report "$work/./out.onnx" -o "$work/out.onnx"
bad 2 'out.npz' "$replaces" run "$work/int8" --input $test_data --limit 1 --tune-cache "$work/out.npz" -o "$work/out.npz"
bad 2 'told/coverage.json' "$replaces" quantize "$digits" --backend x86 --calibrate $train --limit 16 --report "$work/told" \
    -o "$work/told/coverage.json"
bad 2 'export' 'two outputs would go to standard output' export "$digits" --to onnx --input-shape x=1x1x8x8 --report - -o -
bad 2 'quantize' 'expected one input from standard input, found 2' quantize - --backend - --calibrate $train -o "$out"
bad 2 'run' '--tune-cache needs a FILE that is kept' run "$work/int8" --input $test_data --limit 1 --tune-cache -

# --- values that are given twice, or that nothing would follow from ---
bad 1 '--dim' "'M' is given twice" print $corpus/onnx/open_size --dim M=4,M=5
bad 1 '--shape' "input 'x' is given twice" print $corpus/onnx/open_size --shape x=4x4,x=5x5
bad 1 '--input-shape' "input 'x' is given twice" export "$digits" --to onnx --input-shape x=1x1x8x8,x=2x1x8x8 -o "$work/out.onnx"
bad 2 '--as-is' 'exclude each other' run "$digits" --input "$work/good.npy" --as-is --batch 3
bad 2 '--batch' 'found '"'9999999999'" bench "$digits" --batch 9999999999
bad 1 'quantizer' 'see tare_quantizer_builtin_name_at, or tare quantizer list' quantizer show nothing_alike
bad 1 'random:4:0:3x0' 'N from 1 to 2147483647' run "$digits" --input random:4:0:3x0
status=0
PATH=$work/nothing "$tare" print "$digits" --svg >"$work/stdout" 2>"$work/stderr" || status=$?
[ "$status" -eq 1 ] || fail "without the program dot: status $status"
[ "$(cat "$work/stderr")" = 'tare: dot: there is no such program (install graphviz, or use --dot)' ] || fail 'without the program dot: another error'

# What was found stands beside what was expected.
safetensors "$work/minus" '{"w":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}'
bad 1 'minus: $.w.shape[0]' 'expected a size from 0 up, found -4' print "$work/minus"
bad 1 'open_size' 'expected a shape of 2 dimensions as in the file, found 3' print $corpus/onnx/open_size --shape x=1x4x4
bad 1 "input 'x'" 'expected' print $corpus/onnx/conv --shape x=1x1x2x2
gzip -c <"$work/few.csv" | head -c 16 >"$work/cut.csv.gz"
bad 1 'cut.csv.gz: line 1: unexpected end of file' '' run "$digits" --input "$work/cut.csv.gz"

# 20 GiB without a line's end.
truncate -s 20G "$work/endless.csv"
bad 1 'endless.csv: line 1' 'NUL' run "$digits" --input "$work/endless.csv"
rm "$work/endless.csv"

# A file that may not grow so large.
(ulimit -f 1 && bad 1 'out.safetensors' 'File too large' quantize "$digits" --backend x86 --calibrate $train --limit 16 -q -o "$out")

if [ -w /dev/full ]; then
    status=0
    "$tare" quantize "$digits" --backend x86 --calibrate $train --limit 16 -q -o - >/dev/full 2>"$work/stderr" || status=$?
    [ "$status" -eq 1 ] || fail "a full device: status $status"
    grep -q '^tare: .*: .* (.*)$' "$work/stderr" || fail 'a full device: not one error with a hint'
    status=0
    "$tare" print "$digits" >/dev/full 2>"$work/stderr" || status=$?
    [ "$status" -eq 1 ] || fail "a full device: status $status"
    complains 'No space left'
fi
# A reader that goes away.
{
    sleep 1
    status=0
    "$tare" print "$digits" 2>"$work/stderr" || status=$?
    echo "$status" >"$work/status"
} | true
[ "$(cat "$work/status")" -eq 1 ] || fail "a broken pipe: status $(cat "$work/status")"
complains 'tare: standard output: writing failed: Broken pipe ('
status=0
"$tare" print "$digits" >&- 2>"$work/stderr" || status=$?
[ "$status" -eq 1 ] || fail "a closed standard output: status $status"
complains 'tare: standard output: '
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$work/closed"
    chmod 500 "$work/closed"
    bad 1 "$work/closed/out" 'Permission denied' quantize "$digits" --backend x86 --calibrate $train -o "$work/closed/out"
    cp "$digits" "$work/secret"
    chmod 000 "$work/secret"
    bad 1 "$work/secret" 'Permission denied' print "$work/secret"
fi
[ -n "${SURVEY:-}" ] || [ "$count" -ge 60 ] || fail "only $count bad inputs were tried"
echo "$count bad inputs"

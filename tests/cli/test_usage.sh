#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help, version, and what wrong usage is answered with.
. tests/cli/support.sh

expect 0 help
for command in $("$tare" help --json | sed -n 's/^   "name": "\(.*\)",$/\1/p'); do
    says "$command"
    "$tare" help "$command" | grep -q "^usage: tare $command" || fail "no usage of $command"
    "$tare" help "$command" >"$work/help"
    awk 'length > 110 { print; bad = 1 } END { exit bad }' "$work/help" || fail "help $command has long lines"
    "$tare" "$command" --help | grep -q "^usage: tare $command" || fail "no --help of $command"
done
expect 0 version
says 'tare 0.'
expect 0 version --json
says '"isa": "'
expect 0 --version

expect 2
refuses 2 "no command 'quantise' (did you mean 'quantize'?)" quantise
refuses 2 "no command 'zzzzzz'" zzzzzz
refuses 2 "no command 'prnt' (did you mean 'print'?)" help prnt
refuses 2 "no option '--nods' (did you mean '--nodes'?)" print "$digits" --nods
refuses 2 'MODEL is missing' print
refuses 2 "one operand too many: 'b'" print a b
refuses 2 '--nodes and --dot exclude each other' print "$digits" --nodes --dot
refuses 2 '-o OUT is missing' quantize "$digits" --backend x86
refuses 2 '--backend NAME|FILE or --quantizer NAME|FILE is missing' quantize "$digits" -o "$work/out"
refuses 2 "'-o' needs a value" quantize "$digits" --backend x86 -o
refuses 2 '--lenient takes no value' quantize "$digits" --backend x86 --lenient=yes -o "$work/out"
refuses 2 "found 'many'" run "$digits" --input random:1 --batch many
refuses 2 "--float: expected f32 or bf16, found 'f16' (did you mean 'bf16'?)" run "$digits" --input random:1 --float f16
refuses 2 "expected f32 or bf16, found 'f16'" bench "$digits" --float f16
refuses 2 "found '0'" run "$digits" --input random:1 --threads=0
refuses 2 "found 'lowr' (did you mean 'lower'?)" \
    quantize "$digits" --backend x86 --stop lowr -o "$work/out"
refuses 2 "found 'qnpack' (did you mean 'qnnpack'?)" \
    quantize "$digits" --backend x86 --engine qnpack -o "$work/out"
refuses 2 "expected list, show, check or table, found 'shwo' (did you mean 'show'?)" backend shwo x86
refuses 2 'NAME is missing' backend show
refuses 2 "list: one operand too many: 'x86'" qconfig list x86
refuses 2 '--batch is given twice' run "$digits" --input random:1 --batch 2 --batch=3
refuses 2 "'--input' needs a value" run "$digits" --input ''
refuses 2 'MODEL is empty' print ''

# Options without effect are refused, not ignored.
refuses 2 '--limit has no effect without --calibrate' quantize "$digits" --backend x86 --limit 3 -o "$work/out"
refuses 2 '--qconfig and --stop fuse exclude each other' \
    quantize "$digits" --backend x86 --stop fuse --qconfig x86 -o "$work/out"
refuses 2 '--lenient and --stop fuse exclude each other' \
    quantize "$digits" --backend x86 --stop fuse --lenient -o "$work/out"

# A stream that takes nothing is an error, not a silence.
if [ -w /dev/full ]; then
    status=0
    "$tare" help >/dev/full 2>"$work/stderr" || status=$?
    [ "$status" -eq 1 ] || fail "writing to a full disk: status $status"
    complains 'standard output'
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names come from files, and may hold what steers a terminal: it is shown, not sent.
. tests/cli/support.sh
test_data=data/digits/test.npz

escape=$(printf '\033') # and a bell, DEL, CSI in one byte and in two, a change of direction, a line
name="$(printf 'a\033[31mb\007c\177d\302\233e\342\200\256f\233g\nh')"
has_controls() {
    tr -d '\n\t -~' <"$1" | LC_ALL=C grep -q . || return 1
}
refuses 1 'a\u001b[31mb\u0007c\u007fd\u009be\u202ef\u009bg\u000ah' print "$work/$name"
! has_controls "$work/stderr" || fail 'control characters reach standard error'
refuses 2 'no command' "$name"
! has_controls "$work/stderr" || fail 'control characters reach standard error'
refuses 1 'größe 模型' print "$work/größe 模型" # other letters stay

# A model whose tensors, modules and nodes are called so.
sed 's/conv1/\x1b[7m/g; s/relu1/\xc2\x9b7m/g' "$digits" >"$work/hostile.safetensors"
cmp -s "$digits" "$work/hostile.safetensors" && fail 'nothing was renamed'
status=0
"$tare" print "$work/hostile.safetensors" >"$work/stdout" 2>"$work/stderr" || status=$?
! has_controls "$work/stderr" || fail 'control characters reach standard error'
status=0
"$tare" run "$work/hostile.safetensors" --input "$test_data" --limit 1 -o - >/dev/null 2>"$work/stderr" || status=$?
! has_controls "$work/stderr" || fail 'control characters reach standard error'
expect 0 version --json

# A terminal gets none on standard output either, a file all of them.
if command -v script >/dev/null && command -v python3 >/dev/null; then
    npy "$work/$name.npy" '(1, 1, 8, 8)' 256
    script -qec "\"$tare\" print '$work/${name}' " /dev/null >"$work/shown" 2>&1 </dev/null || true
    grep -qF 'a\u001b[31mb' "$work/shown" || fail 'a terminal is not shown the name escaped'
    LC_ALL=C tr -d '\r' <"$work/shown" >"$work/lines"
    ! has_controls "$work/lines" || fail 'control characters reach a terminal'
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completion knows every command and every option, in each shell.
. tests/cli/support.sh

option_rows >"$work/rows"
commands=$("$tare" help --json | sed -n 's/^   "name": "\(.*\)",$/\1/p')
[ -n "$commands" ] || fail 'no commands in help --json'
for shell in bash zsh fish; do
    "$tare" completion $shell >"$work/$shell"
done
refuses 2 "expected bash, zsh or fish, found 'bsh' (did you mean 'bash'?)" completion bsh

for command in $commands; do
    options=$(awk -v c="$command" '$1 == c { print $2 }' "$work/rows")
    [ -n "$options" ] || fail "no options of $command"
    for option in $options; do
        grep -qE -- "^ *'(\([^)]*\))?--$option=?\[" "$work/zsh" || fail "zsh lacks --$option"
        grep -qE -- "from $command' -l $option( |\$)" "$work/fish" || fail "fish lacks $command --$option"
    done
    echo "$command" "$options" | tr '\n' ' ' >>"$work/options"
    echo >>"$work/options"
    grep -q "'$command:" "$work/zsh" || fail "zsh lacks $command"
    grep -q -- "-a $command -d" "$work/fish" || fail "fish lacks $command"
done

if command -v bash >/dev/null 2>&1; then
    bash -n "$work/bash" || fail 'bash cannot read its script'
    # It runs: what it offers behind "tare COMMAND --" are the options of the command.
    bash -s "$work/bash" "$work/options" <<'END' || fail 'bash completes wrongly'
set -u # not -e: completing nothing is a failure of compgen
source "$1"
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tare
}
offers() {
    for found in "${COMPREPLY[@]}"; do [[ $found != "$1" ]] || return 0; done
    echo "'${COMP_WORDS[*]}' does not offer $1, but: ${COMPREPLY[*]}" >&2
    exit 1
}
while read -r command options; do
    complete_words tare "${command:0:2}"
    offers "$command"
    complete_words tare "$command" --
    for option in $options; do offers "--$option"; done
    for found in "${COMPREPLY[@]}"; do
        [[ $found == --help || " $options " == *" ${found#--} "* ]] || exit 1
    done
done <"$2"
complete_words tare quantize --backend q
offers qnnpack
complete_words tare quantize x.safetensors --stop ''
offers reference
complete_words tare backend s
offers show
complete_words tare help comp
offers compare
complete_words tare print tests/cl
offers tests/cli
# A choice and a number are no files, and a folder is none.
complete_words tare quantize x.safetensors --stop REA
((${#COMPREPLY[@]} == 0)) || exit 1
complete_words tare quantize x.safetensors --batch REA
((${#COMPREPLY[@]} == 0)) || exit 1
complete_words tare quantize x.safetensors --report REA
((${#COMPREPLY[@]} == 0)) || exit 1
complete_words tare quantize x.safetensors --report tests/cl
offers tests/cli
complete_words tare quantize x.safetensors --calibrate REA
offers README.md
END
fi
# Once an option is there, zsh does not offer what it excludes.
while read -r command option letter kind value requires excludes; do
    for other in $(echo "$excludes" | sed 's/^-$//; s/,/ /g'); do
        case $other in *=*) continue ;; esac
        for pair in "$option $other" "$other $option"; do
            sed -n "/^    $command)\$/,/;;/p" "$work/zsh" | grep -qE -- "'\(.*--${pair#* } .*\)--${pair% *}=?\[" ||
                fail "zsh: tare $command --${pair% *} does not exclude --${pair#* }"
        done
    done
done <"$work/rows"
! command -v zsh >/dev/null 2>&1 || zsh -n "$work/zsh" || fail 'zsh cannot read its script'
! command -v fish >/dev/null 2>&1 || fish --no-execute "$work/fish" || fail 'fish cannot read its script'

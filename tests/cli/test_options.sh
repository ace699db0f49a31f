#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rows of options: each option is read, shown in help and the manual page, and usable; what options require and exclude
# is refused with a message that names both.
. tests/cli/support.sh

option_rows >"$work/rows"
[ "$(wc -l <"$work/rows")" -gt 100 ] || fail 'options are missing'

# field COMMAND OPTION NUMBER: a field of its row.
field() { awk -v c="$1" -v o="$2" -v n="$3" '$1 == c && $2 == o { print $n }' "$work/rows"; }
# spelled TERM: how messages call an option, or an option with a value ("stop=lower").
spelled() { echo "--$1" | sed 's/^--output$/-o/; s/=/ /'; }
# given COMMAND TERM: the arguments that make it hold.
given() {
    case $2 in
    *=*) echo "--${2%%=*} ${2#*=}" ;;
    *)
        sample=$(field "$1" "$2" 5)
        [ -n "$sample" ] || fail "tare $1 has no option --$2"
        [ "$sample" != - ] && echo "--$2 $sample" || echo "--$2"
        ;;
    esac
}
# not_given COMMAND TERM: the arguments that make it fail: another value, or none.
not_given() {
    case $2 in
    stop=prepare) echo '--stop fuse' ;;
    stop=lower) echo '--stop prepare' ;;
    to=tare) echo '--to pt2' ;;
    to=onnx) echo '--to tare' ;;
    *=*) fail "which value is not $2?" ;;
    esac
}
# usable COMMAND OPTION: the arguments of an option and of what it requires, the first of several, and so on.
usable() {
    names= next=$2
    while [ -n "$next" ]; do
        given "$1" "$next"
        names="$names $next " needed=
        for term in $(field "$1" "${next%%=*}" 6 | sed 's/^-$//; s/,/ /g'); do
            case $names in *" $term "*) needed= && break ;; esac
            needed=${needed:-$term}
        done
        next=$needed
    done
}

# What help says of each command is asked once, not once for each of its options.
mkdir "$work/help" "$work/man"
for command in $(cut -d' ' -f1 "$work/rows" | sort -u); do
    "$tare" help "$command" >"$work/help/$command"
    "$tare" help "$command" --man | sed 's/\\-/-/g' >"$work/man/$command"
done

while read -r command option letter kind value requires excludes; do
    # shellcheck disable=SC2046,SC2086 # The arguments are words.
    refuses 2 "no option '--no-such-option'" "$command" $(given "$command" "$option") --no-such-option
    if [ "$letter" != - ]; then
        set -- "-$letter"
        [ "$value" = - ] || set -- "$@" "$value"
        refuses 2 "no option '--no-such-option'" "$command" "$@" --no-such-option
    fi
    help=$work/help/$command
    grep -qE -- "^ +(-$letter, )? *--$option( |\$)" "$help" || fail "tare help $command lacks --$option"
    sed '/^$/{x;s/^/x/;x};x;/^xx/{x;q};x' "$help" | grep -qE -- "[[(| ]$(spelled "$option")([] )|]|\$)" ||
        fail "the usage of $command lacks --$option"
    grep -qE "^(\\\\fB-$letter\\\\fR, )?\\\\fB--$option\\\\fR" "$work/man/$command" ||
        fail "the manual page of $command lacks --$option"

    case $command in
    version | help) ;;
    *) refuses 2 'is missing' "$command" $(usable "$command" "$option") ;;
    esac

    [ "$excludes" = - ] || for term in $(echo "$excludes" | tr , ' '); do
        refuses 2 "$(spelled "$option") and $(spelled "$term") exclude each other" \
            "$command" $(given "$command" "$option") $(given "$command" "$term")
    done
    if [ "$requires" != - ]; then
        set --
        for term in $(echo "$requires" | tr , ' '); do set -- "$@" $(not_given "$command" "$term"); done
        refuses 2 "$(spelled "$option") has " "$command" $(given "$command" "$option") "$@"
        for term in $(echo "$requires" | tr , ' '); do complains "$(spelled "$term")"; done
    fi
done <"$work/rows"

# Of several that will do, one is enough; a default value holds.
refuses 2 'MODEL is missing' quantize --bias-data x --bias-correction
refuses 2 'MODEL is missing' quantize --threads 2 # a script may give it always
refuses 2 'MODEL is missing' quantize --engine x86
refuses 2 '--bias-correction has no effect without --calibrate or --bias-data (give --calibrate or --bias-data, or leave' \
    quantize --bias-correction
refuses 2 '--engine has an effect with --stop lower only' quantize --engine x86 --stop fuse

# A required option may be replaced by one that excludes it.
refuses 2 '-o OUT is missing, or --dry-run' quantize x
refuses 2 '--data DATA is missing, or --merge' calibrate x -o x

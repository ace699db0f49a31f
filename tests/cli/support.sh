# SPDX-License-Identifier: Apache-2.0
# What the tests of the command line share; read with `. tests/cli/support.sh`.
set -eu
: "${TARE_CLI:?the program under test}"
tare=$TARE_CLI
digits=data/digits/digits.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

fail() {
    echo "$*" >&2
    [ -f "$work/stderr" ] && sed 's/^/  stderr: /' "$work/stderr" >&2
    [ -f "$work/stdout" ] && head -n 20 "$work/stdout" | sed 's/^/  stdout: /' >&2
    exit 1
}

# expect STATUS ARGUMENT..: runs tare; its output goes to $work/stdout and $work/stderr.
expect() {
    expected=$1
    shift
    status=0
    "$tare" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
    [ "$status" -eq "$expected" ] || fail "tare $*: status $status, expected $expected"
}

# says TEXT: the last run's standard output holds it. complains TEXT: its standard error does.
says() { grep -qF -- "$1" "$work/stdout" || fail "standard output lacks: $1"; }
complains() { grep -qF -- "$1" "$work/stderr" || fail "standard error lacks: $1"; }

# refuses STATUS TEXT ARGUMENT..: one line of error that holds TEXT, and no file $work/out*.
refuses() {
    wanted=$2
    expected_status=$1
    shift 2
    expect "$expected_status" "$@"
    [ "$(wc -l <"$work/stderr")" -eq 1 ] || fail "tare $*: expected one line of error"
    grep -q '^tare: ' "$work/stderr" || fail "the error does not begin with 'tare: '"
    complains "$wanted"
    for left in "$work"/out*; do
        [ ! -e "$left" ] || fail "tare $*: left $left behind"
    done
}

# patch FILE OFFSET OCTAL: overwrites one byte.
patch() {
    printf "\\$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# npy FILE SHAPE: a float32 array of zeros; SHAPE as Python writes it, "(1, 1, 8, 8)"; its bytes follow as $3.
npy() {
    header="{'descr': '<f4', 'fortran_order': False, 'shape': $2, }"
    {
        printf '\223NUMPY\001\000\166\000' # 118 bytes of header follow
        printf '%-117s\n' "$header"
        head -c "$3" /dev/zero
    } >"$1"
}

# option_rows: every option as COMMAND NAME LETTER KIND VALUE REQUIRES EXCLUDES, by what `tare help --json` says. VALUE is one
# that the option takes; the lists have ',' between; '-' stands for nothing.
option_rows() {
    "$tare" help --json | awk '
        function text() { sub(/^[^:]*: "?/, ""); sub(/"?,?$/, ""); return $0 }
        function put() { if (name != "") print command, name, letter, kind, value, requires, excludes; name = "" }
        function add(list, item) { return list == "-" ? item : list "," item }
        /^   "name":/ { command = text() }
        /^   "options"/ { in_options = 1 }
        /^   [}\]]/ { if (in_options) put(); in_options = 0 }
        !in_options { next }
        /^     "name":/ { put(); name = text(); letter = value = requires = excludes = "-"; key = "" }
        /^     "letter":/ { letter = text() }
        /^     "kind":/ { kind = text(); if (kind !~ /flag|choice/) value = kind == "bytes" ? "512M" : kind == "number" ? "1" : "x" }
        /^     "(choices|requires|excludes)":/ { key = $1 }
        /^      "/ {
            gsub(/[ ",]/, "")
            if (key ~ /choices/ && value == "-") value = $0
            if (key ~ /requires/) requires = add(requires, $0)
            if (key ~ /excludes/) excludes = add(excludes, $0)
        }'
}

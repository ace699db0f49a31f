#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the interface of the shared library with the one that the last release promised: what was
# added is fine, what was changed or removed is reported as abidiff sees it.
# usage: abi.sh check  [LIBRARY [HEADERS [RECORD]]]    status 1: programs that run today would break
#        abi.sh record [LIBRARY [HEADERS [RECORD]]]    writes RECORD: at a release, see docs/releasing.md
# LIBRARY (with debug information): build/release/libtare.so; HEADERS: include/tare;
# RECORD: abi/tare-MAJOR.MINOR.abi, as the newest tag vMAJOR.MINOR.PATCH has it, or the working tree.
# Ends with 77, a skip, where abigail-tools are missing or nothing was promised for this version yet.
set -eu
cd "$(dirname "$0")/.."
job=${1-}
library=${2:-build/release/libtare.so}
headers=${3:-include/tare}
version=$(sed -n 's/^project(tare VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' CMakeLists.txt)
record=${4:-abi/tare-$version.abi}
# The machine that abi/ was recorded on: sizes differ from one to another.
readonly machine='X86-64'

skip() {
    echo "abi: skipped, $1"
    exit 77
}

require() { command -v "$1" >/dev/null || skip "no $1 (Debian: abigail-tools)"; }

# Only what a user of the headers can see counts; where it was compiled does not.
write_record() {
    mkdir -p "$(dirname "$record")"
    abidw --headers-dir "$headers" --drop-private-types --exported-interfaces-only --no-corpus-path \
        --no-comp-dir-path --short-locs --no-parameter-names --no-elf-needed \
        --type-id-style hash --out-file "$record" "$library"
    echo "abi: recorded $(grep -c '<elf-symbol ' "$record") names in $record"
}

# What a tag promised cannot be recorded anew, so its copy is the one that counts.
find_promise() {
    [ -e .git ] || return 0
    tag=$(git tag --list "v$version.*" --sort=-v:refname 2>/dev/null | head -n 1)
    [ -n "$tag" ] && git cat-file -e "$tag:$record" 2>/dev/null || return 0
    promised_by=$tag
    promise=$work/promise.abi
    git show "$tag:$record" >"$promise"
}

# A struct that begins with its size may grow at its end: neither side uses what the other lacks.
may_grow() {
    names=$(cat "$headers"/*.h | sed 's|//.*||' | tr -s ' \n' ' ' | tr ';' '\n' |
        sed -n 's/.*typedef struct \(tare_[a-z0-9_]*\) { \(uint32_t\|size_t\) struct_size$/\1/p' |
        LC_ALL=C sort -u | tr '\n' '|')
    [ -n "$names" ] || return 0
    printf '[suppress_type]\ntype_kind = struct\nname_regexp = ^(%s)$\n' "${names%|}"
    echo 'has_data_member_inserted_at = end'
}

check() {
    promise=$record
    promised_by="$record; should the version not be released yet, 'scripts/abi.sh record' renews it"
    [ $# -eq 4 ] || find_promise
    [ -e "$promise" ] || skip "no $record: version $version promises nothing yet"
    status=0
    may_grow >"$work/may-grow"
    abidiff --suppressions "$work/may-grow" --no-added-syms --headers-dir2 "$headers" --drop-private-types --no-show-locs \
        "$promise" "$library" >"$work/report" || status=$?
    [ "$status" -ne 0 ] || { echo "abi: keeps what $record promised"; return; }
    cat "$work/report"
    echo "abi: programs linked against tare $version would break ($promised_by)"
    exit 1
}

[ -e "$library" ] || { echo "abi: $library is missing; 'make build' builds it" >&2; exit 2; }
readelf -h "$library" 2>/dev/null | grep -q "$machine" || skip "$library is not for $machine"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $job in
check) require abidiff && check "$@" ;;
record) require abidw && write_record ;;
*)
    sed -n 's/^# \(usage: \)/\1/p; s/^#        \(abi.sh\)/       \1/p' "$0" >&2
    exit 2
    ;;
esac

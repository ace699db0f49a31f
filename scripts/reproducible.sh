#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles copies of this tree in other folders, at other times, and compares the bytes.
# usage: reproducible.sh full            builds and installs two copies, with debug information: minutes
#        reproducible.sh sample          compiles every 16th source of two copies
#        reproducible.sh against BUILD   builds one copy, and compares its install with that of BUILD, a
#                                        release build of this tree as it is
# Differences are listed, and their files stay below build/reproducible.
set -eu
cd "$(dirname "$0")/.."
job=${1-}
work=$(pwd)/build/reproducible
# A compiler cache would hand out what was compiled before. The bill of materials tells a time.
export CCACHE_DISABLE=1
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-1700000000}"

# What git knows and does not ignore; in a tarball, everything that was not built.
list_files() {
    if [ -e .git ]; then
        git ls-files -co --exclude-standard | while read -r file; do [ ! -e "$file" ] || echo "$file"; done
    else
        find . -path ./build -prune -o -type f -print
    fi
}

# copy FOLDER: its times are not those of the sources here.
copy() {
    mkdir -p "$1"
    list_files | tar -cf - -T - | tar -xmf - -C "$1"
}

configure() { cmake --preset release -S "$1" -B "$2" -DTARE_BIN_DIR="$2/bin" >"$work/log"; }

# install BUILD FOLDER: what packagers get, and the debug information.
install() {
    DESTDIR=$2 cmake --install "$1" --prefix /usr >"$work/log"
    DESTDIR=$2 cmake --install "$1" --prefix /usr --component debug >"$work/log"
}

# build SOURCE BUILD FOLDER JOBS
build() {
    configure "$1" "$2"
    cmake --build "$2" -j "$4" --target tare tare_static tare_cli
    install "$2" "$3"
}

# The names, modes and digests of all files below a folder.
describe() {
    (cd "$1" && find . -type l -printf '%p -> %l\n' -o -type f -printf '%m %p\n' | LC_ALL=C sort &&
        find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2)
}

same() {
    describe "$1" >"$1.list"
    describe "$2" >"$2.list"
    diff "$1.list" "$2.list" || { echo 'reproducible: the two differ'; exit 1; }
    echo "reproducible: $(grep -c -v -e '^[0-7]* \./' "$1.list") files, the same bytes twice; digest of all:"
    sha256sum <"$1.list"
}

full() {
    copy "$work/one"
    copy "$work/elsewhere/and deeper/another"
    build "$work/one" "$work/one/build/release" "$work/first" "$(nproc)"
    export TZ=Pacific/Auckland LC_ALL=C
    build "$work/elsewhere/and deeper/another" "$work/elsewhere/out" "$work/second" 3
    same "$work/first" "$work/second"
}

against() {
    install "$1" "$work/first"
    copy "$work/elsewhere/and deeper/another"
    export TZ=Pacific/Auckland LC_ALL=C
    build "$work/elsewhere/and deeper/another" "$work/elsewhere/out" "$work/second" "$(nproc)"
    same "$work/first" "$work/second"
}

# compile_sample SOURCE BUILD OBJECTS: every 16th object goes to OBJECTS, but those of avx512, which take the
# longest.
compile_sample() {
    configure "$1" "$2"
    objects=$(cd "$2" && ninja -t targets all | sed -n 's/^\(CMakeFiles.tare_objects.*\.o\): .*/\1/p' |
        LC_ALL=C sort | awk '!/avx512/ && (NR % 16 == 1 || /version|embedded/)')
    # shellcheck disable=SC2086 # No name of ours has a space.
    cmake --build "$2" -j "$(nproc)" --target $objects >"$work/log" || { cat "$work/log"; exit 1; }
    mkdir -p "$3"
    # shellcheck disable=SC2086
    tar -cf - -C "$2" $objects | tar -xf - -C "$3"
}

sample() {
    copy "$work/one"
    copy "$work/elsewhere/and deeper/another"
    compile_sample "$work/one" "$work/one/build/release" "$work/first"
    export TZ=Pacific/Auckland LC_ALL=C
    compile_sample "$work/elsewhere/and deeper/another" "$work/elsewhere/out" "$work/second"
    same "$work/first" "$work/second"
}

rm -rf "$work"
mkdir -p "$work"
case $job in
full | sample) "$job" ;;
against) against "${2:?a folder of a release build}" ;;
*)
    sed -n 's/^# \(usage: \)/\1/p; s/^#        \(reproducible\)/       \1/p' "$0" >&2
    exit 2
    ;;
esac
rm -rf "$work"

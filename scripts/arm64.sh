#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds tare for 64-bit Arm with Debian's cross compiler and runs the tests whose bits must be equal
# on every machine, under qemu-user: with all instructions, and on CPUs that lack some.
# usage: arm64.sh [sysroot | build | test]    default: test, which does the others first
# Ends with 77, a skip, where the tools or the libraries cannot be had.
set -eu
cd "$(dirname "$0")/.."

readonly sysroot=build/arm64-sysroot
readonly packages='libjansson4 libjansson-dev libminizip1 libminizip-dev zlib1g zlib1g-dev libxxhash0 libxxhash-dev libcmocka0
    libcmocka-dev libpng16-16 libpng-dev libjpeg62-turbo libjpeg62-turbo-dev libprotobuf-c1
    libprotobuf-c-dev'

skip() {
    echo "arm64: skipped, $1"
    exit 77
}

require_tools() {
    command -v aarch64-linux-gnu-gcc >/dev/null || skip 'no aarch64-linux-gnu-gcc'
    command -v qemu-aarch64-static >/dev/null || command -v qemu-aarch64 >/dev/null ||
        skip 'no qemu-aarch64'
}

# The libraries come from Debian's archive into a folder. A private state of apt leaves the machine's
# own packages as they are, and needs no root.
fetch_packages() {
    work=$(pwd)/$sysroot.new
    rm -rf "$work"
    mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/debs"
    : >"$work/apt/state/status"
    set -- -qq -o "Dir::State=$work/apt/state" -o "Dir::State::status=$work/apt/state/status" \
        -o "Dir::Cache=$work/apt/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o Acquire::Languages=none -o "APT::Sandbox::User=$(id -un)"
    # shellcheck disable=SC2086 # The list is words.
    apt-get "$@" update && (cd "$work/apt/debs" && apt-get "$@" download $packages) || return 1
    for package in "$work"/apt/debs/*.deb; do dpkg-deb -x "$package" "$work"; done
    rm -rf "$work/apt"
    # Debian keeps some libraries in /lib; links to them are absolute.
    [ ! -d "$work/lib" ] || cp -R "$work/lib/." "$work/usr/lib/"
    for link in "$work"/usr/lib/aarch64-linux-gnu/*.so; do
        to=$(readlink "$link") && ln -sf "${to##*/}" "$link"
    done
}

make_sysroot() {
    [ ! -e $sysroot/usr/include/jansson.h ] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip 'no apt to get libraries'
    echo "arm64: fetching libraries into $sysroot"
    mkdir -p build
    fetch_packages || skip 'the libraries could not be fetched'
    rm -rf $sysroot
    mv $sysroot.new $sysroot
}

build() {
    cmake --preset arm64 >/dev/null
    cmake --build --preset arm64 -j "$(nproc)"
}

# The same programs on CPUs without the newer instructions find their level by themselves.
detects() {
    found=$(qemu "$1" build/arm64/bin/tare version --json | sed -n 's/.*"isa": *"\([^"]*\)".*/\1/p')
    [ "$found" = "$2" ] || { echo "arm64: on $1 found level '$found', expected '$2'" && exit 1; }
    echo "arm64: $1 has $2"
}

qemu() {
    program=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
    cpu=$1
    shift
    "$program" -cpu "$cpu" -L /usr/aarch64-linux-gnu "$@"
}

job=${1-test}
require_tools
make_sysroot
[ "$job" != sysroot ] || exit 0
build
[ "$job" != build ] || exit 0
detects cortex-a53 neon
detects neoverse-n1 neondot
detects max i8mm
ctest --preset arm64 -j "$(nproc)"

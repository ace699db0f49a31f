#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a target needs and the machine lacks. Quick when none is missing.
# usage: setup.sh build|test|format|ci|arm64
set -eu

build='cmake ninja-build gcc libc6-dev make pkg-config libjansson-dev libminizip-dev zlib1g-dev libxxhash-dev'
build_optional='libdnnl-dev libpng-dev libjpeg-dev protobuf-c-compiler libprotobuf-c-dev libonnx-dev'
test="$build libcmocka-dev g++"
format='clang-format'
ci="$test clang clang-tidy llvm git abigail-tools python3"
arm64='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static'
ci_optional="$build_optional libclang-rt-dev"

case ${1-} in
build) needed=$build optional=$build_optional ;;
test) needed=$test optional="$build_optional python3-dev python3-venv" ;;
format) needed=$format optional= ;;
ci) needed=$ci optional=$ci_optional ;;
arm64) needed=$build optional="$build_optional $arm64" ;; # scripts/arm64.sh says what is missing
*)
    echo "usage: setup.sh build|test|format|ci|arm64" >&2
    exit 2
    ;;
esac

# The commands that a package is needed for. Where all of them answer, the package is not missed:
# a machine may have its own CMake or compiler.
commands_of() {
    case $1 in
    cmake) echo cmake ctest ;;
    ninja-build) echo ninja ;;
    gcc) echo cc ;;
    make | pkg-config | clang | git | g++ | python3 | clang-tidy | clang-format) echo "$1" ;;
    llvm) echo llvm-symbolizer ;;
    abigail-tools) echo abidw abidiff ;;
    esac
}

is_answered() {
    names=$(commands_of "$1")
    [ -n "$names" ] || return 1
    for name in $names; do
        command -v "$name" >/dev/null 2>&1 || return 1
    done
}

# The tests of the Python package need NumPy: that of the machine, or of an environment below build/. Where neither is
# to be had, these tests are reported as skipped.
set_up_python() {
    for python in build/venv/bin/python3 python3; do
        if "$python" -c 'import numpy' 2>/dev/null; then return 0; fi
    done
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || return 0
    echo "setup: making build/venv with NumPy for the tests in Python"
    { python3 -m venv build/venv && build/venv/bin/pip install -q --no-compile --disable-pip-version-check numpy; } >/dev/null 2>&1 ||
        { rm -rf build/venv; echo "setup: no NumPy to be had; the tests in Python will be skipped" >&2; return 0; }
    # Each of these serves one test, which is skipped without it. No test debugs in a notebook or completes names there,
    # and python/tests/run.sh keeps the bytecode of what is imported: 263 MB instead of 409.
    build/venv/bin/pip install -q --no-compile --disable-pip-version-check hypothesis mypy nbclient ipykernel matplotlib \
        distributed >/dev/null 2>&1 || echo "setup: some tests in Python will be skipped" >&2
    build/venv/bin/pip uninstall -q -y --disable-pip-version-check debugpy jedi parso >/dev/null 2>&1 || true
}
case $1 in
test | ci) trap set_up_python EXIT ;; # once the packages are there
esac

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    for package in $needed; do
        if [ -n "$(commands_of "$package")" ] && ! is_answered "$package"; then
            echo "setup: '$package' (its Debian name) is missing; install it, then run this again" >&2
            exit 1
        fi
    done
    echo "setup: no apt here; what tare needs, by Debian's names: $needed (optional: $optional)" >&2
    exit 0
fi

# One query for all of them. Packages that dpkg never heard of are simply absent from its answer.
# shellcheck disable=SC2086 # The lists are words.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $needed $optional 2>/dev/null |
    sed -n 's/ installed$//p' | tr '\n' ' ')

lacks() {
    case " $installed" in
    *" $1 "*) return 1 ;;
    esac
    ! is_answered "$1"
}

missing='' wished=''
for package in $needed; do
    ! lacks "$package" || missing="$missing $package"
done
for package in $optional; do
    ! lacks "$package" || wished="$wished $package"
done
# Where only optional packages are missing and this release has none of them, stay quick.
# shellcheck disable=SC2086
if [ -z "$missing" ] && ! apt-cache show $wished 2>/dev/null | grep -q '^Package:'; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "setup: missing packages, and neither root nor sudo to install them; ask for:" >&2
    echo "  apt-get install$missing$wished" >&2
    # What is only optional does not stop a build.
    [ -z "$missing" ] && exit 0
    exit 1
fi

apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}

echo "setup: installing$missing$wished"
apt update || echo "setup: the package lists could not be refreshed, trying with the old ones" >&2
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086
    apt install -y --no-install-recommends $missing || {
        echo "setup: could not install:$missing" >&2
        exit 1
    }
fi
for package in $wished; do
    # Not every release has these; tare builds without them.
    apt install -y --no-install-recommends "$package" 2>/dev/null ||
        echo "setup: going on without the optional $package"
done

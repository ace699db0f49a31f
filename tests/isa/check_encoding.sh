#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernels of CPUs that have AVX-VNNI and no AVX-512 hold no instruction in AVX-512's encoding,
# whose first byte is 62, and do use the one that they are for.
# usage: check_encoding.sh OBJECT..
set -eu
command -v objdump >/dev/null || exit 77
for object in "$@"; do
    code=$(objdump -d "$object")
    if echo "$code" | grep -E '^ *[0-9a-f]+:[[:space:]]+62 '; then
        echo "$object: holds AVX-512" >&2
        exit 1
    fi
    echo "$code" | grep -qE '^ *[0-9a-f]+:[[:space:]]+c4 .*vpdpbusd' || {
        echo "$object: lacks vpdpbusd" >&2
        exit 1
    }
done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bill of materials of an install has the form that SPDX 2.3 asks for, names every installed file
# with its true checksums, and the libraries that the shared library loads.
# usage: check_sbom.sh PREFIX SCHEMA
set -eu
prefix=$1 schema=$2
sbom=$prefix/share/doc/tare/tare.spdx.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$sbom: $1"
    exit 1
}

[ -e "$sbom" ] || fail 'was not installed'
if [ -n "${TARE_SCHEMA_CHECK-}" ]; then
    "$TARE_SCHEMA_CHECK" "$schema" <"$sbom" || fail "does not fit $schema"
fi

# The checksums, in the form that sha1sum and sha256sum read.
for kind in 1 256; do
    awk -v algorithm="SHA$kind" -F '"' '
        /"fileName":/ { for (i = 2; i < NF; i++) if ($i == "fileName") name = $(i + 2) }
        /"algorithm":/ {
            for (i = 2; i < NF; i++) if ($i == algorithm) print $(i + 4) "  " name
        }' "$sbom" >"$work/sha$kind"
    (cd "$prefix" && "sha${kind}sum" --quiet -c "$work/sha$kind") || fail "has wrong checksums"
done
sed 's/^[0-9a-f]*  //' "$work/sha256" | LC_ALL=C sort >"$work/listed"
(cd "$prefix" && find . -type f ! -name tare.spdx.json | LC_ALL=C sort) >"$work/installed"
diff "$work/listed" "$work/installed" || fail 'lists other files than were installed'

# The code that SPDX makes of all checksums.
code=$(cut -c 1-40 "$work/sha1" | LC_ALL=C sort | tr -d '\n' | sha1sum | cut -c 1-40)
grep -qF "\"packageVerificationCodeValue\": \"$code\"" "$sbom" || fail "lacks the code $code"

# Packages are named after their libraries, with or without `lib`.
library=$(find "$prefix" -name libtare.so)
readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[lib\([a-z_-]*\).*/\1/p' >"$work/needed"
while read -r name; do
    case $name in
    c | m | asan | ubsan | tsan | ld-linux-x) continue ;; # the C library, and sanitizers
    z) name=zlib ;;
    esac
    grep -qE "\"name\": \"(lib)?$name\"" "$sbom" || fail "does not name $name, which libtare.so loads"
done <"$work/needed"
echo "bill of materials: $(wc -l <"$work/listed") files, $(wc -l <"$work/needed") libraries"

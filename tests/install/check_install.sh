#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty folder and builds a small program against what lies there: with
# pkg-config against the shared and the static library, and with find_package against both. Then holds
# the bill of materials against the files, and looks for debug information where it belongs.
# usage: check_install.sh SOURCE_DIR BUILD_DIR CMAKE CC IS_STRIPPED [CFLAGS]    IS_STRIPPED: ON or OFF
set -eu
source_dir=$1 build_dir=$2 cmake=$3 cc=$4 is_stripped=$5 flags=${6-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
consumer=$source_dir/tests/install/consumer

# DESTDIR as packagers use it: the tree is staged first and moves to its prefix later.
DESTDIR=$work/stage "$cmake" --install "$build_dir" --prefix /prefix >"$work/log" || {
    cat "$work/log"
    exit 1
}
mv "$work/stage/prefix" "$work/prefix"
sh "$source_dir/tests/install/check_sbom.sh" "$work/prefix" "$source_dir/tests/install/sbom_schema.json"
for found in "$work"/stage/*; do
    [ ! -e "$found" ] || { echo "installed outside of DESTDIR and prefix: $found"; exit 1; }
done
pc=$(find "$work/prefix" -name tare.pc)
libraries=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH

# expect NAME COMMAND..: the program must print the version that tare.pc states.
version=$(pkg-config --modversion tare)
expect() {
    name=$1
    shift
    output=$("$@")
    [ "$output" = "$version" ] || { echo "$name: printed '$output', expected '$version'"; exit 1; }
    echo "$name: ok"
}

# shellcheck disable=SC2046,SC2086 # Flags are words.
{
    "$cc" $flags -std=c17 "$consumer/main.c" $(pkg-config --cflags --libs tare) \
        -o "$work/shared" -Wl,-rpath,"$libraries"
    expect "pkg-config, shared" "$work/shared"
    # The whole archive, because the program alone would need none of our dependencies.
    "$cc" $flags -std=c17 "$consumer/main.c" $(pkg-config --cflags tare) \
        -Wl,--whole-archive "$libraries/libtare.a" -Wl,--no-whole-archive \
        $(pkg-config --static --libs tare | sed 's/-ltare//') -o "$work/static"
    expect "pkg-config, static" "$work/static"
}

"$cmake" -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" &&
    "$cmake" --build "$work/build" >>"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" -DCOMPONENTS=static "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
expect "find_package, shared" "$work/build/consumer"
expect "find_package, static" "$work/build/consumer_static"

cli=$work/prefix/bin/tare
if [ -e "$source_dir/cli" ]; then
    [ -x "$cli" ] || { echo "the command line was not installed"; exit 1; }
fi
for script in bash-completion/completions/tare zsh/site-functions/_tare fish/vendor_completions.d/tare.fish; do
    [ ! -e "$source_dir/cli" ] || grep -q quantize "$work/prefix/share/$script" || {
        echo "the completion $script was not installed"
        exit 1
    }
done

for path in LICENSE README.md docs/backend-config.md docs/schemas/backend-config.json examples/handoff.c \
    backends/native.json; do
    [ -s "$work/prefix/share/doc/tare/$path" ] || { echo "$path was not installed"; exit 1; }
done
python=$work/prefix/share/tare/tools
for tool in tare_export.py torch_configs.py; do
    PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' \
        "$python/$tool" || { echo "$tool was not installed"; exit 1; }
done

# has_symbols FILE: it holds debug information.
has_symbols() { readelf -SW "$1" 2>/dev/null | grep -qE '\.z?debug_info'; }

# What was stripped stands below lib/debug, when asked for, under the id of its build.
if [ "$is_stripped" = ON ]; then
    DESTDIR=$work/stage "$cmake" --install "$build_dir" --prefix /prefix --component debug >"$work/log"
    for binary in "$libraries"/libtare.so "$cli"; do
        [ -e "$binary" ] || continue
        ! has_symbols "$binary" || { echo "$binary was installed with debug information"; exit 1; }
        id=$(readelf -n "$binary" | sed -n 's/.*Build ID: //p')
        symbols=$work/stage/prefix/lib/debug/.build-id/$(echo "$id" | sed 's|^..|&/|').debug
        has_symbols "$symbols" || { echo "$symbols has no debug information of $binary"; exit 1; }
    done
    ! has_symbols "$libraries/libtare.a" || { echo "libtare.a has debug information"; exit 1; }
    echo "debug information: apart"
fi

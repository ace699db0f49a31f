#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the tarball of a release: build/dist/tare-VERSION.tar.gz of the tag vVERSION, or of another
# commit with its name behind the version. The same commit gives the same bytes.
# usage: dist.sh [COMMIT]         makes it, of HEAD unless told otherwise, and prints its digest
#        dist.sh check [COMMIT]   makes it twice, and builds, installs, runs the demo and tests what it
#                                 holds in an empty folder, without git; compares two builds: an hour
#        dist.sh quick [COMMIT]   makes it twice, and configures what it holds: seconds
set -eu
cd "$(dirname "$0")/.."
job=tarball
case ${1-} in
check | quick)
    job=$1
    shift
    ;;
esac
commit=${1:-HEAD}
jobs=$(nproc)

fail() {
    echo "dist: $1" >&2
    exit 1
}

# CMakeLists.txt of that commit is the one place that knows the version.
find_name() {
    [ -e .git ] || { echo 'dist: skipped, this tree has no git'; exit 77; }
    git rev-parse --verify --quiet "$commit^{commit}" >/dev/null || fail "'$commit' is no commit"
    version=$(git show "$commit:CMakeLists.txt" | sed -n 's/^project(tare VERSION \([0-9.]*\) .*/\1/p')
    [ -n "$version" ] || fail "CMakeLists.txt of $commit states no version"
    name=tare-$version
    tags=$(git tag --points-at "$commit" --list 'v[0-9]*')
    case " $(echo "$tags" | tr '\n' ' ')" in
    *" v$version "*) ;;
    '  ' | ' ') name=$name-g$(git rev-parse --short=12 "$commit^{commit}") ;;
    *) fail "the tag $tags and the version $version of CMakeLists.txt differ" ;;
    esac
}

# write_tarball FILE: git sorts the files, and gives them the time of the commit and the owner 0.
write_tarball() {
    git -c tar.umask=0022 archive --format=tar --prefix="$name/" "$commit^{commit}" | gzip -9 -n >"$1.new"
    mv "$1.new" "$1"
}

# Without git, and with nothing of this tree near.
unpack() {
    cmp "$tarball" "$work/again.tar.gz" || fail 'the same commit gave two tarballs'
    tar -xzf "$tarball" -C "$work"
    cd "$work/$name"
    GIT_CEILING_DIRECTORIES=$work
    export GIT_CEILING_DIRECTORIES
}

quick() {
    cmake --preset release >"$work/log" || { cat "$work/log"; exit 1; }
    found=$(sed -n 's/^Version: //p' build/release/tare.pc)
    [ "$found" = "$version" ] || fail "tare.pc says $found, expected $version"
    echo "dist: $name unpacks and configures as $version"
}

check() {
    export CCACHE_DISABLE=1 # a cache would hand out what was compiled in another folder
    make build JOBS="$jobs"
    [ "$(build/bin/tare version | sed -n '1s/^tare \([0-9.]*\).*/\1/p')" = "$version" ] ||
        fail "the program states another version than $version"
    make install PREFIX="$work/prefix" JOBS="$jobs" >"$work/log"
    "$work/prefix/bin/tare" version
    make demo JOBS="$jobs"
    sh scripts/reproducible.sh against build/release
    make test JOBS="$jobs"
    echo "dist: $name builds, installs, runs and passes its tests without git"
}

find_name
mkdir -p build/dist
tarball=$(pwd)/build/dist/$name.tar.gz
write_tarball "$tarball"
if [ "$job" != tarball ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    sleep 1 # so that a time of writing would show
    write_tarball "$work/again.tar.gz"
    (unpack && "$job")
fi
(cd build/dist && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/dist.sh names a tarball after the tag or the commit, refuses a tag of another version, and
# writes the same bytes at any time; no name or time of this machine is in it.
# usage: selftest.sh SOURCE_DIR
set -eu
source_dir=$1
command -v git >/dev/null || { echo 'no git here'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/scripts"
cp "$source_dir/scripts/dist.sh" "$work/tree/scripts/"
cd "$work/tree"
echo 'project(tare VERSION 3.2.1 LANGUAGES C' >CMakeLists.txt
git init -q
git add .
git -c user.name=a -c user.email=a@example.org commit -qm first --date=2001-02-03T04:05:06Z

fail() {
    echo "$1"
    exit 1
}

# makes NAME: dist.sh succeeds and leaves the tarball of that name.
makes() {
    rm -rf build
    sh scripts/dist.sh >"$work/said" 2>&1 || { cat "$work/said"; fail "no tarball $1"; }
    [ -e "build/dist/$1.tar.gz" ] || fail "expected $1.tar.gz, found $(ls build/dist)"
}

commit=$(git rev-parse --short=12 HEAD)
makes "tare-3.2.1-g$commit"
git tag v3.2.1
makes tare-3.2.1
cp build/dist/tare-3.2.1.tar.gz "$work/first.tar.gz"

sleep 1
touch scripts/dist.sh CMakeLists.txt
(umask 077 && makes tare-3.2.1)
cmp "$work/first.tar.gz" build/dist/tare-3.2.1.tar.gz || fail 'the same tag gave other bytes'
(cd build/dist && sha256sum --quiet -c tare-3.2.1.tar.gz.sha256)
tar --numeric-owner -tvzf "$work/first.tar.gz" | awk '$2 != "0/0" { print; bad++ } END { exit bad > 0 }' ||
    fail 'the owner is not 0'

git tag -d v3.2.1 >/dev/null
git tag v3.2.2
! sh scripts/dist.sh >"$work/said" 2>&1 || fail 'a tag of another version was taken'
grep -qF 'the tag v3.2.2 and the version 3.2.1 of CMakeLists.txt differ' "$work/said" ||
    { cat "$work/said"; fail 'the refusal does not name the two versions'; }

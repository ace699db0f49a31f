#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that includes point one way: a room includes itself and what stands above it in the table
# below, never a room beside or under it; users of the public API include nothing else.
# usage: check_layers.sh ROOT    Prints one line per violation; exit status 1 if there is any.
set -eu
cd "$1"

# The rooms from the ground up. Rooms on one line stand beside each other.
rooms='core
ir
ops
io
quant
pt2e train runtime
codegen debug'

folders=
for folder in include src cli examples bench backends; do
    [ -d "$folder" ] && folders="$folders $folder"
done
# shellcheck disable=SC2086 # The folders are words.
find $folders -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.inc' \) | LC_ALL=C sort |
    ROOMS=$rooms awk '
    function report(why) { print file ":" line ": " why ": " text; bad++ }
    function exists(path,   ignored, found) {
        found = (getline ignored < path) >= 0
        close(path)
        return found
    }
    # The target of a quoted include, as the rules see it.
    function check_room(room, target,   other) {
        other = target
        if (!sub(/\/.*/, "", other)) report("includes are written from src/")
        else if (other == "tare") return
        else if (!(other in rank)) report("\"" other "\" is not a room of src/")
        else if (other != room && rank[other] >= rank[room]) report(room " may not include " other)
    }
    function check(target,   root, part) {
        split(file, part, "/")
        root = part[1]
        if (root == "src") {
            if (!(part[2] in rank)) report("\"" part[2] "\" is not a room of src/")
            else check_room(part[2], target)
        } else if (target ~ /^tare\/[^\/]*\.h$/) return
        else if (root == "include") report("a public header may include public headers only")
        else if (target ~ /\.\./ || !(exists(folder target) || exists(root "/" target)))
            report(root " may include tare/*.h and its own headers only")
    }
    BEGIN {
        levels = split(ENVIRON["ROOMS"], level, "\n")
        for (i = 1; i <= levels; i++) {
            n = split(level[i], name, " ")
            for (j = 1; j <= n; j++) rank[name[j]] = i
        }
    }
    {
        file = $0
        files++
        folder = file
        sub(/[^\/]*$/, "", folder)
        line = 0
        while ((getline text < file) > 0) {
            line++
            if (text !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) continue
            target = text
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
            # In angle brackets stand other libraries, and our own only by mistake.
            angle = target ~ /^</
            sub(/^["<]/, "", target)
            sub(/[">].*/, "", target)
            top = target
            sub(/\/.*/, "", top)
            if (!angle || top == "tare" || (top in rank && exists("src/" target))) check(target)
        }
        close(file)
    }
    END {
        if (!files) { print "no sources found"; exit 1 }
        printf "%d files, %d violations\n", files, bad
        exit bad > 0
    }'

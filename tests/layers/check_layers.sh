#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that includes point one way: a room includes itself and rooms above it in the table below,
# never a room beside or under it, and no header that is private to another folder; users of the
# public API include nothing else.
# usage: check_layers.sh ROOT    Prints one line per violation; exit status 1 if there is any.
set -eu
cd "$1"

# The rooms from the ground up, by path prefix: a file belongs to the longest prefix that fits, so that
# a sub-folder follows its room unless it has a line of its own. Rooms on one line stand beside each
# other. A header with the line `// Private to FOLDER.` is for the files under src/FOLDER alone.
rooms='core
ir
dnnl
ops
io/zip
io/native io/images
io/data
io/pt2 io/onnx
io
observe
config
model
flow
quantizers
flow/export
flow/lower/export
runtime/kernels
runtime/gemm
runtime
debug'

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
    # The room of a path below src/: the longest known prefix; empty for none.
    function room_of(path) {
        while (sub(/\/[^\/]*$/, "", path)) if (path in rank) return path
        return ""
    }
    # The folder that a header is private to; empty for none.
    function owner_of(header,   path, text, owner) {
        if (header in owners) return owners[header]
        owner = ""
        path = "src/" header
        while ((getline text < path) > 0 && text ~ /^(\/\/.*)?$/)
            if (sub(/^\/\/ Private to /, "", text)) { sub(/\.$/, "", text); owner = text }
        close(path)
        return owners[header] = owner
    }
    # The target of a quoted include, as the rules see it.
    function check_room(room, target,   other, owner) {
        if (target ~ /^tare\//) return
        other = room_of(target)
        if (target !~ /\//) report("includes are written from src/")
        else if (other == "") report("\"" target "\" is in no room of src/")
        else if (other != room && rank[other] >= rank[room]) report(room " may not include " other)
        else if ((owner = owner_of(target)) != "" && index(file, "src/" owner "/") != 1)
            report("\"" target "\" is private to " owner)
    }
    function check(target,   room) {
        if (file ~ /^src\//) {
            room = room_of(substr(file, 5))
            if (room == "") report("no room of src/ holds " file)
            else check_room(room, target)
        } else if (target ~ /^tare\/[^\/]*\.h$/) return
        else if (file ~ /^include\//) report("a public header may include public headers only")
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
        root = folder = file
        sub(/\/.*/, "", root)
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
            if (!angle || target ~ /^tare\// || (room_of(target) != "" && exists("src/" target)))
                check(target)
        }
        close(file)
    }
    END {
        if (!files) { print "no sources found"; exit 1 }
        printf "%d files, %d violations\n", files, bad
        exit bad > 0
    }'

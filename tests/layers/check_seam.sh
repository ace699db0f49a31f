#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory and files are reached through one table of calls, src/core/system/system.c: no other object of the
# library or the command line may name the functions behind it.
# usage: check_seam.sh OBJECTS_OF_THE_LIBRARY OBJECTS_OF_THE_COMMAND_LINE (folders)
set -eu

functions='malloc calloc realloc reallocarray aligned_alloc posix_memalign memalign valloc strdup strndup free
open openat creat close read pread readv write pwrite writev fsync fdatasync sync rename renameat
unlink unlinkat remove mkdir rmdir link symlink mmap munmap stat lstat fstat fstatat access realpath
opendir readdir closedir scandir ftw nftw mkstemp mkdtemp tmpfile ftruncate truncate flock
fopen fdopen freopen fread getline getdelim getrandom getentropy'

# What stays outside, and why:
# mapping.c puts zeros in the place of lost pages, in a signal handler.
# The command line looks at paths before the work begins, makes folders for reports, removes the files
# that a metric command has read, reads /proc/cpuinfo and the states that it sends over MPI, and frees the text of open_memstream, which the C library allocates.
allowed='src/core/system/mapping.c.o mmap
cli/options/files.c.o stat
cli/support/output.c.o stat
cli/support/output.c.o access
cli/support/output.c.o mkdir
cli/support/output.c.o unlink
cli/support/configs.c.o stat
cli/bench/machine.c.o fopen
cli/support/ranks.c.o fopen
cli/support/ranks.c.o fread
cli/support/page.c.o free'

found=$(find "$1/src" "$2/cli" -name '*.c.o' ! -path '*/src/core/system/system.c.o' | LC_ALL=C sort)
[ -n "$found" ] || { echo 'no objects found'; exit 1; }
# shellcheck disable=SC2086 # The objects are words.
nm -u -A $found | FUNCTIONS=$functions ALLOWED=$allowed awk '
    BEGIN {
        count = split(ENVIRON["FUNCTIONS"], name, /[ \n]+/)
        for (i = 1; i <= count; i++) is_behind[name[i]] = 1
        rules = split(ENVIRON["ALLOWED"], rule, "\n")
    }
    # "open64" and "__open_2" are "open" in other clothes.
    function plain(symbol) {
        sub(/@.*/, "", symbol)
        if (symbol ~ /^__.*_(chk|2)$/) { sub(/^__/, "", symbol); sub(/_(chk|2)$/, "", symbol) }
        sub(/64$/, "", symbol)
        return symbol
    }
    function is_allowed(object, symbol,   i, part, at) {
        for (i = 1; i <= rules; i++) {
            split(rule[i], part, " ")
            at = part[1]
            if (part[2] != symbol) continue
            if (substr(object, length(object) - length(at)) == "/" at) return 1
        }
        return 0
    }
    {
        object = $1
        sub(/:$/, "", object)
        objects[object] = 1
        symbol = plain($NF)
        if (symbol in is_behind && !is_allowed(object, symbol)) {
            print object ": " symbol " (use core/memory/alloc.h, core/system/file.h, tare/memory.h or tare/file.h)"
            bad++
        }
    }
    END {
        for (o in objects) n++
        printf "%d objects, %d calls past the seam\n", n, bad
        exit bad > 0
    }'

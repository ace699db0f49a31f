#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What documents point at exists: files behind links, names that are links' texts in those files, and files that
# pages about the code name.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . \( -name .git -o -name build \) -prune -o -type f -print | sed 's|^\./||' >"$work/files"
sed -nE 's|^\+\+\+ b/||p' docs/recipes/*.patch >>"$work/files" # what recipes add

tab=$(printf '\t')

complain() {
    echo "$1"
    echo "$1" >>"$work/failures"
}

# The links of a page, a line each: the target, a tab, the text. Links to other sites are left out.
links() {
    grep -oE '\[[^][]*\]\([^)]*\)' "$1" | sed -E "s/^\[([^]]*)\]\(([^)]*)\)\$/\2$tab\1/" |
        grep -vE '^(https?|mailto):' || true
}

# Does a page have the heading that an anchor names?
has_heading() { # page, anchor
    sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g' | grep -qxF -e "$2"
}

# A name that is the text of a link to a source occurs in that source.
check_links() { # page, its folder
    links "$1" >"$work/links"
    while IFS=$tab read -r target text; do
        file=$2/${target%%#*}
        case $target in "#"*) file=$1 ;; esac
        [ -e "$file" ] || { complain "$1: there is no $target"; continue; }
        case $target in
        *.md#* | "#"*) has_heading "$file" "${target#*#}" || complain "$1: there is no heading $target" ;;
        *.c | *.h | *.def) ;;
        *) continue ;;
        esac
        name=$(echo "$text" | sed -nE 's/^`([A-Za-z_][A-Za-z0-9_]*)`$/\1/p')
        [ -z "$name" ] || grep -qw -e "$name" "$file" || complain "$1: $target has no '$name'"
    done <"$work/links"
}

# `graph.c`, `ir/graph.c`, `src/ir/graph.c` and `prepare*.c` are ends of paths; words in capitals stand for any name.
check_paths() {
    grep -oE '`[^` ]+`' "$1" | tr -d '`' | grep -E '^[A-Za-z0-9_./*-]+\.(c|h|def|json|py|sh|cmake|patch)$' |
        sort -u >"$work/paths" || true
    while IFS= read -r path; do
        pattern=$(echo "$path" | sed -E 's/[A-Z][A-Z_]+/*/g; s/\./\\./g; s/\*/[^\/]*/g')
        grep -qE "(^|/)$pattern$" "$work/files" || complain "$1: there is no file $path"
    done <"$work/paths"
}

# The checks find what they look for.
printf '[`no_such_name`](src/ir/graph.c) [a](nowhere.md) [b](README.md#none) `ir/none.c`\n' >"$work/page"
check_links "$work/page" . >/dev/null
check_paths "$work/page" >/dev/null
[ "$(wc -l <"$work/failures")" -eq 4 ]
rm "$work/failures"

for page in *.md docs/*.md docs/*/*.md; do
    [ ! -e "$page" ] || check_links "$page" "$(dirname "$page")"
done
for page in docs/architecture.md docs/tour.md docs/recipes/*.md; do
    [ ! -e "$page" ] || check_paths "$page"
done
[ ! -e "$work/failures" ]

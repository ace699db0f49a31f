#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The section COMMANDS of man/tare.1 is what `tare help --man` writes, and man can read the page.
# To renew it:
#   { sed '/^\.SH COMMANDS$/q' man/tare.1; tare help --man; sed -n '/^\.SH MODELS$/,$p' man/tare.1; } >new && mv new man/tare.1
. tests/cli/support.sh

sed -n '/^\.SH COMMANDS$/,/^\.SH MODELS$/p' man/tare.1 | sed '1d;$d' >"$work/section"
expect 0 help --man
cmp "$work/stdout" "$work/section" || fail 'man/tare.1 is out of date: see the head of this test'

# The rest of the page names no option that does not exist.
sed '/^\.SH COMMANDS$/,/^\.SH MODELS$/d' man/tare.1 | sed 's/\\-/-/g' | grep -oE -- '--[a-z][a-z-]*' | sort -u >"$work/named"
option_rows | awk '{ print "--" $2 }' | sort -u >"$work/known"
unknown=$(comm -23 "$work/named" "$work/known")
[ -z "$unknown" ] || fail "man/tare.1 names options that no command has:" $unknown

if command -v groff >/dev/null 2>&1; then
    groff -man -Tutf8 -ww man/tare.1 >"$work/page" 2>"$work/warnings" || fail 'groff cannot read man/tare.1'
    [ ! -s "$work/warnings" ] || fail "groff warns: $(cat "$work/warnings")"
fi

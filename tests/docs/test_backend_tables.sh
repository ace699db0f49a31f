#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/backends/NAME.md is what `tare backend table NAME` writes, for every built-in backend.
# To renew them: for n in $(tare backend list); do tare backend table $n >docs/backends/$n.md; done
set -eu
count=0
for name in $("$TARE_CLI" backend list); do
    "$TARE_CLI" backend table "$name" | cmp - "docs/backends/$name.md"
    count=$((count + 1))
done
[ "$count" -gt 0 ]
[ "$count" -eq "$(find docs/backends -name '*.md' | wc -l)" ] || {
    echo "docs/backends holds pages of backends that do not exist"
    exit 1
}

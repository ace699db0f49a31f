#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the demo (examples/demo.c) of the release build. `make demo` builds first.
set -eu
cd "$(dirname "$0")/.."
demo=build/release/examples/demo
if [ ! -x "$demo" ]; then
    echo "demo: $demo is missing; 'make demo' builds it" >&2
    exit 1
fi
"$demo" build/demo
cat <<'EOF'
Next: build/bin/tare explain build/demo/digits_x86.safetensors
      build/bin/tare compare data/digits/digits.safetensors build/demo/digits_x86.safetensors --data data/digits/test.npz
EOF

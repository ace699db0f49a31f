#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/operators.md says what the sources say.
set -eu
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
python3 tools/op_coverage.py --check

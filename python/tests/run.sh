#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test of the Python package with the first interpreter that has NumPy: that of build/venv (scripts/setup.sh
# makes it), or the machine's. Exit status 77: there is none, a skip.
# usage: run.sh PACKAGE_FOLDER PYTHON TEST.py
set -eu
here=$(cd "$(dirname "$0")" && pwd) # absolute: kernels of notebooks run elsewhere
package=$1 python=$2 test=$3
for candidate in "$here/../../build/venv/bin/python3" "$python" python3; do
    if "$candidate" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # Bytecode stays out of the source folders, and of an environment that was installed without it.
        unset PYTHONDONTWRITEBYTECODE
        export PYTHONPATH="$package:$here" PYTHONPYCACHEPREFIX="$here/../../build/pycache"
        exec env ${TARE_PRELOAD:+LD_PRELOAD="$TARE_PRELOAD"} "$candidate" "$test"
    fi
done
echo "SKIP: no Python of 3.11 or newer with NumPy: python3 -m venv build/venv && build/venv/bin/pip install numpy"
exit 77

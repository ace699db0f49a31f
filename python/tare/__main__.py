# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tare``, and the program ``tare`` that an installed wheel has."""
import os
import signal
import sys

from . import _native


def main() -> None:
    """Runs the command of sys.argv, and ends with its status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the interpreter does not get to handle it in between
    sys.exit(_native.command_line([b"tare", *(os.fsencode(argument) for argument in sys.argv[1:])]))


if __name__ == "__main__":
    main()

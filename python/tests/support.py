# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: the network of handwritten digits, and a folder for files."""
import pathlib
import sys
import tempfile
import unittest

import numpy as np

import tare

TOP = pathlib.Path(__file__).resolve().parents[2]
DIGITS = TOP / "data/digits/digits.safetensors"
ANNOTATED = TOP / "examples/data/annotate.pt2"


def digits(count=32):
    """The float model and images."""
    return tare.load(DIGITS), np.load(TOP / "data/digits/test.npz")["x"][:count]


def prepared_digits(count=32):
    """Prepared for x86, with the images to calibrate it."""
    model, images = digits(count)
    return tare.prepare_fx(model, backend_config="x86"), images


def quantized_digits(count=32):
    """Converted, with images."""
    prepared, images = prepared_digits(count)
    prepared.calibrate(images)
    return tare.convert_fx(prepared, backend_config="x86"), images


class Case(unittest.TestCase):
    """A test with a folder of its own, self.folder."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)


def main():
    """Runs the tests of the calling file; a file all of whose tests are skipped counts as skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=1)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun and len(result.skipped) == result.testsRun:
        for _, reason in result.skipped[:1]:
            print(f"SKIP: {reason}")
        sys.exit(77)

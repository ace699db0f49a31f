#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the costs of steps (src/runtime/tune/step_costs.def) to measured times of steps.

    build/bin/tare bench NET.int8.safetensors --against NET.safetensors --layers --json > NET.json   (for many networks, one thread)
    python3 bench/step_costs.py *.json

Prints the rows of the table with new constants, by least squares of relative errors in which longer steps count more (by the
root of their time), with constants of at least 0. The rows are the table's own, and what a time is predicted from is the
library's (build/release/bench/step_features). The comment of a row has the number of steps, the ratio of all predicted to all
measured time, and the quartiles of the ratio of each step. Rows of few steps stay as they are. Needs numpy and scipy.
"""
import collections
import pathlib
import re
import subprocess
import sys

import numpy as np
from scipy.optimize import nnls

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE, FEATURES = ROOT / "src/runtime/tune/step_costs.def", ROOT / "build/release/bench/step_features"
LEAST_STEPS = 8


def rows_of_table():
    """What comes before the constants in each row, and the row."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("STEP_COST(")]
    return [(re.match(r"STEP_COST\([^,]*,[^,]*,[^,]*", line).group(), line) for line in lines]


def fit(samples):
    x, t = np.array([s[1:] for s in samples]), np.array([s[0] for s in samples])
    weights = np.sqrt(np.sqrt(t)) / t
    constants, _ = nnls(x * weights[:, None], t * weights)
    return constants, x @ constants, t


def main():
    done = subprocess.run([FEATURES, *sys.argv[1:]], capture_output=True, text=True, check=True)
    rows, found = rows_of_table(), collections.defaultdict(list)
    for line in done.stdout.splitlines():
        row, *numbers = line.split()
        sample = [float(number) for number in numbers]
        found[int(row)].append(sample)
        if int(row) != len(rows) - 1:
            found[len(rows) - 1].append(sample)  # which is for steps of any kind
    for i, (head, line) in enumerate(rows):
        if len(found[i]) < LEAST_STEPS:
            print(line)
            continue
        constants, predicted, measured = fit(found[i])
        values = ", ".join(f"{c:.3g}" for c in constants)
        quartiles = " ".join(f"{q:.2f}" for q in np.quantile(predicted / measured, (0.25, 0.5, 0.75)))
        print(f"{head}, {values}) // {len(found[i])}, {predicted.sum() / measured.sum():.2f}, {quartiles}")


if __name__ == "__main__":
    main()

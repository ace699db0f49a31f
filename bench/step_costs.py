#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the costs of steps (src/runtime/tune/step_costs.def) to measured times of steps.

    build/bin/tare bench NET.int8.safetensors --against NET.safetensors --layers --json > NET.json   (for many networks, one thread)
    python3 bench/step_costs.py *.json

Prints the rows of the table: for each kind of step the constants of step_costs.h, by least squares of relative errors in which
longer steps count more (by the root of their time), with constants of at least 0. The comment of a row has the number of steps,
the ratio of all predicted to all measured time, and the quartiles of the ratio of each step. Needs numpy and scipy.
"""
import collections
import json
import pathlib
import sys

import numpy as np
from scipy.optimize import nnls

# (kind, the first operator or part of the kernel's name, whether the first input is quantized or None): the rows, the first that
# fits first.
ROWS = [("quantized layer", "depthwise", None), ("quantized layer", "", None), ("quantized row block", "", None),
        ("layer", "dw", None), ("layer", "", None), ("quantized elements", "quantize", False), ("quantized elements", "dequantize", None),
        ("quantized elements", "look_up", None), ("quantized elements", "", None), ("elements", "silu", None),
        ("elements", "gelu", None), ("elements", "sigmoid", None), ("elements", "", None), ("reorder", "", True), ("reorder", "", None),
        ("copy", "permute", None), ("copy", "transpose", None), ("copy", "", None), ("rows", "", None), ("quantized rows", "", None), ("attention", "", None),
        ("matmul", "", None), ("pool", "", None), ("quantized pool", "", None), ("mean", "", None), ("batch_norm", "", True),
        ("batch_norm", "", None), ("cat", "", None), ("quantized cat", "", None), ("resize", "", None), ("pad", "", None),
        ("", "", None)]
LEAST_STEPS = 8
NEAR_BYTES = 1 << 19  # as in step_costs.c


def rounded_up(x, to):
    return -(-x // to) * to


def features(step, peak):
    """As tare__step_predict_ns computes them."""
    elements = int(np.prod(step["output_shape"], dtype=np.int64))
    shape = step["output_shape"]
    channels = max((shape[1] if len(shape) > 2 else shape[-1]) if shape else 1, 1)
    macs = step["macs"]
    padded = elements / channels * rounded_up(channels, 16) * rounded_up(max(macs // max(elements, 1), 1), 4) if macs else 0
    rate = peak["int8_gops"] if step["multiplies_codes"] else peak["float_gflops"]
    return [1, step["bytes"] / peak["l2_gbs"], max(step["bytes"] - NEAR_BYTES, 0) / peak["l2_gbs"],
            elements * max(len(step["nodes"]), 1) / peak["float_gflops"], 2 * macs / rate, 2 * padded / rate]


def row_of(step):
    for row in ROWS:
        kind, kernel, quantized = row
        is_kernel = kernel in step.get("kernel", "") or kernel == step.get("op", "")
        if kind in ("", step["kind"]) and is_kernel and quantized in (None, step["multiplies_codes"]):
            return row
    raise ValueError(step["kind"])


def main():
    found = collections.defaultdict(list)
    for path in sys.argv[1:]:
        bench = json.loads(pathlib.Path(path).read_text())
        peak = bench["machine"]["peak"]
        for step in bench["layers"] + bench.get("against_layers", []):
            if step["median_ms"] > 0:
                sample = (features(step, peak), step["median_ms"] * 1e6)
                found[row_of(step)].append(sample)
                found[ROWS[-1]].append(sample)
    for kind, kernel, quantized in ROWS:
        samples = found[kind, kernel, quantized]
        if len(samples) < LEAST_STEPS:
            continue
        x, t = np.array([s[0] for s in samples]), np.array([s[1] for s in samples])
        weights = np.sqrt(np.sqrt(t)) / t
        constants, _ = nnls(x * weights[:, None], t * weights)
        ratios = x @ constants / t
        asks = {None: "ANY", True: "QUANTIZED", False: "FLOATS"}[quantized]
        values = ", ".join(f"{c:.3g}" for c in constants)
        quartiles = " ".join(f"{q:.2f}" for q in np.quantile(ratios, (0.25, 0.5, 0.75)))
        print(f'STEP_COST({kind}, {kernel}, {asks}, {values}) // {len(samples)}, {(x @ constants).sum() / t.sum():.2f}, {quartiles}')


if __name__ == "__main__":
    main()

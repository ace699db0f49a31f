#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the networks that export_models.py wrote, and puts the table into docs/models.md.

    python tools/export_models.py build/models
    python tools/model_table.py build/models --tare build/bin/tare [NAME ..]

Each network runs in float and is compared with torch's outputs; it is quantized for x86 with its calibration inputs,
runs in integers on inputs that calibration has not seen, and both forms are timed in turns on one thread. Beside the
default mapping stands torch's own for x86, which gives up a bit of each activation. Needs numpy.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BEGIN, END = "<!-- table: begin, written by tools/model_table.py -->", "<!-- table: end -->"
HEAD = """| network | multiply-accumulates | float error | operators in integers | multiply-accumulates in integers | \
SQNR | SQNR with torch's mapping | size, float and int8 | time, float and int8 | faster |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        sys.exit(f"tare {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def arrays(path):
    with np.load(path) as file:
        return [file[name] for name in sorted(file.files)]


def float_error(expected, found):
    """The largest error relative to the largest value, over all outputs."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(expected, found, strict=True))


def sqnr(expected, found):
    """Of all outputs together, in dB."""
    signal = sum(float(np.square(a, dtype=np.float64).sum()) for a in expected)
    noise = sum(float(np.square(a.astype(np.float64) - b).sum()) for a, b in zip(expected, found, strict=True))
    return 10 * np.log10(signal / noise)


def quantized_outputs(tare, stem, folder, *more):
    """Of the integer model, which is left at int8.safetensors."""
    int8 = folder / "int8.safetensors"
    run(tare, "quantize", f"{stem}.safetensors", "--backend", "x86", "--calibrate", f"{stem}.calibration.npz",
        "--batch", 4, "-o", int8, "--report", folder, *more)
    run(tare, "run", int8, "--input", f"{stem}.inputs.npz", "--output", folder / "int8.npz")
    return arrays(folder / "int8.npz")


def measure(tare, stem, folder, seconds):
    model, inputs, int8 = f"{stem}.safetensors", f"{stem}.inputs.npz", folder / "int8.safetensors"
    run(tare, "run", model, "--input", inputs, "--output", folder / "float.npz")
    by_torch = quantized_outputs(tare, stem, folder, "--qconfig", "x86")
    by_default = quantized_outputs(tare, stem, folder)
    times = json.loads(run(tare, "bench", int8, "--against", model, "--input", inputs, "--seconds", seconds, "--json"))
    found = arrays(folder / "float.npz")
    coverage = json.loads((folder / "coverage.json").read_text())
    return {"error": float_error(arrays(f"{stem}.outputs.npz"), found), "sqnr": sqnr(found, by_default),
            "torch_sqnr": sqnr(found, by_torch), "coverage": coverage, "bytes": [os.path.getsize(model), os.path.getsize(int8)],
            "ms": [times["against"]["median_ms"], times["model"]["median_ms"]]}


def row(name, m):
    c = m["coverage"]
    macs = f"{c['macs'] / 1e9:.2f} G" if c["macs"] >= 1e8 else f"{c['macs'] / 1e6:.1f} M"
    sizes = " and ".join(f"{size / 1e6:.1f}" for size in m["bytes"])
    times = " and ".join(f"{ms:.3g}" if ms < 100 else f"{ms:.0f}" for ms in m["ms"])
    return (f"| {name} | {macs} | {m['error']:.1e} | {c['quantized_operators']} of {c['operators']} | "
            f"{100 * c['quantized_macs'] / c['macs']:.1f} % | {m['sqnr']:.1f} dB | "
            f"{m['torch_sqnr']:.1f} dB | {sizes} MB | {times} ms | "
            f"{m['ms'][0] / m['ms'][1]:.2f} |")


def write_table(path, rows):
    text = path.read_text()
    before, rest = text.split(BEGIN)
    path.write_text(before + BEGIN + "\n" + "\n".join([HEAD, *rows]) + "\n" + END + rest.split(END)[1])


def main():
    parser = argparse.ArgumentParser(description="Measure exported networks and write the table of docs/models.md.")
    parser.add_argument("folder", help="what export_models.py wrote")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; the table is then printed, not written")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--docs", type=pathlib.Path, metavar="FILE",
                        default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "models.md")
    parser.add_argument("--seconds", type=int, default=2, help="for each pair of times")
    options = parser.parse_intermixed_args()
    names = options.names or sorted(path.name[:-len(".outputs.npz")]
                                    for path in pathlib.Path(options.folder).glob("*.outputs.npz"))
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            stem = os.path.join(options.folder, name)
            rows.append(row(name, measure(options.tare, stem, pathlib.Path(folder), options.seconds)))
        print(rows[-1], flush=True)
    if not options.names:
        write_table(options.docs, rows)


if __name__ == "__main__":
    main()

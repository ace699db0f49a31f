#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the networks of export_models.py in ONNX Runtime, as `tare export --to onnx` writes them, with tare.

    pip install numpy onnx onnxruntime
    python tools/export_models.py build/models --small
    python tools/check_onnx_export.py build/models --tare build/bin/tare [NAME ..] [--opset N] [--docs docs/onnx.md]

Each network is written in float and quantized for x86 (lowered, and in reference form), must pass the ONNX checker with
full_check, and runs on the inputs that calibration has not seen. A step is the scale of the last quantization before an
output; where there is none, a 255th of the output's range. What is read back must print as what was written.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

BEGIN, END = "<!-- onnx export: begin, written by tools/check_onnx_export.py -->", "<!-- onnx export: end -->"
FORMS = {"float": None, "int8": [], "reference": ["--stop", "reference"]}


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise RuntimeError(f"tare {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def arrays(path):
    with np.load(path) as file:
        return {name: file[name] for name in sorted(file.files)}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feed(model, inputs):
    """By name, else in order."""
    wanted = [i.name for i in model.get_inputs()]
    if set(wanted) <= set(inputs):
        return {name: inputs[name] for name in wanted}
    return dict(zip(wanted, inputs.values(), strict=True))


def last_scale(model, name):
    """The scale of the QuantizeLinear nearest before the value `name`; None where there is none."""
    makers = {o: n for n in model.graph.node for o in n.output}
    constants = {t.name: t for t in model.graph.initializer}
    seen, front = set(), [name]
    while front:
        following = []
        for value in front:
            node = makers.get(value)
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            if node.op_type == "QuantizeLinear" and node.input[1] in constants:
                return float(onnx.numpy_helper.to_array(constants[node.input[1]]).max())
            following += node.input
        front = following
    return None


def step_of(model, name, values):
    return last_scale(model, name) or float(max(np.ptp(values) / 255, 1e-12))


def steps_apart(path, expected, found):
    """The largest difference of all outputs in steps, and the share of elements that differ by more than one."""
    model = onnx.load(path)
    worst, beyond, count = 0.0, 0, 0
    for info, a, b in zip(model.graph.output, expected, found, strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        apart = np.abs(a - b) / step_of(model, info.name, a)
        worst, beyond, count = max(worst, float(apart.max())), beyond + int((apart > 1.001).sum()), count + apart.size
    return worst, beyond / count


def convert(tare, stem, form, folder):
    if form == "float":
        return f"{stem}.safetensors"
    out = folder / f"{form}.safetensors"
    run(tare, "quantize", f"{stem}.safetensors", "--backend", "x86", "--calibrate", f"{stem}.calibration.npz", "--batch", 4,
        *FORMS[form], "-o", out)
    return out


def check(tare, stem, form, folder, opset, inputs):
    model, out = convert(tare, stem, form, folder), folder / f"{form}.onnx"
    run(tare, "export", model, "--to", "onnx", "--opset", opset, "-o", out)
    onnx.checker.check_model(str(out), full_check=True)
    if run(tare, "print", model) != run(tare, "print", out):
        raise RuntimeError("what is read back prints differently")
    run(tare, "run", model, "--input", f"{stem}.inputs.npz", "--output", folder / "ours.npz")
    ours = list(arrays(folder / "ours.npz").values())
    runner = session(out)
    theirs = runner.run(None, feed(runner, inputs))
    if form == "float":
        return max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)) for a, b in zip(ours, theirs, strict=True)), 0.0
    return steps_apart(out, ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tare", default="build/bin/tare")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--forms", default="float,int8,reference")
    parser.add_argument("--docs", type=pathlib.Path)
    options = parser.parse_args()
    names = options.names or sorted(p.name[:-len(".inputs.npz")] for p in options.folder.glob("*.inputs.npz"))
    lines, failures = [], 0
    for name in names:
        stem, cells = options.folder / name, []
        inputs = arrays(f"{stem}.inputs.npz")
        for form in options.forms.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    worst, beyond = check(options.tare, stem, form, pathlib.Path(folder), options.opset, inputs)
                    cells.append(f"{worst:.1e}" if form == "float" else f"{worst:.2f} ({100 * beyond:.2g} %)")
                except Exception as e:  # one network's failure is a cell, not the end
                    failures += 1
                    cells.append("fails")
                    print(f"{name} {form}: {e}", file=sys.stderr)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if options.docs:
        text = options.docs.read_text()
        head = "| network | " + " | ".join(options.forms.split(",")) + " |\n|" + " --- |" * (1 + len(options.forms.split(",")))
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        options.docs.write_text(text[:begin] + "\n" + head + "\n" + "\n".join(lines) + "\n" + text[end:])
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())

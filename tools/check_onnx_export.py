#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the networks of export_models.py in ONNX Runtime, as `tare export --to onnx` writes them, with tare.

    pip install numpy onnx onnxruntime
    python tools/export_models.py build/models --small
    python tools/check_onnx_export.py build/models --tare build/bin/tare [NAME ..] [--opset N] [--docs docs/onnx.md]

Each network is written in float and quantized for x86 (lowered, and in reference form), must pass the ONNX checker with
full_check, must print the same when it is read back, and runs on the inputs that calibration has not seen:

- by layer: every quantization in ONNX Runtime is given the integers that tare has computed before it, and makes its own;
  they differ by at most one step. Printed are the largest difference and the share of integers that differ at all.
- at the output: from the inputs on, in steps of the last quantization before the output (where there is none, a 255th of
  the output's range). Deep networks with random weights amplify one step in an early layer, in tare alone as well.
"""
import argparse
import json
import struct
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

BEGIN, END = "<!-- onnx export: begin, written by tools/check_onnx_export.py -->", "<!-- onnx export: end -->"
MOST_OUTPUTS = 60  # that tare run writes
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
    return feed_names([i.name for i in model.get_inputs()], inputs)


def feed_names(wanted, inputs):
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


# --- layer by layer ---

def with_outputs(source, target, names):
    """The model with these nodes as its results."""
    data = source.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    graph = json.loads(header["__metadata__"]["tare.graph"])
    for module in graph["modules"]:  # or what is written over would show instead
        if module.get("config", {}).get("inplace"):
            module["config"]["inplace"] = False
    for node in graph["nodes"]:
        if node["op"] == "output":
            node["args"] = [{"tuple": [{"node": name} for name in names]}]
    header["__metadata__"]["tare.graph"] = json.dumps(graph)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size:])
    return [node["name"] for node in graph["nodes"]]


def cut(model, names):
    """Each of these values is a result, and an input of what reads it."""
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    scales, types = {}, {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.output[0] in names:
            scales[node.output[0]] = constants[node.input[1]], constants[node.input[2]]
            types[node.output[0]] = onnx.helper.np_dtype_to_tensor_dtype(constants[node.input[2]].dtype)
        for i, name in enumerate(node.input):
            if name in names:
                node.input[i] = f"{name}/given"
    del model.graph.output[:]
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, types[name], None))
        model.graph.input.append(onnx.helper.make_tensor_value_info(f"{name}/given", types[name], None))
    return scales


def layers_apart(tare, path, source, stem, folder, inputs):
    """The largest difference of integers, and the share of those that differ; None where there are none."""
    model = onnx.load(path)
    per_tensor = {t.name for t in model.graph.initializer if not t.dims}
    nodes = with_outputs(source, folder / "all.safetensors", [])
    names = [n.output[0] for n in model.graph.node
             if n.op_type == "QuantizeLinear" and n.output[0] in nodes and set(n.input[1:]) <= per_tensor]
    if not names:
        return None
    ours = []
    for first in range(0, len(names), MOST_OUTPUTS):
        some = names[first:first + MOST_OUTPUTS]
        with_outputs(source, folder / "all.safetensors", some)
        run(tare, "run", folder / "all.safetensors", "--input", f"{stem}.inputs.npz", "--output", folder / "all.npz")
        with np.load(folder / "all.npz") as file:
            ours += [file[f"output.{i}" if len(some) > 1 else file.files[0]] for i in range(len(some))]
    scales = cut(model, set(names))
    onnx.save(model, folder / "cut.onnx")
    runner, given = session(folder / "cut.onnx"), {}
    for name, values in zip(names, ours, strict=True):
        scale, zero = scales[name]
        codes = np.rint(values / scale.astype(np.float64)) + zero
        given[name] = np.asarray(np.clip(codes, np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)).astype(zero.dtype)
    wanted = [i.name for i in runner.get_inputs() if not i.name.endswith("/given")]
    fed = feed_names(wanted, inputs) | {f"{name}/given": codes for name, codes in given.items()}
    fed = {i.name: fed[i.name] for i in runner.get_inputs()}
    worst, apart, count = 0, 0, 0
    for info, found in zip(runner.get_outputs(), runner.run(None, fed), strict=True):
        difference = np.abs(found.astype(np.int64) - given[info.name])
        worst, apart, count = max(worst, int(difference.max())), apart + int((difference > 0).sum()), count + found.size
    return worst, apart / count


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
        error = max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)) for a, b in zip(ours, theirs, strict=True))
        if not error < 1e-4:
            raise RuntimeError(f"the outputs are {error:g} apart")
        return f"{error:.1e}"
    worst, beyond = steps_apart(out, ours, theirs)
    at_output = f"{worst:.2f}" + (f" ({100 * beyond:.2g} % beyond 1)" if beyond > 0 else "")
    by_layer = layers_apart(tare, out, model, stem, folder, inputs)
    if by_layer is None:
        return f"- · {at_output}"
    if by_layer[0] > 1:
        raise RuntimeError(f"a layer is {by_layer[0]} steps apart")
    return f"{by_layer[0]} ({100 * by_layer[1]:.2g} %) · {at_output}"


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
                    cells.append(check(options.tare, stem, form, pathlib.Path(folder), options.opset, inputs))
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

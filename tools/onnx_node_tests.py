#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the backend node tests of the PyPI package `onnx` through `tare run`.

    python3 tools/onnx_node_tests.py [--tare build/bin/tare] [--docs docs/onnx.md] [NAME..]

needs the packages onnx and numpy; no test of this project runs it. Each test is a model of a node
or a few, with inputs and expected outputs. A test passes when its outputs are right in shape,
dtype and value, is refused when tare says why it does not import it, and fails otherwise: by a
wrong output, a crash, or more than the time allowed.

Inputs that a model has to know while it is read (axes, shapes, ..) are inputs of the graph in these
tests; where tare says so, they become initializers, as they are in models that exporters write.
Tests of opsets beyond 21 are run under opset 21 where the operator is valid there, else counted as
out of scope; so are those before 11 under 11.

--docs writes the table between the marks of that file. --pack FILE.zip writes a small selection of
the tests that pass, which tests/io/onnx replays.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile

warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

LEAST, MOST = 11, 21
SECONDS = 30
MARKS = ("<!-- node tests -->", "<!-- end of node tests -->")
NEEDS_CONSTANT = re.compile(r"depends on the data|must be constant|expected a constant")


def opset_of(model):
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def at_opset(model, version):
    """The model under another opset, where its operators are valid; else None."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for o in copy.opset_import:
        if o.domain in ("", "ai.onnx"):
            o.version = version
    copy.ir_version = min(copy.ir_version, 10)
    try:
        onnx.checker.check_model(copy)
    except onnx.checker.ValidationError:
        return None
    return copy


def in_range(model):
    """(model to run, restamped?) or (None, _) where it is out of scope."""
    version = opset_of(model)
    if LEAST <= version <= MOST:
        return model, False
    if any(o.domain not in ("", "ai.onnx") for o in model.opset_import):
        return None, True
    return at_opset(model, MOST if version > MOST else LEAST), True


def with_constants(model, inputs, kept):
    """The model with all inputs but `kept` as initializers, and the inputs left."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    left = {}
    for info in list(copy.graph.input):
        if info.name in kept or info.name not in inputs:
            if info.name in inputs:
                left[info.name] = inputs[info.name]
            continue
        copy.graph.initializer.append(numpy_helper.from_array(inputs[info.name], info.name))
        copy.graph.input.remove(info)
    return copy, left


def by_position(inputs):
    """Some names of these files are names of Python's, which the graph gives a number."""
    if len(inputs) == 1:
        return {"x": array for array in inputs.values()}
    return {"input.%d" % i: array for i, array in enumerate(inputs.values())}


def has_open_size(model, name):
    info = next(i for i in model.graph.input if i.name == name)
    return any(not d.HasField("dim_value") for d in info.type.tensor_type.shape.dim)


def call_tare(tare, folder, model, inputs):
    """(outputs or None, message, crashed?)"""
    model_path = os.path.join(folder, "model.onnx")
    input_path, output_path = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    onnx.save(model, model_path)
    np.savez(input_path, **by_position(inputs))
    if os.path.exists(output_path):
        os.remove(output_path)
    command = [tare, "run", model_path, "--input", input_path, "--as-is", "--output", output_path]
    for name, array in inputs.items():
        # A size of the file without a number: the test's input has one.
        if array.ndim > 0 and has_open_size(model, name):
            command += ["--shape", "%s=%s" % (name, "x".join(map(str, array.shape)))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, "more than %d seconds" % SECONDS, True
    if done.returncode == 0:
        found = np.load(output_path)
        return [found[n] for n in found.files], "", False
    message = done.stderr.strip()
    crashed = done.returncode < 0 or not message.startswith("tare:") or "Sanitizer" in message
    return None, message, crashed


def differs(test, expected, found):
    if len(expected) != len(found):
        return "%d outputs, expected %d" % (len(found), len(expected))
    for i, (e, f) in enumerate(zip(expected, found)):
        e = np.asarray(e)
        if e.shape != f.shape:
            return "output %d has shape %s, expected %s" % (i, f.shape, e.shape)
        if e.dtype != f.dtype:
            return "output %d is %s, expected %s" % (i, f.dtype, e.dtype)
        # The default tolerance is less than half a step of float16.
        rtol = max(test.rtol, 2e-3) if e.dtype == np.float16 else test.rtol
        if not np.allclose(e.astype(np.float64), f.astype(np.float64), rtol, test.atol, True):
            return "output %d differs" % i
    return ""


def is_plain(value):
    return isinstance(value, np.ndarray) or np.isscalar(value)


def run_test(tare, folder, test, keep=None):
    """(verdict, message): passed, refused, failed, or out of scope."""
    model, _ = in_range(test.model)
    if model is None:
        return "out of scope", "opset %d" % opset_of(test.model)
    message = ""
    for ins, outs in test.data_sets:
        if not all(is_plain(v) for v in list(ins) + list(outs)) or any(
            np.asarray(v).dtype.kind in "OSUV" or np.asarray(v).dtype.num > 100 for v in ins
        ):
            ins = outs = None
        if ins is None:
            inputs = {}
        else:
            inputs = {i.name: np.asarray(v) for i, v in zip(model.graph.input, ins)}
        names = list(inputs)
        used, left = model, inputs
        for kept in (names, names[:1], []):
            used, left = with_constants(model, inputs, kept)
            found, message, crashed = call_tare(tare, folder, used, left)
            if crashed:
                return "failed", message
            if found is not None or not NEEDS_CONSTANT.search(message):
                break
        if found is None:
            return "refused", message
        if outs is None:
            return "failed", "an input that it cannot take passed"
        message = differs(test, outs, found)
        if message:
            return "failed", message
        if keep is not None:
            keep(test, used, left, outs)
    return "passed", ""


def operator_of(test):
    """The operator that a test is about: its name says it where the model was expanded."""
    name = test.name[len("test_") :]
    nodes = [n.op_type for n in test.model.graph.node]
    if len(set(nodes)) == 1:
        return nodes[0]
    known = {n.lower(): n for n in (s.name for s in onnx.defs.get_all_schemas())}
    plain = name.replace("_", "")
    best = max((k for k in known if plain.startswith(k)), key=len, default=None)
    return known[best] if best else nodes[0]


def table(results):
    rows = collections.defaultdict(collections.Counter)
    for test, verdict, _ in results:
        rows[operator_of(test)][verdict] += 1
    lines = ["| operator | passed | refused | failed | out of scope |", "|---|---|---|---|---|"]
    total = collections.Counter()
    for name in sorted(rows):
        c = rows[name]
        total.update(c)
        lines.append(
            "| %s | %s |"
            % (name, " | ".join(str(c[v] or "") for v in ("passed", "refused", "failed", "out of scope")))
        )
    lines.append(
        "| **all** | %s |"
        % " | ".join("**%d**" % total[v] for v in ("passed", "refused", "failed", "out of scope"))
    )
    return "\n".join(lines)


def write_docs(path, results):
    text = open(path).read()
    begin, end = (text.index(m) for m in MARKS)
    head = "Of onnx %s, by `tools/onnx_node_tests.py`:\n\n" % onnx.__version__
    text = text[: begin + len(MARKS[0])] + "\n" + head + table(results) + "\n" + text[end:]
    open(path, "w").write(text)


class Pack:
    """The smallest passing tests of every operator, deterministic to the byte."""

    def __init__(self, path, each=2, most_bytes=3000):
        self.path, self.each, self.most = path, each, most_bytes
        self.found = collections.defaultdict(list)

    def keep(self, test, model, inputs, outputs):
        if test.name.endswith("_expanded") or "_expanded_ver" in test.name:
            return
        arrays = list(inputs.values()) + [np.asarray(o) for o in outputs]
        size = model.ByteSize() + sum(a.nbytes for a in arrays)
        if size <= self.most:
            self.found[operator_of(test)].append((size, test, model, inputs, outputs))

    def write(self):
        with zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:

            def put(name, data):
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(info, data)

            for operator in sorted(self.found):
                chosen = sorted(self.found[operator], key=lambda f: (f[0], f[1].name))[: self.each]
                for _, test, model, inputs, outputs in chosen:
                    put(test.name + "/model.onnx", model.SerializeToString(deterministic=True))
                    for kind, arrays in (("in", inputs), ("out", name_outputs(outputs))):
                        with tempfile.TemporaryFile() as f:
                            np.savez(f, **arrays)
                            f.seek(0)
                            put("%s/%s.npz" % (test.name, kind), f.read())


def name_outputs(outputs):
    if len(outputs) == 1:
        return {"output": np.asarray(outputs[0])}
    return {"output.%d" % i: np.asarray(o) for i, o in enumerate(outputs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tare", default="build/bin/tare")
    parser.add_argument("--docs")
    parser.add_argument("--pack")
    parser.add_argument("--verbose", action="store_true", help="print every test that is refused too")
    parser.add_argument("names", nargs="*", help="run these tests only (a substring is enough)")
    options = parser.parse_args()
    tests = [
        t
        for t in load_model_tests(kind="node")
        if t.model is not None and (not options.names or any(n in t.name for n in options.names))
    ]
    pack = Pack(options.pack) if options.pack else None
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            verdict, message = run_test(options.tare, folder, test, pack.keep if pack else None)
            results.append((test, verdict, message))
            if verdict == "failed" or (options.verbose and verdict == "refused"):
                print("%s %s: %s" % (verdict, test.name, message.replace(folder, "")), flush=True)
    print(json.dumps(collections.Counter(v for _, v, _ in results)))
    if options.docs:
        write_docs(options.docs, results)
    if pack:
        pack.write()
    return 1 if any(v == "failed" for _, v, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes networks with torch and with tare, and compares what both print.

    pip install torch torchvision numpy
    python tools/compare_torch.py build/compare [NAME ..] [--small] [--backend x86 qnnpack] [--form ptq qat]

Each network of export_models.py goes through prepare and convert of torch.ao.quantization and through `tare quantize`,
with the default qconfig mapping of each backend and one batch of data. The form of training is prepared in training
mode and sees the data in evaluation, where no number is random and none depends on the batch. Printed models are
compared at three stages: prepared (before data), reference and lowered. Text must be equal; floats and zero points may
be a little apart, since no two float convolutions sum in the same order. FOLDER keeps the texts that differ, and
results.json.
"""
import argparse
import copy
import gc
import itertools
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torch.ao.quantization as tq
from torch import fx, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.ao.quantization import quantize_fx as qfx
from torch.ao.quantization.backend_config import qnnpack, x86
from torch.ao.quantization.fx.tracer import QuantizationTracer

import export_models
import tare_export

BACKENDS = {"x86": x86.get_x86_backend_config, "qnnpack": qnnpack.get_qnnpack_backend_config}
FORMS = ("ptq", "qat")
STAGES = ("prepare", "reference", "lower")
# Full networks on small pictures: the graph does not depend on the size where no pool asks for more.
SIDE, SIDES = 64, {"inception_v3": 299, "vit_b_16": 224, "swin_t": 224}
# Operators that stay float on both sides: torch watches the numbers and masks that they get, and cannot calibrate.
LEFT_FLOAT = {"minilm": {"unsqueeze": "unsqueeze", "expand": "expand"}, "gpt": {"operator.mul": operator.mul},
              "spellings": {f"operator.{name}": getattr(operator, name)
                            for name in ("add", "mul", "sub", "truediv", "floordiv")}}
# Relative: scales behind layers that sum in another order.
TOLERANCE = 1e-3

# --- texts ---

NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|(?<=zero_point=)-?\d+)(?!\w)")


def text_of(module):
    """What torch prints, without runs of blank lines and the hint at its end."""
    return str(module).replace("\n\n\n\n", "\n\n").split("# To see more debug info")[0].rstrip() + "\n"


def numbers_apart(a, b):
    """None for two lines that differ in more than numbers, else (largest relative difference, of zero points)."""
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return None
    floats, points = 0.0, 0
    for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
        if "." in x or "e" in x:
            u, v = float(x), float(y)
            floats = max(floats, abs(u - v) / max(abs(u), abs(v), 1e-30)) if u != v else floats
        else:
            points = max(points, abs(int(x) - int(y)))
    return floats, points


def compare(expected, found):
    """(line number, torch's, ours) of the first difference or None, and how far numbers are apart."""
    ours, theirs = found.splitlines(), expected.splitlines()
    floats, points = 0.0, 0
    for i in range(max(len(ours), len(theirs))):
        a = theirs[i] if i < len(theirs) else "(nothing)"
        b = ours[i] if i < len(ours) else "(nothing)"
        apart = (0.0, 0) if a == b else numbers_apart(a, b)
        if apart is None:
            return (i + 1, a.strip(), b.strip()), (floats, points)
        floats, points = max(floats, apart[0]), max(points, apart[1])
    return None, (floats, points)


# --- networks ---

def make(name, is_small):
    """(module in eval mode, inputs to calibrate with)."""
    module, inputs, _ = export_models.make(name, is_small)
    if not is_small and inputs[0].dim() == 4:
        side = SIDES.get(name, SIDE)
        inputs = (inputs[0][:, :, :side, :side].contiguous(),)
    if getattr(module, "aux_logits", False):  # a second head, in training only, for large pictures only
        module.aux_logits, module.AuxLogits = False, None
    return module, inputs


class TakesTrace(QuantizationTracer):
    """In torch's place: what the exporter traced, with the module in which each node was called."""

    def trace(self, root):
        graph = copy.deepcopy(root.graph)
        for node in graph.nodes:
            stack = list(node.meta.get("nn_module_stack", {}).values())
            self.node_name_to_scope[node.name] = stack[-1] if stack else ("", None)
        return graph


def quantized_value_of(module):
    return module.graph.python_code("self").src


def make_linears_plain(traced):
    """Of attention, which the exporter traces through: torch observes linears of the exact class only."""
    for path, m in list(traced.named_modules()):
        if isinstance(m, NonDynamicallyQuantizableLinear):
            linear = nn.Linear(m.in_features, m.out_features, m.bias is not None)
            linear.weight, linear.bias = m.weight, m.bias
            traced.set_submodule(path, linear)


def torchs_input(module, inputs, options):
    """What torch is given: the module itself where torch traces it like our exporter, else the exporter's trace."""
    traced, _ = tare_export.trace(module, inputs, by_example=options.get("by_example", False))
    make_linears_plain(traced)
    attributes = set(vars(module))
    try:
        graph = QuantizationTracer([], []).trace(module)
        own = fx.GraphModule(module, graph)
    except Exception as e:  # whatever the module's code raises on a traced value
        return traced, f"torch cannot trace it: {type(e).__name__}"
    finally:
        for name in set(vars(module)) - attributes:  # constants that the trace has hung on the module
            delattr(module, name)
    return (module, "") if quantized_value_of(own) == quantized_value_of(traced) else (traced, "torch traces it into other calls")


# --- torch ---

def left_float(name, form):
    """Types that the mapping leaves float, by name. Torch's default for training refuses every embedding."""
    return {**LEFT_FLOAT.get(name, {}), **({"torch.nn.Embedding": nn.Embedding} if form == "qat" else {})}


def mapping_of(backend, form, floats):
    made = (tq.get_default_qat_qconfig_mapping if form == "qat" else tq.get_default_qconfig_mapping)(backend)
    for kind in floats.values():
        made.set_object_type(kind, None)
    return made


def torchs_texts(module, inputs, backend, form, floats, is_calibrated=True):
    """Stage -> text, or -> the exception that torch raises there."""
    torch.backends.quantized.engine = backend
    qfx.QuantizationTracer = TakesTrace if isinstance(module, fx.GraphModule) else QuantizationTracer
    config = BACKENDS[backend]()
    found = {}
    stage = "prepare"
    try:
        mapping = mapping_of(backend, form, floats)
        if form == "qat":
            prepared = qfx.prepare_qat_fx(module.train(), mapping, inputs, backend_config=config).eval()
        else:
            prepared = qfx.prepare_fx(module, mapping, inputs, backend_config=config)
        found[stage] = text_of(prepared)
        stage = "calibrate"
        if is_calibrated:
            with torch.no_grad():
                prepared(*inputs)
        stage = "reference"
        found[stage] = text_of(qfx.convert_to_reference_fx(copy.deepcopy(prepared), backend_config=config))
        stage = "lower"
        found[stage] = text_of(qfx.convert_fx(prepared, backend_config=config))
    except Exception as e:  # torch's own failures are results
        found[stage] = e
    return found


# --- tare ---

class TareError(Exception):
    """tare refused; the message is its own."""


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise TareError(done.stderr.strip())
    return done.stdout


def tares_mapping(tare, backend, form, floats, folder):
    """The same as mapping_of, as a file."""
    path = folder / "mapping.json"
    path.write_text(json.dumps({"default_qat" if form == "qat" else "default": backend}))
    mapping = json.loads(run(tare, "qconfig", "show", path, "--json"))
    mapping["object_type"] += [[name, None] for name in floats]
    path.write_text(json.dumps(mapping))
    return path


def tares_texts(tare, model, data, count, backend, form, floats, folder):
    """Like torchs_texts. data: None where none runs through."""
    found = {}
    prepared, calibrated, out = (folder / f"{name}.safetensors" for name in ("prepared", "calibrated", "out"))
    stage = "prepare"
    try:
        mapping = tares_mapping(tare, backend, form, floats, folder)
        run(tare, "quantize", model, "--backend", backend, "--qconfig", mapping,
            "--lenient", *(["--qat"] if form == "qat" else []), "--stop", stage, "-o", prepared)
        found[stage] = text_of(run(tare, "print", prepared))
        stage = "calibrate"
        if data:
            run(tare, "quantize", prepared, "--backend", backend, "--calibrate", data, "--batch", count,
                "--stop", "prepare", "-o", calibrated)
        for stage in ("reference", "lower"):
            run(tare, "quantize", calibrated if data else prepared, "--backend", backend, "--lenient", "--stop", stage,
                "-o", out, *(["--report", folder] if stage == "lower" else []))
            found[stage] = text_of(run(tare, "print", out))
        found["coverage"] = json.loads((folder / "coverage.json").read_text())
    except TareError as e:
        found[stage] = e
    return found


# --- results ---

def verdict_of(theirs, ours, form):
    """Of one stage: a dict with verdict equal, numbers, differs, torch fails, tare fails or both fail."""
    for failed, a, b in (("torch", theirs, ours), ("tare", ours, theirs)):
        if isinstance(a, Exception):
            both = isinstance(b, Exception)
            return {"verdict": "both fail" if both else f"{failed} fails", "why": f"{type(a).__name__}: {a}"[:400]}
    if theirs is None or ours is None:
        return None
    first, (floats, points) = compare(theirs, ours)
    if first:
        return {"verdict": "differs", "line": first[0], "torch": first[1][:300], "tare": first[2][:300]}
    # A fake quantizer makes a whole step of a last digit, and layer upon layer of them something else.
    apart = form == "ptq" and (floats > TOLERANCE or points > 1)
    return {"verdict": "numbers" if apart else "equal", "floats": floats, "zero_points": points}


def keep_difference(folder, stem, stage, theirs, ours):
    if not isinstance(theirs, str) or not isinstance(ours, str):
        return
    (folder / f"{stem}.{stage}.torch.txt").write_text(theirs)
    (folder / f"{stem}.{stage}.tare.txt").write_text(ours)


def compare_network(options, name, scratch):
    """Yields (backend, form, stage -> verdict)."""
    module, inputs = make(name, options.small)
    export_options = export_models.NETWORKS[name][2]["export"]
    given, note = torchs_input(module, inputs, export_options)
    model, data = scratch / "model.safetensors", scratch / "data.npz"
    tare_export.export(module, inputs, model, **export_options)
    np.savez(data, **{n: t.numpy() for n, t in zip(tare_export.input_names(module, inputs), inputs)})
    for backend, form in itertools.product(options.backend, options.form):
        floats = left_float(name, form)
        theirs = torchs_texts(copy.deepcopy(given), inputs, backend, form, floats, not options.graphs_only)
        ours = tares_texts(options.tare, model, None if options.graphs_only else data, len(inputs[0]), backend, form,
                           floats, scratch)
        found = {"given": note} if note else {}
        found["coverage"] = ours.get("coverage")
        for stage in ("prepare", "calibrate", "reference", "lower"):
            verdict = verdict_of(theirs.get(stage), ours.get(stage), form)
            if verdict is None:
                continue
            found[stage] = verdict
            if verdict["verdict"] in ("differs", "numbers"):
                keep_difference(options.folder, f"{name}.{backend}.{form}", stage, theirs[stage], ours[stage])
        yield backend, form, found
        gc.collect()  # graphs and their modules hold each other


def show(name, backend, form, found, seconds):
    parts = []
    for stage, v in found.items():
        if stage in ("given", "coverage"):
            continue
        detail = v.get("why", "")
        if "line" in v:
            detail = f"line {v['line']}: torch '{v['torch'][:110]}', tare '{v['tare'][:110]}'"
        elif v.get("floats") or v.get("zero_points"):
            detail = f"{v['floats']:.0e}, {v['zero_points']}"
        parts.append(f"{stage}: {v['verdict']}" + (f" ({detail})" if detail else ""))
    print(f"{name} {backend} {form} [{seconds:.0f} s] " + "; ".join(parts), flush=True)


# --- docs/models.md ---

BEGIN, END = "<!-- torch: begin, written by tools/compare_torch.py -->", "<!-- torch: end -->"


def is_equal(found):
    return all(found.get(stage, {}).get("verdict") == "equal" for stage in STAGES)


def row(name, results):
    cells = [name]
    for backend in BACKENDS:
        c = results[f"{name} {backend} ptq"]["coverage"]
        cells.append(f"{c['quantized_operators']} of {c['operators']}")
        cells.append(f"{100 * c['quantized_weight_bytes'] / c['weight_bytes']:.1f} %")
        cells += ["yes" if is_equal(results[f"{name} {backend} {form}"]) else "no" for form in FORMS]
    floats = ", ".join(f"`{kind}`" for kind in LEFT_FLOAT.get(name, ()))
    notes = [results[f"{name} x86 ptq"].get("given", ""), floats and f"{floats} left float"]
    return f"| {' | '.join([*cells, '; '.join(note for note in notes if note)])} |"


def write_table(path, results):
    columns = [f"{backend}: {what}" for backend in BACKENDS
               for what in ("operators in integers", "weight bytes", "equal", "equal, QAT")]
    head = ["| " + " | ".join(["network", *columns, "torch"]) + " |", "|" + " --- |" * (len(columns) + 2)]
    names = sorted({key.split()[0] for key in results})
    rows = [row(name, results) for name in names  # those that have been through everything
            if all(f"{name} {backend} {form}" in results for backend in BACKENDS for form in FORMS)]
    text = path.read_text()
    before, rest = text.split(BEGIN)
    path.write_text("\n".join([before + BEGIN, *head, *rows, END + rest.split(END)[1]]))


def main():
    parser = argparse.ArgumentParser(description="Quantize networks with torch and with tare, compare what they print.")
    parser.add_argument("folder", type=pathlib.Path, help="where differences and results.json go")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these networks")
    parser.add_argument("--small", action="store_true", help="narrow, shallow relatives of the same topology")
    parser.add_argument("--graphs-only", action="store_true",
                        help="no data: scales are 1, and torch's search for the best histogram takes no time")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--backend", nargs="+", choices=list(BACKENDS), default=list(BACKENDS))
    parser.add_argument("--form", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--docs", type=pathlib.Path, metavar="FILE",
                        help="write the table of results.json between the marks of this file; compares nothing")
    options = parser.parse_intermixed_args()
    if options.docs:
        write_table(options.docs, json.loads((options.folder / "results.json").read_text()))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    results_path = options.folder / "results.json"
    results = json.loads(results_path.read_text()) if results_path.exists() else {}
    everything = [n for n, (_, _, more) in export_models.NETWORKS.items() if options.small or not more["only_small"]]
    for name in options.names or everything:
        with tempfile.TemporaryDirectory() as scratch:
            begin = time.monotonic()
            for backend, form, found in compare_network(options, name, pathlib.Path(scratch)):
                results[f"{name} {backend} {form}"] = found
                results_path.write_text(json.dumps(results, indent=1) + "\n")
                show(name, backend, form, found, time.monotonic() - begin)
                begin = time.monotonic()


if __name__ == "__main__":
    main()

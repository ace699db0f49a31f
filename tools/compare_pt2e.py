#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes exported programs with torchao and with tare, and compares what both print.

    pip install torch torchvision torchao numpy
    python tools/compare_pt2e.py build/compare [NAME ..] [--small] [--graphs-only] [--form xnnpack x86_qat ..]

Each network of export_models.py is exported by torch.export with an open batch and goes through prepare_pt2e and
convert_pt2e of torchao and through `tare quantize NAME.pt2 --quantizer ..`, by torchao's default configs. Printed
programs are compared prepared (before data) and converted. Text must be equal; scales and zero points may be a little
apart, since no two float convolutions sum in the same order. What is prepared for training sees no data, so that its
scales are 1. FOLDER keeps the texts that differ, and pt2e.json.
"""
import argparse
import copy
import gc
import json
import logging
import pathlib
import re
import tempfile
import time
import warnings

import numpy as np
import torch
from torchao.quantization.pt2e import quantize_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

import export_models
import tare_export
from compare_torch import TOLERANCE, TareError, compare, keep_difference, make, run, text_of

STAGES = ("prepare", "convert")
QUANTIZERS = {  # name -> torchao's quantizer with a default config of these options
    "XNNPACKQuantizer": lambda options: xnnpack.XNNPACKQuantizer().set_global(
        xnnpack.get_symmetric_quantization_config(**options)),
    "X86InductorQuantizer": lambda options: x86.X86InductorQuantizer().set_global(
        x86.get_default_x86_inductor_quantization_config(**options)),
}
FORMS = {  # name -> quantizer, options of its default config
    "xnnpack": ("XNNPACKQuantizer", {"is_per_channel": True}),
    "xnnpack_tensor": ("XNNPACKQuantizer", {}),
    "xnnpack_dynamic": ("XNNPACKQuantizer", {"is_per_channel": True, "is_dynamic": True}),
    "xnnpack_qat": ("XNNPACKQuantizer", {"is_per_channel": True, "is_qat": True}),
    "x86": ("X86InductorQuantizer", {}),
    "x86_dynamic": ("X86InductorQuantizer", {"is_dynamic": True}),
    "x86_qat": ("X86InductorQuantizer", {"is_qat": True}),
}


def is_qat(form):
    return FORMS[form][1].get("is_qat", False)


# --- torch ---

def prepared_by_torch(exported, form):
    quantizer, options = FORMS[form]
    prepare = quantize_pt2e.prepare_qat_pt2e if is_qat(form) else quantize_pt2e.prepare_pt2e
    return prepare(exported.module(), QUANTIZERS[quantizer](options))


def torchs_texts(exported, form, inputs=None):
    """stage -> text, or the exception that torch raised; None for inputs: no data runs through."""
    found, stage = {}, "prepare"
    try:
        prepared = prepared_by_torch(exported, form)
        found[stage] = text_of(prepared)
        stage = "convert"
        if inputs is not None and not is_qat(form):
            with torch.no_grad():
                prepared(*inputs)
        # A copy knows the names in use only, like a prepared program that comes from a file.
        found[stage] = text_of(quantize_pt2e.convert_pt2e(copy.deepcopy(prepared) if is_qat(form) else prepared))
    except Exception as e:  # torch's own failures are results
        found[stage] = e
    return found


# --- tare ---

def tares_texts(tare, program, data, form, folder):
    """Like torchs_texts. data: None where none runs through."""
    found, stage = {}, "prepare"
    quantizer, options = FORMS[form]
    prepared, calibrated, converted = (folder / f"{name}.safetensors" for name in ("prepared", "calibrated", "converted"))
    config = folder / "config.json"
    config.write_text(json.dumps({"global": {"default": options}}))
    try:
        run(tare, "quantize", program, "--quantizer", quantizer, "--quantizer-config", config, "--stop", "prepare",
            *(["--qat"] if is_qat(form) else []), "-o", prepared)
        found[stage] = text_of(run(tare, "print", prepared))
        stage = "convert"
        with_data = data is not None and not is_qat(form)
        if with_data:
            run(tare, "quantize", prepared, "--calibrate", data, "--stop", "prepare", "-o", calibrated)
        run(tare, "quantize", calibrated if with_data else prepared, "--stop", "reference", "--lenient", "-o", converted)
        found[stage] = text_of(run(tare, "print", converted))
    except TareError as e:
        found[stage] = e
    return found


# --- results ---

LITERALS = re.compile(r"(quantize_per_tensor\.default\(\w+, )([^,]+), (-?\d+),")


def marked(text, saw_data):
    """Zero points of quantize calls as compare_torch.compare knows them. Without data no parameters at all: torchao
    leaves weights' scales at 1 then, and tare computes them."""
    return LITERALS.sub(r"\1\2, zero_point=\3," if saw_data else r"\1,", text)


def verdict_of(theirs, ours, saw_data):
    """Of one stage: a dict with verdict equal, numbers, differs, torch fails, tare fails or both fail."""
    for failed, a, b in (("torch", theirs, ours), ("tare", ours, theirs)):
        if isinstance(a, Exception):
            both = isinstance(b, Exception)
            return {"verdict": "both fail" if both else f"{failed} fails", "why": f"{type(a).__name__}: {a}"[:400]}
    if theirs is None or ours is None:
        return None
    first, (floats, points) = compare(marked(theirs, saw_data), marked(ours, saw_data))
    if first:
        return {"verdict": "differs", "line": first[0], "torch": first[1][:300], "tare": first[2][:300]}
    return {"verdict": "numbers" if floats > TOLERANCE or points > 1 else "equal", "floats": floats, "zero_points": points}


def compare_network(options, name, scratch):
    """Yields (form, stage -> verdict)."""
    module, inputs = make(name, options.small)
    program, data = scratch / "program.pt2", scratch / "data.npz"
    np.savez(data, **{n: t.numpy() for n, t in zip(tare_export.input_names(module, inputs), inputs)})
    for wants_training in (False, True):
        forms = [form for form in options.form if is_qat(form) == wants_training]
        if not forms:
            continue
        exported = export_models.program(module.train(wants_training), inputs)
        torch.export.save(exported, program)
        for form in forms:
            saw_data = not options.graphs_only and not wants_training
            theirs = torchs_texts(exported, form, None if options.graphs_only else inputs)
            ours = tares_texts(options.tare, program, None if options.graphs_only else data, form, scratch)
            found = {stage: verdict_of(theirs.get(stage), ours.get(stage), saw_data) for stage in STAGES}
            for stage, verdict in found.items():
                if verdict and verdict["verdict"] in ("differs", "numbers"):
                    keep_difference(options.folder, f"{name}.{form}", stage, theirs[stage], ours[stage])
            yield form, {stage: verdict for stage, verdict in found.items() if verdict}
            gc.collect()  # graphs and their modules hold each other


def show(name, form, found, seconds):
    parts = []
    for stage, v in found.items():
        detail = v.get("why", "")
        if "line" in v:
            detail = f"line {v['line']}: torch '{v['torch'][:110]}', tare '{v['tare'][:110]}'"
        elif v.get("floats") or v.get("zero_points"):
            detail = f"{v['floats']:.0e}, {v['zero_points']}"
        parts.append(f"{stage}: {v['verdict']}" + (f" ({detail})" if detail else ""))
    print(f"{name} {form} [{seconds:.0f} s] " + "; ".join(parts), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Quantize programs with torchao and with tare, compare what they print.")
    parser.add_argument("folder", type=pathlib.Path, help="where differences and pt2e.json go")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these networks")
    parser.add_argument("--small", action="store_true", help="narrow, shallow relatives of the same topology")
    parser.add_argument("--graphs-only", action="store_true",
                        help="no data: scales are 1, and torch's search for the best histogram takes no time")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--form", nargs="+", choices=list(FORMS), default=list(FORMS))
    options = parser.parse_intermixed_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    results_path = options.folder / "pt2e.json"
    results = json.loads(results_path.read_text()) if results_path.exists() else {}
    everything = [n for n, (_, _, more) in export_models.NETWORKS.items() if options.small or not more["only_small"]]
    for name in options.names or everything:
        with tempfile.TemporaryDirectory() as scratch:
            begin = time.monotonic()
            for form, found in compare_network(options, name, pathlib.Path(scratch)):
                results[f"{name} {form}"] = found
                results_path.write_text(json.dumps(results, indent=1) + "\n")
                show(name, form, found, time.monotonic() - begin)
                begin = time.monotonic()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes 60 architectures with torch's prepare_fx and convert_fx and with tare's, and compares what both print.

    pip install torch torchvision timm transformers
    PYTHONPATH=build/dev/python python tools/compare_networks.py build/networks.json [NAME ..] [--table]

Weights are random, pictures small: the graphs do not depend on that. Both get the default mapping of x86 and one batch. Printed
models are compared line by line in three stages: prepared, reference and lowered; scales and zero points stand in the text. They may be
a thousandth apart, since no two float convolutions sum in the same order. Networks that are in the file are not run again;
--table prints the rows of docs/python.md.
"""
import argparse
import copy
import functools
import json
import operator
import pathlib
import sys
import time
import warnings

import numpy as np
import torch

import compare_torch
import tare
import tare_export
import zoo
import zoo_networks

TORCHVISION = """alexnet vgg11_bn squeezenet1_1 resnet18 resnext50_32x4d densenet121 googlenet inception_v3 mnasnet0_5 mobilenet_v2
mobilenet_v3_small regnet_y_400mf regnet_x_400mf shufflenet_v2_x0_5 efficientnet_b0 convnext_tiny swin_t vit_b_32 fcn_resnet50
lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large r2plus1d_18"""
TIMM = """convmixer_768_32 cspresnet50 dla46_c eca_resnet33ts ese_vovnet19b_dw fbnetc_100 ghostnetv2_100 hardcorenas_a hgnetv2_b0
hrnet_w18_small lcnet_050 mixnet_s mobilenetv4_conv_small mobileone_s0 repvgg_a0 res2net50_14w_8s rexnet_100 selecsls42b semnasnet_075
tf_efficientnet_lite0 tinynet_e deit_tiny_patch16_224"""
TRANSFORMERS = """albert bert distilbert electra roberta squeezebert gpt2 opt vit deit segformer mobilenet_v1 resnet regnet poolformer
t5_encoder"""
NAMES = [f"{source}/{name}" for source, names in (("torchvision", TORCHVISION), ("timm", TIMM), ("transformers", TRANSFORMERS))
         for name in names.split()]
# Operators that stay float on both sides: torch watches the positions and masks that they compute, and cannot calibrate.
LEFT_FLOAT = {"transformers/roberta": {"operator.add": operator.add, "operator.mul": operator.mul, "expand": "expand"},
              "transformers/gpt2": {"view": "view", "expand": "expand", "operator.getitem": operator.getitem},
              "transformers/opt": {"view": "view", "operator.add": operator.add, "operator.getitem": operator.getitem}}
STAGES = ("prepare", "reference", "lower")


def made(name):
    """(module, inputs by name), with small pictures where the architecture takes any."""
    torch.manual_seed(0)
    zoo_networks.PIXELS = 96 if "inception" in name else 64
    module, inputs = zoo.make(name, torch.Generator().manual_seed(0))
    return module, inputs(2)


def texts_of_tare(model, inputs, floats):
    """(stage -> text, or the exception; the calibrated model)."""
    found, stage, prepared = {}, "prepare", None
    mapping = tare.get_default_qconfig_mapping("x86")
    for kind in floats:
        mapping.set_object_type(kind, None)
    try:
        prepared = tare.prepare_fx(model, mapping, backend_config="x86")
        found[stage] = str(prepared).rstrip() + "\n"
        stage = "calibrate"
        prepared.calibrate(*inputs)
        stage = "reference"
        found[stage] = str(tare.convert_to_reference_fx(prepared, backend_config="x86")).rstrip() + "\n"
        stage = "lower"
        found[stage] = str(tare.convert_fx(prepared, backend_config="x86")).rstrip() + "\n"
    except Exception as error:  # a failure is a result
        found[stage] = error
    return found, prepared


class One(torch.nn.Module):
    """Its input's observer sees what it is given."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.linear(x)


def scale_of_tare(values):
    """Of tare's observer that has seen these values."""
    values = values.reshape(-1, 1)
    prepared = tare.prepare_fx(tare.from_torch(One(), (values,)), "x86", backend_config="x86")
    prepared.calibrate(values)
    reference = tare.convert_to_reference_fx(prepared, backend_config="x86")
    return float(np.asarray(reference.state_dict()["linear_input_scale_0"]).reshape(-1)[0])


def scale_of_torch(fresh, values):
    """Of torch's observer, a copy of the fresh one."""
    observer = copy.deepcopy(fresh)
    observer(values)
    return float(observer.calculate_qparams()[0])


def why(traced, tensors, floats, ours):
    """Of scales that differ: how far they are when tare's observer is given torch's values, and how far torch's are from torch's
    own when its values are changed in the last digits, as another order of summation does."""
    torch.backends.quantized.engine, compare_torch.qfx.QuantizationTracer = "x86", compare_torch.TakesTrace
    prepared = compare_torch.qfx.prepare_fx(copy.deepcopy(traced), compare_torch.mapping_of("x86", "ptq", floats), tensors,
                                            backend_config=compare_torch.BACKENDS["x86"]())
    found = {"observers": 0, "given": 0.0, "shaken": 0.0}
    own = ours.to_torch()

    def look(observer, inputs, name, fresh):
        values = inputs[0].detach()
        theirs, of_ours = scale_of_torch(fresh, values), float(own.get_submodule(name).calculate_qparams()[0])
        if abs(theirs - of_ours) <= compare_torch.TOLERANCE * theirs:
            return
        found["observers"] += 1
        found["given"] = max(found["given"], abs(theirs - scale_of_tare(values)) / theirs)
        for seed in range(8):
            noise = torch.randn(values.shape, generator=torch.Generator().manual_seed(seed))
            found["shaken"] = max(found["shaken"], abs(theirs - scale_of_torch(fresh, values * (1 + 1e-6 * noise))) / theirs)

    for name, module in prepared.named_modules():
        if type(module).__name__ == "HistogramObserver":
            module.register_forward_pre_hook(functools.partial(look, name=name, fresh=copy.deepcopy(module)))
    with torch.no_grad():
        prepared(*tensors)
    return found


def compare(name, folder):
    """Stage -> verdict, and what was compared. Texts that differ go to the folder."""
    module, inputs = made(name)
    # Both get one trace: what a tracer makes of a module is no part of quantization.
    try:
        traced, _ = tare_export.trace(module, (), inputs)
    except tare_export.ExportError:
        traced, _ = tare_export.trace(module, (), inputs, by_example=True)
    compare_torch.make_linears_plain(traced)
    tensors = tuple(inputs[node.target] for node in traced.graph.nodes if node.op == "placeholder" and node.target in inputs)
    floats = LEFT_FLOAT.get(name, {})
    ours, calibrated = texts_of_tare(tare.from_torch(module, (), kwargs=inputs), tensors, floats)
    theirs = compare_torch.torchs_texts(copy.deepcopy(traced), tensors, "x86", "ptq", floats)
    found = {stage: compare_torch.verdict_of(theirs.get(stage), ours.get(stage), "ptq")
             for stage in ("prepare", "calibrate", *STAGES[1:])}
    if found["lower"] is not None and found["lower"]["verdict"] == "numbers":
        found["lower"] |= why(traced, tensors, floats, calibrated)
    for stage, row in found.items():
        if row is not None and row["verdict"] in ("differs", "numbers"):
            compare_torch.keep_difference(folder, name.replace("/", "."), stage, theirs[stage], ours[stage])
    text = ours.get("lower")
    return {"nodes": len(traced.graph.nodes), "lines": text.count("\n") if isinstance(text, str) else 0,
            **{stage: row for stage, row in found.items() if row is not None}}


def cell(row, stage):
    verdict = row.get(stage, {}).get("verdict", "-")
    apart = row.get(stage, {}).get("floats", 0)
    if verdict == "numbers":
        return f"{apart:.0e} (given torch's values: {row[stage]['given']:.0e}; torch from torch: {row[stage]['shaken']:.0e})"
    return f"equal, {apart:.0e}" if verdict == "equal" and apart else verdict


def table(results):
    """Markdown."""
    lines = ["| network | nodes | prepared | reference | lowered |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {name} | {row.get('nodes', '-')} | " + " | ".join(cell(row, stage) for stage in STAGES) + " |"
              for name, row in results.items()]
    return "\n".join(lines)


def main():
    """Every network once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=pathlib.Path, help="the results, JSON; texts that differ go beside it")
    parser.add_argument("names", nargs="*", help="SOURCE/NAME; default: all 60")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    results = json.loads(options.file.read_text()) if options.file.exists() else {}
    for name in [] if options.table else options.names or NAMES:
        if name in results and not options.names:
            continue
        begin = time.perf_counter()
        try:
            results[name] = compare(name, options.file.parent)
        except Exception as error:  # of the tracer, or of the library that makes the network
            results[name] = {"error": f"{type(error).__name__}: {error}"[:400]}
        row = results[name]
        print(f"{name} [{time.perf_counter() - begin:.0f} s] {row.get('error', '')}" +
              ", ".join(f"{stage}: {row[stage]['verdict']}" for stage in ("prepare", "calibrate", *STAGES[1:]) if stage in row), flush=True)
        options.file.write_text(json.dumps(results, indent=1))
    if options.table:
        print(table(results))
    sys.exit(any(row.get(stage, {}).get("verdict") != "equal" for row in results.values() for stage in STAGES))


if __name__ == "__main__":
    main()

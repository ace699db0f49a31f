#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks training through `to_torch` on a GPU, and prints figures as JSON.

    pip install tare-*.whl && python tools/qat_gpu_check.py [--device cuda] [--epochs 9] [--out figures.json]

Needs torch and NumPy beside the package. It compares every fake quantizer on the device with tare on the CPU, bit by bit,
plain and compiled; trains the network of handwritten digits both ways; and times a step beside torch's own fake quantizers.
Ends with 1 where a bit differs, or where integers lose more than a percent of accuracy.
"""
import argparse
import json
import pathlib
import platform
import sys
import time
import warnings

import numpy as np
import torch
from torch.ao.quantization import disable_observer, enable_observer, get_default_qat_qconfig_mapping, quantize_fx

import tare

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "examples/python"))
import qat_digits  # noqa: E402


# --- bits ---

class Relu(torch.nn.Module):
    """Exact on every device, so that only fake quantizers can differ."""

    def forward(self, x):
        """max(x, 0)"""
        return torch.relu(x)


def fake_quantizers():
    """name -> constructor, for an activation with channels on axis 1."""
    tensor, channel = tare.MovingAverageMinMaxObserver, tare.MovingAveragePerChannelMinMaxObserver
    signed = {"dtype": tare.qint8, "quant_min": -128, "quant_max": 127}
    unsigned = {"dtype": tare.quint8, "quant_min": 0, "quant_max": 255}
    for kind in (tare.FakeQuantize, tare.FusedMovingAvgObsFakeQuantize):
        name = "fused" if kind is tare.FusedMovingAvgObsFakeQuantize else "plain"
        yield f"{name} tensor affine", kind.with_args(observer=tensor, **unsigned)
        yield f"{name} tensor symmetric", kind.with_args(observer=tensor, qscheme=tare.per_tensor_symmetric, **signed)
        yield f"{name} channel affine", kind.with_args(observer=channel, qscheme=tare.per_channel_affine, ch_axis=1, **unsigned)
        yield f"{name} channel symmetric", kind.with_args(observer=channel, qscheme=tare.per_channel_symmetric, ch_axis=1,
                                                          **signed)
    yield "fixed", tare.default_fixed_qparams_range_0to1_fake_quant


def batches(count=8, shape=(16, 24, 33)):
    """Magnitudes from 1e-5 to 100, channels of one sign, zeros, ties."""
    random = np.random.default_rng(1)
    for index in range(count):
        x = random.standard_normal(shape, dtype=np.float32) * np.float32(10.0 ** (index - 5))
        x[:, 0], x[:, 1], x[:, 2] = np.abs(x[:, 0]), -np.abs(x[:, 1]), 0
        x[0, :, :8] = np.round(x[0, :, :8] * 16) / 16
        yield x


def compare_bits(constructor, device, compiles):
    """Elements and statistics that differ between tare on the CPU and torch on the device."""
    backend = tare.BackendConfig("any").set_backend_pattern_config(
        tare.BackendPatternConfig("torch.relu").set_dtype_configs(
            [tare.DTypeConfig(kind, kind) for kind in (tare.quint8, tare.qint8)]))
    mapping = tare.QConfigMapping().set_global(tare.QConfig(activation=constructor, weight=tare.default_weight_fake_quant))
    model = tare.from_torch(Relu(), (torch.zeros(16, 24, 33),)).train()
    prepared = tare.prepare_qat_fx(model, mapping, backend_config=backend)
    module = prepared.to_torch().to(device)
    run = torch.compile(module) if compiles else module
    elements = states = total = 0
    for x in batches():
        on_device = torch.from_numpy(x).to(device)
        prepared.calibrate(x)
        run(on_device)
        states += tare.from_torch(run).__reduce__()[1][0] != prepared.__reduce__()[1][0]
        prepared.disable_observer()
        module.apply(disable_observer)
        expected, found = np.asarray(prepared(x)), run(on_device).detach().cpu().numpy()
        elements, total = elements + int((expected != found).sum()), total + found.size
        prepared.enable_observer()
        module.apply(enable_observer)
    return {"elements": total, "differing_elements": elements, "batches_with_differing_statistics": states}


def compare_layers(module, x):
    """Runs a network on the device and every fake quantizer's input again through the CPU's operator, which equals tare."""
    differing, total, hooks = [0], [0], []

    def look(layer, inputs, output):
        axis = -1 if layer.info.axis is None else layer.info.axis % inputs[0].dim()
        again, _ = torch.ops.tare.fake_quantize(inputs[0].detach().cpu(), layer.scale.cpu(), layer.zero_point.cpu(),
                                                layer.fake_quant_enabled.cpu(), axis, layer.info.quant_min,
                                                layer.info.quant_max)
        differing[0] += int((again != output.detach().cpu()).sum())
        total[0] += again.numel()
    for layer in module.modules():
        if isinstance(layer, torch.ao.quantization.FakeQuantizeBase):
            hooks.append(layer.register_forward_hook(look))
    with torch.no_grad():
        module(x)
    for hook in hooks:
        hook.remove()
    return {"elements": total[0], "differing_elements": differing[0]}


# --- training ---

def wait(device):
    """Until the device has done its work."""
    if device != "cpu":
        torch.cuda.synchronize()


def step_time(module, x, y, device, steps=60):
    """Milliseconds of a training step, the median of batches of ten."""
    optimizer, times = torch.optim.SGD(module.parameters(), 1e-3), []
    for index in range(steps):
        if index % 10 == 0:
            wait(device)
            begin = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if index % 10 == 9:
            wait(device)
            times.append((time.perf_counter() - begin) * 100)
    return round(float(np.median(times[1:])), 3)


def train_digits(options, compiles):
    """Trains, converts, and compares both ends."""
    torch.manual_seed(0)
    model = tare.load(qat_digits.DATA / "digits.safetensors")
    training, test = (np.load(qat_digits.DATA / f"{name}.npz") for name in ("train", "test"))
    x, y = (torch.from_numpy(training[name]).to(options.device) for name in ("x", "labels"))
    prepared = tare.prepare_qat_fx(model.train(), backend_config="x86")
    module = prepared.to_torch().to(options.device)
    run = torch.compile(module) if compiles else module
    begin = time.perf_counter()
    qat_digits.train(run, x, y, options.epochs)
    wait(options.device)
    seconds = time.perf_counter() - begin
    trained = tare.from_torch(run.eval())
    trained.disable_observer()
    module.apply(disable_observer)
    quantized = tare.convert_fx(trained, backend_config="x86")
    held_out = torch.from_numpy(test["x"]).to(options.device)
    with torch.no_grad():
        on_device = run(held_out).cpu().numpy()
    on_cpu = np.asarray(trained(test["x"]))
    return {"epochs": options.epochs, "seconds": round(seconds, 2),
            "float_accuracy": qat_digits.accuracy(model.eval(), test["x"], test["labels"]),
            "fake_quantized_accuracy": float((on_device.argmax(1) == test["labels"]).mean()),
            "int8_accuracy": qat_digits.accuracy(quantized, test["x"], test["labels"]),
            "logits_max_difference_device_and_tare": float(np.abs(on_device - on_cpu).max()),
            "same_class_device_and_tare": float((on_device.argmax(1) == on_cpu.argmax(1)).mean()),
            "fake_quantizers": compare_layers(module, held_out)}


def time_steps(options):
    """Of our fake quantizers, plain and compiled, and of torch's own, at two batch sizes."""
    model = tare.load(qat_digits.DATA / "digits.safetensors").train()
    figures = {}
    for batch in (32, 1024):
        x = torch.randn(batch, 1, 8, 8, device=options.device)
        y = torch.randint(0, 10, (batch,), device=options.device)
        prepared = tare.prepare_qat_fx(model, backend_config="x86")
        theirs = quantize_fx.prepare_qat_fx(model.to_torch().train(), get_default_qat_qconfig_mapping("x86"), (x.cpu(),))
        row = {"float": step_time(model.to_torch().to(options.device), x, y, options.device),
               "to_torch": step_time(prepared.to_torch().to(options.device), x, y, options.device),
               "torch's own": step_time(theirs.to(options.device), x, y, options.device)}
        if batch == 1024 and not options.no_compile:
            row["to_torch compiled"] = step_time(torch.compile(prepared.to_torch().to(options.device)), x, y, options.device)
        figures[f"batch {batch}"] = row
    return figures


def main():
    """Everything, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", help="write the figures here, too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    ways = [False] if options.no_compile else [False, True]
    figures = {"python": platform.python_version(), "torch": torch.__version__, "tare": tare.__version__,
               "device": torch.cuda.get_device_name() if options.device.startswith("cuda") else platform.processor(),
               "bits": {}, "training": {}}
    for compiles in ways:
        way = "compiled" if compiles else "plain"
        for name, constructor in fake_quantizers():
            torch._dynamo.reset()
            figures["bits"][f"{name}, {way}"] = compare_bits(constructor, options.device, compiles)
        torch._dynamo.reset()
        figures["training"][way] = train_digits(options, compiles)
    torch._dynamo.reset()
    figures["milliseconds of a training step"] = time_steps(options)
    good = all(row["differing_elements"] == row["batches_with_differing_statistics"] == 0 for row in figures["bits"].values())
    for row in figures["training"].values():
        good &= row["fake_quantizers"]["differing_elements"] == 0
        good &= row["int8_accuracy"] >= row["float_accuracy"] - 0.01
    figures["good"] = bool(good)
    text = json.dumps(figures, indent=1)
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n", encoding="utf-8")
    sys.exit(not good)


if __name__ == "__main__":
    main()

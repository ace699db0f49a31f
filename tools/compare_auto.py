#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts `tare quantize --auto` beside ONNX Runtime's and NNCF's static int8 on networks of zoo.py.

    pip install torch torchvision timm transformers onnx onnxruntime onnxscript nncf numpy
    make build
    python tools/compare_auto.py build/auto.json [NAME ..] --tare build/bin/tare [--budget SECONDS]
    python tools/compare_auto.py build/auto.json --table

All quantize with the same 32 samples and are compared with torch's float outputs on 16 others, in dB. The time of the model of --auto is
that of the plain recipe's model in turns with it, one sample, one thread. Networks that are in the file are not run again; --table
writes the table of docs/accuracy.md. Weights are random, but for settled batch norms: errors are those of shapes, not of trained networks.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import zoo

NAMES = """torchvision/squeezenet1_1 torchvision/shufflenet_v2_x0_5 torchvision/mnasnet0_5 torchvision/resnet18 torchvision/mobilenet_v2
timm/lcnet_050 timm/edgenext_xx_small timm/repghostnet_050 transformers/bert transformers/distilbert transformers/gpt2 transformers/vit
transformers/deit transformers/resnet""".split()
CALIBRATION = 32


def with_nncf(model, samples, inputs, expected):
    import nncf
    import onnx
    import onnxruntime as ort
    count = len(next(iter(samples.values())))
    items = [{n: x[i:i + zoo.EXAMPLES] for n, x in samples.items()} for i in range(0, count, zoo.EXAMPLES)]
    made = nncf.quantize(onnx.load(model), nncf.Dataset(items), subset_size=len(items))
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return zoo.quality(expected, zoo.in_batches(lambda batch: session.run(None, batch), inputs))[1]


def of_tare(tare, model, folder, expected, name, more):
    """dB on the tests, and the file."""
    out = folder / f"{name}.safetensors"
    begin = time.monotonic()
    said = zoo.run(tare, "quantize", model, "--backend", "x86", "--calibrate", folder / "calibration.npz", "--batch", zoo.EXAMPLES, "-o",
                   out, "--json", *more)
    seconds = time.monotonic() - begin
    zoo.run(tare, "run", out, "--input", folder / "inputs.npz", "--batch", zoo.EXAMPLES, "-o", folder / f"{name}.npz")
    kept = [trial["step"] for trial in json.loads(said).get("improvement", {}).get("trials", []) if trial["kept"]]
    return {"sqnr": zoo.quality(expected, zoo.arrays(folder / f"{name}.npz"))[1], "seconds": round(seconds, 1), "kept": kept}, out


def measure(name, options):
    import numpy as np
    import torch

    import export_models
    torch.set_num_threads(1)
    torch.manual_seed(0)
    zoo.CALIBRATION = CALIBRATION
    module, inputs = zoo.make(name, torch.Generator().manual_seed(0))
    calibration, examples, tests = inputs(CALIBRATION), inputs(zoo.EXAMPLES), inputs(zoo.TESTS)
    export_models.settle(module, [calibration])
    module.eval()
    with torch.no_grad():
        expected = zoo.in_batches(lambda batch: [zoo.first_tensor(module(**batch))], tests)[0]
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        os.chdir(folder)
        samples = {n: t.numpy() for n, t in calibration.items()}
        np.savez(folder / "inputs.npz", **{n: t.numpy() for n, t in tests.items()})
        np.savez(folder / "calibration.npz", **samples)
        onnx = folder / "model.onnx"
        with torch.no_grad():
            zoo.write_onnx(module, examples, str(onnx))
        found["plain"], plain = of_tare(options.tare, onnx, folder, expected, "plain", ["--no-check"])
        found["auto"], auto = of_tare(options.tare, onnx, folder, expected, "auto", ["--auto", "--budget", options.budget])
        one = json.loads(zoo.run(options.tare, "bench", auto, "--against", plain, "--input", folder / "inputs.npz", "--batch", 1, "--seconds",
                                 2, "--json"))
        found["ms"] = [one["against"]["median_ms"], one["model"]["median_ms"]]
        found["ort"] = zoo.measure_peer(folder, onnx, expected, 0)["sqnr"]
        try:
            found["nncf"] = with_nncf(onnx, samples, {n: t.numpy() for n, t in tests.items()}, expected)
        except Exception as error:  # a peer refuses what it likes
            found["nncf_refused"] = zoo.said_by(error)
    return found


def write_table(results):
    print("| network | plain | `--auto` | ONNX Runtime | NNCF | steps kept | time of a run |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, r in results.items():
        nncf = f"{r['nncf']:.1f}" if r.get("nncf") is not None else "refused"
        slower = 100 * (r["ms"][1] / r["ms"][0] - 1)
        steps = ", ".join(f"`{s}`" for s in dict.fromkeys(r["auto"]["kept"])) or "none"
        print(f"| {name} | {r['plain']['sqnr']:.1f} | {r['auto']['sqnr']:.1f} | {r['ort']:.1f} | {nncf} | {steps} | {slower:+.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--tare", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.file = options.file.resolve()
    results = json.loads(options.file.read_text()) if options.file.exists() else {}
    if options.table:
        return write_table(results)
    zoo.load()
    for name in options.names:
        if name in results:
            continue
        try:
            results[name] = measure(name, options)
        except Exception as error:  # the next network is another one
            print(f"{name}: {zoo.said_by(error)}", file=sys.stderr, flush=True)
            continue
        options.file.write_text(json.dumps(results, indent=1))
        print(name, results[name], flush=True)


if __name__ == "__main__":
    main()

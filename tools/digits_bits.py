#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes the digits network with weights of 4, 3 and 2 bits, plain and by `tare improve`, and prints docs/accuracy.md's table.

    make build
    python tools/digits_bits.py --tare build/bin/tare [--seeds 5] [--budget SECONDS]

A seed shuffles the training pictures, the first 128 of which calibrate (the last 8 of those choose steps); all of the test pictures count.
Needs numpy.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits"
SAMPLES = 128


def mapping(bits):
    """Activations of 8 bits, a scale for each output channel of weights of few bits."""
    most = 2 ** (bits - 1)
    return {"global": {"activation": {"class": "HistogramObserver", "kwargs": {"dtype": "torch.quint8"}},
                       "weight": {"class": "PerChannelMinMaxObserver",
                                  "kwargs": {"dtype": "torch.qint8", "qscheme": "torch.per_channel_symmetric", "quant_min": -most,
                                             "quant_max": most - 1}}}}


def accuracy(tare, model, folder):
    out = folder / "out.npz"
    subprocess.run([tare, "run", model, "--input", DIGITS / "test.npz", "--output", out, "-q"], check=True, stdout=subprocess.DEVNULL)
    with np.load(out) as found, np.load(DIGITS / "test.npz") as truth:
        return 100 * float((found[found.files[0]].argmax(1) == truth["labels"]).mean())


def measure(options, bits, seed, folder):
    rng = np.random.default_rng(seed)
    with np.load(DIGITS / "train.npz") as train:
        chosen = rng.permutation(len(train["labels"]))[:SAMPLES]
        np.savez(folder / "calibrate.npz", x=train["x"][chosen], labels=train["labels"][chosen])
    (folder / "mapping.json").write_text(json.dumps(mapping(bits)))
    common = ["--backend", "x86", "--qconfig", folder / "mapping.json", "--calibrate", folder / "calibrate.npz", "-q", "-o",
              folder / "model.safetensors"]
    found = []
    for command in (["quantize"], ["improve", "--budget", str(options.budget)]):
        subprocess.run([options.tare, command[0], DIGITS / "digits.safetensors", *command[1:], *common], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found.append(accuracy(options.tare, folder / "model.safetensors", folder))
    return found


def cell(values):
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tare", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        print(f"float: {accuracy(options.tare, DIGITS / 'digits.safetensors', folder):.2f} %")
        print("| bits of weights | plain | improved |\n| --- | --- | --- |")
        for bits in (4, 3, 2):
            plain, improved = zip(*(measure(options, bits, seed, folder) for seed in range(options.seeds)))
            print(f"| {bits} | {cell(plain)} | {cell(improved)} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/faults: a network with five planted faults of quantization, and its data.

usage: record_faults.py    (torch 2.15, numpy; tools/tare_export.py)

Six outputs of about the same size: a sound trunk, and five branches with one fault each:
- wide: a channel of a weight is 1,000 times larger than the others;
- tiny: a weight so small that no scale is small enough for it;
- side: its input is constant in the calibration data;
- extra: one calibration sample of its input is 1,000 times too large;
- mask: attention scores with a mask of the least float.
calibrate.npz has the faults of data; test.npz is what the network meets in use.
"""
import pathlib
import subprocess
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent / "faults"
WIDTH = 16


class Faults(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda: torch.nn.Linear(WIDTH, WIDTH)
        self.trunk, self.trunk2 = linear(), linear()
        self.wide, self.wide2 = linear(), linear()
        self.tiny, self.tiny2 = linear(), linear()
        self.side, self.extra = linear(), linear()
        self.query, self.key, self.value = linear(), linear(), linear()

    def forward(self, x, large, side, extra, mask):
        x = torch.relu(self.trunk2(torch.relu(self.trunk(x))))
        wide = self.wide2(torch.relu(self.wide(x)))
        tiny = self.tiny2(torch.relu(self.tiny(large)))
        scores = torch.matmul(self.query(x), self.key(x).transpose(-2, -1))
        attention = torch.matmul(torch.softmax(scores + mask, -1), self.value(x))
        return x, wide, tiny, self.side(side), self.extra(extra), attention


def make_model():
    torch.manual_seed(7)
    model = Faults().eval()
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, torch.nn.Linear):
                m.weight.normal_(0, 1.3 / WIDTH ** 0.5)
                m.bias.normal_(0, 0.1)
        model.wide.weight[3] *= 1000
        model.wide2.weight[:, 3] /= 1000
        model.tiny.weight *= 1e-7
    return model


def data(seed, samples, is_calibration):
    rng = np.random.default_rng(seed)
    normal = lambda: rng.standard_normal((samples, 6, WIDTH), dtype=np.float32)
    x, large, side, extra = normal(), normal() * np.float32(1e7), normal(), normal()
    mask = np.zeros((samples, 1, 6), np.float32)
    mask[:, :, 4:] = np.finfo(np.float32).min
    if is_calibration:
        side[:] = 0
        extra[5] *= 1000
    return {"x": x, "large": large, "side": side, "extra": extra, "mask": mask}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    np.savez_compressed(HERE / "calibrate.npz", **data(1, 32, True))
    np.savez_compressed(HERE / "test.npz", **data(2, 32, False))
    tool = pathlib.Path(__file__).resolve().parents[2] / "tools/tare_export.py"
    shapes = [f"--input={n}={s}" for n, s in (("x", "1x6x16"), ("large", "1x6x16"), ("side", "1x6x16"), ("extra", "1x6x16"), ("mask", "1x1x6"))]
    sys.exit(subprocess.call([sys.executable, tool, f"{__file__}:make_model", "-o", HERE / "model.safetensors", *shapes]))

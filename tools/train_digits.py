# SPDX-License-Identifier: Apache-2.0
"""Makes everything in data/digits but the README: splits the handwritten digits, trains the demo's
network on four fifths of them and writes it as a model file.

    pip install torch onnx scikit-learn numpy
    python tools/train_digits.py

With --onnx it only writes digits.onnx again, from the weights in digits.safetensors.

Needs about half a minute on two cores. The split depends on nothing but the seed; the weights also depend on the
torch version and the processor, so a new run gives a network of the same kind, not the same bytes.
The held-out images are looked at once, after the last epoch: nothing is chosen by them.
"""
import argparse
import gzip
import json
import math
import os
import shutil
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tare_export import export

SEED = 0
HELD_OUT = 360  # a fifth of 1,797
MAX_PIXEL = 16.0
EPOCHS = 60
BATCH = 32
PEAK_LEARNING_RATE = 4e-3
HERE = os.path.dirname(os.path.abspath(__file__))


class DigitsNet(nn.Module):
    """Two conv-bn-relu blocks, a residual block at half the size, and a linear head: 102,938 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 48, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(48)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(48, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64)
        self.relu2 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(64)
        self.relu3 = nn.ReLU()
        self.conv4 = nn.Conv2d(64, 64, 3, padding=1, bias=False)
        self.bn4 = nn.BatchNorm2d(64)
        self.relu4 = nn.ReLU()
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.pool(self.relu2(self.bn2(self.conv2(x))))
        y = self.relu3(self.bn3(self.conv3(x)))
        x = self.relu4(self.bn4(self.conv4(y)) + x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


def copy_digits(folder):
    """Puts scikit-learn's own file into `folder` and returns images and labels."""
    import sklearn.datasets

    path = os.path.join(folder, "digits.csv.gz")
    shipped = os.path.join(os.path.dirname(sklearn.datasets.__file__), "data", "digits.csv.gz")
    shutil.copyfile(shipped, path)
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    images = (table[:, :64] / MAX_PIXEL).astype(np.float32).reshape(-1, 1, 8, 8)
    return images, table[:, 64]


def split(images, labels, folder):
    """Splits by label share with a fixed seed and writes both parts."""
    from sklearn.model_selection import train_test_split

    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED)
    np.savez_compressed(os.path.join(folder, "train.npz"), x=train_x, labels=train_y)
    np.savez_compressed(os.path.join(folder, "test.npz"), x=test_x, labels=test_y)
    return [torch.from_numpy(part) for part in (train_x, train_y, test_x, test_y)]


def jitter(x):
    """Turns each image by up to 9 degrees, scales it by up to 10 % and moves it by up to 0.6 pixels."""
    count = len(x)
    angle = (torch.rand(count) * 2 - 1) * 0.16
    scale = 1 + (torch.rand(count) * 2 - 1) * 0.1
    cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
    shift = (torch.rand(count, 2) * 2 - 1) * 0.6 / 4  # the image is 2 units wide: 4 pixels each
    rows = torch.stack([torch.stack([cos, -sin, shift[:, 0]], 1), torch.stack([sin, cos, shift[:, 1]], 1)], 1)
    grid = functional.affine_grid(rows, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def train(network, x, y):
    steps = EPOCHS * ((len(x) + BATCH - 1) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=steps)
    network.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(x)).split(BATCH):
            loss = functional.cross_entropy(network(jitter(x[rows])), y[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: loss {total / len(x):.4f}", flush=True)


def correct(network, x, y):
    network.eval()
    with torch.no_grad():
        return int((network(x).argmax(1) == y).sum())


def stored_weights(path):
    """name -> tensor of a model file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    kinds = {"F32": torch.float32, "I64": torch.int64}
    return {name: torch.frombuffer(data, dtype=kinds[t["dtype"]], offset=t["data_offsets"][0],
                                   count=math.prod(t["shape"])).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def write_onnx(network, path):
    """The network as ONNX, batch norms apart: PRESERVE keeps the exporter from folding them, which fusion does later."""
    torch.onnx.export(network, (torch.zeros(1, 1, 8, 8),), path, dynamo=False, opset_version=17, input_names=["x"],
                      dynamic_axes={"x": {0: "batch"}}, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False)
    print(f"{path}: {os.path.getsize(path)} bytes")


def main():
    parser = argparse.ArgumentParser(description="Train the demo's digit network and write data/digits.")
    parser.add_argument("--out", default=os.path.join(HERE, "..", "data", "digits"), help="folder to write to")
    parser.add_argument("--onnx", action="store_true", help="only write digits.onnx, from digits.safetensors")
    options = parser.parse_args()
    folder = options.out
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "digits.safetensors")
    if options.onnx:
        network = DigitsNet()
        network.load_state_dict(stored_weights(path))
        return write_onnx(network.eval(), os.path.join(folder, "digits.onnx"))
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    train_x, train_y, test_x, test_y = split(*copy_digits(folder), folder)
    network = DigitsNet()
    train(network, train_x, train_y)
    for name, x, y in (("training", train_x, train_y), ("held out", test_x, test_y)):
        right = correct(network, x, y)
        print(f"{name}: {right} of {len(y)} right, {100 * right / len(y):.2f} %")
    export(network.eval(), test_x[:1], path)
    write_onnx(network, os.path.join(folder, "digits.onnx"))
    print(f"{sum(p.numel() for p in network.parameters())} parameters, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training on torch's own engine: the network of handwritten digits at 8 bits.

    python qat_digits.py                                          # one process
    python qat_digits.py --device cuda --compile                  # a GPU, compiled
    torchrun --standalone --nproc-per-node=2 qat_digits.py                  # distributed

tare prepares the float network, torch trains the module that `to_torch` gives, and tare converts what
`from_torch` takes back.
"""
import argparse
import os
import pathlib

import numpy as np
import torch
from torch.nn import functional

import tare

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/digits"


def shifted(x):
    """Each image moved by up to one pixel."""
    padded = functional.pad(x, (1, 1, 1, 1))
    rows, columns = (torch.randint(0, 3, (len(x),), device=x.device) for _ in range(2))
    size = torch.arange(x.shape[-1], device=x.device)
    samples = torch.arange(len(x), device=x.device)[:, None, None]
    return padded[samples, 0, (rows[:, None] + size)[:, :, None], (columns[:, None] + size)[:, None, :]][:, None]


def train(module, x, y, epochs, batch=32):
    """An ordinary loop of torch. In the last third the observers rest and the statistics of batch norms are frozen."""
    steps = epochs * (len(x) // batch)
    optimizer = torch.optim.SGD(module.parameters(), lr=5e-3, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    module.train()
    for epoch in range(epochs):
        if epoch == epochs * 2 // 3 and epochs > 2:
            module.apply(torch.ao.quantization.disable_observer)
            module.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats)
        for rows in torch.randperm(len(x), device=x.device)[:len(x) // batch * batch].split(batch):
            loss = functional.cross_entropy(module(shifted(x[rows])), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def accuracy(model, x, y):
    """Of a model of tare's, over NumPy arrays."""
    return float((np.asarray(model(x)).argmax(1) == y).mean())


def main():
    """Trains, converts and compares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="train through torch.compile")
    parser.add_argument("--out", help="write the converted model here")
    options = parser.parse_args()
    torch.manual_seed(0)
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if count > 1:
        torch.distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
        torch.manual_seed(rank)

    model = tare.load(DATA / "digits.safetensors")
    training, test = np.load(DATA / "train.npz"), np.load(DATA / "test.npz")
    prepared = tare.prepare_qat_fx(model.train(), backend_config="x86")
    module = prepared.to_torch().to(options.device)
    if count > 1:
        module = torch.nn.parallel.DistributedDataParallel(module)
    if options.compile:
        module = torch.compile(module)
    x, y = (torch.from_numpy(training[name][rank::count]).to(options.device) for name in ("x", "labels"))
    train(module, x, y, options.epochs)

    if rank == 0:
        quantized = tare.convert_fx(tare.from_torch(module.eval()), backend_config="x86")
        print(f"{count} process{'es' if count > 1 else ''}, {options.epochs} epochs on {options.device}")
        print(f"float {accuracy(model.eval(), test['x'], test['labels']):.4f}, "
              f"int8 {accuracy(quantized, test['x'], test['labels']):.4f}")
        if options.out:
            quantized.save(options.out)
    if count > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

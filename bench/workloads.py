# SPDX-License-Identifier: Apache-2.0
"""The networks that bench/compare.py times, and the files that every engine reads.

Random weights from a fixed seed, nothing is downloaded; batch norms have the statistics of random images. Of each
network a folder gets NAME.onnx, NAME.safetensors, our quantized models, inputs to calibrate with and to measure on, and
torch's outputs. Needs torch and torchvision (once); what exists already is not made again.
"""
import os
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGE, HIDDEN, TOKENS = (3, 224, 224), 384, 128
SHAPES = {"resnet50": IMAGE, "resnet18": IMAGE, "mobilenet_v2": IMAGE, "mobilenet_v3_large": IMAGE,
          "encoder": (TOKENS, HIDDEN), "linear": (1024,)}
CALIBRATION, EVALUATION = 32, {"linear": 128}  # samples; else 32

# How we quantize: engine -> the file that is quantized, and arguments of `tare quantize`. Where a network has several,
# the table takes the fastest of those that are as exact as the peer.
INDUCTOR = ("pt2", ["--quantizer", "X86InductorQuantizer"])
OURS = {name: {"int8": INDUCTOR, "int8 native": ("safetensors", ["--backend", "native"])} for name in SHAPES}
CORRECT = ["--bias-correction"]
OURS["mobilenet_v2"]["int8 corrected"] = ("pt2", INDUCTOR[1] + CORRECT)
OURS["mobilenet_v3_large"]["int8 xnnpack"] = ("pt2", ["--quantizer", "XNNPACKQuantizer"])
OURS["mobilenet_v3_large"]["int8 xnnpack corrected"] = ("pt2", ["--quantizer", "XNNPACKQuantizer"] + CORRECT)
OURS["mobilenet_v3_large"]["int8 native corrected"] = ("safetensors", ["--backend", "native"] + CORRECT)
ATTENTION = os.path.join(ROOT, "examples", "data", "attention_quantizer.json")  # asks for attention in bytes, too
OURS["encoder"] = {"int8": INDUCTOR, "int8 attention": ("pt2", ["--quantizer", "X86InductorQuantizer," + ATTENTION])}
OURS["encoder"]["dynamic"] = OURS["linear"]["dynamic"] = INDUCTOR
DYNAMIC_SETTINGS = '{"global": {"default": {"is_dynamic": true}}}'


def inputs(name, count, seed):
    return np.random.default_rng(seed).standard_normal((count,) + SHAPES[name], dtype=np.float32)


def calibration(name):
    return inputs(name, CALIBRATION, 1)


def evaluation(name, count=None):
    return inputs(name, count or EVALUATION.get(name, 32), 2)


def sqnr(reference, found):
    """Signal to quantization noise, in decibels."""
    reference, found = np.asarray(reference, np.float64).ravel(), np.asarray(found, np.float64).ravel()
    noise = ((reference - found) ** 2).sum()
    return float(10 * np.log10((reference ** 2).sum() / max(noise, 1e-30)))


# --- networks ---


def encoder(layers=6, heads=12, inner=1536):
    """The shape of MiniLM's encoder, on hidden states."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
            self.wide, self.narrow = nn.Linear(HIDDEN, inner), nn.Linear(inner, HIDDEN)
            self.norm1, self.norm2, self.gelu = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN), nn.GELU()

        def split(self, x):
            return x.view(x.shape[0], TOKENS, heads, HIDDEN // heads).transpose(1, 2)

        def forward(self, x):
            mixed = torch.nn.functional.scaled_dot_product_attention(
                self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)))
            mixed = mixed.transpose(1, 2).reshape(x.shape[0], TOKENS, HIDDEN)
            x = self.norm1(x + self.out(mixed))
            return self.norm2(x + self.narrow(self.gelu(self.wide(x))))

    return nn.Sequential(*[Block() for _ in range(layers)])


def network(name):
    import torch
    import torchvision
    torch.manual_seed(0)
    if name == "linear":
        return torch.nn.Sequential(torch.nn.Linear(1024, 4096))
    return encoder() if name == "encoder" else getattr(torchvision.models, name)(weights=None)


def settle(model):
    """Batch norms as after training: statistics of images, and factors that make folding a real job."""
    import torch
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    generator = torch.Generator().manual_seed(3)
    for norm in norms:
        norm.momentum = None
    model.train()
    with torch.no_grad():
        for _ in range(6 if norms else 0):
            model(torch.randn((16,) + IMAGE, generator=generator))
        for norm in norms:
            norm.weight.uniform_(0.8, 1.2, generator=generator)
            norm.bias.uniform_(-0.1, 0.1, generator=generator)
    return model.eval()


def load(name, folder):
    """The same weights for every engine."""
    import torch
    path = os.path.join(folder, name + ".pt")
    model = network(name)
    if not os.path.exists(path):
        torch.save(settle(model).state_dict(), path)
    model.load_state_dict(torch.load(path))
    return model.eval()


# --- files ---


def path_of(name, folder, ending):
    return os.path.join(folder, name + "." + ending)


def ours(name, folder, engine):
    """The file of an engine of ours."""
    return path_of(name, folder, "safetensors" if engine == "float" else engine.replace(" ", "_") + ".safetensors")


def write_float(name, folder):
    import torch
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    import tare_export
    model, x = load(name, folder), torch.from_numpy(evaluation(name))
    batch = ({0: torch.export.Dim("batch", min=1, max=256)},)
    with torch.no_grad():
        np.save(path_of(name, folder, "outputs.npy"), model(x).numpy())
    np.savez(path_of(name, folder, "calibration.npz"), calibration(name))
    tare_export.export(model, (x[:2],), path_of(name, folder, "safetensors"))
    torch.export.save(torch.export.export(model, (x[:2],), dynamic_shapes=batch), path_of(name, folder, "pt2"))
    # ONNX Runtime's quantizer does not take every linear layer that torch's newer exporter writes.
    torch.onnx.export(model, (x[:2],), path_of(name, folder, "onnx"), input_names=["x"], output_names=["y"],
                      opset_version=17, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, dynamo=False)


def quantize(name, folder, tare, engine):
    kind, how = OURS[name][engine]
    out = ours(name, folder, engine)
    if os.path.exists(out):
        return
    if engine == "dynamic":
        settings = os.path.join(folder, "dynamic.json")
        with open(settings, "w") as file:
            file.write(DYNAMIC_SETTINGS)
        how = how + ["--quantizer-config", settings]
    else:
        how = how + ["--calibrate", path_of(name, folder, "calibration.npz")]
    subprocess.run([tare, "quantize", path_of(name, folder, kind), *how, "--quiet", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)


def prepare(name, folder, tare):
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(path_of(name, folder, "onnx")):
        write_float(name, folder)
    for engine in OURS[name]:
        quantize(name, folder, tare, engine)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the networks that people have, with random weights: model files, inputs, torch's outputs.

    pip install torch torchvision numpy
    python tools/export_models.py build/models [NAME ..] [--small] [--onnx] [--pt2]

Each NAME becomes NAME.safetensors, NAME.inputs.npz and NAME.outputs.npz, further inputs to calibrate with
(NAME.calibration.npz), with --onnx NAME.torchscript.onnx and NAME.dynamo.onnx, and with --pt2 NAME.pt2 by torch.export
with an open batch. --small writes narrow, shallow relatives of the same topology. Batch norms have the statistics of the calibration inputs, so that values are sane.
The same versions of torch and torchvision give the same files.
"""
import argparse
import contextlib
import functools
import os
import sys
import time
import warnings

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision import models
from torchvision.models import segmentation

import networks
import tare_export

SEED = 0
SMALL_CLASSES = 10

# --- narrow relatives: the constructors see fewer channels ---


@contextlib.contextmanager
def narrowed(divisor):
    """Inside, layers have 1/divisor of the channels that their constructors are asked for, but for images and labels."""
    kept = {kind: kind.__init__ for kind in (nn.Conv2d, nn.BatchNorm2d, nn.Linear)}

    def fewer(n):
        return n if n in (3, SMALL_CLASSES) else max(1, n // divisor)

    def conv(self, in_channels, out_channels, *args, groups=1, **more):
        n = fewer(in_channels)
        fewer_groups = n if groups == in_channels else min(groups, n)
        kept[nn.Conv2d](self, n, fewer(out_channels), *args, groups=fewer_groups, **more)

    def norm(self, num_features, *args, **more):
        kept[nn.BatchNorm2d](self, fewer(num_features), *args, **more)

    def linear(self, in_features, out_features, *args, **more):
        kept[nn.Linear](self, fewer(in_features), fewer(out_features), *args, **more)

    for kind, init in ((nn.Conv2d, conv), (nn.BatchNorm2d, norm), (nn.Linear, linear)):
        kind.__init__ = init
    try:
        yield
    finally:
        for kind, init in kept.items():
            kind.__init__ = init


# --- networks: name -> (make(is_small), inputs(is_small, batch), options) ---

NETWORKS = {}


def image(size, small_size, varied=False):
    """Normal values. varied: images differ in colour too, so that what is pooled over all of one differs."""
    def inputs(is_small, batch, generator):
        side = small_size if is_small else size
        x = torch.randn((batch, 3, side, side), generator=generator)
        if varied and not is_small:
            x += torch.randn((batch, 3, 1, 1), generator=generator)
        return (x,)
    return inputs


def tokens(words, length, small_length, count=1):
    """`count` inputs of token numbers; the second one is a mask with the last tokens off."""
    def inputs(is_small, batch, generator):
        n, most = (small_length, 100) if is_small else (length, words)
        ids = torch.randint(1, most, (batch, n), generator=generator)
        mask = torch.ones((batch, n), dtype=torch.int64)
        mask[:, n - n // 4:] = 0
        return (ids, mask)[:count]
    return inputs


def network(name, make, inputs, settling=4, only_small=False, **options):
    """settling: images by which the full network's batch norms settle; options: of tare_export.export."""
    NETWORKS[name] = (make, inputs, {"settling": settling, "only_small": only_small, "export": options})


def classifier(name, size=224, small_size=32, divisor=8, build=None, build_small=None, **options):
    """A network of torchvision by its builder; `divisor` narrows the small one, or build_small makes it."""
    build = build or getattr(models, name)

    def make(is_small):
        if not is_small:
            return build(weights=None, **options)
        if build_small:
            with narrowed(divisor):
                return build_small()
        with narrowed(divisor):
            return build(weights=None, num_classes=SMALL_CLASSES, **options)
    network(name, make, image(size, small_size))


def small_resnet(block):
    return models.ResNet(block, [1, 1, 1, 1], num_classes=SMALL_CLASSES)


classifier("resnet18", divisor=16, build_small=lambda: small_resnet(models.resnet.BasicBlock))
classifier("resnet50", divisor=16, build_small=lambda: small_resnet(models.resnet.Bottleneck))
classifier("mobilenet_v2", divisor=16)
classifier("mobilenet_v3_small")
classifier("mobilenet_v3_large", divisor=16)
classifier("efficientnet_b0", divisor=16)
classifier("vgg11", divisor=64)
classifier("densenet121", divisor=16, build_small=lambda: models.DenseNet(
    32, (2, 3, 2, 2), 64, num_classes=SMALL_CLASSES))
classifier("inception_v3", 299, 80, 32, aux_logits=True, init_weights=False)
classifier("googlenet", divisor=16, aux_logits=False, init_weights=False)
classifier("shufflenet_v2_x1_0", build_small=lambda: models.ShuffleNetV2(
    [2, 4, 2], [24, 48, 96, 192, 1024], num_classes=SMALL_CLASSES))
classifier("squeezenet1_1", small_size=64)
classifier("mnasnet1_0", divisor=16)
classifier("regnet_y_400mf", divisor=16)
classifier("convnext_tiny", divisor=1, build_small=lambda: models.ConvNeXt(
    [models.convnext.CNBlockConfig(8, 16, 1), models.convnext.CNBlockConfig(16, 32, 2),
     models.convnext.CNBlockConfig(32, None, 1)], num_classes=SMALL_CLASSES))
classifier("vit_b_16", divisor=1, build_small=lambda: models.VisionTransformer(
    32, 8, 2, 2, 32, 64, num_classes=SMALL_CLASSES))
network("swin_t", lambda is_small: models.SwinTransformer(
    [4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=SMALL_CLASSES) if is_small else models.swin_t(weights=None),
    image(224, 40), by_example=True)


def segmenter(name, divisor, **options):
    def make(is_small):
        build = functools.partial(getattr(segmentation, name), weights=None, weights_backbone=None, **options)
        if not is_small:
            return build(num_classes=21)
        with narrowed(divisor):
            return build(num_classes=SMALL_CLASSES)
    network(name, make, image(224, 24, varied=True), settling=8)


segmenter("deeplabv3_resnet50", 32)
segmenter("fcn_resnet50", 32)
segmenter("lraspp_mobilenet_v3_large", 16)
network("unet", lambda s: networks.UNet(4) if s else networks.UNet(), image(256, 32))

network("lstm_tagger", lambda s: networks.LstmTagger(100, 16, 24, 5) if s else networks.LstmTagger(),
        tokens(10000, 64, 12))
network("gru_classifier", lambda s: networks.GruClassifier(8, 24, 5) if s else networks.GruClassifier(),
        lambda s, batch, g: (torch.randn((batch, 12, 8) if s else (batch, 98, 40), generator=g),))
network("bert", lambda s: networks.Bert(100, 32, 2, 4, 32) if s else networks.Bert(), tokens(30522, 128, 12, 2))
network("minilm", lambda s: networks.MiniLm(100, 32, 2, 4, 32) if s else networks.MiniLm(), tokens(30522, 128, 12, 2))
network("gpt", lambda s: networks.Gpt(100, 32, 2, 4, 32) if s else networks.Gpt(), tokens(50257, 128, 12))
network("llama", lambda s: networks.Llama(100, 32, 2, 4, 2, 64, 32) if s else networks.Llama(), tokens(32000, 128, 12))
network("seq2seq", lambda s: networks.Seq2Seq(100, 32, 1, 4) if s else networks.Seq2Seq(),
        lambda s, batch, g: tuple(torch.randint(1, 100, (batch, n), generator=g) for n in ((10, 7) if s else (64, 48))))
network("layers", lambda s: networks.Layers(), image(16, 16), only_small=True)
network("spellings", lambda s: networks.Spellings(), lambda s, batch, g: (torch.randn((batch, 3, 4), generator=g),),
        only_small=True)

# --- values ---

def settle(module, batches):
    """Batch norms take the statistics of `batches`. Their biases let most values pass the activation behind them:
    else each layer of a random network would multiply what differs in its inputs, which trained ones do not."""
    for p in module.parameters():
        if p.ndim >= 2 and not p.any():  # heads and tokens that torchvision starts with zeros
            nn.init.normal_(p, 0.0, p.shape[-1] ** -0.5 if p.ndim == 2 else 1.0)
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    module.eval()
    for m in norms:
        m.train().reset_running_stats()
        nn.init.normal_(m.weight, 1.0, 0.1)
        nn.init.normal_(m.bias, 1.0, 0.2)
        m.momentum = None  # a plain average
    with torch.no_grad():
        for batch in batches:
            module(**batch) if isinstance(batch, dict) else module(*batch)
    for m in norms:
        m.momentum = 0.1


def coarsen(tensors, bits=20):
    """Clears the last bits of every float, so that files pack well."""
    with torch.no_grad():
        for t in tensors:
            if t.dtype == torch.float32 and t.is_contiguous():
                codes = t.view(torch.int32)
                codes.copy_((codes + (1 << (bits - 1))) & ~((1 << bits) - 1))


def make(name, is_small):
    """(module in eval mode, example inputs, calibration batches)."""
    build, inputs, options = NETWORKS[name]
    generator = torch.Generator().manual_seed(SEED)
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = build(is_small)
    # Batch norms must see several images, above all those behind a pool that leaves one pixel.
    size, count = (8, 4) if is_small else (options["settling"], 1)
    batches = [inputs(is_small, size, generator) for _ in range(count)]
    if is_small:
        coarsen([*module.parameters(), *module.buffers()])
    settle(module, batches)
    example = inputs(is_small, 2, generator)
    if is_small:
        coarsen([*module.parameters(), *module.buffers(), *example])
    return module.eval(), example, batches


# --- programs of torch.export ---

def calls_a_module_again(module, inputs):
    """Is there a module that the network calls several times, as ResNet's blocks do with their ReLU? By default
    torch.export gives all its calls one name, which torchao's X86InductorQuantizer refuses."""
    calls = {}

    def count(m, *_):
        calls[m] = calls.get(m, 0) + 1
    hooks = [m.register_forward_hook(count) for m in module.modules() if not list(m.children())]
    with torch.no_grad():
        module(*inputs)
    for hook in hooks:
        hook.remove()
    return any(n > 1 for n in calls.values())


def program(module, inputs):
    """The exported program, for any batch, in the module's mode. Without the places in files, which nobody needs."""
    mode, strict = module.training, calls_a_module_again(module.eval(), inputs)
    open_batch = tuple({0: torch.export.Dim.AUTO} for _ in inputs)
    exported = torch.export.export(module.train(mode), inputs, dynamic_shapes=open_batch, strict=strict)
    for node in exported.graph_module.graph.nodes:
        node.meta.pop("stack_trace", None)
    return exported


# --- files ---

def write_onnx(module, inputs, stem):
    torch.onnx.export(module, inputs, stem + ".torchscript.onnx", dynamo=False, opset_version=17)
    torch.onnx.export(module, inputs, stem + ".dynamo.onnx", dynamo=True, opset_version=18, external_data=False)


def write(name, folder, is_small, with_onnx, with_pt2):
    module, inputs, batches = make(name, is_small)
    stem = os.path.join(folder, name)
    outputs = tare_export.export(module, inputs, stem + ".safetensors", **NETWORKS[name][2]["export"])
    names = tare_export.input_names(module, inputs)
    np.savez(stem + ".inputs.npz", **{n: t.numpy() for n, t in zip(names, inputs)})
    np.savez(stem + ".outputs.npz", **dict(zip(tare_export.output_names(outputs), (t.numpy() for t in outputs))))
    calibration = [torch.cat(parts) for parts in zip(*batches)]
    np.savez(stem + ".calibration.npz", **{n: t.numpy() for n, t in zip(names, calibration)})
    if with_onnx:
        write_onnx(module, inputs, stem)
    if with_pt2:
        torch.export.save(program(module, inputs), stem + ".pt2")


def main():
    parser = argparse.ArgumentParser(description="Write networks of torchvision and plain torch with random weights.")
    parser.add_argument("folder", help="folder to write to")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: " + ", ".join(NETWORKS))
    parser.add_argument("--small", action="store_true", help="narrow, shallow relatives")
    parser.add_argument("--onnx", action="store_true", help="also by both ONNX exporters of torch")
    parser.add_argument("--pt2", action="store_true", help="also by torch.export")
    options = parser.parse_intermixed_args()
    unknown = [name for name in options.names if name not in NETWORKS]
    if unknown:
        parser.error(f"no such network: {', '.join(unknown)}")
    os.makedirs(options.folder, exist_ok=True)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}", flush=True)
    failed = []
    everything = [name for name, (_, _, more) in NETWORKS.items() if options.small or not more["only_small"]]
    for name in options.names or everything:
        begin = time.monotonic()
        try:
            write(name, options.folder, options.small, options.onnx, options.pt2)
        except tare_export.ExportError as e:
            failed.append(name)
            print(f"{name}: {e}", flush=True)
            continue
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()

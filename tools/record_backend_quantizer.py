# SPDX-License-Identifier: Apache-2.0
"""The quantizer of examples/backend_quantizer.c in Python, on a ResNet-18 with random weights.

    python tools/record_backend_quantizer.py build/resnet18 [--small]

writes FOLDER/model.pt2, input.npz, and what torch and torchao make of them: converted.txt, the converted graph as
torch prints it, and output.txt, what it computes. --small: the same topology, 1/32 as wide, for
tests/data/small_resnet18. Needs torch, torchvision and torchao; recorded with torch 2.15, torchao 0.18.
"""
import argparse
import itertools
import os
import zipfile

import numpy
import torch
from torch import nn
from torchao.quantization.pt2e import HistogramObserver, MinMaxObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (DerivedQuantizationSpec, QuantizationAnnotation, QuantizationSpec,
                                                 Quantizer, SharedQuantizationSpec)
from torchvision.models import resnet18
from torchvision.models.resnet import BasicBlock, conv1x1

ATEN = torch.ops.aten
ACTIVATION = QuantizationSpec(dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_affine,
                              observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12))
WEIGHT = QuantizationSpec(dtype=torch.int8, quant_min=-127, quant_max=127, qscheme=torch.per_tensor_symmetric,
                          observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-12))


def derive_bias(observers):
    (activation, _), (weight, _) = (observer.calculate_qparams() for observer in observers)
    return (activation * weight).to(torch.float32), torch.tensor([0], dtype=torch.int32)


def derived_bias(layer):
    return DerivedQuantizationSpec(derived_from=[(layer.args[0], layer), (layer.args[1], layer)],
                                   derive_qparams_fn=derive_bias, dtype=torch.int32, quant_min=-2**31,
                                   quant_max=2**31 - 1, qscheme=torch.per_tensor_symmetric)


class BackendQuantizer(Quantizer):
    LAYERS = (ATEN.conv2d.default, ATEN.linear.default)
    ADDS = (ATEN.add.Tensor, ATEN.add_.Tensor)
    RELUS = (ATEN.relu.default, ATEN.relu_.default)
    KEEPERS = (ATEN.max_pool2d.default, ATEN.adaptive_avg_pool2d.default, ATEN.flatten.using_ints)

    @classmethod
    def output_of(cls, node):
        """The relu behind it, if it is the one reader; else the node itself."""
        users = list(node.users)
        return users[0] if len(users) == 1 and users[0].target in cls.RELUS else node

    def annotate(self, model):
        for node in model.graph.nodes:
            if node.target in self.LAYERS:
                self.annotate_node(node, {node.args[0]: ACTIVATION, node.args[1]: WEIGHT,
                                          node.args[2]: derived_bias(node)})
            elif node.target in self.ADDS:
                self.annotate_node(node, {node.args[0]: ACTIVATION, node.args[1]: ACTIVATION})
            elif node.target in self.KEEPERS:
                shared = SharedQuantizationSpec((node.args[0], node))
                node.meta["quantization_annotation"] = QuantizationAnnotation(
                    input_qspec_map={node.args[0]: ACTIVATION}, output_qspec=shared, _annotated=True)
        return model

    def annotate_node(self, node, inputs):
        output = self.output_of(node)
        node.meta["quantization_annotation"] = QuantizationAnnotation(input_qspec_map=inputs, _annotated=True)
        if output is node:
            node.meta["quantization_annotation"].output_qspec = ACTIVATION
        else:
            output.meta["quantization_annotation"] = QuantizationAnnotation(output_qspec=ACTIVATION, _annotated=True)

    def validate(self, model):
        pass


class SmallResNet18(nn.Module):
    """torchvision's resnet18, 1/32 as wide."""

    def __init__(self, width=2, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self.stage(width, width, 1)
        self.layer2 = self.stage(width, 2 * width, 2)
        self.layer3 = self.stage(2 * width, 4 * width, 2)
        self.layer4 = self.stage(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def stage(before, width, stride):
        shortcut = None
        if stride > 1:
            shortcut = nn.Sequential(conv1x1(before, width, stride), nn.BatchNorm2d(width))
        return nn.Sequential(BasicBlock(before, width, stride, shortcut), BasicBlock(width, width))

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def randomize_norms(model):
    """Statistics that folding has something to do with."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.0)
            nn.init.normal_(module.bias, std=0.1)
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)


def save(program, path):
    """Deflated: torch stores the members as they are."""
    torch.export.save(program, path + ".stored.pt2")
    with zipfile.ZipFile(path + ".stored.pt2") as stored, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in stored.namelist():
            packed.writestr(zipfile.ZipInfo(name), stored.read(name), zipfile.ZIP_DEFLATED)
    os.remove(path + ".stored.pt2")


def text_of(model):
    lines = str(model).split("\n# To see more debug info")[0].split("\n")
    return "\n".join(line for line, _ in itertools.groupby(line.rstrip() for line in lines)).strip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = SmallResNet18() if options.small else resnet18()
    randomize_norms(model)
    # Few digits and an example of zeros pack well.
    samples = torch.round(8 * torch.randn(2, 3, *((64, 64) if options.small else (224, 224)))) / 8
    batch = {"x": {0: torch.export.Dim("batch", min=1, max=1024)}}
    program = torch.export.export(model.eval(), (torch.zeros_like(samples),), dynamic_shapes=batch)
    save(program, os.path.join(options.folder, "model.pt2"))
    numpy.savez_compressed(os.path.join(options.folder, "input.npz"), x=samples.numpy())
    prepared = prepare_pt2e(program.module(), BackendQuantizer())
    prepared(samples)
    converted = convert_pt2e(prepared)
    with open(os.path.join(options.folder, "converted.txt"), "w") as file:
        file.write(text_of(converted))
    with open(os.path.join(options.folder, "output.txt"), "w") as file:
        print(*("%.6g" % value for value in converted(samples).flatten().tolist()), file=file)


if __name__ == "__main__":
    main()

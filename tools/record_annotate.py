# SPDX-License-Identifier: Apache-2.0
"""The quantizer of examples/annotate.c in Python, after PyTorch's tutorial on writing a Quantizer.

    python tools/record_annotate.py examples/data tests/data

writes annotate.pt2 and annotate_input.npy into the first folder, and annotate.txt, the converted graph as torch
prints it, into the second. Needs torch and torchao; recorded with torch 2.15, torchao 0.18.
"""
import os
import sys

import numpy
import torch
from torch import nn
from torchao.quantization.pt2e import HistogramObserver, MinMaxObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (DerivedQuantizationSpec, FixedQParamsQuantizationSpec,
                                                 QuantizationAnnotation, QuantizationSpec, Quantizer,
                                                 SharedQuantizationSpec)

from record_backend_quantizer import save, text_of

ATEN = torch.ops.aten
ACTIVATION = QuantizationSpec(dtype=torch.int8, quant_min=-128, quant_max=127, qscheme=torch.per_tensor_affine,
                              observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12))
WEIGHT = QuantizationSpec(dtype=torch.int8, quant_min=-127, quant_max=127, qscheme=torch.per_tensor_symmetric,
                          observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-12))
FIXED = FixedQParamsQuantizationSpec(dtype=torch.uint8, quant_min=0, quant_max=255, qscheme=torch.per_tensor_affine,
                                     scale=1.0 / 256.0, zero_point=0)


class Net(nn.Module):
    """Each kind of annotation once."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        a = torch.relu(self.conv1(x))
        b = self.conv2(a)
        c = a + b
        d = c + a
        return torch.sigmoid(torch.cat([d, b], 1))


def derive_qparams_fn(observers):
    (activation, _), (weight, _) = (observer.calculate_qparams() for observer in observers)
    return (activation * weight).to(torch.float32), torch.tensor([0], dtype=torch.int32)


def annotate(node, inputs, output):
    node.meta["quantization_annotation"] = QuantizationAnnotation(input_qspec_map=inputs, output_qspec=output,
                                                                  _annotated=True)


def conv_inputs(conv):
    bias = DerivedQuantizationSpec(derived_from=[(conv.args[0], conv), (conv.args[1], conv)],
                                   derive_qparams_fn=derive_qparams_fn, dtype=torch.int32, quant_min=-2**31,
                                   quant_max=2**31 - 1, qscheme=torch.per_tensor_symmetric)
    return {conv.args[0]: ACTIVATION, conv.args[1]: WEIGHT, conv.args[2]: bias}


class TutorialQuantizer(Quantizer):
    def annotate(self, model):
        convs = [n for n in model.graph.nodes if n.target is ATEN.conv2d.default]
        adds = [n for n in model.graph.nodes if n.target is ATEN.add.Tensor]
        relu = next(n for n in model.graph.nodes if n.target is ATEN.relu.default)
        cat = next(n for n in model.graph.nodes if n.target is ATEN.cat.default)
        sigmoid = next(n for n in model.graph.nodes if n.target is ATEN.sigmoid.default)
        annotate(convs[0], conv_inputs(convs[0]), None)
        annotate(relu, {}, ACTIVATION)
        annotate(convs[1], conv_inputs(convs[1]), ACTIVATION)
        annotate(adds[0], {adds[0].args[0]: ACTIVATION, adds[0].args[1]: ACTIVATION}, ACTIVATION)
        for node, (first, second) in ((adds[1], adds[1].args), (cat, cat.args[0])):
            shared = SharedQuantizationSpec((first, node))
            annotate(node, {first: ACTIVATION, second: shared}, shared)
        annotate(sigmoid, {sigmoid.args[0]: FIXED}, FIXED)
        return model

    def validate(self, model):
        pass


def main():
    examples, recorded = sys.argv[1:]
    torch.manual_seed(0)
    x = torch.round(8 * torch.randn(1, 3, 6, 6)) / 8
    program = torch.export.export(Net().eval(), (torch.zeros_like(x),))
    save(program, os.path.join(examples, "annotate.pt2"))
    numpy.save(os.path.join(examples, "annotate_input.npy"), x.numpy())
    prepared = prepare_pt2e(program.module(), TutorialQuantizer())
    prepared(x)
    with open(os.path.join(recorded, "annotate.txt"), "w") as file:
        file.write(text_of(convert_pt2e(prepared)))


if __name__ == "__main__":
    main()

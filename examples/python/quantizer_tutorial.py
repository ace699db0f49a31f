#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tutorial of quantizers on tare: a BackendQuantizer, on an exported ResNet-18.

    python quantizer_tutorial.py network.pt2 samples.npz

prints the converted program as torch prints it, and what it computes. network.pt2 is a program that torch.export.save
wrote; with torch installed, `tare.from_exported(torch.export.export(module, inputs))` does without the file.
"""
import sys

import numpy as np

import tare
from tare import (DerivedQuantizationSpec, HistogramObserver, MinMaxObserver, QuantizationAnnotation, QuantizationSpec,
                  Quantizer, SharedQuantizationSpec, convert_pt2e, prepare_pt2e)

ACTIVATION = QuantizationSpec(dtype=tare.int8, quant_min=-128, quant_max=127, qscheme=tare.per_tensor_affine,
                              observer_or_fake_quant_ctr=HistogramObserver.with_args(eps=2**-12))
WEIGHT = QuantizationSpec(dtype=tare.int8, quant_min=-127, quant_max=127, qscheme=tare.per_tensor_symmetric,
                          observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-12))


def derive_bias(observers):
    """The scale of a bias: that of the activation times that of the weight."""
    (activation, _), (weight, _) = (observer.calculate_qparams() for observer in observers)
    return (activation * weight).astype(np.float32), np.array([0])


def derived_bias(layer):
    return DerivedQuantizationSpec(derived_from=[(layer.args[0], layer), (layer.args[1], layer)],
                                   derive_qparams_fn=derive_bias, dtype=tare.int32, quant_min=-2**31,
                                   quant_max=2**31 - 1, qscheme=tare.per_tensor_symmetric)


class BackendQuantizer(Quantizer):
    """Convolutions and linear layers with an int32 bias, sums, and operators that keep their input's parameters."""

    LAYERS = ("torch.ops.aten.conv2d.default", "torch.ops.aten.linear.default")
    ADDS = ("torch.ops.aten.add.Tensor", "torch.ops.aten.add_.Tensor")
    RELUS = ("torch.ops.aten.relu.default", "torch.ops.aten.relu_.default")
    KEEPERS = ("torch.ops.aten.max_pool2d.default", "torch.ops.aten.adaptive_avg_pool2d.default",
               "torch.ops.aten.flatten.using_ints")

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


def quantize(program, samples):
    """Prepare, calibrate and convert."""
    prepared = prepare_pt2e(program, BackendQuantizer())
    prepared(samples)
    return convert_pt2e(prepared)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: quantizer_tutorial.py NETWORK.pt2 SAMPLES.npz")
    images = np.load(sys.argv[2])["x"]
    converted = quantize(tare.load(sys.argv[1]), images)
    print(converted)
    print(converted(images))

# SPDX-License-Identifier: Apache-2.0
"""Writes a network shaped like ResNet-18, with random weights, as a model file; for measuring, not for classifying.

    python tools/build_resnet18.py build/resnet18.safetensors --input build/resnet18_input.npy

The modules have torchvision's names and the graph is what torch.fx traces from it. Needs the standard
library only; the same options give the same bytes. Full size takes about five seconds and 47 MB.
"""
import argparse
import array
import random
import struct
import sys

from tare_export import Tensor, graph_header, write_model

STAGES = 4
BLOCKS_PER_STAGE = 2
# A ReLU keeps half of the second moment of a centred input.
RELU_KEEPS = 0.5
# The mean square of what the stem's max pool gives, as measured on unit normal images.
POOLED_MOMENT = 2.5
# The last batch norm of a block adds little, so that the sums along the shortcuts stay small.
BRANCH_GAIN = 0.5
BASIC_BLOCK = "torchvision.models.resnet.BasicBlock"
SEQUENTIAL = "torch.nn.modules.container.Sequential"


def pair(n):
    return {"tuple": [n, n]}


def little_endian(values):
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def fill(count, value):
    return little_endian(array.array("f", [value]) * count)


class Builder:
    """Collects modules, tensors and nodes in the order in which a trace would meet them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.modules, self.nodes, self.parameters, self.buffers = [], [], [], []
        self.tensors, self.calls, self.scopes = {}, {}, []
        self.node_names = set()

    def gauss(self, count, mean, deviation):
        draw = self.random.gauss
        return little_endian(array.array("f", (draw(mean, deviation) for _ in range(count))))

    def parameter(self, name, shape, data):
        self.parameters.append(name)
        self.tensors[name] = Tensor("F32", shape, data)

    def buffer(self, name, dtype, shape, data):
        self.buffers.append(name)
        self.tensors[name] = Tensor(dtype, shape, data)

    def module(self, path, kind, config, text):
        self.modules.append({"path": path, "type": f"torch.nn.{kind}", "training": False,
                             "config": config, "repr": text})

    def enter(self, path, class_name):
        """Opens a container; tracing makes containers afresh, and a fresh module is in train mode."""
        if all(m["path"] != path for m in self.modules):
            self.modules.append({"path": path, "type": "torch.nn.Module", "training": True, "config": {}, "repr": ""})
        self.scopes.append([path, path, class_name])

    def leave(self):
        self.scopes.pop()

    def node(self, base, op, target, args, stack):
        name, suffix = base, 0
        while name in self.node_names:
            suffix += 1
            name = f"{base}_{suffix}"
        self.node_names.add(name)
        record = {"name": name, "op": op, "target": target, "args": args, "kwargs": {}}
        if stack:
            record["meta"] = {"nn_module_stack": stack}
        self.nodes.append(record)
        return {"node": name}

    def call(self, path, class_name, x):
        """Calls the module at `path`; from the second call on, torch tells the calls apart by a count."""
        count = self.calls.get(path, 0)
        self.calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        stack = self.scopes + [[key, path, f"torch.nn.modules.{class_name}"]]
        return self.node(path.replace(".", "_"), "call_module", path, [x], stack)

    def conv(self, path, x, c_in, c_out, kernel, stride, padding, groups=1):
        """Weights that map a second moment of 1 to a variance of 2: He's rule."""
        config = {"in_channels": c_in, "out_channels": c_out, "kernel_size": pair(kernel), "stride": pair(stride),
                  "padding": pair(padding), "dilation": pair(1), "groups": groups, "padding_mode": "zeros"}
        text = f"{c_in}, {c_out}, kernel_size=({kernel}, {kernel}), stride=({stride}, {stride})"
        if padding:
            text += f", padding=({padding}, {padding})"
        if groups > 1:
            text += f", groups={groups}"
        self.module(path, "Conv2d", config, text + ", bias=False")
        fan_in = c_in // groups * kernel * kernel
        data = self.gauss(c_out * fan_in, 0.0, (2.0 / fan_in) ** 0.5)
        self.parameter(f"{path}.weight", [c_out, c_in // groups, kernel, kernel], data)
        return self.call(path, "conv.Conv2d", x)

    def batch_norm(self, path, x, channels, variance, gain):
        """Divides by the variance that the convolution before it is known to give."""
        config = {"num_features": channels, "eps": 1e-05, "momentum": 0.1, "affine": True,
                  "track_running_stats": True}
        self.module(path, "BatchNorm2d", config, f"{channels}, eps=1e-05, momentum=0.1, affine=True, bias=True, "
                                                 "track_running_stats=True")
        self.parameter(f"{path}.weight", [channels], self.gauss(channels, gain, 0.1 * gain))
        self.parameter(f"{path}.bias", [channels], self.gauss(channels, 0.0, 0.1 * gain))
        self.buffer(f"{path}.running_mean", "F32", [channels], self.gauss(channels, 0.0, 0.05 * variance ** 0.5))
        self.buffer(f"{path}.running_var", "F32", [channels], fill(channels, variance))
        self.buffer(f"{path}.num_batches_tracked", "I64", [], struct.pack("<q", 0))
        return self.call(path, "batchnorm.BatchNorm2d", x)

    def relu(self, path, x):
        if path not in self.calls:
            self.module(path, "ReLU", {"inplace": True}, "inplace=True")
        return self.call(path, "activation.ReLU", x)

    def linear(self, path, x, c_in, c_out):
        self.module(path, "Linear", {"in_features": c_in, "out_features": c_out},
                    f"in_features={c_in}, out_features={c_out}, bias=True")
        self.parameter(f"{path}.weight", [c_out, c_in], self.gauss(c_out * c_in, 0.0, c_in ** -0.5))
        self.parameter(f"{path}.bias", [c_out], self.gauss(c_out, 0.0, 0.1))
        return self.call(path, "linear.Linear", x)

    def add(self, a, b):
        return self.node("add", "call_function", "operator.add", [a, b], list(self.scopes))


def basic_block(b, path, x, c_in, c_out, stride, moment):
    """One residual block; `moment` is the mean square of its input. Returns the output and its mean square."""
    b.enter(path, BASIC_BLOCK)
    y = b.conv(f"{path}.conv1", x, c_in, c_out, 3, stride, 1)
    y = b.batch_norm(f"{path}.bn1", y, c_out, 2 * moment, 1.0)
    y = b.relu(f"{path}.relu", y)
    y = b.conv(f"{path}.conv2", y, c_out, c_out, 3, 1, 1)
    y = b.batch_norm(f"{path}.bn2", y, c_out, 2 * RELU_KEEPS, BRANCH_GAIN)
    if stride != 1 or c_in != c_out:
        b.enter(f"{path}.downsample", SEQUENTIAL)
        x = b.conv(f"{path}.downsample.0", x, c_in, c_out, 1, stride, 0)
        x = b.batch_norm(f"{path}.downsample.1", x, c_out, 2 * moment, 1.0)
        b.leave()
        moment = (1.0 + BRANCH_GAIN ** 2) * RELU_KEEPS
    else:
        moment += RELU_KEEPS * BRANCH_GAIN ** 2
    y = b.relu(f"{path}.relu", b.add(y, x))
    b.leave()
    return y, moment


def stem(b, x, width):
    x = b.conv("conv1", x, 3, width, 7, 2, 3)
    x = b.relu("relu", b.batch_norm("bn1", x, width, 2.0, 1.0))
    config = {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 1, "ceil_mode": False}
    b.module("maxpool", "MaxPool2d", config, "kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False")
    return b.call("maxpool", "pooling.MaxPool2d", x)


def head(b, x, channels, classes):
    b.module("avgpool", "AdaptiveAvgPool2d", {"output_size": pair(1)}, "output_size=(1, 1)")
    x = b.call("avgpool", "pooling.AdaptiveAvgPool2d", x)
    x = b.node("flatten", "call_function", "torch.flatten", [x, 1], [])
    return b.linear("fc", x, channels, classes)


def build(width, classes, seed):
    b = Builder(seed)
    x = stem(b, b.node("x", "placeholder", "x", [], []), width)
    c_in, moment = width, POOLED_MOMENT
    for stage in range(STAGES):
        b.enter(f"layer{stage + 1}", SEQUENTIAL)
        c_out = width << stage
        for block in range(BLOCKS_PER_STAGE):
            stride = 2 if stage > 0 and block == 0 else 1
            x, moment = basic_block(b, f"layer{stage + 1}.{block}", x, c_in, c_out, stride, moment)
            c_in = c_out
        b.leave()
    b.node("output", "output", "output", [head(b, x, c_in, classes)], [])
    return b


def write_input(path, batch, size, seed):
    """Random images as a .npy file: normal values, as after the usual normalization of photographs."""
    shape = (batch, 3, size, size)
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    draw = random.Random(seed).gauss
    values = array.array("f", (draw(0.0, 1.0) for _ in range(batch * 3 * size * size)))
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + little_endian(values))


def main():
    parser = argparse.ArgumentParser(description="Write a ResNet-18-shaped network with random weights.")
    parser.add_argument("model", help="model file to write (.safetensors)")
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage, 64 in ResNet-18")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", help="also write random images here (.npy)")
    parser.add_argument("--image-size", type=int, default=224, help="height and width of those images")
    parser.add_argument("--batch", type=int, default=1, help="number of those images")
    options = parser.parse_args()
    if min(options.width, options.classes, options.image_size, options.batch) < 1:
        parser.error("--width, --classes, --image-size and --batch must be at least 1")
    b = build(options.width, options.classes, options.seed)
    write_model(options.model, graph_header(b.modules, b.nodes, b.parameters, b.buffers), b.tensors)
    if options.input:
        write_input(options.input, options.batch, options.image_size, options.seed)


if __name__ == "__main__":
    main()

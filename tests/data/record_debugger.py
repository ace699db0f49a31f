#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python tests/data/record_debugger.py > tests/data/debugger/rows.txt

A small network with debug handles as torch writes it (tests/data/debugger/model.pt2), one with graphs in it (branches.pt2), inputs, and how
far the values of its quantized form are from its own by torchao's numeric debugger, a line per handle:
handle, node, node of the converted program, then SQNR and MSE of each of the two batches. For
tests/unit/debug/test_debug.c. Needs torch 2.15 and torchao 0.18."""
import copy
import pathlib
import warnings

import numpy
import torch
import torchao.quantization.pt2e as pt2e
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = x + torch.relu(self.conv2(x))
        x = nn.functional.max_pool2d(x, 2)
        x = torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)
        return self.fc(x)


class Branches(nn.Module):
    def forward(self, x):
        def grow(x):
            return torch.cond(x.mean() > 1, lambda x: x.cos() + 1, lambda x: x * 2, (x,)).sin()

        x = torch.relu(x)
        x = torch.cond(x.sum() > 0, grow, lambda x: x - 1, (x,))
        return torch.tanh(x)


def save(program, name):
    pt2e.generate_numeric_debug_handle(program)
    for graph in program.graph_module.modules():
        for node in graph.graph.nodes:  # paths of the machine that recorded
            node.meta.pop("stack_trace", None)
    torch.export.save(program, folder / name)


folder = pathlib.Path(__file__).parent / "debugger"
torch.manual_seed(7)
data = torch.randn(4, 3, 8, 8)
program = torch.export.export(Net().eval(), (data[:2],))
save(program, "model.pt2")
save(torch.export.export(Branches(), (data,)), "branches.pt2")
numpy.savez(folder / "input.npz", x=data.numpy())

network = program.module()
handles = {n.name: n.meta.get("custom", {}).get("numeric_debug_handle") for n in network.graph.nodes}
quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
prepared = prepare_pt2e(copy.deepcopy(network), quantizer)
reference = pt2e.prepare_for_propagation_comparison(network)
for batch in data.split(2):
    prepared(batch)
quantized = pt2e.prepare_for_propagation_comparison(convert_pt2e(prepared))
for batch in data.split(2):
    reference(batch)
    quantized(batch)
rows = pt2e.compare_results(
    pt2e.extract_results_from_loggers(reference), pt2e.extract_results_from_loggers(quantized)
)
for key, row in rows.items():
    numbers = [f"{float(r.sqnr):.6g} {float(r.mse_loss):.6g}" for r in row.results]
    print(handles[key.name], row.ref_node_name, row.actual_node_name, *numbers)

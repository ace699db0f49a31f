# SPDX-License-Identifier: Apache-2.0
"""Writes a network of many small residual blocks, as a model file; for measuring the passes on large graphs.

    python tools/build_chain.py build/chain.safetensors --nodes 10000

Needs the standard library only; the same options give the same bytes.
"""
import argparse

from build_resnet18 import BASIC_BLOCK, Builder, basic_block
from tare_export import graph_header, write_model

CHANNELS = 4
NODES_PER_BLOCK = 7  # conv, bn, relu, conv, bn, add, relu


def build(node_count):
    b = Builder(0)
    x = b.node("x", "placeholder", "x", [], [])
    for block in range((node_count - 2) // NODES_PER_BLOCK):
        x, _ = basic_block(b, f"blocks_{block}", x, CHANNELS, CHANNELS, 1, 1.0)
    b.node("output", "output", "output", [x], [])
    return b


def main():
    parser = argparse.ArgumentParser(description=f"Write a chain of {BASIC_BLOCK.split('.')[-1]}s.")
    parser.add_argument("model", help="model file to write (.safetensors)")
    parser.add_argument("--nodes", type=int, default=10000)
    options = parser.parse_args()
    if options.nodes < NODES_PER_BLOCK + 2:
        parser.error(f"--nodes must be at least {NODES_PER_BLOCK + 2}")
    b = build(options.nodes)
    write_model(options.model, graph_header(b.modules, b.nodes, b.parameters, b.buffers), b.tensors)
    print(f"{options.model}: {len(b.nodes)} nodes")


if __name__ == "__main__":
    main()

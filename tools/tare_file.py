# SPDX-License-Identifier: Apache-2.0
"""Writes a model file: safetensors data with the graph as JSON in the metadata key `tare.graph`.

Needs nothing but the standard library, so that a model can be written where neither torch nor numpy is.
"""
import json
import struct

ITEM_BYTES = {"F32": 4, "I64": 8}


class Tensor:
    """A tensor as it lies in the file: little-endian, row-major."""

    def __init__(self, dtype, shape, data):
        count = 1
        for size in shape:
            count *= size
        if len(data) != count * ITEM_BYTES[dtype]:
            raise ValueError(f"{dtype} tensor of shape {list(shape)} holds {len(data)} bytes")
        self.dtype, self.shape, self.data = dtype, list(shape), data


def graph_header(modules, nodes, parameters, buffers, training=False):
    """The graph's JSON value with the fields that every model has."""
    return {"format": "tare-graph", "version": 1, "class_name": "GraphModule", "training": training,
            "modules": modules, "nodes": nodes, "parameters": parameters, "buffers": buffers,
            "codegen": "plain"}


def write_model(path, graph, tensors):
    """Writes `graph` and `tensors` (name -> Tensor) to `path`; the same input gives the same bytes."""
    # Wide items first: every tensor then starts at a multiple of its own item size.
    names = sorted(tensors, key=lambda name: (-ITEM_BYTES[tensors[name].dtype], name))
    header = {"__metadata__": {"tare.graph": json.dumps(graph)}}
    offset = 0
    for name in names:
        tensor = tensors[name]
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for name in names:
            out.write(tensors[name].data)

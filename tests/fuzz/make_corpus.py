#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzzers of files: well-formed ones, and one for each way to be
refused that is told from its form. usage: make_corpus.py [FOLDER]   (default: corpus beside it)
The same bytes come out every time; what fuzzing found lies beside them under other names."""
import io
import json
import os
import struct
import sys
import zipfile

root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")


def put(kind, name, data):
    folder = os.path.join(root, kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


# --- safetensors ---
def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_safetensors():
    kinds = [("F64", 8), ("I64", 8), ("F32", 4), ("I32", 4), ("F16", 2), ("BF16", 2), ("I16", 2), ("U16", 2),
             ("I8", 1), ("U8", 1), ("BOOL", 1), ("F8_E4M3", 1), ("F8_E5M2", 1)]
    header, at = {"__metadata__": {"note": "text"}}, 0
    for dtype, size in kinds:
        header[dtype] = tensor(dtype, [2, 1], at, at + 2 * size)
        at += 2 * size
    cases = {
        "all_dtypes": safetensors(header, bytes(at)),
        "empty": safetensors({}),
        "no_elements": safetensors({"a": tensor("F32", [0, 3], 0, 0)}),
        "unaligned": safetensors({"a": tensor("U8", [1], 0, 1), "b": tensor("F64", [], 1, 9)}, bytes(9)),
        "padded": safetensors(b"{}      "),
        "short": b"abc",
        "long_header": safetensors({}, length=1 << 40),
        "past_end": safetensors({}, length=100),
        "not_json": safetensors(b"{'a': 1}"),
        "not_object": safetensors([]),
        "unknown_dtype": safetensors({"a": tensor("F99", [], 0, 4)}, bytes(4)),
        "hole": safetensors({"a": tensor("U8", [1], 1, 2)}, bytes(2)),
        "rest": safetensors({"a": tensor("U8", [1], 0, 1)}, bytes(2)),
        "overlap": safetensors({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, bytes(3)),
        "overflow": safetensors({"a": tensor("F32", [1 << 40, 1 << 40], 0, 0)}),
        "wrong_length": safetensors({"a": tensor("F32", [2], 0, 4)}, bytes(4)),
        "outside": safetensors({"a": tensor("F32", [1], 0, 5)}, bytes(4)),
        "negative": safetensors({"a": tensor("F32", [-1], 0, 4)}, bytes(4)),
        "dimensions": safetensors({"a": tensor("F32", [1] * 9, 0, 4)}, bytes(4)),
        "one_offset": safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
        "extra_key": safetensors({"a": {**tensor("F32", [1], 0, 4), "x": 1}}, bytes(4)),
        "bad_bool": safetensors({"a": tensor("BOOL", [1], 0, 1)}, b"\2"),
        "bad_metadata": safetensors({"__metadata__": {"a": 1}}),
        "same_name": safetensors(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                                 b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    }
    for name, data in cases.items():
        put("safetensors", name, data)


# --- npy and npz ---
def npy(descr="'<f4'", order="False", shape="(2, 3)", data=bytes(24), version=1, dict_text=None):
    text = dict_text or "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def npz(*members, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in members:
            info = zipfile.ZipInfo(name)  # of 1980: the time of writing does not show
            info.compress_type = method
            z.writestr(info, data)
    return out.getvalue()


def patched(data, offset, value):
    return data[:offset] + value + data[offset + len(value):]


def write_npz():
    sizes = {"<f4": 4, "<f8": 8, "<f2": 2, "|i1": 1, "|u1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<i8": 8, "|b1": 1}
    for descr, size in sizes.items():
        put("npz", "npy_" + descr[1:], npy("'%s'" % descr, shape="(2,)", data=bytes(2 * size)))
    one = npz(("x.npy", npy()))
    stored = npz(("x.npy", npy()), method=zipfile.ZIP_STORED)
    central = stored.index(b"PK\1\2")
    cases = {
        "npy_fortran": npy(order="True", data=bytes(range(24))),
        "npy_scalar": npy(shape="()", data=bytes(4)),
        "npy_version_2": npy(version=2),
        "npy_version_9": npy(version=9),
        "npy_big_endian": npy("'>f4'"),
        "npy_complex": npy("'<c8'"),
        "npy_structure": npy("[('a', '<f4')]"),
        "npy_short": npy(data=bytes(23)),
        "npy_no_order": npy(order="None"),
        "npy_no_tuple": npy(shape="6"),
        "npy_negative": npy(shape="(-6,)"),
        "npy_overflow": npy(shape="(4294967296, 4294967296)"),
        "npy_huge": npy(shape="(99999999999999999999,)"),
        "npy_dimensions": npy(shape="(1,1,1,1,1,1,1,1,1)", data=bytes(4)),
        "npy_bad_bool": npy("'|b1'", shape="(1,)", data=b"\7"),
        "npy_keys": npy(dict_text="{'descr': '<f4', 'descr': '<f4'}"),
        "npy_missing": npy(dict_text="{'descr': '<f4'}"),
        "npy_no_dict": npy(dict_text="[1]"),
        "npy_long_header": b"\x93NUMPY\2\0\xff\xff\xff\x7f" + bytes(20),
        "npz_one": one,
        "npz_two": npz(("x.npy", npy()), ("labels.npy", npy("'<i8'", shape="(2,)", data=bytes(16)))),
        "npz_stored": stored,
        "npz_none": npz(),
        "npz_text": npz(("readme.txt", b"hello")),
        "npz_no_array": npz(("x.npy", b"hello")),
        "npz_bomb": npz(("x.npy", npy("'|u1'", shape="(1099511627776,)", data=b""))),
        "npz_zeros": npz(("x.npy", npy(shape="(4096,)", data=bytes(16384)))),
        "npz_bzip2": npz(("x.npy", npy()), method=zipfile.ZIP_BZIP2),
        "npz_checksum": patched(stored, 30 + 5 + 70, b"\1"),
        "npz_encrypted": patched(stored, central + 8, b"\1"),
        "npz_cut": one[:-30],
        "npz_stored_size": patched(stored, central + 24, b"\1"),
        "npz_past_end": patched(stored, central + 20, b"\xff\xff\0\0\xff\xff\0\0"),
    }
    for name, data in cases.items():
        put("npz", name, data)


# --- models: the tensors are those of fuzz_model_json.c ---
def node(op, target, *args, name=None, **more):
    return {"name": name or target, "op": op, "target": target, "args": list(args), "kwargs": {}, **more}


def module(path, kind, **more):
    return {"path": path, "type": kind, "training": False, "config": {}, **more}


def model(**changes):
    linear = module("fc", "torch.nn.Linear", config={"in_features": 3, "out_features": 2}, repr="in_features=3")
    nodes = [node("placeholder", "x", type="torch.Tensor"),
             node("call_module", "fc", {"node": "x"}),
             node("output", "output", {"node": "fc"})]
    top = {"format": "tare-graph", "version": 1, "class_name": "GraphModule", "training": False, "modules": [linear],
           "parameters": ["fc.weight", "fc.bias", "q"], "buffers": [],
           "quantized": {"q": {"dtype": "torch.qint8", "qscheme": "torch.per_tensor_affine"}},
           "nodes": nodes, "codegen": "plain"}
    top.update(changes)
    return {k: v for k, v in top.items() if v is not None}


def write_models():
    good = model()
    linear, nodes = good["modules"][0], good["nodes"]
    arguments = [None, True, 3, 3.5, "mean", {"float": "-inf"}, {"float": "inf"}, {"float": "nan"}, [1, {"tuple": []}],
                 {"dict": [["k", {"node": "x"}]]}, {"slice": [None, 2, None]}, {"ellipsis": True},
                 {"dtype": "torch.quint8"}, {"qscheme": "torch.per_tensor_affine"}, {"layout": "torch.strided"},
                 {"device": "cpu"}, {"scalar": 1.0, "dtype": "torch.float32"}, {"sym": "s0"}, {"type": "torch.nn.Linear"}]
    meta = {"val": {"shape": [1, None], "dtype": "torch.float32"},
            "nn_module_stack": [["fc", "fc", "torch.nn.modules.linear.Linear"]]}

    def with_argument(a):
        return model(nodes=[nodes[0], node("call_module", "fc", a), nodes[2]])

    def with_linear(**more):
        return model(modules=[{**linear, **more}])

    def with_q(**more):
        return model(quantized={"q": {**good["quantized"]["q"], **more}})

    box, identity = "torch.nn.Module", "torch.nn.Identity"
    cases = {
        "plain": good,
        "arguments": model(nodes=[nodes[0], node("call_function", "operator.add", *arguments, name="add", meta=meta),
                                  {**node("call_method", "view", {"node": "add"}), "kwargs": {"a": [1, 2]}},
                                  node("get_attr", "fc.weight", name="fc_weight"),
                                  node("output", "output", {"node": "view"})]),
        "pytree": model(codegen={"pytree": {"signature": "def forward(self, x):", "flatten": "x, = y"}}),
        "nested": model(modules=[linear, module("sub", "torch.fx.GraphModule", graph={"nodes": nodes, "codegen": "plain"}),
                                 module("sub.fc", identity)]),
        "shared": model(modules=[linear, module("a", box), module("a.i", identity), {"path": "b", "same_as": "a"}]),
        "shared_circle": model(modules=[linear, module("a", box), {"path": "a.b", "same_as": "a"}]),
        "shared_tower": model(modules=[linear, module("a", box), {"path": "b", "same_as": "a"}, module("b.c", identity)]),
        "shared_nothing": model(modules=[linear, {"path": "b", "same_as": "a"}]),
        "record": model(record={"decisions": [1, 2.5, "x", None, True]}, tare={"version": "0"}),
        "alias": model(aliases={"more": "fc.bias"}, buffers=["more"]),
        "alias_of_quantized": model(aliases={"more": "q"}, buffers=["more"]),
        "alias_unused": model(aliases={"more": "q"}),
        "alias_of_nothing": model(aliases={"more": "none"}, buffers=["more"]),
        "per_channel_float": with_q(qscheme="torch.per_channel_affine_float_qparams"),
        "per_channel": with_q(qscheme="torch.per_channel_affine", axis=0),
        "range": with_q(quant_min=-127, quant_max=127),
        "bad_range": with_q(quant_min=1, quant_max=0),
        "bad_axis": with_q(axis=1),
        "bad_qdtype": with_q(dtype="torch.float32"),
        "bad_qscheme": with_q(qscheme="x"),
        "bad_storage": with_q(dtype="torch.quint8"),
        "quantized_nothing": model(quantized={**good["quantized"], "z": {}}),
        "version": model(version=2),
        "format": model(format="onnx"),
        "unknown_key": model(unknown=1),
        "no_nodes": model(nodes=None),
        "no_output": model(nodes=nodes[:2]),
        "same_name": model(nodes=[nodes[0], nodes[0]]),
        "no_class": with_linear(type="torch.nn.Liner"),
        "no_parent": with_linear(path="a.fc"),
        "bad_path": with_linear(path="a..b"),
        "bad_training": with_linear(training=1),
        "bad_repr": with_linear(repr=1),
        "bad_state": with_linear(state=["a"]),
        "bad_graph": with_linear(graph={}),
        "bad_quantized": with_linear(quantized={"weight": {}}),
        "config_node": with_linear(config={"in_features": {"node": "x"}}),
        "twice": model(modules=[linear, linear]),
        "tensor_twice": model(buffers=["fc.bias"]),
        "tensor_missing": model(buffers=["fc.other"]),
        "tensor_nowhere": model(buffers=["fd.other"]),
        "tensor_unlisted": model(parameters=["fc.weight", "q"]),
        "codegen": model(codegen="fancy"),
        "target_module": model(nodes=[nodes[0], node("call_module", "fd", {"node": "x"})]),
        "target_tensor": model(nodes=[nodes[0], node("get_attr", "fc.w", name="w")]),
        "bad_op": model(nodes=[node("call", "f")]),
        "bad_stack": model(nodes=[node("placeholder", "x", meta={"nn_module_stack": [[1]]}), *nodes[1:]]),
        "empty_stack": model(nodes=[node("placeholder", "x", meta={"nn_module_stack": []}), *nodes[1:]]),
        "deep": [[[[[[[[]]]]]]]],
    }
    bad_arguments = [{"node": "y"}, {"node": 1}, {"float": "one"}, {"slice": [1]}, {"ellipsis": False}, {"dtype": "f"},
                     {"qscheme": "q"}, {"scalar": "1", "dtype": "int"}, {"scalar": 1}, {"dict": [[1]]}, {"device": 1},
                     {}, {"knot": "x"}, {"node": "x", "a": 1}]
    for i, argument in enumerate(bad_arguments):
        cases["bad_argument_%02d" % i] = with_argument(argument)
    for name, value in cases.items():
        put("model_json", name, json.dumps(value, indent=1).encode())
    put("model_json", "not_json", b"{")


write_safetensors()
write_npz()
write_models()

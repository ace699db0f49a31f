#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the fuzzers of files: well-formed ones, and one for each way to be
refused that is told from its form. usage: make_corpus.py [FOLDER]   (default: corpus beside it)
The same bytes come out every time; what fuzzing found lies beside them under other names."""
import io
import json
import os
import re
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


# --- operators: text over the tensors of fuzz_operators.c, one call a file ---
CALLS = """
torch.conv2d(f, w, v, (1, 1), (1, 1), (1, 1), 2)
torch.conv2d(f, w, None, (0, -1))
torch.conv2d(f, w, None, 1, 'same', 2, 2)
torch.conv1d(e, e)
torch.conv3d(f, f)
torch.conv_transpose2d(f, w, None, 2, 0, 1, 2)
torch.conv_transpose2d(f, w, None, 1, 0, 0, 4611686018427387904)
torch.conv_transpose1d(e, e, None, 1, 1000)
torch._C._nn.linear(m, m, v)
t = m.t(); torch.matmul(f, t)
t = m.t(); u = v[(slice(0, 1, None),)]; torch.addmm(u, m, t, beta = 2)
torch.nn.functional.relu(c)
torch.nn.functional.relu(h)
torch.clamp(q, 0, 1)
torch.sigmoid(q)
torch._C._nn.gelu(f, approximate = 'tanh')
torch.prelu(f, v)
torch.softmax(f, -1)
torch.nn.functional.max_pool2d(f, 2, 1, 1, 2, True)
torch.nn.functional.max_pool2d(f, 2147483647, 1, 1073741823)
torch._C._nn.avg_pool2d(x, 3, 2, 1, True, False, -3)
torch._C._nn.avg_pool3d(f, 2147483647, 1, 1073741823)
torch.nn.functional.adaptive_avg_pool2d(f, (None, 3))
torch.nn.functional.adaptive_max_pool1d(e, 2)
torch.nn.functional.max_pool1d(q, 2)
torch.nn.functional.batch_norm(f, v, v, v, v, True, 0.1, 0.0)
torch.nn.functional.layer_norm(m, [3])
torch.nn.functional.group_norm(f, 2, v)
torch.nn.functional.instance_norm(f, v, v, use_input_stats = False)
u = v.view(4, 1, 1); f + u
i * 3.5
i // 0
b + True
[1, 2] + [3]
[m, m] * 1000000
-9223372036854775808 * -1
torch.div(i, z, rounding_mode = 'floor')
torch.remainder(i, m)
torch.pow(m, 0.5)
torch.maximum(f, w)
b.eq(m)
torch.neg(-9223372036854775807)
torch.neg(tensor(inf, dtype=torch.float32))
torch.abs(k)
torch.sqrt(m)
torch.masked_fill(m, b, 3e300)
torch.mean(f, [2, 3], True)
torch.sum(i)
torch.amax(e, 0)
torch.mean(q, 1)
f.view(2, -1)
f.view(-1, 0)
torch.reshape(e, (0, 9223372036854775807, 9223372036854775807))
torch.flatten(f, 1)
torch.unflatten(v, 0, (2, -1))
torch.squeeze(s, 0)
torch.unsqueeze(f, -1)
torch.transpose(c, 0, 1)
torch.permute(f, (3, 2, 1, 0))
v.expand(9223372036854775807, 4)
e.expand(-1, -1, -1)
v.repeat(2147483647, 2147483647, 2147483647)
torch.repeat_interleave(m, 2, 1)
torch.repeat_interleave(s, 3, 0)
torch.pixel_shuffle(f, 2)
torch.pixel_shuffle(f, 4294967296)
torch.pixel_unshuffle(f, 1)
torch.channel_shuffle(f, 2)
f[(0, slice(1, None, 9223372036854775807), None, Ellipsis)]
f[(Ellipsis, Ellipsis, Ellipsis, Ellipsis)]
u = z.sum(); f[u]
f[(slice(-9223372036854775808, 9223372036854775807, None),)]
[1, 2, 3][slice(1, None, 9223372036854775807)]
c[(slice(0, 2, None),)]
torch.narrow(f, 1, 9223372036854775807, 1)
torch.select(f, 1, -1)
torch.chunk(f, 9223372036854775807, 1)
torch.chunk(e, 9223372036854775807, 0)
torch.functional.split(f, [1, 3], 1)
torch.functional.split(f, 9223372036854775807, 1)
torch.unbind(f, 1)
b0 = e.expand(0, 4, 2); b0.repeat(2147483647, 2147483647, 2147483647)
u = e.view(4, 0, 2); y = u.expand(1099511627776, 1048576, 4, 0, 2); torch.matmul(y, y)
e1 = torch.unbind(f, 1); e1[slice(None, None, 2)]
y = q.expand(3, 4, 3); torch.nn.functional.max_pool1d(y, 2)
y = torch.permute(c, (1, 0)); torch.dequantize(y)
y = v.expand(1099511627776, 4); torch.unbind(y)
f.size(1)
f.shape
m.T
torch.cat([m, m], -1)
torch.cat([c, c], 0)
torch.cat([q, q], 1)
torch.stack([f, f])
torch.nn.functional.pad(f, (1, 1, 0, 2), 'reflect')
torch.nn.functional.pad(f, (9223372036854775807, 9223372036854775807))
torch.nn.functional.pad(f, (-9223372036854775808, 1), 'circular')
torch.nn.functional.interpolate(f, scale_factor = 1.5, mode = 'bilinear')
torch.nn.functional.interpolate(f, (1, 7), mode = 'nearest-exact')
torch.nn.functional.embedding(i, m)
torch.nn.functional.embedding(k, m)
torch.quantize_per_tensor(x, 0.1, 128, torch.quint8)
torch.quantize_per_tensor(x, 0.0, -9223372036854775808, torch.qint32)
torch.quantize_per_tensor(m, d, z, torch.quint4x2)
torch.quantize_per_channel(m, d, z, 0, torch.qint8)
torch.quantize_per_channel(m, v, v, 0, torch.quint8)
torch.quantize_per_tensor_dynamic(m, torch.quint8, True)
torch.quantize_per_tensor_dynamic(m, torch.qint32, False)
torch.dequantize(c)
f.to(torch.quint8)
m.to(i)
torch.int_repr(q)
torch.ops.quantized.add(q, q, 0.2, 3)
torch.ops.quantized.add(q, 1e300)
torch.ops.quantized.mul_relu(q, -1e-300)
torch.ops.quantized.hardswish(q, 0.1, 0)
torch.ops.quantized.layer_norm(q, [3], None, None, 1e-05, output_scale = 0.1, output_zero_point = 0)
torch.ops.quantized.cat([q, q], dim = 0, scale = 0.1, zero_point = 2)
t = q.t(); torch.ops.quantized.matmul(q, t, scale = 0.1, zero_point = 2)
torch.ops.quantized_decomposed.quantize_per_tensor.default(x, 0.1, 3, -128, 127, torch.int8)
torch.ops.quantized_decomposed.quantize_per_tensor.default(h, 0.0, -9223372036854775808, 9223372036854775807, -9223372036854775808, torch.float8_e5m2)
torch.ops.quantized_decomposed.dequantize_per_tensor.default(i, 0.1, 3, 0, 255, torch.uint8)
torch.ops.quantized_decomposed.quantize_per_channel.default(m, d, None, 0, -128, 127, torch.int8)
torch.ops.quantized_decomposed.dequantize_per_channel.default(i, d, z, 0, 0, 255, torch.uint8)
torch.ops.quantized_decomposed.choose_qparams.tensor(m, -9223372036854775808, 9223372036854775807, 0.0, torch.uint8)
torch.ops.quantized_decomposed.choose_qparams_symmetric.tensor(x, -127, 127, 1e-08, torch.int8)
""".strip().splitlines()


def write_operators():
    for i, line in enumerate(CALLS):
        *before, call = line.split("; ")
        used = [n for n in "fwmvsehikbdzqc" if re.search(r"(?<![\w.'])%s(?![\w'=])" % n, line)]
        body = ["%s = self.%s" % (n, n) for n in used] + before + ["a = " + call, "return a"]
        put("operators", "call_%03d.txt" % i, "\n    ".join(["def forward(self, x):", *body, ""]).rstrip(" ").encode())
    lines = ["    a%d = [a%d, a%d] + []" % (i + 1, i, i) for i in range(40)]
    put("operators", "doubling.txt", "\n".join(["def forward(self, a0):", *lines, "    return a40\n"]).encode())
    chain = ["    a%d = [a%d] + []" % (i + 1, i) for i in range(150)]
    put("operators", "nesting.txt", "\n".join(["def forward(self, a0):", *chain, "    return a150\n"]).encode())


# --- whole models, to be run ---
class Weights:
    """Tensors of a model file: numbers that count up, so that no two are equal."""

    def __init__(self):
        self.header, self.data = {}, b""

    def add(self, name, dtype, *shape, values=None):
        count = 1
        for size in shape:
            count *= size
        form = {"F32": "f", "F64": "d", "I64": "q", "I8": "b"}[dtype]
        if values is None:
            values = [(i % 13 - 6) * (0.125 if form in "fd" else 1) for i in range(count)]
        begin, self.data = len(self.data), self.data + struct.pack("<%d%s" % (count, form), *values)
        self.header[name] = tensor(dtype, list(shape), begin, len(self.data))


def run_model(weights, modules, nodes, quantized=()):
    plain = [n for n in weights.header if not any(n.startswith(q + ".") for q in quantized)]
    graph = model(modules=modules, nodes=nodes, parameters=plain + list(quantized), quantized=None)
    return safetensors({"__metadata__": {"tare.graph": json.dumps(graph)}, **weights.header}, weights.data)


def one_module(kind, config, weights, quantized=None, training=False, before=(), arguments=()):
    nodes = [node("placeholder", "x")]
    last = "x"
    for target, *more in before:
        nodes.append(node("call_function", target, {"node": last}, *more, name=target.rsplit(".", 1)[-1]))
        last = nodes[-1]["name"]
    nodes += [node("call_module", "l", {"node": last}, *arguments), node("output", "output", {"node": "l"})]
    entry = {**module("l", kind, config=config), "training": training}
    if quantized:
        entry["quantized"] = quantized
    return run_model(weights, [entry], nodes, ["l." + name for name in quantized or ()])


def with_tensors(*rows, quantized=None):
    w = Weights()
    for name, dtype, *shape in rows:
        one = name.endswith(("scale", "zero_point"))  # rows of these give the number, not a shape
        w.add("l." + name, dtype, *([] if one else shape), values=shape if one else None)
    for name, shape, channels in quantized or ():
        w.add("l.%s.scale" % name, "F64", channels, values=[0.25] * channels)
        w.add("l.%s.zero_point" % name, "I64", channels, values=[0] * channels)
        w.add("l.%s.int_repr" % name, "I8", *shape)
    return w


def write_runs():
    def pair(a, b):
        return {"tuple": [a, b]}

    quantize = [("torch.quantize_per_tensor", 0.1, 128, {"dtype": "torch.quint8"})]
    per_tensor = {"dtype": "torch.qint8", "qscheme": "torch.per_tensor_affine"}
    per_channel = {"dtype": "torch.qint8", "qscheme": "torch.per_channel_affine", "axis": 0}
    output = [("scale", "F64", 0.25), ("zero_point", "I64", 3)]
    conv = {"in_channels": 3, "out_channels": 2, "kernel_size": pair(2, 2), "stride": pair(1, 1),
            "padding": pair(1, 1), "dilation": pair(1, 1), "groups": 1, "padding_mode": "zeros"}
    linear = {"in_features": 3, "out_features": 2}
    norm = {"num_features": 3, "eps": 1e-05, "momentum": 0.1, "affine": True, "track_running_stats": True}
    norm_tensors = [(n, "F32", 3) for n in ("weight", "bias", "running_mean", "running_var")]
    norm_tensors.append(("num_batches_tracked", "I64"))
    rnn = {"input_size": 3, "hidden_size": 2, "num_layers": 1, "batch_first": False, "bidirectional": False}
    reference = {"weight_qscheme": {"qscheme": "torch.per_tensor_affine"}, "weight_dtype": {"dtype": "torch.qint8"}}
    R, NNQ = "torch.ao.nn.quantized.reference.", "torch.ao.nn.quantized."
    parts = [("weight_scale", "F64", 0.25), ("weight_zero_point", "I64", 0)]
    lstm = [("weight_ih_l0", "F32", 8, 3), ("weight_hh_l0", "F32", 8, 2), ("bias_ih_l0", "F32", 8),
            ("bias_hh_l0", "F32", 8)]
    cases = {
        "linear": one_module("torch.nn.Linear", linear,
                             with_tensors(("weight", "F32", 2, 3), ("bias", "F32", 2))),
        "conv": one_module("torch.nn.Conv2d", conv,
                           with_tensors(("weight", "F32", 2, 3, 2, 2), ("bias", "F32", 2))),
        "conv_reflect": one_module("torch.nn.Conv2d", {**conv, "padding_mode": "reflect"},
                                   with_tensors(("weight", "F32", 2, 3, 2, 2))),
        "conv_transpose": one_module("torch.nn.ConvTranspose2d", {**conv, "output_padding": pair(0, 0)},
                                     with_tensors(("weight", "F32", 3, 2, 2, 2))),
        "batch_norm": one_module("torch.nn.BatchNorm2d", norm, with_tensors(*norm_tensors)),
        "batch_norm_training": one_module("torch.nn.BatchNorm2d", norm, with_tensors(*norm_tensors), training=True),
        "layer_norm": one_module("torch.nn.LayerNorm", {"normalized_shape": {"tuple": [3]}, "eps": 1e-05},
                                 with_tensors(("weight", "F32", 3), ("bias", "F32", 3))),
        "max_pool": one_module("torch.nn.MaxPool2d", {"kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1,
                                                      "ceil_mode": False}, Weights()),
        "quantized_pool": one_module("torch.nn.AvgPool2d", {"kernel_size": 2, "stride": 2, "padding": 0}, Weights(),
                                     before=quantize),
        "embedding": one_module("torch.nn.Embedding", {"num_embeddings": 9, "embedding_dim": 2},
                                with_tensors(("weight", "F32", 9, 2))),
        "embedding_bag": one_module("torch.nn.EmbeddingBag", {"num_embeddings": 9, "embedding_dim": 2, "mode": "max"},
                                    with_tensors(("weight", "F32", 9, 2))),
        "lstm": one_module("torch.nn.LSTM", {**rnn, "input_size": 10},
                           with_tensors(("weight_ih_l0", "F32", 8, 10), *lstm[1:])),
        "lstm_cell": one_module("torch.nn.LSTMCell", rnn,
                                with_tensors(*[(n.replace("_l0", ""), *r) for n, *r in lstm])),
        "reference_linear": one_module(R + "Linear", {**linear, **reference},
                                       with_tensors(("weight", "F32", 2, 3), *parts)),
        "reference_conv": one_module(R + "Conv2d", {**conv, **reference},
                                     with_tensors(("weight", "F32", 2, 3, 2, 2), *parts)),
        "quantized_linear": one_module(NNQ + "Linear", {**linear, "rule": "F"},
                                       with_tensors(*output, quantized=[("weight", (2, 3), 1)]),
                                       quantized={"weight": per_tensor}, before=quantize),
        "quantized_conv": one_module(NNQ + "Conv2d", {**conv, "rule": "O"},
                                     with_tensors(*output, ("bias", "F32", 2), quantized=[("weight", (2, 3, 2, 2), 2)]),
                                     quantized={"weight": per_channel}, before=quantize),
        "dynamic_linear": one_module(NNQ + "dynamic.Linear", {**linear, "rule": "F"},
                                     with_tensors(quantized=[("weight", (2, 3), 1)]),
                                     quantized={"weight": per_tensor}),
        "quantized_elu": one_module(NNQ + "ELU", {"alpha": 1.0}, with_tensors(*output), before=quantize),
        "quantized_norm": one_module(NNQ + "BatchNorm2d", norm, with_tensors(*output, *norm_tensors), before=quantize),
    }
    for name, data in cases.items():
        put("run", name, data)


# --- onnx: protobuf by hand ---
def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def pb(field, content):
    if isinstance(content, int):
        return varint(field << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def pbs(field, contents):
    return b"".join(pb(field, c) for c in contents)


def onnx_attr(name, value):
    if isinstance(value, int):
        return pb(1, name) + pb(3, value) + pb(20, 2)
    if isinstance(value, float):
        return pb(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + pb(20, 1)
    if isinstance(value, str):
        return pb(1, name) + pb(4, value) + pb(20, 3)
    if isinstance(value, bytes):  # a tensor
        return pb(1, name) + pb(5, value) + pb(20, 4)
    if isinstance(value, tuple):  # a graph: its parts
        return pb(1, name) + pb(6, b"".join(value)) + pb(20, 5)
    return pb(1, name) + pbs(8, value) + pb(20, 7)


def onnx_node(op, name, inputs, outputs, scope=None, domain=None, refers=(), **attributes):
    data = pbs(1, inputs.split()) + pbs(2, outputs.split()) + pb(3, name) + pb(4, op)
    data += (pb(7, domain) if domain else b"") + pbs(5, [pb(1, r) + pb(20, 1) + pb(21, r) for r in refers])
    data += pbs(5, [onnx_attr(k, v) for k, v in attributes.items()])
    for key, value in (scope or {}).items():
        data += pb(9, pb(1, "pkg.torch.onnx." + key) + pb(2, value))
    return pb(1, data)


def onnx_tensor(name, dims, data_type=1, raw=None, fields=b""):
    return pbs(1, dims) + pb(2, data_type) + (pb(8, name) if name else b"") + \
        (pb(9, raw) if raw is not None else b"") + fields


def onnx_floats(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return pb(5, onnx_tensor(name, dims, raw=struct.pack("<%df" % count, *[(i % 7 - 3) / 4 for i in range(count)])))


def onnx_ints(name, *values):
    return pb(5, onnx_tensor(name, [len(values)], 7, fields=pbs(7, values)))


def onnx_input(name, *dims, field=11):
    shape = b"".join(pb(1, pb(1, d) if isinstance(d, int) else pb(2, d)) for d in dims)
    return pb(field, pb(1, name) + pb(2, pb(1, pb(1, 1) + pb(2, shape))))


def onnx_model(*graph, opset=17, ir=8, more=b""):
    return pb(1, ir) + pb(2, "pytorch") + pb(7, b"".join(graph)) + pb(8, pb(2, opset)) + more


def onnx_function(name, inputs, outputs, *nodes, attributes=(), defaults=(), opset=17):
    """nodes: as onnx_node gives them, which write the field of a graph; a function's is another."""
    return pb(25, pb(1, name) + pbs(4, inputs.split()) + pbs(5, outputs.split()) + pbs(6, attributes) +
              b"".join(b"\x3a" + n[1:] for n in nodes) + pb(9, pb(2, opset)) + pb(10, "own") + pbs(11, defaults))


def write_onnx():
    x, y = onnx_input("x", "N", 2, 4, 4), onnx_input("y", field=12)
    conv = (onnx_floats("conv.weight", 3, 2, 3, 3), onnx_floats("conv.bias", 3))
    external = pb(5, onnx_tensor("w", [4], fields=pb(13, pb(1, "location") + pb(2, "../w.bin")) + pb(14, 1)))
    bomb = b""
    for _ in range(80):
        bomb = pb(1, pb(5, pb(6, bomb)))
    types = [(1, 4, pb(4, struct.pack("<4f", 1, 2, 3, 4))), (2, 4, pbs(5, [1, 2])), (3, 1, pbs(5, [1, -2])),
             (4, 2, pbs(5, [1, 2])), (5, 2, pbs(5, [1, -2])), (6, 4, pbs(5, [1, -2])), (7, 8, pbs(7, [1, -2])),
             (9, 1, pbs(5, [0, 1])), (10, 2, pbs(5, [15360, 0])), (16, 2, pbs(5, [16256, 0])), (8, 0, pbs(6, ["a"]))]
    scope = {"name_scopes": "['', 'act', 'relu']",
             "class_hierarchy": "['__main__.M', 'torch.nn.modules.activation.ReLU', 'aten.relu.default']"}
    cases = {
        "conv": onnx_model(onnx_node("Conv", "/conv/Conv", "x conv.weight conv.bias", "a", pads=[1, 1, 1, 1]),
                           onnx_node("Relu", "/relu/Relu", "a", "b"), onnx_node("Add", "/Add", "a b", "y"), x, y, *conv),
        "scopes": onnx_model(onnx_node("Relu", "node_relu", "x", "y", scope=scope), x, y),
        "calls": onnx_model(onnx_node("Relu", "/block/block.0/relu/Relu", "x", "a"),
                            onnx_node("Relu", "/block/block.0/relu_1/Relu", "a", "y"), x, y),
        "linear": onnx_model(onnx_node("MatMul", "/fc/MatMul", "x onnx::MatMul_1", "a"), onnx_node("Add", "/fc/Add", "b a", "y"),
                             onnx_input("x", 1, 5, 4), y, onnx_floats("onnx::MatMul_1", 4, 3), onnx_floats("b", 3)),
        "gelu": onnx_model(onnx_node("Constant", "", "", "s", value=onnx_tensor("", [], raw=struct.pack("<f", 2 ** .5))),
                           onnx_node("Constant", "", "", "one", value=onnx_tensor("", [], raw=struct.pack("<f", 1))),
                           onnx_node("Constant", "", "", "half", value=onnx_tensor("", [], raw=struct.pack("<f", .5))),
                           onnx_node("Div", "/act/Div", "x s", "a"), onnx_node("Erf", "/act/Erf", "a", "b"),
                           onnx_node("Add", "/act/Add", "b one", "c"), onnx_node("Mul", "/act/Mul", "x c", "d"),
                           onnx_node("Mul", "/act/Mul_1", "d half", "y"), x, y),
        "reshape": onnx_model(onnx_node("Shape", "", "x", "s"), onnx_node("Gather", "", "s zero", "n", axis=0),
                              onnx_node("Concat", "", "n rest", "t", axis=0), onnx_node("Reshape", "", "x t", "y"),
                              x, y, onnx_ints("zero", 0), onnx_ints("rest", -1)),
        "pool": onnx_model(onnx_node("MaxPool", "", "x", "a", kernel_shape=[2, 2], strides=[2, 2]),
                           onnx_node("GlobalAveragePool", "", "a", "b"), onnx_node("Flatten", "", "b", "y", axis=1), x, y),
        "softmax": onnx_model(onnx_node("Softmax", "", "x", "a", axis=-1), onnx_node("Transpose", "", "a", "y", perm=[0, 2, 1, 3]),
                              x, y),
        "split": onnx_model(onnx_node("Split", "", "x", "a b", axis=1), onnx_node("Mul", "", "a b", "y"), x, y),
        "constant_of_shape": onnx_model(onnx_node("ConstantOfShape", "", "s", "c"), onnx_node("Add", "", "x c", "y"), x, y,
                                        onnx_ints("s", 4, 4)),
        "huge_constant": onnx_model(onnx_node("ConstantOfShape", "", "s", "c"), onnx_node("Add", "", "x c", "y"), x, y,
                                    onnx_ints("s", 1 << 30, 1 << 20)),
        "shared_name": onnx_model(onnx_node("Relu", "a", "x", "y"), onnx_node("Relu", "b", "x", "y"), x, y),
        "circle": onnx_model(onnx_node("Relu", "a", "c", "b"), onnx_node("Relu", "b", "b", "c"), x, onnx_input("c", field=12)),
        "backwards": onnx_model(onnx_node("Relu", "b", "a", "y"), onnx_node("Relu", "a", "x", "a"), x, y),
        "unknown_op": onnx_model(onnx_node("FancyOp", "a", "x", "y"), x, y),
        "opset_99": onnx_model(onnx_node("Relu", "a", "x", "y"), x, y, opset=99),
        "ir_99": onnx_model(onnx_node("Relu", "a", "x", "y"), x, y, ir=99),
        "function": onnx_model(onnx_node("F", "a", "x", "y"), x, y, more=pb(25, pb(1, "F") + pb(10, "local"))),
        "functions": onnx_model(
            onnx_node("Outer", "/act/Outer", "x", "a b", domain="own", alpha=0.5), onnx_node("Inner", "", "a", "c", domain="own"),
            onnx_node("Add", "", "b c", "y"), x, y,
            more=onnx_function("Inner", "a", "b", onnx_node("LeakyRelu", "", "a", "b", refers=["alpha"]), attributes=["alpha"],
                               defaults=[onnx_attr("alpha", 0.25)]) +
            onnx_function("Outer", "a", "b a", onnx_node("Inner", "", "a", "s", domain="own", refers=["alpha"]),
                          onnx_node("Mul", "", "a s", "b"), attributes=["alpha"])),
        "function_circle": onnx_model(onnx_node("F", "", "x", "y", domain="own"), x, y,
                                      more=onnx_function("F", "a", "b", onnx_node("F", "", "a", "b", domain="own"))),
        "function_bomb": onnx_model(onnx_node("F0", "", "x", "y", domain="own"), x, y, more=b"".join(
            onnx_function("F%d" % i, "a", "b", *[onnx_node("F%d" % (i + 1), "", "a", "b", domain="own")] * 9)
            for i in range(9))),
        "loop_items": onnx_model(
            onnx_ints("rounds", (1 << 63) - 1), onnx_ints("goes_on", 1), x, y,
            onnx_node("Loop", "", "rounds goes_on x", "y " + " ".join("i%d" % i for i in range(400)),
                      body=(onnx_input("i"), onnx_input("before"), onnx_input("h", "N", 2, 4, 4),
                            onnx_node("Neg", "", "h", "item"), pbs(12, [pb(1, "before")] + [pb(1, "item")] * 401)))),
        "loop_branch_not_taken": onnx_model(
            onnx_ints("rounds", 4000), onnx_ints("no", 0), x, y,
            onnx_node("Loop", "", "rounds rounds x", "y",
                      body=(onnx_input("i"), onnx_input("before"), onnx_input("h", "N", 2, 4, 4),
                            onnx_node("If", "", "no", "n", then_branch=(onnx_node("Neg", "", "h", "a"),) * 400 + (pb(12, pb(1, "a")),),
                                      else_branch=(onnx_node("Abs", "", "h", "b"), pb(12, pb(1, "b")))),
                            pbs(12, [pb(1, "before"), pb(1, "n")])))),
        "split_to_sequence": onnx_model(
            pb(5, onnx_tensor("size", [], 7, fields=pb(7, (1 << 63) - 1))), onnx_ints("first", 0), x, y,
            onnx_node("SplitToSequence", "", "x size", "s", axis=1), onnx_node("SequenceAt", "", "s first", "y")),
        "external": onnx_model(onnx_node("Add", "a", "x w", "y"), x, y, external),
        "bomb": onnx_model(bomb),
        "open_size": onnx_model(onnx_node("Relu", "a", "x", "y"), onnx_input("x", "N", "M"), y),
        "no_graph": pb(1, 8) + pb(8, pb(2, 17)),
        "two_graphs": onnx_model(x, y) + pb(7, x),
        "cut": onnx_model(x, y)[:-3],
        "not_text": onnx_model(onnx_node("Relu", "a", "x", "y"), pb(2, b"\xff\xfe"), x, y),
        "short_raw": onnx_model(onnx_node("Add", "a", "x w", "y"), x, y, pb(5, onnx_tensor("w", [4], raw=bytes(15)))),
        "huge_dims": onnx_model(onnx_node("Add", "a", "x w", "y"), x, y,
                                pb(5, onnx_tensor("w", [1 << 40, 1 << 40], raw=b""))),
    }
    for data_type, _, fields in types:
        tensor = pb(5, onnx_tensor("w", [4 if data_type == 1 else 2], data_type, fields=fields))
        cases["type_%d" % data_type] = onnx_model(onnx_node("Identity", "", "w", "y"), x, y, tensor)
    for name, data in cases.items():
        put("onnx", name, data)


# --- programs of torch.export ---
def pt2_archive(members, root="m", method=zipfile.ZIP_STORED):
    """Without checksums, as torch may write it: what a fuzzer changes in a member is read."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, content in members:
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            z.writestr(zipfile.ZipInfo(root + "/" + name, (1980, 1, 1, 0, 0, 0)), text, method)
    data = out.getvalue()
    if method == zipfile.ZIP_STORED:
        for mark in (b"PK\x03\x04.{10}", b"PK\x01\x02.{12}"):
            data = re.sub(b"(" + mark + b").{4}", lambda m: m.group(1) + bytes(4), data, flags=re.S)
    return data


def pt2_meta(sizes, strides=None, dtype=7, offset=0):
    def number(n):
        return {"as_int": n} if isinstance(n, int) else {"as_expr": {"expr_str": n, "hint": None}}
    if strides is None:
        strides = [1] * len(sizes)
        for i in reversed(range(len(sizes) - 1)):
            strides[i] = strides[i + 1] * sizes[i + 1]
    return {"dtype": dtype, "sizes": [number(n) for n in sizes], "strides": [number(n) for n in strides],
            "storage_offset": number(offset), "layout": 7, "requires_grad": False,
            "device": {"type": "cpu", "index": None}}


def pt2_payload(record, meta, pickle=False):
    return {"path_name": record, "is_param": True, "use_pickle": pickle, "tensor_meta": meta}


def pt2_tensor(name):
    return {"as_tensor": {"name": name}}


def pt2_node(target, name, arguments, outputs=None, **keywords):
    inputs = [{"name": "", "arg": a, "kind": 1} for a in arguments]
    inputs += [{"name": k, "arg": a, "kind": 2} for k, a in keywords.items()]
    return {"target": "torch.ops.aten." + target, "name": name, "inputs": inputs,
            "outputs": outputs or [pt2_tensor(name)],
            "metadata": {"nn_module_stack": "L__self__,,N;L__self__a,a,torch.nn.modules.linear.Linear",
                         "torch_fn": "f_1;function.f", "source_fn_stack": "f,torch.f"}}


def pt2_program(nodes, specs=(), outputs=("y",), tensors=None, major=8, names=("x",)):
    leaf = {"type": None, "context": None, "children_spec": []}
    tree = {"type": "builtins.tuple", "context": "null", "children_spec": [
        {"type": "builtins.tuple", "context": "null", "children_spec": [leaf] * len(names)},
        {"type": "builtins.dict", "context": "[]", "children_spec": []}]}
    specs = list(specs) + [{"user_input": {"arg": pt2_tensor(n)}} for n in names]
    return {"schema_version": {"major": major, "minor": 20}, "graph_module": {
        "graph": {"nodes": nodes, "tensor_values": tensors or {}},
        "signature": {"input_specs": specs,
                      "output_specs": [o if isinstance(o, dict) else {"user_output": {"arg": pt2_tensor(o)}}
                                       for o in outputs]},
        "module_call_graph": [{"fqn": "", "signature": {"in_spec": json.dumps([1, tree]),
                                                        "forward_arg_names": list(names)}}]}}


def write_pt2():
    weight = {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "a.w"}}
    buffer = {"buffer": {"arg": {"name": "b_n"}, "buffer_name": "a.n", "persistent": False}}
    constant = {"tensor_constant": {"arg": {"name": "c_k"}, "tensor_constant_name": "k"}}
    flag = {"constant_input": {"name": "flag", "value": {"as_bool": True}}}
    add = pt2_node("add.Tensor", "y", [pt2_tensor("x"), pt2_tensor("p_w")], alpha={"as_float": "Infinity"})
    several = pt2_node("topk.default", "topk", [pt2_tensor("x"), {"as_int": 1}], [pt2_tensor("y"), pt2_tensor("z")])
    parts = pt2_node("split.Tensor", "split", [pt2_tensor("x"), {"as_sym_int": {"as_name": "n"}}],
                     [{"as_tensors": [{"name": "y"}, {"name": "split_unused_1"}]}])
    size = pt2_node("sym_size.int", "n", [pt2_tensor("x"), {"as_int": 0}], [{"as_sym_int": {"as_name": "n"}}])
    kinds = pt2_node("zeros.default", "y", [{"as_ints": [1, 2]}], dtype={"as_scalar_type": 7}, pin_memory={"as_bool": False},
                     device={"as_device": {"type": "cpu", "index": None}}, layout={"as_layout": 7},
                     memory_format={"as_memory_format": 1}, a={"as_string": "s"}, b={"as_floats": [0.5]},
                     c={"as_optional_tensors": [{"as_none": True}, pt2_tensor("x")]}, d={"as_int_lists": [[1], []]})
    into = {"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "a.n"}}
    config = {"config": {"a.w": pt2_payload("weight_0", pt2_meta([2, 2]))}}
    constants = {"config": {"a.n": pt2_payload("tensor_0", pt2_meta([], dtype=5)),
                            "k": pt2_payload("tensor_1", pt2_meta([2, 2], [1, 2]))}}
    weights = [("data/weights/model_weights_config.json", config), ("data/weights/weight_0", bytes(16))]
    rest = [("data/constants/model_constants_config.json", constants), ("data/constants/tensor_0", bytes(8)),
            ("data/constants/tensor_1", bytes(16))]

    def archive(nodes, *more, specs=(weight,), table=None, **options):
        table = weights if table is None else table
        return pt2_archive([("archive_format", b"pt2"), ("models/model.json", pt2_program(nodes, specs, **options))]
                           + list(table) + list(more))

    shapes = {"x": pt2_meta(["s0", 2], [2, 1]), "y": pt2_meta([2, 2])}
    wrong = [("data/weights/weight_0", bytes(16))]
    cases = {
        "plain": archive([add], tensors=shapes),
        "everything": archive([size, add], *rest, specs=[weight, buffer, constant, flag], outputs=[into, "y"], tensors=shapes),
        "tuple": archive([several], outputs=["y", "z"]),
        "list": archive([size, parts]),
        "kinds": archive([kinds]),
        "deflated": pt2_archive([("models/model.json", pt2_program([add], [weight]))] + weights, method=zipfile.ZIP_DEFLATED),
        "schema": archive([add], major=7),
        "version": archive([add], ("archive_version", b"1")),
        "pickle": archive([add], table=[("data/weights/model.pt", b"")]),
        "escape": archive([add], ("../x", b"")),
        "huge": archive([add], *wrong, table=[("data/weights/model_weights_config.json", {"config": {
            "a.w": pt2_payload("weight_0", pt2_meta([1 << 40, 1 << 40], [0, 0]))}})]),
        "outside": archive([add], *wrong, table=[("data/weights/model_weights_config.json", {"config": {
            "a.w": pt2_payload("weight_0", pt2_meta([2, 2], [2, 1], offset=1))}})]),
        "missing": archive([add], table=[]),
        "cut": archive([add])[:-30],
    }
    for name, data in cases.items():
        put("pt2", name, data)


# --- quantizers: rules, settings, and annotations of examples/data/annotate.pt2 ---
def write_quantizers():
    plain = {"spec": "QuantizationSpec", "dtype": "torch.int8", "quant_min": -128, "quant_max": 127,
             "qscheme": "torch.per_tensor_affine", "is_dynamic": False,
             "observer_or_fake_quant_ctr": {"class": "MinMaxObserver", "kwargs": {"eps": 0.000244140625}}}
    fixed = {"spec": "FixedQParamsQuantizationSpec", "dtype": "torch.uint8", "scale": 0.5, "zero_point": 0,
             "quant_min": 0, "quant_max": 255, "qscheme": "torch.per_tensor_affine"}

    def shared(*names):
        target = {"node": names[0]} if len(names) == 1 else {"edge": list(names)}
        return {"spec": "SharedQuantizationSpec", "edge_or_node": target}

    def derived(*edges):
        return {"spec": "DerivedQuantizationSpec", "dtype": "torch.int32", "qscheme": "torch.per_tensor_symmetric",
                "derived_from": [{"edge": list(e)} for e in edges],
                "derive_qparams_fn": "_derive_bias_qparams_from_act_and_weight_qparams"}

    def node(inputs, output=None, **more):
        return {"input_qspec_map": [[k, v] for k, v in inputs.items()], "output_qspec": output, **more}

    x, conv = ("x", "conv2d"), ("conv1_weight", "conv2d")
    relu = "def forward(self, x):\n    y = torch.nn.functional.relu(x)\n    return (y, {'x': x, 'y': y})\n"
    rules = {"format": "tare-quantizer", "version": 1, "name": "q", "specs": {"a": plain, "b": fixed},
             "config": {"input_activation": "a"}, "keeps_observer": ["torch.ops.aten.sigmoid.default"],
             "joins_inputs": ["torch.ops.aten.cat.default"],
             "rules": [{"name": "relu", "pattern": [relu], "match_literals": True,
                        "annotations": {"y": node({"x": "a"}, shared("x", "y"))}}]}
    every = {"conv2d": node({"x": plain, "conv1_weight": plain, "conv1_bias": derived(x, conv)}),
             "relu": node({}, plain, _annotated=True), "add": node({"relu": shared("relu")}, fixed),
             "cat": node({"add_1": plain, "conv2d_1": shared("add_1", "cat")}, shared("add_1", "cat"),
                         allow_implicit_sharing=False)}
    cases = {
        "rules": rules,
        "rules_version": {**rules, "version": 2},
        "rules_unused": {**rules, "rules": []},
        "settings": {"global": {"default": {"is_per_channel": True}}, "module_name": [["conv1", None]],
                     "module_type": [["torch.nn.Conv2d", {"input_activation": plain, "weight": plain}]],
                     "operator": [["torch.ops.aten.add.Tensor", {"default": {"act_range": [-8, 7]}}]]},
        "settings_unknown": {"globl": None},
        "annotations": every,
        "annotations_ring": {"add": node({"relu": shared("add")}, shared("relu", "add"))},
        "annotations_derived_ring": {"conv2d": node({"x": derived(conv), "conv1_weight": derived(x)})},
        "annotations_self": {"relu": node({}, shared("relu"))},
        "annotations_no_edge": {"sigmoid": node({"x": plain})},
        "annotations_no_node": {"lost": node({}, plain)},
    }
    for name, value in cases.items():
        put("quantizer", name, json.dumps(value, indent=1).encode())
    put("quantizer", "not_json", b"{")


write_onnx()
write_safetensors()
write_npz()
write_models()
write_operators()
write_runs()
write_pt2()
write_quantizers()

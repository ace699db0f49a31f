#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a PyTorch module as a model file of tare: traced by torch.fx, module paths and batch norms intact.

    python tare_export.py my_network.py:make_model -o model.safetensors --input 1x3x224x224

or, in a program:

    import tare_export
    tare_export.export(module, (images,), "model.safetensors")

One file that needs nothing but torch; its writer (Tensor, graph_header, write_model) needs the standard library only.
Modules of torch.nn become modules of the model, a module of one's own is traced through. The example inputs tell
shapes and are run once to check that the trace computes what the module computes.
"""
import argparse
import builtins
import contextlib
import copy
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import json
import math
import operator
import os
import re
import struct
import sys
import traceback
import types
import warnings

try:
    import torch
    from torch import fx, nn
except ImportError:  # the writer alone does without
    torch = None


class ExportError(Exception):
    """The module cannot be written as it is; the message says where and what helps."""


# --- files ---

ITEM_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


class Tensor:
    """A tensor as it lies in the file: little-endian, row-major."""

    def __init__(self, dtype, shape, data):
        count = 1
        for size in shape:
            count *= size
        if len(data) != count * ITEM_BYTES[dtype]:
            raise ValueError(f"{dtype} tensor of shape {list(shape)} holds {len(data)} bytes")
        self.dtype, self.shape, self.data = dtype, list(shape), data


def write_tensors(path, tensors, metadata=None):
    """Writes name -> Tensor to `path` as safetensors; the same input gives the same bytes."""
    # Wide items first: every tensor then starts at a multiple of its own item size.
    names = sorted(tensors, key=lambda name: (-ITEM_BYTES[tensors[name].dtype], name))
    header = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name in names:
        tensor = tensors[name]
        end = offset + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = f"{path}.tmp"  # renamed when all is written: nothing half-written is left
    try:
        with open(partial, "wb") as out:
            out.write(struct.pack("<Q", len(text)))
            out.write(text)
            for name in names:
                out.write(tensors[name].data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(partial)
        raise


def graph_header(modules, nodes, parameters, buffers, training=False):
    """The graph's JSON value with the fields that every model has."""
    return {"format": "tare-graph", "version": 1, "class_name": "GraphModule", "training": training,
            "modules": modules, "nodes": nodes, "parameters": parameters, "buffers": buffers,
            "codegen": "plain"}


def write_model(path, graph, tensors):
    """Writes `graph` and `tensors` (name -> Tensor) to `path` as a model."""
    write_tensors(path, tensors, {"tare.graph": json.dumps(graph)})


# --- modules ---

_CONV = "in_channels out_channels kernel_size stride padding dilation groups padding_mode"
_NORM = "num_features eps momentum affine track_running_stats"
_MAX_POOL = "kernel_size stride padding dilation ceil_mode"
_AVG_POOL = "kernel_size stride padding ceil_mode count_include_pad"
_CELL = "input_size hidden_size bias"
_RNN = "input_size hidden_size num_layers bias batch_first bidirectional"

# Class of torch.nn -> the constructor's values that the file keeps; D stands for 1, 2 and 3. `inplace` is added
# where a class has it.
_CLASSES = {
    "Linear": "in_features out_features",
    "ConvDd": _CONV,
    "ConvTransposeDd": _CONV + " output_padding",
    "BatchNormDd": _NORM, "InstanceNormDd": _NORM,
    "LayerNorm": "normalized_shape eps elementwise_affine",
    "RMSNorm": "normalized_shape eps elementwise_affine",
    "GroupNorm": "num_groups num_channels eps affine",
    "LocalResponseNorm": "size alpha beta k",
    "ReLU": "", "ReLU6": "", "Sigmoid": "", "Tanh": "", "Identity": "", "SiLU": "", "Mish": "", "SELU": "",
    "Hardswish": "", "Hardsigmoid": "", "LogSigmoid": "", "Softsign": "", "Tanhshrink": "",
    "LeakyReLU": "negative_slope", "ELU": "alpha", "CELU": "alpha", "GELU": "approximate",
    "Hardtanh": "min_val max_val", "PReLU": "num_parameters", "Softplus": "beta threshold",
    "Hardshrink": "lambd", "Softshrink": "lambd", "Threshold": "threshold value", "GLU": "dim",
    "Softmax": "dim", "LogSoftmax": "dim",
    "Dropout": "p", "DropoutDd": "p", "AlphaDropout": "p", "FeatureAlphaDropout": "p",
    "Flatten": "start_dim end_dim", "Unflatten": "dim unflattened_size",
    "MaxPoolDd": _MAX_POOL, "AvgPoolDd": _AVG_POOL,
    "AdaptiveAvgPoolDd": "output_size", "AdaptiveMaxPoolDd": "output_size",
    "ConstantPadDd": "padding value", "ZeroPadDd": "padding", "ReflectionPadDd": "padding",
    "ReplicationPadDd": "padding", "CircularPadDd": "padding",
    "PixelShuffle": "upscale_factor", "PixelUnshuffle": "downscale_factor", "ChannelShuffle": "groups",
    "Upsample": "size scale_factor mode align_corners",
    "UpsamplingNearest2d": "size scale_factor mode align_corners",
    "UpsamplingBilinear2d": "size scale_factor mode align_corners",
    "Embedding": "num_embeddings embedding_dim padding_idx",
    "EmbeddingBag": "num_embeddings embedding_dim mode include_last_offset",
    # A leaf only where it is asked for, as a custom module; else its operators are traced.
    "MultiheadAttention": "embed_dim num_heads kdim vdim add_zero_attn batch_first",
    "LSTM": _RNN, "GRU": _RNN, "LSTMCell": _CELL, "GRUCell": _CELL, "RNNCell": _CELL + " nonlinearity",
}
# What torch's class says by its name alone.
_BY_NAME = {"ReflectionPad": {"mode": "reflect"}, "ReplicationPad": {"mode": "replicate"},
            "CircularPad": {"mode": "circular"}}
# Values that a class may have, but that tare has no form for, unless they are these.
_REQUIRED = {"proj_size": 0, "return_indices": False, "divisor_override": None, "max_norm": None}


@functools.cache
def _config_names(kind):
    """The names that the file keeps for a class of torch.nn; None for any other class."""
    if kind is None or getattr(nn, kind.__name__, None) is not kind:
        return None
    return _CLASSES.get(kind.__name__, _CLASSES.get(re.sub(r"[123]d$", "Dd", kind.__name__)))


# What convert_to_reference_fx makes: layers whose weights are quantized, and fused ones around layers and activations.
_REFERENCE, _FUSED = "torch.ao.nn.quantized.reference", "torch.ao.nn.intrinsic"


def _ao_config(module):
    """(type, constructor's values) of a reference module or a fused one; None for any other."""
    kind = type(module)
    if kind.__module__.startswith(f"{_FUSED}.modules.") and isinstance(module, nn.Sequential):
        return f"{_FUSED}.{kind.__name__}", {}
    names = _config_names(getattr(nn, kind.__name__, None)) if kind.__module__.startswith(f"{_REFERENCE}.") else None
    if names is None or not hasattr(module, "weight_qscheme"):
        return None
    return f"{_REFERENCE}.{kind.__name__}", {name: getattr(module, name)
                                             for name in [*names.split(), "weight_dtype", "weight_qscheme"]}


def _ao_problem(path, module):
    """Why a module on its way through torch's quantization cannot be written as it is; None if it is none."""
    package = type(module).__module__
    if _is_observer(module) or package.startswith(("torch.ao.nn.qat", "torch.ao.nn.intrinsic.qat")):
        return (f"module '{path}' is a {type(module).__qualname__} of a prepared model, which torch trains and calibrates: "
                "convert it first, torch.ao.quantization.quantize_fx.convert_to_reference_fx(prepared.eval())")
    if package.startswith((f"{_REFERENCE.rpartition('.')[0]}.", f"{_FUSED}.quantized")) and _ao_config(module) is None:
        return (f"module '{path}' is a {package}.{type(module).__qualname__}, whose weights torch has packed: write what "
                "torch.ao.quantization.quantize_fx.convert_to_reference_fx(prepared) gives instead")
    return None


def _is_linear_in_disguise(module):
    return type(module).__name__ == "NonDynamicallyQuantizableLinear"


def _class_problem(path, module):
    """Why a called module cannot be written; None if it can."""
    kind = type(module)
    if isinstance(module, fx.GraphModule) or _ao_config(module) is not None:
        return None  # a leaf of a user's class, with a graph of its own, or what convert made
    if nn.utils.parametrize.is_parametrized(module):
        names = ", ".join(module.parametrizations)
        return (f"module '{path}' is parametrized ({names}): make its tensors plain first, "
                f"torch.nn.utils.parametrize.remove_parametrizations(module, name)")
    if not _is_linear_in_disguise(module) and _config_names(kind) is None:
        return f"module '{path}' is a {kind.__module__}.{kind.__qualname__}, for which tare has no class"
    for name, only in _REQUIRED.items():
        if getattr(module, name, only) != only:
            return f"module '{path}' ({kind.__name__}) has {name}={getattr(module, name)}, which tare does not know"
    return None


def _module(path, module, is_called):
    """What the file says about one module. A module that no node calls is a container, whatever its class."""
    record = {"path": path, "type": "torch.nn.Module", "training": module.training, "config": {}, "repr": ""}
    if not is_called:
        return record
    if isinstance(module, fx.GraphModule):
        record["type"] = "torch.fx.GraphModule"
        record["config"] = {"class_name": type(module).__name__}
        record["graph"] = {"nodes": [_node(n, {}) for n in module.graph.nodes], "codegen": "plain"}
        return record
    if _ao_config(module) is not None:
        record["type"], config = _ao_config(module)
        record["config"] = {name: _value(v) for name, v in config.items()}
        return record
    kind = nn.Linear if _is_linear_in_disguise(module) else type(module)
    names = _config_names(kind).split() + (["inplace"] if hasattr(module, "inplace") else [])
    record["type"] = f"torch.nn.{kind.__name__}"
    record["config"] = {name: _value(getattr(module, name)) for name in names}
    record["config"].update(_BY_NAME.get(kind.__name__[:-2], {}))
    record["repr"] = module.extra_repr()
    return record


# --- attention, which torch writes with more control flow than a trace can follow ---

def _split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def _kind_of(mask):
    """The dtype of a mask, known from the example if it is computed."""
    return mask.tracer.example_of(mask).dtype if isinstance(mask, fx.Proxy) else mask.dtype


def _rank_of(x):
    return x.tracer.example_of(x).dim() if isinstance(x, fx.Proxy) else x.dim()


def _additive(mask):
    """torch's masks of attention forbid where they are True; added ones hold minus infinity there."""
    if mask is None or _kind_of(mask) != torch.bool:
        return mask
    return torch.zeros(1).masked_fill(mask, -math.inf)


def _joint_mask(attention, attn_mask, key_padding_mask):
    attn_mask, padding = _additive(attn_mask), _additive(key_padding_mask)
    if attn_mask is not None and _rank_of(attn_mask) == 3:
        attn_mask = attn_mask.unflatten(0, (-1, attention.num_heads))
    if padding is None:
        return attn_mask
    padding = padding.unsqueeze(1).unsqueeze(2)
    return padding if attn_mask is None else attn_mask + padding


def _project_in(m, query, key, value):
    linear = nn.functional.linear
    if m.in_proj_weight is not None and query is key and key is value:
        return linear(query, m.in_proj_weight, m.in_proj_bias).chunk(3, -1)
    if m.in_proj_weight is not None:
        weights = m.in_proj_weight.chunk(3)
    else:
        weights = m.q_proj_weight, m.k_proj_weight, m.v_proj_weight
    biases = m.in_proj_bias.chunk(3) if m.in_proj_bias is not None else (None, None, None)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def _attention(m, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
               average_attn_weights=True, is_causal=False):
    """torch.nn.MultiheadAttention of batched inputs, without its shortcuts. is_causal is a hint beside a mask."""
    if m.bias_k is not None or m.add_zero_attn:
        raise ExportError("MultiheadAttention with add_bias_kv or add_zero_attn is not supported")
    if not m.batch_first:
        same = query is key and key is value
        query = query.transpose(0, 1)
        key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
    q, k, v = (_split_heads(x, m.num_heads) for x in _project_in(m, query, key, value))
    mask = _joint_mask(m, attn_mask, key_padding_mask)
    weights = None
    if need_weights:
        scores = q @ k.transpose(-2, -1) * m.head_dim ** -0.5
        weights = nn.functional.softmax(scores if mask is None else scores + mask, -1)
        mixed = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    y = m.out_proj(_merge_heads(mixed))
    return y if m.batch_first else y.transpose(0, 1), weights


def _feed_forward(m, x):
    return m.linear2(m.dropout(m.activation(m.linear1(x))))


def _encoder_layer(m, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
    """torch.nn.TransformerEncoderLayer, as in its paper's figure."""
    def attend(x):
        return m.dropout1(m.self_attn(x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask,
                                      need_weights=False)[0])

    if m.norm_first:
        x = src + attend(m.norm1(src))
        return x + m.dropout2(_feed_forward(m, m.norm2(x)))
    x = m.norm1(src + attend(src))
    return m.norm2(x + m.dropout2(_feed_forward(m, x)))


def _encoder(m, src, mask=None, src_key_padding_mask=None, is_causal=None):
    for layer in m.layers:
        src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
    return src if m.norm is None else m.norm(src)


def _decoder_layer(m, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                   memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
    def attend(x):
        return m.dropout1(m.self_attn(x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask,
                                      need_weights=False)[0])

    def look(x):
        return m.dropout2(m.multihead_attn(x, memory, memory, attn_mask=memory_mask,
                                           key_padding_mask=memory_key_padding_mask, need_weights=False)[0])

    def feed(x):
        return m.dropout3(_feed_forward(m, x))

    x = tgt
    for step, norm in ((attend, m.norm1), (look, m.norm2), (feed, m.norm3)):
        x = x + step(norm(x)) if m.norm_first else norm(x + step(x))
    return x


def _decoder(m, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
             memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
    for layer in m.layers:
        tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                    tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask)
    return tgt if m.norm is None else m.norm(tgt)


def _transformer(m, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                 tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                 memory_is_causal=False):
    memory = m.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
    return m.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                     tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask)


_FORWARDS = {"MultiheadAttention": _attention, "TransformerEncoderLayer": _encoder_layer,
             "TransformerEncoder": _encoder, "TransformerDecoderLayer": _decoder_layer,
             "TransformerDecoder": _decoder, "Transformer": _transformer}
# Of torch.nn, but made of other modules: traced through.
_TRACED_THROUGH = {"Sequential", *_FORWARDS}

# --- tracing ---

_UNKNOWN = object()
# Functions that make tensors from numbers do not see a traced number by themselves.
_FACTORIES = ("arange", "zeros", "ones", "full", "empty", "eye", "linspace", "tensor")
# What a model fixes: the rank and the dtype of its values.
_FACTS = ("ndim", "dtype", "device", "layout", "is_cuda", "is_nested", "is_quantized", "is_sparse")
# So do methods of a tensor that the trace does not see.
_SIZED = ("expand", "view", "reshape", "repeat", "narrow", "new_zeros", "new_ones", "new_full", "new_empty")
_NEW = ("new_zeros", "new_ones", "new_full", "new_empty")
_JOINS = ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack")  # functions of torch that take several tensors
_TRACERS_OWN = (os.sep + os.path.join("torch", "fx") + os.sep, os.path.abspath(__file__))


def _is_users(filename):
    return not any(part in filename for part in (os.sep + "torch" + os.sep, _TRACERS_OWN[1], "<"))


def _place(frames):
    """'FILE:LINE, in FUNCTION: CODE' of the innermost frame that is neither ours nor torch's."""
    frames = [f for f in frames if not any(part in f.filename for part in _TRACERS_OWN)]
    users = [f for f in frames if _is_users(f.filename)] or frames
    if not users:
        return "the module"
    f = users[-1]
    return f"{f.filename}:{f.lineno}, in {f.name}: {f.line}"


def _promise(call, value, expected, message):
    """Nodes that refuse to run where value is not what the graph was made for. call: (kind, target, args, kwargs)."""
    call("call_function", torch._assert, (call("call_function", operator.eq, (value, expected), {}), message), {})


def _promise_sizes(graph, examples):
    """Sizes that were taken as numbers come from those of the inputs, which are checked as the model runs."""
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    with graph.inserting_after(placeholders[-1]):
        anchor = graph.call_function(torch._assert, (True, ""))
    with graph.inserting_before(anchor):
        for node in placeholders:
            example = examples.get(node.target)
            for d in range(1, example.dim() if isinstance(example, torch.Tensor) else 0):
                size = graph.call_method("size", (node, d))
                _promise(graph.create_node, size, example.shape[d],
                         f"the model was exported for inputs {node.target} of shape [N, "
                         f"{', '.join(map(str, example.shape[1:]))}]")
    graph.erase_node(anchor)


def _places(x, index):
    """An index as one slice or integer for each dimension that it names; TypeError for other kinds."""
    index = index if isinstance(index, tuple) else (index,)
    at = next((i for i, v in enumerate(index) if v is Ellipsis), len(index))
    index = (*index[:at], *[slice(None)] * (x.dim() - len(index) + (at < len(index))), *index[at + 1:])
    if not all(isinstance(v, (int, slice)) and not isinstance(v, bool) for v in index):
        raise TypeError("values are assigned at slices, integers and masks only")
    return index


def _put(x, places, d, value):
    """A copy of x with value at the places of the dimensions from d on."""
    if places and places[0] == slice(None):
        return _put(x, places[1:], d + 1, value)
    if not places:
        if not isinstance(value, (fx.Proxy, torch.Tensor)):
            return torch.full_like(x, value)
        tracer = x.tracer
        same = tracer.shape_of(x) == tracer.shape_of(value)
        return value if same else value.expand(*(x.size(i) for i in range(x.dim())))
    place = places[0]
    if isinstance(place, int):
        return torch.select_scatter(x, _put(x.select(d, place), places[1:], d, value), d, place)
    part = _put(x[(slice(None),) * d + (place,)], places[1:], d + 1, value)
    return torch.slice_scatter(x, part, d, place.start, place.stop, 1 if place.step is None else place.step)


def _assigned(x, index, value):
    """What x is after x[index] = value, without a change of x."""
    if isinstance(index, (fx.Proxy, torch.Tensor)) and index.dtype == torch.bool:
        for _ in range(x.dim() - index.dim()):
            index = index.unsqueeze(-1)
        is_number = not isinstance(value, (fx.Proxy, torch.Tensor))
        if not is_number and value.dim() > 0:
            raise TypeError("a mask selects the places of several values")
        return x.masked_fill(index, value) if is_number else torch.where(index, value, x)
    return _put(x, _places(x, index), 0, value)


def _make_proxy_class():
    class Proxy(fx.Proxy):
        """A traced value that knows what it is for the example inputs."""

        def __getattr__(self, name):
            found = self.tracer.known_attribute(self, name)
            return super().__getattr__(name) if found is _UNKNOWN else found

        def __len__(self):
            value = self.tracer.examples.get(self.node)
            return len(value) if isinstance(value, (tuple, list)) else self.tracer.decide(self, len, "the length")

        def __index__(self):
            return self.tracer.decide(self, int, "the number")

        __int__ = __index__

        def __setitem__(self, index, value):
            """Later uses of this object see the new tensor. Views of it do not, which the check of the outputs finds; modules in
            train mode are not checked."""
            if self.tracer.root.training:
                raise TypeError("assignments to parts of tensors are traced in eval mode only")
            self.node = _assigned(self, index, value).node

        def __float__(self):
            return self.tracer.decide(self, float, "the number")

    return Proxy


# Methods in place that torch's backend configs name in patterns; others are traced as what they compute.
_PATTERNS_IN_PLACE = ("detach_", "hardsigmoid_", "relu_", "resize_", "sigmoid_", "squeeze_", "tanh_", "unsqueeze_")


def _is_in_place(kind, target, args):
    return (kind == "call_method" and re.fullmatch(r"[a-z]\w*[a-z0-9]_", target) is not None and hasattr(torch.Tensor, target)
            and args and isinstance(args[0], (fx.Proxy, torch.Tensor)))


def _out_of_place(target, args):
    """The call that gives what x.add_(y) leaves in x: kind, target, arguments."""
    if target in _PATTERNS_IN_PLACE:
        return "call_method", target, args
    likes = {"zero_": torch.zeros_like, "fill_": torch.full_like}
    if target in likes:
        return "call_function", likes[target], args
    return "call_method", target[:-1] if hasattr(torch.Tensor, target[:-1]) else target, args


def _plain_operator(kind, target, args):
    """x.__and__(y), which torch calls where x is no traced value, as x & y; x.where(mask, y) as torch.where(mask, x, y)."""
    if kind == "call_method" and target == "where" and len(args) == 3:
        return "call_function", torch.where, (args[1], args[0], args[2])
    if kind != "call_method" or not re.fullmatch(r"__\w+__", target) or not hasattr(operator, target.replace("__r", "__")):
        return kind, target, args
    if hasattr(operator, target):
        return "call_function", getattr(operator, target), args
    return "call_function", getattr(operator, target.replace("__r", "__")), args[::-1]


def _make_tracer_class():
    proxy_class = _make_proxy_class()

    class Tracer(fx.Tracer):
        """torch.fx's tracer with the leaves of torch.ao's, beside which every node's value for the example is kept."""

        proxy_buffer_attributes = True  # a slice of a buffer may depend on an input's size

        def __init__(self, examples, leaves, by_example):
            super().__init__()
            self.given, self.leaves, self.by_example = examples, leaves, by_example
            self.examples, self.notes, self.is_computing, self.has_taken_sizes = {}, {}, False, False
            self.leaf_inputs = {}  # path of a module kept whole -> what it was called with
            self.stand_ins = {}  # id of a tensor into which a traced value was written -> the tensor, what stands for it

        def is_leaf_module(self, m, path):
            if path in self.leaves or type(m).__name__ in self.leaves:
                return True
            package = type(m).__module__
            is_torchs = package.startswith(("torch.nn", "torch.ao.nn"))
            return is_torchs and type(m).__name__ not in _TRACED_THROUGH

        # torch.fx replaces Module.__call__ and __getattr__ while it traces; what runs on examples must not be traced.

        def getattr(self, attr, attr_val, parameter_proxy_cache):
            return attr_val if self.is_computing else super().getattr(attr, attr_val, parameter_proxy_cache)

        def call_module(self, m, forward, args, kwargs):
            if self.is_computing:
                return forward(*args, **kwargs)
            known = _FORWARDS.get(type(m).__name__)
            if known is not None and type(m).__module__.startswith("torch.nn"):
                forward = functools.partial(known, m)
            return super().call_module(m, forward, args, kwargs)

        def proxy(self, node):
            return proxy_class(node, self)

        def create_arg(self, a):
            if id(a) in self.stand_ins:
                return self.stand_ins[id(a)][1].node
            is_numpys = type(a).__module__ == "numpy" and getattr(a, "ndim", 1) == 0
            return super().create_arg(a.item() if is_numpys else a)  # torch.fx would print it as code that names numpy

        def create_proxy(self, kind, target, args, kwargs, *rest, **more):
            known = self.known_call(kind, target, args, kwargs)
            if known is not _UNKNOWN:
                return known
            if target is math.prod:
                return functools.reduce(operator.mul, args[0], *args[1:])
            kind, target, args = _plain_operator(kind, target, args)
            if kind == "call_function" and target in [getattr(torch, name) for name in _JOINS]:
                args = (self.items_of(args[0]), *args[1:])
            if target is operator.setitem:
                return operator.setitem(self.stand_in(args[0]), *args[1:])
            if _is_in_place(kind, target, args):
                return self.changed(target, (self.stand_in(args[0]), *args[1:]), kwargs)
            return self.record(kind, target, args, kwargs, *rest, **more)

        def stand_in(self, x):
            """A traced value for a tensor that the code made of numbers, from where it writes a traced value into it."""
            if isinstance(x, fx.Proxy):
                return x
            if id(x) not in self.stand_ins:
                value = x.detach().clone()
                node = super().create_arg(value)
                self.examples[node] = value
                self.stand_ins[id(x)] = x, self.proxy(node)
            return self.stand_ins[id(x)][1]

        def known_stand_in(self, a):
            return self.stand_ins[id(a)][1] if id(a) in self.stand_ins else a

        def changed(self, target, args, kwargs):
            """x after x.add_(y): later uses of this object see it. Views of it do not, which the check of the outputs finds."""
            x = args[0]
            dtype = self.example_of(x).dtype
            if target == "copy_":
                made = self.record("call_function", torch.zeros_like, (x,), {}) + args[1]
            else:
                made = self.record(*_out_of_place(target, args), kwargs)
            if self.example_of(made).dtype != dtype:
                made = made.to(dtype)
            if isinstance(x, fx.proxy.Attribute):  # of an object that is no name in the code
                return made
            x.node = made.node
            return x

        def record(self, kind, target, args, kwargs, *rest, **more):
            made = super().create_proxy(kind, target, args, kwargs, *rest, **more)
            self.is_computing = True
            try:
                self.examples[made.node] = self.compute(kind, target, args, kwargs)
            finally:
                self.is_computing = False
            return made

        # The value for the example inputs.

        def example_of(self, proxy):
            return self.examples[proxy.node]

        def compute(self, kind, target, args, kwargs):
            if kind == "placeholder":
                return self.given.get(target, args[0] if args else None)
            args = fx.node.map_aggregate(args, self.example_or_itself)
            kwargs = fx.node.map_aggregate(kwargs, self.example_or_itself)
            with torch.no_grad(), _plain_factories():
                if kind == "call_function":
                    return target(*args, **kwargs)
                if kind == "call_method":
                    x = args[0].clone() if target in _PATTERNS_IN_PLACE else args[0]
                    return getattr(x, target)(*args[1:], **kwargs)
                if kind == "call_module":
                    self.leaf_inputs[target] = args, kwargs
                    return _run(self.root.get_submodule(target), args, kwargs)
            return functools.reduce(getattr, target.split("."), self.root) if kind == "get_attr" else None

        def items_of(self, v):
            """The items of a traced tuple (torch.cat(x.chunk(2))), which an observer cannot take as a whole."""
            example = self.examples.get(v.node) if isinstance(v, fx.Proxy) else None
            return [v[i] for i in range(len(example))] if isinstance(example, (tuple, list)) else v

        def shape_of(self, v):
            return (self.example_of(v) if isinstance(v, fx.Proxy) else v).shape

        def example_or_itself(self, a):
            return self.example_of(a) if isinstance(a, fx.Proxy) else a

        # What the example decides: ranks and dtypes always, sizes and branches if that is asked for. Sizes beyond the
        # first, which is the batch's, are numbers then.

        def known_attribute(self, proxy, name):
            if name in ("node", "tracer"):
                return _UNKNOWN
            value = self.examples.get(proxy.node)
            if not isinstance(value, torch.Tensor):
                return _UNKNOWN
            if name == "shape" and self.by_example:
                return tuple(self.size_of(proxy, value, d) for d in range(value.dim()))
            return getattr(value, name) if name in _FACTS else _UNKNOWN

        def size_of(self, proxy, value, d):
            if d % max(value.dim(), 1) > 0:
                self.has_taken_sizes = True
                return value.shape[d]
            made = super().create_proxy("call_method", "size", (proxy, 0), {})
            self.examples[made.node] = value.shape[0]
            return made

        def known_call(self, kind, target, args, kwargs):
            if kind != "call_method" or not isinstance(args[0], fx.Proxy):
                return _UNKNOWN
            value = self.example_of(args[0])
            if not isinstance(value, torch.Tensor):
                return _UNKNOWN
            if target in ("dim", "ndimension", "is_floating_point", "is_complex"):
                return getattr(value, target)()
            if not self.by_example:
                return _UNKNOWN
            if target in _NEW and not list(_proxies_in([args[1:], kwargs])):
                return getattr(value, target)(*args[1:], **kwargs)  # does not depend on the input
            if target == "size" and len(args) == 1:
                return self.known_attribute(args[0], "shape")
            return self.size_of(args[0], value, args[1]) if target == "size" else _UNKNOWN

        def decide(self, proxy, ask, what):
            if not self.by_example:
                raise fx.proxy.TraceError(f"Python wants {what} of a value that is only known when the model runs")
            value = self.example_of(proxy)
            answer, place = ask(value), _place(traceback.extract_stack())
            self.notes[f"{place}\n    {what} is taken as {answer}, as for the example inputs"] = True
            if isinstance(value, (bool, int)):
                _promise(self.create_proxy, proxy, value, f"{what} was taken as {answer} when the model was exported")
            return answer

        def to_bool(self, obj):
            return self.decide(obj, bool, "the branch")

        def iter(self, obj):
            value = self.examples.get(obj.node)
            if isinstance(value, (tuple, list)):
                return (obj[i] for i in range(len(value)))
            if self.by_example and isinstance(value, torch.Tensor):
                return (obj[i] for i in range(len(obj)))
            return super().iter(obj)

    return Tracer


def _is_same(a, b):
    """Equal, NaN to NaN."""
    return torch.equal(a, b) or (a.is_floating_point() and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()))


def _run(module, args, kwargs):
    """Runs a module without a trace left in its buffers. Outputs that depend on earlier runs are refused."""
    kept = [(name, b, b.clone()) for name, b in module.named_buffers()]
    kwargs, again = _own_caches(kwargs), _own_caches(kwargs)
    try:
        y = module(*_own_caches(args), **kwargs)
        changed = [name for name, b, before in kept if not b.is_meta and not _is_same(b, before)]
        if changed and not module.training and not all(map(_is_same, flatten(y), flatten(module(*_own_caches(args), **again)))):
            raise ExportError(f"the module changes its buffer '{changed[0]}' and gives other outputs when it runs again: a model has "
                              "no state; make the buffer an input and an output")
    finally:
        for _, buffer, before in kept:
            buffer.copy_(before)
    return y


_originals = {}  # (owner, name) -> function: what _tracing replaces


@contextlib.contextmanager
def _patched(functions):
    """owner.NAME = function for a while, for each (owner, NAME)."""
    before = {(owner, name): vars(owner).get(name) for owner, name in functions}
    for (owner, name), function in functions.items():
        setattr(owner, name, function)
    try:
        yield
    finally:
        for (owner, name), function in before.items():
            if function is None:  # inherited
                delattr(owner, name)
            else:
                setattr(owner, name, function)


@contextlib.contextmanager
def _without_shortcuts():
    """torch.nn's transformers then compute padded places too, as their description has it, instead of zeros."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


def _plain_factories():
    return _patched(dict(_originals))


def _proxies_in(v):
    if isinstance(v, fx.Proxy):
        yield v
    elif isinstance(v, (tuple, list)):
        for x in v:
            yield from _proxies_in(x)
    elif isinstance(v, dict):
        yield from _proxies_in(list(v.values()))


def _traced(owner, name, function):
    kind, target = ("call_function", function) if owner is torch else ("call_method", name)

    @functools.wraps(function)
    def make(*args, **kwargs):
        if owner is torch or not isinstance(args[0], fx.Proxy):
            for proxy in _proxies_in([args, kwargs]):
                return proxy.tracer.create_proxy(kind, target, args, kwargs)
        return function(*args, **kwargs)
    return make


@contextlib.contextmanager
def _tracing():
    """Factories are recorded, and functions that torch.fx.wrap would keep whole are traced through."""
    wrapped = getattr(fx._symbolic_trace, "_wrapped_fns_to_patch", {})
    kept = dict(wrapped)
    wrapped.clear()
    replaced = [(torch, name) for name in _FACTORIES] + [(torch.Tensor, name) for name in _SIZED]
    _originals.update({(owner, name): getattr(owner, name) for owner, name in replaced})
    try:
        with _patched({(owner, name): _traced(owner, name, f) for (owner, name), f in _originals.items()}):
            yield
    finally:
        _originals.clear()
        wrapped.update(kept)


class _StandIns(torch.overrides.TorchFunctionMode if torch is not None else object):
    """Functions of torch see what stands for a tensor into which a traced value was written."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if self.tracer.is_computing or not self.tracer.stand_ins:
            return function(*args, **(kwargs or {}))
        args = fx.node.map_aggregate(args, self.tracer.known_stand_in)
        kwargs = fx.node.map_aggregate(kwargs or {}, self.tracer.known_stand_in)
        if not list(_proxies_in([args, kwargs])):
            return function(*args, **kwargs)
        if getattr(function, "__name__", "") == "__get__":  # of a property, such as shape
            return getattr(args[0], function.__self__.__name__)
        return fx.Proxy.__torch_function__(function, types, args, kwargs)


def _trace(module, tracer):
    try:
        with _tracing(), _StandIns(tracer):
            return tracer.trace(module)
    except ExportError:
        raise
    except Exception as e:  # torch.fx lets through whatever the user's code raises on a traced value
        place = _place(traceback.extract_tb(e.__traceback__))
        message = f"{place}\n    cannot be traced: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        hint = ("--by-example (by_example=True) takes sizes and branches as they are for the example inputs"
                if not tracer.by_example else "write this part without depending on values, or move it out of the model")
        raise ExportError(f"{message}\n    {hint}") from e


# --- caches of keys and values ---

def _is_cache(v):
    """An object of transformers that keeps keys and values of earlier tokens."""
    return type(v).__module__ == "transformers.cache_utils"


def _cache_tensors(v, path=()):
    """(path of attributes and indices, tensor) for each tensor of a cache."""
    if isinstance(v, (torch.Tensor, fx.Proxy)):
        yield path, v
    elif isinstance(v, (tuple, list)):
        for i, x in enumerate(v):
            yield from _cache_tensors(x, (*path, i))
    elif _is_cache(v):
        for name, x in vars(v).items():
            yield from _cache_tensors(x, (*path, name))


def _words(path):
    """A path as names of inputs and outputs have it: layers[0].keys is 0, keys."""
    return [str(step) for step in path if step != "layers"]


def _cache_inputs(name, cache):
    return {"_".join([name, *_words(path)]): t for path, t in _cache_tensors(cache)}


def _filled(name, cache, tensors):
    """A copy of the cache with the tensors of these inputs."""
    made = copy.deepcopy(cache)
    for path, _ in _cache_tensors(cache):
        owner = made
        for step in path[:-1]:
            owner = owner[step] if isinstance(step, int) else getattr(owner, step)
        setattr(owner, path[-1], tensors["_".join([name, *_words(path)])])
    return made


def _plain_cache(cache):
    """As nested dicts."""
    made = {}
    for path, t in _cache_tensors(cache):
        *outer, last = _words(path)
        owner = made
        for word in outer:
            owner = owner.setdefault(word, {})
        owner[last] = t
    return made


def _own_caches(v):
    """Arguments with caches of their own: a module adds to those that it is given."""
    if isinstance(v, dict):
        return {name: _own_caches(x) for name, x in v.items()}
    return tuple(map(_own_caches, v)) if type(v) is tuple else copy.deepcopy(v) if _is_cache(v) else v


def _register_caches(arguments):
    """torch.export takes caches apart only when they are registered."""
    if any(map(_is_cache, arguments)):
        from transformers.integrations.executorch import register_dynamic_cache_export_support
        register_dynamic_cache_export_support()


def _bind(module, inputs, kwargs):
    """forward's signature, what it is called with, and of that the tensors by name, in order."""
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(*inputs, **kwargs)
    except TypeError as e:
        raise ExportError(f"the example inputs do not fit forward{signature}: {e}") from e
    given = {}
    for name, v in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            raise ExportError("forward takes *args: give it named arguments, or wrap the module in one that does")
        given.update(v if kind == inspect.Parameter.VAR_KEYWORD else {name: v})
    examples = {}
    for name, v in given.items():
        examples.update(_cache_inputs(name, v) if _is_cache(v) else {name: v} if _holds_tensor(v) else {})
    return signature, bound, examples


def _fields_of(v):
    """The fields of a dataclass's object, by name; nothing for anything else."""
    return {field.name: getattr(v, field.name) for field in dataclasses.fields(v)} if dataclasses.is_dataclass(type(v)) else {}


def _plain(v, with_caches=False):
    """An output as tuples, lists and dicts; what holds no tensors in them (None), and a cache that was not asked for, is left
    out of dicts."""
    if isinstance(v, dict):
        known = (fx.Proxy, torch.Tensor, dict, tuple, list, bool, int, float, str)
        if with_caches:
            v = {name: _plain_cache(x) if _is_cache(x) else x for name, x in v.items()}
        for name, x in v.items():
            if x is not None and not isinstance(x, known):
                warnings.warn(f"output '{name}' is a {type(x).__name__}, which no file holds: it is left out", stacklevel=2)
        return {name: _plain(x, with_caches) for name, x in v.items() if isinstance(x, known)}
    if isinstance(v, (tuple, list)):  # a named tuple is a tuple
        made = [_plain(x, with_caches) for x in v]
        return made if isinstance(v, list) else tuple(made)
    if with_caches and _is_cache(v):
        return _plain_cache(v)
    return _plain(fields, with_caches) if (fields := _fields_of(v)) else v


@contextlib.contextmanager
def _taking(module, signature, bound, names):
    """Inside, the module's forward takes the tensors of these names; all else is what `bound` says."""
    kind, forward = type(module), type(module).forward
    variadic = next((n for n, p in signature.parameters.items() if p.kind == inspect.Parameter.VAR_KEYWORD), None)

    given = {**bound.arguments, **bound.arguments.get(variadic, {})}
    caches = {name: v for name, v in given.items() if _is_cache(v)}

    def call(self, **tensors):
        for name, cache in caches.items():
            filled = _filled(name, cache, tensors)
            tensors = {n: v for n, v in tensors.items() if n not in _cache_inputs(name, cache)}
            tensors[name] = filled
        arguments = {**bound.arguments, **{n: v for n, v in tensors.items() if n in signature.parameters}}
        more = {n: v for n, v in tensors.items() if n not in signature.parameters}
        if variadic is not None:
            arguments[variadic] = {**arguments.get(variadic, {}), **more}
        whole = inspect.BoundArguments(signature, arguments)
        return _plain(forward(self, *whole.args, **whole.kwargs), bool(caches))

    # torch.fx reads the code of forward for its arguments, and its globals for functions to wrap.
    scope = {}
    exec(f"def make(call):\n def forward(self, {', '.join(names)}):\n"
         f"  return call(self, {', '.join(f'{n}={n}' for n in names)})\n return forward", scope)
    made = scope["make"](call)
    made = types.FunctionType(made.__code__, inspect.unwrap(forward).__globals__, "forward", None, made.__closure__)
    has_default = any(p.default is not inspect.Parameter.empty for p in signature.parameters.values())
    other = {"kind": inspect.Parameter.KEYWORD_ONLY, "default": None if has_default else inspect.Parameter.empty}
    known = [signature.parameters[n] if n in signature.parameters else inspect.Parameter(n, **other) for n in names]
    made.__annotations__ = {p.name: p.annotation for p in known if p.annotation is not inspect.Parameter.empty}
    made.__signature__ = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
         *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in known)])
    module.__class__ = type(kind.__name__, (kind,), {"forward": made, "__module__": kind.__module__,
                                                     "__qualname__": kind.__qualname__})
    try:
        yield
    finally:
        module.__class__ = kind


def _holds_tensor(v):
    if isinstance(v, (tuple, list)):
        return any(_holds_tensor(x) for x in v)
    return isinstance(v, torch.Tensor)


def input_names(module, inputs, kwargs=None):
    """The names of the model's inputs, in order."""
    return list(_bind(module, tuple(inputs), dict(kwargs or {}))[2])


def _made_plain(module):
    """The module; if weights are computed from others (parametrizations, weight norm), a copy that holds the results."""
    def computed(m):
        hooks = [h.name for h in m._forward_pre_hooks.values() if type(h).__name__ == "WeightNorm"]
        return hooks, list(m.parametrizations) if nn.utils.parametrize.is_parametrized(m) else []

    if module.training or not any(any(computed(m)) for m in module.modules()):
        return module
    module = copy.deepcopy(module)
    for m in list(module.modules()):
        normed, parametrized = computed(m)
        for name in normed:
            nn.utils.remove_weight_norm(m, name)
        if parametrized:
            # torch's own removal changes the class, which the copy shares with the module that it was made of.
            values = {name: nn.Parameter(getattr(m, name).detach()) for name in parametrized}
            m.__class__ = type(m).__bases__[0]
            del m.parametrizations
            for name, v in values.items():
                m.register_parameter(name, v)
    return module


def trace(module, inputs, kwargs=None, leaves=(), by_example=False, keep_defaults=False):
    """A torch.fx.GraphModule of `module` and the examples by placeholder. See export."""
    module = _made_plain(module)
    signature, bound, examples = _bind(module, tuple(inputs), dict(kwargs or {}))
    if isinstance(module, fx.GraphModule) and any(_ao_config(m) for m in module.modules()):
        return module, examples  # what convert made is a trace, in which shared modules keep the names of their calls
    attributes = set(vars(module))
    buffers = [(m, dict(m._buffers)) for m in module.modules()]
    tracer = _make_tracer_class()(examples, set(leaves), by_example)
    try:
        with contextlib.nullcontext() if keep_defaults else _taking(module, signature, bound, list(examples)):
            graph = _trace(module, tracer)
        traced = fx.GraphModule(module, graph, type(module).__name__)
    finally:
        for name in set(vars(module)) - attributes:  # constants that the trace has hung on the module
            delattr(module, name)
        for m, before in buffers:  # the trace of `self.count += 1` takes the buffer's place
            m._buffers.update({name: b for name, b in before.items() if isinstance(m._buffers.get(name), fx.Proxy)})
    if tracer.has_taken_sizes:
        _promise_sizes(graph, examples)
    _lift_layers(module, traced, tracer.examples)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    for path, (args, more) in tracer.leaf_inputs.items():
        leaf = module.get_submodule(path)
        if not type(leaf).__module__.startswith(("torch.nn", "torch.ao.nn")):
            traced.set_submodule(path, trace(leaf, args, more, (), by_example)[0])
    for note in tracer.notes:
        warnings.warn(note, stacklevel=2)
    return traced, examples


# --- modules that are more than torch.nn's ---

# What a layer's function takes behind its input.
_LAYER_ARGUMENTS = {
    "linear": ("weight", "bias"),
    "conv": ("weight", "bias", "stride", "padding", "dilation", "groups"),
    "batch_norm": ("running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"),
    "group_norm": ("num_groups", "weight", "bias", "eps"),
}
_LAYER_DEFAULTS = {"weight": None, "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1,
                   "training": False, "momentum": 0.1, "eps": 1e-5}
_LAYER_TENSORS = ("weight", "bias", "running_mean", "running_var")


@functools.cache
def _layer_functions():
    found = {getattr(nn.functional, f"conv{d}d"): "conv" for d in (1, 2, 3)}
    return found | {getattr(nn.functional, name): name for name in _LAYER_ARGUMENTS if name != "conv"}


def _layer_call(node):
    """(kind, argument name -> value) of a call of a layer's function; None for any other node."""
    kind = _layer_functions().get(node.target) if node.op == "call_function" else None
    if kind is None:
        return None
    names = _LAYER_ARGUMENTS[kind]
    defaults = {name: _LAYER_DEFAULTS[name] for name in names if name in _LAYER_DEFAULTS}
    return kind, {**defaults, **dict(zip(("input", *names), node.args)), **node.kwargs}


def _owner_path(values):
    """The path of the one module whose tensors these are, each under its own name; None if there is none."""
    paths = set()
    for name in _LAYER_TENSORS:
        v = values.get(name)
        if v is None:
            continue
        path, _, own = v.target.rpartition(".") if isinstance(v, fx.Node) and v.op == "get_attr" else (None, None, None)
        if own != name:
            return None
        paths.add(path)
    return paths.pop() if len(paths) == 1 else None


def _are_numbers(values):
    rest = [v for name, v in values.items() if name != "input" and name not in _LAYER_TENSORS]
    return not any(isinstance(x, fx.Node) for v in rest for x in (v if isinstance(v, (tuple, list)) else [v]))


def _numbers(v, count):
    return tuple(v) if isinstance(v, (tuple, list)) else (v,) * count


def _layer_of(kind, values, owner, rank):
    """A module of torch.nn that computes the call, without tensors; None if there is none."""
    weight = getattr(owner, "weight", None)
    bias = values["bias"] is not None
    if kind == "linear" and weight.dim() == 2:
        return nn.Linear(weight.shape[1], weight.shape[0], bias, device="meta")
    if kind == "conv" and weight.dim() in (3, 4, 5):
        count, groups = weight.dim() - 2, values["groups"]
        padding = values["padding"] if isinstance(values["padding"], str) else _numbers(values["padding"], count)
        return getattr(nn, f"Conv{count}d")(
            weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), _numbers(values["stride"], count),
            padding, _numbers(values["dilation"], count), groups, bias, device="meta")
    if kind == "batch_norm" and not values["training"] and values["running_mean"] is not None:
        made = getattr(nn, f"BatchNorm{max(rank - 2, 1)}d")
        momentum = getattr(owner, "momentum", values["momentum"])
        return made(len(owner.running_mean), values["eps"], momentum, values["weight"] is not None, device="meta")
    if kind == "layer_norm":
        return nn.LayerNorm(values["normalized_shape"], values["eps"], values["weight"] is not None, bias, device="meta")
    if kind == "group_norm" and values["weight"] is not None and bias:
        return nn.GroupNorm(values["num_groups"], len(weight), values["eps"], device="meta")
    return None


def _lift_layers(module, traced, examples):
    """Calls of a layer's function on the tensors of one module become calls of torch.nn's module at its path.

    So a subclass of BatchNorm2d that also activates, or a Conv2d that pads by itself, is what its arithmetic says, and
    passes see a convolution, a batch norm and an activation. A module that is called twice stays as it is.
    """
    calls = {}
    for node in traced.graph.nodes:
        kind, values = _layer_call(node) or (None, None)
        path = _owner_path(values) if kind is not None else None
        if path and _are_numbers(values):
            calls.setdefault(path, []).append((node, kind, values))
    called = {node.target for node in traced.graph.nodes if node.op == "call_module"}
    for path, found in calls.items():
        node, kind, values = found[0]
        owner, x = module.get_submodule(path), values["input"]
        layer = None
        if len(found) == 1 and path not in called and isinstance(x, fx.Node):
            layer = _layer_of(kind, values, owner, examples[x].dim())
        if layer is not None:
            # Its input is read again: what gave it may have become a module since.
            _call_layer(traced, path, layer, owner, node, _layer_call(node)[1]["input"])


def _call_layer(traced, path, layer, owner, node, x):
    """Puts the layer, with its owner's tensors, in the place of the function."""
    for name in [*layer._parameters, *layer._buffers]:
        if getattr(layer, name) is not None:
            setattr(layer, name, getattr(owner, name))
    for name, child in traced.get_submodule(path).named_children():
        layer.add_module(name, child)
    layer.train(owner.training)
    traced.set_submodule(path, layer)
    with traced.graph.inserting_before(node):
        call = traced.graph.call_module(path, (x,))
    call.meta = dict(node.meta)
    node.replace_all_uses_with(call)
    traced.graph.erase_node(node)


# --- graphs ---

_DTYPES = {"torch.float32": "F32", "torch.float16": "F16", "torch.int64": "I64", "torch.int32": "I32", "torch.int16": "I16",
           "torch.int8": "I8", "torch.uint8": "U8", "torch.bool": "BOOL", "torch.float64": "F64"}


def _value(v):
    """An argument of a node, or a constructor's value, as JSON."""
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if math.isfinite(v) else {"float": repr(v)}
    if isinstance(v, fx.Node):
        return {"node": v.name}
    if isinstance(v, tuple):
        return {"tuple": [_value(x) for x in v]}
    if isinstance(v, list):
        return [_value(x) for x in v]
    if isinstance(v, dict):
        return {"dict": [[_value(k), _value(x)] for k, x in v.items()]}
    if isinstance(v, slice):
        return {"slice": [_value(v.start), _value(v.stop), _value(v.step)]}
    if v is Ellipsis:
        return {"ellipsis": True}
    for kind, key in ((torch.dtype, "dtype"), (torch.qscheme, "qscheme"), (torch.device, "device"), (torch.layout, "layout"),
                      (torch.memory_format, "layout")):
        if isinstance(v, kind):
            return {key: str(v)}
    raise ExportError(f"a model file cannot hold a {type(v).__name__} as an argument")


def _class_name(kind):
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def _target(target):
    """A path, an attribute or a method as it is; a function by its public qualified name."""
    if isinstance(target, str):
        return target
    return fx.node._get_qualified_name(target).replace("_operator.", "operator.")


def _example(v):
    if isinstance(v, torch.Tensor):
        return {"shape": list(v.shape), "dtype": str(v.dtype)}
    return [_example(x) for x in v]


def _annotation(kind):
    """A type as torch prints it behind a parameter."""
    graph = fx.Graph()
    graph.output(graph.placeholder("x", kind))
    return re.search(r"\(self, x : (.*)\):", graph.python_code("self").src)[1]


def _node(node, examples):
    record = {"name": node.name, "op": node.op, "target": _target(node.target),
              "args": [_value(a) for a in node.args],
              "kwargs": {name: _value(v) for name, v in node.kwargs.items()}}
    if node.type is not None:
        record["type"] = _annotation(node.type)
    meta = {}
    if node.op == "placeholder" and node.target in examples:
        meta["example"] = _example(examples[node.target])
    stack = node.meta.get("nn_module_stack")
    if stack:
        meta["nn_module_stack"] = [[key, path, _class_name(kind)] for key, (path, kind) in stack.items()]
    if meta:
        record["meta"] = meta
    return record


def _named_tensors(traced):
    return [(name, t) for name, t in traced.named_parameters(remove_duplicate=False)], \
           [(name, t) for name, t in traced.named_buffers(remove_duplicate=False)]


def _nodes_of(traced, prefix=""):
    """(prefix of paths, node) of a module's graph and of those inside it."""
    for node in traced.graph.nodes:
        yield prefix, node
        inner = traced.get_submodule(node.target) if node.op == "call_module" else None
        if isinstance(inner, fx.GraphModule):
            yield from _nodes_of(inner, f"{prefix}{node.target}.")


def _problems(traced):
    """Everything about a traced module that a model file cannot hold, each as a line."""
    found = []
    for prefix, node in _nodes_of(traced):
        if node.op == "call_module":
            found.append(_class_problem(prefix + node.target, traced.get_submodule(prefix + node.target)))
        elif node.op == "call_function":
            package = getattr(node.target, "__module__", None) or "builtins"
            if package.split(".")[0] not in ("torch", "_operator", "math", "builtins"):
                found.append(f"node '{node.name}' calls {_target(node.target)}, which is not a function of torch")
    for name, t in sum(_named_tensors(traced), []):
        if str(t.dtype) not in _DTYPES or t.dtype in (torch.float64, torch.float16):
            found.append(f"tensor '{name}' is {t.dtype}: tare computes in float32, call module.float() first")
        elif t.is_sparse or t.is_meta:
            found.append(f"tensor '{name}' has no plain data ({t.layout}, {t.device})")
    return [problem for problem in dict.fromkeys(found) if problem]


def _bytes_of(t):
    t = t.detach().cpu().contiguous().reshape(-1)
    if sys.byteorder == "big":
        raise ExportError("this machine is big-endian, model files are little-endian")
    size = t.numel() * t.element_size()
    try:
        return t.numpy().tobytes()
    except RuntimeError:  # torch without numpy
        return bytes(t.view(torch.uint8).tolist()) if size else b""


def _tensor(t):
    return Tensor(_DTYPES[str(t.dtype)], t.shape, _bytes_of(t))


def _same_memory(t):
    """Tensors with this in common are one tensor under several names."""
    return t.data_ptr(), tuple(t.shape), t.stride(), t.dtype, t.numel() or id(t)


def _tensors_of(traced):
    """The tensors by name, and the names that share another name's tensor."""
    tensors, aliases, first_name = {}, {}, {}
    for name, t in sum(_named_tensors(traced), []):
        key = _same_memory(t)
        if key in first_name:
            aliases[name] = first_name[key]
        else:
            first_name[key] = name
            tensors[name] = _tensor(t)
    return tensors, aliases


def _is_part(traced, path, called):
    """Is it a module inside one of torch's own that is called as a whole?"""
    parent = path.rpartition(".")[0]
    return parent in called and not isinstance(traced.get_submodule(parent), fx.GraphModule)


def graph_of(traced, examples=None):
    """The graph JSON of a torch.fx.GraphModule; examples: placeholder name -> tensor."""
    called = {prefix + node.target for prefix, node in _nodes_of(traced) if node.op == "call_module"}
    modules = [_module(path, m, path in called or _is_part(traced, path, called))
               for path, m in traced.named_modules(remove_duplicate=False) if path]
    parameters, buffers = _named_tensors(traced)
    return graph_header(modules, [_node(n, examples or {}) for n in traced.graph.nodes],
                        [name for name, _ in parameters], [name for name, _ in buffers], traced.training)


# --- the whole ---

def flatten(v, with_caches=False):
    """The tensors inside an output, left to right."""
    if isinstance(v, torch.Tensor):
        return [v]
    if with_caches and _is_cache(v):
        return [t for _, t in _cache_tensors(v)]
    if isinstance(v, dict) or _fields_of(v):
        v = list((v if isinstance(v, dict) else _fields_of(v)).values())
    return [t for x in v for t in flatten(x, with_caches)] if isinstance(v, (tuple, list)) else []


def _check_same(expected, found):
    """A trace follows one way through the code: it must be the way that the module itself takes."""
    if len(expected) != len(found):
        raise ExportError(f"the module gives {len(expected)} tensors, its trace {len(found)}")
    for i, (a, b) in enumerate(zip(expected, found)):
        if a.shape != b.shape:
            raise ExportError(f"output {i} has shape {list(a.shape)}, in the trace {list(b.shape)}")
        if not a.is_floating_point():
            continue
        a, b = a.float(), b.float()
        most = a[a.isfinite()].abs().max() if a.isfinite().any() else torch.tensor(0.0)
        difference = (a - b)[a.isfinite()].abs().max() if a.isfinite().any() else torch.tensor(0.0)
        if not difference <= 1e-4 * most + 1e-6:
            raise ExportError(f"output {i} of the trace differs from the module's by {difference:g}: the module "
                              "depends on something that a trace cannot see (a random number, a global, its own state)")


def _trace_checked(module, inputs, kwargs, expected, options):
    """A trace that a file can hold, and that computes what the module does, with its examples."""
    traced, examples = trace(module, inputs, kwargs, **options)
    problems = _problems(traced)
    if problems:
        raise ExportError("\n".join(problems))
    if not module.training:
        try:
            with torch.no_grad():
                found = flatten(traced(*examples.values()))
        except Exception as e:  # what the user's code does to a tensor that the trace holds elsewhere
            raise ExportError(f"the trace does not run on the example inputs: {type(e).__name__}: {e}") from e
        _check_same(expected, found)
    return traced, examples


def _is_observer(module):
    return hasattr(module, "calculate_qparams")


def _converted(module):
    """A prepared model, of torch's FX mode or torchao's, as torch converts it by what its observers have seen; any other as it is.
    The second value: whether it is a program of aten operators."""
    if not isinstance(module, fx.GraphModule) or not any(_is_observer(m) for m in module.modules()):
        return module, False
    for path, m in module.named_modules():
        low = getattr(m, "min_val", None)
        if _is_observer(m) and isinstance(low, torch.Tensor) and (low.numel() == 0 or bool(torch.isinf(low).any())):
            raise ExportError(f"the observer '{path}' of the prepared model has seen no data: "
                              "calibrate or train the model first")
    own = copy.deepcopy(module)
    is_fx = not any(_is_observer(m) and type(m).__module__.startswith("torchao.") for m in module.modules())
    try:
        if is_fx:
            from torch.ao.quantization.quantize_fx import convert_to_reference_fx
            made = convert_to_reference_fx(own.eval())
        else:
            from torchao.quantization.pt2e import move_exported_model_to_eval
            from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e
            move_exported_model_to_eval(own)
            made = convert_pt2e(own)
    except Exception as e:  # torch lets through whatever a backend's code raises
        raise ExportError(f"torch cannot convert the prepared model: {type(e).__name__}: {e}") from e
    warnings.warn("the model is prepared: written as torch converts it, with what its observers have seen", stacklevel=3)
    return made, not is_fx


def _write_program(module, inputs, kwargs, path, reason):
    """What torch.export makes of the module, with an open batch where it can be."""
    path = os.path.splitext(path)[0] + ".pt2"
    signature, bound, examples = _bind(module, inputs, kwargs)
    shapes = {name: {0: torch.export.Dim.AUTO} if isinstance(v, torch.Tensor) else None
              for name, v in bound.arguments.items()}
    failed = None
    _register_caches([*inputs, *kwargs.values()])
    for dynamic_shapes in (shapes, None):
        try:
            program = torch.export.export(module, _own_caches(inputs), _own_caches(kwargs), dynamic_shapes=dynamic_shapes)
            torch.export.save(program, path)
        except Exception as e:  # torch.export lets through whatever the user's code raises
            failed = e
            continue
        if reason is not None:
            warnings.warn(f"{reason}\n    written as a program of torch.export instead, which a quantizer annotates: {path}",
                          stacklevel=3)
        return
    raise ExportError(f"{reason}\n    torch.export cannot write it either: {type(failed).__name__}: "
                      f"{str(failed).splitlines()[0] if str(failed) else ''}") from failed


def export(module, inputs, path, kwargs=None, leaves=(), by_example=None, keep_defaults=False, fallback=True):
    """Traces `module` as it stands (train or eval mode) and writes it to `path`; returns its outputs for the inputs.

    inputs: a tuple of example tensors, kwargs: more of them by name; arguments of forward that are not given keep
    their defaults, and arguments that are no tensors are fixed to what is given. leaves: paths or class names of
    modules that stay one module instead of being traced through. by_example: sizes (but for the first dimension of a
    tensor, the batch) and branches are decided by the example inputs, which the model checks when it runs; None: where
    it cannot be traced otherwise, with a warning that says so. keep_defaults: arguments that are not given stay inputs
    with a default, as torch.fx has it. fallback: what cannot be traced is written as a program of torch.export, to
    `path` with the ending .pt2, with a warning. Raises ExportError.
    """
    inputs = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    kwargs = dict(kwargs or {})
    module, is_program = _converted(module)
    try:
        with torch.no_grad(), _without_shortcuts():
            expected = flatten(_run(module, inputs, kwargs), any(map(_is_cache, [*inputs, *kwargs.values()])))
    except ExportError:
        raise
    except Exception as e:
        raise ExportError(f"the module does not run on the example inputs: {type(e).__name__}: {e}") from e
    if not expected:
        raise ExportError("the module returns no tensor, nor a tuple, list or dict of them")
    if is_program:
        _write_program(module, inputs, kwargs, path, None)
        return expected
    for name, m in module.named_modules():
        if _ao_problem(name, m) is not None:
            raise ExportError(_ao_problem(name, m))
    options = {"leaves": leaves, "keep_defaults": keep_defaults, "by_example": bool(by_example)}
    try:
        traced, examples = _trace_checked(module, inputs, kwargs, expected, options)
    except ExportError as e:
        traced, reason = None, e
    if traced is None and by_example is None:
        try:
            traced, examples = _trace_checked(module, inputs, kwargs, expected, {**options, "by_example": True})
        except ExportError as e:
            reason = e
    if traced is None and (module.training or not fallback):
        raise reason
    if traced is None:
        _write_program(module, inputs, kwargs, path, reason)
        return expected
    graph = graph_of(traced, examples)
    tensors, aliases = _tensors_of(traced)
    if aliases:
        graph["aliases"] = aliases
    write_model(path, graph, tensors)
    return expected


def output_names(outputs):
    """As `tare run --output` calls them."""
    return ["output"] if len(outputs) == 1 else [f"output.{i}" for i in range(len(outputs))]


def write_arrays(path, tensors):
    """Writes name -> torch tensor to `path` as data that tare reads (.safetensors)."""
    write_tensors(path, {name: _tensor(t) for name, t in tensors.items()})


# --- the command line ---

def load(spec):
    """The module that MODULE:NAME or FILE.py:NAME names: a torch.nn.Module, or what a function without arguments makes."""
    source, colon, name = spec.rpartition(":")
    if not colon:
        raise ExportError(f"'{spec}' is not of the form my_module:make_model")
    if source.endswith(".py"):
        found = importlib.util.spec_from_file_location(os.path.basename(source)[:-3], source)
        if not os.path.exists(source):
            raise ExportError(f"there is no file {source}")
        package = importlib.util.module_from_spec(found)
        sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
        found.loader.exec_module(package)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            package = importlib.import_module(source)
        except ModuleNotFoundError as e:
            raise ExportError(f"cannot import '{source}': {e}") from e
    made = getattr(package, name, None)
    if made is None:
        raise ExportError(f"{source} has no '{name}'")
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise ExportError(f"{spec} is a {type(made).__name__}, not a torch.nn.Module or a function that makes one")
        try:
            inspect.signature(made).bind()
        except TypeError as e:
            raise ExportError(f"{spec} cannot be called without arguments: {e}") from e
        except ValueError:
            pass  # a callable that does not tell its parameters
        made = made()
    if not isinstance(made, nn.Module):
        raise ExportError(f"{spec} gives a {type(made).__name__}, not a torch.nn.Module")
    return made


_INPUT = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>\d+(?:x\d+)*)(?::(?P<dtype>float32|int64|int32|bool)"
                    r"(?::(?P<below>\d+))?)?")


def make_input(spec, generator):
    """(name or None, tensor) of [NAME=]SHAPE[:DTYPE[:BELOW]]: standard normal, or integers in [0, BELOW)."""
    match = _INPUT.fullmatch(spec)
    if match is None:
        raise ExportError(f"--input '{spec}' is not of the form [NAME=]1x3x224x224[:int64[:BELOW]]")
    shape = [int(size) for size in match["shape"].split("x")]
    kind = match["dtype"] or "float32"
    if kind == "float32":
        return match["name"], torch.randn(shape, generator=generator)
    below = int(match["below"] or 2)
    return match["name"], torch.randint(0, below, shape, generator=generator).to(getattr(torch, kind))


def _parser():
    parser = argparse.ArgumentParser(
        description="Write a PyTorch module as a model file of tare.",
        epilog="example: python tare_export.py my_network.py:make_model -o model.safetensors --input 1x3x224x224")
    parser.add_argument("module", help="MODULE:NAME or FILE.py:NAME of a torch.nn.Module or a function that makes one")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="model file to write (.safetensors)")
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]SHAPE[:DTYPE[:BELOW]]",
                        help="an example input, in forward's order: 1x3x224x224, 1x128:int64:30522; with NAME= by keyword")
    parser.add_argument("--weights", metavar="FILE", help="load a state dict first (torch.save'd)")
    parser.add_argument("--train", action="store_true",
                        help="keep train mode, for quantization-aware training (default: eval mode)")
    parser.add_argument("--leaf", action="append", default=[], metavar="PATH|CLASS",
                        help="keep this module whole instead of tracing through it")
    parser.add_argument("--by-example", action=argparse.BooleanOptionalAction,
                        help="decide sizes (but the batch's) and branches by the example inputs, which the model checks "
                             "when it runs (default: where it cannot be traced otherwise)")
    parser.add_argument("--no-fallback", action="store_true",
                        help="fail where the module cannot be traced, instead of writing a program of torch.export (.pt2)")
    parser.add_argument("--save-inputs", metavar="FILE", help="write the example inputs here (.safetensors)")
    parser.add_argument("--save-outputs", metavar="FILE", help="write torch's outputs for them here (.safetensors)")
    return parser


def _run_command(options):
    if torch is None:
        raise ExportError("torch is not installed here")
    if not options.input:
        raise ExportError("forward needs example inputs: --input 1x3x224x224, one for each tensor")
    generator = torch.Generator().manual_seed(0)
    made = [make_input(spec, generator) for spec in options.input]
    module = load(options.module).train(options.train)
    if options.weights:
        try:
            module.load_state_dict(torch.load(options.weights, map_location="cpu", weights_only=True))
        except OSError:
            raise
        except Exception as e:  # torch has many kinds for a broken file
            raise ExportError(f"{options.weights} is no state dict of this module: {e}") from e
    inputs, kwargs = tuple(t for name, t in made if name is None), {name: t for name, t in made if name}
    outputs = export(module, inputs, options.output, kwargs, options.leaf, options.by_example,
                     fallback=not options.no_fallback)
    if options.save_inputs:
        write_arrays(options.save_inputs, _bind(module, inputs, kwargs)[2])
    if options.save_outputs:
        write_arrays(options.save_outputs, dict(zip(output_names(outputs), outputs)))


def main():
    warnings.formatwarning = lambda message, *_: f"tare_export: note: {message}\n"
    try:
        _run_command(_parser().parse_args())
    except ExportError as e:
        sys.exit(f"tare_export: {e}")
    except OSError as e:
        sys.exit(f"tare_export: {e.filename}: {e.strerror}" if e.filename else f"tare_export: {e}")


if __name__ == "__main__":
    main()

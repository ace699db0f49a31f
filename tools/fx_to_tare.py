# SPDX-License-Identifier: Apache-2.0
"""Turns a float torch module into a model file: traces it with torch.fx and writes graph and tensors.

    from fx_to_tare import export
    export(network, "network.safetensors")

Modules that quantization shall take as a whole (standalone or custom ones) are named as leaves; one of a
user's own class becomes a module with a graph of its own:

    export(network, "network.safetensors", leaves=["attention"])
"""
import math

import torch
from torch import fx, nn

from tare_file import Tensor, graph_header, write_model

_CONV = "in_channels out_channels kernel_size stride padding dilation groups padding_mode"
_CONV_TRANSPOSE = _CONV + " output_padding"
_NORM = "num_features eps momentum affine track_running_stats"
_MAX_POOL = "kernel_size stride padding dilation ceil_mode"
_RECURRENT = "input_size hidden_size num_layers bias batch_first bidirectional"
_CELL = "input_size hidden_size bias"
_AVG_POOL = "kernel_size stride padding ceil_mode count_include_pad"

# Module class -> the constructor's values that the file keeps. `inplace` is added where a class has it.
_CONFIG = {
    nn.Linear: "in_features out_features",
    nn.Conv1d: _CONV, nn.Conv2d: _CONV, nn.Conv3d: _CONV,
    nn.ConvTranspose1d: _CONV_TRANSPOSE, nn.ConvTranspose2d: _CONV_TRANSPOSE, nn.ConvTranspose3d: _CONV_TRANSPOSE,
    nn.BatchNorm1d: _NORM, nn.BatchNorm2d: _NORM, nn.BatchNorm3d: _NORM,
    nn.InstanceNorm1d: _NORM, nn.InstanceNorm2d: _NORM, nn.InstanceNorm3d: _NORM,
    nn.LayerNorm: "normalized_shape eps elementwise_affine",
    nn.GroupNorm: "num_groups num_channels eps affine",
    nn.ReLU: "", nn.ReLU6: "", nn.Sigmoid: "", nn.Tanh: "", nn.Identity: "", nn.SiLU: "",
    nn.Hardswish: "", nn.Hardsigmoid: "",
    nn.LeakyReLU: "negative_slope", nn.ELU: "alpha", nn.GELU: "approximate", nn.Hardtanh: "min_val max_val",
    nn.PReLU: "num_parameters", nn.Mish: "", nn.Softplus: "beta threshold", nn.LogSoftmax: "dim",
    nn.Softmax: "dim", nn.Dropout: "p", nn.Flatten: "start_dim end_dim",
    nn.MaxPool1d: _MAX_POOL, nn.MaxPool2d: _MAX_POOL, nn.MaxPool3d: _MAX_POOL,
    nn.AvgPool1d: _AVG_POOL, nn.AvgPool2d: _AVG_POOL, nn.AvgPool3d: _AVG_POOL,
    nn.AdaptiveAvgPool1d: "output_size", nn.AdaptiveAvgPool2d: "output_size", nn.AdaptiveAvgPool3d: "output_size",
    nn.PixelShuffle: "upscale_factor", nn.PixelUnshuffle: "downscale_factor", nn.ChannelShuffle: "groups",
    nn.Upsample: "size scale_factor mode align_corners",
    nn.Embedding: "num_embeddings embedding_dim padding_idx",
    nn.EmbeddingBag: "num_embeddings embedding_dim mode include_last_offset",
    nn.LSTM: _RECURRENT, nn.GRU: _RECURRENT,
    nn.LSTMCell: _CELL, nn.GRUCell: _CELL, nn.RNNCell: _CELL + " nonlinearity",
}
_DTYPES = {torch.float32: "F32", torch.int64: "I64"}


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
    if isinstance(v, torch.dtype):
        return {"dtype": str(v)}
    raise TypeError(f"a model file cannot hold a {type(v).__name__} argument")


class _Tracer(fx.Tracer):
    """Goes through every module of a user's own class but those that are named as leaves."""

    def __init__(self, leaves):
        super().__init__()
        self.leaves = leaves

    def is_leaf_module(self, m, module_qualified_name):
        return module_qualified_name in self.leaves or super().is_leaf_module(m, module_qualified_name)


def _trace(module, leaves):
    """A torch.fx.GraphModule in which the leaves of users' classes are such modules too."""
    inner = {path: _trace(module.get_submodule(path), []) for path in leaves
             if type(module.get_submodule(path)) not in _CONFIG}
    traced = fx.GraphModule(module, _Tracer(leaves).trace(module), type(module).__name__)
    for path, leaf in inner.items():
        traced.set_submodule(path, leaf)
    return traced


def _module(path, module, is_called):
    """What the file says about one module. A module that no node calls is a container, whatever its class."""
    record = {"path": path, "type": "torch.nn.Module", "training": module.training, "config": {}, "repr": ""}
    if not is_called:
        return record
    kind = type(module)
    if isinstance(module, fx.GraphModule):
        record["type"] = "torch.fx.GraphModule"
        record["config"] = {"class_name": kind.__name__}
        record["graph"] = {"nodes": [_node(n) for n in module.graph.nodes], "codegen": "plain"}
        return record
    if kind not in _CONFIG:
        raise TypeError(f"module '{path}' is a {kind.__name__}, which this exporter does not know")
    names = _CONFIG[kind].split() + (["inplace"] if hasattr(module, "inplace") else [])
    record["type"] = f"torch.nn.{kind.__name__}"
    record["config"] = {name: _value(getattr(module, name)) for name in names}
    record["repr"] = module.extra_repr()
    return record


def _class_name(kind):
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def _target(target):
    """A path, an attribute or a method as it is; a function by its public qualified name."""
    if isinstance(target, str):
        return target
    return torch.fx.node._get_qualified_name(target).replace("_operator.", "operator.")


def _node(node):
    record = {"name": node.name, "op": node.op, "target": _target(node.target),
              "args": [_value(a) for a in node.args],
              "kwargs": {name: _value(v) for name, v in node.kwargs.items()}}
    stack = node.meta.get("nn_module_stack")
    if stack:
        frames = [[key, path, _class_name(kind)] for key, (path, kind) in stack.items()]
        record["meta"] = {"nn_module_stack": frames}
    return record


def _called(traced, prefix):
    """The paths of the modules that nodes call, in modules with a graph of their own as well."""
    for node in traced.graph.nodes:
        if node.op == "call_module":
            yield prefix + node.target
            inner = traced.get_submodule(node.target)
            if isinstance(inner, fx.GraphModule):
                yield from _called(inner, f"{prefix}{node.target}.")


def graph_of(traced):
    """The graph JSON of a torch.fx.GraphModule."""
    called = set(_called(traced, ""))
    modules = [_module(path, m, path in called)
               for path, m in traced.named_modules(remove_duplicate=False) if path]
    return graph_header(modules, [_node(n) for n in traced.graph.nodes],
                        [name for name, _ in traced.named_parameters(remove_duplicate=False)],
                        [name for name, _ in traced.named_buffers(remove_duplicate=False)],
                        traced.training)


def _tensor(name, t):
    if t.dtype not in _DTYPES:
        raise TypeError(f"tensor '{name}' is {t.dtype}; a float model holds float32 and int64")
    return Tensor(_DTYPES[t.dtype], t.shape, t.detach().cpu().contiguous().numpy().tobytes())


def _tensors_of(traced):
    """The tensors by name, and the names that share another name's tensor."""
    named = list(traced.named_parameters(remove_duplicate=False)) + list(traced.named_buffers(remove_duplicate=False))
    tensors, aliases, first_name = {}, {}, {}
    for name, t in named:
        if id(t) in first_name:
            aliases[name] = first_name[id(t)]
        else:
            first_name[id(t)] = name
            tensors[name] = _tensor(name, t)
    return tensors, aliases


def export(module, path, leaves=()):
    """Traces `module` as it stands (train or eval mode) and writes it to `path`. leaves: paths of modules
    that become one call each."""
    traced = _trace(module, list(leaves))
    graph = graph_of(traced)
    tensors, aliases = _tensors_of(traced)
    if aliases:
        graph["aliases"] = aliases
    write_model(path, graph, tensors)

# SPDX-License-Identifier: Apache-2.0
"""A model as a torch.fx.GraphModule, and back: what is trained by any loop of torch.

Both ways go through a model file, whose names of tensors are those of torch's state_dict.
"""
from __future__ import annotations

import builtins
import importlib
import inspect
import json
import keyword
import math
import os
import struct
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import fx, nn  # type: ignore[import-not-found,unused-ignore]
from torch.utils import _pytree  # type: ignore[import-not-found,unused-ignore]

from . import _export
from ._errors import UnsupportedError
from ._library import c, encode, lib
from .model import Model, load
from .torch_fake_quantize import FakeQuantize, RangeObserver, make_observer

__all__ = ["build", "is_built", "read_back"]

_META = "tare"  # of the GraphModule: what read_back needs besides the tensors
_KINDS = (torch.dtype, torch.qscheme, torch.layout, torch.memory_format, type(torch.Tensor), type(torch.FloatTensor))
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
           "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}


def _read(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph, and the tensors by name, of a model file."""
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    graph, tensors = json.loads(header.pop("__metadata__")["tare.graph"]), {}
    for name, row in header.items():
        dtype, (begin, end) = _DTYPES[row["dtype"]], row["data_offsets"]
        tensors[name] = torch.frombuffer(bytearray(data[8 + length + begin:8 + length + end]), dtype=dtype) \
            .reshape(row["shape"]) if end > begin else torch.empty(row["shape"], dtype=dtype)
    for name, first in graph.get("aliases", {}).items():
        tensors[name] = tensors[first]
    return graph, tensors


# --- names ---
# A file may come from anybody, and torch turns graphs into Python: names become nothing but what tare knows.

def _refuse(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"'{name}' is no {what} that a model may have in torch")


def _function(name: str) -> Any:
    """An operator that tare knows: "torch.nn.functional.relu", "operator.add", "getattr"."""
    if not lib.operator_is_known(c.TARE_NODE_CALL_FUNCTION, encode(name)):
        raise _refuse(name, "function")
    return _named(name)


def _type(name: str, kinds: tuple[type, ...]) -> Any:
    """A value of one of torch's kinds, or a type of numbers."""
    found = _named(name) if name.startswith("torch.") else getattr(builtins, name.removeprefix("builtins."), None)
    if not isinstance(found, kinds) and found not in (bool, int, float, complex):
        raise _refuse(name, "type")
    return found


def _class(name: str) -> Any:
    """A module class of torch's."""
    found = _named(name) if name.startswith(("torch.nn.", "torch.ao.")) else None
    if not inspect.isclass(found) or not issubclass(found, nn.Module):
        raise _refuse(name, "module class")
    return found


def _identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise _refuse(name, "name")
    return name


def _target(row: Mapping[str, Any]) -> Any:
    """What a node calls or reads. Its argument is what a placeholder names."""
    op, name = row["op"], str(row["target"])
    if op == "call_function":
        return _function(name)
    if op == "call_method" and not lib.operator_is_known(c.TARE_NODE_CALL_METHOD, encode(name)):
        raise _refuse(name, "method")
    if op == "placeholder":
        _identifier(name.lstrip("*"))
    elif any(character in name for character in "\"\\\n\r"):  # of a path; torch quotes what is no identifier
        raise _refuse(name, "path")
    return name


def _named(name: str) -> Any:
    """The object of a qualified name: "torch.nn.functional.relu", "operator.add", "getattr"."""
    parts = name.split(".")
    if len(parts) == 1 and hasattr(builtins, name):
        return getattr(builtins, name)
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        try:
            for part in parts[count:]:
                found = getattr(found, part)
            return found
        except AttributeError:
            continue
    raise UnsupportedError(f"there is no '{name}' in this installation of torch")


# --- values ---

def _decode(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    """An argument from its form in a file."""
    if isinstance(value, list):
        return [_decode(item, nodes) for item in value]
    if not isinstance(value, dict):
        return value
    (key, inner), *others = value.items()
    if key == "tuple":
        return tuple(_decode(item, nodes) for item in inner)
    if key == "dict":
        return {_decode(k, nodes): _decode(v, nodes) for k, v in inner}
    if key == "slice":
        return slice(*[_decode(item, nodes) for item in inner])
    if key == "scalar":
        return torch.tensor(_decode(inner, nodes), dtype=_type(others[0][1], (torch.dtype,)) if others else None)
    simple: dict[str, Callable[[Any], Any]] = {
        "node": lambda name: nodes[name], "float": float, "ellipsis": lambda _: Ellipsis, "device": torch.device}
    if key in simple:
        return simple[key](inner)
    if key in ("dtype", "qscheme", "layout", "type"):
        return _type(inner, _KINDS)
    raise UnsupportedError(f"an argument of the kind '{key}' has no form in torch")


# --- modules ---

class _Guards(nn.Module):  # type: ignore[misc,unused-ignore]
    """Stands where a program of torch.export checks its inputs."""

    def forward(self, *_: Any) -> None:
        """Accepts all."""


def construct(class_name: str, config: Mapping[str, Any], tensors: Mapping[str, Any],
              children: Mapping[str, nn.Module]) -> nn.Module:
    """A torch module of a class, from constructor values, tensors and children as a model file has them."""
    kind = _class(class_name)
    known = inspect.signature(kind.__init__).parameters
    values = {key: value for key, value in config.items() if key in known}
    if "bias" in known and "bias" not in values:
        values["bias"] = "bias" in tensors or "bias_ih_l0" in tensors or "in_proj_bias" in tensors
    if "qconfig" in known:  # a layer that rounds its weight
        from torch.ao.quantization import QConfig  # type: ignore[import-not-found,unused-ignore]
        weight = children["weight_fake_quant"]
        values["qconfig"] = QConfig(activation=nn.Identity, weight=lambda *_, **__: weight)
        if "bn" in children and "eps" in known:
            values.update(eps=children["bn"].eps, momentum=children["bn"].momentum)
    if children and "qconfig" not in known and all(name.isdigit() for name in children):
        made = kind(*children.values())
    elif issubclass(kind, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)) and "bias" in known:
        made = kind(**{key: value for key, value in values.items() if key != "bias"})
    else:
        made = kind(**values)
    for name, child in children.items():
        setattr(made, name, child)
    for name, tensor in tensors.items():
        put(made, name, tensor)
    return made


def put(module: nn.Module, name: str, tensor: Any) -> None:
    """Sets a parameter or buffer of the module to a copy; a new name becomes a buffer."""
    if isinstance(module._parameters.get(name), nn.Parameter):
        module._parameters[name] = nn.Parameter(tensor.clone(), tensor.is_floating_point())
    elif name in module._buffers or not hasattr(module, name):
        module.register_buffer(name, tensor.clone())
    elif module._parameters.get(name, 0) is None:
        module.register_parameter(name, nn.Parameter(tensor.clone()))


class _Builder:
    """Makes the modules of a file by path, each once."""

    def __init__(self, model: Model, graph: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        self.live = dict(model.named_modules())
        self.records = {row["path"]: row for row in graph["modules"]}
        self.parameters = set(graph.get("parameters", ()))
        self.tensors = tensors
        self.made: dict[str, nn.Module] = {}
        self.children: dict[str, list[str]] = {}
        for path in self.records:
            self.children.setdefault(path.rpartition(".")[0], []).append(path)
        self.state: dict[str, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            path, _, leaf = name.rpartition(".")
            self.state.setdefault(path, {})[leaf] = tensor

    def make(self, path: str) -> nn.Module:
        """The module at a path, with all below it."""
        row = self.records[path]
        if "same_as" in row:
            return self.make(row["same_as"])
        if path not in self.made:
            children = {child.rpartition(".")[2]: self.make(child) for child in self.children.get(path, ())}
            self.made[path] = self._new(path, row, children)
            self.made[path].training = bool(row["training"])
        return self.made[path]

    def _new(self, path: str, row: Mapping[str, Any], children: dict[str, nn.Module]) -> nn.Module:
        state = self.state.get(path, {})
        if row["type"] in ("torch.nn.Module", "torch.nn.Sequential"):
            return self._container(children, path, state)
        if row["type"] == "torch.export.GuardsFn":
            return _Guards()
        if "graph" in row:
            return _graph_module(self._container(children, path, state), row["graph"], row["config"].get("class_name"))
        live = self.live.get(path)
        watching = make_observer(path, live, state, children) if live is not None else None
        if watching is not None:
            return watching
        config = {key: _decode(value, {}) for key, value in row["config"].items()}
        return construct(row["type"], config, state, children)

    def _container(self, children: Mapping[str, nn.Module], path: str, state: Mapping[str, Any]) -> nn.Module:
        made = nn.Module()
        for name, child in children.items():
            made.add_module(name, child)
        for name, tensor in state.items():
            full = f"{path}.{name}" if path else name
            if full in self.parameters:
                made.register_parameter(name, nn.Parameter(tensor.clone(), tensor.is_floating_point()))
            else:
                made.register_buffer(name, tensor.clone())
        return made

    def root(self) -> nn.Module:
        """Everything."""
        children = {path: self.make(path) for path in self.children.get("", ())}
        return self._container(children, "", self.state.get("", {}))


# --- graphs ---

def _graph(given: Mapping[str, Any]) -> fx.Graph:
    made: Any = fx.Graph()
    nodes: dict[str, Any] = {}
    for row in given["nodes"]:
        args = tuple(_decode(item, nodes) for item in row["args"])
        kwargs = {_identifier(key): _decode(value, nodes) for key, value in row["kwargs"].items()}
        if row["op"] == "output":
            nodes[row["name"]] = made.output(args[0])
            continue
        if row["op"] == "call_function" and row["target"] == "getattr" and str(args[1]).startswith("_"):
            raise _refuse(args[1], "attribute")
        nodes[row["name"]] = made.create_node(row["op"], _target(row), args, kwargs, name=row["name"])
    codegen = given.get("codegen")
    if isinstance(codegen, dict) and "pytree" in codegen:
        signature = codegen["pytree"]["export"]["module_call_graph"][0]["signature"]
        made.set_codegen(fx.graph._PyTreeCodeGen(fx.graph._PyTreeInfo(
            [_identifier(name) for name in signature["forward_arg_names"]], _pytree.treespec_loads(signature["in_spec"]),
            _pytree.treespec_loads(signature["out_spec"]))))
    return made


class _Program(fx.GraphModule):  # type: ignore[misc,unused-ignore]
    """A program of torch.export: its calls of batch norm and dropout say themselves whether they train."""

    def train(self, mode: bool = True) -> _Program:
        """Sets the mode of those calls, and of the modules."""
        super().train(mode)
        positions = {torch.ops.aten.batch_norm.default: 5, torch.ops.aten.dropout.default: 2}
        for node in self.graph.nodes:
            at = positions.get(node.target) if node.op == "call_function" else None
            if at is not None and len(node.args) > at:
                node.update_arg(at, bool(mode))
        self.recompile()
        return self


def _graph_module(root: nn.Module, given: Mapping[str, Any], name: str | None, is_program: bool = False) -> fx.GraphModule:
    return (_Program if is_program else fx.GraphModule)(root, _graph(given), name or "GraphModule")


def _fit(module: fx.GraphModule) -> None:
    """Makes room for the channels of weights now: later, distributed training could not follow."""
    for layer in module.modules():
        weight = getattr(layer, "weight_fake_quant", None)
        if isinstance(weight, FakeQuantize):
            weight.fit(layer.weight)
    for node in module.graph.nodes:
        source = node.args[0] if node.op == "call_module" and node.args else None
        if isinstance(source, fx.Node) and source.op == "get_attr":
            called = module.get_submodule(node.target)
            if isinstance(called, (FakeQuantize, RangeObserver)):
                called.fit(_tensor_at(module, source.target))


def _tensor_at(module: nn.Module, name: str) -> Any:
    path, _, leaf = name.rpartition(".")
    return getattr(module.get_submodule(path), leaf)


def _find(module: nn.Module, name: str) -> Any:
    try:
        return _tensor_at(module, name)
    except AttributeError:
        return None


def build(model: Model) -> fx.GraphModule:
    """The model as a module of torch; see Model.to_torch."""
    if model.stage not in ("float", "fused", "prepared"):
        raise UnsupportedError(f"expected a float or prepared model, found a {model.stage} one", "",
                               "integers do not train: take the prepared model")
    graph, tensors = _read(model.__reduce__()[1][0])
    is_program = isinstance(graph.get("codegen"), dict)
    made = _graph_module(_Builder(model, graph, tensors).root(), graph, graph.get("class_name"), is_program)
    made.training = bool(graph["training"])
    for name, first in graph.get("aliases", {}).items():
        path, _, leaf = name.rpartition(".")
        setattr(made.get_submodule(path), leaf, _tensor_at(made, first))
    shapes = {name: list(t.shape) for name, t in tensors.items() if name not in graph.get("aliases", {})}
    spare = {name: tensors[name] for name in shapes if _find(made, name) is None}
    _fit(made)
    made.meta[_META] = {"graph": graph, "shapes": shapes, "spare": spare}
    return made


# --- back ---

def _unwrapped(module: Any) -> Any:
    """What torch.compile and DistributedDataParallel wrap."""
    while not (isinstance(module, fx.GraphModule) and _META in module.meta):
        inner = getattr(module, "_orig_mod", None)
        if inner is None:
            inner = getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            return None
        module = inner
    return module


def is_built(module: Any) -> bool:
    """Does the module come from to_torch?"""
    return _unwrapped(module) is not None


def _empty_names(module: nn.Module) -> set[str]:
    """Tensors of observers whose range is still empty."""
    found: set[str] = set()
    for path, layer in module.named_modules(remove_duplicate=False):
        if not isinstance(layer, RangeObserver) or not layer.is_fresh:
            continue
        found |= {f"{path}.min_val", f"{path}.max_val"}
        owner = path.rpartition(".")[0]
        if path.endswith(".activation_post_process") and isinstance(module.get_submodule(owner), FakeQuantize):
            found |= {f"{owner}.scale", f"{owner}.zero_point"}
    return found


def _initial(name: str, shape: list[int]) -> Any:
    fill = {"min_val": math.inf, "max_val": -math.inf, "scale": 1.0, "zero_point": 0}[name.rpartition(".")[2]]
    return torch.full(shape, fill, dtype=torch.int32 if name.endswith("zero_point") else torch.float32)


def _tensors_of(module: fx.GraphModule) -> dict[str, Any]:
    """All tensors under the names of the file."""
    kept, found = module.meta[_META], {}
    empty = _empty_names(module)
    observed = {path for path, layer in module.named_modules(remove_duplicate=False)
                if not isinstance(layer, fx.GraphModule) and _is_watching(layer)}
    for name, shape in kept["shapes"].items():
        tensor = kept["spare"].get(name)
        if tensor is None:
            tensor = _find(module, name)
            if tensor is None:
                raise ValueError(f"expected the module to have the tensor '{name}', as it was built")
            tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        if name in empty and list(tensor.shape) != shape:
            tensor = _initial(name, shape)
        if list(tensor.shape) != shape and name.rpartition(".")[0] not in observed:
            raise ValueError(f"expected '{name}' of shape {shape}, found {list(tensor.shape)}")
        found[name] = tensor.detach().cpu().contiguous()
    return found


def _is_watching(layer: nn.Module) -> bool:
    return isinstance(layer, (FakeQuantize, RangeObserver)) or type(layer).__name__ == "_Histogram"


def read_back(module: Any) -> Model:
    """The model of what to_torch gave, with what training made of its tensors."""
    module = _unwrapped(module)
    graph = json.loads(json.dumps(module.meta[_META]["graph"]))
    graph["training"] = bool(module.training)
    for row in graph["modules"]:
        layer = _find(module, row["path"])
        if isinstance(layer, nn.Module) and "training" in row:
            row["training"] = bool(layer.training)
    tensors = {name: _export._tensor(tensor) for name, tensor in _tensors_of(module).items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        _export.write_model(path, graph, tensors)
        return load(path, copy=True)

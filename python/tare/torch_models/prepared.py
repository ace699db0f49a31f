# SPDX-License-Identifier: Apache-2.0
"""Models that torch's FX mode or torchao has prepared, calibrated or trained, read with their observers and fake
quantizers."""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import fx, nn  # type: ignore[import-not-found,unused-ignore]

from .. import _export
from .._errors import UnsupportedError
from ..model import Model
from ..observers import FixedQParamsObserver
from ..qconfig import QConfig, QConfigMapping
from . import programs
from .files import write

__all__ = ["is_prepared", "read"]

_ATTRIBUTES = "_observed_graph_module_attrs"
_QAT, _FUSED_QAT = "torch.ao.nn.qat", "torch.ao.nn.intrinsic.qat"
# What a constructor's value is called in torch's observers; those that equal the default are left out.
_DEFAULTS = {"dtype": torch.quint8, "qscheme": torch.per_tensor_affine, "averaging_constant": 0.01, "ch_axis": 0,
             "bins": 2048, "is_dynamic": False}
_STATES = {"eps", "min_val", "max_val", "histogram"}


def is_prepared(module: Any) -> bool:
    """Did prepare_fx, prepare_qat_fx, prepare_pt2e or prepare_qat_pt2e make it?"""
    return isinstance(module, fx.GraphModule) and _ATTRIBUTES in module.meta and any(
        hasattr(layer, "calculate_qparams") for layer in module.modules())


def _is_fake(layer: nn.Module) -> bool:
    return hasattr(layer, "fake_quant_enabled")


def _observer_config(layer: Any) -> dict[str, Any]:
    """The arguments that make such an observer."""
    if type(layer).__name__ == FixedQParamsObserver.__name__:
        return {"scale": float(layer.scale), "zero_point": int(layer.zero_point), "dtype": layer.dtype,
                "qscheme": layer.qscheme, "quant_min": layer.quant_min, "quant_max": layer.quant_max}
    found = {name: getattr(layer, name) for name, default in _DEFAULTS.items() if getattr(layer, name, default) != default}
    if getattr(layer, "has_customized_qrange", False) or (type(layer).__name__ == "PlaceholderObserver"
                                                         and layer.quant_min is not None):
        found["quant_min"], found["quant_max"] = layer.quant_min, layer.quant_max
    if getattr(layer, "reduce_range", False):
        found["reduce_range"] = True
        if "quant_min" in found:  # what torch has halved, rounding down
            found["quant_min"], found["quant_max"] = 2 * layer.quant_min, 2 * layer.quant_max + 1
    eps = getattr(layer, "eps", None)
    if eps is not None and float(eps) != torch.finfo(torch.float32).eps:
        found["eps"] = float(eps)
    return found


def _record(path: str, layer: Any, is_called: bool) -> dict[str, Any]:
    kind = type(layer)
    row: dict[str, Any] = {"path": path, "training": bool(layer.training)}
    if hasattr(layer, "calculate_qparams"):
        if not kind.__module__.startswith(("torch.ao.quantization.", "torchao.quantization.pt2e.")):
            raise UnsupportedError(f"'{kind.__module__}.{kind.__qualname__}' is an observer that tare does not know", path,
                                   "convert the model by torch first, convert_to_reference_fx(prepared)")
        config = {} if _is_fake(layer) else _observer_config(layer)
        row |= {"type": f"torch.ao.quantization.{kind.__name__}",
                "config": {name: _export._value(value) for name, value in config.items()}}
        if state := [name for name, _ in layer.named_buffers(recurse=False) if name in _STATES]:
            row["state"] = state
        return row
    if kind.__module__ == "torch.export._unlift":
        return row | {"type": f"torch.export.{kind.__name__}", "config": {}}
    package = kind.__module__.partition(".modules.")[0]
    if package in (_QAT, _FUSED_QAT):
        plain = next(base for base in kind.__mro__ if base.__module__.startswith("torch.nn.modules."))
        names = _export._config_names(plain)
        return row | {"type": f"{package}.{kind.__name__}",
                      "config": {name: _export._value(getattr(layer, name)) for name in (names or "").split() if hasattr(layer, name)}}
    return dict(_export._module(path, layer, is_called))


def _records(module: fx.GraphModule) -> list[dict[str, Any]]:
    called = {str(node.target) for node in module.graph.nodes if node.op == "call_module"}
    seen: dict[int, str] = {}
    rows: list[dict[str, Any]] = []
    for path, layer in module.named_modules(remove_duplicate=False):
        if not path:
            continue
        first = seen.setdefault(id(layer), path)
        if any(path.startswith(f"{shared}.") for shared in (row["path"] for row in rows if "same_as" in row)):
            continue
        is_inner = any(path.startswith(f"{outer}.") for outer in called)
        rows.append({"path": path, "same_as": first} if first != path else _record(path, layer, path in called or is_inner))
    return rows


def _prepared(attributes: Any, names: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        given = attributes.node_name_to_qconfig.get(name)
        qconfig = None if given is None else QConfigMapping().set_global(QConfig(given.activation, given.weight))
        rows.append({"name": name, "observed": name in attributes.observed_node_names,
                     "qconfig": qconfig and json.loads(qconfig.to_json())["global"]})
    return rows


def _own_tensors(module: fx.GraphModule, rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The parameters and buffers that are neither an observer's state nor a shared module's."""
    watching = {row["path"] for row in rows if "state" in row}
    shared = {row["path"] for row in rows if "same_as" in row}

    def own(tensors: Iterable[tuple[str, Any]]) -> list[str]:
        return [name for name, _ in tensors if name.rpartition(".")[0] not in watching
                and not any(name.startswith(f"{path}.") for path in shared)]
    return own(module.named_parameters()), own(module.named_buffers())


def _fx_record(module: fx.GraphModule) -> dict[str, Any]:
    """What prepare_fx knows beside the graph."""
    attributes = module.meta[_ATTRIBUTES]
    custom = attributes.prepare_custom_config
    if attributes.is_observed_standalone_module or custom.standalone_module_names or custom.standalone_module_classes or \
            custom.float_to_observed_mapping or any(v is not None for v in attributes.equalization_node_name_to_qconfig.values()):
        raise UnsupportedError("standalone and custom modules, and equalization, of a prepared model of torch's are not read", "",
                               "convert the model by torch first, convert_to_reference_fx(prepared)")
    watched = {id(layer) for layer in module.modules() if hasattr(layer, "calculate_qparams")}
    names = [node.name for node in module.graph.nodes
             if not (node.op == "call_module" and id(module.get_submodule(node.target)) in watched)]
    record: dict[str, Any] = {"prepared": _prepared(attributes, names),
                              "qconfig_mapping": json.loads(QConfigMapping.from_torch(attributes.qconfig_mapping).to_json())}
    for key, indexes in (("input_quantized", custom.input_quantized_indexes), ("output_quantized", custom.output_quantized_indexes)):
        if indexes:
            record[key] = list(indexes)
    if attributes.is_qat:
        record["is_qat"] = True
    return record


def _graph(module: fx.GraphModule, examples: Mapping[str, Any]) -> dict[str, Any]:
    is_program = programs.is_program(module)
    rows = _records(module)
    nodes = [programs.node_record(node, module.meta[_ATTRIBUTES].node_name_to_scope) if is_program else _export._node(node, examples) for node in module.graph.nodes]
    graph = dict(_export.graph_header(rows, nodes, *_own_tensors(module, rows), bool(module.training)))
    if is_program:
        graph["codegen"] = programs.codegen(module)
        more = {"annotations": programs.said_of_nodes(module), "derived": programs.derived(module)}
    else:
        more = _fx_record(module)
    graph["record"] = {"stage": "prepared", "engine": "x86", "decisions": []} | more
    return graph


def read(module: fx.GraphModule, example_inputs: Sequence[Any] | None = None) -> Model:
    """The model, in stage "prepared".

    Parameters
    ----------
    module : torch.fx.GraphModule
        For which is_prepared holds.
    example_inputs : tuple of torch.Tensor, optional
        They tell the inputs' shapes.
    """
    placeholders = [str(node.target) for node in module.graph.nodes if node.op == "placeholder"]
    graph = _graph(module, dict(zip(placeholders, example_inputs or (), strict=False)))
    kept = {*graph["parameters"], *graph["buffers"]}
    states = {row["path"]: row["state"] for row in graph["modules"] if "state" in row}
    tensors = {}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        path, _, leaf = name.rpartition(".")
        if name in kept or leaf in states.get(path, ()):
            tensors[name] = _export._tensor(tensor.detach().cpu())
    return write(graph, tensors)

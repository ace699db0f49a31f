# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export that torchao has prepared, calibrated or trained, read with their observers and annotations."""
from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import fx  # type: ignore[import-not-found,unused-ignore]

from .. import _export
from .._errors import UnsupportedError
from ..observers import Constructor, as_constructor

__all__ = ["codegen", "derived", "is_program", "node_record", "said_of_nodes"]

_HINT = "convert the model by torchao first, convert_pt2e(prepared)"
_PLAIN = "dtype quant_min quant_max qscheme ch_axis is_dynamic scale zero_point"


def is_program(module: fx.GraphModule) -> bool:
    """Did torchao's prepare_pt2e or prepare_qat_pt2e make it?"""
    return any(hasattr(layer, "calculate_qparams") and type(layer).__module__.startswith("torchao.") for layer in module.modules())


def codegen(module: fx.GraphModule) -> dict[str, Any]:
    """How the program takes its arguments apart, in torch's own lines."""
    lines = [line.strip() for line in module.code.strip().splitlines()]
    if len(lines) < 2 or "fx_pytree" not in lines[1]:
        raise UnsupportedError("a prepared program of torchao's without torch.export's inputs is not read", "", _HINT)
    return {"pytree": {"signature": lines[0], "flatten": lines[1]}}


def _said(value: Any) -> Any:
    """What a file says of a value: shapes and dtypes; a size that may be any is null."""
    if isinstance(value, (tuple, list)):
        return [_said(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return None
    return {"shape": [int(size) if isinstance(size, int) else None for size in value.shape], "dtype": str(value.dtype)}


def node_record(node: fx.Node, scoped: Container[str]) -> dict[str, Any]:
    """A node, with what torch.export knows of its value. scoped: nodes to whose modules constants of theirs are named
    after; what rewriting for training has made is not among them."""
    if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload) and "torch.ops" in _export._target(node.target):
        raise UnsupportedError(f"node '{node.name}' calls {_export._target(node.target)}, which is not read", node.name, _HINT)
    row = dict(_export._node(node, {}))
    if node.name not in scoped:
        row.get("meta", {}).pop("nn_module_stack", None)
    if (said := _said(node.meta.get("val"))) is not None:
        row.setdefault("meta", {})["val"] = said
    return row


class _Gone(Exception):
    """A spec refers to a node that a later pass has replaced."""


def _edge_or_node(given: Any, names: Container[str]) -> dict[str, Any]:
    nodes = given if isinstance(given, tuple) else (given,)
    if any(node.name not in names for node in nodes):
        raise _Gone
    return {"edge": [node.name for node in nodes]} if isinstance(given, tuple) else {"node": given.name}


def _json(value: Any) -> Any:
    """Dtypes and schemes by their names, and observers inside of fake quantizers."""
    if isinstance(value, Constructor):
        return {"class": value.kind.__name__, "kwargs": {name: _json(inner) for name, inner in value.keywords.items()}}
    return str(value) if isinstance(value, (torch.dtype, torch.qscheme)) else value


def _spec(spec: Any, names: Container[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"spec": type(spec).__name__}
    if hasattr(spec, "edge_or_node"):
        return row | {"edge_or_node": _edge_or_node(spec.edge_or_node, names)}
    row |= {name: _json(getattr(spec, name)) for name in _PLAIN.split() if getattr(spec, name, None) is not None}
    if hasattr(spec, "derived_from"):
        row["derived_from"] = [_edge_or_node(given, names) for given in spec.derived_from]
        return row | {"derive_qparams_fn": spec.derive_qparams_fn.__name__}
    if hasattr(spec, "observer_or_fake_quant_ctr"):
        row["observer_or_fake_quant_ctr"] = _json(as_constructor(spec.observer_or_fake_quant_ctr))
    return row


def _spec_or_none(spec: Any, names: Container[str]) -> dict[str, Any] | None:
    try:
        return None if spec is None else _spec(spec, names)
    except _Gone:
        return None


def said_of_nodes(module: fx.GraphModule) -> dict[str, Any]:
    """What the quantizer said of each node. The observers stand already: what refers to a node that is gone is left out."""
    names, found = {node.name for node in module.graph.nodes}, {}
    for node in module.graph.nodes:
        said = node.meta.get("quantization_annotation")
        if said is not None:
            found[node.name] = {"input_qspec_map": [[source.name, _spec_or_none(spec, names)]
                                                    for source, spec in said.input_qspec_map.items() if source.name in names],
                                "output_qspec": _spec_or_none(said.output_qspec, names),
                                "allow_implicit_sharing": said.allow_implicit_sharing, "_annotated": said._annotated}
    return found


def derived(module: fx.GraphModule) -> dict[str, Any]:
    """The observers that compute their parameters from others', by the names of the modules."""
    names: dict[int, str] = {}
    for name, layer in module.named_children():
        names.setdefault(id(layer), name)
    return {name: {"derive_qparams_fn": layer.derive_qparams_fn.__name__, "sources": [names[id(source)] for source in layer.obs_or_fqs]}
            for name, layer in module.named_children() if hasattr(layer, "derive_qparams_fn")}

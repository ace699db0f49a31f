# SPDX-License-Identifier: Apache-2.0
"""Models that torch lowered, in FX or eager mode: quantized modules and functions, whose weights it has packed."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import fx, nn  # type: ignore[import-not-found,unused-ignore]

from .. import _export
from .._errors import InvalidArgumentError, UnsupportedError
from ..model import Model
from .files import Tensors, write

__all__ = ["convert_eagerly", "is_lowered", "is_prepared_eagerly", "read"]

_PACKAGES = ("torch.ao.nn.quantized.", "torch.ao.nn.intrinsic.quantized.")
_NOT_LOWERED = ("torch.ao.nn.quantized.reference.", "torch.ao.nn.quantized.FloatFunctional",
                "torch.ao.nn.quantized.FXFloatFunctional")
# Classes that compute on quantized values what the float class does on floats.
_SAME_AS_FLOAT = {"torch.ao.nn.quantized.ReLU6": "torch.nn.ReLU6"}
# Modules whose parts are modules again, as the file has them too; of any other the weights are inside.
_CONTAINERS = {"LSTM", "MultiheadAttention", "LSTMCell", "_LSTMLayer", "_LSTMSingleLayer", "QFunctional"}
_DYNAMIC = "torch.ao.nn.quantized.dynamic."


def _qualified(layer: Any) -> str:
    """The public name: torch.ao.nn.quantized.Conv2d, not torch.ao.nn.quantized.modules.conv.Conv2d."""
    return f"{type(layer).__module__.partition('.modules')[0]}.{type(layer).__qualname__}"


def _is_quantized(layer: Any) -> bool:
    name = _qualified(layer)
    return name.startswith(_PACKAGES) and not name.startswith(_NOT_LOWERED)


def _is_container(layer: Any) -> bool:
    name = _qualified(layer)
    return type(layer).__name__ in _CONTAINERS and not name.startswith(_DYNAMIC) and (
        _is_quantized(layer) or name.startswith("torch.ao.nn.quantizable."))


def _packed(module: nn.Module, path: str) -> Any:
    """The packed weights that an attribute holds; None for anything else."""
    owner, _, name = path.rpartition(".")
    found = getattr(module.get_submodule(owner), name, None)
    return found if isinstance(found, torch.ScriptObject) else None


def is_lowered(module: Any) -> bool:
    """Has torch packed weights in it, in eager or FX mode?"""
    if any(_is_quantized(layer) for layer in module.modules()):
        return True
    return isinstance(module, fx.GraphModule) and any(
        node.op == "get_attr" and _packed(module, node.target) is not None for node in module.graph.nodes)


def is_prepared_eagerly(module: Any) -> bool:
    """Did prepare or prepare_qat of torch's eager mode make it?"""
    return not isinstance(module, fx.GraphModule) and any(hasattr(layer, "calculate_qparams") for layer in module.modules())


def convert_eagerly(module: nn.Module) -> nn.Module:
    """A copy, converted by what its observers have seen; an InvalidArgumentError names one that has seen nothing."""
    for path, layer in module.named_modules():
        low = getattr(layer, "min_val", None)
        if hasattr(layer, "calculate_qparams") and isinstance(low, torch.Tensor) and (low.numel() == 0 or bool(low.isinf().any())):
            raise InvalidArgumentError(f"the observer '{path}' has seen no data", path, "calibrate or train the module first")
    from torch.ao.quantization import convert  # type: ignore[import-not-found,unused-ignore]
    warnings.warn("the model is prepared in eager mode: read as torch converts it, with what its observers have seen",
                  stacklevel=3)
    return convert(copy.deepcopy(module).eval())


# --- modules ---

def _config(layer: Any) -> dict[str, Any]:
    """The constructor's values that the file keeps: those of the float class of the same name."""
    for kind in type(layer).__mro__:
        names = _export._config_names(getattr(nn, kind.__name__, None))
        if names is not None:
            break
    else:
        return {}
    found = {name: getattr(layer, name) for name in [*names.split(), "inplace"] if hasattr(layer, name)}
    if hasattr(layer, "negative_slope"):  # of what is fused
        found["negative_slope"] = layer.negative_slope
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm):  # torch hands its arguments on one place too early
        found["affine"] = layer.weight is not None
    return found


def _weights(layer: Any) -> dict[str, Any]:
    """The weights and biases under the float class's names; None where there is none."""
    if hasattr(layer, "get_weight"):  # recurrent
        return {**layer.get_weight(), **layer.get_bias()}
    if callable(getattr(layer, "weight", None)):
        return {"weight": layer.weight(), "bias": layer.bias() if callable(getattr(layer, "bias", None)) else None}
    plain = {name: value for name, value in vars(layer).items() if isinstance(value, torch.Tensor)}  # PReLU's
    return {**plain, **dict(layer.named_parameters(recurse=False)), **dict(layer.named_buffers(recurse=False))}


def _is_half(layer: Any) -> bool:
    packed = getattr(layer, "_packed_params", None)
    return torch.float16 in (getattr(packed, "dtype", None), getattr(layer, "dtype", None), getattr(layer, "weight_dtype", None))


def _check_weights(path: str, layer: Any) -> None:
    """Of transposed convolutions fbgemm gives uninitialized memory back."""
    if not getattr(layer, "transposed", False):
        return
    engine = str(torch.backends.quantized.engine)
    is_for_fbgemm = layer.groups > 100 or any(layer.output_padding)  # within the engine x86
    if engine == "fbgemm" or engine == "x86" and is_for_fbgemm:
        raise UnsupportedError(f"torch's engine {engine} does not give the weights of a transposed convolution back", path,
                               "write what torch.ao.quantization.quantize_fx.convert_to_reference_fx(prepared) gives instead")


def _quantized_record(path: str, layer: Any, tensors: Tensors) -> dict[str, Any]:
    name = _qualified(layer)
    row: dict[str, Any] = {"path": path, "type": _SAME_AS_FLOAT.get(name, name), "training": False,
                           "config": {name: _export._value(value) for name, value in _config(layer).items()}}
    if isinstance(layer, torch.ao.nn.quantized.Quantize):
        row["config"] = {"dtype": _export._value(layer.dtype)}
    _check_weights(path, layer)
    for name, tensor in _weights(layer).items():
        if tensor is not None:
            is_weight = name.startswith("weight") and _is_half(layer)
            tensors.add(path, name, tensor.half() if is_weight and not tensor.is_quantized else tensor, row,
                        is_parameter=name not in dict(layer.named_buffers(recurse=False)))
    for name, dtype in (("scale", torch.float32), ("zero_point", torch.int64)):
        value = getattr(layer, name, None)
        if isinstance(value, (int, float)) and not _qualified(layer).startswith(_DYNAMIC):
            tensors.add(path, name, torch.tensor(value, dtype=dtype), row, is_parameter=False)
    return row


def _packed_record(path: str, packed: Any, function: str, tensors: Tensors) -> dict[str, Any]:
    """A module that holds what torch packed for `function`, torch.ops.quantized.conv2d_relu or its like."""
    operator = function.rpartition(".")[2]
    family = next((name for name in ("conv_transpose", "conv", "linear") if operator.startswith(name)), None)
    if family is None or "sparse" in str(packed._type()):
        raise UnsupportedError(f"packed weights '{path}' of {function} are not read", path, "")
    dims = 0 if family == "linear" else int(operator[len(family)])
    kind = family if dims == 0 else f"{family}{dims}d"
    half = "_fp16" if operator.endswith("_fp16") else ""
    weight, bias = getattr(torch.ops.quantized, f"{kind}_unpack{half}")(packed)
    name = {"linear": "Linear", "conv": "Conv", "conv_transpose": "ConvTranspose"}[family] + (f"{dims}d" if dims else "")
    row: dict[str, Any] = {"path": path, "type": f"tare.Packed{name}", "training": False, "config": {}}
    if dims:  # of one dimension torch keeps two
        keys = ["stride", "padding", "dilation", *(["output_padding"] if family != "conv" else [])]
        row["config"] = {key: _export._value(tuple(getattr(packed, key)()[-dims:])) for key in keys}
        row["config"]["groups"] = packed.groups()
    tensors.add(path, "weight", weight.half() if half else weight, row, is_parameter=True)
    if bias is not None:
        tensors.add(path, "bias", bias, row, is_parameter=True)
    return row


def _float_record(path: str, layer: nn.Module, is_called: bool, tensors: Tensors) -> dict[str, Any]:
    if is_called and (problem := _export._class_problem(path, layer)) is not None:
        raise UnsupportedError(problem, path, "")
    row = dict(_export._module(path, layer, is_called))
    for name, tensor in layer.named_parameters(recurse=False):
        tensors.add(path, name, tensor, row, is_parameter=True)
    for name, tensor in layer.named_buffers(recurse=False):
        tensors.add(path, name, tensor, row, is_parameter=False)
    return row


def _records(module: fx.GraphModule, tensors: Tensors) -> list[dict[str, Any]]:
    called = {node.target for node in module.graph.nodes if node.op == "call_module"}
    first: dict[int, str] = {}
    rows: list[dict[str, Any]] = []
    whole: list[str] = []  # paths whose insides are not listed
    for path, layer in module.named_modules(remove_duplicate=False):
        if not path or any(path.startswith(outer) for outer in whole):
            continue
        if first.setdefault(id(layer), path) != path:
            rows.append({"path": path, "same_as": first[id(layer)]})
            whole.append(f"{path}.")
        elif _is_container(layer):
            rows.append(_quantized_record(path, layer, tensors))
        elif _is_quantized(layer):
            rows.append(_quantized_record(path, layer, tensors))
            whole.append(f"{path}.")
        else:
            rows.append(_float_record(path, layer, path in called or _export._is_part(module, path, called), tensors))
    return rows


def _packed_records(module: fx.GraphModule, tensors: Tensors) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for node in module.graph.nodes:
        if node.op != "get_attr" or node.target in rows or (packed := _packed(module, node.target)) is None:
            continue
        function = _export._target(next(iter(node.users)).target) if node.users else ""
        rows[node.target] = _packed_record(node.target, packed, function, tensors)
    return list(rows.values())


# --- the whole ---

def _traced(module: nn.Module, example_inputs: Sequence[Any] | None) -> tuple[fx.GraphModule, dict[str, Any]]:
    """The graph, and the examples of its inputs by name."""
    if isinstance(module, fx.GraphModule):
        names = [str(node.target) for node in module.graph.nodes if node.op == "placeholder"]
        return module, dict(zip(names, example_inputs or (), strict=False))
    if example_inputs is None:
        raise TypeError("from_torch() needs example_inputs for a module that torch quantized in eager mode")
    return _export.trace(module, tuple(example_inputs))


def _engine() -> str:
    """torch packs weights for the engine that is set, and computes by it."""
    engine = str(torch.backends.quantized.engine)
    return engine if engine in ("x86", "fbgemm", "qnnpack", "onednn") else "x86"


def read(module: nn.Module, example_inputs: Sequence[Any] | None = None) -> Model:
    """The model, in stage "lowered".

    Parameters
    ----------
    module : torch.nn.Module
        For which is_lowered holds. Its integers are computed as ``torch.backends.quantized.engine`` does.
    example_inputs : tuple of torch.Tensor, optional
        They tell the inputs' shapes. A module that is no GraphModule is traced with them.

    Raises
    ------
    UnsupportedError
        For classes of modules that tare does not have.
    """
    traced, examples = _traced(module, example_inputs)
    tensors = Tensors()
    top: dict[str, Any] = {}
    for name, tensor in traced.named_parameters(recurse=False):
        tensors.add("", name, tensor, top, is_parameter=True)
    for name, tensor in traced.named_buffers(recurse=False):
        tensors.add("", name, tensor, top, is_parameter=False)
    rows = _records(traced, tensors) + _packed_records(traced, tensors)
    graph = dict(_export.graph_header(rows, [_export._node(node, examples) for node in traced.graph.nodes],
                                      tensors.parameters, tensors.buffers, False)) | top
    graph["record"] = {"stage": "lowered", "engine": _engine(), "decisions": []}
    return write(graph, tensors.parts)

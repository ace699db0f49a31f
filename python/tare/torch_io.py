# SPDX-License-Identifier: Apache-2.0
"""Models from torch, where it is installed."""
from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import UnsupportedError
from .model import Model, load

__all__ = ["from_exported", "from_torch"]


def is_torch_module(given: Any) -> bool:
    """Is it a torch.nn.Module? torch is not imported to find out."""
    nn = sys.modules.get("torch.nn")
    return nn is not None and isinstance(given, nn.Module)


def _module_of(given: Any) -> Any:
    """The module, out of what torch.compile and torch's data parallelism wrap around it."""
    import torch  # type: ignore[import-not-found,unused-ignore]
    from torch import nn  # type: ignore[import-not-found,unused-ignore]
    if isinstance(given, torch.export.ExportedProgram):
        raise TypeError("expected a torch.nn.Module, found a program of torch.export: tare.from_exported reads it")
    if isinstance(given, torch.jit.ScriptModule):
        raise TypeError("expected a torch.nn.Module, found TorchScript: pass the module that it was made of")
    if not isinstance(given, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, found {type(given).__name__}")
    if type(given).__name__ == "OptimizedModule":
        return _module_of(given._orig_mod)
    return _module_of(given.module) if isinstance(given, (nn.DataParallel, nn.parallel.DistributedDataParallel)) else given


def _check_weights(module: Any) -> None:
    """Weights that are no plain tensors come of torchao's quantize_; torch's graphs do not say what they are."""
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass  # type: ignore[import-not-found,unused-ignore]
    for name, tensor in module.named_parameters():
        if is_traceable_wrapper_subclass(tensor):
            raise UnsupportedError(f"'{name}' is a {type(tensor).__name__}, expected a tensor", name,
                                   "pass the float module; tare.prepare_fx has the mappings 'int8_weight_only' and the like")


def _read(path: str) -> Model:
    return load(path, copy=True)


def from_torch(module: Any, example_inputs: Sequence[Any] | None = None, *, kwargs: Mapping[str, Any] | None = None,
               leaves: Sequence[Any] = ()) -> Model:
    """Traces a module with torch.fx, or exports it with torch.export where it cannot be traced.

    What ``Model.to_torch`` gave is read back with what training made of it, also through torch.compile and
    DistributedDataParallel.

    Parameters
    ----------
    module : torch.nn.Module
        In evaluation mode, or in training mode for quantization-aware training. What torch's prepare_fx or
        prepare_qat_fx made, calibrated or trained, is read as a prepared model, with what its observers and fake
        quantizers have seen; ``convert_fx`` goes on. What convert_to_reference_fx made is read as a reference model;
        ``lower`` makes integers of it. What convert_fx, or convert and quantize_dynamic of the eager mode, made is
        read as a lowered model, which rounds as ``torch.backends.quantized.engine`` does. What prepare of the eager
        mode made is converted by torch first, with a warning: its observers are hooks, which no graph shows; one that has
        seen no data is an InvalidArgumentError. A module is taken out of torch.compile, DataParallel and
        DistributedDataParallel.
    example_inputs : tuple of torch.Tensor
        forward's arguments; they tell shapes, and the trace is checked against them. Not needed for what comes from
        ``Model.to_torch`` or from torch's FX mode.
    kwargs : dict, optional
        Arguments by keyword.
    leaves : sequence of str, optional
        Paths or class names of modules that stay one call.

    Returns
    -------
    Model
        In the stage that the module is in.

    Raises
    ------
    ValueError
        With the line and a remedy, where the module cannot be written.
    TypeError
        Where `example_inputs` are needed, or for anything but a module.
    UnsupportedError
        For weights that torchao's quantize_ made.
    """
    import tempfile

    from . import _export, torch_graph
    from .torch_models import lowered, prepared
    if torch_graph.is_built(module):
        return torch_graph.read_back(module)
    module = _module_of(module)
    if hasattr(example_inputs, "is_sparse"):  # one tensor
        example_inputs = (example_inputs,)
    if prepared.is_prepared(module):
        with contextlib.suppress(UnsupportedError):  # what is left is written as torch converts it, with a note
            return prepared.read(module, example_inputs)
    if lowered.is_prepared_eagerly(module):
        module = lowered.convert_eagerly(module)
    if lowered.is_lowered(module):
        return lowered.read(module, example_inputs)
    if example_inputs is None:
        raise TypeError("from_torch() needs example_inputs for a module that does not come from Model.to_torch")
    _check_weights(module)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        try:
            _export.export(module, tuple(example_inputs), path, kwargs=dict(kwargs or {}), leaves=tuple(leaves))
        except _export.ExportError as error:
            raise ValueError(str(error)) from error
        return _read(os.path.join(folder, os.listdir(folder)[0]))  # model.safetensors, or model.pt2


def from_exported(program: Any) -> Model:
    """Reads a program of torch.export, for prepare_pt2e, or one that torchao converted, for lower.

    Parameters
    ----------
    program : torch.export.ExportedProgram

    Returns
    -------
    Model
        A float model, or a reference model where the program was converted.
    """
    import tempfile

    import torch  # type: ignore[import-not-found,unused-ignore]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt2")
        torch.export.save(program, path)
        return _read(path)

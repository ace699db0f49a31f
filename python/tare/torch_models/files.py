# SPDX-License-Identifier: Apache-2.0
"""The tensors of a model of torch's as a file has them, and the way through that file."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

from .. import _export
from ..model import Model, load

__all__ = ["Tensors", "write"]


class Tensors:
    """What a file holds beside its graph. A quantized tensor is three of its tensors, and a description."""

    def __init__(self) -> None:
        self.parts: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []

    def add(self, path: str, name: str, tensor: Any, row: dict[str, Any], is_parameter: bool) -> None:
        """Adds a tensor of the module at `path`, whose record is `row`."""
        full = f"{path}.{name}" if path else name
        (self.parameters if is_parameter else self.buffers).append(full)
        tensor = tensor.detach().cpu()
        if not tensor.is_quantized:
            self.parts[full] = _export._tensor(tensor)
            return
        said = {"dtype": str(tensor.dtype), "qscheme": str(tensor.qscheme())}
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            scale, zero_point = torch.tensor([tensor.q_scale()], dtype=torch.float64), torch.tensor([tensor.q_zero_point()])
        else:
            scale, zero_point = tensor.q_per_channel_scales().double(), tensor.q_per_channel_zero_points()
            said["axis"] = tensor.q_per_channel_axis()
        is_whole = "float_qparams" not in said["qscheme"]
        row.setdefault("quantized", {})[name] = said
        self.parts[f"{full}.int_repr"] = _export._tensor(_integers(tensor))
        self.parts[f"{full}.scale"] = _export._tensor(scale)
        self.parts[f"{full}.zero_point"] = _export._tensor(zero_point.to(torch.int64 if is_whole else torch.float64))


def _integers(tensor: Any) -> Any:
    """An integer for each element; of four bits torch gives two in a byte."""
    found = tensor.int_repr()
    if tensor.dtype != torch.quint4x2:
        return found
    count = tensor.numel()
    pairs = torch.stack([found.reshape(-1) & 15, found.reshape(-1) >> 4], 1).reshape(-1)
    return pairs[:count].reshape(tensor.shape)


def write(graph: Mapping[str, Any], tensors: Mapping[str, Any]) -> Model:
    """Writes a file and reads it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        _export.write_model(path, graph, dict(tensors))
        return load(path, copy=True)

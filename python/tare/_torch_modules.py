# SPDX-License-Identifier: Apache-2.0
"""Modules of tare as torch's, and back, for fusers that are written for torch."""
from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from ._names import class_name
from .model import Module


def to_torch(module: Module) -> Any:
    """A torch module of the same class, values and tensors. It remembers what it was made of."""
    import torch  # type: ignore[import-not-found,unused-ignore]
    where, _, name = module.class_name.rpartition(".")
    kind = getattr(importlib.import_module(where), name)
    known = inspect.signature(kind.__init__).parameters
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in module.config.items()
              if key in known}
    state = {key: torch.from_numpy(tensor.to_float().numpy().copy()) for key, tensor in module.state().items()}
    if "bias" in known and "weight" in state and "affine" not in known:
        values["bias"] = "bias" in state
    children = [to_torch(child) for child in module.children().values()]
    made = kind(*children) if children else kind(**values)
    made.load_state_dict(state, strict=False)
    made.train(module.training)
    made._tare_module = module
    return made


def from_torch(made: Any) -> Module:
    """The module that a fuser returned: one of those it was given, or a new container of them."""
    own = getattr(made, "_tare_module", None)
    if isinstance(own, Module):
        return own
    children = list(made.named_children())
    if not children:
        raise TypeError(f"a fuser may return a module that holds those it was given; found {type(made).__name__}")
    result = Module.create(class_name(type(made)))
    for name, child in children:
        result.set_child(name, from_torch(child))
    return result


def call_fuser(method: Callable[..., Any], is_qat: bool, lent: list[Any]) -> Any:
    """Calls a fuser of torch's modules with stand-ins."""
    return from_torch(method(is_qat, *[to_torch(item) if isinstance(item, Module) else item for item in lent]))

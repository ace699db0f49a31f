# SPDX-License-Identifier: Apache-2.0
"""Names that files have for torch's fusers and getters."""
from __future__ import annotations

import inspect
from typing import Any

from ._names import class_name


def function_name(function: Any) -> Any:
    """The name of a fuser or getter of torch's own; anything else as it is."""
    if not callable(function) or not str(getattr(function, "__module__", "")).startswith("torch."):
        return function
    where, name = function.__module__, function.__qualname__
    if name == "_sequential_wrapper2.<locals>.fuser_method":
        made = inspect.getclosurevars(function).nonlocals["sequential"]
        return f"{where}._sequential_wrapper2({class_name(made)})"
    name = name.replace(".<locals>", "")
    return function if "<lambda>" in name else f"{where}.{name}"

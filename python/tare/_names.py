# SPDX-License-Identifier: Apache-2.0
"""The qualified names of classes, functions and operators, as model files and configs write them."""
from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

_PUBLIC = ("torch.nn", "torch.ao.nn.intrinsic", "torch.ao.nn.intrinsic.qat", "torch.ao.nn.qat",
           "torch.ao.nn.qat.dynamic", "torch.ao.nn.quantizable", "torch.ao.nn.quantized",
           "torch.ao.nn.quantized.dynamic", "torch.ao.nn.quantized.reference")


@functools.lru_cache(maxsize=4096)
def _public_class_name(kind: Any) -> str:
    """The shortest public name: torch.nn.Linear, not torch.nn.modules.linear.Linear."""
    name: str = kind.__name__
    for where in _PUBLIC:
        module = sys.modules.get(where)
        if module is not None and getattr(module, name, None) is kind:
            return f"{where}.{name}"
    return f"{kind.__module__}.{kind.__qualname__}"


def class_name(given: Any) -> str:
    """The qualified name of a class, or the name as given."""
    if isinstance(given, str):
        return given
    own = getattr(given, "_tare_name", None)  # of tare.nn
    if isinstance(own, str):
        return own
    if not inspect.isclass(given):
        raise TypeError(f"expected a class or its qualified name, found {given!r}")
    kind: Any = given
    return _public_class_name(kind)


def type_name(given: Any) -> str:
    """Of an object, for messages; the qualified name where it is not Python's own."""
    kind: Any = type(given)
    return str(kind.__name__) if kind.__module__ == "builtins" else _public_class_name(kind)


def qualified_name(given: Any) -> str | None:
    """The name of a class, function, method or operator of torch; None for what has none."""
    if isinstance(given, str):
        return given
    if inspect.isclass(given) or isinstance(getattr(given, "_tare_name", None), str):
        return class_name(given)
    kind = type(given)
    if kind.__module__ == "torch._ops":  # torch.ops.aten.add.Tensor, or the packet torch.ops.aten.add
        return "torch.ops." + str(given) if not str(given).startswith("torch.ops.") else str(given)
    name = getattr(given, "__name__", None)
    if name is None or not callable(given):
        return None
    module = _module_of(given)
    if module in ("_operator", "operator"):
        return f"operator.{name}"
    if module.startswith("torch._C._nn") or module == "torch.nn.functional":
        return f"torch.nn.functional.{name}"
    return f"{module}.{name}" if module else str(name)


def _module_of(given: Any) -> str:
    module = getattr(given, "__module__", None)
    torch = sys.modules.get("torch")
    name = getattr(given, "__name__", "")
    if torch is not None:
        functional = sys.modules.get("torch.nn.functional")
        if functional is not None and getattr(functional, name, None) is given and getattr(torch, name, None) is not given:
            return "torch.nn.functional"
        if getattr(torch, name, None) is given:
            return "torch"
    if module is None:  # a method of a C type: torch.Tensor.add
        owner = getattr(given, "__objclass__", None)
        return "" if owner is None else ""
    return str(module)


def object_type_name(given: Any) -> str:
    """What a QConfigMapping or pattern calls an operator: a module class, a function, or a bare method name."""
    name = qualified_name(given)
    if name is None:
        raise TypeError(f"expected a class, a function or a name, found {given!r}")
    return name

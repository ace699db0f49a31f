# SPDX-License-Identifier: Apache-2.0
"""Classes of modules of one's own, and functions that config files name."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._context import the_context
from ._dtypes import dtype, dtype_at, qscheme, qscheme_at
from ._library import c, call, encode, guarded, lib, write_chars
from ._tensor import Tensor, lend
from .backend_config import extra_callback, fuser_callback, root_callback
from .model import Module

__all__ = ["ModuleClass", "WeightQParams", "register_extra_inputs_getter", "register_fuser_method", "register_module_class",
           "register_root_node_getter"]

_ROLES = {"float": "FLOAT", "fused": "FUSED", "qat": "QAT", "reference": "REFERENCE", "observed": "OBSERVED",
          "quantized": "QUANTIZED"}


@dataclass
class WeightQParams:
    """Quantization parameters of a weight, or of a custom module's output."""

    dtype: dtype | None
    qscheme: qscheme | None
    channel_axis: int
    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    quant_min: int
    quant_max: int


class ModuleClass:
    """A class of modules of one's own: subclass it, and register an object of it.

    A model file may then hold such modules, a fuser make them (``Module.fuse``), and a BackendPatternConfig or a
    PrepareCustomConfig name them. The methods get the module as ``tare.Module``, lent for the call, and tensors as
    ``tare.Tensor``, also of quantized values.

    Attributes
    ----------
    name : str
        Qualified: ``"my_backend.reference.Linear"``.
    role : str
        ``"float"``, ``"fused"``, ``"qat"``, ``"reference"``; ``"observed"`` or ``"quantized"`` for custom modules.
    print_name : str, optional
        What print shows before the parenthesis; by default the last part of ``name``.

    Examples
    --------
    >>> class Half(ModuleClass):
    ...     name, role = "doctest.Half", "float"
    ...     def forward(self, module, x):
    ...         return x.numpy() * np.float32(0.5)
    >>> register_module_class(Half())
    >>> Module.create("doctest.Half").class_name
    'doctest.Half'
    """

    name: str = ""
    role: str = "float"
    print_name: str = ""

    def from_float(self, source: Module, weight: WeightQParams | None, made: Module) -> None:
        """Copies what the new module needs from the float one, or from the observed one.

        Parameters
        ----------
        source : Module
            The module that is replaced.
        weight : WeightQParams or None
            Of a reference module's weight, or of a quantized custom module's output.
        made : Module
            An empty module of this class, to be filled by its setters.
        """
        raise NotImplementedError

    def shape(self, module: Module, *inputs: Tensor) -> tuple[int, ...]:
        """The shape of the result; by default that of the first input.

        Parameters
        ----------
        module : Module
        *inputs : Tensor
            Of which shape and dtype are known, but no values.

        Returns
        -------
        tuple of int
        """
        del module
        return inputs[0].shape

    def forward(self, module: Module, *inputs: Tensor) -> Any:
        """The result as float32, or as integers of the result's dtype for a module whose output is quantized.

        Parameters
        ----------
        module : Module
        *inputs : Tensor
            Lent for the call.

        Returns
        -------
        array_like
            Of the result's shape.
        """
        raise NotImplementedError

    def describe(self, module: Module) -> str:
        """What print shows inside of the parentheses."""
        return ", ".join(f"{key}={value!r}" for key, value in module.config.items())


_kept: list[Any] = []  # rows and callbacks live as long as the process, as the context does


def _put(result: Any, out: Any) -> None:
    shape, kind, is_quantized = (lambda t: (t.shape, t.int_repr().dtype, t.is_quantized))(lend(out))
    array = np.asarray(result)
    if array.shape != shape or (array.dtype != kind and (is_quantized or array.dtype.kind not in "fiub")):
        raise ValueError(f"expected {kind} of shape {shape}, found {array.dtype} of shape {array.shape}")
    array = np.ascontiguousarray(array, kind)
    if array.nbytes:
        ctypes.memmove(lib.tensor_mutable_data(out), array.ctypes.data, array.nbytes)


def _qparams(given: Any) -> WeightQParams | None:
    if not given:
        return None
    row, scheme = given.contents, qscheme_at(given.contents.qscheme)
    return WeightQParams(dtype_at(row.dtype), scheme, int(row.channel_axis), np.array(row.scale[:row.count]),
                         np.array(row.zero_point[:row.count]), int(row.quant_min), int(row.quant_max))


def register_module_class(module_class: ModuleClass) -> None:
    """Makes a class of modules known to the package, for the life of the process.

    Parameters
    ----------
    module_class : ModuleClass
        An object of a subclass; its name must be new.

    Raises
    ------
    TypeError
        For anything but an object of a `ModuleClass`.
    ValueError
        For a role that no class has.
    """
    if not isinstance(module_class, ModuleClass):
        raise TypeError(f"expected a ModuleClass, found {module_class!r}")
    if module_class.role not in _ROLES:
        raise ValueError(f"expected a role of {', '.join(_ROLES)}, found {module_class.role!r}")
    kind: dict[str, Any] = dict(c.tare_module_class._fields_)

    def lent(function: Callable[..., None]) -> Callable[..., None]:
        """Modules are lent for the call."""
        def run(_user: Any, handle: Any, *rest: Any) -> None:
            module = Module(handle, None)
            try:
                function(module, *rest)
            finally:
                module._pointer = None
        return run

    def from_float(source: Module, weight: Any, handle: Any, _error: Any) -> None:
        made = Module(handle, None, writable=True)
        try:
            module_class.from_float(source, _qparams(weight), made)
        finally:
            made._pointer = None

    def shape(module: Module, inputs: Any, count: int, ndim: Any, sizes: Any, _error: Any) -> None:
        found = tuple(module_class.shape(module, *[lend(item) for item in inputs[:count]]))
        if len(found) > c.TARE_MAX_DIMS:
            raise ValueError(f"expected at most {c.TARE_MAX_DIMS} dimensions, found {len(found)}")
        for index, size in enumerate(found):
            sizes[index] = size.__index__()
        ndim[0] = len(found)

    def forward(module: Module, inputs: Any, count: int, out: Any, _error: Any) -> None:
        _put(module_class.forward(module, *[lend(item) for item in inputs[:count]]), out)

    def describe(module: Module, write: Any, write_user: Any, _error: Any) -> None:
        write_chars(write, write_user, module_class.describe(module))
    row = c.tare_module_class()
    row.struct_size = ctypes.sizeof(row)
    row.name = encode(module_class.name, "a name")
    row.print_name = encode(module_class.print_name or module_class.name.rpartition(".")[2])
    row.role = getattr(c, f"TARE_MODULE_{_ROLES[module_class.role]}")
    given: list[tuple[str, Callable[..., None], int]] = [("shape", shape, 6), ("forward", forward, 5), ("describe", describe, 4)]
    if type(module_class).from_float is not ModuleClass.from_float:
        given.append(("from_float", from_float, 4))
    for name, function, error in given:
        setattr(row, name, kind[name](guarded(error, lent(function))))
    call("context_add_module_class", the_context(), ctypes.byref(row))
    _kept.append((row, module_class))


def _register(name: str, field: str, callback: Any) -> None:
    row = c.tare_backend_function()
    row.struct_size = ctypes.sizeof(row)
    row.name = encode(name, "a name")
    setattr(row, field, callback)
    call("context_add_backend_function", the_context(), ctypes.byref(row))
    _kept.append((row, callback))


def register_fuser_method(name: str, fuser_method: Callable[..., Module]) -> None:
    """Gives a fuser method a name, so that JSON configs can say ``"fuser_method": name``.

    Parameters
    ----------
    name : str
        New: ``"my_backend.fuse_conv_relu"``.
    fuser_method : callable
        ``fuser_method(is_qat, *modules)`` returns a ``tare.Module``.
    """
    _register(name, "fuser", fuser_callback(fuser_method, False))


def register_root_node_getter(name: str, root_node_getter: Callable[[Any], Any]) -> None:
    """Gives a getter of root nodes a name for JSON configs.

    Parameters
    ----------
    name : str
        New.
    root_node_getter : callable
        ``root_node_getter(match)`` returns a node of the match.
    """
    _register(name, "root_node_getter", root_callback(root_node_getter))


def register_extra_inputs_getter(name: str, extra_inputs_getter: Callable[[Any], Any]) -> None:
    """Gives a getter of extra inputs a name for JSON configs.

    Parameters
    ----------
    name : str
        New.
    extra_inputs_getter : callable
        ``extra_inputs_getter(match)`` returns nodes of the match.
    """
    _register(name, "extra_inputs_getter", extra_callback(extra_inputs_getter))

# SPDX-License-Identifier: Apache-2.0
"""BackendConfig and its parts, as torch.ao.quantization.backend_config has them."""
from __future__ import annotations

import contextlib
import ctypes
import enum
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ._context import the_context
from ._dtypes import as_dtype, dtype
from ._errors import keep_exception, status_of
from ._library import address, c, call, encode, lib, names_of, out, take_text, text, write_text
from ._names import class_name, object_type_name
from .model import Module

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "MatchNode",
           "ObservationType", "get_native_backend_config", "get_native_backend_config_dict",
           "get_executorch_backend_config", "get_fbgemm_backend_config", "get_onednn_backend_config",
           "get_qnnpack_backend_config", "get_tensorrt_backend_config", "get_tensorrt_backend_config_dict",
           "get_x86_backend_config"]


class ObservationType(enum.Enum):
    """How observers are inserted for a pattern."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype with constraints, as torch has it.

    The constraints after zero_point_exact_match are tare's; they are not printed where they are unset.
    """

    dtype: Any = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None
    allowed_qschemes: Sequence[Any] | None = None
    channel_axis: int | None = None
    zero_point_lower_bound: int | None = None
    zero_point_upper_bound: int | None = None
    scale_power_of_two: bool | None = None

    def __repr__(self) -> str:
        own = {f.name for f in fields(self)[7:]}
        given = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)
                          if f.name not in own or getattr(self, f.name) is not None)
        return f"DTypeWithConstraints({given})"

    def _json(self) -> dict[str, Any]:
        made = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        made["dtype"] = str(as_dtype(self.dtype))
        if self.allowed_qschemes is not None:
            made["allowed_qschemes"] = [str(item) for item in self.allowed_qschemes]
        return made


def _constrained(given: Any) -> DTypeWithConstraints:
    if isinstance(given, DTypeWithConstraints):
        return given
    if type(given).__name__ == "DTypeWithConstraints":  # torch's
        return DTypeWithConstraints(**{**vars(given), "dtype": given.dtype and as_dtype(given.dtype)})
    return DTypeWithConstraints(dtype=None if given is None else as_dtype(given))


@dataclass(init=False)
class DTypeConfig:
    """The dtypes of input and output activations, weights and biases that a pattern supports."""

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: dtype | None
    is_dynamic: bool | None

    def __init__(self, input_dtype: Any = None, output_dtype: Any = None, weight_dtype: Any = None,
                 bias_dtype: Any = None, is_dynamic: bool | None = None) -> None:
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype = None if bias_dtype is None else as_dtype(bias_dtype)
        self.is_dynamic = is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The dtype of input activations."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of output activations."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The dtype of weights."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """From a dict with input_dtype, output_dtype, weight_dtype, bias_dtype, is_dynamic, all optional."""
        def part(key: str) -> Any:
            given = dtype_config_dict.get(key)
            return DTypeWithConstraints(**{**given, "dtype": as_dtype(given["dtype"])}) if isinstance(given, dict) else given
        return cls(part("input_dtype"), part("output_dtype"), part("weight_dtype"),
                   dtype_config_dict.get("bias_dtype"), dtype_config_dict.get("is_dynamic"))

    def to_dict(self) -> dict[str, Any]:
        """A dict as from_dict takes it."""
        made: dict[str, Any] = {}
        for part in ("input", "output", "weight"):
            given = getattr(self, f"{part}_dtype_with_constraints")
            if given.dtype is not None:
                made[f"{part}_dtype"] = given
        if self.bias_dtype is not None:
            made["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            made["is_dynamic"] = self.is_dynamic
        return made

    def _json(self) -> dict[str, Any]:
        return {key: value._json() if isinstance(value, DTypeWithConstraints) else
                str(value) if isinstance(value, dtype) else value for key, value in self.to_dict().items()}


# --- callbacks ---

class MatchNode:
    """A node of a match, as getters see it; lent for the call."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer

    @property
    def name(self) -> str:
        """Unique in the graph.

        Raises
        ------
        ReferenceError
            After the call that lent the node.
        """
        if not self._pointer:
            raise ReferenceError("the node was lent for a call that has ended")
        return text(lib.match_node_name(self._pointer))

    @property
    def args(self) -> tuple[MatchNode | None, ...]:
        """The positional arguments that are nodes; None for others.

        Raises
        ------
        ReferenceError
            After the call that lent the node.
        """
        if not self._pointer:
            raise ReferenceError("the node was lent for a call that has ended")
        found = [lib.match_node_input(self._pointer, i) for i in range(8)]
        while found and not found[-1]:
            found.pop()
        return tuple(MatchNode(item) if item else None for item in found)

    def __repr__(self) -> str:
        return self.name


def _match_of(match: Any) -> Any:
    """torch's nested tuples: the operator that runs last first."""
    items = []
    for index in range(lib.match_count(match)):
        nested = lib.match_nested(match, index)
        node = lib.match_node_at(match, index)
        items.append(_match_of(nested) if nested else MatchNode(node) if node else None)
    return tuple(items) if len(items) != 1 else items[0]


def _nodes_of(found: Any) -> Iterator[MatchNode]:
    if isinstance(found, tuple):
        for item in found:
            yield from _nodes_of(item)
    elif found is not None:
        yield found


def fuser_callback(method: Callable[..., Any], speaks_torch: bool) -> Any:
    """The tare_fuser of a fuser method."""
    def fuse(_user: Any, is_qat: bool, modules: Any, functions: Any, count: int, place: Any, error: Any) -> int:
        lent = [Module(modules[i], None) if modules[i] else text(functions[i]) if functions[i] else None
                for i in range(count)]
        try:
            if speaks_torch:
                from . import _torch_modules
                made = _torch_modules.call_fuser(method, bool(is_qat), lent)
            else:
                made = method(bool(is_qat), *lent)
            if not isinstance(made, Module) or not made._pointer:
                raise TypeError(f"expected a fused Module from {method!r}, found {type(made).__name__}")
            if not made._owned:
                raise ValueError("expected a new module, found one of those that were to be fused")
            place[0] = made._pointer
            made._owned = made._writable = False  # the library has it now
            return 0
        except BaseException as exception:  # pylint: disable=broad-except
            return int(lib.error_set(error, status_of(exception), None, keep_exception(exception).encode(), None))
        finally:
            for module in lent:
                if isinstance(module, Module):
                    module._pointer = None
    return c.tare_fuser(fuse)


def root_callback(getter: Callable[[Any], Any]) -> Any:
    """The tare_root_node_getter of a function."""
    def find(_user: Any, match: Any) -> int:
        whole = _match_of(match)
        try:
            root = getter(whole)
            return address(root._pointer) if isinstance(root, MatchNode) else 0
        except BaseException as exception:  # pylint: disable=broad-except
            _failures.raised.append(exception)
            return 0
        finally:
            for node in _nodes_of(whole):
                node._pointer = None
    return c.tare_root_node_getter(find)


def extra_callback(getter: Callable[[Any], Any]) -> Any:
    """The tare_extra_inputs_getter of a function."""
    def find(_user: Any, match: Any, places: Any, capacity: int) -> int:
        whole = _match_of(match)
        try:
            found = [node._pointer for node in getter(whole)][:capacity]
            for index, pointer in enumerate(found):
                places[index] = pointer
            return len(found)
        except BaseException as exception:  # pylint: disable=broad-except
            _failures.raised.append(exception)
            return 0
        finally:
            for node in _nodes_of(whole):
                node._pointer = None
    return c.tare_extra_inputs_getter(find)


class _Failures(threading.local):
    """What getters have raised in this thread: they have no error of their own in C."""

    def __init__(self) -> None:
        self.raised: list[BaseException] = []


_failures = _Failures()


# --- the configs ---

def _entry_points() -> Iterable[Any]:
    from importlib.metadata import entry_points
    return entry_points(group="tare.backends")


def _pattern_json(pattern: Any) -> Any:
    if isinstance(pattern, (tuple, list)):
        return [_pattern_json(item) for item in pattern]
    if pattern is None or isinstance(pattern, (bool, int, float)):
        return pattern
    return object_type_name(pattern)


def _has_types(pattern: Any) -> bool:
    if isinstance(pattern, (tuple, list)):
        return any(_has_types(item) for item in pattern)
    return isinstance(pattern, type)


class BackendPatternConfig:
    """How one pattern of operators is quantized. Setters return the config, so that they chain.

    Patterns and modules are classes and functions of torch, or their qualified names: ``"torch.nn.Linear"``.

    >>> int8 = DTypeConfig("torch.quint8", "torch.quint8", "torch.qint8", "torch.float32")
    >>> linear = BackendPatternConfig("torch.nn.Linear").add_dtype_config(int8).set_root_module("torch.nn.Linear")
    >>> backend = BackendConfig("mine").set_backend_pattern_config(linear)
    >>> [row["problem"] for row in backend.lint()]
    ['root_module works only with reference_quantized_module_for_root']

    A fuser method gets torch's modules where the pattern has torch's classes, and ``tare.Module`` where it has names.
    """

    pattern: Any
    observation_type: ObservationType

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: Any = None
        self.qat_module: Any = None
        self.reference_quantized_module: Any = None
        self.fused_module: Any = None
        self.fuser_method: Any = None
        self._root_node_getter: Any = None
        self._extra_inputs_getter: Any = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Any = None

    def __repr__(self) -> str:
        given = {key: value for key, value in self.__dict__.items()
                 if value is not None and (not isinstance(value, (list, dict)) or value)}
        return f"BackendPatternConfig({given})"

    @property
    def _speaks_torch(self) -> bool:
        return _has_types(self.pattern) or _has_types(self._pattern_complex_format)

    def set_pattern(self, pattern: Any) -> BackendPatternConfig:
        """An operator, or a tuple of two or three in the order in which they run.

        Raises
        ------
        ValueError
            Where a pattern in the complex format is set.
        """
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self.pattern = pattern
        return self

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """How observers are inserted."""
        self.observation_type = ObservationType[observation_type.name]
        return self

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """Adds a combination of dtypes that is supported."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """Replaces all of them."""
        self.dtype_configs = dtype_configs
        return self

    def set_root_module(self, root_module: Any) -> BackendPatternConfig:
        """The float module class that holds the weight."""
        self.root_module = root_module
        return self

    def set_qat_module(self, qat_module: Any) -> BackendPatternConfig:
        """The module class that takes the root's place for training."""
        self.qat_module = qat_module
        return self

    def set_reference_quantized_module(self, reference_quantized_module: Any) -> BackendPatternConfig:
        """The module class that convert makes of the root."""
        self.reference_quantized_module = reference_quantized_module
        return self

    def set_fused_module(self, fused_module: Any) -> BackendPatternConfig:
        """The module class that the fuser makes."""
        self.fused_module = fused_module
        return self

    def set_fuser_method(self, fuser_method: Any) -> BackendPatternConfig:
        """fuser_method(is_qat, *modules) returns the fused module; or the name of a built-in one."""
        self.fuser_method = fuser_method
        return self

    def _set_root_node_getter(self, root_node_getter: Any) -> BackendPatternConfig:
        self._root_node_getter = root_node_getter
        return self

    def _set_extra_inputs_getter(self, extra_inputs_getter: Any) -> BackendPatternConfig:
        self._extra_inputs_getter = extra_inputs_getter
        return self

    def _set_num_tensor_args_to_observation_type(
            self, num_tensor_args_to_observation_type: dict[int, ObservationType]) -> BackendPatternConfig:
        self._num_tensor_args_to_observation_type = num_tensor_args_to_observation_type
        return self

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        self._input_type_to_index = input_type_to_index
        return self

    def _set_pattern_complex_format(self, pattern: Any) -> BackendPatternConfig:
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self._pattern_complex_format = pattern
        return self

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """From a dict as to_dict gives it, or as a JSON file has it."""
        given, made = backend_pattern_config_dict, cls()
        def tupled(item: Any) -> Any:
            return tuple(tupled(part) for part in item) if isinstance(item, (list, tuple)) else item
        def observed(item: Any) -> ObservationType:
            return ObservationType[item if isinstance(item, str) else item.name]
        if "pattern" in given:
            made.set_pattern(tupled(given["pattern"]))
        if "pattern_complex_format" in given:
            made._set_pattern_complex_format(tupled(given["pattern_complex_format"]))
        if "observation_type" in given:
            made.observation_type = observed(given["observation_type"])
        made.dtype_configs = [item if isinstance(item, DTypeConfig) else DTypeConfig.from_dict(item)
                              for item in given.get("dtype_configs", [])]
        for key in ("root_module", "qat_module", "fused_module", "fuser_method"):
            setattr(made, key, given.get(key))
        made.reference_quantized_module = given.get("reference_quantized_module_for_root")
        made._root_node_getter = given.get("root_node_getter")
        made._extra_inputs_getter = given.get("extra_inputs_getter")
        made._num_tensor_args_to_observation_type = {
            int(count): observed(kind) for count, kind in given.get("num_tensor_args_to_observation_type", {}).items()}
        made._input_type_to_index = dict(given.get("input_type_to_index", {}))
        return made

    def to_dict(self) -> dict[str, Any]:
        """A dict as from_dict takes it, with torch's keys."""
        made: dict[str, Any] = {"observation_type": self.observation_type,
                                "dtype_configs": [item.to_dict() for item in self.dtype_configs]}
        for key in ("pattern", "root_module", "qat_module", "fused_module", "fuser_method"):
            if getattr(self, key) is not None:
                made[key] = getattr(self, key)
        if self.reference_quantized_module is not None:
            made["reference_quantized_module_for_root"] = self.reference_quantized_module
        for key in ("_root_node_getter", "_extra_inputs_getter", "_pattern_complex_format"):
            if getattr(self, key) is not None:
                made[key[1:]] = getattr(self, key)
        if self._num_tensor_args_to_observation_type:
            made["num_tensor_args_to_observation_type"] = self._num_tensor_args_to_observation_type
        if self._input_type_to_index:
            made["input_type_to_index"] = self._input_type_to_index
        return made

    def _json(self) -> dict[str, Any]:
        made = self.to_dict()
        made["observation_type"] = self.observation_type.name
        made["dtype_configs"] = [item._json() for item in self.dtype_configs]
        for key in ("pattern", "pattern_complex_format"):
            if key in made:
                made[key] = _pattern_json(made[key])
        for key in ("root_module", "qat_module", "reference_quantized_module_for_root", "fused_module"):
            if key in made:
                made[key] = class_name(made[key])
        for key in ("fuser_method", "root_node_getter", "extra_inputs_getter"):
            if key in made and not isinstance(made[key], str):
                del made[key]  # a callable, set through C
        if "num_tensor_args_to_observation_type" in made:
            made["num_tensor_args_to_observation_type"] = {
                str(count): kind.name for count, kind in self._num_tensor_args_to_observation_type.items()}
        return made

    def _key(self) -> str:
        """The pattern in torch's reverse nested form: equal patterns have equal keys."""
        if self._pattern_complex_format is not None:
            return json.dumps(_pattern_json(self._pattern_complex_format))
        if self.pattern is None:
            raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
        found = _pattern_json(self.pattern)
        if not isinstance(found, list):
            return json.dumps(found)
        if len(found) == 2:
            return json.dumps([found[1], found[0]])
        if len(found) == 3:
            return json.dumps([found[2], [found[1], found[0]]])
        raise ValueError("Expected a tuple with 2 or 3 elements, got: ", self.pattern)


class BackendConfig:
    """The patterns that a backend can quantize, and how; torch's, with its methods."""

    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._pattern_complex_format_to_config: dict[str, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({self.__dict__})"

    def set_name(self, name: str) -> BackendConfig:
        """The name of the backend."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """Sets the config of a pattern, in place of an earlier one."""
        self._pattern_complex_format_to_config[config._key()] = config
        return self

    def set_backend_pattern_configs(self, configs: Sequence[BackendPatternConfig]) -> BackendConfig:
        """Sets several."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """A copy of the list of configs; the configs may be changed."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """From a dict with "name" and "configs".

        Returns
        -------
        BackendConfig

        Raises
        ------
        ValueError
            Where a config is no dict.
        """
        made = cls(backend_config_dict.get("name", ""))
        for item in backend_config_dict.get("configs", []):
            if not isinstance(item, (dict, BackendPatternConfig)):
                raise ValueError("Expected backend_config_dict['configs'] to be a dictionary")
            made.set_backend_pattern_config(
                item if isinstance(item, BackendPatternConfig) else BackendPatternConfig.from_dict(item))
        return made

    def to_dict(self) -> dict[str, Any]:
        """A dict as from_dict takes it."""
        return {"name": self.name, "configs": [item.to_dict() for item in self.configs]}

    # --- files and built-in ones ---

    @classmethod
    def builtin(cls, name: str) -> BackendConfig:
        """A copy of a built-in config: "native", "x86", "fbgemm", "qnnpack", "onednn", "tensorrt", .."""
        made, place = out("tare_backend_config")
        call("backend_config_builtin", encode(name), place)
        return cls._take(made)

    @staticmethod
    def builtin_names() -> list[str]:
        """The names of the built-in configs."""
        return list(names_of("backend_config_builtin_name_at"))

    @staticmethod
    def installed_names() -> list[str]:
        """The names of the backends that installed packages offer: their entry points of the group ``tare.backends``."""
        return sorted(entry.name for entry in _entry_points())

    @classmethod
    def named(cls, name: str) -> BackendConfig:
        """A built-in config, or one that an installed package offers.

        The entry point of a package is a BackendConfig, a function that returns one, or the path of a JSON file.

        Returns
        -------
        BackendConfig
            A copy of the built-in one.

        Raises
        ------
        NotFoundError
            Where nobody offers it.
        TypeError
            Where the entry point is something else.
        """
        found = [entry for entry in _entry_points() if entry.name == name] if name not in cls.builtin_names() else []
        if not found:
            return cls.builtin(name)
        given = found[0].load()
        given = given() if callable(given) else given
        if isinstance(given, cls):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls.read(given)
        raise TypeError(f"expected a BackendConfig or a path from the entry point '{name}' of {found[0].value}, "
                        f"found {type(given).__name__}")

    @classmethod
    def from_json(cls, data: str) -> BackendConfig:
        """From the text of a JSON file; errors name the path in it."""
        made, place = out("tare_backend_config")
        encoded = data.encode()
        call("backend_config_from_json_with", the_context(), encoded, len(encoded), place)
        return cls._take(made)

    @classmethod
    def read(cls, path: Any) -> BackendConfig:
        """From a JSON file."""
        made, place = out("tare_backend_config")
        call("backend_config_read_with", the_context(), encode(path, "a path"), place)
        return cls._take(made)

    @classmethod
    def _take(cls, handle: Any) -> BackendConfig:
        try:
            place = ctypes.c_char_p()
            call("backend_config_to_json", handle, ctypes.byref(place))
            return cls.from_dict(json.loads(take_text(place)))
        finally:
            lib.backend_config_destroy(handle)

    @classmethod
    def from_torch(cls, config: Any) -> BackendConfig:
        """From torch's own BackendConfig. Callables stay callables."""
        made = cls(config.name)
        for item in config.configs:
            own = BackendPatternConfig()
            own.__dict__.update(vars(item))
            own.observation_type = ObservationType[item.observation_type.name]
            own._num_tensor_args_to_observation_type = {
                count: ObservationType[kind.name] for count, kind in item._num_tensor_args_to_observation_type.items()}
            own.dtype_configs = [DTypeConfig(d.input_dtype_with_constraints, d.output_dtype_with_constraints,
                                             d.weight_dtype_with_constraints, d.bias_dtype, d.is_dynamic)
                                 for d in item.dtype_configs]
            from .torch_names import function_name
            for key in ("fuser_method", "_root_node_getter", "_extra_inputs_getter"):
                setattr(own, key, function_name(getattr(own, key)))
            made.set_backend_pattern_config(own)
        return made

    def to_json(self, indent: int | None = 1) -> str:
        """The text of a JSON file.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            For callables, which have no form in a file.
        """
        for config in self.configs:
            for key in ("fuser_method", "_root_node_getter", "_extra_inputs_getter"):
                if callable(getattr(config, key)):
                    raise ValueError(f"{getattr(config, key)!r} of {config._key()} has no form in a file")
        return json.dumps(self._json(), indent=indent)

    def _json(self) -> dict[str, Any]:
        return {"name": self.name, "configs": [item._json() for item in self.configs]}

    @contextlib.contextmanager
    def _built(self) -> Iterator[Any]:
        """The config in C, for a pass."""
        made, place = out("tare_backend_config")
        encoded = json.dumps(self._json()).encode()
        call("backend_config_from_json_with", the_context(), encoded, len(encoded), place)
        kept = []
        try:
            for index, config in enumerate(self.configs):
                pattern = lib.backend_config_mutable_at(made, index)
                if callable(config.fuser_method):
                    kept.append(fuser_callback(config.fuser_method, config._speaks_torch))
                    lib.pattern_config_set_fuser_callback(pattern, kept[-1], None)
                if callable(config._root_node_getter):
                    kept.append(root_callback(config._root_node_getter))
                    lib.pattern_config_set_root_node_getter(pattern, kept[-1], None)
                if callable(config._extra_inputs_getter):
                    kept.append(extra_callback(config._extra_inputs_getter))
                    lib.pattern_config_set_extra_inputs_getter(pattern, kept[-1], None)
            _alive.setdefault(self, []).extend(kept)  # models keep clones of the config, and this object
            outer = _failures.raised  # of a pass whose callback has called this one
            raised = _failures.raised = []
            try:
                yield made
            finally:
                _failures.raised = outer
                if raised:
                    raise raised[0]
        finally:
            lib.backend_config_destroy(made)

    def check(self) -> None:
        """Raises the first error that lint finds."""
        with self._built() as handle:
            call("backend_config_check", handle)

    def lint(self) -> list[dict[str, Any]]:
        """Entries that are valid but probably mistakes: path, pattern, problem, remedy, is_error."""
        found: list[dict[str, Any]] = []

        def visit(_user: Any, finding: Any, _error: Any) -> int:
            row = finding.contents
            found.append({key: text(getattr(row, key)) for key in ("path", "pattern", "problem", "remedy")} |
                         {"is_error": bool(row.is_error)})
            return 0
        with self._built() as handle:
            count = ctypes.c_size_t()
            call("backend_config_lint", handle, None, c.tare_backend_finding_visitor(visit), None, ctypes.byref(count))
        return found

    def show(self) -> str:
        """A listing for people, one block per pattern."""
        with self._built() as handle:
            return write_text(lambda write: call("backend_config_show", handle, write, None))

    def table(self) -> str:
        """A Markdown page, one row per pattern and dtype config."""
        with self._built() as handle:
            return write_text(lambda write: call("backend_config_table", handle, write, None))


_alive: weakref.WeakKeyDictionary[BackendConfig, list[Any]] = weakref.WeakKeyDictionary()


def get_native_backend_config() -> BackendConfig:
    """The config of torch's native backends."""
    return BackendConfig.builtin("native")


def get_fbgemm_backend_config() -> BackendConfig:
    """The config of FBGEMM."""
    return BackendConfig.builtin("fbgemm")


def get_qnnpack_backend_config() -> BackendConfig:
    """The config of QNNPACK."""
    return BackendConfig.builtin("qnnpack")


def get_x86_backend_config() -> BackendConfig:
    """The config of x86."""
    return BackendConfig.builtin("x86")


def get_onednn_backend_config() -> BackendConfig:
    """The config of oneDNN."""
    return BackendConfig.builtin("onednn")


def get_tensorrt_backend_config() -> BackendConfig:
    """The config of TensorRT."""
    return BackendConfig.builtin("tensorrt")


def get_executorch_backend_config() -> BackendConfig:
    """The config of ExecuTorch."""
    return BackendConfig.builtin("executorch")


def get_native_backend_config_dict() -> dict[str, Any]:
    """The same as a dict."""
    return get_native_backend_config().to_dict()


def get_tensorrt_backend_config_dict() -> dict[str, Any]:
    """The same as a dict."""
    return get_tensorrt_backend_config().to_dict()

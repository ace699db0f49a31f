# SPDX-License-Identifier: Apache-2.0
"""Quantizers of exported programs, and what they say of a graph: torchao's pt2e, in Python."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._context import the_context
from ._dtypes import as_dtype, as_qscheme, dtype_at, qscheme_at
from ._library import c, call, encode, encode_or_null, filled, guarded, integer, lib, out, text, write_text
from ._names import class_name, object_type_name
from .graph import Node
from .model import Model
from .observers import observer_spec

__all__ = ["ArmInductorQuantizer", "ComposableQuantizer", "DerivedQuantizationSpec", "EmbeddingQuantizer",
           "FileQuantizer", "FixedQParamsQuantizationSpec", "QuantizationAnnotation", "QuantizationConfig",
           "QuantizationSpec", "QuantizationSpecBase", "Quantizer", "SharedQuantizationSpec", "SourceQParams",
           "X86InductorQuantizer", "XNNPACKQuantizer", "XPUInductorQuantizer", "get_bias_qspec",
           "get_input_act_qspec", "get_output_act_qspec", "get_symmetric_quantization_config", "get_weight_qspec",
           "is_annotated"]


# --- specs ---

class QuantizationSpecBase(ABC):  # noqa: B024
    """How to quantize one tensor."""


def _check_range(spec: Any) -> None:
    if spec.quant_min is not None and spec.quant_max is not None and spec.quant_min > spec.quant_max:
        raise ValueError(f"quant_min {spec.quant_min} must be <= quant_max {spec.quant_max}.")
    if getattr(spec, "ch_axis", None) is not None and spec.ch_axis < 0:
        raise ValueError("Ch_axis is < 0.")


@dataclass(eq=True, frozen=True)
class QuantizationSpec(QuantizationSpecBase):
    """By an observer of its own."""

    dtype: Any
    observer_or_fake_quant_ctr: Any
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    ch_axis: int | None = None
    is_dynamic: bool = False

    def __post_init__(self) -> None:
        _check_range(self)


@dataclass(eq=True, frozen=True)
class FixedQParamsQuantizationSpec(QuantizationSpecBase):
    """By a scale and zero point that are known before."""

    dtype: Any
    scale: float
    zero_point: int
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    is_dynamic: bool = False


@dataclass(eq=True, frozen=True)
class SharedQuantizationSpec(QuantizationSpecBase):
    """By the observer of another edge (from, to) or node."""

    edge_or_node: Any


@dataclass(eq=True, frozen=True)
class DerivedQuantizationSpec(QuantizationSpecBase):
    """By a function of other observers: derive_qparams_fn(list of SourceQParams) returns scale and zero point."""

    derived_from: list[Any]
    derive_qparams_fn: Callable[[list[Any]], tuple[Any, Any]]
    dtype: Any
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    ch_axis: int | None = None
    is_dynamic: bool = False


class SourceQParams:
    """What a derive function sees of an observer: its parameters and the range that it has seen.

    All are float64 arrays of one number, or of one for each channel. ``min_val`` and ``max_val`` are None for observers
    that keep no range, or have seen nothing.
    """

    __slots__ = ("max_val", "min_val", "scale", "zero_point")
    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    min_val: np.ndarray[Any, Any] | None
    max_val: np.ndarray[Any, Any] | None

    def __init__(self, scale: np.ndarray[Any, Any], zero_point: np.ndarray[Any, Any],
                 min_val: np.ndarray[Any, Any] | None = None, max_val: np.ndarray[Any, Any] | None = None) -> None:
        self.scale, self.zero_point, self.min_val, self.max_val = scale, zero_point, min_val, max_val

    @property
    def activation_post_process(self) -> SourceQParams:
        """Itself: torch's fake quantizers keep their range in an observer of this name."""
        return self

    def calculate_qparams(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Scale and zero point, as torch's observers give them."""
        return self.scale, self.zero_point


_rules: dict[Any, tuple[Any, Any]] = {}  # by function; they live as long as models may use them
_rules_lock = threading.Lock()


def _rule(function: Callable[[list[Any]], tuple[Any, Any]]) -> Any:
    """The tare_derive_rule of a function, registered under its name for files."""
    with _rules_lock:
        if function in _rules:
            return _rules[function][0]

        def derive(_user: Any, sources: Any, count: int, sink: Any, sink_user: Any, error: Any) -> None:
            seen = []
            for source in sources[:count]:
                seen.append(SourceQParams(
                    np.array(source.scale[:source.count]), np.array(source.zero_point[:source.count]),
                    *[np.array(part[:source.count]) if part else None for part in (source.min_val, source.max_val)]))
            scale, zero_point = (np.ascontiguousarray(np.asarray(part, np.float64).reshape(-1))
                                 for part in function(seen))
            if len(scale) != len(zero_point) or not len(scale):
                raise ValueError(f"expected as many scales as zero points, found {len(scale)} and {len(zero_point)}")
            kind = ctypes.POINTER(ctypes.c_double)
            if sink(sink_user, len(scale), scale.ctypes.data_as(kind), zero_point.ctypes.data_as(kind), error):
                raise ValueError(text(lib.error_message(error)) or "the parameters were refused")
        rule = filled("tare_derive_rule")
        rule.name = encode(f"{function.__module__}.{function.__qualname__}")
        rule.derive = dict(c.tare_derive_rule._fields_)["derive"](guarded(5, derive))
        with contextlib.suppress(ValueError):  # two functions of one name: files know the first one
            call("context_add_derive_rule", the_context(), ctypes.byref(rule))
        _rules[function] = (rule, function)
        return rule


def _edge(given: Any) -> Any:
    made = c.tare_edge()
    source, node = given if isinstance(given, (tuple, list)) else (None, given)
    if not isinstance(node, Node) or not (source is None or isinstance(source, Node)):
        raise TypeError(f"expected a node or an edge (node, node), found {given!r}")
    made.node = node._handle
    if source is not None:
        getattr(made, "from")  # the field has a Python keyword for its name
        setattr(made, "from", source._handle)
    return made


@contextlib.contextmanager
def _qspec(given: Any) -> Iterator[Any]:
    """The tare_qspec of a spec, of tare's or torchao's; None stays NULL."""
    if given is None:
        yield None
        return
    if isinstance(given, _LentSpec):
        yield given.handle
        return
    kind = type(given).__name__
    made, place = out("tare_qspec")
    if kind == "SharedQuantizationSpec":
        call("qspec_create_shared", _edge(given.edge_or_node), place)
    elif kind in ("QuantizationSpec", "FixedQParamsQuantizationSpec", "DerivedQuantizationSpec"):
        fields = filled("tare_qspec_fields", dtype=as_dtype(given.dtype)._number, is_dynamic=bool(given.is_dynamic))
        for name, key in (("quant_min", "quant_min"), ("quant_max", "quant_max"), ("ch_axis", "channel_axis")):
            value = getattr(given, name, None)
            if value is not None:
                setattr(fields, f"has_{key}", True)
                setattr(fields, key, integer(value, name))
        if given.qscheme is not None:
            fields.qscheme = as_qscheme(given.qscheme)._number
        if kind == "QuantizationSpec":
            with observer_spec(given.observer_or_fake_quant_ctr) as observer:
                fields.observer = observer
                call("qspec_create", ctypes.byref(fields), place)
        elif kind == "FixedQParamsQuantizationSpec":
            fields.scale, fields.zero_point = float(given.scale), integer(given.zero_point)
            call("qspec_create_fixed", ctypes.byref(fields), place)
        else:
            edges = (c.tare_edge * max(len(given.derived_from), 1))(*[_edge(item) for item in given.derived_from])
            call("qspec_create_derived", ctypes.byref(fields), edges, len(given.derived_from),
                 ctypes.byref(_rule(given.derive_qparams_fn)), place)
    else:
        raise TypeError(f"expected a quantization spec, found {given!r}")
    try:
        yield made
    finally:
        lib.qspec_release(made)


class _LentSpec(QuantizationSpecBase):
    """A spec that the library has, read back from a graph."""

    def __init__(self, handle: Any, model: Model) -> None:
        self.handle = lib.qspec_retain(handle)
        self._model = model
        fields = filled("tare_qspec_fields")
        lib.qspec_get_fields(handle, ctypes.byref(fields))
        self.kind = ("", "QuantizationSpec", "FixedQParamsQuantizationSpec", "SharedQuantizationSpec",
                     "DerivedQuantizationSpec")[lib.qspec_get_kind(handle)]
        self.dtype = dtype_at(fields.dtype)
        self.quant_min = fields.quant_min if fields.has_quant_min else None
        self.quant_max = fields.quant_max if fields.has_quant_max else None
        self.ch_axis = fields.channel_axis if fields.has_channel_axis else None
        self.qscheme, self.is_dynamic = qscheme_at(fields.qscheme), bool(fields.is_dynamic)
        self.scale, self.zero_point = fields.scale, fields.zero_point

    def __del__(self, _lib: Any = lib) -> None:  # bound: at the interpreter's end, globals are gone
        _lib.qspec_release(self.handle)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _LentSpec):
            return bool(lib.qspec_equal(self.handle, other.handle))
        if not isinstance(other, QuantizationSpecBase):
            return NotImplemented
        with _qspec(other) as handle:
            return bool(lib.qspec_equal(self.handle, handle))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return (f"{self.kind}(dtype={self.dtype}, quant_min={self.quant_min}, quant_max={self.quant_max}, "
                f"qscheme={self.qscheme}, ch_axis={self.ch_axis}, is_dynamic={self.is_dynamic})")


# --- annotations: node.meta["quantization_annotation"] ---

@dataclass
class QuantizationAnnotation:
    """How a node's inputs and its output are quantized. It counts once it is set as
    ``node.meta["quantization_annotation"]``."""

    input_qspec_map: dict[Node, Any] = field(default_factory=dict)
    output_qspec: Any = None
    allow_implicit_sharing: bool = True
    _annotated: bool = False


def write_annotation(node: Node, annotation: Any) -> None:
    """Sets the annotation of a node."""
    model = node.model
    with model._changing() as handle, contextlib.ExitStack() as stack:
        specs = [(source, stack.enter_context(_qspec(spec))) for source, spec in annotation.input_qspec_map.items()]
        output = stack.enter_context(_qspec(annotation.output_qspec))
        lib.model_clear_annotation(handle, node._handle)
        for source, spec in specs:
            call("model_annotate_input", handle, node._handle, source._handle, spec)
        if output is not None:
            call("model_annotate_output", handle, node._handle, output)
        call("model_annotate_sharing", handle, node._handle, bool(annotation.allow_implicit_sharing))
        call("model_mark_annotated", handle, node._handle, bool(annotation._annotated))


class _LiveMap(dict[Node, Any]):
    """The inputs of an annotation that a graph has: setting one sets it there."""

    annotation: Any = None

    def __setitem__(self, node: Node, spec: Any) -> None:
        super().__setitem__(node, spec)
        if self.annotation is not None:
            write_annotation(self.annotation._node, self.annotation)


class _LiveAnnotation(QuantizationAnnotation):
    """An annotation that a graph has: what is set counts at once."""

    _node: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self._node is not None and name != "_node":
            write_annotation(self._node, self)


def read_annotation(node: Node) -> QuantizationAnnotation | None:
    """The annotation of a node; None where there is none. Changing it changes the node's."""
    model = node.model
    found = lib.model_annotation(model._handle, node._handle)
    if not found:
        return None
    inputs = _LiveMap()
    made = _LiveAnnotation(inputs, allow_implicit_sharing=bool(lib.annotation_allows_sharing(found)),
                                  _annotated=bool(lib.annotation_is_marked(found)))
    for index in range(lib.annotation_input_count(found)):
        spec = ctypes.POINTER(c.tare_qspec)()
        name = text(lib.annotation_input_at(found, index, ctypes.byref(spec)))
        made.input_qspec_map[model.graph[name]] = _LentSpec(spec, model) if spec else None
    spec = lib.annotation_output(found)
    made.output_qspec = _LentSpec(spec, model) if spec else None
    made._node = node
    inputs.annotation = made
    return made


def is_annotated(nodes: Sequence[Node]) -> bool:
    """Is any of the nodes marked as annotated?"""
    return any((found := read_annotation(node)) is not None and found._annotated for node in nodes)


# --- configs of quantizers ---

@dataclass(eq=True, frozen=True)
class QuantizationConfig:
    """The specs of activations, weight and bias of an operator."""

    input_activation: Any
    output_activation: Any
    weight: Any
    bias: Any
    is_qat: bool = False


def _per_tensor(spec: Any) -> Any:
    if spec is not None and str(spec.qscheme) not in ("torch.per_tensor_affine", "torch.per_tensor_symmetric"):
        raise AssertionError(f"Unsupported quantization_spec {spec} for activations")
    return spec


def get_input_act_qspec(quantization_config: Any) -> Any:
    """The spec of input activations; None for None."""
    return _per_tensor(quantization_config and quantization_config.input_activation)


def get_output_act_qspec(quantization_config: Any) -> Any:
    """The spec of output activations; None for None."""
    return _per_tensor(quantization_config and quantization_config.output_activation)


def get_weight_qspec(quantization_config: Any) -> Any:
    """The spec of weights; None for None.

    Returns
    -------
    QuantizationSpecBase or None

    Raises
    ------
    ValueError
        For a scheme that weights do not have, as torchao.
    """
    spec = quantization_config and quantization_config.weight
    if spec is not None and str(spec.qscheme) not in (
            "torch.per_tensor_symmetric", "torch.per_channel_symmetric", "None"):
        raise ValueError(f"Unsupported quantization_spec {spec} for weight")
    return spec


def get_bias_qspec(quantization_config: Any) -> Any:
    """The spec of biases; None for None.

    Returns
    -------
    QuantizationSpecBase or None

    Raises
    ------
    AssertionError
        For a spec that is not float, as torchao.
    """
    spec = quantization_config and quantization_config.bias
    if spec is not None and str(as_dtype(spec.dtype)) != "torch.float32":
        raise AssertionError("Only float dtype for bias is supported for bias right now")
    return spec


@contextlib.contextmanager
def _quantization_config(given: Any) -> Iterator[Any]:
    """The tare_quantization_config of a config; None stays NULL."""
    if given is None:
        yield None
    elif isinstance(given, _DefaultConfig):
        yield ctypes.byref(given.made)
    else:
        with contextlib.ExitStack() as stack:
            made = filled("tare_quantization_config", is_qat=bool(given.is_qat))
            for name in ("input_activation", "output_activation", "weight", "bias"):
                setattr(made, name, stack.enter_context(_qspec(getattr(given, name))))
            yield ctypes.byref(made)


class _DefaultConfig:
    """A config that the library has filled; it owns its specs."""

    def __init__(self, quantizer: str, **options: Any) -> None:
        wished = filled("tare_quantization_options", **options)
        self.made = filled("tare_quantization_config")
        call("quantization_config_default", encode(quantizer), ctypes.byref(wished), ctypes.byref(self.made))
        self.is_qat = bool(self.made.is_qat)

    def __del__(self, _lib: Any = lib, _byref: Any = ctypes.byref) -> None:
        if "made" in self.__dict__:
            _lib.quantization_config_release(_byref(self.made))

    def __getattr__(self, name: str) -> Any:
        if name not in ("input_activation", "output_activation", "weight", "bias"):
            raise AttributeError(name)
        spec = getattr(self.made, name)
        return _LentSpec(spec, None) if spec else None  # type: ignore[arg-type]


def get_symmetric_quantization_config(is_per_channel: bool = False, is_qat: bool = False, is_dynamic: bool = False,
                                      act_qmin: int = -128, act_qmax: int = 127, weight_qmin: int = -127,
                                      weight_qmax: int = 127) -> Any:
    """XNNPACKQuantizer's config, torchao's.

    Parameters
    ----------
    is_per_channel : bool
        A scale for each channel of a weight.
    is_qat : bool
        For training: fake quantizers.
    is_dynamic : bool
        Activations are quantized when the model runs.
    act_qmin, act_qmax : int
        The range of activations.
    weight_qmin, weight_qmax : int
        The range of weights.

    Returns
    -------
    QuantizationConfig
    """
    return _DefaultConfig("XNNPACKQuantizer", is_per_channel=bool(is_per_channel), is_qat=bool(is_qat),
                          is_dynamic=bool(is_dynamic), has_act_range=True, act_min=act_qmin, act_max=act_qmax,
                          has_weight_range=True, weight_min=weight_qmin, weight_max=weight_qmax)


# --- quantizers ---

class Quantizer(ABC):
    """A quantizer of one's own: ``annotate`` sets annotations of nodes.

    An exception of a method ends prepare and comes out of it. The model is lent for the call.
    """

    def transform_for_annotation(self, model: Model) -> Model:
        """Changes the graph before it is annotated; returns the model."""
        return model

    @abstractmethod
    def annotate(self, model: Model) -> Model:
        """Annotates the nodes; returns the model."""

    def validate(self, model: Model) -> None:
        """Raises where the annotated graph is not supported by the backend."""

    @contextlib.contextmanager
    def _built(self, is_qat: bool = False) -> Iterator[Any]:
        made, kept = self._make(is_qat)
        try:
            yield made
        finally:
            lib.quantizer_destroy(made)
            del kept

    def _make(self, is_qat: bool) -> tuple[Any, Any]:
        """A tare_quantizer, which the caller owns, and what it needs."""
        del is_qat
        kinds = dict(c.tare_quantizer_class._fields_)
        row = c.tare_quantizer_class()
        row.struct_size = ctypes.sizeof(row)
        row.name = encode(type(self).__name__)

        def lending(method: Callable[[Model], Any]) -> Callable[..., None]:
            def function(_self: Any, handle: Any, _error: Any) -> None:
                model = Model(handle, lent=True)
                try:
                    returned = method(model)
                    if returned is not None and returned is not model:
                        raise TypeError("expected the model that was passed in, found another one")
                finally:
                    model._expire()
            return function
        for name in ("transform_for_annotation", "annotate", "validate"):
            setattr(row, name, kinds[name](guarded(2, lending(getattr(self, name)))))
        made, place = out("tare_quantizer")
        call("quantizer_create", ctypes.byref(row), None, place)
        return made, row


class _Settings(Quantizer):
    """Quantizers that the library has; what part of a model gets which config is set in torchao's way."""

    _name = ""

    def __init__(self) -> None:
        self._settings: list[tuple[str, tuple[Any, ...]]] = []
        self._settings_json = ""  # what set_from_json took; _settings come on top
        self.is_lenient = False

    def annotate(self, model: Model) -> Model:
        """Annotates the nodes; returns the model."""
        with self._built() as quantizer, model._changing() as handle:
            call("quantizer_annotate", quantizer, handle)
        return model

    def transform_for_annotation(self, model: Model) -> Model:
        """Lifts numbers that are to be annotated; returns the model."""
        with self._built() as quantizer, model._changing() as handle:
            call("quantizer_transform", quantizer, handle)
        return model

    def set_global(self, quantization_config: Any) -> Any:
        """The config of everything that no other setting names."""
        self._settings.append(("global", (quantization_config,)))
        return self

    def set_module_name(self, module_name: str, quantization_config: Any) -> Any:
        """The config of the module at a path and of all below it."""
        self._settings.append(("module_name", (module_name, quantization_config)))
        return self

    def set_module_type(self, module_type: Any, quantization_config: Any) -> Any:
        """The config of all modules of a class."""
        self._settings.append(("module_type", (class_name(module_type), quantization_config)))
        return self

    def set_operator_type(self, operator_type: Any, quantization_config: Any) -> Any:
        """The config of an aten operator."""
        self._settings.append(("operator", (object_type_name(operator_type), quantization_config)))
        return self

    def set_from_json(self, data: str) -> Any:
        """Takes the settings of a JSON file (docs/schemas/quantizer-settings.json) in place of all others.

        Parameters
        ----------
        data : str
            The text of the file.

        Raises
        ------
        MalformedFileError
            With the JSON path.
        """
        if not isinstance(data, str):
            raise TypeError(f"expected the text of a JSON file, found {type(data).__name__}")
        lib.quantizer_settings_destroy(self._parsed(data))
        self._settings, self._settings_json = [], data
        return self

    def _parsed(self, data: str) -> Any:
        made, place = out("tare_quantizer_settings")
        encoded = data.encode()
        call("quantizer_settings_from_json", encoded, len(encoded), encode_or_null(self._name or None), place)
        return made

    def show(self) -> str:
        """What the quantizer does by default, by which rules, and which operators settings may name."""
        with self._built() as quantizer:
            return write_text(lambda write: call("quantizer_show", quantizer, False, write, None))

    def lint(self) -> list[dict[str, Any]]:
        """What in a file of rules is probably a mistake: path, problem, remedy, is_error. Empty for built-in quantizers."""
        found: list[dict[str, Any]] = []

        def visit(_user: Any, finding: Any, _error: Any) -> None:
            row = finding.contents
            found.append({key: text(getattr(row, key)) for key in ("path", "problem", "remedy")} | {"is_error": bool(row.is_error)})
        with self._built() as quantizer:
            count = ctypes.c_size_t()
            call("quantizer_lint", quantizer, c.tare_quantizer_finding_visitor(guarded(2, visit)), None, ctypes.byref(count))
        return found

    @contextlib.contextmanager
    def _settings_handle(self) -> Iterator[Any]:
        if not self._settings and not self._settings_json:
            yield None
            return
        made = self._parsed(self._settings_json) if self._settings_json else lib.quantizer_settings_create()
        try:
            lib.quantizer_settings_set_lenient(made, self.is_lenient)
            for kind, (*names, config) in self._settings:
                with _quantization_config(config) as given:
                    getattr(lib, f"quantizer_settings_set_{kind}")(made, *[encode(name) for name in names], given)
            yield made
        finally:
            lib.quantizer_settings_destroy(made)

    def _make(self, is_qat: bool) -> tuple[Any, Any]:
        settings: Any = self
        if is_qat and not self._settings and not self._settings_json and self._name:
            settings = _Settings.__new__(_Settings)
            _Settings.__init__(settings)
            settings.set_global(_DefaultConfig(self._name, is_qat=True))
        made, place = out("tare_quantizer")
        with _Settings._settings_handle(settings) as handle:
            self._create(handle, place)
        return made, None

    def _create(self, settings: Any, place: Any) -> None:
        call("quantizer_builtin", encode(self._name), settings, place)


class XNNPACKQuantizer(_Settings):
    """torchao's quantizer for XNNPACK."""

    _name = "XNNPACKQuantizer"


class X86InductorQuantizer(_Settings):
    """torchao's quantizer for Inductor on x86."""

    _name = "X86InductorQuantizer"


class ArmInductorQuantizer(_Settings):
    """torchao's quantizer for Inductor on Arm."""

    _name = "ArmInductorQuantizer"


class XPUInductorQuantizer(_Settings):
    """torchao's quantizer for Inductor on XPUs."""

    _name = "XPUInductorQuantizer"


class EmbeddingQuantizer(_Settings):
    """torchao's quantizer of embeddings."""

    _name = "EmbeddingQuantizer"


class FileQuantizer(_Settings):
    """A quantizer that is data: a JSON file of rules (docs/pt2e.md).

    Parameters
    ----------
    path : path-like
        The file.
    """

    def __init__(self, path: Any) -> None:
        super().__init__()
        self._path = encode(path, "a path")

    def _create(self, settings: Any, place: Any) -> None:
        call("quantizer_read", self._path, settings, place)


class ComposableQuantizer(Quantizer):
    """Several quantizers, one after the other. Annotating fails where one replaces what an earlier one said.

    Parameters
    ----------
    quantizers : sequence of Quantizer
    """

    def __init__(self, quantizers: Sequence[Quantizer]) -> None:
        self.quantizers: list[Quantizer] = list(quantizers)

    def annotate(self, model: Model) -> Model:
        """Annotates the nodes; returns the model."""
        with self._built() as quantizer, model._changing() as handle:
            call("quantizer_annotate", quantizer, handle)
        return model

    def _make(self, is_qat: bool) -> tuple[Any, Any]:
        inner: list[tuple[Any, Any]] = []
        made, place = out("tare_quantizer")
        try:
            inner.extend(item._make(is_qat) for item in self.quantizers)
            array = (ctypes.POINTER(c.tare_quantizer) * max(len(inner), 1))(*[handle for handle, _ in inner])
            call("quantizer_compose", array, len(inner), place)
        except BaseException:
            for handle, _ in inner:
                lib.quantizer_destroy(handle)
            raise
        return made, inner

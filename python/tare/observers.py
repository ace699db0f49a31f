# SPDX-License-Identifier: Apache-2.0
"""Observers and fake quantizers, under torch's names and with torch's arguments; and observers of one's own.

Built-in observers are made by prepare: configs take the class, or ``Class.with_args(..)``.
"""
from __future__ import annotations

import contextlib
import copy
import ctypes
import inspect
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._context import the_context
from ._dtypes import (as_dtype, as_qscheme, dtype, dtype_at, per_channel_affine_float_qparams, per_channel_symmetric,
                      per_tensor_affine, per_tensor_symmetric, qint8, qscheme, qscheme_at, quint4x2, quint8)
from ._library import address, c, call, encode, guarded, lib, text
from ._tensor import Tensor, lend

__all__ = ["Constructor", "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FixedQParamsObserver",
           "FusedMovingAvgObsFakeQuantize", "HistogramObserver", "MSEObserver", "MergeableHistogramObserver",
           "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver",
           "Observer", "ObserverBase", "PerChannelMSEObserver", "PerChannelMinMaxObserver", "PerGroupMSEObserver",
           "PerGroupMinMaxObserver", "PlaceholderObserver", "RecordingObserver",
           "ReuseInputObserver", "UniformQuantizationObserverBase", "default_affine_fixed_qparams_observer",
           "default_affine_fixed_qparams_fake_quant", "default_debug_observer", "default_dynamic_fake_quant",
           "default_dynamic_quant_observer", "default_embedding_fake_quant", "default_embedding_fake_quant_4bit",
           "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
           "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_fake_quant",
           "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
           "default_float_qparams_observer_4bit", "default_fused_act_fake_quant",
           "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
           "default_histogram_observer", "default_observer", "default_per_channel_weight_fake_quant",
           "default_per_channel_weight_observer", "default_placeholder_observer", "default_reuse_input_observer",
           "default_symmetric_fixed_qparams_fake_quant", "default_symmetric_fixed_qparams_observer",
           "default_weight_fake_quant", "default_weight_observer",
           "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
           "per_channel_weight_observer_range_neg_127_to_127", "weight_observer_range_neg_127_to_127"]


class Constructor:
    """A class of observers with arguments, torch's ``Class.with_args(..)``: printed as torch prints it."""

    __slots__ = ("kind", "keywords")

    def __init__(self, kind: type[ObserverBase], keywords: Mapping[str, Any]) -> None:
        self.kind: type[ObserverBase] = kind
        self.keywords: dict[str, Any] = dict(keywords)

    def with_args(self, **keywords: Any) -> Constructor:
        """The same with more arguments, or others."""
        self.kind._check(keywords)
        return Constructor(self.kind, {**self.keywords, **keywords})

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.keywords.items())
        return f"functools.partial({self.kind!r}{given}){{}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constructor) and self.kind is other.kind and self.keywords == other.keywords

    def __hash__(self) -> int:
        return hash((self.kind, tuple(self.keywords)))


class _ObserverType(type):
    """Prints torch's own classes as torch does."""

    def __repr__(cls) -> str:
        return f"<class '{getattr(cls, '_torch_name', None) or f'{cls.__module__}.{cls.__qualname__}'}'>"


class ObserverBase(metaclass=_ObserverType):
    """The base of all observers and fake quantizers."""

    _torch_name: str | None = "torch.ao.quantization.observer.ObserverBase"
    _class_name: str | None = None  # in the library
    _arguments: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **keywords: Any) -> None:
        raise TypeError(f"{type(self).__name__}: prepare makes observers; pass the class, or "
                        f"{type(self).__name__}.with_args(..), to a QConfig or QuantizationSpec")

    @classmethod
    def with_args(cls, **keywords: Any) -> Constructor:
        """The class with arguments, to be passed to a QConfig or a QuantizationSpec."""
        cls._check(keywords)
        return Constructor(cls, keywords)

    @classmethod
    def _check(cls, keywords: Mapping[str, Any]) -> None:
        for name in keywords:
            if cls._arguments and name not in cls._arguments:
                raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'")


_COMMON = ("dtype", "qscheme", "reduce_range", "quant_min", "quant_max", "factory_kwargs", "eps", "is_dynamic")


def _observer(name: str, doc: str, *arguments: str, module: str = "observer", library_name: str | None = None,
              base: type[ObserverBase] = ObserverBase) -> Any:
    where = module if "." in module or module == "tare" else f"torch.ao.quantization.{module}"
    fields = {"__doc__": doc, "__module__": __name__, "_class_name": library_name or name,
              "_torch_name": f"{where}.{name}",
              "_arguments": frozenset(arguments)}
    return _ObserverType(name, (base,), fields)


UniformQuantizationObserverBase: Any = _observer(
    "UniformQuantizationObserverBase", "The base of observers of uniform quantization.", *_COMMON)
MinMaxObserver: Any = _observer(
    "MinMaxObserver", "The running minimum and maximum.", *_COMMON, base=UniformQuantizationObserverBase)
MovingAverageMinMaxObserver: Any = _observer(
    "MovingAverageMinMaxObserver", "The moving average of minimum and maximum.", "averaging_constant", *_COMMON,
    base=MinMaxObserver)
PerChannelMinMaxObserver: Any = _observer(
    "PerChannelMinMaxObserver", "The running minimum and maximum of each channel.", "ch_axis", *_COMMON,
    base=UniformQuantizationObserverBase)
MovingAveragePerChannelMinMaxObserver: Any = _observer(
    "MovingAveragePerChannelMinMaxObserver", "The moving averages of each channel.", "averaging_constant", "ch_axis",
    *_COMMON, base=PerChannelMinMaxObserver)
HistogramObserver: Any = _observer(
    "HistogramObserver", "A histogram, whose range minimizes the quantization error.", "bins", *_COMMON,
    base=UniformQuantizationObserverBase)
MergeableHistogramObserver: Any = _observer(
    "MergeableHistogramObserver", "A histogram whose states merge exactly, whatever the order of the data.", "bins",
    "percentile", "entropy", *_COMMON, module="tare", library_name="tare.MergeableHistogramObserver", base=UniformQuantizationObserverBase)
PerGroupMinMaxObserver: Any = _observer(
    "PerGroupMinMaxObserver", "A range of its own for each group of values in a row.", "group_size", *_COMMON, module="tare",
    library_name="tare.PerGroupMinMaxObserver", base=UniformQuantizationObserverBase)
MSEObserver: Any = _observer(
    "MSEObserver", "The range of a weight that has the least squared error.", *_COMMON, module="tare",
    library_name="tare.MSEObserver", base=UniformQuantizationObserverBase)
PerChannelMSEObserver: Any = _observer(
    "PerChannelMSEObserver", "The ranges of a weight's channels that have the least squared error.", "ch_axis", *_COMMON,
    module="tare", library_name="tare.PerChannelMSEObserver", base=UniformQuantizationObserverBase)
PerGroupMSEObserver: Any = _observer(
    "PerGroupMSEObserver", "The ranges of groups of a weight that have the least squared error.", "group_size", *_COMMON,
    module="tare", library_name="tare.PerGroupMSEObserver", base=UniformQuantizationObserverBase)
PlaceholderObserver: Any = _observer(
    "PlaceholderObserver", "Says a dtype and watches nothing.", "dtype", "custom_op_name", "compute_dtype",
    "quant_min", "quant_max", "qscheme", "eps", "is_dynamic")
RecordingObserver: Any = _observer("RecordingObserver", "Keeps every tensor that passes.", "dtype")
NoopObserver: Any = _observer("NoopObserver", "Does nothing.", "dtype", "custom_op_name")
ReuseInputObserver: Any = _observer("ReuseInputObserver", "The edge keeps its producer's observer.")
_Identity: Any = _observer("Identity", "What is not watched at all: torch.nn.Identity.", module="torch.nn.modules.linear",
                           library_name="torch.nn.modules.linear.Identity")
FixedQParamsObserver: Any = _observer(
    "FixedQParamsObserver", "A scale and zero point that are known before.", "scale", "zero_point", "dtype", "qscheme",
    "quant_min", "quant_max", "is_dynamic")
FakeQuantizeBase: Any = _observer("FakeQuantizeBase", "The base of fake quantizers.", module="fake_quantize")
FakeQuantize: Any = _observer(
    "FakeQuantize", "Rounds to the grid that its observer proposes.", "observer", "averaging_constant", "ch_axis",
    "bins", *_COMMON, module="fake_quantize", base=FakeQuantizeBase)
FixedQParamsFakeQuantize: Any = _observer(
    "FixedQParamsFakeQuantize", "Rounds to a grid that is known before.", "observer", "scale", "zero_point", "dtype",
    "qscheme", "quant_min", "quant_max", module="fake_quantize", base=FakeQuantize)
FusedMovingAvgObsFakeQuantize: Any = _observer(
    "FusedMovingAvgObsFakeQuantize", "FakeQuantize with a moving average, observed and rounded in one step.",
    "observer", "averaging_constant", "ch_axis", *_COMMON, module="fake_quantize", base=FakeQuantize)

_EPS = 2 ** -12
default_observer: Any = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_reuse_input_observer = ReuseInputObserver
default_weight_observer: Any = MinMaxObserver.with_args(dtype=qint8, qscheme=per_tensor_symmetric)
weight_observer_range_neg_127_to_127: Any = MinMaxObserver.with_args(
    dtype=qint8, qscheme=per_tensor_symmetric, quant_min=-127, quant_max=127, eps=_EPS)
default_histogram_observer: Any = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer: Any = PerChannelMinMaxObserver.with_args(dtype=qint8, qscheme=per_channel_symmetric)
per_channel_weight_observer_range_neg_127_to_127: Any = PerChannelMinMaxObserver.with_args(
    dtype=qint8, qscheme=per_channel_symmetric, quant_min=-127, quant_max=127, eps=_EPS)
default_dynamic_quant_observer: Any = PlaceholderObserver.with_args(
    dtype=quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=quint8, qscheme=per_channel_affine_float_qparams, ch_axis=0)
default_float_qparams_observer_4bit: Any = PerChannelMinMaxObserver.with_args(
    dtype=quint4x2, qscheme=per_channel_affine_float_qparams, ch_axis=0)
default_fixed_qparams_range_neg1to1_observer: Any = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=quint8, quant_min=0, quant_max=255)
default_fixed_qparams_range_0to1_observer: Any = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=quint8, quant_min=0, quant_max=255)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=quint8, qscheme=per_tensor_affine,
    reduce_range=True)
default_weight_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=qint8, qscheme=per_tensor_symmetric,
    reduce_range=False)
default_dynamic_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True, dtype=quint8,
    averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer)
default_per_channel_weight_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=qint8,
    qscheme=per_channel_symmetric, reduce_range=False, ch_axis=0)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_embedding_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=per_channel_affine_float_qparams, dtype=quint8,
    quant_min=0, quant_max=255, ch_axis=0, averaging_constant=1)
default_embedding_fake_quant_4bit: Any = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=per_channel_affine_float_qparams, ch_axis=0,
    dtype=quint4x2, averaging_constant=1)
default_histogram_fake_quant: Any = FakeQuantize.with_args(
    observer=HistogramObserver, quant_min=0, quant_max=255, dtype=quint8, qscheme=per_tensor_affine,
    reduce_range=True)
default_fused_act_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=quint8)
default_fused_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=qint8, qscheme=per_tensor_symmetric)
default_fused_per_channel_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=qint8,
    qscheme=per_channel_symmetric)
fused_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-127, quant_max=127, dtype=qint8, qscheme=per_tensor_symmetric,
    eps=_EPS)
fused_per_channel_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-127, quant_max=127, dtype=qint8,
    qscheme=per_channel_symmetric, eps=_EPS)


# --- constructors for the library ---

def as_constructor(given: Any) -> Constructor:
    """A constructor from one, from a class, or from torch's own (a class, or its with_args)."""
    if isinstance(given, Constructor):
        return given
    if isinstance(given, type) and issubclass(given, ObserverBase):
        return Constructor(given, {})
    partial = getattr(given, "p", given)
    keywords: dict[str, Any] = {}
    while hasattr(partial, "func") and hasattr(partial, "keywords"):
        keywords = {**partial.keywords, **keywords}
        partial = getattr(partial.func, "p", partial.func)
    if inspect.isclass(partial) and partial.__module__.startswith(("torch.ao.quantization", "torchao.", "torch.nn.modules.")):
        kind = _by_name().get(partial.__name__, _by_name().get(f"{partial.__module__}.{partial.__name__}"))
        if kind is not None:
            return Constructor(kind, {name: value if not callable(value) else as_constructor(value)
                                      for name, value in keywords.items() if name != "factory_kwargs"})
    raise TypeError(f"expected a class of observers, or one with_args, found {given!r}")


def _by_name() -> dict[str, type[ObserverBase]]:
    return {value._class_name: value for value in globals().values()
            if isinstance(value, type) and issubclass(value, ObserverBase) and value._class_name}


@contextlib.contextmanager
def observer_spec(given: Any) -> Iterator[Any]:
    """The tare_observer_spec of a constructor; None stays NULL."""
    if given is None:
        yield None
        return
    constructor = as_constructor(given)
    kind = constructor.kind
    if issubclass(kind, Observer):
        kind._register()
    spec = lib.observer_spec_create(encode(kind._class_name or kind.__name__))
    try:
        for name, value in constructor.keywords.items():
            _set_argument(spec, name, value)
        yield spec
    finally:
        lib.observer_spec_release(spec)


def _set_argument(spec: Any, name: str, value: Any) -> None:
    key = encode(name)
    if value is None or name == "factory_kwargs":
        return
    if isinstance(value, (bool, np.bool_)):
        lib.observer_spec_set_bool(spec, key, bool(value))
    elif isinstance(value, (int, np.integer)):
        lib.observer_spec_set_int(spec, key, int(value))
    elif isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"expected a finite {name}, found {value}")
        lib.observer_spec_set_double(spec, key, float(value))
    elif isinstance(value, qscheme) or str(value).startswith("torch.per_"):
        lib.observer_spec_set_qscheme(spec, key, as_qscheme(value)._number)
    elif isinstance(value, (Constructor, _ObserverType)):
        with observer_spec(value) as inner:
            lib.observer_spec_set_observer(spec, key, inner)
    else:
        lib.observer_spec_set_dtype(spec, key, as_dtype(value)._number)


# --- observers of one's own ---

class Observer(ObserverBase):
    """An observer of one's own: subclass it and pass the class, or ``with_args``, like a built-in one.

    ``forward(x)`` looks at a batch, a NumPy array; ``calculate_qparams()`` returns scale and zero point, or arrays
    of them. ``__init__`` takes keyword arguments of numbers, bools, dtypes and schemes; it sets the attributes
    that say what the observer is: ``dtype``, ``qscheme``, ``quant_min``, ``quant_max``, ``ch_axis``, ``eps`` and
    ``is_dynamic``. Passes copy observers by ``copy.deepcopy``. ``state()`` and ``load_state(arrays)`` carry the
    statistics through files, ``merge(other)`` over machines.

    >>> class Largest(Observer):
    ...     def __init__(self, dtype=quint8):
    ...         self.dtype, self.largest = dtype, 0.0
    ...     def forward(self, x):
    ...         self.largest = max(self.largest, float(abs(x).max()))
    ...     def calculate_qparams(self):
    ...         return max(self.largest, 1e-6) / 127, 128
    """

    _torch_name = None
    dtype: dtype = quint8
    qscheme: qscheme = per_tensor_affine
    quant_min: int | None = None
    quant_max: int | None = None
    ch_axis: int = 0
    eps: float | None = None
    is_dynamic: bool = False

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        pass

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._class_name = f"{cls.__module__}.{cls.__qualname__}"
        cls._arguments = frozenset(list(inspect.signature(cls.__init__).parameters)[1:])

    def forward(self, x: np.ndarray[Any, Any]) -> None:
        """Looks at a batch, lent for the call."""
        raise NotImplementedError

    def calculate_qparams(self) -> tuple[Any, Any]:
        """Scale and zero point, or one of each per channel."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Named arrays that a model file keeps; by default all numeric attributes."""
        return {name: np.asarray(value, np.float64 if isinstance(value, float) else None)
                for name, value in vars(self).items()
                if isinstance(value, (float, int, np.ndarray, np.generic)) and not isinstance(value, bool)}

    def load_state(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Takes back what state() gave."""
        for name, value in arrays.items():
            setattr(self, name, value.item() if value.ndim == 0 else np.array(value))

    def merge(self, other: Any) -> None:
        """Adds the statistics of another observer of this class."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge")

    @classmethod
    def _register(cls) -> None:
        if cls._class_name not in _registered or _registered[cls._class_name][0] is not cls:
            _registered[cls._class_name or ""] = (cls, _class_row(cls))


_registered: dict[str, tuple[type[Observer], Any]] = {}
_states: dict[int, Observer] = {}
_numbers = itertools.count(1)


def _keep_state(observer: Observer) -> int:
    number = next(_numbers)
    _states[number] = observer
    return number


def _read_arguments(kind: type[Observer], args: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    readers: list[tuple[str, Any, Any]] = [
        ("bool", ctypes.c_bool, bool), ("int", ctypes.c_int64, int), ("double", ctypes.c_double, float),
        ("dtype", ctypes.c_int, dtype_at), ("qscheme", ctypes.c_int, qscheme_at)]
    for name in kind._arguments:
        for reader, room, make in readers:
            place = room()
            if getattr(lib, f"observer_args_{reader}")(args, encode(name), ctypes.byref(place)):
                found[name] = make(place.value)
                break
    return found


def _fill_info(observer: Observer, info: Any) -> None:
    info.dtype, info.qscheme = as_dtype(observer.dtype)._number, as_qscheme(observer.qscheme)._number
    info.channel_axis, info.is_dynamic, info.has_qparams = observer.ch_axis, bool(observer.is_dynamic), True
    if observer.quant_min is not None and observer.quant_max is not None:
        info.has_range, info.quant_min, info.quant_max = True, observer.quant_min, observer.quant_max
    if observer.eps is not None:
        info.has_eps, info.eps = True, observer.eps


def _class_row(kind: type[Observer]) -> Any:
    """Tells the library of a class. Rows stay for the life of the process, as the context does."""
    fields: dict[str, Any] = dict(c.tare_observer_class._fields_)

    def create(_user: Any, args: Any, state: Any, info: Any, _error: Any) -> None:
        observer = kind(**_read_arguments(kind, args))
        _fill_info(observer, info.contents)
        state[0] = _keep_state(observer)

    def destroy(state: int) -> None:
        _states.pop(state, None)

    def clone(state: int, place: Any, _error: Any) -> None:
        place[0] = _keep_state(copy.deepcopy(_states[state]))

    def update(state: int, x: Any, _error: Any) -> None:
        observer = _states[state]
        observer.forward(lend(x).numpy())
        observer.__dict__["_has_seen"] = True

    def qparams(state: int, sink: Any, sink_user: Any, is_calibrated: Any, error: Any) -> None:
        observer = _states[state]
        scale, zero_point = (np.atleast_1d(np.asarray(part, np.float64)) for part in observer.calculate_qparams())
        if scale.shape != zero_point.shape or scale.ndim != 1:
            raise ValueError(f"expected as many scales as zero points, found {scale.shape} and {zero_point.shape}")
        is_calibrated[0] = bool(observer.__dict__.get("_has_seen"))
        kind_of = ctypes.POINTER(ctypes.c_double)
        status = sink(sink_user, len(scale), scale.ctypes.data_as(kind_of), zero_point.ctypes.data_as(kind_of), error)
        if status:
            raise ValueError(text(lib.error_message(error)) or "the parameters were refused")

    def save(state: int, write: Any, io: Any, error: Any) -> None:
        observer = _states[state]
        arrays = {**observer.state(), "_has_seen": np.asarray(float(bool(observer.__dict__.get("_has_seen"))))}
        for name, value in arrays.items():
            tensor = Tensor(np.asarray(value))
            if write(io, encode(name), tensor._handle, error):
                raise ValueError(text(lib.error_message(error)) or f"'{name}' was refused")

    def load(state: int, read: Any, io: Any, _error: Any) -> None:
        observer, arrays = _states[state], {}
        for name in {**observer.state(), "_has_seen": None}:
            pointer = read(io, encode(name))
            if pointer:
                arrays[name] = lend(ctypes.cast(pointer, ctypes.POINTER(c.tare_tensor))).numpy()
        has_seen = arrays.pop("_has_seen", None)
        observer.load_state(arrays)
        observer.__dict__["_has_seen"] = has_seen is not None and bool(has_seen)

    def merge(into: int, other: int, _error: Any) -> None:
        _states[into].merge(_states[other])
    row = c.tare_observer_class()
    row.struct_size = ctypes.sizeof(row)
    row.name = encode(kind._class_name or kind.__name__)
    names = [encode(name) for name in sorted(kind._arguments)] + [None]
    row.arguments = (ctypes.c_char_p * len(names))(*names)
    for name, function, error in (("create", create, 4), ("clone", clone, 2), ("update", update, 2),
                                  ("qparams", qparams, 4), ("save", save, 3), ("load", load, 3)):
        setattr(row, name, fields[name](guarded(error, function)))
    row.destroy = fields["destroy"](destroy)
    if kind.merge is not Observer.merge:
        row.merge = fields["merge"](guarded(2, merge))
    call("context_add_observer_class", the_context(), ctypes.byref(row))
    return row, names, address(the_context())

# SPDX-License-Identifier: Apache-2.0
"""Observers and fake quantizers as torch modules that compute what tare computes, to the bit, on every device.

Arithmetic whose last bit counts stands in custom operators: a compiler takes them as they are, where it would
contract a product and a sum, or divide by a reciprocal, if it saw their parts. Nothing waits for the device: switches
are tensors. Gradients are straight-through.
"""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch import nn  # type: ignore[import-not-found,unused-ignore]
from torch.ao.quantization import fake_quantize, observer  # type: ignore[import-not-found,unused-ignore]

from ._dtypes import dtype_at, qscheme_at
from ._errors import UnsupportedError
from ._library import filled, lib
from .model import Module

__all__ = ["FakeQuantize", "RangeObserver", "make_observer"]

Tensor = Any  # torch.Tensor, which type checkers see only where torch is

# Whole numbers up to here, and their differences, are exact in float32.
_EXACT = 1 << 23


# --- rounding ---

_operator: Any = torch.library.custom_op  # untyped where torch is not installed


def _along(values: Tensor, x: Tensor, axis: int) -> Tensor:
    """Values per channel, so that they broadcast over x."""
    return values if axis < 0 else values.reshape([-1 if i == axis else 1 for i in range(x.dim())])


def _round_floats(x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    """tare__fake_quantize: rint(x / scale) + zero_point, clamped; NaN becomes `low` and passes no gradient."""
    q = torch.round(x * torch.reciprocal(scale)) + zero_point.to(torch.float32)
    wide = q if max(-low, high) < _EXACT else q.double()
    inside = (wide >= low) & (wide <= high)
    kept = torch.where(inside, wide, torch.where(wide > high, float(high), float(low)).to(wide.dtype))
    return (kept - zero_point.to(wide.dtype)).to(torch.float32) * scale, inside


def _round_float_zeros(x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    """tare__fake_quantize_float_qparams: the zero point is added before rounding, and taken off in double."""
    product = x * torch.reciprocal(scale)
    q = torch.round(product + zero_point).double()
    inside = (q >= low) & (q <= high)
    kept = torch.where(inside, q, torch.where(q > high, float(high), float(low)).double())
    return ((kept - zero_point.double()) * scale.double()).to(torch.float32), inside


@_operator("tare::fake_quantize", mutates_args=(), schema=(  # type: ignore[untyped-decorator,unused-ignore]
    "(Tensor x, Tensor scale, Tensor zero_point, Tensor enabled, int axis, int quant_min, int quant_max)"
    " -> (Tensor, Tensor)"))
def _fake_quantize(x: Tensor, scale: Tensor, zero_point: Tensor, enabled: Tensor, axis: int, quant_min: int,
                   quant_max: int) -> tuple[Tensor, Tensor]:
    """What the integers stand for, and where the gradient passes."""
    floats = x.to(torch.float32)
    if axis < 0 and zero_point.dtype == torch.int32 and max(-quant_min, quant_max) < _EXACT:
        # The same arithmetic in one pass over memory.
        y, inside = torch.ops.aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            floats, scale, zero_point, enabled.to(torch.int64), quant_min, quant_max)
        return y.to(x.dtype), inside
    if x.is_cuda and x.dtype == torch.float32 and zero_point.dtype == torch.int32 and max(-quant_min, quant_max) < _EXACT:
        from .torch_kernels import round_channels
        with torch.cuda.device_of(x):
            return round_channels(x, _along(scale, x, axis), _along(zero_point, x, axis), enabled, quant_min, quant_max)
    rounds = _round_floats if zero_point.dtype == torch.int32 else _round_float_zeros
    y, inside = rounds(floats, _along(scale, x, axis), _along(zero_point, x, axis), quant_min, quant_max)
    is_on = enabled == 1
    return torch.where(is_on, y.to(x.dtype), x), inside | ~is_on


@_fake_quantize.register_fake  # type: ignore[untyped-decorator,unused-ignore]
def _fake_quantize_shapes(x: Tensor, scale: Tensor, zero_point: Tensor, enabled: Tensor, axis: int, quant_min: int,
                          quant_max: int) -> tuple[Tensor, Tensor]:
    del scale, zero_point, enabled, axis, quant_min, quant_max
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _keep_mask(ctx: Any, inputs: Any, output: Any) -> None:
    del inputs
    ctx.save_for_backward(output[1])


def _straight_through(ctx: Any, gradient: Tensor, _mask: Any) -> tuple[Any, ...]:
    inside, = ctx.saved_tensors
    return gradient * inside, None, None, None, None, None, None


_fake_quantize.register_autograd(_straight_through, setup_context=_keep_mask)


# --- ranges and their parameters ---

def _extremes(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Of the tensor (shape []), or of each channel; adding 0 drops the sign of zeros."""
    low, high = torch.aminmax(x) if axis < 0 else torch.aminmax(x.movedim(axis, 0).flatten(1), dim=1)
    return low + 0.0, high + 0.0


def _join(kept: Tensor, found: Tensor, is_fresh: Tensor, constant: float, is_low: bool) -> Tensor:
    """constant < 0: the extreme of both; else three roundings: the difference, the product, the sum."""
    if constant < 0:
        joined = torch.minimum(kept, found) if is_low else torch.maximum(kept, found)
    else:
        joined = kept + constant * (found - kept)
    return torch.where(is_fresh, found, joined)


def _watch(x: Tensor, low: Tensor, high: Tensor, enabled: Tensor, axis: int, constant: float, is_fused: bool) -> None:
    """Updates the range by a batch."""
    if x.numel() == 0:
        return
    found_low, found_high = (t.reshape(low.shape) for t in _extremes(x.to(torch.float32), axis))
    if is_fused:
        fresh_low, fresh_high = torch.isinf(low), torch.isinf(high)
    else:
        fresh_low = fresh_high = torch.isposinf(low) & torch.isneginf(high)
    new_low = _join(low, found_low, fresh_low, constant, True)
    new_high = _join(high, found_high, fresh_high, constant, False)
    is_on = (enabled == 1).reshape(() if enabled.numel() == 1 else low.shape)
    low.copy_(torch.where(is_on, new_low, low))
    high.copy_(torch.where(is_on, new_high, high))


def _number(value: float, like: Tensor) -> Tensor:
    """A number as a tensor: on some devices dividing by a plain number multiplies by its reciprocal."""
    return torch.full_like(like, value)


def _uniform_qparams(low: Tensor, high: Tensor, eps: Tensor, quant_min: int, quant_max: int,
                     middle: float | None, has_float_zero: bool) -> tuple[Tensor, Tensor]:
    """tare__uniform_range, torch's _calculate_qparams; middle: the zero point of symmetric schemes."""
    below, above = torch.clamp(low, max=0.0), torch.clamp(high, min=0.0)
    if has_float_zero:
        scale = (high - low) / _number(quant_max - quant_min, low)
        scale = torch.where(scale > eps, scale, 1.0)
        return scale, -1.0 * low / scale
    if middle is not None:
        scale = torch.maximum(torch.maximum(-below, above) / _number((quant_max - quant_min) / 2, low), eps)
        return scale, _number(middle, low)
    scale = torch.maximum((above - below) / _number(quant_max - quant_min, low), eps)
    zero_point = quant_min - torch.round(below / scale).to(torch.int32)
    return scale, torch.clamp(zero_point, quant_min, quant_max)


_SMALLEST = float(torch.tensor(6.1e-5, dtype=torch.float32))


def _raise_scale(scale: Tensor, low: Tensor, high: Tensor, span: int) -> tuple[Tensor, Tensor, Tensor]:
    """A scale too small to be inverted is raised, and the range with it."""
    is_small = scale < _SMALLEST
    ratio = _number(_SMALLEST, low) / scale.to(torch.float32)
    reach = float(torch.tensor(_SMALLEST, dtype=torch.float32) * span)
    raised_high = torch.where(low == 0, reach, torch.where(high == 0, high, high * ratio))
    raised_low = torch.where((high == 0) & (low != 0), -reach, low * torch.where(low == 0, 1.0, ratio))
    return (torch.where(is_small, _SMALLEST, scale), torch.where(is_small, raised_low, low),
            torch.where(is_small, raised_high, high))


def _fused_qparams(low: Tensor, high: Tensor, quant_min: int, quant_max: int,
                   is_symmetric: bool) -> tuple[Tensor, Tensor]:
    """tare__choose_dynamic_qparams, fbgemm's ChooseQuantizationParams: the scale is a double before it is stored."""
    span = quant_max - quant_min
    is_balanced = (low < 0) & (high > 0) & is_symmetric
    least, most = float(-(span // 2 + 1)), float(span // 2)
    step = torch.maximum(torch.abs(low / _number(least, low)), torch.abs(high / _number(most, low)))
    low, high = torch.where(is_balanced, step * least, low), torch.where(is_balanced, step * most, high)
    low, high = torch.where(low < 0, low, 0.0), torch.where(high > 0, high, 0.0)
    scale = (high.double() - low.double()) / _number(span, low).double()
    as_float = scale.to(torch.float32)
    scale = torch.where((as_float == 0) | torch.isinf(torch.reciprocal(as_float)), 0.1, scale)
    scale, low, high = _raise_scale(scale, low, high, span)
    at_low, at_high = low.double() / scale, high.double() / scale
    zero_point = torch.where(abs(quant_min) - torch.abs(at_low) < abs(quant_max) - torch.abs(at_high),
                             quant_min - at_low, quant_max - at_high)
    zero_point = torch.where(is_balanced, (quant_min + quant_max) / 2, zero_point)
    return scale, torch.round(torch.nan_to_num(torch.clamp(zero_point, quant_min, quant_max), nan=0.0))


@_operator("tare::observe", mutates_args=("low", "high"), schema=(  # type: ignore[untyped-decorator,unused-ignore]
    "(Tensor x, Tensor(a!) low, Tensor(b!) high, int axis, float constant) -> ()"))
def _observe(x: Tensor, low: Tensor, high: Tensor, axis: int, constant: float) -> None:
    _watch(x, low, high, torch.ones_like(low), axis, constant, False)


@_observe.register_fake  # type: ignore[untyped-decorator,unused-ignore]
def _observe_shapes(*args: Any) -> None:
    del args


@_operator("tare::step", mutates_args=("low", "high", "scale", "zero_point"), schema=(  # type: ignore[untyped-decorator,unused-ignore]
    "(Tensor x, Tensor(a!) low, Tensor(b!) high, Tensor eps, Tensor(c!) scale, Tensor(d!) zero_point, Tensor observes,"
    " Tensor rounds, int axis, float constant, int quant_min, int quant_max, float? middle, bool is_symmetric,"
    " bool is_fused) -> ()"))
def _step(x: Tensor, low: Tensor, high: Tensor, eps: Tensor, scale: Tensor, zero_point: Tensor, observes: Tensor,
          rounds: Tensor, axis: int, constant: float, quant_min: int, quant_max: int, middle: float | None,
          is_symmetric: bool, is_fused: bool) -> None:
    """What a fake quantizer does before it rounds: it looks at a batch and chooses its parameters anew."""
    has_ints = zero_point.dtype == torch.int32 and max(-quant_min, quant_max) < _EXACT
    if x.is_cuda and x.numel() and has_ints:
        from .torch_kernels import step_range
        with torch.cuda.device_of(x):
            step_range(_extremes(x.to(torch.float32), axis), low, high, eps, scale, zero_point, observes, rounds, constant,
                       quant_min, quant_max, middle, is_symmetric, is_fused)
        return
    _watch(x, low, high, observes, axis, constant, is_fused)
    low, high = low.reshape(scale.shape), high.reshape(scale.shape)
    if is_fused:
        new_scale, new_zero = _fused_qparams(low, high, quant_min, quant_max, is_symmetric)
    else:
        new_scale, new_zero = _uniform_qparams(low, high, eps, quant_min, quant_max, middle,
                                               zero_point.dtype == torch.float32)
        has_seen = ~(torch.isposinf(low) & torch.isneginf(high))
        new_scale, new_zero = torch.where(has_seen, new_scale, 1.0), torch.where(has_seen, new_zero, 0)
    is_on = (rounds if is_fused else observes) == 1
    scale.copy_(torch.where(is_on, new_scale.to(scale.dtype), scale))
    zero_point.copy_(torch.where(is_on, new_zero.to(zero_point.dtype), zero_point))


@_step.register_fake  # type: ignore[untyped-decorator,unused-ignore]
def _step_shapes(*args: Any) -> None:
    del args


# --- modules ---

class _Info:
    """What the library says of an observer."""

    dtype: str
    scheme: str
    quant_min: int
    quant_max: int

    def __init__(self, module: Module) -> None:
        made = filled("tare_observer_info")
        if not lib.module_observer_info(module._handle, ctypes.byref(made)):
            raise UnsupportedError(f"'{module.class_name}' is no observer")
        scheme = str(qscheme_at(made.qscheme))
        self.dtype, self.scheme = str(dtype_at(made.dtype)), scheme
        self.axis: int | None = int(made.channel_axis) if "per_channel" in scheme else None
        self.quant_min, self.quant_max = int(made.quant_min), int(made.quant_max)
        self.is_symmetric: bool = scheme.endswith("_symmetric")

    def middle(self, has_custom_range: bool) -> float | None:
        """The zero point of a symmetric scheme; None for others."""
        if not self.is_symmetric:
            return None
        if self.dtype == "torch.uint16":
            return 32768.0
        if self.dtype not in ("torch.quint8", "torch.uint8"):
            return 0.0
        return float((self.quant_min + self.quant_max) // 2) if has_custom_range else 128.0


class RangeObserver(nn.Module):  # type: ignore[misc,unused-ignore]
    """Minimum and maximum, or their moving averages, of a tensor or of its channels; passes its input on."""

    eps: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(self, info: _Info, config: Mapping[str, Any], tensors: Mapping[str, Tensor], is_averaging: bool) -> None:
        super().__init__()
        self.info = info
        self.constant: float = float(config.get("averaging_constant", 0.01)) if is_averaging else -1.0
        self.middle: float | None = info.middle(config.get("quant_min") is not None and config.get("quant_max") is not None)
        for name in ("eps", "min_val", "max_val"):
            self.register_buffer(name, tensors[name].clone())

    def axis_of(self, x: Tensor) -> int:
        """The axis of the channels in x; -1 for one range."""
        return -1 if self.info.axis is None else self.info.axis % max(x.dim(), 1)

    def fit(self, x: Tensor) -> None:
        """Makes room for the channels of x, before the first batch."""
        if self.info.axis is not None and self.min_val.numel() == 0:
            count = x.shape[self.axis_of(x)]
            self.min_val = torch.full((count,), torch.inf, device=x.device)
            self.max_val = torch.full((count,), -torch.inf, device=x.device)

    @property
    def is_fresh(self) -> bool:
        """Has it seen nothing?"""
        return bool((torch.isposinf(self.min_val) & torch.isneginf(self.max_val)).all())

    def forward(self, x: Tensor) -> Tensor:
        """Looks at a batch and returns it."""
        self.fit(x)
        torch.ops.tare.observe(x.detach(), self.min_val, self.max_val, self.axis_of(x), self.constant)
        return x

    def extra_repr(self) -> str:
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class FakeQuantize(fake_quantize.FakeQuantizeBase):  # type: ignore[misc,unused-ignore]
    """Rounds to the grid that its observer proposes, or to a fixed one.

    ``torch.ao.quantization.disable_observer`` and the like apply to it.
    """

    scale: Tensor
    zero_point: Tensor
    info: _Info
    is_fused: bool

    def __init__(self, info: _Info, tensors: Mapping[str, Tensor], watching: nn.Module, is_fused: bool) -> None:
        super().__init__()
        self.info, self.is_fused = info, is_fused
        self.activation_post_process = watching
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.clone())

    def fit(self, x: Tensor) -> None:
        """Makes room for the channels of x, before the first batch."""
        watching = self.activation_post_process
        if isinstance(watching, RangeObserver) and self.info.axis is not None and \
                self.scale.numel() != x.shape[watching.axis_of(x)]:
            watching.fit(x)
            self.scale = self.scale.to(x.device).new_ones(watching.min_val.shape)
            self.zero_point = self.zero_point.to(x.device).new_zeros(watching.min_val.shape)

    def calculate_qparams(self, **_: Any) -> tuple[Tensor, Tensor]:
        """The scales and zero points of the last step."""
        return self.scale, self.zero_point

    def _step(self, x: Tensor) -> None:
        watching = self.activation_post_process
        if not isinstance(watching, RangeObserver):
            return
        self.fit(x)
        torch.ops.tare.step(x.detach(), watching.min_val, watching.max_val, watching.eps, self.scale, self.zero_point,
                            self.observer_enabled, self.fake_quant_enabled, watching.axis_of(x), watching.constant,
                            self.info.quant_min, self.info.quant_max, watching.middle, self.info.is_symmetric, self.is_fused)

    def forward(self, x: Tensor) -> Tensor:
        """Looks at a batch, if observing, and rounds it."""
        self._step(x)
        axis = -1 if self.info.axis is None else self.info.axis % x.dim()
        rounded, _ = torch.ops.tare.fake_quantize(x, self.scale, self.zero_point, self.fake_quant_enabled, axis,
                                                  self.info.quant_min, self.info.quant_max)
        return rounded

    def extra_repr(self) -> str:
        """Switches and parameters."""
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
                f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.info.dtype}, "
                f"quant_min={self.info.quant_min}, quant_max={self.info.quant_max}, qscheme={self.info.scheme}")


class _Still(nn.Module):  # type: ignore[misc,unused-ignore]
    """An observer that watches nothing: placeholders, fixed parameters."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.clone())

    def forward(self, x: Tensor) -> Tensor:
        """Returns its input."""
        return x


class _Histogram(observer.HistogramObserver):  # type: ignore[misc,unused-ignore]
    """torch's own, whose histograms tare repeats; returns its input."""

    def __init__(self, info: _Info, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        super().__init__(bins=int(config.get("bins", 2048)), dtype=_torch_name(info.dtype), qscheme=_torch_name(info.scheme),
                         quant_min=info.quant_min, quant_max=info.quant_max)
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.clone())


def _torch_name(name: str) -> Any:
    return getattr(torch, name.removeprefix("torch."))


_RANGES = {"MinMaxObserver": False, "PerChannelMinMaxObserver": False, "MovingAverageMinMaxObserver": True,
           "MovingAveragePerChannelMinMaxObserver": True}
_STILL = ("PlaceholderObserver", "NoopObserver", "ReuseInputObserver", "FixedQParamsObserver")
_ROUNDING = {"FakeQuantize": False, "FixedQParamsFakeQuantize": False, "FusedMovingAvgObsFakeQuantize": True}


def make_observer(path: str, module: Module, tensors: Mapping[str, Tensor],
                  children: Mapping[str, nn.Module]) -> nn.Module | None:
    """The torch module of an observer or fake quantizer; None for other modules.

    Parameters
    ----------
    path : str
        For errors.
    module : Module
        tare's.
    tensors : dict of str to torch.Tensor
        Its state.
    children : dict of str to torch.nn.Module
    """
    where, _, name = module.class_name.rpartition(".")
    if not lib.module_observer_info(module._handle, ctypes.byref(filled("tare_observer_info"))):
        return None
    info, config = _Info(module), module.config
    if where == "torch.ao.quantization":
        if name in _RANGES:
            return RangeObserver(info, config, tensors, _RANGES[name])
        if name in _ROUNDING:
            return FakeQuantize(info, tensors, children["activation_post_process"], _ROUNDING[name])
        if name in _STILL:
            return _Still(tensors)
        if name == "HistogramObserver":
            return _Histogram(info, config, tensors)
    raise UnsupportedError(f"'{module.class_name}' has no form in torch", path,
                           "calibrate with tare, or choose an observer of torch.ao.quantization")

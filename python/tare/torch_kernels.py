# SPDX-License-Identifier: Apache-2.0
"""Steps of torch_fake_quantize as one kernel each for CUDA, compiled by torch's jiterator when they are first used.

Written by single operations they take dozens of launches. The arithmetic is the same: ``__fmul_rn`` and the like keep
the compiler from contracting a product and a sum. Bodies have no braces: torch looks for the function by a pattern.
"""
from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from torch.cuda.jiterator import _create_multi_output_jit_fn  # type: ignore[import-not-found,unused-ignore]

__all__ = ["CHOOSE_FUSED", "CHOOSE_PLAIN", "ROUND_CHANNELS", "round_channels", "step_range"]

Tensor = Any

_RANGE_ARGUMENTS = """T found_low, T found_high, T kept_low, T kept_high, T observes, T {switch}, T old_scale, T old_zero,
    T constant, T quant_min, T quant_max, T middle, T is_symmetric, T& low, T& high, T& scale, T& zero"""

# constant < 0: the extreme of both; NaN wins, as in torch.
_JOIN = """
    const T most = (T)3.4028234663852886e38;
    const bool fresh_low = {fresh_low}, fresh_high = {fresh_high};
    const T least_low = found_low != found_low || found_low < kept_low ? found_low : kept_low;
    const T most_high = found_high != found_high || found_high > kept_high ? found_high : kept_high;
    const T mean_low = __fadd_rn(kept_low, __fmul_rn(constant, __fsub_rn(found_low, kept_low)));
    const T mean_high = __fadd_rn(kept_high, __fmul_rn(constant, __fsub_rn(found_high, kept_high)));
    low = observes != (T)1 ? kept_low : fresh_low ? found_low : constant < (T)0 ? least_low : mean_low;
    high = observes != (T)1 ? kept_high : fresh_high ? found_high : constant < (T)0 ? most_high : mean_high;
"""

# _uniform_qparams
CHOOSE_PLAIN = "template <typename T>\nvoid tare_choose_plain(" + _RANGE_ARGUMENTS.format(switch="eps") + ") {" + _JOIN.format(
    fresh_low="kept_low > most && kept_high < -most", fresh_high="kept_low > most && kept_high < -most") + """
    const T below = low > (T)0 ? (T)0 : low, above = high < (T)0 ? (T)0 : high;
    const T reach = -below != -below || -below > above ? -below : above;
    const T span = quant_max - quant_min;
    const T wish = is_symmetric != (T)0 ? reach / (span / (T)2) : (above - below) / span;
    const T step = wish != wish || wish > eps ? wish : eps;
    const T shifted = quant_min - rintf(below / step);
    const T clamped = shifted > quant_max ? quant_max : shifted < quant_min ? quant_min : shifted;
    const bool has_seen = !(low > most && high < -most);
    scale = observes != (T)1 ? old_scale : has_seen ? step : (T)1;
    zero = observes != (T)1 ? old_zero : !has_seen ? (T)0 : is_symmetric != (T)0 ? middle : clamped;
}
"""

# _fused_qparams; middle is not used
CHOOSE_FUSED = "template <typename T>\nvoid tare_choose_fused(" + _RANGE_ARGUMENTS.format(switch="rounds") + ") {" + _JOIN.format(
    fresh_low="kept_low > most || kept_low < -most", fresh_high="kept_high > most || kept_high < -most") + """
    const int span = (int)quant_max - (int)quant_min;
    const T least_code = (T)(-(span / 2 + 1)), most_code = (T)(span / 2);
    const bool balanced = is_symmetric != (T)0 && low < (T)0 && high > (T)0;
    const T step_low = fabsf(low / least_code), step_high = fabsf(high / most_code);
    const T step = step_low > step_high ? step_low : step_high;
    const T wide_low = balanced ? step * least_code : low, wide_high = balanced ? step * most_code : high;
    const T from = wide_low < (T)0 ? wide_low : (T)0, to = wide_high > (T)0 ? wide_high : (T)0;
    const double wish = ((double)to - (double)from) / span;
    const T inverse = (T)1 / (T)wish;
    const double usable = (T)wish == (T)0 || inverse > most || inverse < -most ? 0.1 : wish;
    const T smallest = (T)6.1e-5;
    const bool small = usable < (double)smallest;
    const T ratio = smallest / (T)usable, reach = smallest * (T)span;
    const T raised_high = from == (T)0 ? reach : to == (T)0 ? to : to * ratio;
    const T raised_low = from == (T)0 ? from : to == (T)0 ? -reach : from * ratio;
    const double chosen = small ? (double)smallest : usable;
    const double at_low = (double)(small ? raised_low : from) / chosen;
    const double at_high = (double)(small ? raised_high : to) / chosen;
    const double error_low = fabs((double)quant_min) - fabs(at_low);
    const double error_high = fabs((double)quant_max) - fabs(at_high);
    const double guess = error_low < error_high ? (double)quant_min - at_low : (double)quant_max - at_high;
    const double wished = balanced ? ((double)quant_min + (double)quant_max) / 2 : guess;
    const double bound = wished < (double)quant_min ? (double)quant_min : wished;
    const double whole = rint(bound > (double)quant_max ? (double)quant_max : bound);
    scale = rounds != (T)1 ? old_scale : (T)chosen;
    zero = rounds != (T)1 ? old_zero : whole != whole ? (T)0 : (T)whole;
}
"""

# _round_floats
ROUND_CHANNELS = """template <typename T>
void tare_round_channels(T x, T scale, T zero, T enabled, T quant_min, T quant_max, T& y, T& passes) {
    const T whole = rintf(__fmul_rn(x, (T)1 / scale)) + zero;
    const bool inside = whole >= quant_min && whole <= quant_max;
    const T kept = inside ? whole : whole > quant_max ? quant_max : quant_min;
    y = enabled == (T)1 ? (kept - zero) * scale : x;
    passes = inside || enabled != (T)1 ? (T)1 : (T)0;
}
"""

_limits = {"quant_min": 0.0, "quant_max": 0.0}
_range_values = {"constant": 0.0, **_limits, "middle": 0.0, "is_symmetric": 0.0}
_choose_plain: Any = _create_multi_output_jit_fn(CHOOSE_PLAIN, num_outputs=4, **_range_values)
_choose_fused: Any = _create_multi_output_jit_fn(CHOOSE_FUSED, num_outputs=4, **_range_values)
_round: Any = _create_multi_output_jit_fn(ROUND_CHANNELS, num_outputs=2, **_limits)


def step_range(found: tuple[Tensor, Tensor], low: Tensor, high: Tensor, eps: Tensor, scale: Tensor, zero_point: Tensor,
               observes: Tensor, rounds: Tensor, constant: float, quant_min: int, quant_max: int, middle: float | None,
               is_symmetric: bool, is_fused: bool) -> None:
    """Updates a range by the extremes of a batch, and what is chosen from it, in place."""
    shape, choose = scale.shape, _choose_fused if is_fused else _choose_plain
    made = choose(found[0].reshape(shape), found[1].reshape(shape), low.reshape(shape), high.reshape(shape), observes,
                  rounds if is_fused else eps, scale, zero_point, constant=constant, quant_min=float(quant_min),
                  quant_max=float(quant_max), middle=middle or 0.0, is_symmetric=float(is_symmetric))
    torch._foreach_copy_([low, high, scale], [made[0].reshape(low.shape), made[1].reshape(low.shape), made[2]])
    zero_point.copy_(made[3])


def round_channels(x: Tensor, scale: Tensor, zero_point: Tensor, enabled: Tensor, quant_min: int,
                   quant_max: int) -> tuple[Tensor, Tensor]:
    """Rounds by scales that broadcast over x; also where the gradient passes."""
    y, passes = _round(x, scale, zero_point, enabled, quant_min=float(quant_min), quant_max=float(quant_max))
    return y, passes.to(torch.bool)

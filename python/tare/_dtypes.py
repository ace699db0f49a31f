# SPDX-License-Identifier: Apache-2.0
"""Element types and quantization schemes, with torch's names."""
from __future__ import annotations

from typing import Any

from ._library import encode, lib, text

__all__ = ["bfloat16", "bool_", "dtype", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int16",
           "int32", "int64", "int8", "per_channel_affine", "per_channel_affine_float_qparams",
           "per_channel_symmetric", "per_group_affine", "per_group_symmetric", "per_tensor_affine",
           "per_tensor_symmetric", "qint32", "qint8", "qscheme", "quint4x2", "quint8", "uint16", "uint8"]


class _Named:
    """A number of the library under torch's name. There is one object per number."""

    __slots__ = ("_number", "_name")

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        # torch's own objects are equal to these: their texts are the same.
        if isinstance(other, _Named):
            return self is other
        return type(other).__module__ == "torch" and str(other) == self._name

    def __hash__(self) -> int:
        return hash(self._name)


class dtype(_Named):  # noqa: N801
    """An element type, printed as torch prints it: ``torch.quint8``."""

    __slots__ = ()

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return int(lib.dtype_size(self._number))

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_dtype, (self._name,)


class qscheme(_Named):  # noqa: N801
    """How scales and zero points relate to a tensor: ``torch.per_tensor_affine``."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return as_qscheme, (self._name,)


_dtypes = {number: dtype(number, text(lib.dtype_name(number))) for number in range(1, 18)}
_qschemes = {number: qscheme(number, text(lib.qscheme_name(number))) for number in range(1, 8)}

float32: dtype
float64: dtype
float16: dtype
bfloat16: dtype
uint8: dtype
int8: dtype
uint16: dtype
int16: dtype
int32: dtype
int64: dtype
bool_: dtype
quint8: dtype
qint8: dtype
qint32: dtype
quint4x2: dtype
float8_e5m2: dtype
float8_e4m3fn: dtype
per_tensor_affine: qscheme
per_tensor_symmetric: qscheme
per_channel_affine: qscheme
per_channel_symmetric: qscheme
per_channel_affine_float_qparams: qscheme
per_group_affine: qscheme
per_group_symmetric: qscheme

float32, float64, float16, bfloat16 = (_dtypes[i] for i in (1, 2, 3, 4))
uint8, int8, uint16, int16, int32, int64, bool_ = (_dtypes[i] for i in (5, 6, 7, 8, 9, 10, 11))
quint8, qint8, qint32, quint4x2 = (_dtypes[i] for i in (12, 13, 14, 15))
float8_e5m2, float8_e4m3fn = _dtypes[16], _dtypes[17]
(per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams,
 per_group_affine, per_group_symmetric) = (_qschemes[i] for i in range(1, 8))


def dtype_at(number: int) -> dtype | None:
    """The dtype of a number of C; None for 0."""
    return _dtypes.get(number)


def qscheme_at(number: int) -> qscheme | None:
    """The scheme of a number of C; None for 0."""
    return _qschemes.get(number)


def as_dtype(given: Any) -> dtype:
    """A dtype from one of tare's, torch's or NumPy's, or from its name.

    >>> as_dtype("torch.quint8"), as_dtype(float), quint8.itemsize
    (torch.quint8, torch.float32, 1)
    """
    if isinstance(given, dtype):
        return given
    if given is float:
        return float32
    if isinstance(given, str) or type(given).__module__.split(".")[0] in ("torch", "numpy") or isinstance(given, type):
        name = given if isinstance(given, str) else getattr(given, "__name__", None) or str(given)
        number = lib.dtype_from_name(encode(name))
        if number:
            return _dtypes[number]
    raise TypeError(f"expected a dtype, found {given!r}")


def as_qscheme(given: Any) -> qscheme:
    """A scheme from one of tare's or torch's, or from its name."""
    if isinstance(given, qscheme):
        return given
    number = lib.qscheme_from_name(encode(str(given)))
    if number:
        return _qschemes[number]
    raise TypeError(f"expected a qscheme, found {given!r}")

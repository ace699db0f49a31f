# SPDX-License-Identifier: Apache-2.0
"""Tensors, and the ways of other libraries' arrays into them."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _native
from ._dtypes import dtype, dtype_at, qscheme, qscheme_at
from ._errors import make_exception
from ._library import c, call, lib, out

__all__ = ["Tensor"]


class Tensor(_native.Tensor):
    """A dense, row-major tensor of the library's, optionally quantized.

    It shares its memory: ``Tensor(array)`` reads the array where it is, and ``numpy.asarray(tensor)``,
    ``torch.from_dlpack(tensor)`` and ``memoryview(tensor)`` read the tensor where it is. Of quantized tensors
    these are the integers; ``to_float()`` gives the values.

    Parameters
    ----------
    object : array_like
        Anything with a buffer, ``__dlpack__`` or ``__array__``, a number or a list. It is copied only where
        its elements are not in row-major order.

    Examples
    --------
    >>> array = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> tensor = Tensor(array)
    >>> tensor.shape, tensor.dtype, tensor.is_quantized
    ((2, 3), torch.float32, False)
    >>> array[0, 0] = 7
    >>> tensor.numpy()[0, 0] == 7
    np.True_
    """

    __slots__ = ()

    @property
    def dtype(self) -> dtype:
        """The element type."""
        found = dtype_at(self._dtype)
        assert found is not None
        return found

    @property
    def _handle(self) -> Any:
        return ctypes.cast(self._address, ctypes.POINTER(c.tare_tensor))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return int(lib.tensor_element_count(self._handle))

    @property
    def is_quantized(self) -> bool:
        """Has the tensor scales and zero points?"""
        return bool(lib.tensor_qparam_count(self._handle))

    def qscheme(self) -> qscheme | None:
        """The scheme; None for tensors that are not quantized."""
        return qscheme_at(lib.tensor_qscheme(self._handle))

    def scales(self) -> np.ndarray[Any, Any]:
        """The scales, float64: one, or one per channel; none for tensors that are not quantized."""
        handle, count = self._handle, lib.tensor_qparam_count(self._handle)
        return np.array([lib.tensor_scale(handle, i) for i in range(count)])

    def zero_points(self) -> np.ndarray[Any, Any]:
        """The zero points, as many as scales."""
        handle, count = self._handle, lib.tensor_qparam_count(self._handle)
        return np.array([lib.tensor_zero_point(handle, i) for i in range(count)])

    def q_scale(self) -> float:
        """The scale of a per-tensor scheme.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            For other tensors.
        """
        if lib.tensor_qparam_count(self._handle) != 1:
            raise ValueError("expected a tensor that is quantized per tensor")
        return float(lib.tensor_scale(self._handle, 0))

    def q_zero_point(self) -> int:
        """The zero point of a per-tensor scheme.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            For other tensors.
        """
        if lib.tensor_qparam_count(self._handle) != 1:
            raise ValueError("expected a tensor that is quantized per tensor")
        return int(lib.tensor_zero_point(self._handle, 0))

    def to_float(self) -> Tensor:
        """The values as float32: integers by value, quantized tensors dequantized."""
        made, reference = out("tare_tensor")
        call("tensor_to_float", self._handle, reference)
        return adopt(made)

    dequantize = to_float

    def int_repr(self) -> np.ndarray[Any, Any]:
        """The integers of a quantized tensor, without a copy."""
        return np.asarray(self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as an array: without a copy, except for types that NumPy lacks, which become float32."""
        try:
            return np.asarray(memoryview(self))
        except BufferError:
            return np.asarray(memoryview(self.to_float()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("another dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-dimensional tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __float__(self) -> float:
        return float(self.to_float().numpy())

    def __repr__(self) -> str:
        inner = np.array2string(self.to_float().numpy(), separator=", ", prefix="tensor(")
        parts = [f"tensor({inner}, size={self.shape}, dtype={self.dtype}"]
        if self.is_quantized:
            parts.append(f"qscheme={self.qscheme()}")
            if lib.tensor_qparam_count(self._handle) == 1:
                parts.append(f"scale={self.q_scale()}, zero_point={self.q_zero_point()}")
        return ", ".join(parts) + ")"


def adopt(handle: Any) -> Tensor:
    """The tensor of a handle whose reference the caller owned."""
    made = _native.adopt(ctypes.cast(handle, ctypes.c_void_p).value or 0)
    assert isinstance(made, Tensor)
    return made


def lend(handle: Any) -> Tensor:
    """The tensor of a lent handle, with a reference of its own."""
    made = _native.lend(ctypes.cast(handle, ctypes.c_void_p).value or 0)
    assert isinstance(made, Tensor)
    return made


def as_tensor(given: Any) -> Tensor:
    """The same tensor, or one over the object's memory."""
    if isinstance(given, Tensor):
        return given
    made = _native.make(given)
    assert isinstance(made, Tensor)
    return made


def handles(tensors: Sequence[Tensor]) -> Any:
    """An array of handles for the library; the tensors must stay alive."""
    return (ctypes.POINTER(c.tare_tensor) * max(len(tensors), 1))(*[t._handle for t in tensors])


def _buffer_of(given: Any) -> Any:
    """For what has no buffer in one row: a contiguous array."""
    if given is None or isinstance(given, (str, bytes, dict)):
        raise TypeError(f"expected an array, found {type(given).__name__}")
    if hasattr(given, "detach") and hasattr(given, "cpu"):  # torch's: it may need gradients or be on a device
        given = given.detach().cpu()
        if str(given.dtype) == "torch.bfloat16":
            given = given.float()
        array = given.numpy()
    elif hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray):
        array = np.from_dlpack(given)
    else:
        array = np.asarray(given)
    if isinstance(given, (float, list, tuple)) and array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected an array of numbers, found dtype {array.dtype}")
    array = np.ascontiguousarray(array) if array.ndim else array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


_native.setup(Tensor, np.asarray, _buffer_of, make_exception)

# SPDX-License-Identifier: Apache-2.0
"""Preprocessing of pictures, declared once and kept in the model's file."""
from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._library import call, encode, filled, integer, lib, names_of, out, take_text
from ._tensor import adopt

__all__ = ["Preprocess"]

_FORMATS = {"gray": 1, "rgb": 2, "bgr": 3, "rgba": 4, "bgra": 5}


class Preprocess:
    """What is done to a picture before the network sees it: color, size, crop, dtype, scale, mean and layout.

    Resized bytes equal Pillow's, floats torchvision's ``ToTensor`` and ``Normalize``. Immutable.

    Parameters
    ----------
    spec : str, dict or path-like
        A preset ("imagenet", "to_tensor"), settings ("imagenet,resize=232,interpolation=bicubic"), a dict of the JSON
        form, or the path of such a file.

    Raises
    ------
    MalformedFileError
        For unknown names, and for settings that would have no effect.

    Examples
    --------
    >>> steps = Preprocess("resize=8x8,color=gray")
    >>> pixels = np.zeros((16, 24, 3), np.uint8)
    >>> steps(pixels).shape
    (1, 1, 8, 8)
    >>> from tare import load
    >>> model = load("data/digits/digits.safetensors")
    >>> model.preprocess = steps
    >>> model.preprocess == steps
    True
    """

    def __init__(self, spec: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        self._handle: Any = None
        made, place = out("tare_preprocess")
        if isinstance(spec, os.PathLike):
            call("preprocess_read", encode(spec, "a path"), place)
        else:
            call("preprocess_parse", encode(json.dumps(dict(spec)) if isinstance(spec, Mapping) else spec, "a preprocessing"), place)
        self._handle = made

    def __del__(self, _lib: Any = lib) -> None:  # bound: at the interpreter's end, globals are gone
        if self._handle:
            _lib.preprocess_destroy(self._handle)

    @staticmethod
    def presets() -> list[str]:
        """The names of the presets."""
        return list(names_of("preprocess_preset_at"))

    def to_json(self) -> str:
        """The JSON form, which model files and the command line have."""
        return json_of(self._handle)

    def __call__(self, picture: Any, *, format: str | None = None) -> np.ndarray[Any, Any]:  # noqa: A002  PIL's word
        """The network's input for one picture.

        Parameters
        ----------
        picture : path-like, str, bytes or array_like
            A PNG or JPEG file, its bytes, or the pixels: uint8, [height][width] or [height][width][channels], the top
            row first.
        format : str, optional
            Of pixels: gray, rgb, bgr, rgba or bgra. By default gray, rgb or rgba, by the number of channels.

        Returns
        -------
        numpy.ndarray
            A batch of one picture, [1][channels][height][width], or as the layout says.

        Raises
        ------
        MalformedFileError
            For broken files.
        ValueError
            For pixels of another dtype or shape.
        """
        made, place = out("tare_tensor")
        if isinstance(picture, (str, os.PathLike)):
            call("preprocess_picture", self._handle, encode(picture, "a path"), place)
        elif isinstance(picture, (bytes, bytearray)):
            data = bytes(picture)
            call("preprocess_bytes", self._handle, data, len(data), place)
        else:
            row, _keep = _pixels(picture, format)
            call("preprocess_pixels", self._handle, ctypes.byref(row), place)
        return adopt(made).numpy()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preprocess) and bool(lib.preprocess_equal(self._handle, other._handle))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"Preprocess({json.loads(self.to_json())!r})"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Preprocess, (self.to_json(),)


def json_of(handle: Any) -> str:
    """The JSON form of a preprocessing of the library's."""
    written = ctypes.c_char_p()
    call("preprocess_to_json", handle, ctypes.byref(written))
    return take_text(written)


def _pixels(given: Any, name: str | None) -> tuple[Any, Any]:
    """A tare_pixels, and the array that it points into."""
    array = np.asarray(given)
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise ValueError(f"expected pixels of uint8 in 2 or 3 dimensions, found {array.dtype} in {array.ndim}")
    name = name or {1: "gray", 3: "rgb", 4: "rgba"}.get(channels)
    if name not in _FORMATS or channels != {"gray": 1, "rgb": 3, "bgr": 3}.get(name, 4):
        raise ValueError(f"expected a format (gray, rgb, bgr, rgba, bgra) of {channels} channels, found {name!r}")
    array = np.ascontiguousarray(array)
    if not array.size:
        raise ValueError("expected at least one pixel, found none")
    return filled("tare_pixels", format=_FORMATS[name], height=integer(array.shape[0]), width=integer(array.shape[1]),
                  data=array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))), array


def declared(handle: Any) -> Preprocess | None:
    """The preprocessing that a model declares."""
    found = lib.model_preprocess(handle)
    return Preprocess(json_of(found)) if found else None


def declare(handle: Any, given: Any) -> None:
    """Declares one in a model; None removes the declaration."""
    if given is not None and not isinstance(given, Preprocess):
        given = Preprocess(given)
    call("model_set_preprocess", handle, given._handle if given is not None else None)

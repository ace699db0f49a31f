# SPDX-License-Identifier: Apache-2.0
"""Calls of the C interface. The library is inside of the extension `_native`; ctypes finds its functions there, and
releases the interpreter's lock while they run."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import _declared, _native
from ._errors import Error, keep_exception, make_exception, status_of

c: Any = _declared  # the types of C, by their names there
_library = ctypes.CDLL(_native.__file__)


class _Functions:
    """lib.model_read is tare_model_read; its types are set when it is first asked for."""

    _all, _library = _declared.FUNCTIONS, _library  # bound: at the interpreter's end, globals are gone

    def __getattr__(self, name: str) -> Any:
        declared = self._all.get("tare_" + name)
        if declared is None:
            raise AttributeError(name)
        function = getattr(self._library, "tare_" + name)
        function.restype, function.argtypes = declared()
        setattr(self, name, function)
        return function


lib = _Functions()


def call(name: str, *args: Any) -> None:
    """Calls a function that returns a status and takes an error last."""
    error = lib.error_create()
    try:
        status = getattr(lib, name)(*args, error)
        if status:
            raise make_exception(status, text(lib.error_where(error)), text(lib.error_message(error)),
                                 text(lib.error_hint(error)))
    finally:
        lib.error_destroy(error)


def text(found: bytes | None) -> str:
    """A text of the library's; "" for NULL."""
    return found.decode("utf-8", "replace") if found is not None else ""


def encode(given: str | os.PathLike[str], what: str = "a name") -> bytes:
    """A text for the library."""
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"expected {what}, found {type(given).__name__}")
    encoded = os.fsencode(given) if isinstance(given, os.PathLike) else given.encode("utf-8")
    if b"\0" in encoded:
        raise ValueError(f"expected {what}, found a text with a NUL in it")
    return encoded


def encode_or_null(given: str | os.PathLike[str] | None, what: str = "a name") -> bytes | None:
    """The same where None has a meaning: NULL."""
    return None if given is None else encode(given, what)


def pointer(struct: str) -> Any:
    """A NULL pointer to a struct, for an argument `**out`."""
    return ctypes.POINTER(c.t(struct))()


def out(struct: str) -> tuple[Any, Any]:
    """The same, with its reference."""
    place = pointer(struct)
    return place, ctypes.byref(place)


def filled(struct: str, **fields: Any) -> Any:
    """A struct that begins with struct_size."""
    made = c.t(struct)()
    made.struct_size = ctypes.sizeof(made)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def texts(given: Iterable[str | os.PathLike[str]]) -> Any:
    """An array of texts."""
    encoded = [encode(item) for item in given]
    return (ctypes.c_char_p * max(len(encoded), 1))(*encoded)


def integers(given: Sequence[int]) -> Any:
    """An array of int64."""
    for value in given:
        integer(value)
    return (ctypes.c_int64 * max(len(given), 1))(*given)


def integer(value: Any, what: str = "an integer") -> int:
    """An int64; ctypes would cut larger numbers silently."""
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"expected {what}, found {type(value).__name__}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(f"expected {what} of 64 bits, found {number}")
    return number


def take_text(place: Any) -> str:
    """A text that the caller frees, from a `char **out`."""
    try:
        return text(place.value)
    finally:
        lib.string_free(place)


def write_text(write: Callable[[Any], None]) -> str:
    """What the library writes to a writer, which `write` passes on."""
    parts: list[bytes] = []

    def receive(_user: Any, chars: int, length: int) -> bool:
        parts.append(ctypes.string_at(chars, length))
        return True

    kind = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    receiver = kind(receive)
    write(ctypes.cast(receiver, c.tare_writer))
    return b"".join(parts).decode("utf-8", "replace")


def write_chars(write: Any, user: Any, chars: str) -> None:
    """Hands a text to a writer of the library's."""
    encoded = chars.encode()
    kind = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
    if not ctypes.cast(write, kind)(user, encoded, len(encoded)):
        raise MemoryError("the text was refused")


def guarded(error_index: int, function: Callable[..., Any], other_status: int | None = None) -> Callable[..., int]:
    """A callback that returns a status: its exceptions become the error in the argument of that index, and come
    out of the library call as they were. other_status: of those that are not the library's own."""
    def callback(*args: Any) -> int:
        try:
            function(*args)
            return 0
        except BaseException as exception:  # pylint: disable=broad-except
            message = keep_exception(exception)
            status = status_of(exception) if other_status is None or isinstance(exception, Error) else other_status
            return int(lib.error_set(args[error_index], status, None, message.encode(), None))
    return callback


def names_of(function: str) -> Iterator[str]:
    """All names that a function NAME(index) gives."""
    index = 0
    while (name := getattr(lib, function)(index)) is not None:
        yield text(name)
        index += 1


def address(handle: Any) -> int:
    """Where a handle points to; 0 for NULL."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0

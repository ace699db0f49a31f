# SPDX-License-Identifier: Apache-2.0
"""Errors of the library as exceptions."""
from __future__ import annotations

import re
import threading
from collections import OrderedDict

__all__ = ["Error", "InternalError", "InvalidArgumentError", "LimitExceededError", "MalformedFileError",
           "NotFoundError", "OutOfMemoryError", "TareIOError", "UnsupportedError"]


class Error(Exception):
    """A failure of the library.

    Attributes
    ----------
    status : str
        The name of the status in C, such as ``"INVALID_ARGUMENT"``.
    place : str
        Where it happened: a file and offset, a JSON path, a node. Empty where there is none.
    message : str
        One sentence.
    expected, found : str or None
        The two halves of a message of the form "expected .., found ..".
    hint : str
        What to do about it. Empty where there is nothing to say.
    """

    status = "INTERNAL"

    def __init__(self, message: str, place: str = "", hint: str = "") -> None:
        super().__init__(message, place, hint)
        self.message = message
        self.place = place
        self.hint = hint
        halves = re.search(r"\bexpected (.+), found (.+)$", message, flags=re.S)
        self.expected: str | None = halves.group(1) if halves else None
        self.found: str | None = halves.group(2) if halves else None

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class InvalidArgumentError(Error, ValueError):
    """The caller broke the documented contract."""

    status = "INVALID_ARGUMENT"


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not supported here."""

    status = "UNSUPPORTED"


class MalformedFileError(Error, ValueError):
    """A file contradicts its format."""

    status = "MALFORMED_FILE"


class OutOfMemoryError(Error, MemoryError):
    """No memory is left."""

    status = "OUT_OF_MEMORY"


class TareIOError(Error, OSError):
    """Reading or writing failed."""

    status = "IO"


class NotFoundError(Error, LookupError):
    """No such name."""

    status = "NOT_FOUND"


class InternalError(Error, RuntimeError):
    """A bug in tare."""

    status = "INTERNAL"


class LimitExceededError(Error):
    """Valid, but more than the caller's limits allow."""

    status = "LIMIT_EXCEEDED"


for _class in list(Error.__subclasses__()) + [Error]:
    _class.__module__ = "tare"  # as users write it

# By the numbers of tare_status.
CLASSES: tuple[type[Error], ...] = (Error, InvalidArgumentError, UnsupportedError, MalformedFileError,
                                    OutOfMemoryError, TareIOError, NotFoundError, InternalError,
                                    LimitExceededError)

# Exceptions of callbacks on their way through the library, by the message that it carries. A library call that
# fails for another reason leaves them here, so there is a limit.
_pending: OrderedDict[str, BaseException] = OrderedDict()
_pending_lock = threading.Lock()
_MOST_PENDING = 64


def keep_exception(exception: BaseException) -> str:
    """The message under which the exception travels through C."""
    message = f"{type(exception).__name__}: {exception}"[:900]
    with _pending_lock:
        _pending[message] = exception
        while len(_pending) > _MOST_PENDING:
            _pending.popitem(last=False)
    return message


def status_of(exception: BaseException) -> int:
    """The status that a callback returns for its exception."""
    if isinstance(exception, Error):
        return CLASSES.index(type(exception)) if type(exception) in CLASSES else 1
    return 4 if isinstance(exception, MemoryError) else 1


def make_exception(status: int, place: str, message: str, hint: str) -> BaseException:
    """The exception of a failed call: that of a callback where one began it."""
    with _pending_lock:
        original = _pending.pop(message, None)
    if original is not None:
        if place:
            original.add_note(f"in tare: {place}")
        return original
    kind = CLASSES[status] if 0 < status < len(CLASSES) else InternalError
    return kind(message or kind.__doc__ or "", place, hint)

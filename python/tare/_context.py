# SPDX-License-Identifier: Apache-2.0
"""What the library is told of Python's own classes: one context for the process, which lives as long as it does."""
from __future__ import annotations

import threading
from typing import Any

from ._library import call, out

_lock = threading.Lock()
_context: Any = None


def the_context() -> Any:
    """The context in which Python's classes of observers and rules are registered; every model is read with it."""
    global _context
    with _lock:
        if _context is None:
            made, place = out("tare_context")
            call("context_create", place)
            _context = made
        return _context

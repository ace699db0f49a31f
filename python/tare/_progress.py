# SPDX-License-Identifier: Apache-2.0
"""Progress bars, by what is installed."""
from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def reporter(wish: Any, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function progress(done, total): the caller's own, a bar of tqdm's or rich's, or None."""
    if not wish or callable(wish):
        yield wish or None
    elif importlib.util.find_spec("tqdm") is not None:
        with importlib.import_module("tqdm.auto").tqdm(desc=what, unit="sample") as bar:
            def tell(done: int, total: int) -> None:
                bar.total = total or None
                bar.update(done - bar.n)
            yield tell
    elif importlib.util.find_spec("rich") is not None:
        with importlib.import_module("rich.progress").Progress() as rich:
            task: Any = rich.add_task(what, total=None)
            yield lambda done, total: rich.update(task, completed=done, total=total or None)
    else:
        yield None

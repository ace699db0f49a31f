from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[[], tuple[Any, list[Any]]]]
PARAMETERS: dict[str, tuple[str, ...]]
STRUCTS: dict[str, Callable[[], list[tuple[str, Any]]] | None]
CALLBACKS: dict[str, Callable[[], Any]]

def t(name: str) -> Any: ...
def __getattr__(name: str) -> Any: ...

# SPDX-License-Identifier: Apache-2.0
"""Changing the graph of a float model, under torch.fx's names: what Graph and Node call."""
from __future__ import annotations

import contextlib
import ctypes
import json
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._dtypes import dtype, qscheme
from ._library import c, call, encode, filled, lib, out, text
from ._names import qualified_name

if TYPE_CHECKING:
    from .graph import Node
    from .model import Model


def written(value: Any) -> Any:
    """An argument as a model file has it."""
    from .graph import Node
    if isinstance(value, Node):
        return {"node": value.name}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple):
        return {"tuple": [written(item) for item in value]}
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[written(key), written(item)] for key, item in value.items()]}
    if isinstance(value, slice):
        return {"slice": [written(value.start), written(value.stop), written(value.step)]}
    if isinstance(value, dtype) or type(value).__name__ == "dtype":
        return {"dtype": str(value)}
    if isinstance(value, qscheme):
        return {"qscheme": str(value)}
    raise TypeError(f"an argument of a node cannot be a {type(value).__name__}")


def _arguments(args: Any, kwargs: Any) -> bytes:
    return json.dumps({"args": [written(item) for item in args],
                       "kwargs": {key: written(value) for key, value in kwargs.items()}}).encode()


def written_arguments(node: Node) -> dict[str, Any]:
    """The arguments of a node as they stand in the file."""
    rows = json.loads(node.model.graph_json())["nodes"]
    return next({"args": row["args"], "kwargs": row["kwargs"]} for row in rows if row["name"] == node.name)


def set_written(node: Node, arguments: dict[str, Any]) -> None:
    """Replaces the arguments of a node."""
    with node.model._changing() as handle:
        call("model_set_arguments", handle, node._handle, json.dumps(arguments).encode())


@contextlib.contextmanager
def inserting(model: Model, before: Node | None) -> Iterator[None]:
    """New nodes are put before that node; None: before the output."""
    if before is not None and (not hasattr(before, "model") or before.model is not model):
        raise ValueError(f"expected a node of this graph, found {before!r}")
    last, model._inserts_before = model._inserts_before, None if before is None else before.name
    try:
        yield
    finally:
        model._inserts_before = last


def _place(model: Model, handle: Any) -> Any:
    if model._inserts_before is None:
        return None
    found = lib.model_find_node(handle, encode(model._inserts_before))
    if not found:
        raise ReferenceError(f"the node '{model._inserts_before}' was erased from its graph")
    return found


def insert_call(model: Model, kind: int, target: Any, args: Any, kwargs: Any, like: Node | None) -> str:
    """Inserts a call; its name."""
    name = qualified_name(target)
    if name is None:
        raise TypeError(f"expected a function or its name, found {target!r}")
    arguments = _arguments(args, kwargs or {})
    made, place = out("tare_node")
    with model._changing() as handle:
        row = filled("tare_new_call", kind=kind, target=encode(name), arguments=arguments)
        if like is not None:
            row.like = like._handle
        call("model_insert_call", handle, ctypes.byref(row), _place(model, handle), place)
    return text(lib.node_name(made))


def insert_tensor(model: Model, value: Any) -> str:
    """Inserts a tensor of the model's own and a node that reads it; the node's name."""
    from ._tensor import Tensor, as_tensor
    tensor = Tensor(as_tensor(value).numpy().copy())
    made, place = out("tare_node")
    with model._changing() as handle:
        call("model_insert_tensor", handle, tensor._handle, _place(model, handle), place)
    return text(lib.node_name(made))


def replace_uses(node: Node, replace_with: Node, wanted: Callable[[Node], bool] | None) -> list[Node]:
    """Lets the readers of a node that are wanted read another one; these readers."""
    users = [user for user in node.users if wanted is None or wanted(user)]
    if wanted is None:
        with node.model._changing() as handle:
            call("model_replace_uses", handle, node._handle, replace_with._handle, None)
    for user in users if wanted is not None else ():
        replace_input(user, node, replace_with)
    return users


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    if isinstance(value, dict):
        return {"node": new} if value == {"node": old} else {key: _replaced(item, old, new) for key, item in value.items()}
    return value


def replace_input(user: Node, old: Node, new: Node) -> None:
    """Lets one reader read another node."""
    if user.op == "output":
        others = [item for item in old.users if item != user]
        if others:
            raise ValueError("the output is changed together with all other readers of its value")
        with user.model._changing() as handle:
            call("model_replace_uses", handle, old._handle, new._handle, None)
        return
    set_written(user, _replaced(written_arguments(user), old.name, new.name))


def erase(node: Node) -> None:
    """Erases a node that nothing reads."""
    with node.model._changing() as handle:
        call("model_erase_node", handle, node._handle)


FUNCTION, METHOD = int(c.TARE_NODE_CALL_FUNCTION), int(c.TARE_NODE_CALL_METHOD)

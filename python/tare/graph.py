# SPDX-License-Identifier: Apache-2.0
"""The graph of a model, node by node, under torch.fx's names."""
from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _edit
from ._dtypes import dtype_at
from ._html import preformatted
from ._library import address, c, encode, lib, text
from ._names import qualified_name

if TYPE_CHECKING:
    from .model import Model, Module
    from ._tensor import Tensor

__all__ = ["Graph", "Node", "Target"]

_OPS = ("placeholder", "get_attr", "call_module", "call_function", "call_method", "output")


class Target(str):
    """What a node calls, by its qualified name. It equals torch's own object of that name, too:
    ``node.target == torch.ops.aten.add.Tensor``."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other)
        name = qualified_name(other)
        return name is not None and str.__eq__(self, name)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)


class Node:
    """One operation of a graph.

    A node belongs to its model. When a model is edited, nodes that were erased raise ReferenceError.

    >>> from tare import load
    >>> model = load("data/digits/digits.safetensors")
    >>> add = model.graph["add"]
    >>> add.op, add.target, add.args
    ('call_function', 'operator.add', (bn4, pool))
    >>> list(add.users), add.prev
    ([relu4], bn4)
    >>> model.graph["conv1"].module.kernel_size
    [3, 3]

    Attributes
    ----------
    model : Model
        The model that the node belongs to.
    name : str
        Unique in the graph.
    """

    __slots__ = ("model", "name", "_pointer", "_generation")

    def __init__(self, model: Model, pointer: Any) -> None:
        self.model: Model = model
        self.name: str = text(lib.node_name(pointer))
        self._pointer = pointer
        self._generation = model._generation

    @property
    def _handle(self) -> Any:
        model_handle = self.model._handle
        if self._generation != self.model._generation:
            found = lib.model_find_node(model_handle, encode(self.name))
            if not found:
                raise ReferenceError(f"the node '{self.name}' was erased from its graph")
            self._pointer, self._generation = found, self.model._generation
        return self._pointer

    def _node(self, pointer: Any) -> Node | None:
        return Node(self.model, pointer) if pointer else None

    @property
    def op(self) -> str:
        """torch's word: "placeholder", "get_attr", "call_module", "call_function", "call_method" or "output"."""
        return _OPS[lib.node_get_kind(self._handle)]

    @property
    def target(self) -> Target:
        """What the node calls or reads, by its qualified name."""
        return Target(text(lib.node_target(self._handle)))

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments: nodes, constants, tuples and lists of them."""
        handle = self._handle
        return tuple(self._argument(lambda i, place: lib.node_argument(handle, i, place), index)
                     for index in range(lib.node_argument_count(handle)))

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        _edit.set_written(self, {**_edit.written_arguments(self), "args": [_edit.written(item) for item in args]})

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments that were given under a keyword."""
        handle, found, index = self._handle, {}, 0
        while (name := lib.node_keyword_name(handle, index)) is not None:
            found[text(name)] = self._argument(lambda key, place: lib.node_keyword(handle, key, place), name)
            index += 1
        return found

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        given = {key: _edit.written(value) for key, value in kwargs.items()}
        _edit.set_written(self, {**_edit.written_arguments(self), "kwargs": given})

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replaces one positional argument.

        Parameters
        ----------
        idx : int
            Which positional argument.
        arg : Node or constant
            Its new value.
        """
        found = _edit.written_arguments(self)
        found["args"][idx] = _edit.written(arg)
        _edit.set_written(self, found)

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Lets the node read another one.

        Parameters
        ----------
        old_input : Node
            Read by this node.
        new_input : Node
            What it reads instead.
        """
        _edit.replace_input(self, old_input, new_input)

    def replace_all_uses_with(self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None) -> list[Node]:
        """Lets the readers of the node read another one, which must stand before them.

        Parameters
        ----------
        replace_with : Node
        delete_user_cb : callable, optional
            Readers for which it is false go on reading this node: ``lambda user: user != replace_with``.

        Returns
        -------
        list of Node
            The readers that changed.
        """
        return _edit.replace_uses(self, replace_with, delete_user_cb)

    def _argument(self, read: Callable[[Any, Any], bool], key: Any) -> Any:
        place = c.t("tare_argument")()
        read(key, ctypes.byref(place))
        return self._value(place)

    def _value(self, argument: Any) -> Any:
        kind = argument.kind
        if kind == c.TARE_ARGUMENT_NODE:
            return self._node(argument.node)
        if kind in (c.TARE_ARGUMENT_LIST, c.TARE_ARGUMENT_DICT, c.TARE_ARGUMENT_SLICE):
            items = [self._argument(lambda i, place: lib.argument_item(ctypes.byref(argument), i, place), index)
                     for index in range(3 if kind == c.TARE_ARGUMENT_SLICE else argument.count)]
            if kind == c.TARE_ARGUMENT_SLICE:
                return slice(*items)
            if kind == c.TARE_ARGUMENT_DICT:
                return dict(zip(items[::2], items[1::2], strict=True))
            return items
        if kind == c.TARE_ARGUMENT_BOOL:
            return bool(argument.boolean)
        if kind == c.TARE_ARGUMENT_INT:
            return int(argument.integer)
        if kind == c.TARE_ARGUMENT_FLOAT:
            return float(argument.real)
        if kind == c.TARE_ARGUMENT_TEXT:
            return text(argument.text)
        if kind == c.TARE_ARGUMENT_DTYPE:
            return dtype_at(argument.dtype)
        return None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The distinct nodes among the arguments."""
        handle = self._handle
        return [Node(self.model, lib.node_input(handle, i)) for i in range(lib.node_input_count(handle))]

    @property
    def users(self) -> dict[Node, None]:
        """The nodes that read this one, in order; a dict, as in torch.fx."""
        handle = self._handle
        return {Node(self.model, lib.node_user(handle, i)): None for i in range(lib.node_user_count(handle))}

    @property
    def next(self) -> Node | None:
        """The next node in execution order; None after the last one."""
        return self._node(lib.node_next(self._handle))

    @property
    def prev(self) -> Node | None:
        """The previous node in execution order; None before the first one."""
        return self._node(lib.node_previous(self._handle))

    @property
    def origin(self) -> str | None:
        """The float model's node that this one computes; None for observers and quantize."""
        found = lib.node_origin(self._handle)
        return None if found is None else text(found)

    @property
    def module(self) -> Module | None:
        """The module that a call_module node calls."""
        from .model import Module
        found = lib.node_module(self.model._handle, self._handle)
        return Module(found, self.model) if found else None

    @property
    def tensor(self) -> Tensor | None:
        """The tensor that a get_attr node reads."""
        from ._tensor import lend
        found = lib.node_tensor(self.model._handle, self._handle)
        return lend(found) if found else None

    @property
    def meta(self) -> Any:
        """What the exporter and quantizers said of the node: a dict with torch's keys."""
        from ._meta import NodeMeta
        return NodeMeta(self)

    @property
    def meta_json(self) -> dict[str, Any]:
        """What the file says of the node besides its arguments."""
        found = lib.node_meta_json(self._handle)
        return {} if found is None else dict(json.loads(text(found)))

    @property
    def debug_handle(self) -> int | None:
        """The number by which torchao's numeric debugger compares values; None where there is none."""
        return lib.node_debug_handle(self._handle) or None

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.name == other.name and self.model is other.model

    def __hash__(self) -> int:
        return hash(self.name)


class Graph:
    """The nodes of a model in execution order; printed as torch prints a graph."""

    __slots__ = ("owning_module",)

    def __init__(self, model: Model) -> None:
        self.owning_module: Model = model

    @property
    def nodes(self) -> _Nodes:
        """The nodes, to be iterated over in either direction."""
        return _Nodes(self.owning_module)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, name: str) -> Node:
        found = lib.model_find_node(self.owning_module._handle, encode(name, "a node's name"))
        if not found:
            raise KeyError(name)
        return Node(self.owning_module, found)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes of one kind, in order.

        Parameters
        ----------
        op : str
            torch's word, such as "call_function".
        target : str or callable, optional
            What they call or read.

        Returns
        -------
        list of Node
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # --- changing it; float models only, such as a quantizer's transform_for_annotation gets ---

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Inside of ``with``, new nodes are put before that node; None: before the output."""
        return _edit.inserting(self.owning_module, n)

    def inserting_after(self, n: Node) -> contextlib.AbstractContextManager[None]:
        """Inside of ``with``, new nodes are put behind that node."""
        return _edit.inserting(self.owning_module, n.next)

    def call_function(self, the_function: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, *,
                      like: Node | None = None) -> Node:
        """Inserts a call of a function or operator of torch.

        Parameters
        ----------
        the_function : callable or str
            torch's own, or its qualified name: "torch.ops.aten.relu.default".
        args, kwargs : tuple, dict
            Nodes that stand before the new one, numbers, texts, dtypes, and containers of them.
        like : Node, optional
            Whose shape, dtype, module and origin the new node takes over.

        Returns
        -------
        Node
            The new one.
        """
        return self[_edit.insert_call(self.owning_module, _edit.FUNCTION, the_function, args, kwargs, like)]

    def call_method(self, method_name: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, *,
                    like: Node | None = None) -> Node:
        """Inserts a call of a tensor's method; args[0] is the tensor. See call_function.

        Parameters
        ----------
        method_name : str
            Such as "view".
        args : tuple
            Nodes and constants; the first is the object.
        kwargs : dict, optional
            By keyword.
        like : Node, optional
            Whose place among the modules it takes.

        Returns
        -------
        Node
            The new one.
        """
        return self[_edit.insert_call(self.owning_module, _edit.METHOD, method_name, args, kwargs, like)]

    def constant(self, value: Any) -> Node:
        """A new node that reads a tensor, which becomes a buffer of the model."""
        return self[_edit.insert_tensor(self.owning_module, value)]

    def erase_node(self, to_erase: Node) -> None:
        """Erases a node that nothing reads."""
        _edit.erase(to_erase)

    def output_node(self) -> Node:
        """The node that returns."""
        return Node(self.owning_module, lib.model_last_node(self.owning_module._handle))

    def __str__(self) -> str:
        return self.owning_module._print(c.TARE_PRINT_NODES)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def _repr_svg_(self) -> str:
        from ._svg import picture
        return picture(list(self.nodes))

    def to_records(self) -> list[dict[str, Any]]:
        """name, op, target, inputs and origin of every node, for pandas.DataFrame.from_records."""
        return [{"name": node.name, "op": node.op, "target": str(node.target),
                 "inputs": ", ".join(source.name for source in node.all_input_nodes), "origin": node.origin}
                for node in self.nodes]

    def to_dot(self) -> str:
        """The graph in the language of graphviz."""
        return self.owning_module._print(c.TARE_PRINT_DOT)


class _Nodes:
    """torch.fx's view of a graph's nodes."""

    __slots__ = ("_model",)

    def __init__(self, model: Model) -> None:
        self._model = model

    def __len__(self) -> int:
        return int(lib.model_node_count(self._model._handle))

    def __iter__(self) -> Iterator[Node]:
        # A node may be erased while its successors are still wanted.
        node = Node(self._model, lib.model_first_node(self._model._handle))
        while node is not None:
            following = node.next
            yield node
            if following is None:
                return
            node = following

    def __reversed__(self) -> Iterator[Node]:
        node: Node | None = Node(self._model, lib.model_last_node(self._model._handle))
        while node is not None:
            yield node
            node = node.prev


def same_pointer(a: Any, b: Any) -> bool:
    """Do two handles point to one object?"""
    return address(a) == address(b)

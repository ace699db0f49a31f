# SPDX-License-Identifier: Apache-2.0
"""Parts of an exported graph: by the modules and functions that they came from, and by patterns written as code."""
from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._errors import UnsupportedError
from ._library import c, call, encode, filled, lib, out, text, texts
from ._names import object_type_name
from .graph import Graph, Node
from .model import Model

__all__ = ["InternalMatch", "SourcePartition", "SubgraphMatcherWithNameNodeMap", "find_sequential_partitions",
           "get_source_partitions", "ready_patterns"]


@dataclass
class SourcePartition:
    """The nodes that one call of a module or function became."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _model_of(given: Any) -> Model:
    if isinstance(given, Graph):
        return given.owning_module
    if isinstance(given, Model):
        return given
    raise TypeError(f"expected a Model or its graph, found {type(given).__name__}")


def _filter(model: Model, filter_fn: Callable[[Node], bool] | None, failures: list[BaseException]) -> Any:
    if filter_fn is None:
        return c.tare_node_filter()

    def allowed(_user: Any, node: Any) -> bool:
        try:
            return bool(filter_fn(Node(model, node)))
        except BaseException as exception:  # pylint: disable=broad-except
            failures.append(exception)
            return False
    return c.tare_node_filter(allowed)


def _names_of(sources: Sequence[Any]) -> dict[str, Any]:
    """torchao compares with functions; default exports say bare names and classes, so both are asked for."""
    return {object_type_name(source): source for source in sources}


def _partition(model: Model, found: Any, names: dict[str, Any]) -> SourcePartition:
    def nodes(kind: str) -> list[Node]:
        array, count = getattr(found, kind + "s"), getattr(found, kind + "_count")
        return [Node(model, array[i]) for i in range(count)]
    source = text(found.source)
    return SourcePartition(nodes("node"), names.get(source, source), nodes("input"), nodes("output"), nodes("param"))


def get_source_partitions(graph: Any, wanted_sources: Sequence[Any],
                          filter_fn: Callable[[Node], bool] | None = None) -> dict[Any, list[SourcePartition]]:
    """The nodes that each call of a module or function became.

    Parameters
    ----------
    graph : Graph or Model
        Of an exported program.
    wanted_sources : sequence of class, function or name
        A default export knows classes and bare names of calls ("add").
    filter_fn : callable, optional
        A node for which it is false drops its partition.

    Returns
    -------
    dict of source to list of SourcePartition
    """
    model, names, failures = _model_of(graph), _names_of(wanted_sources), list[BaseException]()
    made, place = out("tare_partitions")
    kept = _filter(model, filter_fn, failures)
    call("source_partitions", model._handle, texts(names), len(names), kept, None, place)
    try:
        if failures:
            raise failures[0]
        grouped: dict[Any, list[SourcePartition]] = {}
        for row in range(lib.partitions_count(made)):
            found = filled("tare_partition")
            lib.partitions_at(made, row, 0, ctypes.byref(found))
            partition = _partition(model, found, names)
            grouped.setdefault(partition.source, []).append(partition)
        return grouped
    finally:
        lib.partitions_destroy(made)


def find_sequential_partitions(gm: Any, partition_types: Sequence[Any], include_functional_equivalent: bool = True,
                               filter_fn: Callable[[Node], bool] | None = None) -> list[tuple[SourcePartition, ...]]:
    """Chains of partitions, each read by the next.

    Parameters
    ----------
    gm : Model or Graph
        An exported program.
    partition_types : sequence of class, function or name
    include_functional_equivalent : bool
        A type includes its equivalents: "operator.add" for torch.add.
    filter_fn : callable, optional
        A node for which it is false drops its partition.

    Returns
    -------
    list of tuple of SourcePartition
        One tuple for each chain, with a partition for each type.
    """
    model, names, failures = _model_of(gm), _names_of(partition_types), list[BaseException]()
    made, place = out("tare_partitions")
    kept = _filter(model, filter_fn, failures)
    groups: Any = None if include_functional_equivalent else (ctypes.POINTER(ctypes.c_char_p) * 1)()
    call("sequential_partitions", model._handle, texts(names), len(names), groups, 0, kept, None, place)
    try:
        if failures:
            raise failures[0]
        rows = []
        for row in range(lib.partitions_count(made)):
            chain = []
            for column in range(len(names)):
                found = filled("tare_partition")
                lib.partitions_at(made, row, column, ctypes.byref(found))
                chain.append(_partition(model, found, names))
            rows.append(tuple(chain))
        return rows
    finally:
        lib.partitions_destroy(made)


# --- by pattern ---

class InternalMatch:
    """One match of a pattern.

    Attributes
    ----------
    name_node_map : dict
        What stands under each name of the pattern's dictionary: a node, or a literal.
    """

    def __init__(self, name_node_map: dict[str, Any], form: int) -> None:
        self.name_node_map = name_node_map
        self.form = form

    def __repr__(self) -> str:
        return f"InternalMatch(name_node_map={self.name_node_map})"


def _code_of(pattern: Any) -> str:
    """The code of a pattern: a text, or the source of a function, which becomes a `forward`."""
    if isinstance(pattern, str):
        return pattern
    source = textwrap.dedent(inspect.getsource(pattern.forward if hasattr(pattern, "forward") else pattern))
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"expected a function or its code, found {pattern!r}")
    names = [argument.arg for argument in tree.args.args]
    tree.name, tree.decorator_list, tree.returns = "forward", [], None
    for argument in tree.args.args:
        argument.annotation = None
    if not names or names[0] != "self":
        tree.args.args.insert(0, ast.arg(arg="self"))
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    return ast.unparse(tree) + "\n"


def _dictionary_names(code: str) -> list[str]:
    """The names that the code's returned dictionary has."""
    found: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Return) and node.value is not None:
            for item in ast.walk(node.value):
                if isinstance(item, ast.Dict):
                    found += [key.value for key in item.keys
                              if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return found


_READY_NAMES = ("input", "weight", "bias", "stride", "padding", "dilation", "groups", "layer", "norm", "add", "other",
                "activation", "output", "query", "key", "value", "mask", "scores", "softmax", "product", "mul", "matmul")


class SubgraphMatcherWithNameNodeMap:
    """Finds a pattern and names its nodes.

    Parameters
    ----------
    pattern : function, text, or sequence of them
        A function of torch operators that returns ``output, {"name": node, ..}``, written as torch.export would
        see it; its source is read, torch is not needed. Or the code of such a ``forward``; or several forms.
    match_output, match_placeholder, remove_overlapping_matches, ignore_literals : bool
        torch's.
    """

    def __init__(self, pattern: Any, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        self._pointer: Any = None
        forms = list(pattern) if isinstance(pattern, (list, tuple)) else [pattern]
        codes = [_code_of(form) for form in forms]
        options = filled("tare_pattern_options", match_output=bool(match_output),
                         match_placeholder=bool(match_placeholder), ignore_literals=bool(ignore_literals),
                         keeps_overlapping=not remove_overlapping_matches)
        made, place = out("tare_subgraph_pattern")
        call("subgraph_pattern_create", texts(codes), len(codes), ctypes.byref(options), place)
        self._pointer = made
        self._names: Sequence[str] = list(dict.fromkeys(name for code in codes for name in _dictionary_names(code)))

    @classmethod
    def ready(cls, name: str) -> SubgraphMatcherWithNameNodeMap:
        """A ready-made pattern, such as "conv_bn_add_relu" (docs/pt2e.md)."""
        self = cls.__new__(cls)
        self._pointer = None
        made, place = out("tare_subgraph_pattern")
        call("subgraph_pattern_ready", encode(name), place)
        self._pointer, self._names = made, _READY_NAMES
        return self

    def __del__(self, _lib: Any = lib) -> None:  # bound: at the interpreter's end, globals are gone
        if self._pointer:
            _lib.subgraph_pattern_destroy(self._pointer)

    def match(self, graph: Any, node_name_match: str = "") -> list[InternalMatch]:
        """All matches in an exported program.

        Parameters
        ----------
        graph : Model or Graph
        node_name_match : str
            torch's, which takes nodes of such names for any node; only "" is supported.

        Returns
        -------
        list of InternalMatch
            In the order of the graph.

        Raises
        ------
        UnsupportedError
            Where `node_name_match` is given.
        """
        if node_name_match:
            raise UnsupportedError("node_name_match is not supported", "", "write the node into the pattern")
        model = _model_of(graph)
        made, place = out("tare_subgraph_matches")
        call("subgraph_find", self._pointer, model._handle, place)
        try:
            return [self._match(model, made, index) for index in range(lib.subgraph_matches_count(made))]
        finally:
            lib.subgraph_matches_destroy(made)

    def _match(self, model: Model, matches: Any, index: int) -> InternalMatch:
        found: dict[str, Any] = {}
        reader = Node(model, lib.model_first_node(model._handle))
        for name in self._names:
            argument = c.t("tare_argument")()
            if lib.subgraph_match_argument(matches, index, encode(name), ctypes.byref(argument)):
                found[name] = reader._value(argument)
        return InternalMatch(found, lib.subgraph_match_form(matches, index))


def ready_patterns() -> dict[str, str]:
    """The ready-made patterns and what they find; layers take _bn, _add and an activation behind their names."""
    found, row, index = {}, filled("tare_ready_pattern"), 0
    while lib.subgraph_ready_at(index, ctypes.byref(row)):
        found[text(row.name)] = text(row.what)
        index += 1
    return found

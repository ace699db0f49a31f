# SPDX-License-Identifier: Apache-2.0
"""Graphs as pictures for notebooks: one box per node, below all that it reads."""
from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Node

_WIDTH, _HEIGHT, _GAP, _MOST = 220, 34, 26, 400
_FILLS = {"placeholder": "#e8f0fe", "output": "#e8f0fe", "get_attr": "#f1f3f4", "call_module": "#e6f4ea",
          "call_function": "#fef7e0", "call_method": "#fef7e0"}


def _places(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    """Column and row of each node: the row after the last of its inputs, the first column that is free there."""
    rows: dict[str, int] = {}
    taken: dict[int, int] = {}
    found: dict[str, tuple[int, int]] = {}
    for node in nodes:
        row = 1 + max((rows[source.name] for source in node.all_input_nodes if source.name in rows), default=-1)
        rows[node.name] = row
        found[node.name] = taken.get(row, 0), row
        taken[row] = taken.get(row, 0) + 1
    return found


def _box(node: Node, x: int, y: int) -> str:
    module = node.module
    said = module.class_name.rpartition(".")[2] if module is not None else str(node.target)
    said = said.removeprefix("torch.ops.").removeprefix("torch.nn.functional.")
    return (f'<g><title>{html.escape(f"{node.op} {node.target}")}</title>'
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="{_FILLS[node.op]}" stroke="#5f6368"/>'
            f'<text x="{x + 8}" y="{y + 14}" font-weight="bold">{html.escape(node.name[:34])}</text>'
            f'<text x="{x + 8}" y="{y + 28}">{html.escape(said[:34])}</text></g>')


def picture(nodes: Sequence[Node]) -> str:
    """An SVG of the first nodes of a graph, as many as one can look at."""
    shown = list(nodes)[:_MOST]
    places = {name: (12 + column * (_WIDTH + _GAP), 12 + row * (_HEIGHT + _GAP))
              for name, (column, row) in _places(shown).items()}
    lines, boxes = [], []
    for node in shown:
        x, y = places[node.name]
        boxes.append(_box(node, x, y))
        for source in node.all_input_nodes:
            if source.name in places:
                from_x, from_y = places[source.name]
                lines.append(f'<line x1="{from_x + _WIDTH // 2}" y1="{from_y + _HEIGHT}" x2="{x + _WIDTH // 2}" y2="{y}"/>')
    right = max((x for x, _ in places.values()), default=0) + _WIDTH + 12
    bottom = max((y for _, y in places.values()), default=0) + _HEIGHT + 12
    rest = len(nodes) - len(shown)
    if rest:
        boxes.append(f'<text x="12" y="{bottom + 8}">and {rest} more nodes</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom + (20 if rest else 0)}" '
            f'font-family="sans-serif" font-size="11"><g stroke="#9aa0a6">{"".join(lines)}</g>{"".join(boxes)}</svg>')

# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """An HTML table of some columns."""
    from html import escape  # with the names of all characters: imported when there is a table
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_said(row.get(name)))}</td>" for name in columns) + "</tr>"
                   for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _said(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def preformatted(text: str) -> str:
    """A text as it is."""
    from html import escape
    return f"<pre>{escape(text)}</pre>"

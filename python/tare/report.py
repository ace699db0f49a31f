# SPDX-License-Identifier: Apache-2.0
"""Reports: why a model is as it is, how far it is from another one, how fast it runs."""
from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._html import table
from ._library import c, call, encode_or_null, filled, lib, out, text, write_text
from ._tensor import adopt, as_tensor, handles
from .model import Model
from .session import Session

__all__ = ["BenchResult", "Comparison", "Explanation", "bench", "compare", "explain", "preview"]


class Explanation(str):
    """What each operator became, and why: text, with the record as data.

    Attributes
    ----------
    record : dict
        operators, decisions, nodes and edges, as `tare explain --json` prints them.
    """

    record: dict[str, Any]

    def to_records(self) -> list[dict[str, Any]]:
        """The operators as rows, for pandas.DataFrame.from_records."""
        return list(self.record["operators"])

    def _repr_html_(self) -> str:
        rows = self.to_records()
        return table(rows, [name for name in (rows[0] if rows else {}) if not isinstance(rows[0][name], (list, dict))])


def explain(model: Model, node: str | None = None) -> Explanation:
    """Why each operator of the float model was quantized as it is.

    Parameters
    ----------
    model : Model
        Prepared or converted.
    node : str, optional
        This operator alone, with every decision about it.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from tare import load, prepare_fx
    >>> prepared = prepare_fx(load("data/digits/digits.safetensors"), backend_config="x86")
    >>> [row["name"] for row in explain(prepared).to_records()][:2]
    ['conv1', 'bn1']
    """
    name = encode_or_null(node, "a node's name")
    with model._reading() as handle:
        words = write_text(lambda write: call("model_explain", handle, name, write, None))
        data = write_text(lambda write: call("model_explain_json", handle, name, write, None))
    made = Explanation(words.rstrip("\n"))
    made.record = json.loads(data)
    return made


def preview(model: Model) -> dict[str, Any]:
    """What a prepared model will become, before it is calibrated: float islands, conversions, reasons."""
    with model._reading() as handle:
        return dict(json.loads(write_text(lambda write: call("model_preview", handle, True, write, None))))


class Comparison:
    """How far two models are from each other, value by value.

    Attributes
    ----------
    rows : list of dict
        One per matched node: handle, reference_node, node, target, element_count, signal, reference, noise,
        max_abs_error, mse, sqnr_db.
    outputs : list of dict
        The same of the models' outputs: index, mse, max_abs_error, sqnr_db, and agreement, the share of samples
        whose largest value is at the same place (for outputs [N, C]; else None).
    """

    def __init__(self, rows: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.outputs = outputs

    def to_records(self) -> list[dict[str, Any]]:
        """The rows, for pandas.DataFrame.from_records."""
        return self.rows

    def _repr_html_(self) -> str:
        return table([row for row in self.rows if row["element_count"]],
                     ["reference_node", "node", "sqnr_db", "mse", "max_abs_error", "element_count"])

    def worst(self) -> dict[str, Any] | None:
        """The row with the lowest signal-to-noise ratio."""
        rows = [row for row in self.rows if row["element_count"]]
        return min(rows, key=lambda row: float(row["sqnr_db"]), default=None)

    def __str__(self) -> str:
        width = max([4, *(len(row["node"]) for row in self.rows)])
        lines = [f"{'node':{width}}  {'SQNR dB':>8}  {'MSE':>11}  {'max error':>11}"]
        lines += [f"{row['node']:{width}}  {row['sqnr_db']:8.2f}  {row['mse']:11.4g}  {row['max_abs_error']:11.4g}"
                  for row in self.rows if row["element_count"]]
        for row in self.outputs:
            share = "" if row["agreement"] is None else f", same class {row['agreement']:.2%}"
            lines.append(f"output {row['index']}: SQNR {row['sqnr_db']:.2f} dB, MSE {row['mse']:.4g}, "
                         f"largest error {row['max_abs_error']:.4g}{share}")
        return "\n".join(lines)

    __repr__ = __str__


class _Errors:
    """Sums over the values of one output."""

    def __init__(self) -> None:
        self.signal = self.noise = self.largest = 0.0
        self.count = self.same = self.samples = 0

    def add(self, reference: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> None:
        expected, actual = reference.astype(np.float64), found.astype(np.float64)
        error = actual - expected
        self.signal += float(np.sum(actual * actual))
        self.noise += float(np.sum(error * error))
        self.largest = max(self.largest, float(np.max(np.abs(error), initial=0.0)))
        self.count += error.size
        if expected.ndim == 2 and expected.shape[1] > 1:
            self.same += int(np.sum(expected.argmax(1) == actual.argmax(1)))
            self.samples += expected.shape[0]

    def row(self, index: int) -> dict[str, Any]:
        ratio = 10 * np.log10(self.signal / self.noise) if self.noise and self.signal else \
            (np.inf if not self.noise else -np.inf)
        return {"index": index, "mse": self.noise / self.count if self.count else 0.0, "max_abs_error": self.largest,
                "sqnr_db": float(ratio), "agreement": self.same / self.samples if self.samples else None}


def batches_of(data: Any) -> Iterator[tuple[Any, ...]]:
    """Batches from an iterable of arrays, tuples of arrays or dicts; an array is one batch."""
    if hasattr(data, "__array__") or hasattr(data, "__dlpack__"):
        yield (data,)
        return
    for batch in data:
        if isinstance(batch, dict):
            yield tuple(batch.values())
        elif isinstance(batch, (tuple, list)) and not np.isscalar(batch[0] if batch else 0):
            yield tuple(batch)
        else:
            yield (batch,)


def compare(reference: Model, model: Model, data: Iterable[Any], *, threads: int = 0,
            by_origin: bool = False) -> Comparison:
    """Runs both models on the same data and compares every value that both compute.

    Parameters
    ----------
    reference, model : Model
        The float model, and what was made of it.
    data : iterable
        Batches: arrays, or tuples of one array per input.
    threads : int
        Of both sessions.
    by_origin : bool
        Matches nodes by the float model's names although both models have debug handles.

    Returns
    -------
    Comparison
    """
    made, place = out("tare_debug_comparison")
    options = filled("tare_debug_options", thread_count=threads, by_origin=bool(by_origin))
    errors: list[_Errors] = []
    with reference._reading() as a, model._reading() as b:
        call("debug_comparison_create", a, b, ctypes.byref(options), place)
        try:
            for batch in batches_of(data):
                _compare_batch(made, batch, errors)
            rows = _comparison_rows(made)
        finally:
            lib.debug_comparison_destroy(made)
    return Comparison(rows, [found.row(i) for i, found in enumerate(errors)])


def _compare_batch(comparison: Any, batch: tuple[Any, ...], errors: list[_Errors]) -> None:
    tensors = [as_tensor(item) for item in batch]
    room = 256
    sides = []
    for _ in range(2):
        side = c.t("tare_debug_outputs")()
        side.tensors, side.capacity = (ctypes.POINTER(c.tare_tensor) * room)(), room
        sides.append(side)
    call("debug_compare", comparison, handles(tensors), len(tensors), ctypes.byref(sides[0]), ctypes.byref(sides[1]))
    found = [[adopt(side.tensors[i]) for i in range(side.count)] for side in sides]
    while len(errors) < len(found[0]):
        errors.append(_Errors())
    for row, expected, actual in zip(errors, *found, strict=True):
        row.add(expected.to_float().numpy(), actual.to_float().numpy())


def _comparison_rows(comparison: Any) -> list[dict[str, Any]]:
    rows = []
    for index in range(lib.debug_comparison_row_count(comparison)):
        row = filled("tare_debug_row")
        lib.debug_comparison_row(comparison, index, ctypes.byref(row))
        rows.append({name: text(getattr(row, name)) if name in ("reference_node", "node", "target") else
                     getattr(row, name) for name, _ in row._fields_[1:]})
    return rows


class BenchResult(dict[str, Any]):
    """Times of runs in microseconds: median_us, lower_us, upper_us (quartiles), runs, threads, isa, samples."""

    def __str__(self) -> str:
        return (f"{self['median_us']:.1f} us (quartiles {self['lower_us']:.1f} to {self['upper_us']:.1f}), "
                f"{self['runs']} runs, {self['threads']} threads, {self['isa']}")


def bench(model: Model, *inputs: Any, seconds: float = 1.0, threads: int = 0) -> BenchResult:
    """Times runs of a model.

    Parameters
    ----------
    model : Model
        In any stage that runs.
    *inputs : array_like
        One per input. Default: standard-normal numbers of the shapes that the model was exported with.
    seconds : float
        How long to run, after two runs that do not count.
    threads : int
        Threads of the session.

    Returns
    -------
    BenchResult
    """
    import statistics  # it takes longer to import than most of tare

    from .data import example_inputs
    from .session import isa_name
    tensors = [as_tensor(item) for item in (inputs or example_inputs(model))]
    times: list[int] = []
    with Session(model, threads=threads) as session:
        for _ in range(2):
            session.run(*tensors)
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter_ns()
            session.run(*tensors)
            times.append(time.perf_counter_ns() - begin)
        count = session.thread_count
    times.sort()
    return BenchResult(median_us=statistics.median(times) / 1e3, lower_us=times[len(times) // 4] / 1e3,
                       upper_us=times[3 * len(times) // 4] / 1e3, runs=len(times), threads=count, isa=isa_name())

# SPDX-License-Identifier: Apache-2.0
"""How good a model is on labelled data, here or on a cluster."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .data import Data, Progress
from .model import Model
from .report import batches_of
from .session import Session

__all__ = ["evaluate"]

Metric = Callable[[Any, Any], dict[str, float]]


def count_correct(outputs: Any, labels: Any) -> dict[str, float]:
    """The samples whose largest output [N, C] is at the label, and of those whose label is among the largest five."""
    while isinstance(outputs, dict | list | tuple) and len(outputs) == 1:
        (outputs,) = outputs.values() if isinstance(outputs, dict) else outputs
    scores, wanted = np.asarray(outputs), np.asarray(labels).reshape(-1)
    if scores.ndim != 2 or len(scores) != len(wanted):
        raise ValueError(f"expected outputs [N, C] and N labels, found shapes {scores.shape} and {wanted.shape}: pass a metric")
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    return {"correct": int((best[:, 0] == wanted).sum()), "correct_top5": int((best == wanted[:, None]).any(1).sum())}


def _labelled(data: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(inputs, labels) of each batch."""
    if isinstance(data, Data):
        for read in data:
            if read.labels is None:
                raise ValueError("expected labelled data, found none: see docs/data.md for the forms that have labels")
            yield read.inputs, read.labels
        return
    for batch in batches_of(data):
        if len(batch) < 2:
            raise ValueError(f"expected batches of inputs and labels, found {len(batch)} arrays")
        yield batch[:-1], batch[-1]


def sums_of(model: Model, data: Any, metric: Metric | None, threads: int, report: Progress | None = None) -> dict[str, float]:
    """The metric's numbers and "samples", summed over the batches."""
    sums: dict[str, float] = {"samples": 0}
    with Session(model, threads=threads) as session:
        for index, (inputs, labels) in enumerate(_labelled(data)):
            found = (metric or count_correct)(session.run(*inputs), labels)
            for name, value in {"samples": int(np.shape(labels)[0]), **found}.items():
                sums[name] = sums.get(name, 0) + value
            if report is not None:
                report(index + 1, 0)
    return sums


def evaluate(model: Model, dataset: Any, *, metric: Metric | None = None, client: Any = None, shards: int | None = None,
             threads: int = 0, batch_size: int = 0, sample_limit: int = 0,
             progress: Progress | bool | None = None) -> dict[str, float]:
    """Runs a model over labelled data.

    Parameters
    ----------
    model : Model
        In any stage that runs.
    dataset : str, path, Data or iterable
        A spec of files with labels (docs/data.md), or batches: tuples of the inputs and the labels.
    metric : callable, optional
        metric(outputs, labels) returns a dict of numbers, which are summed over the batches. Default: how many samples
        have their largest output, or one of the five largest, at the label.
    client : distributed.Client, optional
        The workers of a Dask cluster share the work; a lost worker's shard is done again.
    shards : int, optional
        With a client: into how many tasks the data is divided. Default: four per worker.
    threads : int
        Of each session.
    batch_size, sample_limit : int
        For specs of files.
    progress : callable or bool, optional
        As calibrate has it.

    Returns
    -------
    dict of str to number
        "samples" and the sums; by default also "accuracy" and "accuracy_top5".

    Raises
    ------
    ValueError
        Where there is no batch, or no label for each output.
    """
    from ._progress import reporter
    with reporter(progress, "evaluate") as report:
        if client is not None:
            from .distributed import evaluate_shards
            parts: Iterable[dict[str, float]] = evaluate_shards(
                model, dataset, client, metric=metric, shards=shards, threads=threads, batch_size=batch_size,
                sample_limit=sample_limit, progress=report)
        else:
            if isinstance(dataset, (str, os.PathLike)):
                dataset = Data(dataset, model, batch_size=batch_size, sample_limit=sample_limit)
            parts = [sums_of(model, dataset, metric, threads, report)]
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums.get(name, 0) + value
    if not sums.get("samples"):
        raise ValueError("expected at least one batch, found none")
    if metric is None:
        sums.update({f"accuracy{end}": sums[f"correct{end}"] / sums["samples"] for end in ("", "_top5")})
    return sums

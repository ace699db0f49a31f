# SPDX-License-Identifier: Apache-2.0
"""Calibration and evaluation by many machines: shards of the data on the workers of a Dask cluster.

A shard is a task. What comes back is its state file, or its sums, so that a worker that dies costs one shard, which
Dask does again elsewhere.
"""
from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ._library import call, integer
from .data import Data, _calibrate_batches, _calibrate_data, load_calibration, merge_calibrations, save_calibration
from .model import Model, loads
from .report import batches_of

__all__ = ["calibrate_shards", "evaluate_shards"]

Part = tuple[str, Any]  # ("spec", (spec, batch_size, sample_limit, index, count)) or ("batches", (index, list))


def _parts(dataset: Any, client: Any, shards: int | None, batch_size: int, sample_limit: int) -> list[Part]:
    """The data in shards: every n-th batch. More of them than workers, so that fast ones do more."""
    workers = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
    count = 4 * workers if shards is None else integer(shards)
    if count < 1:
        raise ValueError(f"expected at least one shard, found {count}")
    if isinstance(dataset, Data):
        raise TypeError("expected the spec of the data, which every worker opens, found a Data that is open here")
    if isinstance(dataset, (str, os.PathLike)):
        return [("spec", (os.fspath(dataset), batch_size, sample_limit, index, count)) for index in range(count)]
    batches = list(batches_of(dataset))
    return [("batches", (index, batches[index::count])) for index in range(min(count, len(batches)))]


def _open(part: Part, model: Model) -> Any:
    """The batches of a shard: a Data, or a list."""
    kind, given = part
    if kind == "batches":
        return given[1]
    spec, batch_size, sample_limit, index, count = given
    return Data(spec, model, batch_size=batch_size, sample_limit=sample_limit, shard_index=index, shard_count=count, finite=True)


def _calibrate_shard(model: bytes, part: Part, threads: int) -> tuple[bytes, int]:
    """On a worker: the state file of one shard, and its samples."""
    prepared = loads(model)
    data = _open(part, prepared)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "state.safetensors")
        if isinstance(data, Data):
            count = _calibrate_data(prepared, data, threads, None, None, False)
        else:
            if part[1][0] > 0:  # what the model has seen before counts for the first shard
                with prepared._changing() as handle:
                    call("calibration_clear", handle)
            count = _calibrate_batches(prepared, data, None)
        save_calibration(prepared, path, count)
        return path.read_bytes(), count


def _results(client: Any, function: Callable[..., Any], model: Model, parts: Sequence[Part], arguments: tuple[Any, ...],
             name: str, progress: Callable[[int, int], None] | None) -> list[Any]:
    """Of all shards, in their order."""
    import distributed  # type: ignore[import-not-found,unused-ignore]
    as_completed: Any = distributed.as_completed
    data = model.__reduce__()[1][0]
    sent = client.scatter(data, broadcast=True, hash=False)
    futures = [client.submit(function, sent, part, *arguments, key=f"{name}-{index}-{id(data):x}", pure=False, retries=2)
               for index, part in enumerate(parts)]
    try:
        for done, future in enumerate(as_completed(futures)):
            future.result()  # raises at the first failure
            if progress is not None:
                progress(done + 1, len(parts))
        return list(client.gather(futures))
    finally:
        client.cancel(futures)


def calibrate_shards(prepared: Model, dataset: Any, client: Any, *, shards: int | None = None, threads: int = 0,
                     batch_size: int = 0, sample_limit: int = 0,
                     progress: Callable[[int, int], None] | None = None) -> int:
    """calibrate(.., client=..): the merged state is that of one process, to the byte."""
    with prepared._reading() as handle:
        call("calibration_check_mergeable", handle)
    parts = _parts(dataset, client, shards, batch_size, sample_limit)
    found = _results(client, _calibrate_shard, prepared, parts, (threads,), "tare-calibrate", progress)
    counted = [(state, count) for state, count in found if count]
    if not counted:
        raise ValueError("expected at least one batch, found none")
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder, f"{index}.safetensors") for index in range(len(counted))]
        for path, (state, _) in zip(paths, counted, strict=True):
            path.write_bytes(state)
        merged = pathlib.Path(folder, "merged.safetensors")
        merge_calibrations(paths, merged)
        load_calibration(prepared, merged)
    return sum(count for _, count in counted)


def _evaluate_shard(model: bytes, part: Part, metric: Any, threads: int) -> dict[str, float]:
    """On a worker: the sums of one shard."""
    from .evaluation import sums_of
    ready = loads(model)
    return sums_of(ready, _open(part, ready), metric, threads)


def evaluate_shards(model: Model, dataset: Any, client: Any, *, metric: Any = None, shards: int | None = None,
                    threads: int = 0, batch_size: int = 0, sample_limit: int = 0,
                    progress: Callable[[int, int], None] | None = None) -> list[dict[str, float]]:
    """The sums of all shards, in their order."""
    parts = _parts(dataset, client, shards, batch_size, sample_limit)
    return _results(client, _evaluate_shard, model, parts, (metric, threads), "tare-evaluate", progress)

# SPDX-License-Identifier: Apache-2.0
"""Data: batches from files, calibration over data sets, states of calibration."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from ._context import the_context
from ._library import c, call, encode, encode_or_null, filled, guarded, integer, lib, out, texts
from ._tensor import Tensor, lend
from .model import Model
from .preprocess import Preprocess

__all__ = ["Batch", "Data", "calibrate", "calibrate_state", "load_calibration", "merge_calibrations",
           "save_calibration"]

Progress = Callable[[int, int], None]


class Batch:
    """One batch.

    Attributes
    ----------
    inputs : tuple of Tensor
        One per input; dimension 0 is the batch.
    labels : Tensor or None
    size : int
        Samples.
    """

    __slots__ = ("inputs", "labels", "size")
    inputs: tuple[Tensor, ...]
    labels: Tensor | None
    size: int

    def __init__(self, inputs: tuple[Tensor, ...], labels: Tensor | None, size: int) -> None:
        self.inputs, self.labels, self.size = inputs, labels, size


class Data:
    """Batches of a model's inputs from files: arrays, tables, pictures.

    Parameters
    ----------
    spec : path-like
        As the command line has it: FILE.npz, FILE.csv, a folder of pictures, ``random:64``, .. (docs/data.md).
    model : Model
        Whose inputs they are. It must stay open.
    batch_size, sample_limit : int
        0: as many as there are.
    shard_index, shard_count : int
        Reads every shard_count-th batch only.
    finite : bool
        Infinities are errors.
    hold_out : int
        Samples to hold back, an eighth of all at most, so that a check sees what calibration did not.
    held_out : bool
        Reads those samples instead of the others.
    preprocess : Preprocess or what makes one, optional
        Of pictures, in place of the one that the model declares.
    """

    def __init__(self, spec: str | os.PathLike[str], model: Model, *, batch_size: int = 0, sample_limit: int = 0,
                 shard_index: int = 0, shard_count: int = 0, finite: bool = False, hold_out: int = 0,
                 held_out: bool = False, preprocess: Any = None) -> None:
        steps = preprocess if preprocess is None or isinstance(preprocess, Preprocess) else Preprocess(preprocess)
        options = filled("tare_data_options", batch_size=integer(batch_size), sample_limit=integer(sample_limit),
                         shard_index=integer(shard_index), shard_count=integer(shard_count), is_finite=bool(finite),
                         hold_out=integer(hold_out), is_held_out=bool(held_out))
        if steps is not None:
            options.preprocess = steps._handle
        self._pointer: Any = None
        made, place = out("tare_data")
        with model._reading() as handle:
            call("data_open", encode(spec, "a path"), handle, ctypes.byref(options), place)
        self._pointer, self._model = made, model

    def __del__(self, _lib: Any = lib) -> None:  # bound: at the interpreter's end, globals are gone
        if self._pointer:
            _lib.data_close(self._pointer)

    def close(self) -> None:
        """Closes the files."""
        pointer, self._pointer = self._pointer, None
        if pointer:
            lib.data_close(pointer)

    @property
    def _handle(self) -> Any:
        if not self._pointer:
            raise ReferenceError("the data was closed")
        return self._pointer

    def __iter__(self) -> Iterator[Batch]:
        call("data_rewind", self._handle)
        batch, done = filled("tare_batch"), ctypes.c_bool()
        while True:
            call("data_next", self._handle, ctypes.byref(batch), ctypes.byref(done))
            if done.value:
                return
            inputs = tuple(_copy(batch.inputs[i]) for i in range(batch.input_count))
            yield Batch(inputs, _copy(batch.labels) if batch.labels else None, batch.size)

    @property
    def held_out_count(self) -> int:
        """How many samples are held out; 0 where there are too few."""
        return int(lib.data_held_out_count(self._handle))

    def __len__(self) -> int:
        """The number of samples; 0 where it is not known without reading everything."""
        return int(lib.data_sample_count(self._handle))


def _copy(handle: Any) -> Tensor:
    """The library fills the next batch where this one is."""
    return Tensor(np.array(lend(handle).numpy()))


def calibrate(prepared: Model, dataset: Any, *, threads: int = 0, resume: str | os.PathLike[str] | None = None,
              progress: Progress | bool | None = None, lenient: bool = False, batch_size: int = 0,
              sample_limit: int = 0, client: Any = None, shards: int | None = None) -> int:
    """Runs a prepared model over a data set; its observers watch.

    Parameters
    ----------
    prepared : Model
        Of either flow.
    dataset : str, path, Data or iterable
        A spec of files (docs/data.md), or an iterable of batches: arrays, tuples of arrays, or dicts.
    threads : int
        At work; the statistics do not depend on the number where samples are independent.
    resume : path-like, optional
        The file for an unfinished state; the work continues from it. For specs of files.
    progress : callable or bool, optional
        Called as progress(done, total) after every batch; True: a bar by tqdm or rich, where installed.
    lenient : bool
        Accepts infinities.
    batch_size, sample_limit : int
        For specs of files; 0: as many as there are.
    client : distributed.Client, optional
        The workers of a Dask cluster share the work. The statistics are those of one process, to the byte; observers
        that depend on the order of the data cannot be shared. A lost worker's shard is done again.
    shards : int, optional
        With a client: into how many tasks the data is divided. Default: four per worker.

    Returns
    -------
    int
        The number of samples.

    Raises
    ------
    ValueError
        Where there is no batch, or `resume` or `lenient` goes with a client.
    """
    from ._progress import reporter
    with reporter(progress, "calibrate") as report:
        if client is not None:
            if resume is not None or lenient:
                raise ValueError("resume and lenient are for calibration by one process")
            from .distributed import calibrate_shards
            return calibrate_shards(prepared, dataset, client, shards=shards, threads=threads, batch_size=batch_size,
                                    sample_limit=sample_limit, progress=report)
        if isinstance(dataset, (str, os.PathLike)):
            dataset = Data(dataset, prepared, batch_size=batch_size, sample_limit=sample_limit, finite=not lenient)
        if isinstance(dataset, Data):
            return _calibrate_data(prepared, dataset, threads, resume, report, lenient)
        return _calibrate_batches(prepared, dataset, report)


def _calibrate_batches(prepared: Model, dataset: Iterable[Any], report: Progress | None) -> int:
    from .report import batches_of
    count = 0
    total = len(dataset) if isinstance(dataset, Sized) else 0
    for index, batch in enumerate(batches_of(dataset)):
        prepared.calibrate(*batch)
        shape = np.shape(batch[0]) if batch else ()
        count += shape[0] if shape else 1
        if report is not None:
            report(index + 1, total)
    if count == 0:
        raise ValueError("expected at least one batch, found none")
    return count


def _calibrate_data(prepared: Model, data: Data, threads: int, resume: Any, report: Progress | None,
                    lenient: bool) -> int:
    options = filled("tare_calibrate_options", thread_count=threads, is_lenient=bool(lenient))
    options.resume_path = encode_or_null(resume)
    if report is not None:
        options.progress = c.tare_progress(guarded(3, lambda _user, done, total, _error: report(done, total)))
    count = ctypes.c_int64()
    with prepared._changing() as handle:
        call("calibrate_data", handle, data._handle, ctypes.byref(options), ctypes.byref(count))
    return int(count.value)


def save_calibration(prepared: Model, path: str | os.PathLike[str], sample_count: int, data: Data | None = None) -> None:
    """Writes what the observers have seen; see calibrate_state for the command line's state files.

    Parameters
    ----------
    prepared : Model
        Calibrated.
    path : path-like
        The state file to write.
    sample_count : int
        Samples that it has seen.
    data : Data, optional
        Where they came from, for a later resume.
    """
    with prepared._reading() as handle:
        call("calibration_write", handle, data._handle if data is not None else None, integer(sample_count),
             encode(path, "a path"))


def load_calibration(prepared: Model, path: str | os.PathLike[str]) -> dict[str, int]:
    """Replaces the statistics of the model by those of a state file.

    Parameters
    ----------
    prepared : Model
        Gets the statistics.
    path : path-like
        A state file of the same prepared model.

    Returns
    -------
    dict of str to int
        The fields of ``tare_calibration_info``: the number of samples, ..
    """
    info = filled("tare_calibration_info")
    with prepared._changing() as handle:
        call("calibration_read", handle, encode(path, "a path"), ctypes.byref(info))
    return {name: int(getattr(info, name)) for name, _ in info._fields_[1:]}


def merge_calibrations(paths: Sequence[str | os.PathLike[str]], out_path: str | os.PathLike[str]) -> dict[str, int]:
    """Joins state files of one model into one; to the byte what undivided data gives, where observers merge.

    Parameters
    ----------
    paths : sequence of path-like
        State files of all shards.
    out_path : path-like
        The file to write: as one process would have written it.

    Returns
    -------
    dict of str to int
        The fields of ``tare_calibration_info``: the number of samples, ..
    """
    info = filled("tare_calibration_info")
    call("calibration_merge", the_context(), texts(paths), len(paths),
         encode(out_path, "a path"), ctypes.byref(info))
    return {name: int(getattr(info, name)) for name, _ in info._fields_[1:]}


def calibrate_state(prepared: Model, spec: str | os.PathLike[str], path: str | os.PathLike[str], *,
                    shard_index: int = 0, shard_count: int = 0, batch_size: int = 0, sample_limit: int = 0,
                    threads: int = 0) -> int:
    """Calibrates with one shard of the data and writes a state file; returns the number of samples.

    Parameters
    ----------
    prepared : Model
        It is not changed.
    spec : str or path-like
        The data, as for ``Data``.
    path : path-like
        The state file to write.
    shard_index, shard_count : int
        Reads every shard_count-th batch only.
    batch_size, sample_limit : int
        0: as the data is; all of it.
    threads : int
        0: one for each core.

    Returns
    -------
    int
        The number of samples.
    """
    data = Data(spec, prepared, batch_size=batch_size, sample_limit=sample_limit, shard_index=shard_index,
                shard_count=shard_count, finite=True)
    count = _calibrate_data(prepared, data, threads, None, None, False)
    save_calibration(prepared, path, count, data)
    return count


def shapes_of(model: Model, side: str) -> list[dict[str, Any]]:
    """Name, dtype and shape of each input or output, as far as they are known before a run."""
    from ._dtypes import dtype_at
    from ._library import text
    made, place = out("tare_shapes")
    rows = []
    with model._reading() as handle:
        call("shapes_infer", handle, None, 0, place)
        try:
            info = filled("tare_tensor_info")
            for index in range(getattr(lib, f"shapes_{side}_count")(made)):
                getattr(lib, f"shapes_{side}")(made, index, ctypes.byref(info))
                shape = tuple(info.shape[:info.ndim]) if info.ndim >= 0 else None
                rows.append({"name": text(info.name), "dtype": dtype_at(info.dtype), "shape": shape})
        finally:
            lib.shapes_destroy(made)
    return rows


def example_inputs(model: Model, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """One sample of standard-normal numbers per input, of the shapes that the model knows."""
    generator = np.random.default_rng(seed)
    made = []
    for row in shapes_of(model, "input"):
        if row["shape"] is None:
            raise ValueError(f"the shape of input '{row['name']}' is not known: pass the inputs")
        if row["dtype"] is not None and str(row["dtype"]) != "torch.float32":
            raise ValueError(f"input '{row['name']}' is {row['dtype']}: pass the inputs")
        shape = [1 if size < 0 else size for size in row["shape"]]
        made.append(generator.standard_normal(shape, dtype=np.float32))
    return made

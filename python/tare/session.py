# SPDX-License-Identifier: Apache-2.0
"""Sessions: the runs of a model."""
from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _native
from ._library import address, c, call, encode, encode_or_null, filled, guarded, lib, out, text, write_text
from ._tensor import Tensor, adopt, as_tensor, handles, lend
from .model import Model

__all__ = ["Session", "isa_name"]


def isa_name() -> str:
    """The instruction set level in use: "scalar", "avx2", "avxvnni", "avx512vnni", "amxint8", "neon", .."""
    return text(lib.isa_name())


class Session(_native.Session):
    """Runs a model. The interpreter's lock is released meanwhile.

    A session has one caller at a time: a second call from another thread raises InvalidArgumentError. Any number
    of sessions may share one model. A session is a context manager; `close` stops its threads.

    Parameters
    ----------
    model : Model
        It stays alive and unchanged while the session is open.
    threads : int
        Threads that share the work, the caller included.
    reference : bool
        Runs by the operators' references only, for comparison.
    portable_floats : bool
        Float layers by tare's own code: slower, with bits that do not depend on the machine.
    bfloat16 : bool
        Lets float layers round weights and inputs to bfloat16 where that is faster.
    tune : bool
        Times the kernels of equal bits for each layer when a plan is made, and uses the fastest.
    tune_cache : path-like, optional
        The file that keeps these times between sessions.
    affinity : str, optional
        The CPUs of the threads: "0,2-5".
    spin_us : int
        Microseconds that an idle thread spins before it sleeps; 0: the default, -1: none.
    memory_bytes : int
        The most that the results of a run may take at a time; 0: the default.
    """

    model: Model | None

    def __new__(cls, model: Model, *, threads: int = 0, reference: bool = False, portable_floats: bool = False,
                bfloat16: bool = False, tune: bool = False, tune_cache: str | os.PathLike[str] | None = None,
                affinity: str | None = None, spin_us: int = 0, memory_bytes: int = 0,
                _is_own: bool = False) -> Session:
        if not isinstance(model, Model):
            raise TypeError(f"expected a Model, found {type(model).__name__}")
        options = filled("tare_session_options", thread_count=threads, reference=bool(reference),
                         portable_floats=bool(portable_floats), bfloat16=bool(bfloat16), tunes=bool(tune),
                         spin_us=spin_us, memory_bytes=memory_bytes)
        options.tune_cache, options.affinity = encode_or_null(tune_cache), encode_or_null(affinity)
        made, reference_of = out("tare_session")
        if _is_own:
            call("session_create", model._handle, ctypes.byref(options), reference_of)
        else:
            with model._reading() as handle:
                call("session_create", handle, ctypes.byref(options), reference_of)
                model._sessions += 1
        self = _native.Session.__new__(cls, address(made), None if _is_own else model)
        assert isinstance(self, Session)
        self.model = None if _is_own else model
        self._lock = threading.Lock()
        self._watcher = None
        self._nesting = None
        return self

    _lock: threading.Lock
    _watcher: Any
    _nesting: Any  # how outputs nest: a position, or an object of tare_session_write_nesting; None: not known

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # pylint: disable=broad-except
            pass  # it never became a session

    def close(self) -> None:
        """Stops the threads and frees the session. RuntimeError while it runs in another thread."""
        if self.closed:
            return
        self._close()
        if self.model is not None:
            with self.model._lock:
                self.model._sessions -= 1
            self.model = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        is_free = self._lock.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._lock.release()

    @property
    def _handle(self) -> Any:
        return ctypes.cast(self._address, ctypes.POINTER(c.tare_session))

    def run(self, *inputs: Any, **named: Any) -> Any:
        """Runs the model once.

        Parameters
        ----------
        *inputs : array_like
            One per input of the model. Arrays whose elements are in row-major order are read where they are.
        **named : array_like
            Inputs by name.

        Returns
        -------
        numpy.ndarray, Tensor, or tuples, lists, dicts and named tuples of them
            What the model returns, nested as the model returns it. Objects of other classes are dicts of their
            fields, or tuples, where the fields are not known; where the program does not say how it nests, a tuple of
            all. Quantized outputs are Tensors. Arrays are not copied: they hold the library's memory.
        """
        if named and self.model is not None:
            inputs = self.model._in_order(inputs, named)
        outputs = self._run(*inputs)
        nesting = self._nesting
        if nesting is None:
            nesting = self._read_nesting()
        if nesting is None:
            return outputs
        return outputs[0] if nesting == 0 else _nested(nesting, outputs)

    def _read_nesting(self) -> Any:
        """How the outputs of the latest run nest; kept unless it says numbers, which may be of that run alone."""
        told = write_text(lambda write: call("session_write_nesting", self._handle, write, None))
        nesting = json.loads(told)
        if '"value"' not in told:
            self._nesting = nesting
        return nesting

    __call__ = run

    def run_named(self, inputs: Mapping[str, Any], outputs: list[str] | None = None) -> dict[str, Any]:
        """Runs the model on inputs by name.

        Parameters
        ----------
        inputs : mapping of str to array_like
            In any order; those with defaults at the model's end may be left out.
        outputs : list of str, optional
            The wanted outputs; all by default.

        Returns
        -------
        dict of str to numpy.ndarray or Tensor
            The outputs by name; quantized ones are `Tensor`.
        """
        wanted = list(self.output_names if outputs is None else outputs)
        tensors = [as_tensor(value) for value in inputs.values()]
        names = (ctypes.c_char_p * max(len(tensors), 1))(*[encode(name) for name in inputs])
        output_names = (ctypes.c_char_p * max(len(wanted), 1))(*[encode(name) for name in wanted])
        results = (ctypes.POINTER(c.tare_tensor) * max(len(wanted), 1))()
        call("session_run_named", self._handle, names, handles(tensors), len(tensors), output_names, results,
             len(wanted))
        return {name: _as_array(adopt(result)) for name, result in zip(wanted, results, strict=False)}

    def run_into(self, inputs: list[Any], outputs: list[Tensor]) -> None:
        """Runs the model into tensors that an earlier run handed out as Tensors, without allocating.

        Parameters
        ----------
        inputs : list of array_like
            One per input.
        outputs : list of Tensor
            Of the outputs' dtype, shape and parameters. They must not be shared.

        Raises
        ------
        TypeError
            For outputs that are no `Tensor`.
        """
        tensors = [as_tensor(item) for item in inputs]
        for item in outputs:
            if not isinstance(item, Tensor):
                raise TypeError(f"expected a Tensor, found {type(item).__name__}")
        call("session_run_into", self._handle, handles(tensors), len(tensors), handles(outputs), len(outputs))

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        handle = self._handle
        return tuple(text(lib.session_output_name(handle, i)) for i in range(lib.session_output_count(handle)))

    @property
    def thread_count(self) -> int:
        """The number of threads that share the work."""
        return int(lib.session_thread_count(self._handle))

    def watch(self, watcher: Callable[[str, Tensor | None], None] | None) -> None:
        """Calls `watcher(node, result)` after every node of later runs, which then use the interpreter.

        Parameters
        ----------
        watcher : callable or None
            An exception ends the run and comes out of it. It must not call the session.
        """
        if watcher is None:
            lib.session_watch(self._handle, c.tare_node_watcher(), None)
            self._watcher = None
            return

        def tell(_user: Any, node: bytes, result: Any, _error: Any) -> None:
            watcher(text(node), lend(result) if result else None)

        kept = c.tare_node_watcher(guarded(3, tell))
        lib.session_watch(self._handle, kept, None)
        self._watcher = kept

    # --- what a run consists of ---

    def reset(self) -> None:
        """Gives the tensors that runs have written over (a decoder's cache) the values that the model has."""
        call("session_reset", self._handle)

    def profile(self, on: bool = True) -> None:
        """Switches the timing of steps on or off, and clears earlier times."""
        call("session_profile", self._handle, bool(on))

    def steps(self) -> list[dict[str, Any]]:
        """The steps of the latest run's plan: kinds, nodes, shapes, kernels, and times where profiling is on."""
        handle, rows = self._handle, []
        for index in range(lib.session_step_count(handle)):
            step = filled("tare_step")
            if not lib.session_get_step(handle, index, ctypes.byref(step)):
                break
            rows.append(_step_row(step))
        return rows

    def nested_steps(self) -> list[dict[str, Any]]:
        """The steps of the graphs that operators of control flow run.

        Returns
        -------
        list of dict
            As those of ``steps``, with the path of the graph as ``graph``. Times are those of one round, and part of the time of the
            step that runs the graph.
        """
        rows: list[dict[str, Any]] = []
        step, path = filled("tare_step"), ctypes.c_char_p()
        while lib.session_get_nested_step(self._handle, len(rows), ctypes.byref(step), ctypes.byref(path)):
            rows.append({**_step_row(step), "graph": text(path.value)})
            step = filled("tare_step")
        return rows

    def memory(self) -> dict[str, int] | None:
        """The memory of the latest run's plan; None where there is no plan."""
        made = filled("tare_plan_memory")
        if not lib.session_get_memory(self._handle, ctypes.byref(made)):
            return None
        return {name: int(getattr(made, name)) for name, _ in made._fields_[1:]}

    def places(self) -> list[dict[str, Any]]:
        """Where each value of the plan lies in its block, and which steps write and read it."""
        rows, index = [], 0
        place = filled("tare_plan_place")
        while lib.session_get_place(self._handle, index, ctypes.byref(place)):
            rows.append({name: getattr(place, name) for name, _ in place._fields_[1:]})
            index += 1
        return rows


@functools.lru_cache(maxsize=64)
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """A class as the model's own named tuple; names that Python does not take are replaced."""
    return collections.namedtuple(name if name.isidentifier() else "Outputs", fields, rename=True)


def _nested(nesting: Any, outputs: tuple[Any, ...]) -> Any:
    """The outputs in the containers that `nesting` describes."""
    if isinstance(nesting, int):
        return outputs[nesting]
    if "value" in nesting:
        return nesting["value"]
    kind, keys = nesting["type"], nesting.get("keys")
    items = [_nested(item, outputs) for item in nesting["items"]]
    if kind == "list":
        return items
    if kind == "tuple" or keys is None:
        return tuple(items)
    if kind == "namedtuple":
        return _tuple_class(nesting.get("name", "").rpartition(".")[2], tuple(keys))(*items)
    return dict(zip(keys, items, strict=True))


def _step_row(step: Any) -> dict[str, Any]:
    row: dict[str, Any] = {name: text(getattr(step, name)) for name in ("kind", "node", "op", "kernel", "why")}
    row["nodes"] = [text(step.nodes[i]) for i in range(step.node_count)]
    row["input_shape"] = tuple(step.input_shape[:max(step.input_ndim, 0)])
    row["output_shape"] = tuple(step.output_shape[:max(step.output_ndim, 0)])
    for name in ("input_bytes", "output_bytes", "weight_bytes", "macs", "multiplies_codes", "bits_may_differ",
                 "run_count", "lower_ns", "median_ns", "upper_ns"):
        row[name] = getattr(step, name)
    return row


def _as_array(tensor: Tensor) -> Any:
    if tensor.is_quantized:
        return tensor
    try:
        return tensor.numpy()
    except BufferError:
        return tensor

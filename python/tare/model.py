# SPDX-License-Identifier: Apache-2.0
"""Models: read, write, look at, run and calibrate."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _names
from ._context import the_context
from ._errors import NotFoundError
from ._html import preformatted
from ._library import c, call, encode, filled, guarded, integer, lib, out, text, write_text
from ._tensor import Tensor, adopt, as_tensor, handles, lend
from .graph import Graph
from .preprocess import Preprocess, declare, declared

__all__ = ["Decision", "Model", "Module", "load", "loads", "save"]

_STAGES = ("float", "fused", "prepared", "reference", "lowered")


class Module:
    """A module of a model: constructor values, tensors, children. What is lent belongs to the model."""

    __slots__ = ("_pointer", "_keeper", "_owned", "_writable")

    def __init__(self, pointer: Any, keeper: Any, owned: bool = False, writable: bool = False) -> None:
        self._pointer = pointer
        self._keeper = keeper
        self._owned = owned
        self._writable = owned or writable

    def __del__(self, _lib: Any = lib) -> None:  # bound: at the interpreter's end, globals are gone
        if self._owned and self._pointer:
            _lib.module_release(self._pointer)

    @property
    def _handle(self) -> Any:
        if not self._pointer:
            raise ReferenceError("the module was lent for a call that has ended")
        if isinstance(self._keeper, Model):
            self._keeper._handle  # raises if it is closed
        return self._pointer

    @classmethod
    def create(cls, class_name: str, **children: Module) -> Module:
        """A new module of a class, for a fuser to return.

        Parameters
        ----------
        class_name : str
            Its qualified name.
        **children : Module
            Its children, in order; ``fuse`` numbers them.

        Returns
        -------
        Module
            It may be changed until it is handed over.
        """
        made, place = out("tare_module")
        call("module_create", the_context(), encode(class_name, "a class"), place)
        module = cls(made, None, owned=True)
        for name, child in children.items():
            module.set_child(name, child)
        return module

    @classmethod
    def fuse(cls, class_name: str, *modules: Module) -> Module:
        """A new fused module that holds others, as torch's intrinsic modules do.

        Parameters
        ----------
        class_name : str
            Its qualified name.
        *modules : Module
            Its children, in order.

        Returns
        -------
        Module
        """
        return cls.create(class_name, **{str(i): module for i, module in enumerate(modules)})

    def set_child(self, name: str, child: Module) -> None:
        """Sets a child of a module that this program has made.

        Parameters
        ----------
        name : str
            One name, without dots.
        child : Module
            Kept by this one.
        """
        self._check_own()
        call("module_set_child", self._handle, encode(name), child._handle)

    def set_tensor(self, name: str, tensor: Any) -> None:
        """Sets a parameter of a module that this program has made; None registers None.

        Parameters
        ----------
        name : str
            Of the parameter or buffer.
        tensor : array_like or None
            It is copied only where its elements are not in row-major order.
        """
        self._check_own()
        copied = None if tensor is None else Tensor(as_tensor(tensor).numpy().copy())  # alive during the call
        call("module_set_tensor", self._handle, encode(name), None if copied is None else copied._handle)

    def set_value(self, name: str, value: int | float) -> None:
        """Sets a constructor value of a module that this program has made.

        Parameters
        ----------
        name : str
            A constructor's value.
        value : bool, int, float or str
        """
        self._check_own()
        if isinstance(value, int):
            call("module_set_config_int", self._handle, encode(name), integer(value))
        else:
            call("module_set_config_double", self._handle, encode(name), float(value))

    def copy_values(self, other: Module) -> None:
        """Copies all constructor values of another module."""
        self._check_own()
        call("module_copy_config", self._handle, other._handle)

    def _check_own(self) -> None:
        if not self._writable:
            raise TypeError("modules of a model are read-only; Module.create makes a new one")

    @property
    def class_name(self) -> str:
        """The qualified name of the class: ``"torch.nn.Conv2d"``."""
        return text(lib.module_class_name(self._handle))

    @property
    def training(self) -> bool:
        """Is the module in training mode?"""
        return bool(lib.module_is_training(self._handle))

    @property
    def config(self) -> dict[str, Any]:
        """The constructor's values, by name."""
        from .graph import Node
        handle, found, index = self._handle, {}, 0
        reader = Node.__new__(Node)
        while (key := lib.module_config_key(handle, index)) is not None:
            place = c.t("tare_argument")()
            lib.module_config(handle, key, ctypes.byref(place))
            found[text(key)] = reader._value(place)
            index += 1
        return found

    def state(self) -> dict[str, Tensor]:
        """Its own parameters and buffers, by name, without copies."""
        handle, found, index = self._handle, {}, 0
        while (name := lib.module_tensor_name(handle, index)) is not None:
            tensor = lib.module_tensor(handle, name)
            if tensor:
                found[text(name)] = lend(tensor)
            index += 1
        return found

    def children(self) -> dict[str, Module]:
        """Its direct children, by name."""
        handle, found, index = self._handle, {}, 0
        while (name := lib.module_child_name(handle, index)) is not None:
            child = lib.module_child(handle, name)
            if child:
                found[text(name)] = Module(child, self._keeper)
            index += 1
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        handle = self._handle
        tensor = lib.module_tensor(handle, encode(name))
        if tensor:
            return lend(tensor)
        child = lib.module_child(handle, encode(name))
        if child:
            return Module(child, self._keeper)
        config = self.config
        if name in config:
            return config[name]
        raise AttributeError(f"'{self.class_name}' has no tensor, child or value '{name}'")

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value!r}" for key, value in self.config.items())
        return f"{self.class_name.rpartition('.')[2]}({values})"


class Decision(dict[str, str]):
    """One row of a model's record: pass, node, subject, decision, rule, reason."""

    def __str__(self) -> str:
        return f"{self['node']}: {self['decision']}: {self['reason']}"


class Model:
    """A model in any stage of the flow.

    ``print(model)`` and ``print(model.graph)`` give torch's text. Any number of threads may read a model and run
    sessions of it; what changes it (calibration, setters) must be alone, and raises RuntimeError where it is not.

    A model is called like torch's module. A prepared one is calibrated by that: its observers see the batch.

    >>> model = load("data/digits/digits.safetensors")
    >>> model.stage, model.input_names, len(model.graph)
    ('float', ('x',), 19)
    >>> model.state_dict()["conv1.weight"].shape
    (48, 1, 3, 3)
    >>> model.facts()["parameter_count"]
    102938
    """

    def __init__(self, handle: Any, *, keeper: Any = None, lent: bool = False) -> None:
        self._pointer = handle
        self._keeper = keeper  # bytes and contexts that the model needs
        self._lent = lent
        self._generation = 0
        self._inserts_before: str | None = None  # where the graph's new nodes go
        self._lock = threading.Lock()
        self._readers = 0
        self._sessions = 0
        self._is_changing = False
        self._session: Any = None

    def __del__(self, _lib: Any = lib) -> None:
        self._session = None
        if getattr(self, "_pointer", None) and not self._lent:
            _lib.model_destroy(self._pointer)
            self._pointer = None

    # --- use by several threads ---

    @property
    def _handle(self) -> Any:
        if not self._pointer:
            raise ReferenceError("the model was closed" if not self._lent else
                                 "the model was lent for a call that has ended")
        return self._pointer

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._lock:
            if self._is_changing:
                raise RuntimeError("the model is being changed in another thread")
            handle = self._handle
            self._readers += 1
        try:
            yield handle
        finally:
            with self._lock:
                self._readers -= 1

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Any]:
        with self._lock:
            if self._lent:  # the flow has lent it to a callback, which is alone
                handle, alone = self._handle, False
            else:
                if self._is_changing or self._readers:
                    raise RuntimeError("the model is in use in another thread")
                if self._sessions:
                    raise RuntimeError("the model has sessions, which must be closed before it changes")
                handle, alone = self._handle, True
                self._session = None
                self._is_changing = True
        try:
            yield handle
        finally:
            self._generation += 1
            if alone:
                with self._lock:
                    self._is_changing = False

    def close(self) -> None:
        """Frees the model now; later uses raise ReferenceError. Sessions must be closed."""
        with self._changing() as handle:
            self._pointer = None
        if not self._lent:
            lib.model_destroy(handle)

    def _expire(self) -> None:
        self._pointer = None

    # --- looking at it ---

    def _print(self, form: int) -> str:
        with self._reading() as handle:
            return write_text(lambda write: call("model_print", handle, form, write, None))

    def __str__(self) -> str:
        return self._print(c.TARE_PRINT_MODEL).rstrip("\n")

    def __repr__(self) -> str:
        return self._print(c.TARE_PRINT_MODEL).partition("\n\ndef forward")[0].rstrip("\n")

    @property
    def code(self) -> str:
        """The graph as Python code, as torch writes it."""
        return "\n\n" + "def forward" + self._print(c.TARE_PRINT_MODEL).partition("def forward")[2]

    @property
    def graph(self) -> Graph:
        """The graph, node by node."""
        return Graph(self)

    def graph_json(self) -> str:
        """The graph as it stands in a model file."""
        return self._print(c.TARE_PRINT_JSON)

    @property
    def stage(self) -> str:
        """Where in the flow the model is: "float", "fused", "prepared", "reference" or "lowered"."""
        with self._reading() as handle:
            return _STAGES[lib.model_get_stage(handle)]

    @property
    def training(self) -> bool:
        """Is the model in training mode?"""
        with self._reading() as handle:
            return bool(lib.model_is_training(handle))

    @property
    def preprocess(self) -> Preprocess | None:
        """How pictures become the model's input, kept in its file; None where nothing is declared.

        Setting takes a ``Preprocess`` or what makes one. Passes copy it, so that calibrating, running and comparing
        see the same tensors.
        """
        with self._reading() as handle:
            return declared(handle)

    @preprocess.setter
    def preprocess(self, given: Any) -> None:
        with self._changing() as handle:
            declare(handle, given)

    @property
    def is_exported(self) -> bool:
        """Does the graph call aten operators, as programs of torch.export do? Quantizers annotate such models."""
        with self._reading() as handle:
            return bool(lib.model_is_exported(handle))

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the graph's inputs."""
        with self._reading() as handle:
            return tuple(text(lib.model_input_name(handle, i)) for i in range(lib.model_input_count(handle)))

    def state_dict(self) -> dict[str, Tensor]:
        """All tensors that torch's state_dict would list, under its names.

        Returns
        -------
        dict
            Parameters, buffers and, of a prepared model, the statistics of its observers. Only the statistics are
            copies. What torch lists as one packed object is not there.
        """
        found: dict[str, Tensor] = {}
        for name in filter(None, self._print(c.TARE_PRINT_STATE).split("\n")):
            made, place = out("tare_tensor")
            with contextlib.suppress(NotFoundError), self._reading() as handle:
                call("model_state_tensor", handle, encode(name), place)
                found[name] = adopt(made)
        return found

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Every module that a node calls, and those inside of it, with its path."""
        seen = set()
        for node in self.graph.nodes:
            if node.op != "call_module" or node.target in seen or (module := node.module) is None:
                continue
            seen.add(str(node.target))
            stack = [(str(node.target), module)]
            while stack:
                path, module = stack.pop()
                yield path, module
                stack += [(f"{path}.{name}", child) for name, child in reversed(module.children().items())]

    def get_submodule(self, path: str) -> Module:
        """The module at a path ("layer1.0.conv1").

        Returns
        -------
        Module

        Raises
        ------
        AttributeError
            Where the model has none there, as in torch.
        """
        for found, module in self.named_modules():
            if found == path:
                return module
        raise AttributeError(f"the model has no module '{path}'")

    def facts(self) -> dict[str, int]:
        """Sizes: weight_bytes, parameter_count, quantized_weight_bytes."""
        with self._reading() as handle:
            made = filled("tare_model_facts")
            call("model_get_facts", handle, ctypes.byref(made))
        return {name: int(getattr(made, name)) for name, _ in made._fields_[1:]}

    # --- the record ---

    def decisions(self) -> list[Decision]:
        """What every pass decided at every node, and why."""
        with self._reading() as handle:
            rows = []
            for index in range(lib.model_decision_count(handle)):
                row = filled("tare_decision")
                call("model_decision_at", handle, index, ctypes.byref(row))
                rows.append(Decision({"pass" if name == "pass" else name: text(getattr(row, name))
                                      for name, _ in row._fields_[1:]}))
            return rows

    def coverage(self) -> dict[str, int]:
        """How much of the model is computed in integers, counted over the operators of the float model."""
        with self._reading() as handle:
            made = filled("tare_coverage")
            call("model_coverage", handle, ctypes.byref(made))
        return {name: int(getattr(made, name)) for name, _ in made._fields_[1:]}

    def verify(self) -> dict[str, int]:
        """Packs the weights of a packed file again and compares.

        Returns
        -------
        dict
            digest_count: tensors that were held against the file's digests when it was read; packed_count: packed
            weights that are, to the byte, what packing gives.

        Raises
        ------
        MalformedFileError
            With the weights that differ.
        """
        made = filled("tare_model_verified")
        with self._reading() as handle:
            call("model_verify", handle, ctypes.byref(made))
        return {name: int(getattr(made, name)) for name, _ in made._fields_[1:]}

    def islands(self) -> list[dict[str, Any]]:
        """The nodes with the islands that they are in: connected groups of integers or of floats.

        Returns
        -------
        list of dict
            name, subject, kind, island (the index of its first node, or None), operators (of the float model), inputs.
        """
        rows: list[dict[str, Any]] = []

        def visit(_user: Any, _index: int, node: Any, _error: Any) -> None:
            row = node.contents
            rows.append({"name": text(row.name), "subject": text(row.subject), "kind": text(row.kind),
                         "island": row.island if row.island != ctypes.c_size_t(-1).value else None,
                         "operators": [text(row.operators[i]) for i in range(row.operator_count)],
                         "inputs": [row.inputs[i] for i in range(row.input_count)]})
        with self._reading() as handle:
            call("model_visit_islands", handle, c.tare_island_visitor(guarded(3, visit)), None)
        return rows

    # --- running ---

    def _in_order(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All inputs as the graph has them; those at the end may be missing."""
        names = self.input_names
        found = dict(zip(names, inputs, strict=False))
        for name, value in named.items():
            if name not in names or name in found:
                wrong = "multiple values for argument" if name in found else "an unexpected keyword argument"
                raise TypeError(f"got {wrong} '{name}': the inputs are {', '.join(names)}")
            found[name] = value
        if missing := [name for name in names[:len(found)] if name not in found]:
            raise TypeError(f"missing input '{missing[0]}'")
        return (*(found[name] for name in names[:len(found)]), *inputs[len(names):])

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        from .session import Session
        if named:
            inputs = self._in_order(inputs, named)
        if self.stage == "prepared":
            self.calibrate(*inputs)
            with Session(self) as once:
                return once.run(*inputs)
        with self._reading():
            session = self._session
            if session is None:
                session = self._session = Session(self, _is_own=True)
            with session._alone() as is_free:
                if is_free:
                    return session.run(*inputs)
            with Session(self) as other:  # another thread runs the first one
                return other.run(*inputs)

    def calibrate(self, *inputs: Any, **named: Any) -> None:
        """Shows one batch to the observers of a prepared model.

        Parameters
        ----------
        *inputs : array_like
            One array per input; those at the end that have defaults may be left out.
        **named : array_like
            Inputs by name.
        """
        tensors = [as_tensor(item) for item in self._in_order(inputs, named)]
        with self._changing() as handle:
            call("calibrate", handle, handles(tensors), len(tensors))

    def train(self, mode: bool = True) -> Model:
        """Sets training mode, or evaluation mode, of the model and its modules; returns the model."""
        with self._changing() as handle:
            call("model_set_training", handle, bool(mode))
        return self

    def eval(self) -> Model:
        """Sets evaluation mode; returns the model."""
        return self.train(False)

    def _switch(self, function: str, value: Any) -> Model:
        with self._changing() as handle:
            call(function, handle, value)
        return self

    def enable_observer(self, enabled: bool = True) -> Model:
        """Switches the observers inside of fake quantizers on or off; returns the model."""
        return self._switch("model_enable_observer", bool(enabled))

    def disable_observer(self) -> Model:
        """Switches the observers inside of fake quantizers off; returns the model."""
        return self.enable_observer(False)

    def enable_fake_quant(self, enabled: bool = True) -> Model:
        """Switches the rounding of fake quantizers on or off; returns the model."""
        return self._switch("model_enable_fake_quant", bool(enabled))

    def disable_fake_quant(self) -> Model:
        """Switches the rounding of fake quantizers off; returns the model."""
        return self.enable_fake_quant(False)

    def apply(self, function: Callable[[Model], Any]) -> Model:
        """Calls function(model) and returns the model: ``model.apply(tare.disable_observer)``, as in torch."""
        function(self)
        return self

    def freeze_bn_stats(self, frozen: bool = True) -> Model:
        """Freezes the statistics of batch norms in QAT convolutions, or lets them follow the batches again; returns the model."""
        return self._switch("model_freeze_bn_stats", bool(frozen))

    def generate_debug_handles(self) -> Model:
        """Numbers the values, as torchao's generate_numeric_debug_handle does."""
        with self._changing() as handle:
            call("debug_handles_generate", handle)
        return self

    def check_requests(self) -> None:
        """Raises UnsupportedError where a node stays float although a selector of the qconfig mapping names it."""
        with self._reading() as handle:
            call("model_check_requests", handle)

    def to_torch(self) -> Any:
        """The float or prepared model as a torch.nn.Module, to be trained by any loop of torch.

        Its fake quantizers compute what tare's do, to the bit, on every device, and pass gradients straight through.
        state_dict has torch's names. ``tare.from_torch`` takes the module back, trained; convert goes on from there.

        Returns
        -------
        torch.fx.GraphModule
            With copies of all tensors, on the CPU, in the model's mode.

        Raises
        ------
        UnsupportedError
            For models of integers, and classes that torch does not have.
        """
        from .torch_graph import build
        return build(self)

    # --- files ---

    def save(self, path: str | os.PathLike[str], *, packed: bool = False) -> None:
        """Writes the model with its stage, statistics and decisions.

        The ending chooses the format: .onnx and .pt2 are those formats, everything else is tare's own.

        Parameters
        ----------
        path : path-like
            The file; it is written under a temporary name and renamed at the end.
        packed : bool
            Also writes the weights in the order of the kernels: twice the size, and sessions start at once.
        """
        name = encode(path, "a path")
        with self._reading() as handle:
            if name.endswith(b".onnx"):
                call("model_write_onnx", handle, name, None)
            elif name.endswith(b".pt2"):
                call("model_write_pt2", handle, name)
            else:
                call("model_write_packed" if packed else "model_write", handle, name)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        import pathlib  # both take longer to import than most of tare
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.safetensors")
            self.save(path)
            return loads, (path.read_bytes(),)

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def _repr_svg_(self) -> str:
        return self.graph._repr_svg_()


def _read_options(dims: Mapping[str, int] | None, shapes: Mapping[str, Sequence[int]] | None,
                  ignore_digests: bool, copy: bool, memory_bytes: int | None) -> tuple[Any, list[Any]]:
    options, keep = filled("tare_model_read_options"), []
    if dims:
        rows = (c.t("tare_dim_size") * len(dims))()
        for row, (name, size) in zip(rows, dims.items(), strict=True):
            row.name, row.size = encode(name), integer(size)
        options.dims, options.dim_count = rows, len(dims)
        keep.append(rows)
    if shapes:
        given = input_shapes(shapes)
        options.shapes, options.shape_count = given[0], len(shapes)
        keep.append(given)
    if memory_bytes is not None:
        limits = filled("tare_read_limits", memory_bytes=integer(memory_bytes))
        options.limits = ctypes.pointer(limits)
        keep.append(limits)
    options.ignores_digests, options.copies_file = bool(ignore_digests), bool(copy)
    return options, keep


def input_shapes(shapes: Mapping[str, Sequence[int]]) -> tuple[Any, list[Any]]:
    """An array of tare_input_shape, and what it points to."""
    rows, keep = (c.t("tare_input_shape") * max(len(shapes), 1))(), []
    for row, (name, shape) in zip(rows, shapes.items(), strict=False):
        sizes = (ctypes.c_int64 * max(len(shape), 1))(*[integer(size) for size in shape])
        row.input, row.ndim, row.shape = encode(name), len(shape), sizes
        keep.append(sizes)
    return rows, keep


def load(path: str | os.PathLike[str], *, dims: Mapping[str, int] | None = None,
         shapes: Mapping[str, Sequence[int]] | None = None, ignore_digests: bool = False, copy: bool = False,
         memory_bytes: int | None = None) -> Model:
    """Reads a model: tare's own format, a program of torch.export (.pt2), or ONNX, told apart by their bytes.

    Parameters
    ----------
    path : path-like
        The file. Weights are mapped: it must not change while the model lives, unless `copy` is set.
    dims : dict of str to int, optional
        Sizes that an ONNX file names instead of giving a number.
    shapes : dict of str to sequence of int, optional
        Shapes of inputs, where the file has none or leaves sizes open.
    ignore_digests : bool
        Reads a file although its contents do not match its digests.
    copy : bool
        Copies the file into memory instead of mapping it.
    memory_bytes : int, optional
        The most memory that reading may take.

    Returns
    -------
    Model
        In the stage that the file says; a float model from other formats without quantize nodes.

    Raises
    ------
    MalformedFileError
        With the byte, the JSON path, the node or the tensor.
    """
    options, keep = _read_options(dims, shapes, ignore_digests, copy, memory_bytes)
    made, reference = out("tare_model")
    call("model_read_with", encode(path, "a path"), the_context(),
         ctypes.byref(options), reference)
    del keep
    return Model(made)


def loads(data: Any, *, ignore_digests: bool = False) -> Model:
    """Reads a model from bytes in memory, which are copied.

    Parameters
    ----------
    data : bytes-like
        What a file would hold.
    ignore_digests : bool
        Reads although the contents do not match the digests.

    Returns
    -------
    Model
        As `load` gives it.
    """
    view = bytes(data)
    options, _ = _read_options(None, None, ignore_digests, True, None)
    made, reference = out("tare_model")
    call("model_read_memory", view, len(view), the_context(),
         ctypes.byref(options), reference)
    return Model(made)


def enable_observer(mod: Model) -> None:
    """Switches the observers inside of fake quantizers on."""
    mod.enable_observer()


def disable_observer(mod: Model) -> None:
    """Switches the observers inside of fake quantizers off."""
    mod.disable_observer()


def enable_fake_quant(mod: Model) -> None:
    """Switches the rounding of fake quantizers on."""
    mod.enable_fake_quant()


def disable_fake_quant(mod: Model) -> None:
    """Switches the rounding of fake quantizers off."""
    mod.disable_fake_quant()


def save(model: Model, path: str | os.PathLike[str], *, packed: bool = False) -> None:
    """Writes a model; see Model.save.

    Parameters
    ----------
    model : Model
    path : path-like
        The ending chooses the format: .safetensors, .pt2 or .onnx.
    packed : bool
        Also writes the weights in the order of the kernels.
    """
    model.save(path, packed=packed)


def class_of(module: Any) -> str:
    """The qualified class name of one of tare's modules or of a class."""
    return module.class_name if isinstance(module, Module) else _names.class_name(module)



# SPDX-License-Identifier: Apache-2.0
"""Accuracy: which layers cost how much of it and why, and passes over prepared models that win it back."""
from __future__ import annotations

import contextlib
import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ._errors import CLASSES, InternalError
from ._html import table
from ._library import c, call, encode, encode_or_null, filled, guarded, integer, lib, out, text
from ._tensor import as_tensor, handles, lend
from .data import Data, Progress
from .flow import convert_fx, convert_pt2e, convert_to_reference_fx, lower_pt2e
from .model import Model

__all__ = ["Analysis", "Improvement", "analyze", "clip_weights", "correct_biases", "equalize_layers", "improve",
           "improvement_steps", "never_slower", "quantize_dynamically", "replace_observers", "rotate_layers", "round_weights",
           "scale_inputs", "weights_per_channel", "widen_weights"]

# A trial of the ladder that is refused (UNSUPPORTED, INVALID_ARGUMENT) is one that is not kept; a callback that
# raises something else ends the whole.
_ENDS = CLASSES.index(InternalError)

Quantize = Callable[[Model, Sequence[tuple[str, str, str]], bool], Model]


# --- what the functions share ---

@contextlib.contextmanager
def _opened(dataset: Any, model: Model) -> Iterator[Any]:
    """The handle of data: of a Data, of a spec of files, or of batches, which become a file."""
    if isinstance(dataset, Data):
        yield dataset._handle
        return
    with contextlib.ExitStack() as stack:
        if not isinstance(dataset, (str, os.PathLike)):
            import tempfile  # it takes longer to import than most of tare
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            dataset = _write_batches(os.path.join(folder, "batches.npz"), dataset, model)
        data = Data(dataset, model)
        stack.callback(data.close)
        yield data._handle


def _write_batches(path: str, batches: Any, model: Model) -> str:
    from .report import batches_of
    rows = [[np.asarray(item) for item in batch] for batch in batches_of(batches)]
    names = model.input_names
    if not rows:
        raise ValueError("expected at least one batch, found none")
    for row in rows:
        if len(row) != len(names):
            raise ValueError(f"expected batches of {len(names)} arrays, one per input, found {len(row)}")
    arrays = {name: np.concatenate(parts) for name, *parts in zip(names, *rows, strict=True)}
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return path


def _quantizer_of(prepared: Model, given: Quantize | None, backend_config: Any, engine: str | None) -> Quantize:
    """The caller's own way of quantizing, or that of the model's flow."""
    if given is not None:
        if backend_config is not None or engine is not None:
            raise ValueError("backend_config and engine are for the built-in way to quantize: leave them out, or quantize")
        return given
    with prepared._reading() as handle:
        is_exported = bool(lib.model_is_prepared_pt2e(handle))

    def quantize(model: Model, float_nodes: Sequence[tuple[str, str, str]], as_reference: bool) -> Model:
        if is_exported:
            converted = convert_pt2e(model, fold_quantize=not as_reference, float_nodes=float_nodes)
            return converted if as_reference else lower_pt2e(converted, engine=engine)
        if as_reference:
            return convert_to_reference_fx(model, backend_config=backend_config, float_nodes=float_nodes)
        return convert_fx(model, backend_config=backend_config, engine=engine, float_nodes=float_nodes)
    return quantize


def _rows_of(choices: Any, count: int) -> list[tuple[str, str, str]]:
    return [(text(choices[i].node), text(choices[i].rule), text(choices[i].reason)) for i in range(count)]


def _hand_over(made: Any, place: Any, keepers: list[Any]) -> None:
    """Gives a model that a callback made to the library."""
    if not isinstance(made, Model):
        raise TypeError(f"expected a quantized Model, found {type(made).__name__}")
    if made._lent:
        raise ValueError("expected a new model, found the one that was to be quantized")
    with made._changing() as handle:
        made._pointer = None
    keepers.append(made._keeper)
    place[0] = handle


@contextlib.contextmanager
def _lent(handle: Any, keeper: Any) -> Iterator[Model]:
    model = Model(handle, keeper=keeper, lent=True)
    try:
        yield model
    finally:
        model._expire()


def _progress(report: Progress | None) -> Any:
    return c.tare_progress() if report is None else \
        c.tare_progress(guarded(3, lambda _user, done, total, _error: report(done, total), _ENDS))


def _fields(struct: Any) -> dict[str, Any]:
    """A struct of numbers and texts as a dict."""
    return {name: text(value) if kind is ctypes.c_char_p else value for name, kind in struct._fields_[1:]
            for value in [getattr(struct, name)]}


# --- analysis ---

class Analysis:
    """What quantization costs, layer by layer.

    Attributes
    ----------
    verdict : dict
        Of the outputs: sample_count, sqnr_db, cosine, max_abs_error, and, for classes, agreeing_count, float_correct
        and quantized_correct.
    layers : list of dict
        In the order of the graph: node, float_node, op, local_db, weights_db, activations_db, cumulative_db,
        cumulative_cosine, alone_db, without_db, cause, remedy, reads_db. NaN: not measured.
    worst : list of dict
        The same, the layer that costs most first.
    ranges : list of dict
        Of every quantized tensor: what its parameters can represent, what was seen, and how much was cut off.
    findings : list of dict
        What costs accuracy, causes before what follows from them, then by cost: kind, layer, tensor, db, cause, remedy, step (of `improve`).
    preparation_db : float
        What fusing, preparing and steps of `improve` keep of the outputs of `exact`, before anything is quantized. NaN: no
        `exact` was given.
    """

    verdict: dict[str, Any]
    layers: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    ranges: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    preparation_db: float

    def __init__(self, verdict: dict[str, Any], layers: list[dict[str, Any]], worst: list[dict[str, Any]],
                 ranges: list[dict[str, Any]], findings: list[dict[str, Any]], preparation_db: float = math.nan) -> None:
        self.verdict, self.layers, self.worst, self.ranges, self.findings = verdict, layers, worst, ranges, findings
        self.preparation_db = preparation_db

    def to_records(self) -> list[dict[str, Any]]:
        """The layers, for pandas.DataFrame.from_records."""
        return self.layers

    def _repr_html_(self) -> str:
        return table(self.worst, ["node", "op", "local_db", "alone_db", "cumulative_db", "cause", "remedy"])

    def __str__(self) -> str:
        width = max([5, *(len(row["node"]) for row in self.layers)])
        lines = [f"outputs: SQNR {self.verdict['sqnr_db']:.2f} dB, cosine {self.verdict['cosine']:.6f}, "
                 f"{self.verdict['sample_count']} samples",
                 f"{'layer':{width}}  {'alone dB':>9}  {'local dB':>9}  {'so far dB':>9}"]
        for row in self.worst:
            numbers = ("-" if math.isnan(row[key]) else f"{row[key]:.2f}" for key in ("alone_db", "local_db", "cumulative_db"))
            lines.append(f"{row['node']:{width}}  " + "  ".join(f"{number:>9}" for number in numbers))
        lines += [f"{row['layer']}: {row['cause']} {row['remedy']}" for row in self.findings]
        return "\n".join(lines)

    __repr__ = __str__


def _read(analysis: Any, struct: str, getter: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    row = filled(struct)
    while getattr(lib, getter)(analysis, len(rows), ctypes.byref(row)):
        rows.append(_fields(row))
    return rows


def _read_ranges(analysis: Any) -> list[dict[str, Any]]:
    rows = _read(analysis, "tare_tensor_range", "analysis_get_range")
    for row in rows:
        for name in ("channel_low", "channel_high"):
            row[name] = np.array(row[name][:row["channel_count"]]) if row["channel_count"] else np.zeros(0)
        row["histogram"] = np.array(row["histogram"][:c.TARE_HISTOGRAM_BINS], dtype=np.uint64)
    return rows


def _told(watch: Callable[[list[Any], list[Any]], Any]) -> Any:
    def tell(_user: Any, floats: Any, quantized: Any, count: int, _batch: Any, _error: Any) -> None:
        watch(*([np.array(lend(side[i]).numpy()) for i in range(count)] for side in (floats, quantized)))
    return c.tare_prediction_watcher(guarded(5, tell, _ENDS))


def analyze(reference: Model, dataset: Any, *, quantized: Model | None = None, exact: Model | None = None,
            brief: bool = False, sample_limit: int = 0, seconds: float = 0.0, threads: int = 0,
            predictions: Callable[[list[Any], list[Any]], Any] | None = None,
            progress: Progress | bool | None = None) -> Analysis:
    """Which layers cost how much accuracy, why, and what to do.

    Parameters
    ----------
    reference : Model
        Of convert_to_reference_fx, or convert_pt2e(.., fold_quantize=False).
    dataset : str, path, Data or iterable
        A spec of files (docs/data.md), or batches: arrays, or tuples of one array per input.
    quantized : Model, optional
        What is going to run, made from the same prepared model: the verdict is about its outputs.
    exact : Model, optional
        The model whose float outputs the verdict compares with: the float model as it was given, or, where steps of
        improvement changed the floats of `reference`, the reference form before them.
    brief : bool
        The verdict and the error of each layer by itself only.
    sample_limit : int
        0: 32.
    seconds : float
        For the tests of single layers. 0: 60.
    threads : int
    predictions : callable, optional
        predictions(floats, quantized) is called with the outputs of both models for each batch, for metrics of your own.
    progress : callable or bool, optional
        As calibrate has it.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> import tare
    >>> prepared = tare.prepare_fx(tare.load("data/digits/digits.safetensors"), backend_config="x86")
    >>> _ = tare.calibrate(prepared, "data/digits/test.npz", sample_limit=64)
    >>> found = analyze(tare.convert_to_reference_fx(prepared, backend_config="x86"), "data/digits/test.npz", brief=True)
    >>> found.verdict["sqnr_db"] > 20, len(found.worst) == len(found.layers)
    (True, True)
    """
    from ._progress import reporter
    made, place = out("tare_analysis")
    with contextlib.ExitStack() as stack:
        report = stack.enter_context(reporter(progress, "analyze"))
        options = filled("tare_analyze_options", is_brief=bool(brief), sample_limit=integer(sample_limit),
                         seconds=float(seconds), thread_count=integer(threads), progress=_progress(report))
        handle = stack.enter_context(reference._reading())
        for name, model in (("quantized", quantized), ("exact", exact)):
            if model is not None:
                setattr(options, name, stack.enter_context(model._reading()))
        if predictions is not None:
            options.predictions = _told(predictions)
        call("analyze", handle, stack.enter_context(_opened(dataset, reference)), ctypes.byref(options), place)
        stack.callback(lib.analysis_destroy, made)
        verdict = filled("tare_verdict")
        lib.analysis_get_verdict(made, ctypes.byref(verdict))
        return Analysis(_fields(verdict), _read(made, "tare_layer_error", "analysis_get_layer"),
                        _read(made, "tare_layer_error", "analysis_get_worst"), _read_ranges(made),
                        _read(made, "tare_finding", "analysis_get_finding"), lib.analysis_preparation_db(made))


# --- the ladder ---

class Improvement:
    """What `improve` found.

    Attributes
    ----------
    model : Model
        The best quantized model.
    prepared : Model or None
        The prepared model that it was made from; None where it is the given one.
    trials : list of dict
        step, what, before_db, after_db, before_ms, after_ms, before_bytes, after_bytes, seconds, is_kept, is_resumed, why,
        refusal (of tare_improve_refusal).
    figures : dict
        before_db, after_db, before_ms, after_ms, trial_count, kept_count, resumed_count, is_out_of_time.
    """

    model: Model
    prepared: Model | None
    trials: list[dict[str, Any]]
    figures: dict[str, Any]

    def __init__(self, model: Model, prepared: Model | None, trials: list[dict[str, Any]], figures: dict[str, Any]) -> None:
        self.model, self.prepared, self.trials, self.figures = model, prepared, trials, figures

    def to_records(self) -> list[dict[str, Any]]:
        """The trials, for pandas.DataFrame.from_records."""
        return self.trials

    def _repr_html_(self) -> str:
        return table(self.trials, ["step", "what", "before_db", "after_db", "before_ms", "after_ms", "is_kept", "why"])

    def __str__(self) -> str:
        lines = [f"{row['step']} {row['what']}: {row['before_db']:.1f} -> {row['after_db']:.1f} dB"
                 + ("" if row["is_kept"] else f", not kept: {row['why']}") for row in self.trials]
        lines.append("outputs: {before_db:.1f} -> {after_db:.1f} dB, {before_ms:.3g} -> {after_ms:.3g} ms".format(**self.figures))
        return "\n".join(lines)

    __repr__ = __str__


def improvement_steps() -> dict[str, str]:
    """The steps that `improve` knows, in its order, with what each does.

    >>> "bias-correction" in improvement_steps()
    True

    Returns
    -------
    dict of str to str
    """
    found: dict[str, str] = {}
    what = ctypes.c_char_p()
    while (name := lib.improve_step_name(len(found), ctypes.byref(what))) is not None:
        found[text(name)] = text(what.value)
    return found


def improve(prepared: Model, calibration: Any, check: Any, *, backend_config: Any = None, engine: str | None = None,
            quantize: Quantize | None = None, seconds: float = 0.0, target_db: float = 0.0, most_slower: float = 0.0,
            most_larger: float = 0.0, steps: Sequence[str] | None = None, state: str | os.PathLike[str] | None = None, threads: int = 0,
            watch: Callable[[dict[str, Any]], Any] | None = None, better: Callable[[Model], Any] | None = None,
            exact: Model | None = None) -> Improvement:
    """Tries steps that win accuracy back, measures each, and keeps those that gain.

    Parameters
    ----------
    prepared : Model
        Of either flow, calibrated. It is not changed.
    calibration : str, path, Data or iterable
        What it was calibrated with; read again when observers change.
    check : str, path, Data or iterable
        Samples that are not among those, such as ``Data(spec, prepared, hold_out=16, held_out=True)``.
    backend_config : BackendConfig, str or path-like, optional
        As given to prepare.
    engine : str, optional
        How integers are rounded: "x86", "fbgemm", "qnnpack" or "onednn".
    quantize : callable, optional
        quantize(prepared, float_nodes, as_reference) returns the model that runs, or its reference form; float_nodes is
        for convert's argument of that name.
    seconds : float
        After which no trial begins. 0: 300.
    target_db : float
        At which the work ends. 0: none.
    most_slower : float
        Of a run, by steps that change operators, as a fraction of the first model's time, or, where some layers are
        faster in float, of that of the fastest choice for each. Steps get 95 % of it, as times have errors. 0: 0.1,
        but 1 if the outputs of all models within it have less than 5 dB.
    most_larger : float
        Of the tensors, in bytes, as a fraction. 0: 0.25, but of those of the fastest choice for each layer if that
        takes more, and 1 if the outputs of all models within the limits have less than 5 dB.
    steps : sequence of str, optional
        Of `improvement_steps`, in the order of trial. Default: all.
    state : path-like, optional
        A file that outcomes are written to, and from which the work goes on.
    threads : int
    watch : callable, optional
        watch(trial) is called after each, with a row of `Improvement.trials`.
    better : callable, optional
        better(model) is called with each model that is better than all before, lent for the call.
    exact : Model, optional
        The float model as it was given, whose outputs models are measured by. Default: `prepared`, in floats.

    Returns
    -------
    Improvement
        The best model, and what each trial gained.

    Raises
    ------
    NotFoundError
        For steps that nobody knows.
    TypeError
        For steps in one string.
    """
    recipe = _quantizer_of(prepared, quantize, backend_config, engine)
    keepers: list[Any] = [prepared._keeper, backend_config]
    trials: list[dict[str, Any]] = []

    def convert(_user: Any, given: Any, as_reference: bool, choices: Any, count: int, place: Any, _error: Any) -> None:
        with _lent(given, prepared._keeper) as model:
            _hand_over(recipe(model, _rows_of(choices, count), bool(as_reference)), place, keepers)

    def note(_user: Any, trial: Any, _error: Any) -> None:
        trials.append(_fields(trial.contents))
        if watch is not None:
            watch(trials[-1])

    def tell(_user: Any, model: Any, _error: Any) -> None:
        if better is not None:
            with _lent(model, keepers) as lent:
                better(lent)
    made, place = out("tare_model")
    best, best_place = out("tare_model")
    result = filled("tare_improve_result")
    options = filled("tare_improve_options", seconds=float(seconds), target_db=float(target_db), most_slower=float(most_slower),
                     most_larger=float(most_larger), thread_count=integer(threads), state_path=encode_or_null(state),
                     trials=c.tare_improve_watcher(guarded(2, note, _ENDS)), better=c.tare_model_watcher(guarded(2, tell, _ENDS)))
    if steps is not None:
        if isinstance(steps, str):
            raise TypeError("expected a sequence of steps, found str")
        options.steps = encode(",".join(steps))
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(prepared._reading())
        shown, checked = (stack.enter_context(_opened(data, prepared)) for data in (calibration, check))
        if exact is not None:
            options.exact = stack.enter_context(exact._reading())
        call("improve", handle, shown, checked, c.tare_quantize_prepared(guarded(6, convert, _ENDS)), None,
             ctypes.byref(options), ctypes.byref(result), best_place, place)
    return Improvement(Model(made, keeper=keepers), Model(best, keeper=keepers) if best else None, trials, _fields(result))


# --- steps of their own ---

def correct_biases(prepared: Model, dataset: Any, *, backend_config: Any = None, quantize: Quantize | None = None,
                   sample_limit: int = 0, threads: int = 0, watch: Callable[[dict[str, Any]], Any] | None = None,
                   progress: Progress | bool | None = None) -> Model:
    """Subtracts the mean rounding error of each output channel from the layer's bias.

    Parameters
    ----------
    prepared : Model
        Of either flow, calibrated.
    dataset : str, path, Data or iterable
        As analyze has it.
    backend_config : BackendConfig, str or path-like, optional
        As given to prepare.
    quantize : callable, optional
        As improve has it; it is asked for reference forms.
    sample_limit : int
        0: 32.
    threads : int
    watch : callable, optional
        watch(layer) is called after each: node, channel_count, largest_shift, rms_shift, is_new.
    progress : callable or bool, optional
        As calibrate has it.

    Returns
    -------
    Model
        A prepared model, whose calibration is kept; decisions() has every layer.
    """
    from ._progress import reporter
    recipe, keepers = _quantizer_of(prepared, quantize, backend_config, None), [prepared._keeper, backend_config]

    def convert(_user: Any, given: Any, place: Any, _error: Any) -> None:
        with _lent(given, prepared._keeper) as model:
            _hand_over(recipe(model, (), True), place, keepers)

    def note(_user: Any, layer: Any, _error: Any) -> None:
        if watch is not None:
            watch(_fields(layer.contents))
    made, place = out("tare_model")
    with reporter(progress, "correct biases") as report, prepared._reading() as handle, _opened(dataset, prepared) as data:
        options = filled("tare_bias_correction_options", sample_limit=integer(sample_limit), thread_count=integer(threads),
                         watcher=c.tare_bias_watcher(guarded(2, note, _ENDS)), progress=_progress(report))
        call("correct_biases", handle, data, c.tare_quantize_reference(guarded(3, convert, _ENDS)), None,
             ctypes.byref(options), None, place)
    return Model(made, keeper=keepers)


def never_slower(prepared: Model, *inputs: Any, backend_config: Any = None, engine: str | None = None,
                 quantize: Quantize | None = None, seconds: float = 0.0, threads: int = 0,
                 progress: Progress | bool | None = None, predicts: bool = False,
                 machine: str | os.PathLike[str] | None = None) -> tuple[Model, dict[str, int]]:
    """Quantizes, but leaves layers float that integers make slower on this machine.

    Parameters
    ----------
    prepared : Model
        Of either flow, calibrated.
    *inputs : array_like
        Of the timed runs. Default: one sample of random numbers, where the model says its shape.
    backend_config : BackendConfig, str or path-like, optional
        As given to prepare.
    engine : str, optional
        How integers are rounded: "x86", "fbgemm", "qnnpack" or "onednn".
    quantize : callable, optional
        Makes the quantized model of a prepared one in another way.
    seconds : float
        Of each comparison, of which there are up to eight. 0: 1.
    threads : int
    progress : callable or bool, optional
        As calibrate has it.
    predicts : bool
        Predict times from the machine's peaks instead of measuring them: nothing runs.
    machine : str or path-like, optional
        A file of peaks that `tare quantize --machine FILE` wrote, for predictions. Default: the peaks are measured, in
        0.05 s.

    Returns
    -------
    (Model, dict)
        What runs, and layer_count, float_count, kept_count, float_ns, integer_ns, chosen_ns.
    """
    from ._progress import reporter
    recipe = _quantizer_of(prepared, quantize, backend_config, engine)
    keepers: list[Any] = [prepared._keeper, backend_config]

    def convert(_user: Any, choices: Any, count: int, place: Any, _error: Any) -> None:
        _hand_over(recipe(prepared, _rows_of(choices, count), False), place, keepers)
    made, place = out("tare_model")
    tensors = [as_tensor(item) for item in inputs]
    result = filled("tare_never_slower_result")
    with reporter(progress, "never slower") as report, prepared._reading() as handle:
        options = filled("tare_never_slower_options", seconds=float(seconds), thread_count=integer(threads),
                         input_count=len(tensors), progress=_progress(report), predicts=predicts or machine is not None)
        if machine is not None:
            peaks = filled("tare_machine_peak")
            call("machine_read", encode(os.fspath(machine)), ctypes.byref(peaks))
            options.machine = ctypes.pointer(peaks)
        if tensors:
            options.inputs = ctypes.cast(handles(tensors), type(options.inputs))
        call("never_slower", handle, c.tare_quantize_without(guarded(4, convert, _ENDS)), None, ctypes.byref(options),
             ctypes.byref(result), place)
    return Model(made, keeper=keepers), _fields(result)


def _step(function: str, prepared: Model, *arguments: Any) -> Model:
    made, place = out("tare_model")
    with prepared._reading() as handle:
        call(function, handle, *arguments, None, place)
    return Model(made, keeper=prepared._keeper)


def replace_observers(prepared: Model, class_name: str, percentile: float | str = 0.0) -> Model:
    """A prepared model whose activations are watched by observers of another class; calibrate it.

    Parameters
    ----------
    prepared : Model
        Of either flow. Fake quantizers are UnsupportedError.
    class_name : str
        "MinMaxObserver", "HistogramObserver" or "tare.MergeableHistogramObserver".
    percentile : float or "entropy"
        Of the last one, in percent, or its range of least relative entropy. 0: none.

    Returns
    -------
    Model
        Prepared; it needs a new calibration.
    """
    share = float(c.TARE_BY_ENTROPY) if percentile == "entropy" else float(percentile)
    return _step("replace_observers", prepared, encode(class_name, "a class"), share)


def weights_per_channel(prepared: Model) -> Model:
    """A prepared model with one scale for each output channel of weights; its calibration is kept."""
    return _step("weights_per_channel", prepared)


def clip_weights(prepared: Model) -> Model:
    """A prepared model whose weights are clipped where their squared error is least; its calibration is kept."""
    return _step("clip_weights", prepared)


def widen_weights(prepared: Model, nodes: Sequence[str] | None = None) -> Model:
    """A prepared model in which weights of 4 bits in groups have 8 bits; its calibration is kept.

    Parameters
    ----------
    prepared : Model
        Of either flow.
    nodes : sequence of str, optional
        Names of nodes whose weights change. Default: all.

    Returns
    -------
    Model
        Another prepared model; `prepared` stays as it is.

    Raises
    ------
    TypeError
        If `nodes` is one string.
    """
    return _step("widen_weights", prepared, *_names(nodes))


def _names(nodes: Sequence[str] | None) -> tuple[Any, int]:
    if isinstance(nodes, str):
        raise TypeError("expected a sequence of names, found str")
    return (None, 0) if nodes is None else ((ctypes.c_char_p * len(nodes))(*[encode(n, "a node") for n in nodes]), len(nodes))


def quantize_dynamically(prepared: Model, form: str = "rows", nodes: Sequence[str] | None = None) -> Model:
    """A prepared model whose linear layers' inputs are quantized in each run; its calibration is kept.

    Parameters
    ----------
    prepared : Model
        Of FX mode.
    form : str
        "rows": a scale for each row (token), symmetric int8; "tensors": one for all of an input, uint8. Converting leaves
        layers float that the backend does not take in this form.
    nodes : sequence of str, optional
        Names of the layers. Default: all linear modules with 8-bit weights and static inputs.

    Returns
    -------
    Model
        Another prepared model; `prepared` stays as it is.

    Raises
    ------
    TypeError
        If `nodes` is one string.
    ValueError
        For another form.
    """
    forms = {"rows": c.TARE_DYNAMIC_ROWS, "tensors": c.TARE_DYNAMIC_TENSORS}
    return _step("quantize_dynamically", prepared, _method(form, forms), *_names(nodes))


def equalize_layers(prepared: Model) -> Model:
    """A prepared model whose channels are scaled so that weights on both sides have equal ranges; calibrate it."""
    return _step("equalize_layers", prepared)


def rotate_layers(prepared: Model) -> Model:
    """A prepared model whose linear layers are rotated by Hadamard matrices, exactly in float; calibrate it."""
    return _step("rotate_layers", prepared)


def _method(given: str, known: dict[str, int]) -> int:
    if given not in known:
        raise ValueError(f"expected a method of {', '.join(known)}, found {given!r}")
    return known[given]


def scale_inputs(prepared: Model, dataset: Any, method: str = "smooth", *, sample_limit: int = 0, threads: int = 0) -> Model:
    """Moves scales of channels from what linear layers read into their weights; calibrate the result.

    Parameters
    ----------
    prepared : Model
    dataset : str, path, Data or iterable
        Calibration data.
    method : str
        "smooth" (SmoothQuant), or "awq".
    sample_limit : int
        0: 64.
    threads : int

    Returns
    -------
    Model
        Prepared; it needs a new calibration.
    """
    options = filled("tare_scale_options", method=_method(method, {"smooth": c.TARE_SCALE_SMOOTH, "awq": c.TARE_SCALE_AWQ}),
                     sample_limit=integer(sample_limit), thread_count=integer(threads))
    with _opened(dataset, prepared) as data:
        return _step("scale_inputs", prepared, data, ctypes.byref(options))


def round_weights(prepared: Model, dataset: Any, method: str = "gptq", *, sample_limit: int = 0, threads: int = 0) -> Model:
    """Rounds weights so that the layers' results lose least; the calibration is kept.

    Parameters
    ----------
    prepared : Model
        Calibrated.
    dataset : str, path, Data or iterable
        Calibration data.
    method : str
        "gptq" or "adaround".
    sample_limit : int
        0: 64.
    threads : int

    Returns
    -------
    Model
        Prepared, with the calibration that it had.
    """
    options = filled("tare_round_options",
                     method=_method(method, {"gptq": c.TARE_ROUND_GPTQ, "adaround": c.TARE_ROUND_ADAROUND}),
                     sample_limit=integer(sample_limit), thread_count=integer(threads))
    with _opened(dataset, prepared) as data:
        return _step("round_weights", prepared, data, ctypes.byref(options))

# SPDX-License-Identifier: Apache-2.0
"""The passes of both flows, with torch's names and arguments. A pass hands out a new model."""
from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from ._library import c, call, encode, encode_or_null, filled, lib, out
from ._names import type_name
from .backend_config import BackendConfig
from .model import Model
from .qconfig import QConfigMapping

__all__ = ["convert_fx", "convert_pt2e", "convert_to_reference_fx", "convert_to_reference_decomposed_fx", "fuse_fx",
           "lower", "lower_pt2e", "prepare_fx", "prepare_pt2e", "prepare_qat_fx", "prepare_qat_pt2e"]


# --- what passes take ---

@contextlib.contextmanager
def _backend(given: Any) -> Iterator[Any]:
    """A backend config's handle, from an object, a built-in name, a path, or None (native)."""
    if given is None:
        yield None
        return
    if _is_torchs(given, "BackendConfig"):
        given = BackendConfig.from_torch(given)
    if hasattr(given, "_built"):
        with given._built() as handle:
            yield handle
        return
    if not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise TypeError(f"expected a BackendConfig, a name or a path, found {type_name(given)}")
    made, reference = out("tare_backend_config")
    if _is_path(given) or given not in BackendConfig.builtin_names():
        config = BackendConfig.read(given) if _is_path(given) else BackendConfig.named(str(given))
        with config._built() as handle:
            yield handle
        return
    call("backend_config_builtin", encode(given), reference)
    try:
        yield made
    finally:
        lib.backend_config_destroy(made)


@contextlib.contextmanager
def _mapping(given: Any, is_qat: bool, backend: Any) -> Iterator[Any]:
    """A qconfig mapping's handle; None: the one for the backend."""
    if _is_torchs(given, "QConfigMapping"):
        given = QConfigMapping.from_torch(given)
    if hasattr(given, "_built"):
        with given._built() as handle:
            yield handle
        return
    made, reference = out("tare_qconfig_mapping")
    if given is None and backend is not None:
        call("qconfig_mapping_for_backend", backend, is_qat, reference)
    elif given is None or (isinstance(given, str) and not _is_path(given)):
        call("qconfig_mapping_default", encode(given or "x86"), is_qat, -1, reference)
    elif isinstance(given, str) or hasattr(given, "__fspath__"):
        call("qconfig_mapping_read", encode(given), reference)
    else:
        raise TypeError(f"expected a QConfigMapping, a name or a path, found {type_name(given)}")
    try:
        yield made
    finally:
        lib.qconfig_mapping_destroy(made)


@contextlib.contextmanager
def _custom(given: Any, kind: str) -> Iterator[Any]:
    if given is None:
        yield None
    elif hasattr(given, "_built"):
        with given._built() as handle:
            yield handle
    else:
        raise TypeError(f"expected a {kind}, found {type_name(given)}")


def _is_torchs(given: Any, name: str) -> bool:
    """Is it an object of torch's class of that name?"""
    return type(given).__name__ == name and type(given).__module__.startswith("torch.ao.quantization.")


def _is_path(given: Any) -> bool:
    return not isinstance(given, str) or "/" in given or given.endswith(".json") or given == "-"


def _model(given: Any, example_inputs: Any = None) -> Model:
    """tare's own model, or one of torch's modules or programs."""
    if isinstance(given, Model):
        return given
    from .torch_io import from_exported, from_torch, is_torch_module
    if is_torch_module(given) and example_inputs is not None:
        return from_torch(given, example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,))
    if type(given).__name__ == "ExportedProgram":
        return from_exported(given)
    raise TypeError(f"expected a Model, found {type(given).__name__} (tare.from_torch makes one of a torch module)")


def _engine(name: str | None) -> int:
    if name is None:
        return int(c.TARE_ENGINE_DEFAULT)
    number = int(lib.engine_from_name(encode(name)))
    if not number:
        raise ValueError(f"expected an engine (x86, fbgemm, qnnpack, onednn), found '{name}'")
    return number


def float_choices(given: Any) -> tuple[Any, int]:
    """An array of tare_float_choice from node names, or rows (node, rule, reason)."""
    rows = [(item, "left float by the caller", "") if isinstance(item, str) else tuple(item) for item in given or ()]
    array = (c.t("tare_float_choice") * max(len(rows), 1))()
    for row, (node, rule, reason) in zip(array, rows, strict=False):
        row.node, row.rule, row.reason = encode(node), encode_or_null(rule), encode_or_null(reason)
    return array, len(rows)


# --- FX mode ---

def fuse_fx(model: Any, fuse_custom_config: Any = None, backend_config: Any = None) -> Model:
    """Fuses what the backend fuses, in evaluation mode.

    Parameters
    ----------
    model : Model
        A float model.
    fuse_custom_config : FuseCustomConfig, optional
        Attributes to preserve.
    backend_config : BackendConfig, str or path, optional
        An object, the name of a built-in config, or a file. Default: native.

    Returns
    -------
    Model
        In the stage ``fused``.
    """
    model = _model(model)
    made, reference = out("tare_model")
    with model._reading() as handle, _backend(backend_config) as backend, \
            _custom(fuse_custom_config, "FuseCustomConfig") as custom:
        call("fuse_fx_custom", handle, backend, custom, reference)
    return Model(made, keeper=(model._keeper, backend_config))


def _prepare(function: str, model: Any, qconfig_mapping: Any, example_inputs: Any, prepare_custom_config: Any, equalization: Any,
             backend_config: Any, lenient: bool) -> Model:
    model = _model(model, example_inputs)
    is_qat = function == "prepare_qat_fx"
    made, reference = out("tare_model")
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(model._reading())
        options = filled("tare_prepare_options", is_lenient=bool(lenient))
        options.backend = stack.enter_context(_backend(backend_config))
        options.qconfig_mapping = stack.enter_context(_mapping(qconfig_mapping, is_qat, options.backend or None))
        options.custom_config = stack.enter_context(_custom(prepare_custom_config, "PrepareCustomConfig"))
        if equalization is not None:
            options.equalization = stack.enter_context(_mapping(equalization, False, None))
        call(function, handle, ctypes.byref(options), reference)
    return Model(made, keeper=(model._keeper, backend_config, qconfig_mapping, prepare_custom_config))


def prepare_fx(model: Any, qconfig_mapping: Any = None, example_inputs: Any = None, prepare_custom_config: Any = None,
               _equalization_config: Any = None, backend_config: Any = None, *, lenient: bool = False) -> Model:
    """Fuses, matches the backend's patterns and inserts observers.

    Parameters
    ----------
    model : Model or torch.nn.Module
        A float model. A module of torch is read as from_torch does.
    qconfig_mapping : QConfigMapping, str or path, optional
        An object, the name of a default mapping ("x86", "tare"), or a file. Default: the backend's own.
    example_inputs : tuple, optional
        For a module of torch; a Model knows its inputs.
    prepare_custom_config : PrepareCustomConfig, optional
    backend_config : BackendConfig, str or path, optional
        An object, the name of a built-in config, or a file. Default: native.
    lenient : bool
        A selector that matches nothing is a warning in the record, not an error.

    Returns
    -------
    Model
        In the stage ``prepared``.
    """
    return _prepare("prepare_fx", model, qconfig_mapping, example_inputs, prepare_custom_config, _equalization_config,
                    backend_config, lenient)


def prepare_qat_fx(model: Any, qconfig_mapping: Any = None, example_inputs: Any = None,
                   prepare_custom_config: Any = None, backend_config: Any = None, *, lenient: bool = False) -> Model:
    """As prepare_fx, for quantization-aware training: fake quantizers instead of observers.

    Parameters
    ----------
    model : Model or torch.nn.Module
        In training mode.
    qconfig_mapping : QConfigMapping, str or path-like, optional
        Default: the backend's, for training.
    example_inputs : tuple, optional
        Needed to trace a torch module.
    prepare_custom_config : PrepareCustomConfig, optional
    backend_config : BackendConfig, str or path-like, optional
    lenient : bool
        What torch ignores becomes a warning in the record.

    Returns
    -------
    Model
        In the stage ``prepared``, in training mode.
    """
    return _prepare("prepare_qat_fx", model, qconfig_mapping, example_inputs, prepare_custom_config, None, backend_config, lenient)


def _convert(function: str, prepared: Any, convert_custom_config: Any, qconfig_mapping: Any, backend_config: Any,
             engine: str | None, lenient: bool, keep_original_weights: bool, floats: Any) -> Model:
    prepared = _model(prepared)
    made, reference = out("tare_model")
    with contextlib.ExitStack() as stack:
        handle = stack.enter_context(prepared._reading())
        options = filled("tare_convert_options", engine=_engine(engine), is_lenient=bool(lenient),
                         keeps_original_weights=bool(keep_original_weights))
        options.backend = stack.enter_context(_backend(backend_config))
        options.custom_config = stack.enter_context(_custom(convert_custom_config, "ConvertCustomConfig"))
        if qconfig_mapping is not None:
            options.qconfig_mapping = stack.enter_context(_mapping(qconfig_mapping, False, None))
        options.float_choices, options.float_choice_count = float_choices(floats)
        call(function, handle, ctypes.byref(options), reference)
    return Model(made, keeper=(prepared._keeper, backend_config))


def convert_fx(graph_module: Any, convert_custom_config: Any = None, _remove_qconfig: bool = True,
               qconfig_mapping: Any = None, backend_config: Any = None, keep_original_weights: bool = False, *,
               engine: str | None = None, lenient: bool = False, float_nodes: Any = ()) -> Model:
    """Converts a calibrated model and lowers it to integer modules and functions.

    Parameters
    ----------
    graph_module : Model
        A prepared model.
    convert_custom_config : ConvertCustomConfig, optional
    qconfig_mapping : QConfigMapping, optional
        prepare's, with None for what is to stay float.
    backend_config : BackendConfig, str or path, optional
        Default: native.
    keep_original_weights : bool
        Keeps the float weights beside the packed ones.
    engine : str, optional
        The rounding of integer operators: "x86", "fbgemm", "qnnpack" or "onednn".
    lenient : bool
        An observer that saw nothing gives scale 1 and a warning, not an error.
    float_nodes : sequence of str or (node, rule, reason)
        Nodes to leave float.

    Returns
    -------
    Model
        In the stage ``lowered``.
    """
    del _remove_qconfig
    return _convert("convert_fx", graph_module, convert_custom_config, qconfig_mapping, backend_config, engine,
                    lenient, keep_original_weights, float_nodes)


def convert_to_reference_fx(graph_module: Any, convert_custom_config: Any = None, _remove_qconfig: bool = True,
                            qconfig_mapping: Any = None, backend_config: Any = None, *, lenient: bool = False,
                            float_nodes: Any = ()) -> Model:
    """Converts a calibrated model to its reference form: quantize and dequantize around float operators.

    Parameters
    ----------
    graph_module : Model
        Prepared and calibrated.
    convert_custom_config : ConvertCustomConfig, optional
    _remove_qconfig : bool
        torch's; without effect.
    qconfig_mapping : QConfigMapping, optional
        Entries that are None stay float.
    backend_config : BackendConfig, str or path-like, optional
        As given to prepare.
    lenient : bool
        What torch ignores becomes a warning in the record.
    float_nodes : sequence, optional
        Nodes to leave float: names, or (name, rule, reason).

    Returns
    -------
    Model
        In the stage ``reference``, for `lower`.
    """
    del _remove_qconfig
    return _convert("convert_to_reference_fx", graph_module, convert_custom_config, qconfig_mapping, backend_config,
                    None, lenient, False, float_nodes)


def convert_to_reference_decomposed_fx(graph_module: Any, convert_custom_config: Any = None,
                                       qconfig_mapping: Any = None, backend_config: Any = None, *,
                                       lenient: bool = False) -> Model:
    """As convert_to_reference_fx, with quantized_decomposed operators and literal parameters.

    Parameters
    ----------
    graph_module : Model
        Prepared and calibrated.
    convert_custom_config : ConvertCustomConfig, optional
    qconfig_mapping : QConfigMapping, optional
        Entries that are None stay float.
    backend_config : BackendConfig, str or path-like, optional
        As given to prepare.
    lenient : bool
        What torch ignores becomes a warning in the record.

    Returns
    -------
    Model
        In the stage ``reference``.
    """
    return _convert("convert_to_reference_decomposed_fx", graph_module, convert_custom_config, qconfig_mapping,
                    backend_config, None, lenient, False, ())


def lower(reference: Any, *, engine: str | None = None) -> Model:
    """Lowers a model that holds quantize and dequantize already to integers, as it is.

    Parameters
    ----------
    reference : Model
        The reference form of either flow, or a file that another quantizer wrote.
    engine : str, optional
        The rounding of integer layers.

    Returns
    -------
    Model
        In the stage ``lowered``.
    """
    reference = _model(reference)
    made, place = out("tare_model")
    options = filled("tare_lower_options", engine=_engine(engine))
    with reference._reading() as handle:
        call("lower", handle, ctypes.byref(options), place)
    return Model(made, keeper=reference._keeper)


# --- exported programs ---

@contextlib.contextmanager
def _quantizer(given: Any, is_qat: bool) -> Iterator[Any]:
    if hasattr(given, "_built"):
        with given._built(is_qat) as handle:
            yield handle
        return
    if not isinstance(given, str) and not hasattr(given, "__fspath__"):
        raise TypeError(f"expected a Quantizer, a name or a path, found {type_name(given)}")
    options = filled("tare_quantizer_open_options", is_qat=is_qat)
    made, reference = out("tare_quantizer")
    call("quantizer_open", encode(given), ctypes.byref(options), reference)
    try:
        yield made
    finally:
        lib.quantizer_destroy(made)


def _prepare_pt2e(function: str, model: Any, quantizer: Any) -> Model:
    model = _model(model)
    made, reference = out("tare_model")
    with model._reading() as handle, _quantizer(quantizer, function == "prepare_qat_pt2e") as annotator:
        call(function, handle, annotator, reference)
    return Model(made, keeper=(model._keeper, quantizer))


def prepare_pt2e(model: Any, quantizer: Any) -> Model:
    """Lets a quantizer annotate an exported program, and inserts observers.

    Parameters
    ----------
    model : Model or torch.export.ExportedProgram
        A program of torch.export.
    quantizer : Quantizer, str or path
        An object, the name of a built-in quantizer, or a file of rules.

    Returns
    -------
    Model
        In the stage ``prepared``.
    """
    return _prepare_pt2e("prepare_pt2e", model, quantizer)


def prepare_qat_pt2e(model: Any, quantizer: Any) -> Model:
    """As prepare_pt2e, for quantization-aware training.

    Parameters
    ----------
    model : Model or torch.export.ExportedProgram
    quantizer : Quantizer, str or path-like

    Returns
    -------
    Model
        In the stage ``prepared``, in training mode.
    """
    return _prepare_pt2e("prepare_qat_pt2e", model, quantizer)


def convert_pt2e(model: Any, use_reference_representation: bool = False, fold_quantize: bool = True, *,
                 lenient: bool = False, float_nodes: Any = ()) -> Model:
    """Replaces observers by quantize and dequantize operators with literal parameters.

    Parameters
    ----------
    model : Model
        What prepare_pt2e made, calibrated.
    use_reference_representation : bool
        int8 operators as arithmetic on integers, as backends compute them.
    fold_quantize : bool
        Weights become integer constants; False keeps them float, with their quantize operators.
    lenient : bool
        An observer that saw nothing gives scale 1 and a warning, not an error.
    float_nodes : sequence of str or (node, rule, reason)
        Nodes to leave float.

    Returns
    -------
    Model
        In the stage ``reference``, for `lower_pt2e`.
    """
    model = _model(model)
    made, reference = out("tare_model")
    options = filled("tare_convert_pt2e_options", keeps_quantize=not fold_quantize, is_lenient=bool(lenient),
                     use_reference_representation=bool(use_reference_representation))
    options.float_choices, options.float_choice_count = float_choices(float_nodes)
    with model._reading() as handle:
        call("convert_pt2e", handle, ctypes.byref(options), reference)
    return Model(made, keeper=model._keeper)


def lower_pt2e(model: Any, *, engine: str | None = None) -> Model:
    """Lowers what convert_pt2e made to integer functions with packed weights.

    Parameters
    ----------
    model : Model
        Converted.
    engine : str, optional
        How integers are rounded: "x86", "fbgemm", "qnnpack" or "onednn".

    Returns
    -------
    Model
        In the stage ``lowered``.
    """
    model = _model(model)
    made, reference = out("tare_model")
    options = filled("tare_lower_pt2e_options", engine=_engine(engine))
    with model._reading() as handle:
        call("lower_pt2e", handle, ctypes.byref(options), reference)
    return Model(made, keeper=model._keeper)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch's Python configs as JSON files of tare: BackendConfig, QConfigMapping, QConfig, PrepareCustomConfig,
ConvertCustomConfig.

    python torch_configs.py my_configs.py:make_backend -o backend.json
    python torch_configs.py torch.ao.quantization.backend_config:get_onednn_backend_config -o onednn.json

The name after the colon is such an object, or a function without arguments that returns one. What has no name that tare
could know (a lambda, a fuser of one's own) is an error: pass it to tare as a callback in C instead.
"""
import argparse
import functools
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys

import torch
import torch.ao.nn.intrinsic
import torch.ao.nn.intrinsic.qat
import torch.ao.nn.qat
import torch.ao.nn.qat.dynamic
import torch.ao.nn.quantizable
import torch.ao.nn.quantized
import torch.ao.nn.quantized.dynamic
import torch.ao.nn.quantized.reference
from torch.ao.quantization import QConfig, QConfigMapping
from torch.ao.quantization.backend_config import BackendConfig, DTypeConfig, DTypeWithConstraints
from torch.ao.quantization.fx.custom_config import ConvertCustomConfig, PrepareCustomConfig
from torch.fx.node import _get_qualified_name

PUBLIC = [torch.nn, torch.ao.nn.intrinsic, torch.ao.nn.intrinsic.qat, torch.ao.nn.qat, torch.ao.nn.qat.dynamic,
          torch.ao.nn.quantizable, torch.ao.nn.quantized, torch.ao.nn.quantized.dynamic,
          torch.ao.nn.quantized.reference]


class Unnamed(Exception):
    """An object that has no name in a file."""


@functools.cache
def public_names():
    """The shortest public name of each class."""
    names = {}
    for module in PUBLIC:
        for name, found in vars(module).items():
            if inspect.isclass(found):
                names.setdefault(found, f"{module.__name__}.{name}")
    return names


def class_name(kind):
    if isinstance(kind, str):
        return kind
    if not inspect.isclass(kind):
        raise Unnamed(f"expected a class, found {kind!r}")
    return public_names().get(kind, f"{kind.__module__}.{kind.__qualname__}")


def object_type(kind):
    """A module class, a function, or a method by its bare name."""
    if isinstance(kind, str) or inspect.isclass(kind):
        return class_name(kind)
    name = _get_qualified_name(kind)
    short = name.rpartition(".")[2]
    if name.startswith("torch._C._nn.") and getattr(torch.nn.functional, short, None) is kind:
        return f"torch.nn.functional.{short}"
    return name.replace("_operator.", "operator.", 1) if name.startswith("_operator.") else name


def function_name(function):
    """A fuser or getter; `_sequential_wrapper2` holds the class that it makes."""
    where, name = function.__module__, function.__qualname__
    if name == "_sequential_wrapper2.<locals>.fuser_method":
        made = inspect.getclosurevars(function).nonlocals["sequential"]
        return f"{where}._sequential_wrapper2({class_name(made)})"
    name = name.replace(".<locals>", "")
    if "<lambda>" in name:
        raise Unnamed(f"a lambda of {where} has no name in a file: name it, or pass it to tare in C")
    return f"{where}.{name}"


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


# --- backend configs ---

def pattern_json(pattern):
    if isinstance(pattern, (tuple, list)):
        return [pattern_json(item) for item in pattern]
    if pattern is None or isinstance(pattern, (bool, int, float)):
        return pattern
    return object_type(pattern)


def constrained_json(given):
    fields = {key: number(value) for key, value in vars(given).items() if value is not None}
    return {**fields, "dtype": str(given.dtype)}


def dtype_config_json(config):
    out = {}
    for key in ("input_dtype", "output_dtype", "weight_dtype"):
        given = getattr(config, key + "_with_constraints")
        if given is not None and given.dtype is not None:
            out[key] = constrained_json(given)
    if config.bias_dtype is not None:
        out["bias_dtype"] = str(config.bias_dtype)
    if config.is_dynamic is not None:
        out["is_dynamic"] = config.is_dynamic
    return out


def pattern_config_json(config):
    given = config.to_dict()
    out = {}
    for key, value in given.items():
        if key in ("pattern", "pattern_complex_format"):
            out[key] = pattern_json(value)
        elif key == "observation_type":
            out[key] = value.name
        elif key == "dtype_configs":
            out[key] = [dtype_config_json(item) for item in config.dtype_configs]
        elif key == "num_tensor_args_to_observation_type":
            out[key] = {str(count): kind.name for count, kind in value.items()}
        elif key in ("fuser_method", "root_node_getter", "extra_inputs_getter"):
            out[key] = function_name(value)
        elif key == "input_type_to_index":
            out[key] = dict(value)
        else:
            out[key] = class_name(value)
    return out


def backend_json(config):
    return {"name": config.name, "configs": [pattern_config_json(item) for item in config.configs]}


# --- qconfigs ---

def observer_json(constructor):
    """A class, or a class with arguments (with_args)."""
    partial = getattr(constructor, "p", constructor)
    kwargs = {}
    while isinstance(partial, functools.partial):
        if partial.args:
            raise Unnamed(f"{constructor!r} has arguments without names")
        kwargs = {**partial.keywords, **kwargs}
        partial = partial.func
    if hasattr(partial, "p"):
        inner = observer_json(partial)
        return {"class": inner["class"], "kwargs": {**inner["kwargs"], **arguments_json(kwargs)}}
    if not inspect.isclass(partial):
        raise Unnamed(f"{constructor!r} is no observer class")
    own = partial.__module__.startswith("torch.ao.quantization")
    name = partial.__name__ if own else f"{partial.__module__}.{partial.__qualname__}"
    return {"class": name, "kwargs": arguments_json(kwargs)}


def arguments_json(kwargs):
    out = {}
    for key, value in kwargs.items():
        if key == "factory_kwargs":
            continue
        if isinstance(value, (torch.dtype, torch.qscheme)):
            out[key] = str(value)
        elif value is None or isinstance(value, (bool, int, float, str)):
            out[key] = number(value)
        else:
            out[key] = observer_json(value)
    return out


def qconfig_json(qconfig):
    if qconfig is None:
        return None
    if hasattr(qconfig, "input_activation"):
        return {"input_activation": observer_json(qconfig.input_activation), "weight": observer_json(qconfig.weight)}
    weight = None if qconfig.weight is None else observer_json(qconfig.weight)
    return {"activation": observer_json(qconfig.activation), "weight": weight}


def mapping_json(mapping):
    pairs = lambda table, name: [[name(key), qconfig_json(value)] for key, value in table.items()]
    out = {"global": qconfig_json(mapping.global_qconfig),
           "object_type": pairs(mapping.object_type_qconfigs, object_type),
           "module_name_regex": pairs(mapping.module_name_regex_qconfigs, str),
           "module_name": pairs(mapping.module_name_qconfigs, str),
           "module_name_object_type_order": [
               [path, object_type(kind), index, qconfig_json(value)] for (path, kind, index), value in
               mapping.module_name_object_type_order_qconfigs.items()]}
    return {key: value for key, value in out.items() if value}


# --- custom configs ---

def classes_json(table):
    out = {}
    for kind, pairs in table.items():
        out[kind.name.lower()] = {class_name(a): class_name(b) for a, b in pairs.items()}
    return out


def standalone_json(table, name):
    rows = []
    for key, entry in table.items():
        rows.append([name(key), entry.qconfig_mapping and mapping_json(entry.qconfig_mapping), None,
                     entry.prepare_custom_config and prepare_json(entry.prepare_custom_config),
                     entry.backend_config and backend_json(entry.backend_config)])
    return rows


def prepare_json(config):
    out = {"standalone_module_name": standalone_json(config.standalone_module_names, str),
           "standalone_module_class": standalone_json(config.standalone_module_classes, class_name),
           "float_to_observed_custom_module_class": classes_json(config.float_to_observed_mapping),
           "non_traceable_module_name": list(config.non_traceable_module_names),
           "non_traceable_module_class": [class_name(kind) for kind in config.non_traceable_module_classes],
           "input_quantized_idxs": list(config.input_quantized_indexes),
           "output_quantized_idxs": list(config.output_quantized_indexes),
           "preserved_attributes": list(config.preserved_attributes)}
    return {key: value for key, value in out.items() if value}


def convert_json(config):
    out = {"observed_to_quantized_custom_module_class": classes_json(config.observed_to_quantized_mapping),
           "preserved_attributes": list(config.preserved_attributes)}
    return {key: value for key, value in out.items() if value}


WRITERS = [(BackendConfig, backend_json), (QConfigMapping, mapping_json), (PrepareCustomConfig, prepare_json),
           (ConvertCustomConfig, convert_json), (QConfig, lambda qconfig: {"global": qconfig_json(qconfig)})]


def to_json(config):
    """What tare reads in place of one of torch's configs; a QConfig becomes a mapping of that one."""
    for kind, write in WRITERS:
        if isinstance(config, kind):
            return write(config)
    raise Unnamed(f"expected one of {', '.join(kind.__name__ for kind, _ in WRITERS)}, found {type(config).__name__}")


def load(where):
    path, colon, name = where.rpartition(":")
    if not colon:
        raise Unnamed(f"expected FILE.py:NAME or MODULE:NAME, found '{where}'")
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(path)
    found = getattr(module, name)
    return found() if inspect.isroutine(found) else found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="FILE.py:NAME or MODULE:NAME")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    arguments = parser.parse_args()
    try:
        text = json.dumps(to_json(load(arguments.config)), indent=1)
    except Unnamed as error:
        sys.exit(f"torch_configs: {error}")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main()

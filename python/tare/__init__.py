# SPDX-License-Identifier: Apache-2.0
"""tare: quantizes float neural networks for a given backend, and runs them in integers.

>>> import numpy as np, tare
>>> images = np.load("data/digits/test.npz")["x"]
>>> model = tare.load("data/digits/digits.safetensors")
>>> prepared = tare.prepare_fx(model, backend_config="x86")
>>> tare.calibrate(prepared, [images[:64]])
64
>>> quantized = tare.convert_fx(prepared, backend_config="x86")
>>> quantized(images[:2]).argmax(1).tolist() == model(images[:2]).argmax(1).tolist()
True
"""
from __future__ import annotations

from ._dtypes import *  # noqa: F403
from ._dtypes import __all__ as _dtype_names
from ._errors import *  # noqa: F403
from ._errors import __all__ as _error_names
from ._library import lib as _lib
from ._library import text as _text
from ._tensor import Tensor
from .backend_config import *  # noqa: F403
from .backend_config import __all__ as _backend_names
from .data import (Batch, Data, calibrate, calibrate_state, load_calibration, merge_calibrations, save_calibration)
from .evaluation import evaluate
from .extensions import *  # noqa: F403
from .extensions import __all__ as _extension_names
from .flow import (convert_fx, convert_pt2e, convert_to_reference_decomposed_fx, convert_to_reference_fx, fuse_fx,
                   lower, lower_pt2e, prepare_fx, prepare_pt2e, prepare_qat_fx, prepare_qat_pt2e)
from .graph import Graph, Node
from .improvement import *  # noqa: F403
from .improvement import __all__ as _improvement_names
from .model import (Decision, Model, Module, disable_fake_quant, disable_observer, enable_fake_quant, enable_observer, load,
                    loads, save)
from .observers import *  # noqa: F403
from .observers import __all__ as _observer_names
from .preprocess import Preprocess
from .qconfig import *  # noqa: F403
from .qconfig import __all__ as _qconfig_names
from .quantizer import *  # noqa: F403
from .quantizer import __all__ as _quantizer_names
from .report import BenchResult, Comparison, Explanation, bench, compare, explain, preview
from .session import Session, isa_name
from .subgraph import *  # noqa: F403
from .subgraph import __all__ as _subgraph_names
from .torch_io import from_exported, from_torch

def build_features() -> str:
    """What this build contains: libraries and instruction sets, such as ``"oneDNN 2.6, avx512vnni"``."""
    return _text(_lib.build_features())


__version__ = _text(_lib.version())

__all__ = [*_backend_names, *_dtype_names, *_error_names, *_extension_names, *_improvement_names, *_observer_names, *_qconfig_names, *_quantizer_names,
           *_subgraph_names, "Batch", "BenchResult", "Comparison", "Data", "Decision", "Explanation",
           "Graph", "Model", "Module", "Node", "Preprocess", "Session", "Tensor", "bench", "build_features", "calibrate", "calibrate_state", "compare",
           "convert_fx", "convert_pt2e", "convert_to_reference_decomposed_fx", "convert_to_reference_fx", "disable_fake_quant",
           "disable_observer", "enable_fake_quant", "enable_observer", "evaluate", "explain", "from_exported", "from_torch", "fuse_fx", "isa_name", "load", "load_calibration", "loads", "lower", "lower_pt2e", "merge_calibrations",
           "prepare_fx", "prepare_pt2e", "prepare_qat_fx", "prepare_qat_pt2e", "preview", "save", "save_calibration"]


def __getattr__(name: str) -> QConfig:  # noqa: F405
    """torch's named qconfigs: default_qconfig, default_per_channel_qconfig, .."""
    if not name.startswith("_") and name in qconfig_names():  # noqa: F405
        return qconfig_named(name)  # noqa: F405
    raise AttributeError(f"module 'tare' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *qconfig_names()])  # noqa: F405

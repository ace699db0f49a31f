# SPDX-License-Identifier: Apache-2.0
"""tare: quantizes float neural networks for a given backend, and runs them in integers.

>>> import tare
>>> model = tare.load("network.safetensors")  # doctest: +SKIP
>>> prepared = tare.prepare_fx(model, backend_config="x86")  # doctest: +SKIP
>>> tare.calibrate(prepared, batches)  # doctest: +SKIP
>>> quantized = tare.convert_fx(prepared, backend_config="x86")  # doctest: +SKIP
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
from .flow import (convert_fx, convert_pt2e, convert_to_reference_decomposed_fx, convert_to_reference_fx, fuse_fx,
                   lower, lower_pt2e, prepare_fx, prepare_pt2e, prepare_qat_fx, prepare_qat_pt2e)
from .graph import Graph, Node
from .model import Decision, Model, Module, load, loads, save
from .observers import *  # noqa: F403
from .observers import __all__ as _observer_names
from .qconfig import *  # noqa: F403
from .qconfig import __all__ as _qconfig_names
from .quantizer import *  # noqa: F403
from .quantizer import __all__ as _quantizer_names
from .report import BenchResult, Comparison, Explanation, bench, compare, explain, preview
from .session import Session, isa_name
from .subgraph import *  # noqa: F403
from .subgraph import __all__ as _subgraph_names
from .torch_io import from_exported, from_torch

__version__ = _text(_lib.version())

__all__ = [*_backend_names, *_dtype_names, *_error_names, *_observer_names, *_qconfig_names, *_quantizer_names,
           *_subgraph_names, "Batch", "BenchResult", "Comparison", "Data", "Decision", "Explanation",
           "Graph", "Model", "Module", "Node", "Session", "Tensor", "bench", "calibrate", "calibrate_state", "compare",
           "convert_fx", "convert_pt2e", "convert_to_reference_decomposed_fx", "convert_to_reference_fx", "explain",
           "from_exported", "from_torch",           "fuse_fx", "isa_name", "load", "load_calibration", "loads", "lower", "lower_pt2e", "merge_calibrations",
           "prepare_fx", "prepare_pt2e", "prepare_qat_fx", "prepare_qat_pt2e", "preview", "save", "save_calibration"]

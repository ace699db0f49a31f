# SPDX-License-Identifier: Apache-2.0
"""Every function of the C interface is declared, and the names that torch's manual has are here."""
import re
import unittest

import tare
from tare import _declared
from tare._library import lib
from support import TOP, Case, main

# The API reference of torch's BackendConfig, and what its tutorials of BackendConfig and quantizers import.
NAMES = """BackendConfig BackendPatternConfig DTypeConfig DTypeWithConstraints ObservationType QConfig QConfigMapping
MinMaxObserver HistogramObserver default_weight_observer get_default_qconfig_mapping prepare_fx convert_fx
FixedQParamsObserver FixedQParamsFakeQuantize prepare_pt2e convert_pt2e prepare_qat_pt2e Quantizer QuantizationSpec
SharedQuantizationSpec FixedQParamsQuantizationSpec DerivedQuantizationSpec QuantizationAnnotation
get_source_partitions SubgraphMatcherWithNameNodeMap XNNPACKQuantizer ComposableQuantizer QuantizationConfig
get_input_act_qspec get_output_act_qspec get_weight_qspec get_bias_qspec""".split()
METHODS = {"BackendConfig": "configs from_dict set_backend_pattern_config set_backend_pattern_configs set_name to_dict",
           "BackendPatternConfig": "add_dtype_config from_dict set_dtype_configs set_fused_module set_fuser_method "
                                   "set_observation_type set_pattern set_qat_module set_reference_quantized_module "
                                   "set_root_module to_dict",
           "DTypeConfig": "from_dict to_dict input_dtype output_dtype weight_dtype",
           "Quantizer": "annotate validate transform_for_annotation"}


class Interface(Case):
    def test_every_function_of_c_is_declared_as_in_its_header(self):
        functions = {}
        for header in sorted((TOP / "include/tare").glob("*.h")):
            text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
            for name, parameters in re.findall(r"TARE_API [^;(]*?\b(tare_\w+)\(((?:[^()]|\([^()]*\))*(?:\([^()]*\))?[^;]*)\);", text):
                functions[name] = parameters
        self.assertGreater(len(functions), 400)
        self.assertEqual(set(functions), set(_declared.FUNCTIONS))
        for name in functions:
            function = getattr(lib, name.removeprefix("tare_"))  # AttributeError: the library does not have it
            self.assertEqual(len(function.argtypes), len(_declared.PARAMETERS[name]), name)

    def test_structs_have_the_sizes_that_the_library_fills(self):
        model = tare.load(TOP / "data/digits/digits.safetensors")
        self.assertEqual(model.facts()["parameter_count"], 102938)
        for name in _declared.STRUCTS:
            self.assertIs(_declared.t(name), getattr(_declared, name))

    def test_names_of_torchs_manual_are_here(self):
        self.assertEqual([name for name in NAMES if not hasattr(tare, name)], [])
        for owner, methods in METHODS.items():
            self.assertEqual([name for name in methods.split() if not hasattr(getattr(tare, owner), name)], [])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Module classes in Python, and functions that config files name."""
import json
import unittest

import numpy as np

import tare
from support import Case, digits, main


class FloorLinear(tare.ModuleClass):
    """A reference class that rounds weights down, where tare's rounds to even."""

    name, role = "tests.FloorLinear", "reference"

    def __init__(self):
        self.seen, self.failure = [], None

    def from_float(self, source, weight, made):
        self.seen.append(weight)
        made.copy_values(source)
        codes = np.floor(source.weight.numpy() / weight.scale.reshape(-1, 1).astype(np.float32))
        made.set_tensor("codes", (codes * weight.scale.reshape(-1, 1)).astype(np.float32))
        made.set_tensor("bias", source.bias)

    def shape(self, module, x):
        return (*x.shape[:-1], module.out_features)

    def forward(self, module, x):
        if self.failure:
            raise self.failure
        return x.numpy() @ module.codes.numpy().T + module.bias.numpy()

    def describe(self, module):
        return f"{module.in_features} -> {module.out_features}, rounds down"


class BNReLU(tare.ModuleClass):
    """A fused class of one's own: its children, one after the other."""

    name, role, answer = "tests.BNReLU", "fused", None

    def forward(self, module, x):
        if self.answer is not None:
            return self.answer
        norm = module.children()["0"]
        scale = norm.weight.numpy() / np.sqrt(norm.running_var.numpy() + np.float32(norm.eps))
        shift = norm.bias.numpy() - norm.running_mean.numpy() * scale
        return np.maximum(x.numpy() * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1), 0)


FLOOR, FUSED = FloorLinear(), BNReLU()
tare.register_module_class(FLOOR)
tare.register_module_class(FUSED)
tare.register_fuser_method("tests.fuse", lambda is_qat, relu, norm: tare.Module.fuse("tests.BNReLU", norm, relu))
ASKED = []


def root_of(match):
    ASKED.append(match)
    relu, norm = match
    return norm


tare.register_root_node_getter("tests.root", root_of)
tare.register_extra_inputs_getter("tests.extra", lambda match: [])


def floor_backend():
    int8 = tare.DTypeConfig(tare.quint8, tare.quint8, tare.qint8, tare.float32)
    linear = tare.BackendPatternConfig("torch.nn.Linear").add_dtype_config(int8).set_root_module("torch.nn.Linear") \
        .set_reference_quantized_module("tests.FloorLinear")
    return tare.BackendConfig("floor").set_backend_pattern_config(linear)


class Modules(Case):
    def setUp(self):
        super().setUp()
        FLOOR.seen.clear()
        FLOOR.failure = FUSED.answer = None

    def converted(self):
        model, images = digits(8)
        prepared = tare.prepare_fx(model, "x86", backend_config=floor_backend())
        prepared.calibrate(images)
        return tare.convert_to_reference_fx(prepared, backend_config=floor_backend()), model, images

    def test_a_reference_class_takes_the_weight_and_runs(self):
        reference, model, images = self.converted()
        weight, = FLOOR.seen
        self.assertEqual((weight.dtype, weight.qscheme, len(weight.scale), weight.quant_min),
                         (tare.qint8, tare.per_channel_symmetric, 10, -128))
        self.assertIn("(fc): FloorLinear(64 -> 10, rounds down)", str(reference))
        found = reference(images)
        np.testing.assert_allclose(found, model(images), atol=1.5)
        tare.save(reference, self.folder / "m.safetensors")
        again = tare.load(self.folder / "m.safetensors")
        self.assertEqual(str(again), str(reference))
        np.testing.assert_array_equal(again(images), found)

    def test_its_exceptions_come_out(self):
        reference, _, images = self.converted()
        FLOOR.failure = ZeroDivisionError("in forward")
        with self.assertRaisesRegex(ZeroDivisionError, "in forward"):
            reference(images)
        with tare.Session(reference) as session, self.assertRaisesRegex(ZeroDivisionError, "in forward"):
            session.run(images)

    def test_what_cannot_be_a_result_is_refused(self):
        model, images = digits(2)
        fused = tare.fuse_fx(model, backend_config=self.named_backend())
        for answer in (np.zeros((2, 48, 8), np.float32), "text", np.zeros((2, 48, 8, 8), complex), object()):
            FUSED.answer = answer
            with self.assertRaises((ValueError, TypeError)):
                fused(images)
        FUSED.answer = None
        np.testing.assert_allclose(fused(images), model(images), rtol=1e-4, atol=1e-4)

    def test_wrong_classes_are_refused(self):
        class Unknown(tare.ModuleClass):
            name, role = "tests.Unknown", "nobody's"
        with self.assertRaisesRegex(ValueError, "expected a role"):
            tare.register_module_class(Unknown())
        with self.assertRaises(TypeError):
            tare.register_module_class(Unknown)
        with self.assertRaisesRegex(tare.InvalidArgumentError, "exists already"):
            tare.register_module_class(FloorLinear())

    def named_backend(self):
        return tare.BackendConfig.from_json(json.dumps({"name": "named", "configs": [
            {"pattern_complex_format": ["torch.nn.ReLU", "torch.nn.BatchNorm2d"], "dtype_configs": [], "fuser_method": "tests.fuse",
             "root_node_getter": "tests.root", "extra_inputs_getter": "tests.extra",
             "observation_type": "OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT"}]}))

    def test_files_name_functions(self):
        model, _ = digits()
        backend = self.named_backend()
        self.assertEqual(json.loads(backend.to_json())["configs"][0]["fuser_method"], "tests.fuse")
        (self.folder / "b.json").write_text(backend.to_json())
        ASKED.clear()
        fused = tare.fuse_fx(model, backend_config=tare.BackendConfig.read(self.folder / "b.json"))
        self.assertIn("BNReLU", str(fused))
        self.assertTrue(ASKED)

    def test_unknown_and_taken_names_are_refused(self):
        with self.assertRaisesRegex(tare.MalformedFileError, "no built-in fuser is called 'tests.fuze'"):
            tare.BackendConfig.from_json(self.named_backend().to_json().replace("tests.fuse", "tests.fuze"))
        for name in ("tests.fuse", "torch.ao.quantization.fuser_method_mappings.fuse_conv_bn"):
            with self.assertRaisesRegex(tare.InvalidArgumentError, "exists already"):
                tare.register_fuser_method(name, root_of)


if __name__ == "__main__":
    main()

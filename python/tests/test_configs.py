# SPDX-License-Identifier: Apache-2.0
"""Configs under torch's names, and callbacks in Python: fusers, getters, observers."""
import threading
import unittest

import numpy as np

import tare
from support import Case, digits, main


class Largest(tare.Observer):
    """Symmetric, by the largest magnitude."""

    def __init__(self, dtype=tare.quint8, factor=1.0):
        self.dtype, self.factor, self.largest = dtype, factor, 0.0
        self.quant_min, self.quant_max = 0, 255

    def forward(self, x):
        self.largest = max(self.largest, float(np.abs(x).max()))

    def calculate_qparams(self):
        return max(self.largest * self.factor, 1e-6) / 127, 128

    def merge(self, other):
        self.largest = max(self.largest, other.largest)


class Failing(tare.Observer):
    """Raises when it sees data."""

    def __init__(self, dtype=tare.quint8):
        self.dtype = dtype

    def forward(self, x):
        raise ZeroDivisionError("seen")

    def calculate_qparams(self):
        return 1.0, 0


class NaNScale(Largest):
    """Whose scale is no number."""

    def calculate_qparams(self):
        return float("nan"), 0


def fuse_conv_relu(is_qat, conv, relu):
    return tare.Module.fuse("torch.ao.nn.intrinsic.ConvReLU2d", conv, relu)


def small_backend(fuser=fuse_conv_relu):
    """conv-relu and linear, in int8; batch norms are not fused, so that conv1 alone is quantized."""
    int8 = tare.DTypeConfig(tare.quint8, tare.quint8, tare.qint8, tare.float32)
    linear = tare.BackendPatternConfig("torch.nn.Linear").add_dtype_config(int8).set_root_module("torch.nn.Linear") \
        .set_reference_quantized_module("torch.ao.nn.quantized.reference.Linear")
    fused = tare.BackendPatternConfig(("torch.nn.BatchNorm2d", "torch.nn.ReLU")) \
        .set_fused_module("torch.ao.nn.intrinsic.BNReLU2d").set_fuser_method(fuser)
    return tare.BackendConfig("small").set_backend_pattern_configs([linear, fused])


def mapping(activation=tare.default_observer):
    qconfig = tare.QConfig(activation=activation, weight=tare.default_weight_observer)
    return tare.QConfigMapping().set_object_type("torch.nn.Linear", qconfig)


class Configs(Case):
    def test_texts_are_torchs(self):
        self.assertEqual(
            repr(tare.QConfig(tare.MinMaxObserver.with_args(quant_min=0, quant_max=127, eps=2 ** -12), tare.HistogramObserver)),
            "QConfig(activation=functools.partial(<class 'torch.ao.quantization.observer.MinMaxObserver'>, quant_min=0, "
            "quant_max=127, eps=0.000244140625){}, weight=<class 'torch.ao.quantization.observer.HistogramObserver'>)")
        self.assertEqual(
            repr(tare.DTypeWithConstraints(dtype=tare.quint8, quant_min_lower_bound=0, scale_min_lower_bound=2 ** -12)),
            "DTypeWithConstraints(dtype=torch.quint8, quant_min_lower_bound=0, quant_max_upper_bound=None, "
            "scale_min_lower_bound=0.000244140625, scale_max_upper_bound=None, scale_exact_match=None, "
            "zero_point_exact_match=None)")
        self.assertEqual(str(tare.QConfigMapping()), "QConfigMapping (\n global_qconfig\n  None\n object_type_qconfigs\n"
                         "  OrderedDict()\n module_name_regex_qconfigs\n  OrderedDict()\n module_name_qconfigs\n"
                         "  OrderedDict()\n module_name_object_type_order_qconfigs\n  OrderedDict()\n)")

    def test_builtin_configs_survive_python(self):
        model, images = digits()
        for name in tare.BackendConfig.builtin_names():
            config = tare.BackendConfig.builtin(name)
            self.assertEqual(tare.BackendConfig.from_json(config.to_json()).to_json(), config.to_json())
        found = []
        for backend, qconfigs in (("x86", "x86"), (tare.get_x86_backend_config(), tare.get_default_qconfig_mapping("x86"))):
            prepared = tare.prepare_fx(model, qconfigs, (images,), backend_config=backend)
            prepared.calibrate(images)
            found.append(str(tare.convert_fx(prepared, backend_config=backend)))
        self.assertEqual(*found)

    def test_mappings_survive_files(self):
        for name in tare.QConfigMapping.default_names():
            is_of_weights = name.startswith(("int4_", "int8_"))  # they need no data, and no training
            for is_qat in (False,) if is_of_weights else (False, True):
                given = tare.QConfigMapping.default(name, is_qat)
                again = tare.QConfigMapping.from_json(given.to_json())
                self.assertEqual((again.to_json(), str(again)), (given.to_json(), str(given)))
        with self.assertRaisesRegex(tare.UnsupportedError, "not for quantization-aware training"):
            tare.QConfigMapping.default("int8_weight_only", True)
        again = tare.QConfigMapping.from_dict(mapping().to_dict())
        self.assertTrue(tare.qconfig_equals(again.object_type_qconfigs["torch.nn.Linear"], tare.qconfig_named("default_qconfig")))

    def test_wrong_keywords_are_python_errors(self):
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'bits'"):
            tare.MinMaxObserver.with_args(bits=3)
        with self.assertRaisesRegex(TypeError, "prepare makes observers"):
            tare.MinMaxObserver()
        with self.assertRaises(ValueError):
            tare.BackendPatternConfig("a")._set_pattern_complex_format(("b", "a"))
        model, _ = digits()
        with self.assertRaises(TypeError):
            tare.prepare_fx(model, tare.QConfigMapping().set_global(tare.QConfig(3, 4)))

    def test_a_changed_config_is_what_counts(self):
        config = tare.get_x86_backend_config()
        for item in config.configs:
            if item.pattern == "torch.nn.Linear":
                item.set_dtype_configs([])
        model, images = digits()
        prepared = tare.prepare_fx(model, "x86", backend_config=config)
        prepared.calibrate(images)
        self.assertIn("(fc): Linear(", str(tare.convert_fx(prepared, backend_config=config)))

    def test_lint_finds_what_cannot_work(self):
        config = tare.BackendConfig("mine").set_backend_pattern_config(tare.BackendPatternConfig("torch.nn.Linaer"))
        self.assertTrue(config.lint())
        self.assertIn("Linear", tare.get_x86_backend_config().show())


class Callbacks(Case):
    def test_a_fuser_is_called_with_modules(self):
        model, _ = digits()
        seen = []

        def fuse(is_qat, norm, relu):
            seen.append((is_qat, norm.class_name, norm.num_features, relu.class_name))
            return tare.Module.fuse("torch.ao.nn.intrinsic.BNReLU2d", norm, relu)
        fused = tare.fuse_fx(model, backend_config=small_backend(fuse))
        self.assertIn((False, "torch.nn.BatchNorm2d", 48, "torch.nn.ReLU"), seen)
        self.assertIn("BNReLU2d", str(fused))
        with self.assertRaises(ValueError):
            small_backend(fuse).to_json()

    def test_a_fuser_that_fails_raises(self):
        model, _ = digits()
        kept = []

        def fail(is_qat, norm, relu):
            kept.append(norm)
            raise KeyError("mine")
        for fuser, kind in ((fail, KeyError), (lambda *_: None, TypeError), (lambda q, a, b: a, ValueError)):
            with self.assertRaises(kind):
                tare.fuse_fx(model, backend_config=small_backend(fuser))
        with self.assertRaises(ReferenceError):
            kept[0].class_name  # noqa: B018  it was lent for the call

    def test_what_a_getter_raises_is_its_threads(self):
        model, _ = digits()
        barrier, caught = threading.Barrier(8), [None] * 8

        def convert(index):
            def getter(match):
                if index % 2:
                    raise KeyError(index)
                return match[1]
            backend = small_backend()
            backend.configs[-1]._set_root_node_getter(getter)
            barrier.wait()
            for _ in range(20):
                try:
                    tare.prepare_fx(model, mapping(), backend_config=backend)
                except KeyError as error:
                    caught[index] = (*(caught[index] or ()), error.args[0])
        threads = [threading.Thread(target=convert, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(caught, [(index,) * 20 if index % 2 else None for index in range(8)])

    def test_a_scale_that_is_nan_is_refused(self):
        with self.assertRaisesRegex(ValueError, "finite scale, found nan"):
            tare.prepare_fx(digits()[0], mapping(tare.FixedQParamsObserver.with_args(scale=np.nan, zero_point=0)),
                            backend_config="x86")
        model, images = digits()
        prepared = tare.prepare_fx(model, mapping(NaNScale), backend_config="x86")
        prepared.calibrate(images)
        with self.assertRaisesRegex(ValueError, "nan"):
            tare.convert_fx(prepared, backend_config="x86")

    def test_custom_configs_are_files(self):
        given = tare.PrepareCustomConfig().set_non_traceable_module_names(["conv1"]).set_input_quantized_indexes([0]) \
            .set_float_to_observed_mapping("a.Float", "a.Observed").set_preserved_attributes(["fc"]) \
            .set_standalone_module_name("fc", mapping(), None, tare.PrepareCustomConfig(), small_backend("torch.nn.Fuser"))
        given.standalone_module_names["fc"].backend_config = tare.get_x86_backend_config()
        converting = tare.ConvertCustomConfig().set_observed_to_quantized_mapping("a.Observed", "a.Quantized")
        for config in (given, converting, tare.FuseCustomConfig().set_preserved_attributes(["fc"])):
            again = type(config).from_json(config.to_json())
            self.assertEqual(again.to_json(), config.to_json())
        with self.assertRaisesRegex(tare.MalformedFileError, "preserved"):
            tare.FuseCustomConfig.from_json('{"preserved": []}')
        with self.assertRaises(TypeError):
            tare.ConvertCustomConfig.from_json(3)

    def test_an_observer_in_python_gives_the_parameters(self):
        model, images = digits()
        backend = tare.get_x86_backend_config()
        prepared = tare.prepare_fx(model, mapping(Largest.with_args(factor=2.0)), backend_config=backend)
        prepared.calibrate(images)
        largest = []
        with tare.Session(model) as session:
            session.watch(lambda node, x: largest.append(np.abs(x.numpy()).max()) if node == "fc" else None)
            session.run(images)
        quantized = tare.convert_fx(prepared, backend_config=backend)
        fc = quantized.get_submodule("fc")
        self.assertAlmostEqual(float(fc.scale), 2 * float(largest[0]) / 127, places=5)
        self.assertEqual(int(fc.zero_point.numpy()), 128)
        prepared.save(self.folder / "prepared.safetensors")
        again = tare.load(self.folder / "prepared.safetensors")
        self.assertEqual(str(tare.convert_fx(again, backend_config=backend)), str(quantized))

    def test_an_observer_that_fails_ends_calibration(self):
        model, images = digits()
        prepared = tare.prepare_fx(model, mapping(Failing), backend_config="x86")
        with self.assertRaisesRegex(ZeroDivisionError, "seen"):
            prepared.calibrate(images)


if __name__ == "__main__":
    main()

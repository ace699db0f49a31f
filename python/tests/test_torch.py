# SPDX-License-Identifier: Apache-2.0
"""Models and configs from torch, and its tutorial of BackendConfig. Skipped where torch is not installed."""
import collections
import dataclasses
import importlib.util
import re
import sys
import unittest
import warnings

import numpy as np

import tare
from support import TOP, Case, main

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    warnings.filterwarnings("ignore")


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                               torch.nn.Flatten(), torch.nn.Linear(288, 5)).eval()


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Torch(Case):
    def test_a_module_computes_the_same(self):
        module, x = network(), torch.randn(2, 3, 8, 8)
        model = tare.from_torch(module, (x,))
        np.testing.assert_allclose(model(x), module(x).detach().numpy(), rtol=1e-4, atol=1e-5)

    def test_fx_gives_torchs_own_text(self):
        from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx
        torch.backends.quantized.engine = "x86"
        module, x = network(), torch.randn(2, 3, 8, 8)
        theirs = quantize_fx.prepare_fx(module, get_default_qconfig_mapping("x86"), (x,))
        theirs(x)
        ours = tare.prepare_fx(module, tare.QConfigMapping.from_torch(get_default_qconfig_mapping("x86")), (x,))
        ours(x)
        expected = str(quantize_fx.convert_to_reference_fx(theirs)).partition("\n# To see")[0].rstrip()
        expected = expected.replace("\n\n\n\ndef", "\n\ndef")  # tare leaves one empty line, as torch's manual does
        self.assertEqual(str(tare.convert_to_reference_fx(ours)), expected)

    def test_prepared_models_are_read_with_what_they_have_seen(self):
        from torch.ao.quantization import get_default_qat_qconfig_mapping, get_default_qconfig_mapping, quantize_fx
        torch.backends.quantized.engine = "x86"
        plain, wrapped = "\n\n\n\ndef", "\n\ndef"

        def text(module):
            return str(module).partition("\n# To see")[0].rstrip().replace(plain, wrapped)
        for name in ("x86", "qnnpack"):
            for is_qat in (False, True):
                module, x = network(), torch.randn(2, 3, 8, 8)
                if is_qat:
                    theirs = quantize_fx.prepare_qat_fx(module.train(), get_default_qat_qconfig_mapping(name), (x,))
                    theirs(x).square().mean().backward()
                    with torch.no_grad():  # a step of training
                        for parameter in theirs.parameters():
                            parameter -= 0.01 * parameter.grad
                else:
                    theirs = quantize_fx.prepare_fx(module, get_default_qconfig_mapping(name), (x,))
                theirs(x)
                theirs(2 * x)
                theirs.eval()
                ours = tare.from_torch(theirs)
                self.assertEqual((ours.stage, str(ours)), ("prepared", text(theirs)))
                tare.save(ours, self.folder / "prepared.safetensors")
                again = tare.load(self.folder / "prepared.safetensors")
                ours.calibrate(x)  # its observers go on where torch's were
                theirs(x)
                self.assertEqual(str(ours), text(theirs))
                expected = text(quantize_fx.convert_to_reference_fx(theirs))
                self.assertEqual(str(tare.convert_to_reference_fx(ours, backend_config=name)), expected)
                self.assertEqual(tare.convert_fx(again, backend_config=name).stage, "lowered")

    def test_prepared_models_with_what_is_not_read_say_so(self):
        from torch.ao.quantization import get_default_qconfig_mapping, quantize_fx
        from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
        module, x = torch.nn.Sequential(network()), torch.randn(2, 3, 8, 8)
        custom = PrepareCustomConfig().set_standalone_module_name("0", None, (x,), None, None)
        theirs = quantize_fx.prepare_fx(module.eval(), get_default_qconfig_mapping("x86"), (x,), custom)
        theirs(x)
        from tare.torch_models import prepared
        self.assertTrue(prepared.is_prepared(theirs))
        with self.assertRaisesRegex(tare.UnsupportedError, "standalone"):
            prepared.read(theirs)

    def test_configs_come_over(self):
        import torch.ao.quantization.backend_config.utils  # noqa: F401  torch does not import it itself
        from torch.ao.quantization import backend_config as theirs
        for name in ("native", "fbgemm", "qnnpack", "onednn"):
            given = getattr(theirs, f"get_{name}_backend_config")()
            ours = tare.BackendConfig.from_torch(given)
            self.assertEqual(len(ours.configs), len(given.configs))
            with ours._built():
                pass

    def test_reprs_are_torchs(self):
        from torch.ao.quantization import observer as theirs
        for name in tare.observers.__all__:
            given = getattr(theirs, name, None)
            if given is not None and not isinstance(given, type):
                self.assertEqual(repr(getattr(tare, name)), repr(given))

    def test_programs_are_read(self):
        module, x = network(), torch.randn(2, 3, 8, 8)
        program = torch.export.export(module, (x,))
        prepared = tare.prepare_pt2e(program, tare.XNNPACKQuantizer())
        prepared.calibrate(x)
        lowered = tare.lower_pt2e(tare.convert_pt2e(prepared))
        self.assertGreater(tare.compare(tare.from_exported(program), lowered, [x]).outputs[0]["sqnr_db"], 20)
        node = tare.from_exported(program).graph.find_nodes(op="call_function", target=torch.ops.aten.conv2d.default)
        self.assertEqual(len(node), 1)

    def test_inputs_have_names_and_outputs_any_structure(self):
        @dataclasses.dataclass
        class Both:
            low: object
            high: object

        class Forms(torch.nn.Module):
            def __init__(self, form):
                super().__init__()
                self.linear, self.form = torch.nn.Linear(8, 4), form

            def forward(self, x, scale=None, *, shift=None):
                y = self.linear(x)
                y = y if scale is None else y * scale
                return self.form(y if shift is None else y + shift, y.relu())
        x, scale, shift = torch.randn(3, 8), torch.randn(4), torch.randn(4)
        for form in (Both, collections.namedtuple("Pair", "low high"), lambda a, b: {"low": a, "high": {"inner": b}},
                     lambda a, b: collections.OrderedDict(low=a, high=b), lambda a, b: [a, (b, None)]):
            module = Forms(form).eval()
            model = tare.from_torch(module, (x,), kwargs={"scale": scale, "shift": shift})
            expected = Forms.forward(module, x, scale, shift=shift)
            low = next(iter(expected.values())) if isinstance(expected, dict) else getattr(expected, "low", None)
            expected = expected[0] if low is None else low
            for found in (model(x, scale, shift), model(x, shift=shift, scale=scale), model(shift=shift, x=x, scale=scale)):
                self.assertEqual(len(found), 2)
                first = next(iter(found.values())) if isinstance(found, dict) else found[0]
                np.testing.assert_allclose(first, expected.detach(), rtol=0, atol=1e-6)
        with tare.Session(model) as session:
            np.testing.assert_array_equal(session.run(x, shift=shift, scale=scale)[0], found[0])
        prepared = tare.prepare_fx(model, backend_config="x86")
        prepared.calibrate(x, scale=scale, shift=shift)
        for wrong in ({"nobody": x}, {"x": x}, {"shift": shift}):
            with self.assertRaisesRegex(TypeError, "unexpected keyword|multiple values|missing input 'scale'"):
                model(x, **wrong)

    def test_modules_with_a_state_are_refused_and_left_as_they_were(self):
        class Counts(torch.nn.Module):
            def __init__(self, uses):
                super().__init__()
                self.register_buffer("count", torch.zeros(1))
                self.uses = uses

            def forward(self, x):
                self.count += 1
                return x + self.count if self.uses else x + 1
        x = torch.randn(2, 3)
        module = Counts(True).eval()
        with self.assertRaisesRegex(ValueError, "changes its buffer 'count'"):
            tare.from_torch(module, (x,))
        self.assertEqual(module.count.tolist(), [0])
        other = Counts(False).eval()
        np.testing.assert_array_equal(tare.from_torch(other, (x,))(x), x + 1)
        self.assertEqual(other.count.tolist(), [0])

    def test_assignments_to_parts_of_tensors_are_traced(self):
        class Parts(torch.nn.Module):
            def forward(self, x):
                y = x * np.float64(2)  # numpy's numbers are numbers
                y[:, 1:, 0] = x[:, :-1, 1]
                y[..., -1] = 3.0
                y[:, 0, :2] = 0
                y[x > 1] = -1.0
                y[:, :2] = torch.full_like(y[:, :2], 0.5).where(x[:, :2] < 0, y[:, :2])
                z = torch.zeros_like(x)
                z[:, ::2] = y[:, ::2]
                return y + 0, z

        class Views(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                row = y[:, 0]
                row[:] = 1.0  # changes y, which a trace does not see
                return y

        module, x = Parts().eval(), torch.randn(2, 4, 5)
        for ours, theirs in zip(tare.from_torch(module, (x,))(x), module(x)):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(tare.from_torch(Views().eval(), (x,))(x), Views()(x))  # by torch.export

    def test_methods_that_change_tensors_are_traced(self):
        class Changes(torch.nn.Module):
            def forward(self, x):
                y = x + 0
                y.mul_(2).add_(1)
                y.unsqueeze_(1)
                y.clamp_(min=0.5)
                y.masked_fill_(y > 2, -1.0)
                z, w = torch.zeros_like(x), x * 1
                z.copy_(y[:, 0])
                w.zero_()
                w.sub_(x + 1)
                return y, z.relu_(), w

        class Views(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                y[:, 0].unsqueeze_(1).add_(1)  # changes y, which a trace does not see
                return y.view(2, 2, -1) + y[:, :1]

        x = torch.randn(2, 4, 5)
        ours = tare.from_torch(Changes().eval(), (x.clone(),))
        self.assertNotIn("aten", str(ours))  # a trace
        for found, expected in zip(ours(x), Changes()(x.clone())):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(tare.from_torch(Views().eval(), (x[..., :1],))(x[..., :1]), Views()(x[..., :1]), rtol=1e-6)

    def test_traced_values_are_written_into_tensors_of_numbers(self):
        class Positions(torch.nn.Module):
            def forward(self, x):
                table = torch.zeros(4, 6)
                table[:, :3] = torch.arange(3).type_as(x) * x[0, 0, 0]
                table[1:, 3:] = table[1:, :3] + 1
                count = torch.ones(2, 1)
                count.add_(x[0, :2, :1])
                return x + table[None], table, count

        x = torch.randn(2, 4, 6)
        ours = tare.from_torch(Positions().eval(), (x,))
        self.assertNotIn("setitem", str(ours))
        other = torch.randn(2, 4, 6)  # the values are not those of the example
        for found, expected in zip(ours(other), Positions()(other)):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)

    def test_tuples_that_are_joined_are_taken_apart(self):
        class Joins(torch.nn.Module):
            def forward(self, x):
                return torch.cat(x.chunk(3, 1), -1) + torch.stack(x.unbind(1)).sum()

        x = torch.randn(2, 3, 4)
        model = tare.from_torch(Joins().eval(), (x,))
        np.testing.assert_allclose(model(x), Joins()(x), rtol=1e-6)
        prepared = tare.prepare_fx(model, "x86")
        prepared(x)
        self.assertEqual(tare.convert_fx(prepared).stage, "lowered")

    def test_caches_are_inputs_and_outputs(self):
        class Layer:
            def __init__(self, keys, values):
                self.keys, self.values, self.is_sliding = keys, values, False

        class Cache:
            def __init__(self, layers):
                self.layers = layers

            def update(self, i, keys, values):
                layer = self.layers[i]
                layer.keys, layer.values = torch.cat([layer.keys, keys], -2), torch.cat([layer.values, values], -2)
                return layer.keys, layer.values

        Layer.__module__ = Cache.__module__ = "transformers.cache_utils"

        class Decoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.project = torch.nn.Linear(4, 12)

            def forward(self, x, past=None, scale=1.0):
                q, k, v = self.project(x).chunk(3, -1)
                k, v = past.update(0, k, v)
                y = torch.softmax(q @ k.mT * scale, -1) @ v
                return {"y": y, "past": past}

        module, x = Decoder().eval(), torch.randn(2, 1, 4)
        keys, values = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
        model = tare.from_torch(module, (x,), kwargs={"past": Cache([Layer(keys, values)])})
        expected = module(x, Cache([Layer(keys, values)]))
        ours = model(x, past_0_keys=keys, past_0_values=values)
        self.assertEqual(list(ours), ["y", "past"])
        past = expected["past"].layers[0]
        for found, wanted in ((ours["y"], expected["y"]), (ours["past"]["0"]["keys"], past.keys), (ours["past"]["0"]["values"], past.values)):
            np.testing.assert_allclose(found, wanted.detach(), rtol=1e-5, atol=1e-6)

    def test_what_is_no_plain_module_is_taken_out_or_refused(self):
        module, x = network(), torch.randn(2, 3, 8, 8)
        expected = str(tare.from_torch(module, (x,)))
        for wrapped in (torch.compile(module), torch.nn.DataParallel(module)):
            self.assertEqual(str(tare.from_torch(wrapped, x)), expected)
        program = torch.export.export(module, (x,))
        for wrong, said in ((program, "tare.from_exported reads it"), (torch.jit.trace(module, x), "TorchScript"), (torch.relu, "found builtin")):
            with self.assertRaisesRegex(TypeError, said):
                tare.from_torch(wrong, (x,))

    @unittest.skipUnless(importlib.util.find_spec("torchao"), "torchao is not installed")
    def test_weights_that_torchao_has_wrapped_are_refused(self):
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        module = torch.nn.Sequential(torch.nn.Linear(8, 4))
        quantize_(module, Int8WeightOnlyConfig())
        with self.assertRaisesRegex(tare.UnsupportedError, "'0.weight' is a .*, expected a tensor"):
            tare.from_torch(module, (torch.randn(1, 8),))

    def test_torchs_own_configs_are_taken(self):
        import torch.ao.quantization.backend_config.utils  # noqa: F401  torch does not import it itself
        from torch.ao.quantization import backend_config, get_default_qconfig_mapping
        model = tare.from_torch(network(), (torch.randn(2, 3, 8, 8),))
        prepared = tare.prepare_fx(model, get_default_qconfig_mapping("x86"), backend_config=backend_config.get_native_backend_config())
        self.assertEqual(str(prepared), str(tare.prepare_fx(model, "x86", backend_config="native")))
        with self.assertRaisesRegex(TypeError, "expected a QConfigMapping, .* found .*fx.custom_config.PrepareCustomConfig"):
            tare.prepare_fx(model, torch.ao.quantization.fx.custom_config.PrepareCustomConfig())

    def test_the_tutorial_prints_what_torchs_does(self):
        sys.path.insert(0, str(TOP / "examples/python"))
        import backend_config_tutorial as tutorial
        def shape(model):
            return re.sub(r"scale=[0-9.e-]+, zero_point=\d+", "scale, zero_point", str(model))
        whole = shape(tutorial.quantize(False, tutorial.qconfig_mapping))
        self.assertIn("(linear): QuantizedLinear(in_features=10, out_features=3, scale, zero_point, qscheme=torch.per_tensor_affine)", whole)
        self.assertIn("(conv): QuantizedConvReLU2d(3, 3, kernel_size=(3, 3), stride=(1, 1), scale, zero_point)", whole)
        with_norm = shape(tutorial.quantize(True, tutorial.qconfig_mapping))
        self.assertIn("(linear): QuantizedLinear", with_norm)
        self.assertIn("(conv): Conv2d(3, 3, kernel_size=(3, 3), stride=(1, 1))", with_norm)
        self.assertIn("(linear): Linear(", shape(tutorial.quantize(False, tare.get_default_qconfig_mapping())))


if __name__ == "__main__":
    main()

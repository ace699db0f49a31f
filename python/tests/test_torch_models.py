# SPDX-License-Identifier: Apache-2.0
"""Models that torch lowered, in FX and eager mode, and programs that torchao prepared, are read as what they are. Skipped
where torch is not installed."""
import copy
import importlib.util
import re
import unittest
import warnings

import numpy as np

import tare
from support import Case, main

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TORCHAO = HAS_TORCH and importlib.util.find_spec("torchao") is not None
if HAS_TORCH:
    import torch
    from torch import nn
    from torch.ao import quantization as tq
    from torch.ao.nn.quantized import FloatFunctional
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    warnings.filterwarnings("ignore")

    class Layers(nn.Module):
        """Modules and functions with packed weights, and modules with scales of their own."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.point = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1)
            self.swish, self.elu, self.drop = nn.Hardswish(), nn.ELU(), nn.Dropout(0.2)
            self.instance = nn.InstanceNorm2d(8, affine=True)
            self.linear, self.layer_norm = nn.Linear(8, 5), nn.LayerNorm(5)
            self.weight = nn.Parameter(torch.randn(5, 5))

        def forward(self, x):
            a = nn.functional.relu(self.norm(self.conv(x)))
            y = self.elu(self.instance(self.swish(self.point(a) + a)))
            y = torch.sigmoid(self.linear(self.drop(torch.cat([y, a], 1)[:, :8].mean((2, 3)))))
            return nn.functional.linear(self.layer_norm(y), self.weight)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(10, 8), nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
            self.gru, self.cell, self.linear = nn.GRU(12, 8), nn.LSTMCell(8, 8), nn.Linear(8, 5)
            self.weight = nn.Parameter(torch.randn(5, 5))

        def forward(self, x):
            y, _ = self.gru(self.lstm(self.embedding(x))[0])
            return nn.functional.linear(self.linear(self.cell(y[:, 0])[0]), self.weight)

    class Eager(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
            self.conv, self.relu, self.point, self.relu6 = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.ReLU6()
            self.sum, self.join, self.pool, self.linear = FloatFunctional(), FloatFunctional(), nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

        def forward(self, x):
            a = self.relu(self.conv(self.quant(x)))
            y = self.join.cat([self.relu6(self.sum.add(self.point(a), a)), a], 1)
            return self.dequant(self.linear(torch.flatten(self.pool(y), 1)))

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.point, self.linear = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1), nn.Linear(8, 5)

        def forward(self, x):
            a = torch.relu(self.norm(self.conv(x)))
            return self.linear((self.point(a) + a).mean((2, 3)))


def text(module):
    """As torch prints it; tare leaves one empty line before the function, as torch's manual does."""
    return str(module).partition("\n# To see")[0].rstrip().replace("\n\n\n\ndef", "\n\ndef")


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Lowered(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.addCleanup(setattr, torch.backends.quantized, "engine", torch.backends.quantized.engine)

    def check(self, theirs, x, atol=0.0):
        """The text is torch's, and so are the outputs; a file holds it all."""
        ours = tare.from_torch(theirs, (x,))
        self.assertEqual(ours.stage, "lowered")
        expected = theirs(x).detach().numpy()
        np.testing.assert_allclose(ours(x), expected, rtol=0, atol=atol)
        tare.save(ours, self.folder / "lowered.safetensors")
        again = tare.load(self.folder / "lowered.safetensors")
        self.assertEqual(str(again), str(ours))
        np.testing.assert_array_equal(again(x), ours(x))
        return ours

    def test_fx_models_are_read_with_packed_weights(self):
        for engine in ("x86", "fbgemm", "qnnpack", "onednn"):
            torch.backends.quantized.engine = engine
            x = torch.randn(2, 3, 8, 8)
            prepared = prepare_fx(Layers().eval(), tq.get_default_qconfig_mapping(engine), (x,))
            prepared(x)
            theirs = convert_fx(prepared)
            ours = self.check(theirs, x, atol=1e-6 * float(theirs(x).abs().max()))
            self.assertEqual(str(ours), text(theirs))
            rules = {module.config["rule"] for _, module in ours.named_modules() if "rule" in module.config}
            self.assertEqual(rules, {"x86": {"F", "O"}, "fbgemm": {"F"}, "qnnpack": {"Q"}, "onednn": {"O"}}[engine])
            self.assertGreater(str(tare.explain(ours)).count(": quantized"), 5)

    def test_dynamic_models_are_read(self):
        x = torch.randint(0, 10, (2, 4))
        for qconfig, embedding in ((tq.default_dynamic_qconfig, tq.float_qparams_weight_only_qconfig),
                                   (tq.float16_dynamic_qconfig, tq.float_qparams_weight_only_qconfig_4bit)):
            mapping = tq.QConfigMapping().set_global(qconfig).set_object_type(nn.Embedding, embedding)
            theirs = convert_fx(prepare_fx(Recurrent().eval(), mapping, (x,)))
            self.assertEqual(str(self.check(theirs, x, atol=1e-6)), text(theirs))
        network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        for dtype in (torch.qint8, torch.float16):
            self.check(tq.quantize_dynamic(network, {nn.Linear}, dtype), torch.randn(3, 8), atol=1e-6)

    def test_eager_models_are_read_converted_or_prepared(self):
        x = torch.randn(4, 3, 8, 8)
        for is_qat in (False, True):
            torch.backends.quantized.engine = "x86"
            network = Eager().train(is_qat)
            network.qconfig = (tq.get_default_qat_qconfig if is_qat else tq.get_default_qconfig)("x86")
            network = (tq.fuse_modules_qat if is_qat else tq.fuse_modules)(network, [["conv", "relu"]])
            prepared = (tq.prepare_qat if is_qat else tq.prepare)(network)
            with self.assertRaisesRegex(tare.InvalidArgumentError, "the observer '.*' has seen no data"):
                tare.from_torch(prepared, (x,))
            prepared(x)
            theirs = tq.convert(prepared.eval())
            self.check(theirs, x)
            with self.assertWarnsRegex(UserWarning, "eager mode"):
                ours = tare.from_torch(prepared, (x,))
            np.testing.assert_array_equal(ours(x), theirs(x).numpy())
        with self.assertRaisesRegex(TypeError, "needs example_inputs"):
            tare.from_torch(theirs)

    def test_weights_that_torch_does_not_give_back_are_refused(self):
        torch.backends.quantized.engine = "fbgemm"
        x = torch.randn(1, 8, 4, 4)
        prepared = prepare_fx(nn.Sequential(nn.ConvTranspose2d(8, 4, 2)).eval(), tq.get_default_qconfig_mapping("fbgemm"), (x,))
        prepared(x)
        with self.assertRaisesRegex(tare.UnsupportedError, "does not give the weights of a transposed convolution back"):
            tare.from_torch(convert_fx(prepared))


@unittest.skipUnless(HAS_TORCHAO, "torchao is not installed")
class Programs(Case):
    def test_prepared_programs_are_read_with_what_they_have_seen(self):
        from torchao.quantization.pt2e import move_exported_model_to_eval
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
        from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

        def quantizers(is_qat):
            for is_dynamic in (False, True):
                yield is_dynamic, x86.X86InductorQuantizer().set_global(
                    x86.get_default_x86_inductor_quantization_config(is_qat=is_qat, is_dynamic=is_dynamic))
                if not (is_qat and is_dynamic):  # preparing for training takes torchao many seconds
                    yield is_dynamic, xnnpack.XNNPACKQuantizer().set_global(
                        xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_qat=is_qat, is_dynamic=is_dynamic))
        torch.manual_seed(0)
        x = torch.randn(2, 3, 8, 8)
        for is_qat in (False, True):
            for is_dynamic, quantizer in quantizers(is_qat):
                program = torch.export.export(Convolutions().train(is_qat), (x,)).module()
                theirs = (prepare_qat_pt2e if is_qat else prepare_pt2e)(program, quantizer)
                theirs(x)
                if is_qat:
                    self.train(theirs, x)
                    move_exported_model_to_eval(theirs)
                ours = tare.from_torch(theirs)
                self.assertEqual((ours.stage, str(ours)), ("prepared", text(theirs)))
                ours.calibrate(2 * x)  # its observers go on where torchao's were
                theirs(2 * x)
                self.assert_near(str(ours), text(theirs))
                converted = tare.convert_pt2e(ours)
                # Of a dynamic program torchao cannot convert a copy, and other names come out of the program itself.
                expected = convert_pt2e(theirs if is_dynamic else copy.deepcopy(theirs))
                if not is_dynamic:
                    self.assert_near(str(converted), text(expected))
                np.testing.assert_allclose(converted(x), expected(x).detach().numpy(), rtol=0, atol=1e-6)
                for program in (converted, tare.from_torch(expected, (x,))):
                    lowered = tare.lower_pt2e(program)
                    np.testing.assert_allclose(lowered(x), expected(x).detach().numpy(), rtol=0, atol=1e-6)
                    self.assertRegex(str(tare.explain(lowered)), r"(conv2d|linear)\S* \(torch.ops.aten.\w+.default\): quantized")

    def assert_near(self, found, expected):
        """Equal but for floats that are sums in another order."""
        number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
        self.assertEqual(number.sub("#", found), number.sub("#", expected))
        np.testing.assert_allclose([float(x) for x in number.findall(found)], [float(x) for x in number.findall(expected)], rtol=1e-6)

    @staticmethod
    def train(module, x):
        """A step."""
        module(x).square().mean().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad
        module(2 * x)


if __name__ == "__main__":
    main()

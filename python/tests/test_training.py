# SPDX-License-Identifier: Apache-2.0
"""Training of prepared models on torch, and back. Skipped where torch is not installed."""
import copy
import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import types
import unittest
import warnings

import numpy as np

import tare
from support import TOP, Case, digits, main

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    from torch.ao.quantization import disable_observer, enable_observer, quantize_fx
    warnings.filterwarnings("ignore")


def bytes_of(model):
    """All of a model: graph, tensors, statistics."""
    return model.__reduce__()[1][0]


def prepared_for_training():
    model, images = digits()
    return tare.prepare_qat_fx(model.train(), backend_config="x86"), images


def compiled_kernels(compiler, folder, kernels):
    """The kernels for CUDA as functions of arrays, compiled for this processor."""
    loops = """
#include <cmath>
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
%s%s%s
extern "C" void choose(int fused, long n, const float *const *in, const float *v, float *const *out) {
    for (long i = 0; i < n; i++)
        (fused ? tare_choose_fused<float> : tare_choose_plain<float>)(
            in[0][i], in[1][i], in[2][i], in[3][i], in[4][i], in[5][i], in[6][i], in[7][i], v[0], v[1], v[2], v[3],
            v[4], out[0][i], out[1][i], out[2][i], out[3][i]);
}
extern "C" void round_all(long n, const float *const *in, const float *v, float *const *out) {
    for (long i = 0; i < n; i++)
        tare_round_channels<float>(in[0][i], in[1][i], in[2][i], 1, v[0], v[1], out[0][i], out[1][i]);
}
""" % (kernels.CHOOSE_PLAIN, kernels.CHOOSE_FUSED, kernels.ROUND_CHANNELS)
    (folder / "kernels.cpp").write_text(loops)
    subprocess.run([compiler, "-O1", "-ffp-contract=off", "-fno-builtin-isnan", "-shared", "-fPIC", "-o", str(folder / "kernels.so"),
                    str(folder / "kernels.cpp")], check=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))

    def run(function, inputs, values, count, outputs):
        length = max(t.numel() for t in inputs)
        arrays = [np.ascontiguousarray(np.broadcast_to(t.numpy().astype(np.float32), (length,)) if t.numel() == 1 else
                                       t.numpy().astype(np.float32)) for t in inputs]
        made = [np.empty(inputs[0].shape, np.float32) for _ in range(outputs)]
        pointer = ctypes.POINTER(ctypes.c_float)
        table = [(pointer * len(rows))(*[row.ctypes.data_as(pointer) for row in rows]) for rows in (arrays, made)]
        function(*count, ctypes.c_long(length), table[0], (ctypes.c_float * len(values))(*values), table[1])
        return made
    return types.SimpleNamespace(
        choose=lambda is_fused, inputs, values: run(library.choose, inputs, values, [int(is_fused)], 4),
        round=lambda inputs, values: run(library.round_all, inputs, values, [], 2))


def batches(count=5, channels=6):
    """Small and large values, zeros, channels of one sign."""
    random = np.random.default_rng(0)
    for index in range(count):
        x = random.standard_normal((4, channels, 5), dtype=np.float32) * np.float32(10.0 ** (index - 3))
        x[:, 0] = np.abs(x[:, 0])
        x[:, 1] = -np.abs(x[:, 1])
        x[:, 2] = 0
        x[0, :, 0] = np.round(x[0, :, 0] * 8) / 8  # ties
        yield x


def activations():
    """Every fake quantizer that a qconfig may name, for an activation."""
    per_channel = tare.MovingAveragePerChannelMinMaxObserver
    yield tare.default_fake_quant
    yield tare.default_fused_act_fake_quant
    yield tare.default_fixed_qparams_range_0to1_fake_quant
    yield tare.FakeQuantize.with_args(observer=tare.MinMaxObserver, dtype=tare.qint8, quant_min=-128, quant_max=127,
                                      qscheme=tare.per_tensor_symmetric)
    yield tare.FakeQuantize.with_args(observer=per_channel, dtype=tare.qint8, quant_min=-128, quant_max=127, ch_axis=1,
                                      qscheme=tare.per_channel_symmetric)
    yield tare.FakeQuantize.with_args(observer=per_channel, dtype=tare.quint8, quant_min=0, quant_max=255, ch_axis=1,
                                      qscheme=tare.per_channel_affine)
    yield tare.FusedMovingAvgObsFakeQuantize.with_args(
        observer=tare.MovingAverageMinMaxObserver, dtype=tare.qint8, quant_min=-128, quant_max=127,
        qscheme=tare.per_tensor_symmetric, averaging_constant=0.3)
    yield tare.FusedMovingAvgObsFakeQuantize.with_args(
        observer=per_channel, dtype=tare.qint8, quant_min=-127, quant_max=127, ch_axis=1,
        qscheme=tare.per_channel_symmetric)
    yield tare.FusedMovingAvgObsFakeQuantize.with_args(
        observer=per_channel, dtype=tare.quint8, quant_min=0, quant_max=255, ch_axis=1,
        qscheme=tare.per_channel_affine)


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Training(Case):
    def test_fake_quantizers_compute_the_same_bits(self):
        class Relu(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x)
        backend = tare.BackendConfig("any").set_backend_pattern_config(
            tare.BackendPatternConfig("torch.relu").set_dtype_configs(
                [tare.DTypeConfig(kind, kind) for kind in (tare.quint8, tare.qint8)]))
        float_model = tare.from_torch(Relu(), (torch.zeros(4, 6, 5),)).train()
        for activation in activations():
            with self.subTest(str(activation)):
                mapping = tare.QConfigMapping().set_global(
                    tare.QConfig(activation=activation, weight=tare.default_weight_fake_quant))
                prepared = tare.prepare_qat_fx(float_model, mapping, backend_config=backend)
                self.assertIn("FakeQuantize", str(prepared))
                module = prepared.to_torch()
                for x in batches():
                    prepared.calibrate(x)
                    module(torch.from_numpy(x))
                    prepared.disable_observer()
                    module.apply(disable_observer)
                    np.testing.assert_array_equal(prepared(x), module(torch.from_numpy(x)).detach().numpy())
                    prepared.enable_observer()
                    module.apply(enable_observer)
                    self.assertEqual(bytes_of(tare.from_torch(module)), bytes_of(prepared))

    def test_what_no_number_is_rounds_as_in_tare(self):
        from tare import torch_fake_quantize  # noqa: F401  registers the operators
        x = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e38, 0.5])
        for zero_point in (torch.tensor([3], dtype=torch.int32), torch.tensor([3.0])):
            y, inside = torch.ops.tare.fake_quantize(x, torch.tensor([0.5]), zero_point, torch.tensor([1]), -1, 0, 255)
            self.assertEqual(y.tolist(), [-1.5, 126, -1.5, 126, 0.5])
            self.assertEqual(inside.tolist(), [False, False, False, False, True])

    def test_kernels_for_devices_compute_what_torchs_operators_do(self):
        compiler = shutil.which("c++")
        if compiler is None:
            self.skipTest("no C++ compiler")
        from tare import torch_fake_quantize as ours, torch_kernels as kernels
        library = compiled_kernels(compiler, self.folder, kernels)
        random = np.random.default_rng(0)
        sizes = np.float32(10.0) ** random.integers(-12, 6, 4000).astype(np.float32)
        ends = np.sort(random.standard_normal((2, 4000), dtype=np.float32) * sizes, axis=0)
        ends[:, :400] = np.abs(ends[:, :400])
        ends[:, :400].sort(axis=0)
        ends[:, 400:800] = -np.abs(ends[:, 400:800])
        ends[:, 400:800].sort(axis=0)
        ends[:, 800:810] = 0
        ends[1, 810:1000], ends[0, 1000:1200] = 0, 0
        ends[0, 810:1000], ends[1, 1000:1200] = -np.abs(ends[0, 810:1000]), np.abs(ends[1, 1000:1200])
        kept = [torch.tensor(row) for row in np.sort(ends[:, ::-1] * np.float32(0.7), axis=0)]
        kept[0][::7], kept[1][::7] = torch.inf, -torch.inf
        x = torch.tensor(ends).t().contiguous()
        one, eps = torch.tensor([1]), torch.tensor([2.0 ** -23])
        for low_code, high_code, is_symmetric, middle in ((0, 255, False, None), (-128, 127, True, 0.0), (-127, 127, True, 0.0),
                                                          (0, 127, False, None), (0, 255, True, 128.0), (-8, 7, False, None)):
            for is_fused in (False, True):
                for constant in (-1.0, 0.01, 1.0):
                    expected = [t.clone() for t in (*kept, torch.ones(4000), torch.zeros(4000, dtype=torch.int32))]
                    torch.ops.tare.step(x, expected[0], expected[1], eps, expected[2], expected[3], one, one, 0, constant,
                                        low_code, high_code, middle, is_symmetric, is_fused)
                    found = library.choose(is_fused, [*x.t(), *kept, one, one if is_fused else eps, torch.ones(4000), torch.zeros(4000)],
                                           [constant, low_code, high_code, middle or 0.0, float(is_symmetric)])
                    for name, a, b in zip(("low", "high", "scale", "zero_point"), expected, found, strict=True):
                        np.testing.assert_array_equal(a.numpy(), b, err_msg=f"{name} {low_code} {is_symmetric} {is_fused} {constant}")
            scale, zero_point = expected[2][:, None], expected[3][:, None]
            values = torch.randn(4000, 6) * torch.tensor(sizes)[:, None]
            values[0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
            y, inside = ours._round_floats(values, scale, zero_point, low_code, high_code)
            found = library.round([values, scale.expand_as(values), zero_point.expand_as(values)], [low_code, high_code])
            np.testing.assert_array_equal(y.numpy(), found[0])
            np.testing.assert_array_equal(inside.numpy(), found[1] == 1)

    def test_there_and_back_changes_nothing(self):
        for prepare in (lambda: prepared_for_training(), lambda: (tare.prepare_fx(digits()[0], backend_config="x86"), digits()[1])):
            prepared, images = prepare()
            self.assertEqual(bytes_of(tare.from_torch(prepared.to_torch())), bytes_of(prepared))
            prepared.calibrate(images)
            back = tare.from_torch(prepared.to_torch())
            self.assertEqual(bytes_of(back), bytes_of(prepared))
            self.assertEqual(bytes_of(tare.convert_fx(back, backend_config="x86")),
                             bytes_of(tare.convert_fx(prepared, backend_config="x86")))

    def test_programs_go_there_and_back(self):
        x = np.load(TOP / "examples/data/annotate_input.npy")
        prepared = tare.prepare_qat_pt2e(tare.load(TOP / "examples/data/annotate.pt2"), tare.XNNPACKQuantizer())
        prepared.calibrate(x)
        module = prepared.to_torch()
        self.assertEqual(bytes_of(tare.convert_pt2e(tare.from_torch(module))), bytes_of(tare.convert_pt2e(prepared)))
        loss = module(torch.from_numpy(x)).square().mean()
        loss.backward()
        self.assertTrue(all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters()))

    def test_gradients_are_those_of_torchs_fake_quantizers(self):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                                      torch.nn.Conv2d(8, 8, 3), torch.nn.Flatten(), torch.nn.Linear(128, 5)).train()
        x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
        mapping = torch.ao.quantization.get_default_qat_qconfig_mapping("x86")
        theirs = quantize_fx.prepare_qat_fx(copy.deepcopy(network), mapping, (x,))
        prepared = tare.prepare_qat_fx(tare.from_torch(network, (x,)), tare.QConfigMapping.from_torch(mapping))
        ours = prepared.to_torch()
        self.assertEqual([name for name, _ in ours.named_parameters()], [name for name, _ in theirs.named_parameters()])
        for _ in range(3):
            for module in (theirs, ours):
                module.zero_grad()
                torch.nn.functional.cross_entropy(module(x), y).backward()
            for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
                torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=1e-6, msg=name)

    def test_training_changes_the_converted_model(self):
        prepared, images = prepared_for_training()
        labels = torch.from_numpy(np.load(TOP / "data/digits/test.npz")["labels"][:len(images)])
        module, x = prepared.to_torch(), torch.from_numpy(images)
        optimizer = torch.optim.SGD(module.parameters(), 0.05)
        losses = []
        for _ in range(4):
            loss = torch.nn.functional.cross_entropy(module(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        self.assertLess(losses[-1], losses[0])
        again = prepared.to_torch()
        again.load_state_dict(module.state_dict())
        trained = tare.from_torch(module.eval())
        self.assertFalse(trained.training)
        self.assertEqual(bytes_of(tare.from_torch(again.eval())), bytes_of(trained))
        self.assertEqual(bytes_of(tare.from_torch(copy.deepcopy(module))), bytes_of(trained))
        converted = tare.convert_fx(trained, backend_config="x86")
        np.testing.assert_allclose(converted(images), module(x).detach().numpy(), atol=0.5)
        self.assertNotEqual(bytes_of(converted), bytes_of(tare.convert_fx(prepared, backend_config="x86", lenient=True)))

    def test_compilers_keep_the_bits(self):
        prepared, images = prepared_for_training()
        x = torch.from_numpy(images[:8])
        plain, compiled = prepared.to_torch(), torch.compile(prepared.to_torch(), backend="aot_eager", fullgraph=True)
        for _ in range(2):
            expected, found = plain(x), compiled(x)
            self.assertTrue(torch.equal(expected, found))
        for module in (plain, compiled):
            module(x).square().mean().backward()
        self.assertEqual(bytes_of(tare.from_torch(compiled)), bytes_of(tare.from_torch(plain)))

    def test_files_run_no_code(self):
        """What a file names becomes Python in torch: nothing but what tare knows does."""
        class Small(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 4)

            def forward(self, values):
                return torch.flatten(self.linear(values).softmax(dim=1) * values.shape[0])
        model = tare.from_torch(Small(), (torch.zeros(2, 4),))
        torch.testing.assert_close(model.to_torch()(torch.ones(2, 4)).detach().numpy(), model(np.ones((2, 4), np.float32)))
        data = model.__reduce__()[1][0]
        length = int.from_bytes(data[:8], "little")
        refused, text = 0, data[8:8 + length].decode()
        for name, other in (("torch.flatten", "os.system"), ("torch.flatten", "torch.hub.load"), ("torch.flatten", "this.d"),
                            ("softmax", "__class__"), ("softmax", "relu(), print, x.relu"), ("torch.nn.Linear", "subprocess.Popen"),
                            ("torch.nn.Linear", "torch.utils.data.DataLoader"), ("values", "values=print(1)"), ("dim", "dim=print(1), y"),
                            ("linear", "a' + print(1) + '"), ("shape", "__class__")):
            header = text.replace(name, other).encode()
            try:
                strange = tare.loads(len(header).to_bytes(8, "little") + header + data[8 + length:], ignore_digests=True)
            except tare.Error:
                continue  # the library refuses it
            with self.assertRaisesRegex(tare.UnsupportedError, "is no", msg=other):
                strange.to_torch()
            refused += 1
        self.assertGreater(refused, 2)
        self.assertNotIn("this", sys.modules)

    def test_what_cannot_train_says_so(self):
        model, images = digits()
        prepared = tare.prepare_fx(model, backend_config="x86")
        prepared.calibrate(images)
        with self.assertRaisesRegex(tare.UnsupportedError, "expected a float or prepared model, found a lowered one"):
            tare.convert_fx(prepared, backend_config="x86").to_torch()
        module = prepared.to_torch()
        module.conv4.weight = torch.nn.Parameter(torch.zeros(1))
        with self.assertRaisesRegex(ValueError, r"expected 'conv4.weight' of shape \[64, 64, 3, 3\], found \[1\]"):
            tare.from_torch(module)
        with self.assertRaisesRegex(TypeError, "needs example_inputs"):
            tare.from_torch(torch.nn.ReLU())


@unittest.skipUnless(HAS_TORCH, "torch is not installed")
class Example(Case):
    def run_example(self, *command):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_two_processes_train_the_digits_network(self):
        path = TOP / "examples/python/qat_digits.py"
        out = self.folder / "trained.safetensors"
        text = self.run_example("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(path),
                                "--epochs=1", f"--out={out}")
        self.assertIn("2 processes", text)
        self.assertEqual(tare.load(out).stage, "lowered")

    def test_two_processes_train_a_sharded_network(self):
        out = self.folder / "sharded.safetensors"
        self.run_example("-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                         str(TOP / "python/tests/fsdp_worker.py"), str(out))
        self.assertEqual(tare.load(out).stage, "lowered")

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "lightning is not installed")
    def test_lightning_trains_a_module(self):
        import lightning
        model, images = digits(16)

        class Digits(lightning.LightningModule):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def training_step(self, batch, _):
                return self.module(batch[0]).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)
        prepared = tare.prepare_qat_fx(model.train(), "x86", backend_config="x86")
        loop = Digits(prepared.to_torch())
        before = loop.module.fc.weight.detach().clone()
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(images)), batch_size=8)
        lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                          enable_progress_bar=False, enable_model_summary=False).fit(loop, loader)
        self.assertFalse(torch.equal(loop.module.fc.weight, before))
        trained = tare.from_torch(loop.module.eval())
        np.testing.assert_array_equal(np.asarray(trained.state_dict()["fc.weight"]), loop.module.fc.weight.detach().numpy())
        self.assertEqual(tare.convert_fx(trained, backend_config="x86").stage, "lowered")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Sessions and tensors: arrays in and out without copies, errors as exceptions."""
import gc
import json
import threading
import unittest
import zipfile

import numpy as np

import tare
from support import TOP, Case, digits, main, quantized_digits
from tare.session import _nested


def program(folder, name):
    """A program that torch exported, with the tensors that it was recorded with."""
    with zipfile.ZipFile(TOP / "tests/data/programs.zip") as recorded:
        recorded.extractall(folder, [f"{name}.pt2", f"{name}.safetensors"])
    chars = (folder / f"{name}.safetensors").read_bytes()
    size = int.from_bytes(chars[:8], "little")
    tensors = {}
    for key, about in json.loads(chars[8:8 + size]).items():
        kind = {"F32": np.float32, "I64": np.int64}[about["dtype"]]
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        tensors[key] = np.frombuffer(chars[begin:end], kind).reshape(about["shape"])
    inputs = [tensors[f"0.in.{i}"] for i in range(sum(key.startswith("0.in.") for key in tensors))]
    return tare.load(folder / f"{name}.pt2"), inputs, tensors


class Outputs(Case):
    def test_outputs_nest_as_the_program_s(self):
        model, inputs, tensors = program(self.folder, "containers")
        first, second = model(*inputs)
        self.assertEqual([*first], ["y", "parts", "top"])
        self.assertEqual((type(first["parts"]), type(first["parts"][0]), len(first["parts"][0])), (list, tuple, 3))
        self.assertIsNone(first["parts"][1])
        flat = [first["y"], *first["parts"][0], *first["top"], second]
        for i, found in enumerate(flat):
            np.testing.assert_allclose(found, tensors[f"0.out.{i}"], rtol=1e-5, atol=1e-6)
        with tare.Session(model) as session:
            named = session.run_named({name: value for name, value in zip(model.input_names, inputs, strict=True)})
            self.assertEqual([*named], ["output.0.y", *(f"output.0.parts.0.{i}" for i in range(3)),
                                        "output.0.top.0", "output.0.top.1", "output.1"])
            np.testing.assert_array_equal(named["output.0.parts.0.2"], first["parts"][0][2])

    def test_quantizing_keeps_how_outputs_nest(self):
        model, inputs, _ = program(self.folder, "encoder")
        prepared = tare.prepare_pt2e(model, "XNNPACKQuantizer")
        self.assertEqual([*prepared(*inputs)], ["last_hidden_state", "pooled"])
        lowered = tare.lower_pt2e(tare.convert_pt2e(prepared))
        lowered.save(self.folder / "int8.safetensors")
        for made in (lowered, tare.load(self.folder / "int8.safetensors")):
            found = made(*inputs)
            self.assertEqual({key: value.shape for key, value in found.items()},
                             {key: value.shape for key, value in model(*inputs).items()})

    def test_other_containers(self):
        described = {"type": "namedtuple", "name": "m.Pair", "keys": ["loc", "scale"],
                     "items": [0, {"type": "object", "name": "m.Other", "items": [1], "keys": ["x"]}]}
        found = _nested(described, ("a", "b"))
        self.assertEqual((type(found).__name__, found.loc, found.scale), ("Pair", "a", {"x": "b"}))
        self.assertIs(type(_nested(described, ("c", "d"))), type(found))
        odd = {"type": "namedtuple", "name": "m.not a name", "keys": ["def", "_x"], "items": [0, {"value": 3}]}
        self.assertEqual(_nested(odd, ("a",)), ("a", 3))
        unnamed = {"type": "namedtuple", "keys": ["x"], "items": [0]}
        self.assertEqual(type(_nested(unnamed, ("a",))).__name__, "Outputs")

    def test_without_nesting_outputs_are_a_tuple(self):
        model, inputs, _ = program(self.folder, "containers")
        with tare.Session(model) as session:
            session._read_nesting = lambda: None
            self.assertEqual([type(output) for output in session.run(*inputs)], [np.ndarray] * 7)


class Runs(Case):
    def test_runs_by_position_and_by_name_agree(self):
        model, images = quantized_digits()
        with tare.Session(model, threads=2) as session:
            first = session.run(images)
            self.assertEqual((session.thread_count, session.output_names), (2, ("output",)))
            named = session.run_named({"x": images})
            np.testing.assert_array_equal(named["output"], first)
            with self.assertRaises(tare.NotFoundError):
                session.run_named({"y": images})

    def test_results_equal_the_reference(self):
        model, images = quantized_digits()
        with tare.Session(model, reference=True) as session:
            np.testing.assert_array_equal(session.run(images), model(images))

    def test_any_array_is_taken(self):
        model, images = digits(2)
        expected = model(images)
        for given in (images.tolist(), tare.Tensor(images), np.asfortranarray(images), images.astype(">f4"),
                      memoryview(images), images[:, :, ::1]):
            np.testing.assert_array_equal(model(given), expected)

    def test_wrong_inputs_raise(self):
        model, images = quantized_digits(2)
        for given, kind in ((images.astype(np.int32), ValueError), ("text", TypeError), (None, TypeError),
                            (b"bytes", TypeError), (images.astype(complex), TypeError),
                            (np.array(["a"]), TypeError), (images[0, 0], ValueError),
                            (np.zeros((1,) * 9, np.float32), ValueError), (object(), TypeError)):
            with self.subTest(given=type(given)), self.assertRaises(kind):
                model(given)
        for count in (0, 2, 65):
            with self.assertRaises(ValueError):
                model(*[images] * count)

    def test_an_error_tells_place_and_halves(self):
        model, images = quantized_digits(2)
        with self.assertRaises(tare.InvalidArgumentError) as caught:
            model(images.astype(np.int32))
        self.assertIn("quantize_per_tensor", str(caught.exception))
        self.assertEqual(caught.exception.status, "INVALID_ARGUMENT")
        error = tare.InvalidArgumentError("expected 2 inputs, found 3", "model", "look")
        self.assertEqual((error.expected, error.found, str(error)),
                         ("2 inputs", "3", "model: expected 2 inputs, found 3 (look)"))

    def test_a_session_has_one_caller(self):
        model, images = quantized_digits(64)
        big = np.concatenate([images] * 20)
        outcomes, session = [], tare.Session(model)

        def work():
            for _ in range(5):
                try:
                    session.run(big)
                    outcomes.append("ran")
                except tare.InvalidArgumentError:
                    outcomes.append("refused")
                except RuntimeError:
                    outcomes.append("refused")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outcomes), 20)
        self.assertIn("ran", outcomes)
        session.close()
        session.close()
        with self.assertRaises(ValueError):
            session.run(images)

    def test_a_watchers_exception_ends_the_run(self):
        model, images = quantized_digits()
        seen = []
        with tare.Session(model) as session:
            session.watch(lambda node, result: seen.append(node))
            session.run(images)
            self.assertIn("conv1", seen)

            def fail(node, result):
                raise KeyError("mine")
            session.watch(fail)
            with self.assertRaisesRegex(KeyError, "mine"):
                session.run(images)
            session.watch(None)
            session.run(images)

    def test_steps_and_memory_are_shown(self):
        model, images = quantized_digits()
        with tare.Session(model) as session:
            session.profile()
            for _ in range(3):
                session.run(images)
            steps = session.steps()
            self.assertEqual(session.nested_steps(), [])
            self.assertGreater(sum(step["macs"] for step in steps), 1_000_000)
            self.assertTrue(all(step["run_count"] == 3 for step in steps))
            self.assertGreater(session.memory()["block_bytes"], 0)
            self.assertTrue(session.places())

    def test_bench_counts_its_runs(self):
        model, images = quantized_digits(1)
        times = tare.bench(model, images, seconds=0.05)
        self.assertLessEqual(times["lower_us"], times["upper_us"])
        self.assertGreater(times["runs"], 1)


class Tensors(Case):
    def test_memory_is_shared_both_ways(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = tare.Tensor(array)
        again = np.asarray(tensor)
        self.assertTrue(np.shares_memory(array, again))
        self.assertFalse(again.flags.writeable)
        del tensor
        gc.collect()
        array[0, 0] = 9
        self.assertEqual(again[0, 0], 9)
        self.assertTrue(np.shares_memory(np.from_dlpack(tare.Tensor(array)), array))

    def test_results_are_the_librarys_memory(self):
        model, images = digits(2)
        found = model(images)
        kept = found.copy()
        del model
        gc.collect()
        model, _ = digits(2)
        model(images + 1)
        np.testing.assert_array_equal(found, kept)

    def test_every_plain_dtype_has_an_array(self):
        for kind in ("f4", "f8", "f2", "u1", "i1", "u2", "i2", "i4", "i8", "?"):
            array = np.ones((2, 0, 3), kind), np.ones((3,), kind), np.array(1, kind)
            for item in array:
                tensor = tare.Tensor(item)
                self.assertEqual((tensor.shape, np.asarray(tensor).dtype), (item.shape, item.dtype))
                np.testing.assert_array_equal(np.asarray(tensor), item)
        with self.assertRaises(TypeError):
            tare.Tensor(np.ones(2, np.uint64))

    def test_quantized_tensors_have_parameters(self):
        model, images = quantized_digits()
        found = []
        with tare.Session(model) as session:
            session.watch(lambda node, result: found.append(result) if node == "conv1" else None)
            session.run(images)
        tensor = found[0]
        self.assertEqual((tensor.dtype, tensor.qscheme(), tensor.q_zero_point()), (tare.quint8, tare.per_tensor_affine, 0))
        np.testing.assert_allclose(tensor.to_float().numpy(), tensor.int_repr() * np.float32(tensor.q_scale()))
        self.assertIn("scale=", repr(tensor))

    def test_dtypes_are_torchs(self):
        self.assertEqual(repr(tare.quint8), "torch.quint8")
        self.assertEqual((tare.float32.itemsize, tare.int64.itemsize), (4, 8))
        self.assertNotEqual(tare.quint8, tare.qint8)
        import pickle
        self.assertIs(pickle.loads(pickle.dumps(tare.quint8)), tare.quint8)


if __name__ == "__main__":
    main()

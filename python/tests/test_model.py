# SPDX-License-Identifier: Apache-2.0
"""Models: files, text, graphs, records, and their use by several threads."""
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import unittest
import zlib

import numpy as np

import tare
from support import ANNOTATED, DIGITS, TOP, Case, digits, main, prepared_digits, quantized_digits


class Files(Case):
    def test_a_saved_model_prints_and_computes_the_same(self):
        model, images = quantized_digits()
        for name, packed in (("plain.safetensors", False), ("packed.safetensors", True)):
            tare.save(model, self.folder / name, packed=packed)
            again = tare.load(self.folder / name)
            self.assertEqual(str(again), str(model))
            np.testing.assert_array_equal(again(images), model(images))

    def test_what_torch_does_not_say_of_a_lowered_model_is_told_by_its_graph(self):
        model, images = quantized_digits()
        data = bytes(model.__reduce__()[1][0])
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        graph = json.loads(header["__metadata__"]["tare.graph"])
        for row in graph["modules"]:
            row["config"].pop("rule", None)
        graph["record"] = {"stage": "lowered", "engine": "x86", "decisions": []}
        header["__metadata__"] = {"tare.graph": json.dumps(graph)}
        said = json.dumps(header).encode()
        again = tare.loads(struct.pack("<Q", len(said)) + said + data[8 + length:])
        self.assertEqual(str(again), str(model))
        np.testing.assert_array_equal(again(images), model(images))
        rules = [{name: part.config["rule"] for name, part in given.named_modules() if "rule" in part.config}
                 for given in (model, again)]
        self.assertEqual(*rules)
        self.assertIn("conv1 (torch.ao.nn.intrinsic.quantized.ConvReLU2d): quantized", str(tare.explain(again)))

    def test_bytes_in_memory_are_a_model(self):
        again = tare.loads(DIGITS.read_bytes())
        self.assertEqual(str(again), str(tare.load(DIGITS)))

    def test_none_is_no_name(self):
        model, _ = digits(1)
        for function in (model.graph.__getitem__, model.get_submodule, tare.Module.create, model.graph["conv1"].module.__getattr__):
            with self.assertRaises((TypeError, AttributeError)):
                function(None)

    def test_endings_choose_the_format(self):
        model = tare.load(ANNOTATED)
        model.save(self.folder / "a.pt2")
        self.assertEqual((self.folder / "a.pt2").read_bytes()[:2], b"PK")
        self.assertTrue(tare.load(self.folder / "a.pt2").is_exported)

    def test_a_broken_file_says_where(self):
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(DIGITS.read_bytes()[:1000])
        with self.assertRaises(tare.MalformedFileError) as caught:
            tare.load(broken)
        self.assertIn("broken.safetensors", caught.exception.place)
        with self.assertRaises(tare.TareIOError):
            tare.load(self.folder / "none.safetensors")
        with self.assertRaises(OSError):  # Python's own class fits, too
            tare.load(self.folder / "none.safetensors")

    def test_the_text_is_that_of_the_command_line(self):
        command = os.environ.get("TARE_CLI")
        if not command:
            self.skipTest("TARE_CLI does not name the program")
        said = subprocess.run([command, "print", str(DIGITS)], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout.rstrip("\n"), str(tare.load(DIGITS)))


class Looking(Case):
    def test_the_graph_has_torchs_words(self):
        graph = tare.load(DIGITS).graph
        ops = [node.op for node in graph.nodes]
        self.assertEqual((ops[0], ops[-1], ops.count("call_module"), len(graph)), ("placeholder", "output", 15, 19))
        add = graph["add"]
        self.assertEqual((add.target, [str(n) for n in add.args], add.kwargs), ("operator.add", ["bn4", "pool"], {}))
        self.assertEqual([str(n) for n in add.users], ["relu4"])
        self.assertEqual(add.next.prev, add)
        self.assertEqual(graph["flatten"].args[1], 1)
        self.assertEqual([str(n) for n in graph.find_nodes(op="call_function", target="torch.flatten")], ["flatten"])
        self.assertEqual([str(n) for n in reversed(graph.nodes)][:2], ["output", "fc"])
        self.assertTrue(str(graph).startswith("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"))

    def test_repr_is_the_modules_and_code_the_rest(self):
        model = tare.load(DIGITS)
        self.assertTrue(repr(model).startswith("GraphModule(") and repr(model).endswith("\n)"))
        self.assertTrue(str(model).endswith(model.code.strip()))

    def test_targets_equal_functions_of_their_name(self):
        import operator
        self.assertTrue(tare.load(DIGITS).graph["add"].target == operator.add)
        self.assertFalse(tare.load(DIGITS).graph["add"].target == operator.mul)

    def test_modules_show_their_values_and_tensors(self):
        conv = tare.load(DIGITS).graph["conv1"].module
        self.assertEqual((conv.class_name, conv.kernel_size, conv.weight.shape), ("torch.nn.Conv2d", [3, 3], (48, 1, 3, 3)))
        self.assertEqual(conv.weight.dtype, tare.float32)
        with self.assertRaises(AttributeError):
            conv.wait  # noqa: B018

    def test_state_dict_has_the_tensors_without_copies(self):
        model = tare.load(DIGITS)
        state = model.state_dict()
        self.assertEqual(state["fc.weight"].shape, (10, 64))
        weight = np.asarray(state["fc.weight"])
        del model  # the array keeps what it needs
        self.assertTrue(np.isfinite(weight).all() and not weight.flags.writeable)

    def test_state_dict_has_what_stands_at_the_top_and_what_observers_have_seen(self):
        self.assertIn("conv1.weight", tare.load(ANNOTATED).state_dict())  # a program has no modules
        prepared, images = prepared_digits()
        before = prepared.state_dict()["activation_post_process_0.histogram"]
        prepared.calibrate(images)
        state = prepared.state_dict()
        self.assertEqual(np.asarray(state["activation_post_process_0.max_val"]).item(), images.max())
        self.assertEqual(np.asarray(state["activation_post_process_0.histogram"]).sum(), images.size)
        self.assertEqual(np.asarray(before).sum(), 0)  # a copy
        self.assertIn("conv1_input_scale_0", tare.convert_to_reference_fx(prepared, backend_config="x86").state_dict())

    def test_the_record_says_what_was_decided(self):
        model, _ = quantized_digits()
        self.assertIn("lowered", {row["decision"] for row in model.decisions()})
        self.assertEqual(model.coverage()["op_count"], model.coverage()["quantized_op_count"])
        said = tare.explain(model, "bn1")
        self.assertIn("fused into ConvReLU2d at 'conv1'", said)
        self.assertTrue(said.to_records())
        with self.assertRaises(tare.NotFoundError) as caught:
            tare.explain(model, "bn11")
        self.assertEqual(caught.exception.hint, "did you mean 'bn1'?")

    def test_meta_has_torchs_keys(self):
        node = next(n for n in tare.load(ANNOTATED).graph.nodes if n.op == "call_function")
        self.assertIn("val", node.meta)
        self.assertEqual(node.meta["val"].dtype, tare.float32)
        self.assertIsInstance(node.meta["nn_module_stack"], dict)


class Lifetimes(Case):
    def test_a_closed_model_raises(self):
        model, images = quantized_digits()
        node = model.graph["conv1"]
        module = node.module
        model.close()
        for use in (lambda: str(model), lambda: model(images), lambda: node.args, lambda: module.class_name,
                    lambda: tare.Session(model), model.close):
            with self.assertRaises(ReferenceError):
                use()

    def test_a_model_with_sessions_does_not_change(self):
        prepared, images = prepared_digits()
        with tare.Session(prepared) as session:
            with self.assertRaisesRegex(RuntimeError, "sessions"):
                prepared.calibrate(images)
            session.run(images)
        prepared.calibrate(images)

    def test_threads_share_a_model(self):
        model, images = quantized_digits()
        expected = model(images)
        failures = []

        def work():
            for _ in range(20):
                if not np.array_equal(model(images), expected):
                    failures.append("differs")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_changes_from_two_threads_are_refused_or_done(self):
        prepared, images = prepared_digits()
        outcomes = []

        def work():
            for _ in range(5):
                try:
                    prepared.calibrate(images)
                    outcomes.append("done")
                except RuntimeError:
                    outcomes.append("refused")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outcomes), 20)
        self.assertIn("done", outcomes)


class End(Case):
    def test_nothing_is_said_when_the_interpreter_ends(self):
        program = (f"import numpy, tare\nmodel = tare.load({str(DIGITS)!r})\nx = numpy.zeros((1, 1, 8, 8), 'f')\n"
                   "session = tare.Session(model)\nmodel(x); session.run(x)\nmodule = model.graph['fc'].module\n"
                   "own = tare.Module.create('torch.nn.ReLU')\nconfig = tare.get_symmetric_quantization_config()\n"
                   "spec, data = config.weight, tare.Data('random:2:1:1x8x8', model)\n"
                   "matcher = tare.SubgraphMatcherWithNameNodeMap.ready('conv')\n")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))


class Pictures(Case):
    def test_preprocessing_is_declared_kept_and_used(self):
        pixels = np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype=np.uint8)
        steps = tare.Preprocess("resize=8x8,color=gray,scale=1/255")
        self.assertIn("imagenet", tare.Preprocess.presets())
        self.assertEqual(tare.Preprocess(json.loads(steps.to_json())), steps)
        self.assertEqual(pickle.loads(pickle.dumps(steps)), steps)
        self.assertNotEqual(tare.Preprocess("imagenet"), steps)
        x = steps(pixels)
        self.assertEqual((x.shape, x.dtype), ((1, 1, 8, 8), np.float32))
        np.testing.assert_array_equal(steps(pixels[:, :, ::-1], format="bgr"), x)
        np.testing.assert_array_equal(steps(np.dstack([pixels, np.zeros((16, 24), np.uint8)])), x)
        model, _ = digits(1)
        self.assertIsNone(model.preprocess)
        model.preprocess = steps
        prepared = tare.prepare_fx(model, backend_config="x86")
        prepared.calibrate(x)
        model = tare.convert_fx(prepared, backend_config="x86")
        model.save(self.folder / "model.safetensors")
        self.assertEqual(tare.load(self.folder / "model.safetensors").preprocess, steps)
        model.preprocess = None
        self.assertIsNone(model.preprocess)

    def test_files_and_their_bytes_are_pictures(self):
        path = self.folder / "picture.png"
        rows = b"".join(b"\0" + bytes([16 * y, x, 7]) * 1 * 1 + bytes(3 * 11) for y, x in zip(range(12), range(12), strict=True))

        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0))
                         + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        pixels = np.zeros((12, 12, 3), np.uint8)
        pixels[:, 0] = [[16 * y, y, 7] for y in range(12)]
        steps = tare.Preprocess("resize=8x8,color=gray")
        try:
            x = steps(path)
        except tare.UnsupportedError as error:
            self.skipTest(str(error))
        np.testing.assert_array_equal(steps(pixels), x)
        np.testing.assert_array_equal(steps(path.read_bytes()), x)
        model, _ = digits(1)
        (batch,) = tare.Data(path, model, preprocess=steps)
        np.testing.assert_array_equal(batch.inputs[0].numpy(), x)

    def test_what_is_no_picture_is_refused(self):
        steps = tare.Preprocess("to_tensor")
        for given, kind in ((np.zeros((4, 4)), ValueError), (np.zeros((4, 4, 2), np.uint8), ValueError), (b"no picture", tare.MalformedFileError),
                            ("nowhere.png", tare.Error), (np.zeros((0, 4), np.uint8), ValueError), (None, ValueError)):
            with self.assertRaises(kind):
                steps(given)
        with self.assertRaises(ValueError):
            steps(np.zeros((4, 4, 3), np.uint8), format="rgba")
        for given in ("nonsense", {"nonsense": 1}, "mean=0.5,dtype=uint8"):
            with self.assertRaises(tare.MalformedFileError):
                tare.Preprocess(given)


class Package(Case):
    def test_the_version_is_the_librarys(self):
        self.assertEqual(tare.__version__, "0.1.0")
        self.assertIn('version = "0.1.0"', (TOP / "python/pyproject.toml").read_text())

    def test_every_public_name_has_a_docstring(self):
        bare = [name for name in tare.__all__ if not isinstance(getattr(tare, name), (tare.dtype, tare.qscheme))
                and not getattr(tare, name).__doc__]
        self.assertEqual(bare, [])


if __name__ == "__main__":
    main()

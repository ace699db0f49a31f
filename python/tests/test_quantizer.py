# SPDX-License-Identifier: Apache-2.0
"""Quantizers in Python, their specs, partitions and patterns."""
import operator
import re
import sys
import unittest

import numpy as np

import tare
from support import ANNOTATED, TOP, Case, main

SAMPLES = np.load(TOP / "examples/data/annotate_input.npy")
ACT = tare.QuantizationSpec(dtype=tare.int8, quant_min=-128, quant_max=127, qscheme=tare.per_tensor_affine,
                            observer_or_fake_quant_ctr=tare.HistogramObserver.with_args(eps=2 ** -12))
WEIGHT = tare.QuantizationSpec(dtype=tare.int8, quant_min=-127, quant_max=127, qscheme=tare.per_tensor_symmetric,
                               observer_or_fake_quant_ctr=tare.MinMaxObserver)


def derive(sources):
    (act, _), (weight, _) = (source.calculate_qparams() for source in sources)
    return act * weight, np.zeros(len(weight))


class Convolutions(tare.Quantizer):
    """Annotates convolutions, with a bias whose scale is derived."""

    def annotate(self, model):
        for node in model.graph.nodes:
            if node.target != "torch.ops.aten.conv2d.default":
                continue
            x, weight, *bias = node.args[:3]
            inputs = {x: ACT, weight: WEIGHT}
            if bias and bias[0] is not None:
                inputs[bias[0]] = tare.DerivedQuantizationSpec(
                    derived_from=[(x, node), (weight, node)], derive_qparams_fn=derive, dtype=tare.int32,
                    quant_min=-2 ** 31, quant_max=2 ** 31 - 1, qscheme=tare.per_tensor_symmetric)
            node.meta["quantization_annotation"] = tare.QuantizationAnnotation(
                input_qspec_map=inputs, output_qspec=ACT, _annotated=True)
        self.model = model
        return model

    def validate(self, model):
        assert any(tare.is_annotated([node]) for node in model.graph.nodes)


class Squares(Convolutions):
    """Writes relu(x) as maximum(x, 0) and puts a factor behind the first convolution."""

    def transform_for_annotation(self, model):
        graph = model.graph
        relu = graph.find_nodes(op="call_function", target="torch.ops.aten.relu.default")[0]
        with graph.inserting_before(relu):
            zero = graph.constant(np.zeros((), np.float32))
            largest = graph.call_function("torch.ops.aten.maximum.default", (relu.args[0], zero), like=relu)
        relu.replace_all_uses_with(largest)
        graph.erase_node(relu)
        conv = graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")[0]
        with graph.inserting_after(conv):
            factor = graph.call_function("torch.ops.aten.mul.Tensor", (conv, 2.0), like=conv)
        conv.replace_all_uses_with(factor, lambda user: user != factor)
        factor.update_arg(1, 1.0)
        return model


class Quantizers(Case):
    def test_graphs_are_edited_before_they_are_annotated(self):
        model = tare.load(ANNOTATED)
        expected = np.asarray(model(SAMPLES))
        prepared = tare.prepare_pt2e(model, Squares())
        self.assertIn("torch.ops.aten.maximum.default", str(prepared.graph))
        self.assertNotIn("torch.ops.aten.relu.default", str(prepared.graph))
        self.assertIn("torch.ops.aten.relu.default", str(model.graph))  # the model itself stays as it is
        prepared.calibrate(SAMPLES)
        np.testing.assert_allclose(np.asarray(tare.convert_pt2e(prepared)(SAMPLES)), expected, atol=0.1)
        edited = tare.loads(model.__reduce__()[1][0])
        Squares().transform_for_annotation(edited)
        np.testing.assert_allclose(np.asarray(edited(SAMPLES)), expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(tare.loads(edited.__reduce__()[1][0])(SAMPLES)), np.asarray(edited(SAMPLES)))

    def test_edits_that_cannot_be_meant_are_refused(self):
        model = tare.load(ANNOTATED)
        graph, before = model.graph, str(model.graph)
        conv, last = graph["conv2d"], graph["cat"]
        x = graph.find_nodes(op="placeholder")[0]
        for kind, words, edit in (
                (tare.NotFoundError, "no function is called 'torch.nonsense'", lambda: graph.call_function("torch.nonsense", (conv,))),
                (tare.InvalidArgumentError, "is read by 'relu'", lambda: graph.erase_node(conv)),
                (tare.InvalidArgumentError, "cannot be erased", lambda: graph.erase_node(x)),
                (tare.InvalidArgumentError, "does not stand after 'cat'", lambda: conv.replace_all_uses_with(last)),
                (tare.MalformedFileError, "'cat' is not defined before its use", lambda: conv.update_arg(0, last)),
                (TypeError, "cannot be a set", lambda: graph.call_function("torch.ops.aten.relu.default", ({1},)))):
            with self.assertRaisesRegex(kind, words):
                edit()
        with self.assertRaisesRegex(tare.InvalidArgumentError, "nothing can stand before the input"), graph.inserting_before(x):
            graph.constant(1.0)
        with self.assertRaisesRegex(tare.MalformedFileError, "'cat' is not defined before its use"), graph.inserting_before(conv):
            graph.call_function("torch.ops.aten.relu.default", (last,))
        self.assertEqual(str(model.graph), before)
        with self.assertRaisesRegex(tare.InvalidArgumentError, "expected a float model"):
            prepared = tare.prepare_pt2e(model, Convolutions())
            prepared.graph.constant(1.0)

    def test_annotations_become_quantize_nodes(self):
        model = tare.load(ANNOTATED)
        quantizer = Convolutions()
        prepared = tare.prepare_pt2e(model, quantizer)
        prepared.calibrate(SAMPLES)
        text = str(tare.convert_pt2e(prepared))
        self.assertIn("torch.ops.quantized_decomposed.quantize_per_tensor.default", text)
        self.assertIn("torch.int32", text)
        with self.assertRaises(ReferenceError):
            str(quantizer.model)  # it was lent for the call

    def test_derive_functions_see_ranges(self):
        seen, fails = [], []

        def derive_from_ranges(sources):
            if fails:
                raise KeyError("derive")
            seen.extend(sources)
            x, weight = sources
            return (x.max_val - x.min_val) / 255 * weight.calculate_qparams()[0], [0] * len(weight.scale)

        class Ranges(Convolutions):
            def annotate(self, model):
                for node in model.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default"):
                    x, weight, bias = node.args[:3]
                    spec = tare.DerivedQuantizationSpec(
                        derived_from=[(x, node), (weight, node)], derive_qparams_fn=derive_from_ranges, dtype=tare.int32,
                        quant_min=-2 ** 31, quant_max=2 ** 31 - 1, qscheme=tare.per_tensor_symmetric)
                    node.meta["quantization_annotation"] = tare.QuantizationAnnotation({x: ACT, weight: WEIGHT, bias: spec}, ACT, _annotated=True)
                return model
        model = tare.load(ANNOTATED)
        prepared = tare.prepare_pt2e(model, Ranges())
        prepared.calibrate(SAMPLES)
        self.assertEqual(tare.convert_pt2e(prepared).stage, "reference")
        self.assertAlmostEqual(float(seen[0].min_val[0]), float(SAMPLES.min()), places=6)
        self.assertAlmostEqual(float(seen[0].max_val[0]), float(SAMPLES.max()), places=6)
        self.assertLess(seen[1].activation_post_process.min_val[0], 0)
        fails.append(True)
        with self.assertRaisesRegex(KeyError, "derive"):
            tare.convert_pt2e(prepared)

    def test_exceptions_come_out_of_prepare(self):
        class Fails(Convolutions):
            def validate(self, model):
                raise KeyError("not supported")
        with self.assertRaisesRegex(KeyError, "not supported"):
            tare.prepare_pt2e(tare.load(ANNOTATED), Fails())

    def test_an_annotation_is_read_back(self):
        model = tare.load(ANNOTATED)
        Convolutions().annotate(model)
        node = model.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")[0]
        found = node.meta["quantization_annotation"]
        self.assertTrue(found._annotated)
        self.assertEqual([str(n) for n in found.input_qspec_map], [str(n) for n in node.all_input_nodes])
        self.assertEqual(found.output_qspec, ACT)
        self.assertNotEqual(found.output_qspec, WEIGHT)
        found.output_qspec = WEIGHT  # as in torch, a change counts
        self.assertEqual(node.meta["quantization_annotation"].output_qspec, WEIGHT)
        found.input_qspec_map[node.args[0]] = WEIGHT
        self.assertEqual(node.meta["quantization_annotation"].input_qspec_map[node.args[0]], WEIGHT)
        del node.meta["quantization_annotation"]
        self.assertNotIn("quantization_annotation", node.meta)
        with self.assertRaises(KeyError):
            node.meta["other"] = 1

    def test_specs_are_checked_as_torch_does(self):
        with self.assertRaisesRegex(ValueError, "quant_min 3 must be <= quant_max 1."):
            tare.QuantizationSpec(tare.int8, tare.MinMaxObserver, 3, 1)
        with self.assertRaisesRegex(ValueError, "Ch_axis is < 0."):
            tare.QuantizationSpec(tare.int8, tare.MinMaxObserver, ch_axis=-1)

    def test_builtin_quantizers_take_settings(self):
        model = tare.load(ANNOTATED)
        def converted(quantizer):
            prepared = tare.prepare_pt2e(model, quantizer)
            prepared.calibrate(SAMPLES)
            return str(tare.convert_pt2e(prepared))
        default = converted("XNNPACKQuantizer")
        self.assertEqual(converted(tare.XNNPACKQuantizer()), default)
        self.assertEqual(converted(tare.XNNPACKQuantizer().set_global(tare.get_symmetric_quantization_config())), default)
        per_channel = converted(tare.XNNPACKQuantizer().set_global(tare.get_symmetric_quantization_config(is_per_channel=True)))
        self.assertIn("per_channel", per_channel)
        self.assertEqual(converted(tare.ComposableQuantizer([tare.XNNPACKQuantizer()])), default)
        with self.assertRaises(tare.Error):
            converted(tare.XNNPACKQuantizer().set_module_name("none", tare.get_symmetric_quantization_config()))


class Tutorial(Case):
    def test_a_backend_on_resnet18_gives_torchs_program(self):
        sys.path.insert(0, str(TOP / "examples/python"))
        import quantizer_tutorial as tutorial
        recorded = TOP / "tests/data/small_resnet18"  # what torchao made of the same quantizer
        samples = np.load(recorded / "input.npz")["x"]
        converted = tutorial.quantize(tare.load(recorded / "model.pt2"), samples)

        def parts(text):
            """The text without numbers, and the numbers: float layers may differ in the last bits."""
            lines = "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
            number = r"(?<![\w.])\d+\.\d+(?:e-?\d+)?"
            return re.sub(number, "#", lines), np.array(re.findall(number, lines), np.float64)
        found, wanted = parts(str(converted)), parts((recorded / "converted.txt").read_text())
        self.assertEqual(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
        expected = np.array((recorded / "output.txt").read_text().split(), np.float32)
        step = 0.0027  # of the output's quantization; a result at a rounding's edge may differ by one
        np.testing.assert_allclose(converted(samples).ravel(), expected, atol=2.1 * step)


class Parts(Case):
    def test_partitions_and_patterns_name_nodes(self):
        model = tare.load(ANNOTATED)
        found = tare.get_source_partitions(model.graph, ["torch.nn.Conv2d", "add", operator.add])
        self.assertTrue(found["torch.nn.Conv2d"])
        self.assertTrue(all(p.output_nodes for rows in found.values() for p in rows))

        def boom(node):
            raise KeyError("mine")
        with self.assertRaises(KeyError):
            tare.get_source_partitions(model, ["torch.nn.Conv2d"], boom)
        matches = tare.SubgraphMatcherWithNameNodeMap.ready("conv").match(model)
        self.assertEqual(str(matches[0].name_node_map["layer"].target), "torch.ops.aten.conv2d.default")

        def pattern(x, weight, bias):
            conv = torch.nn.functional.conv2d(x, weight, bias)  # noqa: F821  it is read, not run
            return conv, {"input": x, "conv": conv}
        matches = tare.SubgraphMatcherWithNameNodeMap(pattern, ignore_literals=True).match(model)
        self.assertTrue(matches)
        self.assertIn(matches[0].name_node_map["input"], matches[0].name_node_map["conv"].all_input_nodes)
        self.assertIn("attention", tare.ready_patterns())


class Files(Case):
    def test_settings_come_from_a_file(self):
        quantizer = tare.XNNPACKQuantizer().set_from_json('{"global": {"default": {"is_per_channel": true}}}')
        wanted = tare.XNNPACKQuantizer().set_global(tare.get_symmetric_quantization_config(is_per_channel=True))
        texts = [str(tare.prepare_pt2e(tare.load(ANNOTATED), item)) for item in (quantizer, wanted)]
        self.assertEqual(*texts)
        with self.assertRaises(tare.MalformedFileError) as caught:
            quantizer.set_from_json('{"global": {"wrong": 1}}')
        self.assertIn("$.global", str(caught.exception))
        with self.assertRaises(TypeError):
            quantizer.set_from_json(3)
        self.assertEqual(str(tare.prepare_pt2e(tare.load(ANNOTATED), quantizer)), texts[0])

    def test_rules_are_shown_and_checked(self):
        quantizer = tare.FileQuantizer(TOP / "examples/npu_quantizer.json")
        self.assertIn("npu", quantizer.show())
        self.assertEqual([row for row in quantizer.lint() if row["is_error"]], [])
        text = (TOP / "examples/npu_quantizer.json").read_text().replace("torch.ops.aten.relu.default", "torch.ops.aten.rleu.default")
        path = self.folder / "wrong.json"
        path.write_text(text)
        found = tare.FileQuantizer(path).lint()
        self.assertTrue(found and all(row["path"].startswith("$") and row["remedy"] for row in found))
        self.assertEqual(tare.XNNPACKQuantizer().lint(), [])

    def test_a_scale_that_is_nan_is_refused(self):
        class Fixed(tare.Quantizer):
            def annotate(self, model):
                spec = tare.FixedQParamsQuantizationSpec(dtype=tare.int8, scale=float("nan"), zero_point=0, quant_min=-128,
                                                         quant_max=127, qscheme=tare.per_tensor_affine)
                node = model.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")[0]
                node.meta["quantization_annotation"] = tare.QuantizationAnnotation(input_qspec_map={node.args[0]: spec})
                return model

            def validate(self, model):
                pass
        with self.assertRaisesRegex(tare.InvalidArgumentError, "found nan"):
            tare.prepare_pt2e(tare.load(ANNOTATED), Fixed())


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Analysis, the ladder of improvement and its steps, and what is left float for speed."""
import unittest

import numpy as np

import tare
from support import ANNOTATED, TOP, Case, digits, main, prepared_digits


class Lost(Exception):
    """Of a callback."""


def calibrated(count=64):
    prepared, images = prepared_digits(count)
    prepared.calibrate(images)
    return prepared, images


def exported():
    """A calibrated model of the other flow."""
    images = np.load(TOP / "examples/data/annotate_input.npy")
    prepared = tare.prepare_pt2e(tare.load(ANNOTATED), "XNNPACKQuantizer").eval()
    prepared.calibrate(images)
    return prepared, images


def noise(model, images):
    return float(np.square(model(images) - digits()[0](images)).sum())


def quantized(prepared):
    return tare.convert_fx(prepared, backend_config="x86")


class Analyses(Case):
    def test_layers_findings_and_ranges(self):
        prepared, images = calibrated()
        reference, seen = tare.convert_to_reference_fx(prepared, backend_config="x86"), []
        found = tare.analyze(reference, [images[:8], images[8:16]], quantized=quantized(prepared), seconds=0.1,
                             predictions=lambda floats, others: seen.append((floats[0], others[0])), progress=lambda *_: None)
        self.assertEqual(found.verdict["sample_count"], 16)
        self.assertGreater(found.verdict["sqnr_db"], 20)
        self.assertEqual(sorted(row["node"] for row in found.layers), sorted(row["node"] for row in found.worst))
        self.assertIn("conv1", [row["node"] for row in found.layers])
        floats = np.concatenate([row[0] for row in seen])
        np.testing.assert_allclose(floats, digits()[0](images[:16]), rtol=1e-4, atol=1e-4)
        weights = [row for row in found.ranges if row["is_weight"]]
        self.assertTrue(weights and all(len(row["channel_low"]) == row["channel_count"] for row in weights))
        self.assertTrue(any(row["histogram"].sum() for row in found.ranges))
        self.assertIn("outputs: SQNR", str(found))
        self.assertIn("<td>conv1</td>", found._repr_html_())
        self.assertEqual(found.to_records(), found.layers)
        for row in found.findings:
            self.assertTrue(row["kind"] and row["cause"])
        self.assertTrue(np.isnan(found.preparation_db))
        found = tare.analyze(reference, [images[:8]], brief=True, exact=digits()[0])
        self.assertGreater(found.preparation_db, 100)  # batch norms are folded in `reference`
        self.assertGreater(found.verdict["sqnr_db"], 20)

    def test_refusals_are_exceptions(self):
        prepared, images = calibrated()
        with self.assertRaises(tare.InvalidArgumentError):
            tare.analyze(prepared, [images])
        reference = tare.convert_to_reference_fx(prepared, backend_config="x86")
        with self.assertRaisesRegex(ValueError, "at least one batch"):
            tare.analyze(reference, [])
        with self.assertRaisesRegex(ValueError, "1 arrays, one per input, found 2"):
            tare.analyze(reference, [(images, images)])

        def lose(*_):
            raise Lost("metric")
        for arguments in ({"predictions": lose}, {"progress": lose}):
            with self.assertRaisesRegex(Lost, "metric"):
                tare.analyze(reference, [images[:8]], brief=True, **arguments)


class Ladder(Case):
    def test_the_best_model_is_returned(self):
        prepared, images = calibrated()
        told, better = [], []
        found = tare.improve(prepared, [images[:48]], [images[48:]], backend_config="x86", seconds=60,
                             steps=["weight-clipping", "bias-correction"], watch=told.append,
                             better=lambda model: better.append(model.stage), state=self.folder / "state.json")
        self.assertEqual(found.model.stage, "lowered")
        self.assertEqual(found.trials, told)
        self.assertEqual(found.figures["trial_count"], len(told))
        self.assertLessEqual({row["step"] for row in told}, {"weight-clipping", "bias-correction"})
        self.assertGreaterEqual(found.figures["after_db"], found.figures["before_db"])
        self.assertEqual(set(better) - {"lowered"}, set())
        if found.prepared is not None:
            np.testing.assert_array_equal(quantized(found.prepared)(images), found.model(images))
        self.assertIn("outputs:", str(found))
        again = tare.improve(prepared, [images[:48]], [images[48:]], backend_config="x86", seconds=60,
                             steps=["weight-clipping", "bias-correction"], state=self.folder / "state.json")
        self.assertEqual(again.figures["resumed_count"], len(again.trials))
        given = tare.improve(prepared, [images[:48]], [images[48:]], backend_config="x86", seconds=60, steps=[],
                             exact=digits()[0])
        self.assertAlmostEqual(given.figures["before_db"], found.figures["before_db"], places=2)

    def test_programs_of_export_go_their_own_way(self):
        prepared, images = exported()
        found = tare.improve(prepared, [images], [images + np.float32(0.01)], seconds=60, steps=["weight-clipping"])
        self.assertEqual(found.model.stage, "lowered")
        with self.assertRaisesRegex(ValueError, "leave them out"):
            tare.improve(prepared, [images], [images], engine="x86", quantize=lambda *_: None)

    def test_callbacks_that_fail(self):
        prepared, images = calibrated()

        def lose(*_):
            raise Lost("quantize")
        for arguments in ({"quantize": lose}, {"backend_config": "x86", "watch": lose}):
            with self.assertRaisesRegex(Lost, "quantize"):
                tare.improve(prepared, [images[:48]], [images[48:]], seconds=30, steps=["weight-clipping"], **arguments)
        for wrong, kind in ((lambda *_: None, TypeError), (lambda model, *_: model, ValueError)):
            with self.assertRaisesRegex(kind, "expected a"):
                tare.improve(prepared, [images[:48]], [images[48:]], quantize=wrong)
        with self.assertRaises(tare.NotFoundError):
            tare.improve(prepared, [images[:48]], [images[48:]], backend_config="x86", steps=["nonsense"])
        self.assertEqual(quantized(prepared).stage, "lowered")  # the model is as it was

    def test_a_later_trial_that_raises_ends_the_whole(self):
        prepared, images = calibrated()
        calls = []

        def quantize(model, float_nodes, as_reference):
            calls.append(as_reference)
            if len(calls) > 1:
                raise ValueError("the second one")
            return tare.convert_fx(model, backend_config="x86", float_nodes=float_nodes)
        with self.assertRaisesRegex(ValueError, "the second one"):
            tare.improve(prepared, [images[:48]], [images[48:]], quantize=quantize, seconds=30)


class Steps(Case):
    def test_each_keeps_the_float_results_or_the_calibration(self):
        prepared, images = calibrated()
        before = noise(quantized(prepared), images)
        for made in (tare.weights_per_channel(prepared), tare.clip_weights(prepared), tare.widen_weights(prepared, ["conv1"]),
                     tare.quantize_dynamically(prepared, "tensors"), tare.quantize_dynamically(prepared, "tensors", ["fc"]),
                     tare.round_weights(prepared, [images]), tare.round_weights(prepared, [images], "adaround", sample_limit=8),
                     tare.correct_biases(prepared, [images], backend_config="x86")):
            self.assertEqual(made.stage, "prepared")
            self.assertLess(noise(quantized(made), images), 4 * before)
        for made in (tare.equalize_layers(prepared), tare.rotate_layers(prepared),
                     tare.scale_inputs(prepared, [images]), tare.scale_inputs(prepared, [images], "awq"),
                     tare.replace_observers(prepared, "MinMaxObserver"),
                     tare.replace_observers(prepared, "tare.MergeableHistogramObserver", 99.99)):
            made.calibrate(images)
            self.assertLess(noise(quantized(made), images), 4 * before)
        entropy = tare.replace_observers(prepared, "tare.MergeableHistogramObserver", "entropy")
        self.assertTrue([row for row in entropy.decisions() if row["rule"] == "observers"])
        entropy.calibrate(images)
        self.assertNotEqual(str(quantized(entropy)), str(quantized(made)))  # made: by a percentile

    def test_biases_are_reported(self):
        prepared, images = calibrated()
        rows = []
        tare.correct_biases(prepared, [images], backend_config="x86", watch=rows.append)
        self.assertTrue(rows and all(row["channel_count"] > 0 and row["largest_shift"] >= 0 for row in rows))

        def lose(*_):
            raise Lost("bias")
        for arguments in ({"watch": lose}, {"quantize": lose}, {"progress": lose}):
            with self.assertRaisesRegex(Lost, "bias"):
                tare.correct_biases(prepared, [images], **arguments)
        made, inputs = exported()
        self.assertEqual(tare.correct_biases(made, [inputs]).stage, "prepared")

    def test_refusals_are_exceptions(self):
        prepared, images = calibrated()
        with self.assertRaises(tare.NotFoundError):
            tare.replace_observers(prepared, "NobodysObserver")
        with self.assertRaisesRegex(ValueError, "smooth, awq"):
            tare.scale_inputs(prepared, [images], "harsh")
        with self.assertRaisesRegex(ValueError, "rows, tensors"):
            tare.quantize_dynamically(prepared, "columns")
        with self.assertRaises(TypeError):
            tare.quantize_dynamically(prepared, "rows", "fc")
        with self.assertRaises(tare.InvalidArgumentError):
            tare.correct_biases(prepared_digits()[0], [images], backend_config="x86")
        closed = prepared_digits()[0]
        closed.close()
        with self.assertRaises(ReferenceError):
            tare.clip_weights(closed)


class NeverSlower(Case):
    def test_times_and_the_choice(self):
        prepared, images = calibrated()
        model, times = tare.never_slower(prepared, images[:1], backend_config="x86", seconds=0.02, progress=lambda *_: None)
        self.assertEqual(model(images).shape, (64, 10))
        self.assertGreater(times["layer_count"], 0)
        self.assertTrue(all(times[name] > 0 for name in ("float_ns", "integer_ns", "chosen_ns")))

        slow = self.folder / "slow.json"
        slow.write_text('{"format": "tare-machine-1", "int8_gops": 1, "float_gflops": 1e3, "l2_gbs": 9, "l3_gbs": 9, "memory_gbs": 9}')
        for arguments, is_float in (({"predicts": True}, False), ({"machine": slow}, True)):
            model, times = tare.never_slower(prepared, images[:1], backend_config="x86", **arguments)
            self.assertEqual(model(images).shape, (64, 10))
            self.assertEqual(times["float_count"] > 0, is_float)

        def lose(*_):
            raise Lost("time")
        for arguments in ({"quantize": lose}, {"progress": lose}):
            with self.assertRaisesRegex(Lost, "time"):
                tare.never_slower(prepared, images[:1], seconds=0.02, **arguments)


class HeldOut(Case):
    def test_samples_are_held_out(self):
        model, _ = digits()
        path = TOP / "data/digits/test.npz"
        shown = tare.Data(path, model, sample_limit=64, hold_out=8)
        held = tare.Data(path, model, sample_limit=64, hold_out=8, held_out=True)
        self.assertEqual((shown.held_out_count, held.held_out_count), (8, 8))
        self.assertEqual(sum(batch.size for batch in held), 8)


class Looks(Case):
    def test_islands_and_packed_weights(self):
        model = quantized(calibrated()[0])
        rows = model.islands()
        self.assertEqual([row["name"] for row in rows], [node.name for node in model.graph.nodes])
        self.assertIn("integers", {row["kind"] for row in rows})
        self.assertTrue(all(row["island"] is None or row["island"] <= index for index, row in enumerate(rows)))
        path = self.folder / "packed.safetensors"
        model.save(path, packed=True)
        found = tare.load(path).verify()
        self.assertGreater(found["packed_count"], 0)
        self.assertGreater(found["digest_count"], 0)
        self.assertIsInstance(tare.build_features(), str)


if __name__ == "__main__":
    main()

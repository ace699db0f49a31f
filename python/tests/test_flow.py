# SPDX-License-Identifier: Apache-2.0
"""Both flows, calibration over data, and comparison."""
import unittest

import numpy as np

import tare
from support import ANNOTATED, TOP, Case, digits, main, prepared_digits

SAMPLES = TOP / "examples/data/annotate_input.npy"


class Fx(Case):
    def test_the_flow_gives_integers_that_are_near(self):
        model, images = digits(200)
        labels = np.load(TOP / "data/digits/test.npz")["labels"][:200]
        prepared = tare.prepare_fx(model, backend_config="x86")
        self.assertEqual((prepared.stage, tare.calibrate(prepared, [images[:64], images[64:]])), ("prepared", 200))
        reference = tare.convert_to_reference_fx(prepared, backend_config="x86")
        quantized = tare.convert_fx(prepared, backend_config="x86")
        self.assertEqual((reference.stage, quantized.stage), ("reference", "lowered"))
        self.assertEqual(str(tare.lower(reference)), str(quantized))
        found = tare.compare(model, quantized, [images])
        self.assertGreater(found.outputs[0]["sqnr_db"], 30)
        self.assertGreater(np.mean(quantized(images).argmax(1) == labels), 0.9)
        self.assertIn("conv1", str(found))
        self.assertEqual(found.worst()["node"], min(found.rows, key=lambda r: r["sqnr_db"])["node"])

    def test_calling_a_prepared_model_calibrates_it(self):
        a, images = prepared_digits()
        b, _ = prepared_digits()
        outputs = a(images)
        b.calibrate(images)
        self.assertEqual(outputs.shape, (32, 10))
        self.assertEqual(str(tare.convert_fx(a, backend_config="x86")), str(tare.convert_fx(b, backend_config="x86")))

    def test_convert_wants_data(self):
        prepared, _ = prepared_digits()
        with self.assertRaises(tare.InvalidArgumentError):
            tare.convert_fx(prepared, backend_config="x86")
        self.assertEqual(tare.convert_fx(prepared, backend_config="x86", lenient=True).stage, "lowered")

    def test_fusing_and_training(self):
        model, images = digits()
        self.assertEqual(tare.fuse_fx(model, backend_config="x86").stage, "fused")
        trained = tare.prepare_qat_fx(model.train(), "x86", backend_config="x86")
        self.assertTrue(trained.training)
        trained.eval().enable_fake_quant().enable_observer().freeze_bn_stats()
        trained.calibrate(images)
        self.assertEqual(tare.convert_fx(trained, backend_config="x86").stage, "lowered")

    def test_float_nodes_stay_float(self):
        prepared, images = prepared_digits()
        prepared.calibrate(images)
        quantized = tare.convert_fx(prepared, backend_config="x86", float_nodes=["fc"])
        self.assertIn("(fc): Linear(", str(quantized))

    def test_unknown_names_are_refused_with_a_suggestion(self):
        model, _ = digits()
        with self.assertRaises(tare.NotFoundError) as caught:
            tare.prepare_fx(model, backend_config="x87")
        self.assertEqual(caught.exception.hint, "did you mean 'x86'?")
        for wrong in (3, object()):
            with self.assertRaises(TypeError):
                tare.prepare_fx(model, backend_config=wrong)
            with self.assertRaises(TypeError):
                tare.prepare_fx(wrong)
        with self.assertRaises(ValueError):
            tare.lower(model, engine="none")


class Pt2e(Case):
    def test_the_flow_gives_integers(self):
        model = tare.load(ANNOTATED)
        images = np.load(SAMPLES)
        prepared = tare.prepare_pt2e(model, "XNNPACKQuantizer")
        tare.calibrate(prepared, [images])
        converted = tare.convert_pt2e(prepared)
        self.assertIn("quantized_decomposed", str(converted))
        lowered = tare.lower_pt2e(converted)
        self.assertGreater(tare.compare(model, lowered, [images]).outputs[0]["sqnr_db"], 20)
        with self.assertRaises(tare.NotFoundError):
            tare.prepare_pt2e(model, "XNNPACKQuantiser")


class CalibrationData(Case):
    def test_files_and_arrays_give_the_same_statistics(self):
        a, images = prepared_digits(64)
        b, _ = prepared_digits()
        np.savez(self.folder / "x.npz", x=images)
        a.calibrate(images)
        told = []
        count = tare.calibrate(b, self.folder / "x.npz", batch_size=64, progress=lambda done, total: told.append(done))
        self.assertEqual((count, told[-1]), (64, 64))
        self.assertEqual(str(tare.convert_fx(a, backend_config="x86")), str(tare.convert_fx(b, backend_config="x86")))

    def test_an_exception_of_progress_ends_the_work(self):
        prepared, images = prepared_digits(8)
        np.savez(self.folder / "x.npz", x=images)

        def stop(done, total):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            tare.calibrate(prepared, self.folder / "x.npz", progress=stop)

    def test_nothing_is_an_error(self):
        prepared, _ = prepared_digits()
        for wrong in ([], 5):
            with self.assertRaises((ValueError, TypeError)):
                tare.calibrate(prepared, wrong)

    def test_batches_of_data(self):
        model, images = digits(10)
        np.savez(self.folder / "x.npz", x=images, labels=np.arange(10))
        data = tare.Data(self.folder / "x.npz", model, batch_size=4)
        self.assertEqual(([b.size for b in data], len(data)), ([4, 4, 2], 10))
        first, *_ = data
        np.testing.assert_array_equal(first.inputs[0].numpy(), images[:4])
        np.testing.assert_array_equal(first.labels.numpy(), np.arange(4))
        data.close()
        with self.assertRaises(ReferenceError):
            list(data)


if __name__ == "__main__":
    main()

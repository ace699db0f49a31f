# SPDX-License-Identifier: Apache-2.0
"""Calibration and evaluation by the workers of a Dask cluster. Skipped where distributed is not installed."""
import importlib.util
import os
import signal
import unittest

import numpy as np

import tare
from support import TOP, Case, digits, main, quantized_digits

HAS_DASK = importlib.util.find_spec("distributed") is not None
if HAS_DASK:
    import distributed
TEST = TOP / "data/digits/test.npz"


def prepared():
    """With observers whose states merge."""
    mapping = tare.QConfigMapping().set_global(
        tare.QConfig(activation=tare.MergeableHistogramObserver.with_args(reduce_range=True), weight=tare.default_per_channel_weight_observer))
    return tare.prepare_fx(digits()[0], mapping, backend_config="x86")


def bytes_of(model):
    return model.__reduce__()[1][0]


def count_small(outputs, labels):
    """A metric of one's own: its name is found on the workers, which have this folder."""
    return {"small": int((np.asarray(outputs).argmax(1) == np.asarray(labels)).sum()), "batches": 1}


class Evaluation(Case):
    def test_one_process_counts(self):
        model, _ = quantized_digits()
        data = np.load(TEST)
        x, labels = data["x"], data["labels"]
        found = tare.evaluate(model, [(x[:100], labels[:100]), (x[100:], labels[100:])])
        self.assertEqual(found["samples"], 360)
        self.assertEqual(found["correct"], int((np.asarray(model(x)).argmax(1) == labels).sum()))
        self.assertEqual(found["accuracy"], found["correct"] / 360)
        self.assertEqual(tare.evaluate(model, TEST), found)
        self.assertEqual(tare.evaluate(model, TEST, batch_size=32, metric=count_small),
                         {"samples": 360, "small": found["correct"], "batches": 12})
        with self.assertRaisesRegex(ValueError, "batches of inputs and labels"):
            tare.evaluate(model, [x])
        with self.assertRaisesRegex(ValueError, "N labels"):
            tare.evaluate(model, [(x, labels[:3])])


@unittest.skipUnless(HAS_DASK, "distributed is not installed")
class Cluster(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        cls.client = distributed.Client(cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def setUp(self):
        super().setUp()
        self.client.wait_for_workers(2, timeout=60)  # one that died comes back

    def test_the_state_is_that_of_one_process(self):
        data = np.load(TEST)["x"]
        batches = [data[i:i + 24] for i in range(0, 360, 24)]
        seen = []
        for dataset, keywords in ((batches, {}), (batches, {"shards": 40}), (batches, {"shards": 1}), (TEST, {"batch_size": 24})):
            alone, together = prepared(), prepared()
            options = {name: value for name, value in keywords.items() if name != "shards"}
            self.assertEqual(tare.calibrate(alone, dataset, **options), 360)
            self.assertEqual(tare.calibrate(together, dataset, client=self.client, progress=lambda *row: seen.append(row),
                                            **keywords), 360)
            self.assertEqual(bytes_of(together), bytes_of(alone))
            for model, more in ((alone, {}), (together, {"client": self.client})):  # goes on, what was seen counts once
                tare.calibrate(model, TEST, batch_size=24, **more)
                tare.calibrate(model, batches[:7], **more)
            self.assertEqual(bytes_of(together), bytes_of(alone))
        self.assertIn((8, 8), seen)

    def test_shards_may_be_empty_where_data_is_short(self):
        alone, together = prepared(), prepared()
        self.assertEqual(tare.calibrate(alone, TEST, sample_limit=20), 20)
        self.assertEqual(tare.calibrate(together, TEST, client=self.client, sample_limit=20, batch_size=10, shards=5), 20)
        self.assertEqual(bytes_of(together), bytes_of(alone))

    def test_what_cannot_be_shared_is_refused(self):
        averaging = tare.prepare_qat_fx(digits()[0].train(), backend_config="x86")
        with self.assertRaises(tare.UnsupportedError):
            tare.calibrate(averaging, TEST, client=self.client)
        with self.assertRaisesRegex(ValueError, "resume"):
            tare.calibrate(prepared(), TEST, client=self.client, resume="x")
        with self.assertRaises(tare.Error):
            tare.calibrate(prepared(), self.folder / "nothing.npz", client=self.client)

    def test_evaluation_counts_the_same(self):
        model, _ = quantized_digits()
        self.assertEqual(tare.evaluate(model, TEST, client=self.client, batch_size=50), tare.evaluate(model, TEST))

    def test_a_lost_workers_shard_is_done_again(self):
        data = np.load(TEST)["x"]
        flag = self.folder / "died"
        batches = [data[i:i + 60] for i in range(0, 360, 60)]
        alone, together = prepared(), prepared()
        tare.calibrate(alone, batches)
        batches[2] = Deadly(batches[2], str(flag))
        self.assertEqual(tare.calibrate(together, batches, client=self.client), 360)
        self.assertTrue(flag.exists())
        self.assertEqual(bytes_of(together), bytes_of(alone))


class Deadly:
    """A batch that kills the first process that reads it, without a word."""

    def __init__(self, array, flag):
        self.array, self.flag = array, flag
        self.shape = array.shape

    def __array__(self, dtype=None, copy=None):
        if not os.path.exists(self.flag):
            with open(self.flag, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        return self.array


if __name__ == "__main__":
    main()

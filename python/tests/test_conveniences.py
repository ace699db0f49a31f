# SPDX-License-Identifier: Apache-2.0
"""Pickling, tables for notebooks and for pandas."""
import copy
import pickle
import unittest

import numpy as np

import tare
from support import Case, digits, main, prepared_digits, quantized_digits


class Conveniences(Case):
    def test_models_are_pickled_in_every_stage(self):
        model, images = quantized_digits()
        again = pickle.loads(pickle.dumps(model))
        self.assertEqual(str(again), str(model))
        np.testing.assert_array_equal(again(images), model(images))
        prepared, _ = prepared_digits()
        prepared.calibrate(images)
        for copied in (pickle.loads(pickle.dumps(prepared)), copy.deepcopy(prepared)):
            self.assertEqual(str(tare.convert_fx(copied, backend_config="x86")), str(model))

    def test_configs_are_pickled(self):
        for given in (tare.get_x86_backend_config(), tare.get_default_qconfig_mapping("x86")):
            self.assertEqual(pickle.loads(pickle.dumps(given)).to_json(), given.to_json())
        qconfig = tare.QConfig(tare.HistogramObserver.with_args(bins=9), tare.default_weight_fake_quant)
        again = pickle.loads(pickle.dumps(qconfig))
        self.assertTrue(tare.qconfig_equals(again, qconfig))
        self.assertEqual(repr(again), repr(qconfig))

    def test_reports_are_tables(self):
        model, images = quantized_digits()
        said = tare.explain(model)
        self.assertEqual(said._repr_html_().count("<tr>"), 1 + len(said.to_records()))
        found = tare.compare(digits()[0], model, [images])
        self.assertIn("<td>conv1</td>", found._repr_html_())
        self.assertEqual(len(found.to_records()), len(found.rows))
        self.assertIn("QuantizedConvReLU2d", model._repr_html_())
        self.assertIn("%conv1", model.graph._repr_html_())
        self.assertTrue(model.graph.to_dot().startswith("digraph"))


if __name__ == "__main__":
    main()

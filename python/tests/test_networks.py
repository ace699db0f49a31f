# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision, with random weights, through torch's prepare_fx and convert_fx and through tare's: the texts are equal.
tools/compare_networks.py compares 60. Skipped where torch and torchvision are not installed."""
import importlib.util
import sys
import unittest
import warnings

from support import TOP, Case, main

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "torchvision"))


@unittest.skipUnless(HAS_TORCH, "torch and torchvision are not installed")
class Networks(Case):
    def test_printed_graphs_and_parameters_are_torchs(self):
        warnings.filterwarnings("ignore")
        sys.path.insert(0, str(TOP / "tools"))
        import compare_networks
        for name in ("torchvision/resnet18", "torchvision/squeezenet1_1"):
            found = compare_networks.compare(name, self.folder)
            self.assertEqual({stage: found[stage]["verdict"] for stage in compare_networks.STAGES},
                             dict.fromkeys(compare_networks.STAGES, "equal"), name)
            self.assertGreater(found["lines"], 50)


if __name__ == "__main__":
    main()

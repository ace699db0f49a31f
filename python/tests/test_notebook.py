# SPDX-License-Identifier: Apache-2.0
"""The notebook of the examples runs from its first cell to its last. Skipped where Jupyter's parts are not installed."""
import importlib.util
import unittest

from support import TOP, Case, main

NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib")


@unittest.skipUnless(all(importlib.util.find_spec(name) for name in NEEDED), f"one of {', '.join(NEEDED)} is not installed")
class Notebook(Case):
    def test_digits_runs(self):
        import nbclient
        import nbformat
        notebook = nbformat.read(TOP / "examples/python/digits.ipynb", as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:  # committed without results
            self.assertFalse(cell.get("outputs"))
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                                resources={"metadata": {"path": str(TOP / "examples/python")}}).execute()
        kinds = [key for cell in notebook.cells for output in cell.get("outputs", ()) for key in output.get("data", ())]
        self.assertGreaterEqual(kinds.count("image/png"), 3)
        self.assertIn("image/svg+xml", kinds)
        printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
        self.assertIn("of 360 images", printed)


if __name__ == "__main__":
    main()

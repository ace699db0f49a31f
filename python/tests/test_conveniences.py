# SPDX-License-Identifier: Apache-2.0
"""Pickling, tables for notebooks and for pandas."""
import ast
import copy
import doctest
import importlib.machinery
import importlib.util
import inspect
import json
import os
import pickle
import pkgutil
import re
import subprocess
import sys
import textwrap
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

import numpy as np

import tare
from support import DIGITS, TOP, Case, digits, main, prepared_digits, quantized_digits


def body_of(function):
    """What Python runs, as a tree, without functions inside of it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    stack = list(tree.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def raised_by(function):
    """Names of the exceptions that it raises itself; those of methods that subclasses write are not among them."""
    for node in body_of(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            if name.isidentifier() and name != "NotImplementedError":
                yield name


def gives_a_value(function):
    """Does it return anything but its own object?"""
    given = [node.value for node in body_of(function) if isinstance(node, ast.Return) and node.value is not None]
    return any(ast.unparse(value) not in ("self", "cls", "None") for value in given)


def public_functions():
    """(name, function) of the package's functions, and of its classes' methods and properties."""
    for name in tare.__all__:
        found = getattr(tare, name)
        if inspect.isfunction(found):
            yield name, found
        for part, value in vars(found).items() if inspect.isclass(found) else ():
            function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
            if not part.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{part}", function


def is_property(name):
    """Of a class of the package?"""
    owner, _, part = name.rpartition(".")
    return owner and isinstance(vars(getattr(tare, owner))[part], property)


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

    def test_graphs_are_pictures_and_rows(self):
        model, _ = quantized_digits()
        picture = model._repr_svg_()
        root = xml.etree.ElementTree.fromstring(picture)
        boxes = root.findall("{*}g/{*}rect")
        self.assertEqual(len(boxes), len(model.graph))
        self.assertGreater(len(root.findall("{*}g/{*}line")), len(boxes) - 3)
        rows = model.graph.to_records()
        self.assertEqual([row["name"] for row in rows], [node.name for node in model.graph.nodes])

    def test_examples_of_docstrings_hold(self):
        os.chdir(TOP)  # where their files are
        attempted = 0
        for module in pkgutil.iter_modules(tare.__path__):
            if not module.name.startswith(("_export", "__main__", "_native", "torch_")):
                result = doctest.testmod(importlib.import_module(f"tare.{module.name}"))
                self.assertEqual(result.failed, 0, module.name)
                attempted += result.attempted
        self.assertEqual(doctest.testmod(tare).failed, 0)
        self.assertGreater(attempted, 20)

    def test_docstrings_are_numpys(self):
        sections = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "Examples")
        for name, function in public_functions():
            said = inspect.getdoc(function)
            self.assertTrue(said, name)
            self.assertTrue(said.splitlines()[0], name)
            found = re.findall(r"^(\w+)\n(-{3,})$", said, flags=re.M)
            self.assertEqual([title for title, _ in found], sorted((title for title, _ in found), key=sections.index), name)
            self.assertTrue(all(len(title) == len(line) for title, line in found), name)
            if len(said.splitlines()) > 1 and gives_a_value(function) and not is_property(name):
                self.assertRegex(said, r"(?m)^(Returns|Yields)\n---", name)
            part = re.search(r"^Raises\n-+\n(.*?)(?=^\w+\n-{3,}\n|\Z)", said, flags=re.S | re.M)
            listed = re.findall(r"^(\S+)$", part[1], flags=re.M) if part else []
            self.assertLessEqual(set(raised_by(function)), set(listed), name)
            parameters = [given for given in inspect.signature(function).parameters if given not in ("self", "cls") and given[0] != "_"]
            part = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-{3,}\n|\Z)", said, flags=re.S | re.M)
            if part is None:  # a sentence is enough for one argument
                self.assertLess(len(parameters), 2, name)
                continue
            listed = [given.strip("* ") for line in re.findall(r"^(\S[^:\n]*) :", part[1], flags=re.M) for given in line.split(",")]
            self.assertEqual([given for given in listed if given[0] != "_"], parameters, name)

    @unittest.skipUnless(importlib.util.find_spec("pyright"), "pyright is not installed")
    def test_pyright_knows_every_type(self):
        done = subprocess.run([sys.executable, "-m", "pyright", "--verifytypes", "tare", "--ignoreexternal", "--outputjson"], text=True,
                              capture_output=True, timeout=300, check=False)
        said = json.loads(done.stdout)["typeCompleteness"]
        self.assertEqual(said["exportedSymbolCounts"]["withAmbiguousType"], 0)
        unknown = [row["name"] for row in said["symbols"] if row["isExported"] and not row["isTypeKnown"]
                   and not row["name"].startswith("tare.torch_")]  # classes of torch's, which may not be there
        self.assertEqual(unknown, [])

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_types_are_strict(self):
        done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(self.folder)], cwd=TOP / "python", text=True,
                              capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_dear_is_imported(self):
        found = subprocess.run([sys.executable, "-c", "import sys, numpy; before = set(sys.modules); import tare; "
                                "print(*sorted(set(sys.modules) - before))"], capture_output=True, text=True, check=True)
        modules = set(found.stdout.split())
        self.assertIn("tare.session", modules)
        self.assertFalse(modules & {"pathlib", "tempfile", "html", "statistics", "torch", "distributed", "rich", "tqdm"})

    def test_progress_is_shown_by_what_is_installed(self):
        shown = []

        class Bar:
            """What tqdm's and rich's bars have of what is used."""

            def __init__(self, **wish):
                self.n = self.total = 0
                shown.append(wish)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

            def update(self, count, **state):
                self.n += count
                shown.append((self.n, state.get("total", self.total)))

            def add_task(self, what, total):
                shown.append((what, total))
                return 0
        for name, inner, first in (("tqdm", "tqdm.auto", {"desc": "calibrate", "unit": "sample"}), ("rich", "rich.progress", {})):
            module, part = types.ModuleType(name), types.ModuleType(inner)
            module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(name, None), []
            part.tqdm = part.Progress = Bar
            other = {"rich": "tqdm"}.get(name)  # tqdm comes first
            shown.clear()
            with unittest.mock.patch.dict(sys.modules, {name: module, inner: part}), \
                    unittest.mock.patch("importlib.util.find_spec", lambda asked, other=other: None if asked == other else module.__spec__):
                prepared, images = prepared_digits()
                tare.calibrate(prepared, [images[:8], images[8:16]], progress=True)
            self.assertEqual(shown[0], first)
            self.assertEqual(len(shown), 3 if name == "tqdm" else 4)
            self.assertEqual(shown[-1][1], 2)
        shown.clear()
        with unittest.mock.patch("importlib.util.find_spec", lambda _: None):
            prepared, images = prepared_digits()
            tare.calibrate(prepared, [images], progress=True)
        self.assertEqual(shown, [])

    def test_the_command_line_is_inside(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "tare", *arguments], capture_output=True, text=True, timeout=60,
                                  check=False)
        self.assertIn(f"tare {tare.__version__}", run("version").stdout)
        path = self.folder / "digits.int8.safetensors"
        done = run("quantize", str(DIGITS), "--backend", "x86", "--calibrate", str(TOP / "data/digits/test.npz"), "-o", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(tare.load(path).stage, "lowered")
        self.assertEqual(run("nonsense").returncode, 2)

    def test_vendors_backends_are_found(self):
        package = self.folder / "vendor_npu-1.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-npu\nVersion: 1\n")
        (package / "entry_points.txt").write_text("[tare.backends]\nnpu = vendor_npu:backend\nfile = vendor_npu:PATH\n"
                                                  "wrong = vendor_npu:WRONG\n")
        (self.folder / "vendor_npu.py").write_text(
            "import pathlib, tare\ndef backend():\n    return tare.get_x86_backend_config().set_name('npu')\n"
            "PATH = pathlib.Path(__file__).with_name('npu.json')\nWRONG = 3\n")
        (self.folder / "npu.json").write_text(tare.get_qnnpack_backend_config().to_json())
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        self.assertLessEqual({"npu", "file"}, set(tare.BackendConfig.installed_names()))
        self.assertEqual(tare.BackendConfig.named("npu").name, "npu")
        self.assertEqual(tare.BackendConfig.named("file").name, "qnnpack")
        model, images = digits()
        texts = []
        for name in ("npu", "x86"):
            prepared = tare.prepare_fx(model, "x86", backend_config=name)
            prepared.calibrate(images)
            texts.append(str(tare.convert_fx(prepared, backend_config=name)))
        self.assertEqual(*texts)
        with self.assertRaisesRegex(TypeError, "expected a BackendConfig or a path"):
            tare.BackendConfig.named("wrong")
        with self.assertRaises(tare.NotFoundError):
            tare.BackendConfig.named("nobody's")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Every function of the C interface is declared, and the names that torch's manual has are here."""
import fnmatch
import importlib.util
import inspect
import pathlib
import re
import unittest

import tare
from tare import _declared
from tare._library import lib
from support import TOP, Case, main

HERE = pathlib.Path(__file__).resolve().parent


def torch_names():
    """(qualified name, path below the package) of torch's names."""
    for line in (HERE / "torch_names.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, re.search(r"\.((?:[A-Z]\w*\.)?\w+)$", line).group(1)


def sources():
    """All that the package consists of."""
    return "".join(path.read_text() for folder in ("tare", "native") for path in (TOP / "python" / folder).rglob("*.[pc]*") if path.suffix in (".py", ".pyi", ".c"))


class Interface(Case):
    def test_every_function_of_c_is_declared_as_in_its_header(self):
        functions = {}
        for header in sorted((TOP / "include/tare").glob("*.h")):
            text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
            for name, parameters in re.findall(r"TARE_API [^;(]*?\b(tare_\w+)\(((?:[^()]|\([^()]*\))*(?:\([^()]*\))?[^;]*)\);", text):
                functions[name] = parameters
        self.assertGreater(len(functions), 400)
        self.assertEqual(set(functions), set(_declared.FUNCTIONS))
        for name in functions:
            function = getattr(lib, name.removeprefix("tare_"))  # AttributeError: the library does not have it
            self.assertEqual(len(function.argtypes), len(_declared.PARAMETERS[name]), name)

    def test_structs_have_the_sizes_that_the_library_fills(self):
        model = tare.load(TOP / "data/digits/digits.safetensors")
        self.assertEqual(model.facts()["parameter_count"], 102938)
        for name in _declared.STRUCTS:
            self.assertIs(_declared.t(name), getattr(_declared, name))

    def test_names_of_torchs_manual_are_here(self):
        missing, count = [], 0
        for name, path in torch_names():
            found, count = tare, count + 1
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is None:
                missing.append(name)
        self.assertEqual(missing, [])
        self.assertGreater(count, 150)

    def test_every_function_is_reached_or_said_to_be_cs_own(self):
        text = sources()
        rows = [line.split(None, 1) for line in (HERE / "c_only.txt").read_text().splitlines() if not line.startswith("#")]
        self.assertTrue(all(len(row) == 2 for row in rows))
        called = {name for name in _declared.FUNCTIONS
                  if re.search(rf"lib\.{name[5:]}\b|[\"']{name[5:]}[\"']|\b{name}\(", text)}
        listed = {name for name in _declared.FUNCTIONS if any(fnmatch.fnmatchcase(name, row[0]) for row in rows)}
        self.assertEqual(set(_declared.FUNCTIONS) - called - listed, set(), "neither called nor in c_only.txt")
        self.assertEqual(sorted(row[0] for row in rows if not fnmatch.filter(set(_declared.FUNCTIONS) - called, row[0])), [],
                         "stands in c_only.txt, but is called, or is no function")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_signatures_begin_as_torchs(self):
        import importlib as imports
        wrong = []
        for name, path in torch_names():
            try:
                theirs = imports.import_module(name.removesuffix("." + path))
            except ImportError:
                continue
            ours = tare
            for part in path.split("."):
                theirs, ours = getattr(theirs, part, None), getattr(ours, part)
            if not inspect.isfunction(theirs) and not inspect.ismethod(theirs) or isinstance(ours, tare.observers._ObserverType):
                continue
            expected, found = (list(inspect.signature(f).parameters) for f in (theirs, ours))
            if found[:len(expected)] != expected and not {"args", "kwargs"} & set(expected):
                wrong.append((name, expected, found))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    main()

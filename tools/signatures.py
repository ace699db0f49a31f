#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the signatures in src/ops/rows/: what arguments the overloads of aten, of
quantized_decomposed and of torchao take, and with which defaults.

Run it where torch and torchao are installed when an operator table has got another spelling of torch's. A family's
file has the overloads that its rows in src/ops name, and those that it has already; FAMILY:NAME
("unary:aten.frac.default") adds one whose name a macro makes. The files are rewritten in place.

usage: signatures.py [FAMILY:NAME..]
"""
import pathlib
import re
import sys

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import torchao.quantization.quant_primitives  # registers torchao

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "src/ops/rows"
TITLE = "\n// Signatures, written by tools/signatures.py.\n"
LETTERS = {"SymInt": "i", "int": "i", "Scalar": "i", "float": "f", "bool": "b", "str": "s", "Tensor": "T"}


def known():
    """Family -> names of the rows that there are, and every other spelling in the strings of its source."""
    names = {path.stem: set(re.findall(r'^SIGNATURE\("([\w.]+)\(', path.read_text(), re.M)) for path in ROWS.glob("*.def")}
    del names["rows"]
    for argument in sys.argv[1:]:
        family, _, name = argument.partition(":")
        names[family].add(name)
    listed = set().union(*names.values())
    for path in ROOT.glob("src/ops/**/*.c"):
        text = path.read_text()
        found = {f"aten.{n}" for n in re.findall(r'(?:ATEN\("|torch\.ops\.aten\.)(\w+\.\w+)', text)}
        found |= {f"quantized_decomposed.{n}" for n in re.findall(r"quantized_decomposed\.(\w+\.\w+)", text)}
        if path.stem in names:
            names[path.stem] |= found - listed
    return names


def split(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + ([part.strip()] if part.strip() else [])


def default(text):
    """A list of equal numbers is one of them, which is how native_functions.yaml writes it; None of different ones."""
    items = set(text[1:-1].split(", ")) if text.startswith("[") and text != "[]" else {text}
    if len(items) > 1:
        return None
    item = items.pop().replace('"', "'")
    if re.search(r"\d[.e]", item):
        return repr(float(item))
    return item


def param(text):
    if text == "*":
        return text
    declared, _, fallback = text.partition("=")
    kind, name = declared.rsplit(" ", 1)
    element = re.match(r"(\w+)(?:\([^)]*\))?\??\[(\d*)\]", kind)
    kinds = f"[{LETTERS[element[1]]}{element[2]}]" if element else ""
    return name + kinds + (f"={default(fallback)}" if fallback and default(fallback) else "")


def result(text):
    kind = re.sub(r"\([^)]*\)", "", text).split(" ")[0]
    if kind.startswith("Tensor"):
        return "T[]" if "[" in kind else "T"
    return {"SymInt": "i", "int": "i", "Scalar": "s", "bool": "b", "SymBool": "b", "float": "f"}[kind]


def row(name):
    namespace, operator, overload = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    if packet is None or overload not in packet.overloads():
        return None
    params, results = re.match(r"[\w:.]+\((.*)\) -> (.*)$", str(getattr(packet, overload)._schema)).groups()
    params = " ".join(param(p) for p in split(params))
    if results.startswith("("):
        results = " ".join(result(r) for r in split(results[1:-1]))
    else:
        results = result(results)
    return f'SIGNATURE("{name}({params}) {results}")\n'


def main():
    for family, names in known().items():
        path = ROWS / f"{family}.def"
        rows = "".join(filter(None, map(row, sorted(names))))
        others = re.sub(r"\nSIGNATURE\(.*", "", path.read_text()).replace(TITLE.rstrip("\n"), "").rstrip("\n")
        path.write_text(others + "\n" + (TITLE + rows if rows else ""))


if __name__ == "__main__":
    main()

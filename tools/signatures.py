#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of src/ops/signatures.c: what arguments the overloads of aten and of
quantized_decomposed take, and with which defaults.

Run it where torch is installed when an operator table has got another spelling of torch's: the rows are
those of the overloads that `src/ops` names, of those that the file has, and of NAME ("aten.add.Tensor",
where a macro makes the name). It rewrites the file in place.

usage: signatures.py [NAME..]
"""
import pathlib
import re
import sys

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/ops/signatures.c"
LETTERS = {"SymInt": "i", "int": "i", "Scalar": "i", "float": "f", "bool": "b", "str": "s", "Tensor": "T"}


def known():
    """Names of the rows that there are, and every other spelling in a row's strings."""
    names = set(re.findall(r'^    "([\w.]+)\(', TABLE.read_text(), re.M)) | set(sys.argv[1:])
    for path in ROOT.glob("src/ops/**/*.c"):
        text = path.read_text()
        names |= {f"aten.{n}" for n in re.findall(r'(?:ATEN\("|torch\.ops\.aten\.)(\w+\.\w+)', text)}
        names |= {f"quantized_decomposed.{n}" for n in re.findall(r"quantized_decomposed\.(\w+\.\w+)", text)}
    return sorted(names)


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
    """A list of equal numbers is one of them, which is how native_functions.yaml writes it."""
    items = set(text[1:-1].split(", ")) if text.startswith("[") and text != "[]" else {text}
    assert len(items) == 1, text
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
    return name + kinds + (f"={default(fallback)}" if fallback else "")


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
    return f'    "{name}({params}) {results}"'.rstrip() + ",\n"


def main():
    rows = "".join(filter(None, map(row, known())))
    begin, end = "static const char *const rows[] = {\n", "};\n// clang-format on"
    head, rest = TABLE.read_text().split(begin)
    TABLE.write_text(head + begin + rows + end + rest.split(end)[1])


if __name__ == "__main__":
    main()

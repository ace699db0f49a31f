#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the sources are arranged, and holds it against limits.

usage: house.py [--objects FOLDER] [--json]

--objects FOLDER: the objects of the library (CMakeFiles/tare_objects.dir of a build), for cycles of
files that need each other at link time. Exit status 1: a limit is exceeded. `limit` is what the check
holds; `goal` is where the tree shall come to, and a limit only ever moves towards it.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".c", ".h", ".def"))

# Operators whose knowledge should stand in few files: what a source that knows one says.
OPERATORS = {
    "hardswish": r"hardswish",
    "layer_norm": r"layer_?norm",
    "softmax": r"(?<!log_)(?<!log)softmax(?!CrossEntropyLoss)",
    "conv+relu": r"conv\w*_?relu",
}
# Rooms that ask ids and traits, never names.
NAMELESS = ("flow", "quantizers", "runtime")
# Except files that are lists of torch's own names, or code of torch's.
NAMES_BY_NATURE = {
    "flow/export/reference.c": "patterns and replacements, written as torch code",
    "quantizers/patterns/ready_patterns.c": "patterns, written as torch code",
    "quantizers/patterns/partitions.c": "torch's list of names that mean the same source",
    "quantizers/xnnpack_quantizer.c": "torchao's names of its annotators, which settings and records say",
    "quantizers/inductor_quantizer.c": "torchao's recipes: names that settings may have, in torch's order",
}
# Ids that mean something else as well: arguments, keys, types.
COMMON_WORDS = {"any", "copy", "dim", "float", "index", "int", "max", "min", "out_dtype", "size", "to", "where"}
DTYPES = {"torch.qint8", "torch.quint8", "torch.qint32", "torch.float32", "torch.int8", "torch.uint8", "torch.int32", "torch.float16"}
# What a kind of step, or its kernel, is called in profiles. It may be an operator's name, and asks nobody for one.
LABELS = r'(?:\.|->)(?:name|kernel) = [^,;{}]*'
PRIVATE_WORDS = r"borders?|twins?|bands?|mates?"  # in quotes: a value that ONNX has


def text_of(path):
    return path.read_text(encoding="utf-8")


def code_of(path):
    """The text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text_of(path), flags=re.S)


def files_in_folders():
    counts = collections.Counter(p.parent.relative_to(ROOT / "src").as_posix() for p in SOURCES)
    return counts.most_common()


def files_that_know(pattern):
    return sorted(p.relative_to(ROOT / "src").as_posix() for p in SOURCES if re.search(pattern, code_of(p), re.I))


def operator_ids():
    """Operators' ids without their namespace: the rows ID in src/ops/rows."""
    return {name for path in SOURCES if path.suffix == ".def" for name in re.findall(r'^ID\("(?:\w+\.)?(\w+)"', text_of(path), re.M)}


def is_operator_name(literal, ids):
    """A qualified name, also within code; or an id, also as a method in place or with an overload."""
    if re.search(r"\btorch\.(ops|nn\.functional|_C)\.|^torch\.[a-z_0-9]+_?$|\boperator\.[a-z_]+", literal):
        return literal not in DTYPES
    word = re.fullmatch(r"(?:(?:quantized|codes|decomposed|higher_order)\.)?(\w+?)_?(\.\w+)?", literal)
    return word is not None and word[1] not in COMMON_WORDS and word[1] in ids


def literals_in_rooms():
    """Places in the rooms that should know no name, where one stands as a string."""
    ids, places = operator_ids(), []
    for path in SOURCES:
        room = path.relative_to(ROOT / "src").as_posix()
        if not room.startswith(NAMELESS) or room in NAMES_BY_NATURE:
            continue
        code = re.sub(r"#include[^\n]*", "", code_of(path))
        if room.startswith("runtime/"):
            code = re.sub(LABELS, "", code)
        places += [(room, n) for n in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code) if is_operator_name(n, ids)]
    return places


def link_cycles(folder):
    """Groups of objects that need each other, directly or through others, the largest first."""
    objects = sorted(pathlib.Path(folder).rglob("*.c.o"))
    defined, needed = {}, collections.defaultdict(set)
    for line in subprocess.run(["nm", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout.splitlines():
        path, _, rest = line.partition(":")
        words = rest.split()
        if len(words) < 2:
            continue
        kind, symbol = words[-2], words[-1]
        if kind == "U":
            needed[path].add(symbol)
        elif kind in "TDBRVWGC":
            defined[symbol] = path
    edges = {path: {defined[s] for s in symbols if s in defined and defined[s] != path} for path, symbols in needed.items()}
    groups = [g for g in strong_groups(edges) if len(g) > 1]
    names = lambda g: sorted(re.sub(r"^.*/src/|\.o$", "", p) for p in g)
    return sorted((names(g) for g in groups), key=len, reverse=True)


def strong_groups(edges):
    """Strongly connected components (Tarjan, 1972), without recursion."""
    order, low, on_stack, stack, groups = {}, {}, set(), [], []
    for root in edges:
        if root in order:
            continue
        work = [(root, iter(edges.get(root, ())))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(edges.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    groups.append(group)
    return groups


def tests_under_their_source():
    """Unit tests that stand at their source's place, under its name or its folder's; and all."""
    tests = sorted((ROOT / "tests/unit").rglob("test_*.c"))
    tests = [t for t in tests if "replay" not in t.parts]
    found = []
    for test in tests:
        place = ROOT / "src" / test.parent.relative_to(ROOT / "tests/unit")
        name = test.stem[len("test_"):]
        if any((place / f"{name}{ext}").exists() for ext in (".c", ".h")):
            found.append(test)
    return found, tests


def without_first_comment():
    """Sources and tests that do not say what they are in front of their includes or imports."""
    tests = [p for p in sorted((ROOT / "tests").rglob("*")) if p.suffix in (".c", ".h", ".py", ".sh") and p.is_file()]
    first = lambda p: re.sub(r"^((#!|(//|#) (SPDX|build:))[^\n]*\n)+", "", text_of(p))
    says = lambda p: first(p).startswith("//" if p.suffix in (".c", ".h") else ("#", '"""'))
    return [p.relative_to(ROOT).as_posix() for p in SOURCES + tests if p.suffix != ".def" and not says(p)]


def function_lengths():
    """Lines of functions outside of kernels, from the line of the opening brace to the closing one."""
    lengths = []
    for path in SOURCES:
        if path.suffix != ".c" or "runtime/kernels/" in path.as_posix():
            continue
        start = None
        for number, line in enumerate(text_of(path).split("\n")):
            if re.match(r"[A-Za-z].*\{$", line) and "=" not in line and not line.startswith(("typedef", "struct", "enum", "union")):
                start = number
            elif line == "}" and start is not None:
                lengths.append(number - start - 1)
                start = None
            elif re.match(r"[ ].*\) \{$", line) and start is None:
                start = number  # a head of several lines
    return lengths


def rows(objects):
    """(what, value, limit, goal, details): a limit of None is only printed."""
    folders = files_in_folders()
    yield "files directly in one folder, at most", folders[0][1], 40, 40, [f"{n} {f}" for f, n in folders[:5]]
    for name, pattern in OPERATORS.items():
        known = files_that_know(pattern)
        yield f"files that know {name}", len(known), LIMITS[name], 6, known
    literals = literals_in_rooms()
    by_file = collections.Counter(place for place, _ in literals)
    yield "operators' names as literals in " + ", ".join(NAMELESS), len(literals), LIMITS["literals"], 0, [f"{n} {f}" for f, n in by_file.most_common()]
    if objects:
        cycles = link_cycles(objects)
        yield "files in one link cycle, at most", len(cycles[0]) if cycles else 0, LIMITS["cycle"], 12, [" ".join(c) for c in cycles if len(c) > 12]
    words = [f"{p.relative_to(ROOT)}:{i}" for p in SOURCES for i, line in enumerate(text_of(p).split("\n"), 1) if re.search(rf"(?<!\")\b({PRIVATE_WORDS})\b(?!\")", line, re.I)]
    yield "lines with words of our own (" + PRIVATE_WORDS.replace("?", "").replace("|", ", ") + ")", len(words), LIMITS["words"], 0, words
    found, tests = tests_under_their_source()
    yield "tests found elsewhere than under their source's name, of 100", round(100 * (1 - len(found) / len(tests))), LIMITS["tests"], 10, [str(t.relative_to(ROOT)) for t in tests if t not in found]
    silent = without_first_comment()
    yield "files that do not say what they are in their first line", len(silent), 0, 0, silent
    short = [p for p in SOURCES if text_of(p).count("\n") < 40]
    yield f"files under 40 lines, of {len(SOURCES)}", len(short), None, None, []
    lengths = function_lengths()
    yield f"lines of a function outside kernels, longest of {len(lengths)}", max(lengths), None, None, []
    yield "lines of a function outside kernels, median", statistics.median(lengths), None, None, []


LIMITS = {"hardswish": 6, "layer_norm": 4, "softmax": 6, "conv+relu": 6, "literals": 0, "cycle": 12, "words": 0, "tests": 10}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", help="folder of the library's objects")
    parser.add_argument("--json", action="store_true", help="a JSON document in place of the table")
    parser.add_argument("--details", action="store_true", help="name the files behind each number")
    arguments = parser.parse_args()
    table = list(rows(arguments.objects))
    exceeded = [r for r in table if r[2] is not None and r[1] > r[2]]
    if arguments.json:
        keys = ("what", "value", "limit", "goal", "details")
        print(json.dumps([dict(zip(keys, r)) for r in table], indent=1))
    else:
        show = lambda n: "" if n is None else str(n)
        width = max(len(r[0]) for r in table)
        print(f"{'':{width}}  value  limit  goal")
        for what, value, limit, goal, details in table:
            print(f"{what:{width}}  {show(value):>5}  {show(limit):>5}  {show(goal):>4}")
            if arguments.details or (limit is not None and value > limit):
                for detail in details:
                    print(f"    {detail}")
    if exceeded:
        sys.exit(f"{len(exceeded)} limits exceeded")


if __name__ == "__main__":
    main()

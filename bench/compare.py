#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times our integers and floats beside the peers', in turns in one run, and writes the table of docs/performance.md.

    python3 bench/compare.py build/compare --python PEERS/bin/python [--python ..] [--rows resnet50:1x1,..] [--write]

The folder gets the networks (bench/workloads.py: needs torch and torchvision once) and what the peers make of them. A
peer takes part if one of the given interpreters, or this one, can import it: openvino and nncf; onnxruntime and onnx;
torch and torchvision; torchao; executorch. Who is absent is said. A row is a workload, batch x threads. All engines of
a row are open at once and run in turns, A B C A B C; a figure is the median over rounds of a round's median, from float
inputs to float outputs. Rounds in which others used the cores are left out where three are left without them. Results
are gathered in bench/compare.json, so that rows may be measured one by one.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

import workloads

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD, PAGE = os.path.join(HERE, "compare.json"), os.path.join(workloads.ROOT, "docs", "performance.md")
BEGIN, END = "<!-- bench/compare.py writes from here .. -->", "<!-- .. to here -->"
# Family -> modules without which it cannot take part.
FAMILIES = {"tare": ["numpy"], "openvino": ["openvino", "nncf"], "onnxruntime": ["onnxruntime", "onnx"],
            "executorch": ["executorch.runtime", "torchvision"], "torch": ["torch", "torchvision"],
            "inductor": ["torch", "torchvision", "torchao"]}
SLOW_TO_OPEN = {"inductor"}  # compiles for a minute and more: only where it is asked for
ROWS = ["resnet50:1x1", "resnet50:16x1", "resnet50:1x2", "resnet50:16x2", "resnet18:1x1", "resnet18:1x2",
        "mobilenet_v2:1x1", "mobilenet_v2:1x2", "mobilenet_v2:16x1", "mobilenet_v3_large:1x2", "encoder:1x1",
        "encoder:1x2", "linear:1x1", "linear:128x1"]
FOREIGN = 0.25  # cores that others may use in a round that counts


class Worker:
    """A process of engines.py."""

    def __init__(self, family, python, workload, options):
        self.family = family
        command = [python, os.path.join(HERE, "engines.py"), family, workload, options.folder, options.library]
        self.log = open(os.path.join(options.folder, family + ".log"), "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, "PYTHONWARNINGS": "ignore"})

    def ask(self, *words):
        try:
            print(*words, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        for line in self.process.stdout:
            if line.startswith("@"):
                found = json.loads(line[1:])
                if isinstance(found, dict) and "failed" in found:
                    raise RuntimeError(found["failed"])
                return found
        raise RuntimeError(f"the process ended; see {self.log.name}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


# --- who takes part ---


def can_import(python, modules):
    code = "import " + ", ".join(modules)
    return subprocess.run([python, "-c", code], capture_output=True).returncode == 0


def find_families(options):
    """{family: interpreter} of those that can take part."""
    wanted = options.families.split(",") if options.families else [f for f in FAMILIES if f not in SLOW_TO_OPEN]
    found = {}
    for family in wanted:
        if family not in FAMILIES:
            raise SystemExit(f"compare: no family '{family}' (there are {', '.join(FAMILIES)})")
        able = [p for p in options.python + [sys.executable] if can_import(p, FAMILIES[family])]
        if able:
            found[family] = able[0]
        else:
            print(f"{family}: absent (no interpreter imports {', '.join(FAMILIES[family])})")
    return found


# --- measuring ---


def open_engines(families, workload, batch, threads, options):
    """[(worker, engine)] of all that open, the workers, and versions."""
    workers, engines, versions = [], [], {}
    for family, python in families.items():
        worker = Worker(family, python, workload, options)
        workers.append(worker)
        try:
            opened = worker.ask("open", batch, threads)
        except RuntimeError as e:
            print(f"  {family}: {e}")
            continue
        versions.update(opened["versions"])
        engines += [(worker, engine) for engine in opened["engines"]]
        for engine, why in opened["errors"].items():
            print(f"  {family}/{engine}: {why}")
    return engines, workers, versions


def take_turns(engines, threads, options):
    """{(worker, engine): [answers of rounds]}; the first round warms up and does not count."""
    samples = {e: [] for e in engines}
    for turn in range(options.rounds + 1):
        for worker, engine in engines:
            try:
                answer = worker.ask("run", engine, options.seconds if turn > 0 else options.seconds / 4)
            except RuntimeError as e:
                print(f"  {worker.family}/{engine}: {e}")
                continue
            if turn > 0:
                samples[worker, engine].append(answer)
    spare = (os.cpu_count() or 1) - threads
    return {e: summary(s, FOREIGN + spare) for e, s in samples.items() if s}


def summary(answers, foreign):
    clean = [a for a in answers if a["foreign"] <= foreign]
    counted = clean if len(clean) >= 3 else answers
    rounds = sorted(statistics.median(a["ms"]) for a in counted)
    quarter = (len(rounds) - 1) // 4
    return {"median": statistics.median(rounds), "lower": rounds[quarter], "upper": rounds[-1 - quarter],
            "least": min(min(a["ms"]) for a in answers), "rounds": len(answers), "clean": len(clean)}


def measure(row, families, options):
    workload, sizes = row.split(":")
    batch, threads = (int(n) for n in sizes.split("x"))
    workloads.prepare(workload, options.folder, options.tare)
    print(row, flush=True)
    engines, workers, versions = open_engines(families, workload, batch, threads, options)
    found = {}
    try:
        if options.prepare:
            return found, versions
        for (worker, engine), figures in take_turns(engines, threads, options).items():
            if engine != "float":
                figures["sqnr"] = worker.ask("sqnr", engine)
            found[f"{worker.family}/{engine}"] = figures
            print("  {:32} {:9.3f} ms ({:.3f} to {:.3f}, least {:.3f}; {} of {} rounds clean){}".format(
                f"{worker.family}/{engine}", figures["median"], figures["lower"], figures["upper"], figures["least"],
                figures["clean"], figures["rounds"], f", {figures['sqnr']:.1f} dB" if "sqnr" in figures else ""), flush=True)
    finally:
        for worker in workers:
            worker.close()
    return found, versions


# --- the record and the table ---


def machine():
    lines = open("/proc/cpuinfo").read().splitlines() if os.path.exists("/proc/cpuinfo") else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.processor(), "cores": os.cpu_count()}


def commit():
    found = subprocess.run(["git", "-C", workloads.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip()


def load_record():
    if not os.path.exists(RECORD):
        return {"machine": {}, "versions": {}, "rows": {}}
    with open(RECORD) as file:
        return json.load(file)


def store(record):
    with open(RECORD + ".new", "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    os.replace(RECORD + ".new", RECORD)


REALS = ("float", "bfloat16")  # all other recipes have integers


def is_integer(name):
    return name.split("/")[1] not in REALS


def fastest(engines, ours, kind=None):
    """(name, figures) of the fastest engine of this kind, None: of integers, ours or a peer's; None: there is none."""
    found = [(name, f) for name, f in engines.items() if name.startswith("tare/") == ours and
             (is_integer(name) if kind is None else name.split("/")[1] == kind)]
    return min(found, key=lambda e: e[1]["median"], default=None)


def ours_beside(engines, peer):
    """Our fastest integers among those that are as exact as the peer's; else the most exact ones."""
    own = {n: f for n, f in engines.items() if n.startswith("tare/") and is_integer(n)}
    exact = {n: f for n, f in own.items() if peer is None or f["sqnr"] >= peer[1]["sqnr"] - 0.05}
    if exact:
        return min(exact.items(), key=lambda e: e[1]["median"])
    return max(own.items(), key=lambda e: e[1]["sqnr"], default=None)


def cell(engine):
    return f"{engine[1]['median']:.3g} ({engine[0]})" if engine else ""


def over(a, b):
    return f"{a[1]['median'] / b[1]['median']:.2f}" if a and b else ""


def table_line(row, engines):
    peer = fastest(engines, False)
    ours, real = ours_beside(engines, peer), fastest(engines, True, "float")
    peer_real = fastest(engines, False, "float")
    brains = [fastest(engines, is_ours, "bfloat16") for is_ours in (True, False)]
    decibels = " / ".join(f"{e[1]['sqnr']:.1f}" for e in (ours, peer) if e)
    if ours is None or real is None:
        return None
    return [row.replace(":", " "), f"{ours[1]['median']:.3g}", cell(peer), f"**{over(peer, ours)}**", decibels,
            " / ".join(f"{b[1]['median']:.3g}" if b else "-" for b in brains), f"{real[1]['median']:.3g}", cell(peer_real), over(peer_real, real),
            over(real, ours)]


def render(record):
    header = ["workload, batch x threads", "ours, int8", "best int8 peer", "peer / ours", "SQNR, dB", "bfloat16, ours / OpenVINO",
              "ours, float", "best float peer", "peer / ours", "our int8 over our float"]
    rows = [r for r in ROWS if r in record["rows"]]
    lines = [line for r in rows if (line := table_line(r, record["rows"][r]["engines"]))]
    versions = ", ".join(f"{k} {v}" for k, v in sorted(record["versions"].items()))
    text = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    ratios = [float(line[3].strip("*")) for line in lines if line[2]]
    mean = statistics.geometric_mean(ratios) if ratios else 0
    text += ["", f"Geometric mean of peer / ours, int8: {mean:.2f}. {record['machine'].get('cpu', '')}, "
             f"{record['machine'].get('cores', '')} cores; {versions}."]
    return "\n".join(text)


def write_page(text):
    with open(PAGE) as file:
        page = file.read()
    head, rest = page.split(BEGIN)
    with open(PAGE, "w") as file:
        file.write(head + BEGIN + "\n\n" + text + "\n\n" + END + rest.split(END)[1])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="for networks and what engines make of them, such as build/compare")
    parser.add_argument("--rows", default=",".join(ROWS), help="WORKLOAD:BATCHxTHREADS,..; 'none': only write")
    parser.add_argument("--families", help="who takes part (default: all that can, but inductor)")
    parser.add_argument("--python", action="append", default=[], help="an interpreter that imports peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of an engine in a round")
    parser.add_argument("--tare", default=os.path.join(workloads.ROOT, "build", "bin", "tare"))
    parser.add_argument("--library", default=os.path.join(workloads.ROOT, "build", "release", "libtare.so"))
    parser.add_argument("--prepare", action="store_true", help="only make what is not there yet; measures nothing")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--keep", action="store_true", help="leave bench/compare.json as it is")
    return parser.parse_args()


def main():
    options = parse()
    record = load_record()
    families = find_families(options) if options.rows != "none" else {}
    for row in options.rows.split(",") if options.rows != "none" else []:
        engines, versions = measure(row, families, options)
        if options.prepare:
            continue
        record["machine"] = machine()
        record["versions"].update(versions)
        # Whole, or not at all: engines of one run alone compare.
        record["rows"][row] = {"engines": engines, "commit": commit(), "date": datetime.date.today().isoformat()}
        if not options.keep:
            store(record)
    text = render(record)
    print(text)
    if options.write:
        write_page(text)


if __name__ == "__main__":
    main()

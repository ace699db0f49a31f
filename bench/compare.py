#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times our integers and floats beside the peers', in turns in one run, and writes the tables of docs/performance.md.

    python3 bench/compare.py [build/compare] [--python PEERS/bin/python ..] [--rows resnet50:1x1,..] [--write]

The folder gets the networks (bench/workloads.py) and what the peers make of them; without --python also an environment with
openvino and nncf; onnxruntime and onnx; torch and torchvision; executorch; and torchao where inductor is asked for. Who is
absent is said. A row is a workload, batch x threads. Before a row the machine's peaks are measured and kept, the largest of all
rows: the table has the machine's limit beside each time. All engines of a row are open at once and run in turns, A B C A B C; a
figure is the median over rounds of a round's median, from float inputs to float outputs. Rounds in which others used the cores
are left out where three are left without them. Results are gathered in bench/compare.json by CPU model and AMX, so that rows may be
measured one by one, and machines of each family by who has one. --without-amx keeps AMX from all engines, and their rows apart.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

import compare_page
import peers
import without_amx

try:
    import workloads
except ModuleNotFoundError:  # numpy: another interpreter goes on (restart)
    workloads = None

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "compare.json")
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


def find_limits(workload, threads, options):
    """The machine's peaks for so many threads, and what a sample of the workload is: multiply-accumulates, bytes of weights."""
    shape = "x".join(str(n) for n in workloads.SHAPES[workload])
    command = [options.tare, "bench", workloads.ours(workload, options.folder, "int8"), "--input", "random:1:0:" + shape,
               "--threads", str(threads), "--seconds", "1", "--layers", "--memory", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("compare: " + done.stderr.strip())
    found = json.loads(done.stdout)
    return found["machine"]["peak"], {"macs": sum(layer["macs"] for layer in found["layers"]),
                                      "weight_bytes": found["memory"]["weight_bytes"]}


def split_row(row):
    workload, sizes = row.split(":")
    return (workload, *(int(n) for n in sizes.split("x")))


def measure(row, families, options):
    """What the engines of a row took, their versions, and the machine's peaks and the work of a sample."""
    workload, batch, threads = split_row(row)
    workloads.prepare(workload, options.folder, options.tare)
    print(row, flush=True)
    limits = None if options.prepare else find_limits(workload, threads, options)
    engines, workers, versions = open_engines(families, workload, batch, threads, options)
    found = {}
    try:
        if options.prepare:
            return found, versions, limits
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
    return found, versions, limits


# --- the record ---


def machine(options):
    lines = open("/proc/cpuinfo").read().splitlines() if os.path.exists("/proc/cpuinfo") else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    # A virtual machine's name may say nothing of it, and nothing else changes so much.
    if any(line.startswith("flags") and " amx_int8" in line for line in lines):
        cpu += " with AMX" if not options.without_amx else ", AMX kept off"
    return {"cpu": cpu, "cores": os.cpu_count()}


def commit():
    found = subprocess.run(["git", "-C", compare_page.ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip()


def load_record():
    if not os.path.exists(RECORD):
        return {"cpus": {}}
    with open(RECORD) as file:
        return json.load(file)


def store(record):
    with open(RECORD + ".new", "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    os.replace(RECORD + ".new", RECORD)


def note_row(record, here, row, engines, versions, limits):
    """Whole, or not at all: engines of one run alone compare. Of peaks the largest that was ever found counts."""
    (_, batch, threads), (peaks, work) = split_row(row), limits
    family = record["cpus"].setdefault(here["cpu"], {"machine": here, "versions": {}, "peaks": {}, "rows": {}})
    family["machine"] = here
    family["versions"].update(versions)
    known = family["peaks"].setdefault(str(threads), {})
    known.update({name: max(value, known.get(name, 0)) for name, value in peaks.items()})
    family["rows"][row] = {"engines": engines, "batch": batch, "threads": threads, "work": work, "commit": commit(),
                           "date": datetime.date.today().isoformat()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.path.join(compare_page.ROOT, "build", "compare"),
                        help="for networks and what engines make of them (default build/compare)")
    parser.add_argument("--rows", default=",".join(compare_page.ROWS), help="WORKLOAD:BATCHxTHREADS,..; 'none': only write")
    parser.add_argument("--families", help="who takes part (default: all that can, but inductor)")
    parser.add_argument("--python", action="append", default=[], help="an interpreter that imports peers; without it, one is made in the folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of an engine in a round")
    parser.add_argument("--tare", default=os.path.join(compare_page.ROOT, "build", "bin", "tare"))
    parser.add_argument("--library", default=os.path.join(compare_page.ROOT, "build", "release", "libtare.so"))
    parser.add_argument("--without-amx", action="store_true", help="no engine uses AMX, as on a CPU of this kind that has none")
    parser.add_argument("--prepare", action="store_true", help="only make what is not there yet; measures nothing")
    parser.add_argument("--write", action="store_true", help="write the tables and the chart into docs")
    parser.add_argument("--keep", action="store_true", help="leave bench/compare.json as it is")
    return parser.parse_args()


def choose_families(options):
    """{family: interpreter} of those that can take part."""
    wanted = options.families.split(",") if options.families else [f for f in peers.FAMILIES if f not in peers.SLOW_TO_OPEN]
    pythons = options.python + [sys.executable]
    if not options.python:
        known = [f for f in wanted if f in peers.FAMILIES]
        pythons.insert(0, peers.make_environment(os.path.join(options.folder, "peers"), known))
    return peers.find_families(wanted, pythons)


def restart(families, options):
    """Goes on in an interpreter that has what the networks are made with, if this one has not."""
    needs = ["numpy"] if set(families) <= {"tare"} else ["numpy", "torch", "torchvision"]
    if peers.can_import(sys.executable, needs):
        return
    able = [p for p in families.values() if peers.can_import(p, needs)]
    if not able:
        raise SystemExit(f"compare: no interpreter imports {', '.join(needs)}")
    python = [word for path in dict.fromkeys(families.values()) for word in ("--python", path)]
    os.execv(able[0], [able[0], *sys.argv, *([] if options.python else python)])


def main():
    options = parse()
    if options.without_amx:
        without_amx.refuse()
    record = load_record()
    os.makedirs(options.folder, exist_ok=True)
    families = choose_families(options) if options.rows != "none" else {}
    if families:
        restart(families, options)
    for row in options.rows.split(",") if options.rows != "none" else []:
        engines, versions, limits = measure(row, families, options)
        if options.prepare:
            continue
        note_row(record, machine(options), row, engines, versions, limits)
        if not options.keep:
            store(record)
    text = compare_page.render(record)
    print(text)
    if options.write:
        compare_page.write_page(text)
        compare_page.write_chart(record)


if __name__ == "__main__":
    main()

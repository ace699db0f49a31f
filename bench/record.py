#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our speed with the last recorded figures: `make bench`. Needs the standard library only.

    python3 bench/record.py [--threads 1,2] [--rounds 3] [--write]
    python3 bench/record.py --against OTHER/build/bin/tare [--rounds 5]

A figure is a share of the peak that the machine is measured to have in the same run, so that it says something on another
machine of the kind, too: of a whole network in integers and in floats, and of all layers that one kernel computes. Figures
that moved by more than 5 % are marked. --write makes what was found the record, bench/record.json. --against compares the
times of two builds, each with models of its own making, in turns.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RECORD = os.path.join(HERE, "record.json")
MOVED = 0.05
LEAST_SHARE = 0.05  # of a network's time: kernels below it are too short to be compared
sys.path.insert(0, os.path.join(ROOT, "tools"))

# --- networks: name -> (how it is built, shape of a sample, batch) ---


def resnet18(_, make):
    return make.build(64, 1000, 0)


def inverted_residual(b, make, path, x, c_in, c_out, stride):
    """Widens, looks around in each channel, narrows; as in MobileNetV2."""
    wide, y = 6 * c_in, x
    b.enter(path, make.SEQUENTIAL)
    for i, (size, step, padding, groups, out) in enumerate([(1, 1, 0, 1, wide), (3, stride, 1, wide, wide),
                                                            (1, 1, 0, 1, c_out)]):
        y = b.conv(f"{path}.conv{i}", y, c_in if i == 0 else wide, out, size, step, padding, groups)
        y = b.batch_norm(f"{path}.bn{i}", y, out, 2.0, 1.0)
        if i < 2:
            y = b.relu(f"{path}.relu{i}", y)
    b.leave()
    return b.add(y, x) if stride == 1 and c_in == c_out else y


def mobile(b, make):
    x = make.stem(b, b.node("x", "placeholder", "x", [], []), 32)
    c_in = 32
    for i, (c_out, stride) in enumerate([(24, 1), (24, 1), (32, 2), (32, 1), (64, 2), (64, 1), (96, 1), (160, 2), (160, 1)]):
        x = inverted_residual(b, make, f"block{i}", x, c_in, c_out, stride)
        c_in = c_out
    b.node("output", "output", "output", [make.head(b, x, c_in, 1000)], [])
    return b


def linear(b, make):
    x = b.node("x", "placeholder", "x", [], [])
    b.node("output", "output", "output", [b.linear("fc", x, 1024, 4096)], [])
    return b


NETWORKS = {"ResNet-18": (resnet18, "3x224x224", 1), "inverted residuals": (mobile, "3x224x224", 1),
            "linear, 1 row": (linear, "1024", 1), "linear, 128 rows": (linear, "1024", 128)}


def write_networks(folder, tare):
    import build_resnet18 as make
    import tare_export
    os.makedirs(folder, exist_ok=True)
    for build, shape, _ in NETWORKS.values():
        real, integers = (os.path.join(folder, build.__name__ + end) for end in (".safetensors", ".int8.safetensors"))
        if not os.path.exists(real):
            b = build(make.Builder(0), make)
            tare_export.write_model(real, tare_export.graph_header(b.modules, b.nodes, b.parameters, b.buffers), b.tensors)
        # Made anew: the program that is measured decides what it is made of.
        subprocess.run([tare, "quantize", real, "--backend", "native", "--calibrate", "random:4:1:" + shape, "--quiet",
                        "-o", integers], check=True, stdout=subprocess.DEVNULL)


# --- figures ---


def bench(tare, real, integers, shape, batch, threads, seconds=2):
    command = [tare, "bench", integers, "--against", real, "--input", f"random:{4 * batch}:0:{shape}", "--batch", str(batch),
               "--threads", str(threads), "--seconds", str(seconds), "--layers", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    layers, peak = found["layers"], found["machine"]["peak"]
    ops = 2e-6 * sum(layer["macs"] for layer in layers)
    figures = {"integers": ops / found["model"]["median_ms"] / peak["int8_gops"],
               "floats": ops / found["against"]["median_ms"] / peak["float_gflops"]}
    for kernel in {layer["kernel"] for layer in layers if layer["macs"] > 0}:
        own = [layer for layer in layers if layer["kernel"] == kernel]
        time = sum(layer["median_ms"] for layer in own)
        if sum(layer["share"] for layer in own) >= LEAST_SHARE and time > 0:
            figures[kernel] = 2e-6 * sum(layer["macs"] for layer in own) / time / peak["int8_gops"]
    return figures, found


def measure(options):
    figures, last = {}, {}
    for name, (build, shape, batch) in NETWORKS.items():
        paths = [os.path.join(options.folder, build.__name__ + end) for end in (".safetensors", ".int8.safetensors")]
        for threads in (int(n) for n in options.threads.split(",")):
            rounds = []
            for _ in range(options.rounds):
                found, last = bench(options.tare, *paths, shape, batch, threads)
                rounds.append(found)
            for figure in rounds[0]:
                seen = [r[figure] for r in rounds if figure in r]
                figures[f"{name}, {threads} thread{'s' if threads > 1 else ''}, {figure}"] = statistics.median(seen)
    return {"machine": {"cpu": last["machine"]["cpu"], "isa": last["isa"], "build": last["machine"]["build"]},
            "figures": {name: round(value, 4) for name, value in figures.items()}}


# --- two builds in turns ---


def times_of(found):
    times = {"integers": found["model"]["median_ms"], "floats": found["against"]["median_ms"]}
    for kernel in {layer["kernel"] for layer in found["layers"] if layer["macs"] > 0}:
        own = [layer for layer in found["layers"] if layer["kernel"] == kernel]
        if sum(layer["share"] for layer in own) >= LEAST_SHARE:
            times[kernel] = sum(layer["median_ms"] for layer in own)
    return times


def compare_builds(options):
    """Medians and minima of both; every other round begins with the other build."""
    builds = {"other": options.against, "this": options.tare}
    for name, tare in builds.items():
        write_networks(os.path.join(options.folder, name), tare)
    rows = {}
    for i in range(options.rounds):
        for network, (build, shape, batch) in NETWORKS.items():
            for threads in options.threads.split(","):
                for name in sorted(builds, reverse=i % 2 == 0):
                    paths = [os.path.join(options.folder, name, build.__name__ + end) for end in (".safetensors", ".int8.safetensors")]
                    found = bench(builds[name], *paths, shape, batch, threads, seconds=1)[1]
                    for figure, time in times_of(found).items():
                        key = f"{network}, {threads} thread{'s' if threads != '1' else ''}, {figure}"
                        rows.setdefault(key, {}).setdefault(name, []).append(time)
    width = max(len(key) for key in rows)
    print(f"{'ms: median, least':{width}}  {'other':>17}  {'this':>17}")
    for key, times in rows.items():
        shown = [f"{statistics.median(times[n]):8.3f} {min(times[n]):8.3f}" if n in times else " " * 17 for n in builds]
        both = len(times) == len(builds)
        ratio = statistics.median(times["this"]) / statistics.median(times["other"]) - 1 if both else 0
        least = min(times["this"]) / min(times["other"]) - 1 if both else 0
        print(f"{key:{width}}  {'  '.join(shown)}" + (f"  {100 * ratio:+5.1f} % {100 * least:+5.1f} %" if both else ""))


# --- the record ---


def compare(before, now):
    width = max(len(name) for name in {**before, **now})
    print(f"{'share of the peak':{width}}  {'recorded':>8}  {'now':>8}")
    moved = 0
    for name, value in now.items():
        change = value / before[name] - 1 if before.get(name) else None
        mark = "" if change is None else f"  {100 * change:+.1f} %" if abs(change) > MOVED else ""
        moved += mark != ""
        told = f"{before[name]:8.3f}" if name in before else f"{'':8}"
        print(f"{name:{width}}  {told}  {value:8.3f}{mark}")
    for name in before.keys() - now.keys():
        print(f"{name:{width}}  {before[name]:8.3f}  {'gone':>8}")
    print(f"{moved} of {len(now)} figures moved by more than {100 * MOVED:.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench"))
    parser.add_argument("--tare", default=os.path.join(ROOT, "build", "bin", "tare"))
    parser.add_argument("--against", help="program of another build, whose times are compared with this one's")
    parser.add_argument("--write", action="store_true", help="make this the record")
    options = parser.parse_args()
    if options.against:
        compare_builds(options)
        return
    write_networks(options.folder, options.tare)
    old, new = {}, measure(options)
    if os.path.exists(RECORD):
        with open(RECORD) as file:
            old = json.load(file)
    if old and old["machine"]["isa"] != new["machine"]["isa"]:
        print(f"the record is of {old['machine']['isa']}, this is {new['machine']['isa']}: only shares of like kernels compare")
    measured = {f" {n} thread" for n in options.threads.split(",")}  # figures of other numbers of threads stay
    others = {n: v for n, v in old.get("figures", {}).items() if not any(m in n for m in measured)}
    compare({n: v for n, v in old.get("figures", {}).items() if n not in others}, new["figures"])
    if options.write:
        new["figures"] = {**others, **new["figures"]}
        with open(RECORD + ".new", "w") as file:
            json.dump(new, file, indent=1)
            file.write("\n")
        os.replace(RECORD + ".new", RECORD)


if __name__ == "__main__":
    main()

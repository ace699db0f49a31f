#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the networks that export_models.py wrote, and puts the table into docs/models.md.

    python tools/export_models.py build/models
    python tools/model_table.py build/models --tare build/bin/tare [NAME ..]

    python tools/export_models.py build/models --pt2
    python tools/compare_pt2e.py build/compare --graphs-only
    python tools/model_table.py build/models --pt2 build/compare/pt2e.json --tare build/bin/tare [NAME ..]

Each network runs in float and is compared with torch's outputs; it is quantized for x86 with its calibration inputs,
runs in integers on inputs that calibration has not seen, and both forms are timed in turns on one thread. Beside the
default mapping stands torch's own for x86, which gives up a bit of each activation. With --pt2 the networks are programs
of torch.export, quantized by two of torchao's quantizers; whether what they print is torch's is in compare_pt2e.py's
file. What was measured is kept in FOLDER/pt2e_measured.json, so that the table can grow by names. Needs numpy.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BEGIN, END = "<!-- table: begin, written by tools/model_table.py -->", "<!-- table: end -->"
HEAD = """| network | multiply-accumulates | float error | operators in integers | multiply-accumulates in integers | \
SQNR | SQNR with torch's mapping | size, float and int8 | time, float and int8 | faster |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""

PT2_BEGIN, PT2_END = "<!-- programs: begin, written by tools/model_table.py -->", "<!-- programs: end -->"
PT2_HEAD = """| network | float error | XNNPACK: operators in integers | XNNPACK: multiply-accumulates | XNNPACK: SQNR | \
X86: operators in integers | X86: multiply-accumulates | X86: SQNR | time: float, XNNPACK, X86 | printed as torch |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""
QUANTIZERS = {"xnnpack": ("XNNPACKQuantizer", {"is_per_channel": True}), "x86": ("X86InductorQuantizer", {})}


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        sys.exit(f"tare {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def arrays(path):
    with np.load(path) as file:
        return [file[name] for name in sorted(file.files)]


def float_error(expected, found):
    """The largest error relative to the largest value, over all outputs."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(expected, found, strict=True))


def sqnr(expected, found):
    """Of all outputs together, in dB."""
    signal = sum(float(np.square(a, dtype=np.float64).sum()) for a in expected)
    noise = sum(float(np.square(a.astype(np.float64) - b).sum()) for a, b in zip(expected, found, strict=True))
    return 10 * np.log10(signal / noise)


def quantized_outputs(tare, stem, folder, *more):
    """Of the integer model, which is left at int8.safetensors."""
    int8 = folder / "int8.safetensors"
    run(tare, "quantize", f"{stem}.safetensors", "--backend", "x86", "--calibrate", f"{stem}.calibration.npz",
        "--batch", 4, "-o", int8, "--report", folder, *more)
    run(tare, "run", int8, "--input", f"{stem}.inputs.npz", "--output", folder / "int8.npz")
    return arrays(folder / "int8.npz")


def measure(tare, stem, folder, seconds):
    model, inputs, int8 = f"{stem}.safetensors", f"{stem}.inputs.npz", folder / "int8.safetensors"
    run(tare, "run", model, "--input", inputs, "--output", folder / "float.npz")
    by_torch = quantized_outputs(tare, stem, folder, "--qconfig", "x86")
    by_default = quantized_outputs(tare, stem, folder)
    times = json.loads(run(tare, "bench", int8, "--against", model, "--input", inputs, "--seconds", seconds, "--json"))
    found = arrays(folder / "float.npz")
    coverage = json.loads((folder / "coverage.json").read_text())
    return {"error": float_error(arrays(f"{stem}.outputs.npz"), found), "sqnr": sqnr(found, by_default),
            "torch_sqnr": sqnr(found, by_torch), "coverage": coverage, "bytes": [os.path.getsize(model), os.path.getsize(int8)],
            "ms": [times["against"]["median_ms"], times["model"]["median_ms"]]}


def row(name, m):
    c = m["coverage"]
    macs = f"{c['macs'] / 1e9:.2f} G" if c["macs"] >= 1e8 else f"{c['macs'] / 1e6:.1f} M"
    sizes = " and ".join(f"{size / 1e6:.1f}" for size in m["bytes"])
    times = " and ".join(f"{ms:.3g}" if ms < 100 else f"{ms:.0f}" for ms in m["ms"])
    return (f"| {name} | {macs} | {m['error']:.1e} | {c['quantized_operators']} of {c['operators']} | "
            f"{100 * c['quantized_macs'] / c['macs']:.1f} % | {m['sqnr']:.1f} dB | "
            f"{m['torch_sqnr']:.1f} dB | {sizes} MB | {times} ms | "
            f"{m['ms'][0] / m['ms'][1]:.2f} |")


# --- programs of torch.export ---

def measure_program(tare, stem, folder, seconds):
    program, inputs = f"{stem}.pt2", f"{stem}.inputs.npz"
    run(tare, "run", program, "--input", inputs, "--output", folder / "float.npz")
    found = arrays(folder / "float.npz")
    measured = {"error": float_error(arrays(f"{stem}.outputs.npz"), found)}
    for form, (quantizer, options) in QUANTIZERS.items():
        config, int8 = folder / "config.json", folder / f"{form}.safetensors"
        config.write_text(json.dumps({"global": {"default": options}}))
        run(tare, "quantize", program, "--quantizer", quantizer, "--quantizer-config", config, "--calibrate",
            f"{stem}.calibration.npz", "--batch", 4, "-o", int8, "--report", folder)
        run(tare, "run", int8, "--input", inputs, "--output", folder / "int8.npz")
        times = json.loads(run(tare, "bench", int8, "--against", program, "--input", inputs, "--seconds", seconds,
                               "--json"))
        measured[form] = {"sqnr": sqnr(found, arrays(folder / "int8.npz")),
                          "coverage": json.loads((folder / "coverage.json").read_text()),
                          "ms": [times["against"]["median_ms"], times["model"]["median_ms"]]}
    return measured


def printed_equal(results, name):
    """"yes", or what is not equal to torch's text, by quantizer and stage."""
    unequal = []
    for form in QUANTIZERS:
        found = results.get(f"{name} {form}", {})
        verdicts = {stage: found.get(stage, {}).get("verdict", "not compared") for stage in ("prepare", "convert")}
        if verdicts["prepare"] == "torch fails":
            unequal.append(f"torch fails for {form}")
        else:
            unequal += [f"{form} {stage}: {verdict}" for stage, verdict in verdicts.items() if verdict != "equal"]
    return ", ".join(unequal) or "yes"


def pt2_row(name, m, results):
    cells = [name, f"{m['error']:.1e}"]
    for form in QUANTIZERS:
        c = m[form]["coverage"]
        cells += [f"{c['quantized_operators']} of {c['operators']}", f"{100 * c['quantized_macs'] / c['macs']:.1f} %",
                  f"{m[form]['sqnr']:.1f} dB"]
    floats = [m[form]["ms"][0] for form in QUANTIZERS]
    times = [min(floats), *(m[form]["ms"][1] for form in QUANTIZERS)]
    cells.append(", ".join(f"{ms:.3g}" if ms < 100 else f"{ms:.0f}" for ms in times) + " ms")
    return f"| {' | '.join([*cells, printed_equal(results, name)])} |"


def measure_programs(options):
    folder = pathlib.Path(options.folder)
    kept = folder / "pt2e_measured.json"
    measured = json.loads(kept.read_text()) if kept.exists() else {}
    results = json.loads(options.pt2.read_text())
    for name in options.names or sorted(path.stem for path in folder.glob("*.pt2")):
        with tempfile.TemporaryDirectory() as scratch:
            measured[name] = measure_program(options.tare, os.path.join(folder, name), pathlib.Path(scratch),
                                             options.seconds)
        kept.write_text(json.dumps(measured, indent=1) + "\n")
        print(pt2_row(name, measured[name], results), flush=True)
    write_table(options.docs, PT2_BEGIN, PT2_END, PT2_HEAD,
                [pt2_row(name, measured[name], results) for name in sorted(measured)])


# --- the tables ---

def write_table(path, begin, end, head, rows):
    text = path.read_text()
    before, rest = text.split(begin)
    path.write_text(before + begin + "\n" + "\n".join([head, *rows]) + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description="Measure exported networks and write the table of docs/models.md.")
    parser.add_argument("folder", help="what export_models.py wrote")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; the table is then printed, not written")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--docs", type=pathlib.Path, metavar="FILE",
                        default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "models.md")
    parser.add_argument("--seconds", type=int, default=2, help="for each pair of times")
    parser.add_argument("--pt2", type=pathlib.Path, metavar="RESULTS",
                        help="measure NAME.pt2; RESULTS is the pt2e.json of compare_pt2e.py")
    options = parser.parse_intermixed_args()
    if options.pt2:
        measure_programs(options)
        return
    names = options.names or sorted(path.name[:-len(".outputs.npz")]
                                    for path in pathlib.Path(options.folder).glob("*.outputs.npz"))
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            stem = os.path.join(options.folder, name)
            rows.append(row(name, measure(options.tare, stem, pathlib.Path(folder), options.seconds)))
        print(rows[-1], flush=True)
    if not options.names:
        write_table(options.docs, BEGIN, END, HEAD, rows)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends networks that nobody here wrote through the three doors, and says what became of each.

    pip install torch torchvision timm transformers onnx onnxruntime onnxscript numpy
    make build
    python tools/zoo.py run build/zoo --peer --jobs 2 --missing --table --tare build/bin/tare
    python tools/zoo.py run build/zoo [NAME ..] [--door trace|pt2|onnx ..] [--peer] --tare build/bin/tare
    python tools/zoo.py table build/zoo

The first command runs all of them (zoo_networks.py), two at a time, goes on where an earlier run ended, and writes the table.
--minutes 60 begins none later.

The networks are torchvision's, timm's and transformers', with random weights whose batch norms are settled
(export_models.py). The doors: `trace` by tare_export.py, `pt2` by torch.export, `onnx` by torch's exporter. Through each, a
network runs in float, beside torch's outputs; it is quantized with 8 samples, runs in integers on 16 others, and both forms
are timed in turns on one thread; the share of the time in steps that call an operator's reference is counted. --peer does the
same with ONNX Runtime's static int8 (QDQ, per channel), and with torch's own (FX, x86) for networks of torchvision. What
was found is added to FOLDER/results.json, from which `table` writes the table of docs/models.md. Every network has a
process and a time limit of its own, forked from one that has loaded torch.
"""
import argparse
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings

from zoo_networks import TRANSFORMERS, inputs_of, make, networks  # noqa: F401

DOORS = {"trace": ".safetensors", "pt2": ".pt2", "onnx": ".onnx"}
QUANTIZE = {"trace": ["--backend", "x86"], "onnx": ["--backend", "x86"], "pt2": ["--quantizer", "X86InductorQuantizer"]}
EXAMPLES, CALIBRATION, TESTS = 2, 8, 16  # samples: of a batch, to calibrate with, to measure with
SECONDS_OF_A_NETWORK = 900

# --- the doors ---

def write_by_tracing(module, inputs, path):
    """torch's older exporter, with an open batch."""
    import torch
    names = list(inputs)
    torch.onnx.export(module, (), path, kwargs=inputs, input_names=names, dynamo=False, opset_version=17,
                      dynamic_axes={name: {0: "N"} for name in names})


def write_by_program(module, inputs, path):
    """torch's newer exporter, by torch.export. Arguments that are numbers become inputs that nothing reads."""
    import onnx
    import torch
    torch.onnx.export(module, (), path, kwargs=inputs, input_names=list(inputs), dynamo=True, opset_version=18, external_data=False,
                      verbose=False)
    model = onnx.load(path)
    unread = [made for made in model.graph.input if made.name not in inputs]
    for made in unread:
        model.graph.input.remove(made)
    if unread:
        onnx.save(model, path)


def is_right(module, inputs, path):
    """Whether ONNX Runtime computes what torch does: some files of the exporters are not what they should be."""
    import torch
    try:
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        with torch.no_grad():
            expected = first_tensor(module(**inputs)).numpy()
        return quality(expected, session.run(None, {name: x.numpy() for name, x in inputs.items()}))[0] < 1e-4
    except Exception:  # what does not load, or run
        return False


def write_with_batched_experts(module, inputs, path):
    """Experts of transformers by batched products: neither exporter knows the grouped ones, which are the default."""
    if not hasattr(module, "set_experts_implementation"):
        raise ValueError("the module has no experts")
    before = module.config._experts_implementation
    module.set_experts_implementation("batched_mm")
    try:
        write_by_program(module, inputs, path)
    finally:
        module.set_experts_implementation(before)


def write_onnx(module, inputs, path):
    """By the older exporter, or the newer one if the older one fails or its file is not right."""
    failed = None
    for write in (write_by_tracing, write_by_program, write_with_batched_experts):
        made = f"{path}.made"
        try:
            write(module, inputs, made)
        except Exception as e:  # exporters let through whatever they meet
            failed = failed or e
            continue
        known = is_right(module, inputs, made)
        if known or not os.path.exists(path):
            os.replace(made, path)
        if known:
            return
    if not os.path.exists(path):
        raise failed


def write_program(module, inputs, path):
    """With an open batch; of one batch, if the network takes no other; or with branches as the example's values decide them."""
    import torch
    shapes = {name: {0: torch.export.Dim.AUTO} for name in inputs}
    failed = None
    for export, dynamic_shapes in ((torch.export.export, shapes), (torch.export.export, None), (torch.export.draft_export, None)):
        try:
            program = export(module, (), inputs, dynamic_shapes=dynamic_shapes)
            torch.export.save(program, path)
        except Exception as e:  # exporters let through whatever they meet
            failed = failed or e
            continue
        return
    raise failed


def write_trace(module, inputs, path):
    import tare_export
    tare_export.export(module, (), path, kwargs=inputs)


WRITERS = {"trace": write_trace, "pt2": write_program, "onnx": write_onnx}


# --- one network ---

class Failed(Exception):
    """A command of tare that did not do what was asked."""


def run(tare, *arguments):
    done = subprocess.run([tare, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS_OF_A_NETWORK,
                          env=dict(os.environ, LC_ALL="C"), check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"{arguments[0]}: {said[0] if said else done.returncode}")
    return done.stdout


def arrays(path):
    import numpy as np
    with np.load(path) as file:
        return [file[name] for name in file.files]


def first_like(expected, found):
    """Of the outputs the one that is compared: the first of torch's, wherever it stands."""
    return next((x for x in found if x.shape == expected.shape and x.dtype.kind == "f"), None)


def quality(expected, found):
    import numpy as np
    y = first_like(expected, found)
    if y is None:
        raise Failed(f"no output has the shape {list(expected.shape)}")
    noise = float(np.square(expected.astype(np.float64) - y).sum())
    signal = float(np.square(expected, dtype=np.float64).sum())
    sqnr = 10 * np.log10(signal / noise) if noise > 0 and signal > 0 else None
    return float(np.abs(expected - y).max() / max(np.abs(expected).max(), 1e-30)), sqnr


def time_in_references(tare, model, inputs, batch):
    """The share of the time of a run in steps that call an operator's reference: altogether, and of the worst operators."""
    layers = json.loads(run(tare, "bench", model, "--input", inputs, "--batch", batch, "--seconds", 1, "--layers", "--json"))
    layers = [layer for layer in layers["layers"] if not layer["graph"]]  # those inside are part of another's time
    if not layers:  # without a plan every operator calls its reference
        return {"share": 1.0, "worst": {}}
    total = sum(layer["median_ms"] for layer in layers) or 1
    slow = {}
    for layer in layers:
        if layer["kind"] == "call":
            slow[layer.get("op", "?")] = slow.get(layer.get("op", "?"), 0) + layer["median_ms"]
    worst = sorted(slow.items(), key=lambda item: -item[1])[:4]
    return {"share": round(sum(slow.values()) / total, 4),
            "worst": {op: round(ms / total, 4) for op, ms in worst if ms > 0.002 * total}}


def times_of(tare, model, int8, inputs, seconds):
    """Both forms in turns, of one sample, or of a batch where the network takes no other, and the time in references of each."""
    for batch in (1, EXAMPLES):
        try:
            times = json.loads(run(tare, "bench", int8, "--against", model, "--input", inputs, "--batch", batch,
                                   "--seconds", seconds, "--json"))
            break
        except Failed:
            if batch == EXAMPLES:
                raise
    return {"batch": batch, "ms": [times["against"]["median_ms"], times["model"]["median_ms"]],
            "references": [time_in_references(tare, form, inputs, batch) for form in (model, int8)]}


def measure(tare, door, model, folder, expected, seconds):
    if door == "trace" and not model.exists():  # the exporter fell back to a program of torch.export
        return {**measure(tare, "pt2", model.with_suffix(".pt2"), folder, expected, seconds), "fell_back": True}
    inputs, calibration, int8 = folder / "inputs.npz", folder / "calibration.npz", folder / "int8.safetensors"
    run(tare, "run", model, "--input", inputs, "--batch", EXAMPLES, "-o", folder / "float.npz")
    found = {"error": quality(expected, arrays(folder / "float.npz"))[0]}
    begin = time.monotonic()
    try:
        run(tare, "quantize", model, *QUANTIZE[door], "--calibrate", calibration, "--batch", EXAMPLES, "--no-check", "-o", int8,
            "--report", folder)  # all samples calibrate, as the peers'
        found["quantize_s"] = time.monotonic() - begin
        run(tare, "run", int8, "--input", inputs, "--batch", EXAMPLES, "-o", folder / "int8.npz")
        found["sqnr"] = quality(expected, arrays(folder / "int8.npz"))[1]
        found["coverage"] = json.loads((folder / "coverage.json").read_text())
        if seconds > 0:
            found.update(times_of(tare, model, int8, inputs, seconds))
    except Failed as e:
        found["refused"] = str(e)
    return found


def in_batches(call, inputs):
    """The outputs of call(batch), joined over the batches of inputs."""
    import numpy as np
    count = len(next(iter(inputs.values())))
    made = [call({n: x[at:at + EXAMPLES] for n, x in inputs.items()}) for at in range(0, count, EXAMPLES)]
    return [np.concatenate(parts) for parts in zip(*made)]


def measure_torch(module, calibration, tests, expected, seconds):
    """torch's FX mode with its default mapping for x86, one thread."""
    import torch
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = "x86"
    times = {}
    with torch.no_grad():
        prepared = prepare_fx(module, get_default_qconfig_mapping("x86"), tuple(x[:EXAMPLES] for x in calibration.values()))
        for at in range(0, CALIBRATION, EXAMPLES):
            prepared(*(x[at:at + EXAMPLES] for x in calibration.values()))
        int8 = convert_fx(prepared)
        outputs = in_batches(lambda batch: [first_tensor(int8(*batch.values()))], tests)
        for form, network in (("float", module), ("int8", int8)):
            one, found, end = [x[:1] for x in tests.values()], [], time.monotonic() + seconds
            while time.monotonic() < end or len(found) < 3:
                begin = time.perf_counter()
                network(*one)
                found.append(time.perf_counter() - begin)
            times[f"{form}_ms"] = 1000 * sorted(found)[len(found) // 2]
    return {"sqnr": quality(expected, outputs)[1], **times}


def first_tensor(outputs):
    """The output that is compared."""
    import tare_export
    return next(t for t in tare_export.flatten(outputs) if t.is_floating_point())


def measure_peer(folder, model, expected, seconds):
    """ONNX Runtime: static quantization as its guide has it, batch of 1, one thread."""
    import numpy as np
    import onnxruntime as ort
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with np.load(folder / "calibration.npz") as file:
        samples = dict(file)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.at = 0

        def get_next(self):
            self.at += EXAMPLES
            return {n: x[self.at - EXAMPLES:self.at] for n, x in samples.items()} if self.at <= CALIBRATION else None

    ready, int8 = str(folder / "ready.onnx"), str(folder / "peer.onnx")
    try:
        quant_pre_process(str(model), ready)
    except Exception:
        ready = str(model)
    quantization.quantize_static(ready, int8, Reader(), per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    found = {}
    with np.load(folder / "inputs.npz") as file:
        inputs = dict(file)
    for form, path in (("float", str(model)), ("int8", int8)):
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        outputs = in_batches(lambda batch, session=session: session.run(None, batch), inputs)
        if form == "int8":
            found["sqnr"] = quality(expected, outputs)[1]
        one = {n: x[:1] for n, x in inputs.items()}
        try:
            session.run(None, one)
        except Exception:
            one = {n: x[:EXAMPLES] for n, x in inputs.items()}
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or len(times) < 3:
            begin = time.perf_counter()
            session.run(None, one)
            times.append(time.perf_counter() - begin)
        found[f"{form}_ms"] = 1000 * float(np.median(times))
    return found


def one_network(options, name):
    """What became of one network. Runs in a process of its own."""
    import numpy as np
    import torch

    import export_models
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    module, inputs = make(name, generator)
    calibration, examples, tests = inputs(CALIBRATION), inputs(EXAMPLES), inputs(TESTS)
    export_models.settle(module, [calibration])
    module.eval()
    with torch.no_grad():
        expected = in_batches(lambda batch: [first_tensor(module(**batch))], tests)[0]
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        os.chdir(folder)  # exporters and quantizers leave files where they run
        np.savez(folder / "inputs.npz", **{n: t.numpy() for n, t in tests.items()})
        np.savez(folder / "calibration.npz", **{n: t.numpy() for n, t in calibration.items()})
        for door in options.door:
            model = folder / f"{door}{DOORS[door]}"
            try:
                with torch.no_grad():
                    WRITERS[door](module, examples, str(model))
                results[door] = measure(options.tare, door, model, folder, expected, options.seconds)
            except Failed as e:
                results[door] = {"refused": str(e)}
            except Exception as e:  # an exporter lets through whatever it meets
                results[door] = {"not_written": said_by(e)}
            if door == "onnx" and options.peer and model.exists():
                try:
                    results["peer"] = measure_peer(folder, model, expected, options.seconds)
                except Exception as e:
                    results["peer"] = {"refused": said_by(e)}
        if options.peer and name.startswith("torchvision/"):
            try:
                results["torch"] = measure_torch(module, calibration, tests, expected, options.seconds)
            except Exception as e:
                results["torch"] = {"refused": said_by(e)}
    return results


def said_by(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"


def load():
    """Loads once what every network's process needs; none of it may start a thread, for that does not outlive a fork."""
    import export_models  # noqa: F401
    import tare_export  # noqa: F401
    import timm  # noqa: F401
    import torch
    import torchvision  # noqa: F401
    import transformers  # noqa: F401
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)


class Worker:
    """one_network in a fork of this process, on a CPU of its own, which is ended when its time is up."""

    def __init__(self, options, name, log, cpu):
        self.options, self.name, self.cpu = options, name, cpu
        self.begin = time.monotonic()
        self.answer = tempfile.NamedTemporaryFile()
        self.child = os.fork()
        if self.child == 0:
            self._answer(log)

    def _answer(self, log):
        """The child's part."""
        status = 1
        try:
            os.setsid()  # with what it starts
            if self.cpu is not None:
                os.sched_setaffinity(0, [self.cpu])
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            pathlib.Path(self.answer.name).write_text(json.dumps(one_network(self.options, self.name)))
            status = 0
        except BaseException as e:
            doors = {door: {"not_written": said_by(e)} for door in self.options.door}
            pathlib.Path(self.answer.name).write_text(json.dumps(doors))
        finally:
            os._exit(status)

    def seconds(self):
        return time.monotonic() - self.begin

    def found(self):
        """What became of the network, None while it runs."""
        late = self.seconds() > SECONDS_OF_A_NETWORK
        if late:
            os.killpg(self.child, signal.SIGKILL)
        if os.waitpid(self.child, 0 if late else os.WNOHANG)[0] == 0:
            return None
        text = pathlib.Path(self.answer.name).read_text()
        self.answer.close()
        if text:
            return json.loads(text)
        said = f"took more than {SECONDS_OF_A_NETWORK} s" if late else "the exporter's process ended early"
        return {door: {"refused" if late else "not_written": said} for door in self.options.door}


# --- all of them ---

def line(name, door, m):
    said = m.get("refused") or m.get("not_written")
    if "error" not in m:
        return f"{name} {door}: {said}"
    text = f"{name} {door}: float error {m['error']:.1e}"
    if said:
        return f"{text}; {said}"
    c = m["coverage"]
    sqnr = f"{m['sqnr']:.1f} dB" if m["sqnr"] is not None else "equal"
    times = f", {m['ms'][0]:.3g} and {m['ms'][1]:.3g} ms" if "ms" in m else ""
    return (f"{text}, SQNR {sqnr}, {c['quantized_operators']} of {c['operators']} operators, {c['float_islands']} islands"
            f"{times}")


def in_turns(known):
    """The networks of the sources in turns, spread over each list: breadth comes first."""
    lists = [[name for name in known if name.startswith(f"{source}/")] for source in ("timm", "transformers", "torchvision")]
    places = [((at + 0.5) / len(names), name) for names in lists for at, name in enumerate(names)]
    spread = [name for _, name in sorted(places)]
    return [name for first in range(4) for name in spread[first::4]]


def keep(options, kept, results, worker, found):
    """Writes what was found of a network, and says it."""
    name = worker.name
    results[name] = {**results.get(name, {}), **found}
    written = kept.with_suffix(".new")
    written.write_text(json.dumps(results, indent=1) + "\n")
    written.replace(kept)
    for door in options.door:
        print(line(name, door, found[door]), flush=True)
    for peer in ("peer", "torch"):
        if peer in found:
            print(f"{name} {peer}: {found[peer]}", flush=True)
    print(f"{name} took {worker.seconds():.0f} s", flush=True)


def run_all(options):
    folder = pathlib.Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    known = networks()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        sys.exit(f"no such network: {', '.join(unknown)}; see {sys.argv[0]} list")
    load()
    options.tare = str(pathlib.Path(options.tare).resolve())
    waiting = [name for name in options.names or in_turns(known)
               if not (options.missing and all(door in results.get(name, {}) for door in options.door))]
    cpus = sorted(os.sched_getaffinity(0))
    free = [cpus[job % len(cpus)] if options.jobs > 1 else None for job in range(options.jobs)]
    end = time.monotonic() + 60 * options.minutes
    running = []
    with open(folder / "log.txt", "a", encoding="utf-8") as log:
        while running or (waiting and time.monotonic() < end):
            while free and waiting and time.monotonic() < end:
                running.append(Worker(options, waiting.pop(0), log, free.pop()))
            for worker in list(running):
                found = worker.found()
                if found is not None:
                    running.remove(worker)
                    free.append(worker.cpu)
                    keep(options, kept, results, worker, found)
            time.sleep(0.05)
    print(f"{len(waiting)} networks are left" if waiting else "all networks are done", flush=True)
    if options.table:
        write_table(options)


# --- the table ---

BEGIN, END = "<!-- zoo: begin, written by tools/zoo.py -->", "<!-- zoo: end -->"


def cells(m):
    if m is None:
        return ["", "", "", ""]
    if "error" not in m or "refused" in m:
        said = (m.get("refused") or m.get("not_written") or "").replace("|", "/")
        said = re.sub(r"\x1b\[\d+m|(?<!\S)/\S*/", "", said)  # colours, and folders of the machine
        return [f"{m['error']:.0e}" if "error" in m else "no", said[:80], "", ""]
    c = m["coverage"]
    share = 100 * c["quantized_macs"] / c["macs"] if c["macs"] else 0
    return [f"{m['error']:.0e}", f"{m['sqnr']:.1f}" if m["sqnr"] is not None else "equal",
            f"{share:.0f} %, {c['float_islands']}", f"{m['ms'][0] / m['ms'][1]:.2f}" if "ms" in m else ""]


def references_of(found, form):
    """The greatest share over the doors; form: 0 in float, 1 in integers."""
    shares = [found[door]["references"][form]["share"] for door in DOORS if isinstance(found.get(door, {}).get("references"), list)]
    return max(shares, default=None)


def references_cell(found):
    shares = [references_of(found, form) for form in (0, 1)]
    return "" if None in shares else ", ".join(f"{100 * share:.1f} %" for share in shares)


def peer_cells(m):
    if m is None or "refused" in m:
        return ["", ""]
    return [f"{m['sqnr']:.1f}" if m["sqnr"] is not None else "equal", f"{m['float_ms'] / m['int8_ms']:.2f}"]


def write_table(options):
    results = json.loads((pathlib.Path(options.folder) / "results.json").read_text())
    head = ["network"]
    for door in DOORS:
        head += [f"{door}: float error", "SQNR", "in integers, islands", "int8 over float"]
    head += ["time in references: float, int8", "ONNX Runtime: SQNR", "int8 over float", "torch: SQNR", "int8 over float"]
    before, rest = options.docs.read_text().split(BEGIN)
    rows = {}
    for name in results:
        found = [name]
        for door in DOORS:
            found += cells(results[name].get(door))
        found += [references_cell(results[name]), *peer_cells(results[name].get("peer")), *peer_cells(results[name].get("torch"))]
        rows[name] = found
    lines = [" | ".join(row) for row in (head, ["---"] * len(head), *(rows[name] for name in sorted(rows)))]
    lines = "\n".join(f"| {line} |" for line in lines)
    options.docs.write_text(f"{before}{BEGIN}\n{summary(results)}\n\n{lines}\n{END}{rest.split(END)[1]}")


def machine():
    """What the results are of: packages and the CPU."""
    import importlib.metadata
    names = ("torch", "torchvision", "timm", "transformers", "onnxruntime")
    packages = ", ".join(f"{name} {importlib.metadata.version(name).partition('+')[0]}" for name in names)
    info = pathlib.Path("/proc/cpuinfo")
    cpu = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return f"{packages}; {cpu[1] if cpu else 'an unknown CPU'}"


def summary(results):
    said = [f"- {len(results)} networks with {machine()}, {len(os.sched_getaffinity(0))} CPUs."]
    for door in DOORS:
        tried = [r[door] for r in results.values() if door in r]
        runs = [m for m in tried if "error" in m]
        whole = [m for m in runs if "refused" not in m]
        faster = [m for m in whole if "ms" in m and m["ms"][1] <= m["ms"][0]]
        close = [r[door]["error"] < 1e-4 for r in results.values() if "error" in r.get(door, {})]
        said.append(f"- `{door}`: of {len(tried)} networks {len(runs)} run ({sum(close)} with a float error below 1e-4) and {len(whole)} "
                    f"quantize; int8 is no slower than float in {len(faster)}; {beside_peers(results, door)}.")
    for form, words in enumerate(("float", "integers")):
        shares = [share for share in (references_of(r, form) for r in results.values()) if share is not None]
        said.append(f"- Of {len(shares)} networks in {words}, {sum(share < 0.02 for share in shares)} spend less than 2 % of the time in "
                    f"references through every door.")
    return "\n".join(said)


def beside_peers(results, door):
    """In how many networks the SQNR is at most 1 dB below the better of the peers'."""
    pairs = []
    for r in results.values():
        peers = [r[peer]["sqnr"] for peer in ("peer", "torch") if r.get(peer, {}).get("sqnr") is not None]
        if peers and "sqnr" in r.get(door, {}):
            pairs.append((r[door]["sqnr"], max(peers)))
    near = [own is None or own >= best - 1 for own, best in pairs]
    return f"SQNR is within 1 dB of the better peer, or above it, in {sum(near)} of {len(near)}"


def main():
    parser = argparse.ArgumentParser(description="Send many networks through every door.")
    parser.add_argument("action", choices=["list", "run", "table"])
    parser.add_argument("folder", nargs="?", default="build/zoo", help="where results.json is kept")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--door", nargs="+", choices=DOORS, default=list(DOORS))
    parser.add_argument("--missing", action="store_true", help="only networks that results.json does not have")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time, each on a CPU of its own")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no network is begun later; --missing goes on")
    parser.add_argument("--table", action="store_true", help="write the table when the run is done")
    parser.add_argument("--peer", action="store_true", help="ONNX Runtime beside it")
    parser.add_argument("--tare", default="build/bin/tare", help="the program")
    parser.add_argument("--seconds", type=int, default=1, help="for each pair of times; 0: none are taken")
    parser.add_argument("--docs", type=pathlib.Path, metavar="FILE",
                        default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "models.md")
    options = parser.parse_intermixed_args()
    if options.action == "list":
        print("\n".join(networks()))
    elif options.action == "run":
        run_all(options)
    else:
        write_table(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole jobs of quantizing after training: ours beside NNCF's, ONNX Runtime's and torch's, in turns in one run.

    python3 bench/quantizing.py [build/compare] [--python PEERS/bin/python ..] [--networks resnet18,resnet50] [--json]

A job is a process of its own, from its start to the written integer model: it reads the float network and images from files,
calibrates with all of them and writes. The peers' imports take seconds of it, so their jobs are told without them, too. Beside
the jobs stands the float network alone over the same images, by `tare run`. The folder is that of bench/compare.py, which makes
the networks (`--prepare`). Figures are medians over rounds of wall times, and the largest peak memory.
"""
import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import peers
import workloads

QCONFIG = {"global": {"activation": {"class": "MinMaxObserver", "kwargs": {"dtype": "torch.quint8"}},
                      "weight": {"class": "PerChannelMinMaxObserver",
                                 "kwargs": {"dtype": "torch.qint8", "qscheme": "torch.per_channel_symmetric"}}}}

# --- the peers' jobs, each called in a process of its own ---


def job_nncf(network, folder, images, out):
    import nncf
    import openvino
    samples = np.load(images)
    model = openvino.Core().read_model(workloads.path_of(network, folder, "onnx"))
    quantized = nncf.quantize(model, nncf.Dataset([x[None] for x in samples]), subset_size=len(samples))
    openvino.save_model(quantized, out + ".xml", compress_to_fp16=False)


def job_onnxruntime(network, folder, images, out):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    samples = np.load(images)
    quant_pre_process(workloads.path_of(network, folder, "onnx"), out + ".ready.onnx", skip_symbolic_shape=True)

    class Reader:
        left = iter([{"x": x[None]} for x in samples])

        def get_next(self):
            return next(self.left, None)

    quantize_static(out + ".ready.onnx", out + ".onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def job_torch(network, folder, images, out):
    import torch
    from torch.ao.quantization import MinMaxObserver, PerChannelMinMaxObserver, QConfig, QConfigMapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    samples = torch.from_numpy(np.load(images))
    module = workloads.load(network, folder)
    qconfig = QConfig(MinMaxObserver.with_args(dtype=torch.quint8),
                      PerChannelMinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_channel_symmetric))
    with torch.no_grad():
        prepared = prepare_fx(module, QConfigMapping().set_global(qconfig), (samples[:1],))
        for at in range(0, len(samples), 16):
            prepared(samples[at:at + 16])
        torch.save(convert_fx(prepared).state_dict(), out + ".pt")


JOBS = {"nncf": ("openvino", job_nncf), "onnxruntime": ("onnxruntime", job_onnxruntime), "torch": ("torch", job_torch)}

SAID = "seconds without imports: "

# --- timing ---


def run(arguments, threads):
    """Seconds of a process, its peak memory in MiB, and the seconds that it says itself (None: it says none)."""
    begin = time.perf_counter()
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(arguments, stdin=nothing, stdout=said, stderr=said,
                                 env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        said.seek(0)
        lines = said.read().strip().splitlines() or [""]
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"quantizing: {' '.join(arguments[:4])} failed: {lines[-1]}")
    return seconds, used.ru_maxrss / 1024, float(lines[-1].removeprefix(SAID)) if lines[-1].startswith(SAID) else None


def commands(network, options, found):
    folder, out = options.folder, os.path.join(options.folder, "quantizing")
    images, qconfig = out + ".npy", out + ".json"
    model = workloads.path_of(network, folder, "safetensors")
    np.save(images, workloads.inputs(network, options.images, 1))
    with open(qconfig, "w") as file:
        json.dump(QCONFIG, file)
    threads = ["--threads", str(options.threads)]
    jobs = {"float alone": [options.tare, "run", model, "--input", images, "--batch", "1", *threads, "-o", out + ".float.npz"],
            "tare": [options.tare, "quantize", model, "--backend", "x86", "--qconfig", qconfig, "--calibrate", images, *threads,
                     "--no-check", "-q", "-o", out + ".safetensors"]}
    for name, (family, _) in JOBS.items():
        if family in found:
            jobs[name] = [found[family], os.path.abspath(__file__), folder, "--job", name, "--networks", network]
    return jobs


def measure(network, options, found):
    jobs = commands(network, options, found)
    seconds, work, memory = {name: [] for name in jobs}, {name: [] for name in jobs}, dict.fromkeys(jobs, 0)
    for _ in range(options.rounds):
        for name, arguments in jobs.items():
            took, used, said = run(arguments, options.threads)
            seconds[name].append(took)
            work[name].append(took if said is None else said)
            memory[name] = max(memory[name], used)
    return {name: {"seconds": statistics.median(seconds[name]), "without_imports": statistics.median(work[name]),
                   "memory_mib": memory[name]} for name in jobs}


def do_job(options, out):
    family, job = JOBS[options.job]
    for module in peers.FAMILIES[family]:
        importlib.import_module(module)
    begin = time.perf_counter()
    job(options.networks, options.folder, out + ".npy", out + "." + options.job)
    print(f"{SAID}{time.perf_counter() - begin}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.path.join(workloads.ROOT, "build", "compare"))
    parser.add_argument("--networks", default="resnet18,resnet50")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters that import peers")
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tare", default=os.path.join(workloads.ROOT, "build", "bin", "tare"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    out = os.path.join(options.folder, "quantizing")
    if options.job:
        do_job(options, out)
        return
    found = peers.find_families([family for family, _ in JOBS.values()], options.python)
    results = {network: measure(network, options, found) for network in options.networks.split(",")}
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for network, jobs in results.items():
        print(f"{network}, {options.images} images, {options.threads} threads, medians of {options.rounds} rounds")
        for name, m in jobs.items():
            print(f"  {name:12} {m['seconds']:6.2f} s, {m['without_imports']:6.2f} s without imports "
                  f"({m['without_imports'] / jobs['tare']['seconds']:.2f} times ours), {m['memory_mib']:5.0f} MiB")


if __name__ == "__main__":
    main()

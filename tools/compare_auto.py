#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts `tare quantize --auto` beside NNCF and ONNX Runtime on trained networks of PyPI packages (trained.py) and networks of zoo.py.

    pip install torch torchvision timm transformers onnx onnxruntime onnxscript nncf numpy scikit-learn
    make build
    python tools/compare_auto.py prepare build/auto [NAME ..] [--wheels WHEELS]
    python tools/compare_auto.py run build/auto [NAME ..] --tare build/bin/tare [--budget SECONDS]
    python tools/compare_auto.py time build/auto --tare build/bin/tare
    python tools/compare_auto.py table build/auto

All quantize the same ONNX file with the same samples, 32 of random networks and 64 of trained ones, and are compared with the float
model's first output on 16 others, in dB.
`prepare` writes files, data and the outputs of the peers, `run` quantizes by our recipes, `time` measures, on one thread and one sample,
the model of --auto in turns with each other recipe's (the plain one, --never-slower): run it on an idle machine. Each goes on where it
was: what lies in the folder of a network is not made again. `table` renews the table of docs/accuracy.md.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import time

import trained
import zoo

TRAINED = ["trained/digits", *(f"trained/{name}" for name in trained.NETWORKS)]
RANDOM = """torchvision/squeezenet1_1 torchvision/shufflenet_v2_x0_5 torchvision/mnasnet0_5 torchvision/mobilenet_v2
torchvision/mobilenet_v3_small timm/lcnet_050 timm/edgenext_xx_small timm/repghostnet_050 timm/mobilevit_xxs timm/tinynet_e
timm/mobilenetv3_small_050 timm/dla46_c transformers/bert transformers/bert_masked transformers/distilbert transformers/gpt2
transformers/vit transformers/deit transformers/resnet transformers/swin transformers/segformer transformers/albert
transformers/roberta transformers/electra transformers/t5_encoder transformers/llama transformers/clip_text transformers/convnext
transformers/mobilenet_v1 transformers/whisper_encoder transformers/wav2vec2 transformers/audio_transformer""".split()
NAMES = TRAINED + RANDOM
CALIBRATION, TESTS = 32, 16
CALIBRATION_OF_TRAINED = 64  # photographs, texts and sounds differ more than random numbers do
SECONDS_OF_A_NETWORK = 1500
# our recipes: the default, --auto, and the default with --never-slower
FORMS = {"plain": ["--no-check"], "fast": ["--no-check", "--never-slower"], "auto": ["--auto"]}
BEGIN, END = "<!-- compare_auto: begin, written by tools/compare_auto.py -->", "<!-- compare_auto: end -->"

# --- the peers ---


def sessions_of(model):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda inputs: zoo.in_batches(lambda batch: session.run(None, batch), inputs)


def with_nncf(model, samples, scratch, **more):
    import nncf
    import onnx
    count = len(next(iter(samples.values())))
    items = [{n: x[i:i + 1] for n, x in samples.items()} for i in range(count)]
    return nncf.quantize(onnx.load(model), nncf.Dataset(items), subset_size=count, **more).SerializeToString()


def with_nncf_for_transformers(model, samples, scratch):
    import nncf
    return with_nncf(model, samples, scratch, model_type=nncf.ModelType.TRANSFORMER)


def ready(model, scratch):
    """The file as ONNX Runtime's guide prepares it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    made = scratch / "ready.onnx"
    try:
        quant_pre_process(str(model), str(made))
    except Exception:  # what it cannot infer, it quantizes all the same
        return str(model)
    return str(made)


def with_ort(model, samples, scratch):
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.items = iter([{n: x[i:i + 1] for n, x in samples.items()} for i in range(len(next(iter(samples.values()))))])

        def get_next(self):
            return next(self.items, None)

    quantization.quantize_static(ready(model, scratch), str(scratch / "static.onnx"), Reader(), per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    return str(scratch / "static.onnx")


def with_ort_dynamic(model, samples, scratch):
    from onnxruntime import quantization
    quantization.quantize_dynamic(ready(model, scratch), str(scratch / "dynamic.onnx"), per_channel=True,
                                  weight_type=quantization.QuantType.QInt8)
    return str(scratch / "dynamic.onnx")


PEERS = {"nncf": with_nncf, "nncf_transformer": with_nncf_for_transformers, "ort": with_ort, "ort_dynamic": with_ort_dynamic}

# --- files and peers ---


def write_random(name, path):
    """The ONNX file of a network of the zoo; returns its calibration and test inputs."""
    import torch

    import export_models
    torch.manual_seed(0)
    module, inputs = zoo.make(name, torch.Generator().manual_seed(0))
    calibration, examples, tests = inputs(CALIBRATION), inputs(1), inputs(TESTS)
    export_models.settle(module, [calibration])
    with torch.no_grad():
        zoo.write_onnx(module.eval(), examples, str(path))
    return [{n: t.numpy() for n, t in some.items()} for some in (calibration, tests)]


def write_digits(path):
    """The network of data/digits; returns calibration and tests, which have labels."""
    import numpy as np
    folder = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits"
    shutil.copy(folder / "digits.onnx", path)
    with np.load(folder / "train.npz") as train, np.load(folder / "test.npz") as test:
        return {"x": train["x"][:CALIBRATION_OF_TRAINED]}, dict(test)


def write_network(name, path, wheels):
    source, _, own = name.partition("/")
    if name == "trained/digits":
        return write_digits(path)
    if source != "trained":
        return write_random(name, path)
    inputs = trained.write_onnx(own, wheels, path)
    return inputs(CALIBRATION_OF_TRAINED), inputs(TESTS)


def with_peers(name, model, calibration, tests, folder):
    """peer -> its outputs, or why there are none."""
    found = {}
    for peer, quantize in PEERS.items():
        if peer == "nncf_transformer" and not name.startswith("transformers/"):
            continue
        try:
            outputs = sessions_of(quantize(model, calibration, folder))(tests)
            found[peer] = {f"{peer}.{i}": x for i, x in enumerate(outputs)}
        except Exception as error:  # a tool refuses what it likes
            found[peer] = zoo.said_by(error)
    return found


def prepare(name, folder, wheels):
    import numpy as np
    model = folder / "model.onnx"
    calibration, tests = write_network(name, model, wheels)
    np.savez_compressed(folder / "calibration.npz", **calibration)
    np.savez_compressed(folder / "inputs.npz", **tests)
    tests.pop("labels", None)
    expected = next(x for x in sessions_of(str(model))(tests) if x.dtype.kind == "f")
    peers = with_peers(name, model, calibration, tests, folder)
    arrays = {key: x for outputs in peers.values() if isinstance(outputs, dict) for key, x in outputs.items()
              if x.shape == expected.shape and x.dtype.kind == "f"}
    np.savez_compressed(folder / "outputs.npz", expected=expected, **arrays)
    for rest in ("ready.onnx", "static.onnx", "dynamic.onnx"):
        (folder / rest).unlink(missing_ok=True)
    (folder / "peers.json").write_text(json.dumps({peer: said for peer, said in peers.items() if isinstance(said, str)}) + "\n")


def in_own_process(call, folder):
    """Runs the call in a fork and ends it when its time is up."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(folder)  # exporters and quantizers leave files where they run
        with open("log.txt", "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            try:
                call()
            except BaseException as error:
                print(zoo.said_by(error), file=sys.stderr, flush=True)
        os._exit(0)
    end = time.monotonic() + SECONDS_OF_A_NETWORK
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.1)


def folder_of(options, name):
    return options.folder / name.replace("/", ".")


def prepare_all(options):
    zoo.EXAMPLES = 1  # files that take one batch only take one sample
    zoo.load()
    for name in options.names or NAMES:
        folder = folder_of(options, name)
        if (folder / "peers.json").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        in_own_process(lambda name=name, folder=folder: prepare(name, folder, options.wheels), folder)
        done = "prepared" if (folder / "peers.json").exists() else (folder / "log.txt").read_text()[-300:]
        print(name, f"{time.monotonic() - begin:.0f} s", done, flush=True)


# --- our recipes ---

def prepared(options):
    """(name, folder) of each network that has files."""
    return [(name, folder_of(options, name)) for name in options.names or NAMES if (folder_of(options, name) / "peers.json").exists()]


def run_form(options, folder, form):
    more = [*FORMS[form], *(["--budget", options.budget] if form == "auto" else [])]
    out = folder / f"{form}.safetensors"
    said = zoo.run(options.tare, "quantize", folder / "model.onnx", "--backend", "x86", "--calibrate", folder / "calibration.npz",
                   "--batch", 1, "-o", out, "--json", *more)
    (folder / f"{form}.json").write_text(said)
    zoo.run(options.tare, "run", out, "--input", folder / "inputs.npz", "--batch", 1, "-o", folder / f"{form}.npz")


def run_all(options):
    for name, folder in prepared(options):
        for form in FORMS:
            if (folder / f"{form}.npz").exists():
                continue
            try:
                run_form(options, folder, form)
            except zoo.Failed as error:
                print(name, form, error, flush=True)
        print(name, summary(folder), flush=True)


def time_all(options):
    for name, folder in prepared(options):
        for form in FORMS:
            answer = folder / f"{form}.time.json"
            if form == "auto" or answer.exists() or not (folder / "auto.npz").exists() or not (folder / f"{form}.npz").exists():
                continue
            answer.write_text(zoo.run(options.tare, "bench", folder / "auto.safetensors", "--against", folder / f"{form}.safetensors",
                                      "--input", folder / "inputs.npz", "--batch", 1, "--seconds", options.seconds, "--json"))
            print(name, form, answer.read_text().count("median_ms"), flush=True)


# --- results ---

def worth(expected, outputs, labels):
    found = {"sqnr": zoo.quality(expected, outputs)[1]}
    if labels is not None:
        found["accuracy"] = 100 * float((zoo.first_like(expected, outputs).argmax(1) == labels).mean())
    return found


def results(folder):
    """What each tool's outputs are worth; None: it has none."""
    import numpy as np
    found = {}
    with np.load(folder / "outputs.npz") as file:
        expected, arrays = file["expected"], {name: file[name] for name in file.files}
    with np.load(folder / "inputs.npz") as file:
        labels = file["labels"] if "labels" in file.files else None
    for peer in PEERS:
        own = [x for name, x in arrays.items() if name.startswith(f"{peer}.")]
        found[peer] = worth(expected, own, labels) if own else None
    for form in FORMS:
        path = folder / f"{form}.npz"
        found[form] = worth(expected, zoo.arrays(path), labels) if path.exists() else None
    found["float"] = worth(expected, [expected], labels)
    return found


def summary(folder):
    return {form: r and (r["sqnr"] and round(r["sqnr"], 1)) for form, r in results(folder).items()}


def kept_steps(folder):
    trials = json.loads((folder / "auto.json").read_text()).get("improvement", {}).get("trials", [])
    return dict.fromkeys(trial["step"] for trial in trials if trial["kept"])


def slower(folder):
    """The time of a run of --auto's model, relative to that of the fastest other recipe; None: not measured."""
    shares = []
    for form in FORMS:
        path = folder / f"{form}.time.json"
        if path.exists():
            times = json.loads(path.read_text())
            shares.append(times["model"]["median_ms"] / times["against"]["median_ms"] - 1)
    return max(shares, default=None)


def cell(found, otherwise="refused"):
    if found is None:
        return otherwise
    said = f"{found['sqnr']:.1f}" if found["sqnr"] is not None else "equal"
    return said + (f" ({found['accuracy']:.2f} %)" if "accuracy" in found else "")


def best_of(found, *names):
    """The result of the highest ratio; None: all refuse."""
    some = [found[name] for name in names if found[name] is not None]
    return max(some, key=lambda r: r["sqnr"] if r["sqnr"] is not None else float("inf"), default=None)


def is_ahead(found):
    rival, own = best_of(found, "nncf", "nncf_transformer", "ort"), found["auto"]["sqnr"]
    return own is None or rival is None or (rival["sqnr"] is not None and own >= rival["sqnr"])


def row(name, found, folder, share):
    tried = json.loads((folder / "peers.json").read_text())  # those that refused
    return [name, f"{found['float']['accuracy']:.2f} %" if "accuracy" in found["float"] else "", cell(found["plain"]), cell(found["auto"]),
            cell(found["nncf"]), cell(found["nncf_transformer"], "refused" if "nncf_transformer" in tried else ""), cell(found["ort"]), cell(found["ort_dynamic"]),
            ", ".join(f"`{step}`" for step in kept_steps(folder)) or "none", f"{100 * share:+.0f} %" if share is not None else ""]


def write_table(options):
    head = ["network", "float", "default", "`--auto`", "NNCF", "NNCF, transformer", "ONNX Runtime static", "dynamic", "steps kept",
            "time of a run"]
    lines, ahead, shares = [head, ["---"] * len(head)], [], []
    for name, folder in prepared(options):
        found = results(folder)
        if found["auto"] is None:
            continue
        ahead.append(is_ahead(found))
        share = slower(folder)
        shares += [share] if share is not None else []
        lines.append(row(name, found, folder, share))
    said = (f"`--auto` is at least as exact as the better of NNCF and ONNX Runtime's static mode on {sum(ahead)} of {len(ahead)} networks, "
            f"and a run takes at most 10 % more time than with our fastest recipe on {sum(share <= 0.1 for share in shares)} of {len(shares)}.")
    before, rest = options.docs.read_text().split(BEGIN)
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    options.docs.write_text(f"{before}{BEGIN}\n{said}\n\n{table}\n{END}{rest.split(END)[1]}")
    print(said)


def main():
    actions = {"prepare": prepare_all, "run": run_all, "time": time_all, "table": write_table}
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("action", choices=actions)
    parser.add_argument("folder", type=lambda p: pathlib.Path(p).resolve(), help="files and results, a folder for each network")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: trained/.., or a network of zoo.py")
    parser.add_argument("--tare", default="build/bin/tare", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--wheels", default="build/wheels", type=lambda p: pathlib.Path(p).resolve(), help="packages' files, unpacked")
    parser.add_argument("--budget", type=int, default=60, help="of --auto, in seconds")
    parser.add_argument("--seconds", type=int, default=1, help="for each pair of times")
    parser.add_argument("--docs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "docs" / "accuracy.md")
    options = parser.parse_intermixed_args()
    actions[options.action](options)


if __name__ == "__main__":
    main()

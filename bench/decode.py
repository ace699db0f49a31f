#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of decoders of language, and how near their products come to the speed of memory.

    python3 bench/decode.py products [--rows 1,2,4,8] [--threads 1,2] [--seconds 2]
    python3 bench/decode.py tokens [--threads 1,2] [--count 32] [--cache float,int8]
    python3 bench/decode.py gguf    (then, for each file: llama-bench -m FILE -p 0 -n 32 -t 1,2)

products: the linear layers of a network of Qwen2's shape with 0.5 billion parameters (24 blocks of 896 and 4864, a head of
151936; random weights), as MatMulNBits in one ONNX file, which tare and ONNX Runtime run in turns: milliseconds a pass, bytes
of weights a second, and the share of what a loop that only reads reaches (`tare bench`). Needs onnx, onnxruntime and numpy.
tokens: the same decoder with attention, norms and a cache, made by tools/build_decoder.py, quantized by `tare quantize` and run by
examples/generate.c. Needs torch.
gguf: files of the same decoder for llama.cpp, in its types Q8_0 and Q4_0. Needs gguf and numpy. Programs are those of build/release; files stay in --folder (3 GB).
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARE, GENERATE = ROOT / "build/bin/tare", ROOT / "build/release/examples/generate"
LAYERS, HIDDEN, KEYS, FFN, VOCAB = 24, 896, 128, 4864, 151936
# Name: bits, group (0: a whole row, in blocks of its power of two), affine, accuracy_level.
FORMS = {
    "int4 g32, dynamic rows": (4, 32, False, 4),
    "int4 g128, dynamic rows": (4, 128, False, 4),
    "int8 g128, dynamic rows": (8, 128, False, 4),
    "int4 g32 affine, float rows": (4, 32, True, 0),
    "int4 g128 affine, float rows": (4, 128, True, 0),
    "int8 g128, float rows": (8, 128, False, 0),
}
MAPPINGS = ["int8_dynamic_activation_int8_weight", "int8_dynamic_activation_int4_weight_g32",
            "int8_dynamic_activation_int4_weight_g128", "int8_weight_only", "int4_weight_only_g32", "int4_weight_only_g128"]


def layers():
    for _ in range(LAYERS):
        yield from [("h", HIDDEN, HIDDEN), ("h", HIDDEN, KEYS), ("h", HIDDEN, KEYS), ("h", HIDDEN, HIDDEN), ("h", HIDDEN, FFN),
                    ("h", HIDDEN, FFN), ("f", FFN, HIDDEN)]
    yield "h", HIDDEN, VOCAB


def bytes_of(bits, group, affine):
    return sum(k * n * bits // 8 + k // group * n * (4 + (1 if affine else 0)) for _, k, n in layers())


def products(path, form):
    """One node for each layer; all results but the head's are joined to one short output, so that none is left out."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    bits, group, affine, level = form
    random = np.random.RandomState(0)
    nodes, tensors, means = [], [], []
    for i, (source, k, n) in enumerate(layers()):
        blocks = k // group
        tensors += [numpy_helper.from_array(random.randint(0, 256, (n, blocks, group * bits // 8), dtype=np.uint8), f"b{i}"),
                    numpy_helper.from_array((random.rand(n, blocks) * 0.01).astype(np.float32), f"s{i}")]
        inputs = [source, f"b{i}", f"s{i}"]
        if affine:
            tensors.append(numpy_helper.from_array(random.randint(0, 256, (n, (blocks * bits + 7) // 8), dtype=np.uint8), f"z{i}"))
            inputs.append(f"z{i}")
        nodes += [helper.make_node("MatMulNBits", inputs, [f"y{i}"], domain="com.microsoft", K=k, N=n, bits=bits,
                                   block_size=group, accuracy_level=level, name=f"layer{i}"),
                  helper.make_node("ReduceMax", [f"y{i}"], [f"m{i}"], axes=[1], keepdims=1)]
        means.append(f"m{i}")
    nodes.append(helper.make_node("Concat", means, ["y"], axis=1))
    graph = helper.make_graph(
        nodes, "products", [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("h", HIDDEN), ("f", FFN))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", len(means)])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    onnx.save(model, path)


def run_tare(path, rows, threads, seconds):
    done = subprocess.run([TARE, "bench", path, "--batch", str(rows), "--threads", str(threads), "--seconds", str(seconds), "--json",
                           "-q"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["model"]["median_ms"]


def run_runtime(path, rows, threads, seconds):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options)
    feed = {"h": np.random.randn(rows, HIDDEN).astype(np.float32), "f": np.random.randn(rows, FFN).astype(np.float32)}
    times, end = [], time.monotonic() + seconds
    for _ in range(2):
        session.run(None, feed)
    while not times or time.monotonic() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def measure_products(o):
    print("| weights | rows | threads | MB | tare, ms | GB/s | ONNX Runtime, ms | GB/s |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, form in FORMS.items():
        if o.only not in name:
            continue
        path = o.folder / (re.sub(r"\W+", "_", name) + ".onnx")
        if not path.exists():
            products(path, form)
        size = bytes_of(*form[:3])
        for rows in o.rows:
            for threads in o.threads:
                ours = run_tare(path, rows, threads, o.seconds)
                theirs = run_runtime(path, rows, threads, o.seconds)
                print(f"| {name} | {rows} | {threads} | {size / 1e6:.0f} | {ours:.2f} | {size / ours / 1e6:.1f} | {theirs:.2f} |"
                      f" {size / theirs / 1e6:.1f} |", flush=True)


def make_decoder(o, cache, mapping):
    plain = o.folder / f"decoder_{cache}.pt2"
    made = o.folder / f"decoder_{cache}_{mapping}.safetensors"
    if not made.exists():
        if not plain.exists():
            subprocess.run([sys.executable, ROOT / "tools/build_decoder.py", plain, "--cache", cache], check=True)
        subprocess.run([TARE, "quantize", plain, "--backend", "tare", "--qconfig", mapping, "-q", "-o", made], check=True)
    return made


def measure_tokens(o):
    print("| weights | cache | threads | tokens/s |\n| --- | --- | ---: | ---: |")
    for mapping in MAPPINGS:
        if o.only not in mapping:
            continue
        for cache in o.cache:
            path = make_decoder(o, cache, mapping)
            for threads in o.threads:
                done = subprocess.run([GENERATE, path, "1,2,3,4", str(o.count), str(threads)], capture_output=True, text=True, check=True)
                print(f"| {mapping} | {cache} | {threads} | {done.stderr.split()[0]} |", flush=True)


def write_gguf(path, kind):
    """Random numbers of groups of 32 with a scale of float16 each, so that values are about 0.02."""
    import gguf
    import numpy as np

    bits, quantized = {"q8_0": (8, gguf.GGMLQuantizationType.Q8_0), "q4_0": (4, gguf.GGMLQuantizationType.Q4_0)}[kind]
    random, group_bytes = np.random.default_rng(0), 2 + 32 * bits // 8
    out = gguf.GGUFWriter(path, "qwen2")
    out.add_block_count(LAYERS)
    out.add_context_length(512)
    out.add_embedding_length(HIDDEN)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HIDDEN // 64)
    out.add_head_count_kv(KEYS // 64)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_rope_freq_base(1e6)
    out.add_vocab_size(VOCAB)
    out.add_tokenizer_model("no_vocab")

    def matrix(name, n, k):
        groups = random.integers(0, 256, (n * k // 32, group_bytes), dtype=np.uint8)
        groups[:, :2] = np.array([0.02 / (1 << bits - 1)], dtype=np.float16).view(np.uint8)
        out.add_tensor(name + ".weight", groups.reshape(n, k // 32 * group_bytes), raw_dtype=quantized)

    def vector(name, n, number):
        out.add_tensor(name, np.full(n, number, dtype=np.float32))

    matrix("token_embd", VOCAB, HIDDEN)
    matrix("output", VOCAB, HIDDEN)
    vector("output_norm.weight", HIDDEN, 1)
    for i in range(LAYERS):
        block = f"blk.{i}."
        for norm in ("attn_norm", "ffn_norm"):
            vector(block + norm + ".weight", HIDDEN, 1)
        for name, n in (("attn_q", HIDDEN), ("attn_k", KEYS), ("attn_v", KEYS)):
            matrix(block + name, n, HIDDEN)
            vector(block + name + ".bias", n, 0)
        for name, n, k in (("attn_output", HIDDEN, HIDDEN), ("ffn_gate", FFN, HIDDEN), ("ffn_up", FFN, HIDDEN), ("ffn_down", HIDDEN, FFN)):
            matrix(block + name, n, k)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write_all_gguf(o):
    for kind in ("q8_0", "q4_0"):
        path = o.folder / f"decoder_{kind}.gguf"
        write_gguf(path, kind)
        print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("products", "tokens", "gguf"))
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/decode")
    parser.add_argument("--only", default="", help="forms whose name holds this")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--count", type=int, default=32)
    for name, default in (("rows", "1"), ("threads", "1,2")):
        parser.add_argument("--" + name, type=lambda s: [int(n) for n in s.split(",")], default=default)
    parser.add_argument("--cache", type=lambda s: s.split(","), default="float")
    o = parser.parse_args()
    o.folder.mkdir(parents=True, exist_ok=True)
    {"products": measure_products, "tokens": measure_tokens, "gguf": write_all_gguf}[o.what](o)


if __name__ == "__main__":
    main()

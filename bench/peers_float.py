# SPDX-License-Identifier: Apache-2.0
"""Times float models against ONNX Runtime, in turns in one process, and compares what they compute.

    python3 bench/peers_float.py --library build/release/libtare.so MODEL.safetensors=MODEL.onnx INPUT.npy ..

Each pair of arguments is one workload: our file and the same model as ONNX, and one input as .npy. Needs numpy;
without onnxruntime only our own figures are printed. Two figures per engine: milliseconds of wall time, and of
the process's processor time, which other work on the machine disturbs less.
"""
import argparse
import ctypes
import statistics
import time

import numpy as np


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("thread_count", ctypes.c_int), ("reference", ctypes.c_bool)]


class Tare:
    """A session of the shared library over one input."""

    def __init__(self, library, path, threads, x):
        self.lib = library
        self.err = ctypes.c_void_p(library.tare_error_create())
        self.model, self.session, self.x = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check(library.tare_model_read(path.encode(), None, ctypes.byref(self.model), self.err))
        options = Options(ctypes.sizeof(Options), threads, False)
        self.check(library.tare_session_create(self.model, ctypes.byref(options), ctypes.byref(self.session), self.err))
        shape = (ctypes.c_int64 * x.ndim)(*x.shape)
        self.check(library.tare_tensor_from_data(library.tare_dtype_from_name(b"torch.float32"), x.ndim, shape,
                                                 x.ctypes.data_as(ctypes.c_void_p), ctypes.byref(self.x), self.err))

    def check(self, status):
        if status != 0:
            raise SystemExit("tare: " + self.lib.tare_error_message(self.err).decode())

    def run(self):
        """The first output, as a tensor that the caller releases."""
        outputs, count = (ctypes.c_void_p * 8)(), ctypes.c_size_t()
        self.check(self.lib.tare_session_run(self.session, ctypes.byref(self.x), 1, outputs, 8, ctypes.byref(count),
                                             self.err))
        for i in range(1, count.value):
            self.lib.tare_tensor_release(ctypes.c_void_p(outputs[i]))
        return ctypes.c_void_p(outputs[0])

    def __call__(self):
        self.lib.tare_tensor_release(self.run())

    def result(self):
        y = self.run()
        count = self.lib.tare_tensor_element_count(y)
        data = ctypes.cast(self.lib.tare_tensor_data(y), ctypes.POINTER(ctypes.c_float))
        copy = np.ctypeslib.as_array(data, (count,)).copy()
        self.lib.tare_tensor_release(y)
        return copy


def open_library(path):
    library = ctypes.CDLL(path)
    library.tare_error_create.restype = ctypes.c_void_p
    library.tare_error_message.restype = ctypes.c_char_p
    library.tare_tensor_data.restype = ctypes.c_void_p
    library.tare_tensor_element_count.restype = ctypes.c_int64
    return library


class Ort:
    def __init__(self, ort, path, threads, x):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # An idle engine must not spin on the cores of the other one.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feed = {self.session.get_inputs()[0].name: x}

    def __call__(self):
        self.session.run(None, self.feed)

    def result(self):
        return self.session.run(None, self.feed)[0].ravel()


def measure(engines, seconds):
    """{name: (wall ms, cpu ms) per round}; a round runs every engine for about 0.2 s."""
    for engine in engines.values():
        for _ in range(3):
            engine()
    rounds, end = {name: [] for name in engines}, time.monotonic() + seconds
    while time.monotonic() < end or len(rounds[next(iter(rounds))]) < 3:
        for name, engine in engines.items():
            count, wall, cpu = 0, time.perf_counter(), time.process_time()
            while time.perf_counter() - wall < 0.2 or count < 3:
                engine()
                count += 1
            rounds[name].append((1e3 * (time.perf_counter() - wall) / count, 1e3 * (time.process_time() - cpu) / count))
    return rounds


def report(name, rounds):
    for engine, samples in rounds.items():
        wall, cpu = [s[0] for s in samples], [s[1] for s in samples]
        print(f"{name:24} {engine:6} median {statistics.median(wall):9.3f}  min {min(wall):9.3f}  "
              f"cpu median {statistics.median(cpu):9.3f}  min {min(cpu):9.3f}", flush=True)
    if "ort" in rounds:
        ratios = [[a[k] / b[k] for a, b in zip(rounds["tare"], rounds["ort"])] for k in (0, 1)]
        print(f"{name:24} tare/ort: wall {statistics.median(ratios[0]):.2f}, cpu {statistics.median(ratios[1]):.2f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description="Time float models against ONNX Runtime, in turns.")
    parser.add_argument("--library", default="build/release/libtare.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("work", nargs="+", help="MODEL.safetensors[=MODEL.onnx] INPUT.npy ..")
    options = parser.parse_args()
    try:
        import onnxruntime as ort
    except ImportError:
        ort = None
    library = open_library(options.library)
    for pair, data in zip(options.work[::2], options.work[1::2]):
        ours, _, theirs = pair.partition("=")
        x = np.ascontiguousarray(np.load(data), np.float32)
        engines = {"tare": Tare(library, ours, options.threads, x)}
        if ort is not None and theirs:
            engines["ort"] = Ort(ort, theirs, options.threads, x)
            a, b = engines["tare"].result(), engines["ort"].result()
            print(f"{ours}: greatest difference {np.abs(a - b).max():.2e} of {np.abs(b).max():.2e}")
        report(ours.rsplit("/", 1)[-1], measure(engines, options.seconds))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One family of engines as a process that bench/compare.py drives: `python3 engines.py FAMILY WORKLOAD FOLDER TARE`.

It reads a request per line and answers with a line of JSON behind "@":
  open BATCH THREADS   -> {"engines": [..], "errors": {engine: why}, "versions": {..}}
  run ENGINE SECONDS   -> {"ms": [of each call], "foreign": cores that others used meanwhile}
  sqnr ENGINE          -> decibels against torch's float outputs
A family is a function (workload, folder, batch, threads) -> {engine: (call, outputs)}: call() runs once on a fixed input,
floats in and floats out; outputs(x) gives the result of another input of that batch. A family that cannot be imported
here ends the process with a sentence.
"""
import ctypes
import json
import logging
import os
import resource
import sys
import time
import warnings

import numpy as np

import workloads

# --- ours, by the shared library ---


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("thread_count", ctypes.c_int), ("reference", ctypes.c_bool),
                ("portable_floats", ctypes.c_bool), ("bfloat16", ctypes.c_bool)]


class Session:
    def __init__(self, library, path, threads, x, bfloat16=False):
        self.library, self.error = library, ctypes.c_void_p(library.tare_error_create())
        self.model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(library.tare_model_read(path.encode(), None, ctypes.byref(self.model), self.error))
        options = Options(ctypes.sizeof(Options), threads, False, False, bfloat16)
        self.check(library.tare_session_create(self.model, ctypes.byref(options), ctypes.byref(self.session), self.error))
        self.x, self.outputs, self.count = self.tensor(x), (ctypes.c_void_p * 8)(), ctypes.c_size_t()

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.tare_error_message(self.error).decode())

    def tensor(self, x):
        x, out = np.ascontiguousarray(x, np.float32), ctypes.c_void_p()
        shape = (ctypes.c_int64 * x.ndim)(*x.shape)
        self.check(self.library.tare_tensor_from_data(self.library.tare_dtype_from_name(b"torch.float32"), x.ndim, shape,
                                                      x.ctypes.data_as(ctypes.c_void_p), ctypes.byref(out), self.error))
        return out

    def run(self, x):
        self.check(self.library.tare_session_run(self.session, ctypes.byref(x), 1, self.outputs, 8,
                                                 ctypes.byref(self.count), self.error))
        return ctypes.c_void_p(self.outputs[0])

    def __call__(self):
        self.library.tare_tensor_release(self.run(self.x))

    def result(self, x):
        given = self.tensor(x)
        y = self.run(given)
        data = ctypes.cast(self.library.tare_tensor_data(y), ctypes.POINTER(ctypes.c_float))
        copy = np.ctypeslib.as_array(data, (self.library.tare_tensor_element_count(y),)).copy()
        self.library.tare_tensor_release(y)
        self.library.tare_tensor_release(given)
        return copy


def tare(workload, folder, batch, threads):
    library = ctypes.CDLL(sys.argv[4])
    library.tare_error_create.restype = library.tare_tensor_data.restype = ctypes.c_void_p
    library.tare_error_message.restype = library.tare_version.restype = library.tare_isa_name.restype = ctypes.c_char_p
    library.tare_tensor_element_count.restype = ctypes.c_int64
    VERSIONS["tare"] = library.tare_version().decode() + " " + library.tare_isa_name().decode()
    engines, x = {}, workloads.evaluation(workload, batch)
    for engine in ["float", "bfloat16", *workloads.OURS[workload]]:
        path = workloads.ours(workload, folder, "float" if engine == "bfloat16" else engine)
        attempt(engines, engine, lambda: pair(Session(library, path, threads, x, engine == "bfloat16")))
    return engines


def pair(session):
    return session, session.result


# --- ONNX Runtime ---


def quantize_onnx(workload, folder, kind):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    out, ready = (workloads.path_of(workload, folder, "ort." + k + ".onnx") for k in (kind, "ready"))
    if os.path.exists(out):
        return out
    if not os.path.exists(ready):
        quant_pre_process(workloads.path_of(workload, folder, "onnx"), ready, skip_symbolic_shape=True)
    if kind == "dynamic":
        quantize_dynamic(ready, out, per_channel=True, weight_type=QuantType.QInt8)
        return out

    class Reader:
        samples = iter([{"x": x[None]} for x in workloads.calibration(workload)])

        def get_next(self):
            return next(self.samples, None)

    quantize_static(ready, out, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return out


def onnxruntime(workload, folder, batch, threads):
    import onnxruntime as ort
    VERSIONS["onnxruntime"] = ort.__version__
    logging.disable(logging.WARNING)

    def session(path):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        # Threads that spin between calls would disturb the engine whose turn it is.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        s = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return (lambda: s.run(None, {"x": x})), (lambda given: s.run(None, {"x": given})[0])

    engines, x = {}, workloads.evaluation(workload, batch)
    attempt(engines, "float", lambda: session(workloads.path_of(workload, folder, "onnx")))
    for kind in ["int8"] + (["dynamic"] if workload in ("encoder", "linear") else []):
        attempt(engines, kind, lambda: session(quantize_onnx(workload, folder, kind)))
    return engines


# --- OpenVINO, quantized by NNCF ---


def quantize_openvino(workload, folder):
    import nncf
    import openvino
    out = workloads.path_of(workload, folder, "openvino.xml")
    if not os.path.exists(out):
        model = openvino.Core().read_model(workloads.path_of(workload, folder, "onnx"))
        kind = {"model_type": nncf.ModelType.TRANSFORMER} if workload == "encoder" else {}
        samples = [x[None] for x in workloads.calibration(workload)]
        quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=len(samples), **kind)
        openvino.save_model(quantized, out, compress_to_fp16=False)
    return out


def openvino(workload, folder, batch, threads):
    import openvino as ov
    VERSIONS["openvino"] = ov.__version__.split("-")[0]
    core, engines, x = ov.Core(), {}, workloads.evaluation(workload, batch)

    def request(path, precision):
        model = core.read_model(path)
        model.reshape([batch, *workloads.SHAPES[workload]])
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": precision}
        r = core.compile_model(model, "CPU", settings).create_infer_request()
        given = ov.Tensor(x)
        r.set_input_tensor(given)

        def outputs(other):
            y = r.infer([other])[0].copy()
            r.set_input_tensor(given)
            return y
        return r.infer, outputs

    real = workloads.path_of(workload, folder, "onnx")
    attempt(engines, "float", lambda: request(real, "f32"))
    attempt(engines, "bfloat16", lambda: request(real, "bf16"))
    # What it leaves float is float32 by one setting, and bfloat16 by its own choice.
    attempt(engines, "int8", lambda: request(quantize_openvino(workload, folder), "f32"))
    attempt(engines, "int8 and bfloat16", lambda: request(quantize_openvino(workload, folder), "bf16"))
    return engines


# --- torch: eager float, FX graph mode ---


def torch(workload, folder, batch, threads):
    import torch
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    VERSIONS["torch"] = torch.__version__.split("+")[0]
    torch.set_num_threads(threads)
    order = torch.channels_last if len(workloads.SHAPES[workload]) == 3 else torch.contiguous_format
    x = torch.from_numpy(workloads.evaluation(workload, batch)).to(memory_format=order)

    def runner(model):
        def call(given=x):
            with torch.inference_mode():
                return model(given)
        return call, lambda given: call(torch.from_numpy(given).to(memory_format=order)).numpy()

    def real():
        return workloads.load(workload, folder).to(memory_format=order)

    def quantized():
        torch.backends.quantized.engine = "x86"
        samples = torch.from_numpy(workloads.calibration(workload))
        prepared = prepare_fx(real(), get_default_qconfig_mapping("x86"), (samples[:1],))
        with torch.no_grad():
            for first in range(0, len(samples), 8):
                prepared(samples[first:first + 8])
        return convert_fx(prepared)

    engines = {}
    attempt(engines, "float", lambda: runner(real()))
    attempt(engines, "int8", lambda: runner(quantized()))
    return engines


# --- torch: exported programs, compiled by inductor ---


def inductor(workload, folder, batch, threads):
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"
    import torch
    import torchao
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    VERSIONS["torchao"] = torchao.__version__
    torch.set_num_threads(threads)
    x = torch.from_numpy(workloads.evaluation(workload, batch))
    samples = torch.from_numpy(workloads.calibration(workload))

    def quantized():
        program = torch.export.export(workloads.load(workload, folder), (x,), strict=True).module()
        quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
        prepared = prepare_pt2e(program, quantizer)
        for first in range(0, len(samples) - batch + 1, batch):
            prepared(samples[first:first + batch])
        compiled = torch.compile(convert_pt2e(prepared))
        compiled(x)

        def call(given=x):
            with torch.no_grad():
                return compiled(given)
        return call, lambda given: call(torch.from_numpy(given)).numpy()

    engines = {}
    with torch.no_grad():
        attempt(engines, "int8", quantized)
    return engines


# --- ExecuTorch by XNNPACK ---


def write_executorch(workload, folder, batch, engine):
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer as xnnpack
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    out = workloads.path_of(workload, folder, f"{engine}.{batch}.pte")
    if os.path.exists(out):
        return out
    model, samples = workloads.load(workload, folder), torch.from_numpy(workloads.calibration(workload))
    with torch.no_grad():
        if engine != "float":
            settings = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
            program = torch.export.export(model, (samples[:batch],), strict=True).module()
            prepared = prepare_pt2e(program, xnnpack.XNNPACKQuantizer().set_global(settings))
            for first in range(0, len(samples) - batch + 1, batch):
                prepared(samples[first:first + batch])
            model = convert_pt2e(prepared)
        program = torch.export.export(model, (samples[:batch],), strict=True)
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    with open(out, "wb") as file:
        file.write(lowered.to_executorch().buffer)
    return out


def executorch(workload, folder, batch, threads):
    import importlib.metadata
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    VERSIONS["executorch"] = importlib.metadata.version("executorch")
    portable_lib._unsafe_reset_threadpool(threads)
    x, engines = torch.from_numpy(workloads.evaluation(workload, batch)), {}

    def method(engine):
        program = Runtime.get().load_program(write_executorch(workload, folder, batch, engine))
        forward = program.load_method("forward")
        return (lambda: (program, forward.execute([x]))), (
            lambda given: forward.execute([torch.from_numpy(given)])[0].numpy().copy())

    for engine in ("float", "int8"):
        attempt(engines, engine, lambda: method(engine))
    return engines


# --- the process ---

FAMILIES = {f.__name__: f for f in (tare, openvino, onnxruntime, torch, inductor, executorch)}
VERSIONS, ERRORS = {}, {}


def attempt(engines, name, make):
    """An engine that fails leaves a sentence, and the others."""
    try:
        engines[name] = make()
    except Exception as e:  # whatever a peer raises
        ERRORS[name] = f"{type(e).__name__}: {e}"[:300]


def busy():
    """Seconds that all cores worked, for whomever."""
    fields = [int(f) for f in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def own():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run(call, seconds):
    all_before, own_before, begin, times = busy(), own(), time.perf_counter(), []
    while not times or time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - before))
    foreign = (busy() - all_before - (own() - own_before)) / (time.perf_counter() - begin)
    return {"ms": times, "foreign": round(max(0.0, foreign), 2)}


def sqnr(outputs, workload, folder, batch):
    reference, x = np.load(workloads.path_of(workload, folder, "outputs.npy")), workloads.evaluation(workload)
    found = [np.asarray(outputs(x[i:i + batch])).reshape(-1) for i in range(0, len(x) - batch + 1, batch)]
    found = np.concatenate(found)
    return workloads.sqnr(reference.reshape(-1)[:len(found)], found)


def answer(words, state, family, workload, folder):
    if words[0] == "open":
        ERRORS.clear()
        state["batch"] = int(words[1])
        state["engines"] = {}
        state["engines"] = FAMILIES[family](workload, folder, int(words[1]), int(words[2]))
        return {"engines": list(state["engines"]), "errors": ERRORS, "versions": VERSIONS}
    call, outputs = state["engines"][" ".join(words[1:-1] if words[0] == "run" else words[1:])]
    return run(call, float(words[-1])) if words[0] == "run" else sqnr(outputs, workload, folder, state["batch"])


def main():
    warnings.filterwarnings("ignore")
    family, workload, folder = sys.argv[1:4]
    out, state = os.fdopen(os.dup(1), "w"), {}
    os.dup2(2, 1)  # libraries print as they like; answers have a stream of their own
    for line in sys.stdin:
        try:
            found = answer(line.split(), state, family, workload, folder)
        except Exception as e:
            found = {"failed": f"{type(e).__name__}: {e}"[:300]}
        out.write("@" + json.dumps(found) + "\n")
        out.flush()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Whatever is passed, what comes is an exception or an answer. With -DTARE_SANITIZE=address,undefined no read is out of
bounds either. Skipped without Hypothesis."""
import importlib.util
import os
import threading
import unittest

import numpy as np

import tare
from support import ANNOTATED, DIGITS, TOP, Case, digits, main, prepared_digits, quantized_digits

HAS_HYPOTHESIS = importlib.util.find_spec("hypothesis") is not None
if HAS_HYPOTHESIS:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as arrays

    # The same examples in every run, unless TARE_FUZZ_EXAMPLES asks for that many new ones; a file to replay failures
    # would be shared between builds.
    more = int(os.environ.get("TARE_FUZZ_EXAMPLES", "0"))
    settings.register_profile("tare", max_examples=more or 40, deadline=None, derandomize=not more, database=None,
                              phases=(Phase.explicit, Phase.generate, Phase.shrink),
                              suppress_health_check=list(HealthCheck))
    settings.load_profile("tare")
    numbers = st.one_of(st.integers(-2**70, 2**70), st.floats(), st.booleans(), st.none())
    words = st.text(max_size=12)
    anything = st.recursive(st.one_of(numbers, words, st.binary(max_size=8)),
                            lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)), max_leaves=6)
    raised = st.one_of(st.none(), st.sampled_from([ValueError("one"), ZeroDivisionError(), KeyError(3), SystemExit(4), KeyboardInterrupt(),
                                                   StopIteration(), MemoryError(), UnicodeDecodeError("utf-8", b"x", 0, 1, "no")]))
    batches = st.one_of(
        arrays.arrays(st.one_of(arrays.scalar_dtypes(), st.just(np.dtype(">f4"))), arrays.array_shapes(max_dims=5, max_side=6)),
        st.tuples(st.integers(0, 3), st.sampled_from([np.float32, np.float64, np.int8, np.float16])).map(
            lambda row: np.full((row[0], 1, 8, 8), np.nan if row[1] is not np.int8 else 1, row[1])),
        anything)

# What bad input may raise; anything else, and a crash most of all, is a fault of the package.
EXPECTED = (tare.Error, TypeError, ValueError, OverflowError, LookupError, AttributeError, ReferenceError, RuntimeError,
            BufferError, NotImplementedError, RecursionError)


def attempt(function, *args, **keywords):
    """The result, or None where an exception was right."""
    try:
        return function(*args, **keywords)
    except EXPECTED:
        return None


def survive(function, *args, **keywords):
    """The result, or None: what a callback raises comes out, whatever it is."""
    try:
        return function(*args, **keywords)
    except (*EXPECTED, ZeroDivisionError, SystemExit, KeyboardInterrupt, StopIteration, MemoryError):
        return None


class Calls(tare.Observer):
    """Answers by a function that each example sets."""

    function = staticmethod(lambda: None)

    def __init__(self, dtype=tare.quint8):
        self.dtype = dtype

    def forward(self, x):
        type(self).function()

    def calculate_qparams(self):
        return type(self).function()

    def state(self):
        return type(self).function()


class Odd(tare.Observer):
    """Gives whatever parameters it is told to."""

    answer = (1.0, 0)

    def __init__(self, dtype=tare.quint8):
        self.dtype = dtype

    def forward(self, x):
        if isinstance(self.answer, Exception):
            raise self.answer

    def calculate_qparams(self):
        return self.answer


@unittest.skipUnless(HAS_HYPOTHESIS, "Hypothesis is not installed")
class Fuzz(Case):
    if HAS_HYPOTHESIS:
        @given(batches)
        def test_models_take_any_input(self, batch):
            model, _ = digits(1)
            attempt(model, batch)
            attempt(model, batch, batch)
            prepared, images = prepared_digits(2)
            attempt(prepared.calibrate, batch)
            attempt(tare.calibrate, prepared, batch)
            attempt(tare.compare, model, model, [batch])
            attempt(tare.bench, model, batch, seconds=0.0)
            model(images)  # works on

        @given(anything)
        def test_tensors_are_made_of_anything(self, given_object):
            tensor = attempt(tare.Tensor, given_object)
            if tensor is not None:
                repr(tensor)
                self.assertEqual(tensor.numel(), int(np.prod(tensor.shape)))
                attempt(tensor.q_scale)

        @given(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=6), st.integers(0, 1 << 20))
        def test_files_may_be_damaged(self, which, changes, end):
            data = bytearray((DIGITS, ANNOTATED, TOP / "data/digits/digits.onnx")[which].read_bytes())
            for at, value in changes:
                data[at % len(data)] = value
            for content in (data, data[:end % len(data)]):
                for ignores in (False, True):
                    model = attempt(tare.loads, content, ignore_digests=ignores)
                    if model is not None:
                        str(model)
                        attempt(tare.prepare_fx, model, backend_config="x86")

        @given(st.dictionaries(st.sampled_from("name configs pattern dtype_configs root_module observation_type".split()), anything, max_size=4),
               anything, anything)
        def test_configs_take_any_value(self, row, first, second):
            attempt(tare.BackendConfig.from_dict, row)
            config = attempt(tare.BackendPatternConfig.from_dict, row)
            if config is not None:
                backend = attempt(tare.BackendConfig("x").set_backend_pattern_config, config)
                if backend is not None:
                    attempt(backend.lint)
            attempt(tare.DTypeConfig, first, second)
            attempt(tare.QConfig, first, second)
            model, _ = digits(1)
            for name in ("set_global", "set_object_type", "set_module_name"):
                mapping = tare.QConfigMapping()
                arguments = (first,) if name == "set_global" else (first, second)
                if attempt(getattr(mapping, name), *arguments) is not None:
                    attempt(tare.prepare_fx, model, mapping, backend_config="x86")
            for function in (tare.prepare_fx, tare.prepare_pt2e, tare.convert_fx, tare.convert_pt2e, tare.lower):
                attempt(function, model, first)
            attempt(tare.MinMaxObserver.with_args, quant_min=first, quant_max=second, dtype=first)

        @given(st.one_of(st.tuples(anything, anything), st.tuples(st.floats(), st.floats()), st.just(ZeroDivisionError("seen")), anything))
        def test_observers_answer_anything(self, answer):
            model, images = digits(2)
            Odd.answer = answer
            mapping = tare.QConfigMapping().set_object_type(
                "torch.nn.Linear", tare.QConfig(activation=Odd, weight=tare.default_weight_observer))
            prepared = tare.prepare_fx(model, mapping, backend_config="x86")
            try:
                prepared.calibrate(images)
                converted = tare.convert_fx(prepared, backend_config="x86")
                converted(images)
            except (*EXPECTED, ZeroDivisionError):
                pass

        @given(st.lists(st.sampled_from("run close graph train calibrate save session explain".split()), min_size=1, max_size=8))
        def test_models_are_used_after_they_were_freed(self, steps):
            model, images = prepared_digits(2)
            node, session = model.graph["conv1"], attempt(tare.Session, model)
            uses = {"run": lambda: model(images), "close": model.close, "graph": lambda: (node.args, node.module, str(model.graph)),
                    "train": model.train, "calibrate": lambda: model.calibrate(images), "save": lambda: model.save(self.folder / "m"),
                    "session": session.close if session else None, "explain": lambda: tare.explain(model)}
            for step in steps:
                attempt(uses[step])

        @given(arrays.arrays(st.sampled_from([np.dtype(np.float32), np.dtype(np.uint8), np.dtype(np.int64)]),
                             arrays.array_shapes(max_dims=4, max_side=4)),
               st.one_of(st.floats(), st.sampled_from([float("nan"), float("inf"), -1.0, 0.0, 1e-320])), numbers,
               st.sampled_from(["quint8", "qint8", "qint32", "uint8", "float16"]), st.integers(-9, 9))
        def test_scales_may_be_anything(self, values, scale, zero_point, dtype, axis):
            tensor = attempt(tare.Tensor, values)
            model, images = quantized_digits(2)
            for node in ("conv1", "fc"):
                module = model.graph[node].module
                for name, given_value in (("scale", scale), ("zero_point", zero_point), ("weight", values), ("bias", values)):
                    attempt(module.set_tensor, name, given_value)
                    attempt(module.set_tensor, name, np.float32(scale))
            attempt(model, images)
            attempt(tare.QuantizationSpec, scale, zero_point, axis, axis)
            attempt(tare.FixedQParamsQuantizationSpec, getattr(tare, dtype, dtype), scale, zero_point, 0, 255)
            fixed = attempt(tare.FixedQParamsObserver.with_args, scale=scale, zero_point=zero_point, dtype=getattr(tare, dtype, dtype))
            if fixed is not None:
                mapping = tare.QConfigMapping().set_global(tare.QConfig(fixed, tare.default_weight_observer))
                float_model, _ = digits(1)
                prepared = attempt(tare.prepare_fx, float_model, mapping, backend_config="x86")
                if prepared is not None:
                    attempt(prepared.calibrate, images)
                    converted = attempt(tare.convert_fx, prepared, backend_config="x86")
                    if converted is not None:
                        attempt(converted, images)
            if tensor is not None:
                attempt(tensor.to_float)

        @given(st.sampled_from("annotate transform validate fuser root inputs forward module".split()), raised, anything)
        def test_callbacks_may_raise_or_return_anything(self, which, error, answer):
            def callback(*_, **__):
                if error is not None:
                    raise error
                return answer

            class Mine(tare.Quantizer):
                """Calls back where it is told to."""

                def transform_for_annotation(self, model):
                    return callback() if which == "transform" else model

                def annotate(self, model):
                    if which != "annotate":
                        return model
                    for node in model.graph.nodes:
                        attempt(setattr, node, "args", answer)
                        attempt(node.meta.__setitem__, "quantization_annotation", answer)
                    return callback()

                def validate(self, model):
                    if which == "validate":
                        callback()
            survive(tare.prepare_pt2e, tare.load(ANNOTATED), Mine())
            pattern = tare.BackendPatternConfig(("torch.nn.Conv2d", "torch.nn.BatchNorm2d"))
            for name, method in (("fuser", pattern.set_fuser_method), ("root", pattern._set_root_node_getter),
                                 ("inputs", pattern._set_extra_inputs_getter)):
                if which == name:
                    attempt(method, callback)
            model, images = digits(2)
            backend = attempt(tare.BackendConfig("mine").set_backend_pattern_config, pattern)
            survive(tare.prepare_fx, model, backend_config=backend)
            Calls.function = staticmethod(callback)
            prepared = tare.prepare_fx(model, tare.QConfigMapping().set_object_type(
                "torch.nn.Linear", tare.QConfig(Calls, tare.default_weight_observer)), backend_config="x86")
            survive(prepared.calibrate, images)
            survive(tare.convert_fx, prepared, backend_config="x86")
            survive(tare.evaluate, model, [(images, [0, 1])], callback)
            survive(tare.calibrate, prepared, iter(callback, object()) if error is not None else [answer])

        @given(st.lists(st.tuples(st.sampled_from("data tensor node module records pickle decisions shapes picture".split()), anything),
                        min_size=1, max_size=6))
        def test_the_rest_of_the_interface_takes_anything(self, steps):
            model, images = quantized_digits(2)
            uses = {"data": lambda value: list(tare.Data(value, model)), "tensor": lambda value: model.graph["conv1"].module.set_tensor(value, images),
                    "node": lambda value: model.graph[value], "module": model.get_submodule,
                    "records": lambda value: tare.explain(model, value).to_records(), "pickle": tare.loads,
                    "decisions": lambda value: model.graph.find_nodes(op=value, target=value),
                    "shapes": lambda value: tare.load(DIGITS, dims=value, shapes=value),
                    "picture": lambda value: (attempt(tare.Preprocess("to_tensor"), value), attempt(tare.Preprocess, value))}
            for step, value in steps:
                attempt(uses[step], value)
            model(images)

        @given(st.lists(st.sampled_from("run close session graph bytes".split()), min_size=2, max_size=6), st.integers(0, 5))
        def test_models_are_freed_while_another_thread_uses_them(self, steps, turns):
            model, images = quantized_digits(2)
            session = tare.Session(model)
            uses = {"run": lambda: model(images), "close": model.close, "session": lambda: session.run(images),
                    "graph": lambda: str(model.graph), "bytes": lambda: model.save(self.folder / "m")}

            def work():
                for step in (steps * (turns + 1))[turns:]:
                    attempt(uses[step])
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def test_one_model_is_used_from_two_threads(self):
        model, images = prepared_digits(4)
        failures = []

        def use(number):
            for index in range(12):
                try:
                    attempt(model.calibrate if (index + number) % 3 else model, images)
                    attempt(lambda: [n.args for n in model.graph.nodes])
                    attempt(tare.convert_fx, model, backend_config="x86")
                except BaseException as exception:
                    failures.append(exception)
        threads = [threading.Thread(target=use, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    main()

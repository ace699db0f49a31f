# SPDX-License-Identifier: Apache-2.0
"""Whatever is passed, what comes is an exception or an answer. With -DTARE_SANITIZE=address,undefined no read is out of
bounds either. Skipped without Hypothesis."""
import importlib.util
import threading
import unittest

import numpy as np

import tare
from support import ANNOTATED, DIGITS, TOP, Case, digits, main, prepared_digits

HAS_HYPOTHESIS = importlib.util.find_spec("hypothesis") is not None
if HAS_HYPOTHESIS:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as arrays

    # The same examples in every run; a file to replay failures would be shared between builds.
    settings.register_profile("tare", max_examples=40, deadline=None, derandomize=True, database=None,
                              phases=(Phase.explicit, Phase.generate, Phase.shrink),
                              suppress_health_check=list(HealthCheck))
    settings.load_profile("tare")
    numbers = st.one_of(st.integers(-2**70, 2**70), st.floats(), st.booleans(), st.none())
    words = st.text(max_size=12)
    anything = st.recursive(st.one_of(numbers, words, st.binary(max_size=8)),
                            lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)), max_leaves=6)
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

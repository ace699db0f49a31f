# SPDX-License-Identifier: Apache-2.0
"""QConfig, QConfigMapping and the custom configs, as torch.ao.quantization has them."""
from __future__ import annotations

import contextlib
import ctypes
import enum
import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ._library import call, encode, filled, integer, integers, lib, names_of, out, take_text, texts
from ._names import class_name, object_type_name
from .observers import Constructor, Observer, _by_name, as_constructor, observer_spec

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "QConfig", "QConfigMapping", "QuantType",
           "StandaloneModuleConfigEntry", "get_default_qat_qconfig", "get_default_qat_qconfig_mapping",
           "get_default_qconfig", "get_default_qconfig_mapping", "qconfig_equals", "qconfig_named", "qconfig_names"]


class _Pair(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Pair):
    """The observers of an operator's activations and weight.

    Parameters
    ----------
    activation, weight : class of observers, or one with_args
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Observer) or isinstance(weight, Observer):
            raise ValueError("QConfig received observer instance, please pass observer class instead. "
                             "Use MyObserver.with_args(x=1) to override arguments to constructor if needed")
        return super().__new__(cls, activation, weight)

    def __repr__(self) -> str:
        return f"QConfig(activation={self.activation!r}, weight={self.weight!r})"


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Have both the same classes with the same arguments? None equals only None.

    Parameters
    ----------
    q1 : QConfig or None
    q2 : QConfig or None

    Returns
    -------
    bool
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return all(as_constructor(a) == as_constructor(b) if a is not None and b is not None else a is b
               for a, b in zip(q1, q2, strict=True))


@contextlib.contextmanager
def _qconfig(given: Any) -> Iterator[Any]:
    """The tare_qconfig of a pair of torch's or tare's; None stays NULL."""
    if given is None:
        yield None
        return
    activation, weight = given
    with observer_spec(activation) as first, observer_spec(weight) as second:
        made = lib.qconfig_create(first, second)
        if not made:
            raise TypeError("a QConfig needs an observer of activations")
        try:
            yield made
        finally:
            lib.qconfig_release(made)


def _constructor_of(data: Any) -> Any:
    """A constructor from its JSON form."""
    from ._dtypes import as_dtype, as_qscheme
    if data is None:
        return None
    keywords: dict[str, Any] = {}
    for name, value in data.get("kwargs", {}).items():
        if isinstance(value, dict):
            value = float(value["float"]) if "float" in value else _constructor_of(value)
        elif isinstance(value, str) and name != "custom_op_name":
            value = as_qscheme(value) if value.startswith(("torch.per_", "tare.per_")) else as_dtype(value)
        keywords[name] = value
    kind = _by_name().get(data["class"])
    if kind is None:
        from .observers import _registered
        if data["class"] not in _registered:
            raise LookupError(f"no class of observers is called '{data['class']}'")
        kind = _registered[data["class"]][0]
    return Constructor(kind, keywords) if keywords else kind


def _qconfig_of(data: Any) -> QConfig | None:
    return None if data is None else QConfig(_constructor_of(data["activation"]), _constructor_of(data.get("weight")))


def qconfig_named(name: str) -> QConfig:
    """One of torch's named qconfigs: "default_qconfig", "default_per_channel_qconfig", .."""
    made, place = out("tare_qconfig")
    call("qconfig_named", encode(name), place)
    try:
        words = ctypes.c_char_p()
        call("qconfig_to_json", made, ctypes.byref(words))
        found = _qconfig_of(json.loads(take_text(words)))
    finally:
        lib.qconfig_release(made)
    assert found is not None
    return found


def qconfig_names() -> list[str]:
    """The names of torch's qconfigs; each is an attribute of the package, too."""
    return list(names_of("qconfig_name_at"))


class QConfigMapping:
    """Which operator gets which QConfig. Later ones win: global, object type, module name regex, module name,
    (module name, object type, index). None means: do not quantize."""

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Any, int], Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """The QConfig of everything that no selector names."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """The QConfig of a module class, a function or a method's name.

        Parameters
        ----------
        object_type : type, callable or str
            A module class, a function, or the name of a method.
        qconfig : QConfig or None
            None: such operators stay float.
        """
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """The QConfig of modules whose path matches, from its start on.

        Parameters
        ----------
        module_name_regex : str
            Matches the whole path of a module.
        qconfig : QConfig or None
            None: such modules stay float.
        """
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """The QConfig of the module at a path and of all below it.

        Parameters
        ----------
        module_name : str
            Path of a module.
        qconfig : QConfig or None
            None: the module stays float.
        """
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name: str, object_type: Any, index: int,
                                          qconfig: Any) -> QConfigMapping:
        """The QConfig of the index-th operator of a type in the module at a path.

        Parameters
        ----------
        module_name : str
            Path of the module that calls it.
        object_type : type, callable or str
            The operator.
        index : int
            Which of its calls there, from 0.
        qconfig : QConfig or None
            None: that call stays float.
        """
        self.module_name_object_type_order_qconfigs[(module_name, object_type, index)] = qconfig
        return self

    def __repr__(self) -> str:
        said = "QConfigMapping ("
        for style in ("global_qconfig", "object_type_qconfigs", "module_name_regex_qconfigs", "module_name_qconfigs",
                      "module_name_object_type_order_qconfigs"):
            said += f"\n {style}"
            found = getattr(self, style)
            if isinstance(found, OrderedDict) and found:
                said += "".join(f"\n  {key}: {value}" for key, value in found.items())
            else:
                said += f"\n  {found}"
        return said + "\n)"

    def to_dict(self) -> dict[str, Any]:
        """A dict with the keys "", object_type, module_name_regex, module_name, module_name_object_type_order."""
        return {"": self.global_qconfig, "object_type": list(self.object_type_qconfigs.items()),
                "module_name_regex": list(self.module_name_regex_qconfigs.items()),
                "module_name": list(self.module_name_qconfigs.items()),
                "module_name_object_type_order": [
                    (*key, value) for key, value in self.module_name_object_type_order_qconfigs.items()]}

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """From a dict as to_dict gives it; all keys are optional."""
        made = cls()
        if "" in qconfig_dict:
            made.set_global(qconfig_dict[""])
        for style in ("object_type", "module_name_regex", "module_name", "module_name_object_type_order"):
            for row in qconfig_dict.get(style, []):
                getattr(made, f"set_{style}")(*row)
        return made

    @classmethod
    def default(cls, name: str = "x86", is_qat: bool = False, version: int = -1) -> QConfigMapping:
        """torch's default mappings "x86", "fbgemm", "qnnpack", "onednn", "symmetric_qnnpack"; and "tare".

        Parameters
        ----------
        name : str
            The backend.
        is_qat : bool
            For training: fake quantizers.
        version : int, optional
            torch's version of the mapping; -1: the newest.

        Returns
        -------
        QConfigMapping
        """
        made, place = out("tare_qconfig_mapping")
        call("qconfig_mapping_default", encode(name), bool(is_qat), version, place)
        return cls._take(made)

    @staticmethod
    def default_names() -> list[str]:
        """The names of the default mappings."""
        return list(names_of("qconfig_mapping_default_name_at"))

    @classmethod
    def from_json(cls, data: str) -> QConfigMapping:
        """From the text of a JSON file; errors name the path in it."""
        made, place = out("tare_qconfig_mapping")
        encoded = data.encode()
        call("qconfig_mapping_from_json", encoded, len(encoded), place)
        return cls._take(made)

    @classmethod
    def from_torch(cls, mapping: Any) -> QConfigMapping:
        """From torch's own QConfigMapping."""
        def own(qconfig: Any) -> QConfig | None:
            if qconfig is None:
                return None
            return QConfig(as_constructor(qconfig.activation), qconfig.weight and as_constructor(qconfig.weight))
        made = cls().set_global(own(mapping.global_qconfig))
        for style in ("object_type", "module_name_regex", "module_name"):
            for key, value in getattr(mapping, f"{style}_qconfigs").items():
                getattr(made, f"set_{style}")(key, own(value))
        for (path, kind, index), value in mapping.module_name_object_type_order_qconfigs.items():
            made.set_module_name_object_type_order(path, kind, index, own(value))
        return made

    @classmethod
    def _take(cls, handle: Any) -> QConfigMapping:
        try:
            words = ctypes.c_char_p()
            call("qconfig_mapping_to_json", handle, ctypes.byref(words))
            data = json.loads(take_text(words))
        finally:
            lib.qconfig_mapping_destroy(handle)
        made = cls().set_global(_qconfig_of(data.get("global")))
        for style in ("object_type", "module_name_regex", "module_name", "module_name_object_type_order"):
            for *key, value in data.get(style, []):
                getattr(made, f"set_{style}")(*key, _qconfig_of(value))
        return made

    def to_json(self) -> str:
        """The text of a JSON file, with all selectors written out."""
        with self._built() as handle:
            words = ctypes.c_char_p()
            call("qconfig_mapping_to_json", handle, ctypes.byref(words))
            return take_text(words)

    @contextlib.contextmanager
    def _built(self) -> Iterator[Any]:
        made = lib.qconfig_mapping_create()
        try:
            with _qconfig(self.global_qconfig) as given:
                lib.qconfig_mapping_set_global(made, given)
            for kind, value in self.object_type_qconfigs.items():
                with _qconfig(value) as given:
                    lib.qconfig_mapping_set_object_type(made, encode(object_type_name(kind)), given)
            for style in ("module_name_regex", "module_name"):
                for key, value in getattr(self, f"{style}_qconfigs").items():
                    with _qconfig(value) as given:
                        getattr(lib, f"qconfig_mapping_set_{style}")(made, encode(key), given)
            for (path, kind, index), value in self.module_name_object_type_order_qconfigs.items():
                with _qconfig(value) as given:
                    lib.qconfig_mapping_set_module_name_object_type_order(
                        made, encode(path), encode(object_type_name(kind)), integer(index), given)
            yield made
        finally:
            lib.qconfig_mapping_destroy(made)


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """torch's default mapping for a backend.

    Parameters
    ----------
    backend : str
        "x86", "fbgemm", "qnnpack" or "onednn".
    version : int
        torch's version of the mapping.

    Returns
    -------
    QConfigMapping
    """
    return QConfigMapping.default(backend, False, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """torch's default mapping for a backend, for training.

    Parameters
    ----------
    backend : str
        "x86", "fbgemm", "qnnpack" or "onednn".
    version : int
        torch's version of the mapping.

    Returns
    -------
    QConfigMapping
    """
    return QConfigMapping.default(backend, True, version)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> Any:
    """The global QConfig of the default mapping.

    Parameters
    ----------
    backend : str
        "x86", "fbgemm", "qnnpack" or "onednn".
    version : int
        torch's version of the qconfig.

    Returns
    -------
    QConfig
    """
    return get_default_qconfig_mapping(backend, version).global_qconfig


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> Any:
    """The global QConfig of the default mapping for training.

    Parameters
    ----------
    backend : str
        "x86", "fbgemm", "qnnpack" or "onednn".
    version : int
        torch's version of the qconfig.

    Returns
    -------
    QConfig
    """
    return get_default_qat_qconfig_mapping(backend, version).global_qconfig


# --- custom configs ---

class QuantType(enum.IntEnum):
    """How an operator is quantized."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


@dataclass
class StandaloneModuleConfigEntry:
    """How a standalone module is prepared."""

    qconfig_mapping: QConfigMapping | None
    example_inputs: Any
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: Any


def _said(config: object, name: str) -> str:
    return f"{name}({ {key: value for key, value in vars(config).items() if len(value) > 0} })"


def _written(kind: str, handle: Any) -> str:
    place = ctypes.c_char_p()
    call(f"{kind}_custom_config_to_json", handle, ctypes.byref(place))
    return take_text(place)


def _checked(kind: str, data: str) -> dict[str, Any]:
    """The library says what is wrong with a file, and where."""
    if not isinstance(data, str):
        raise TypeError(f"expected the text of a JSON file, found {type(data).__name__}")
    made, place = out(f"tare_{kind}_custom_config")
    encoded = data.encode()
    call(f"{kind}_custom_config_from_json", encoded, len(encoded), place)
    try:
        return dict(json.loads(_written(kind, made)))
    finally:
        getattr(lib, f"{kind}_custom_config_destroy")(made)


def _backend_of(given: Any) -> Any:
    from .backend_config import BackendConfig
    if given is None:
        return None
    return BackendConfig.named(given) if isinstance(given, str) else BackendConfig.from_dict(given)


class PrepareCustomConfig:
    """Modules that prepare_fx does not look into, quantized inputs and outputs, attributes that survive."""

    def __init__(self) -> None:
        self.standalone_module_names: dict[str, StandaloneModuleConfigEntry] = {}
        self.standalone_module_classes: dict[Any, StandaloneModuleConfigEntry] = {}
        self.float_to_observed_mapping: dict[QuantType, dict[Any, Any]] = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[Any] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said(self, "PrepareCustomConfig")

    @classmethod
    def from_json(cls, data: str) -> PrepareCustomConfig:
        """From the text of a JSON file, with the keys of torch's to_dict; MalformedFileError has the JSON path."""
        given, made = _checked("prepare", data), cls()
        for style, table in (("name", made.standalone_module_names), ("class", made.standalone_module_classes)):
            for key, mapping, _, custom, backend in given.get(f"standalone_module_{style}", []):
                table[key] = StandaloneModuleConfigEntry(
                    None if mapping is None else QConfigMapping.from_json(json.dumps(mapping)), None,
                    None if custom is None else cls.from_json(json.dumps(custom)), _backend_of(backend))
        for key, name in given.get("float_to_observed_custom_module_class", {}).get("static", {}).items():
            made.set_float_to_observed_mapping(key, name)
        made.non_traceable_module_names = given.get("non_traceable_module_name", [])
        made.non_traceable_module_classes = given.get("non_traceable_module_class", [])
        made.input_quantized_indexes = given.get("input_quantized_idxs", [])
        made.output_quantized_indexes = given.get("output_quantized_idxs", [])
        made.preserved_attributes = given.get("preserved_attributes", [])
        return made

    def to_json(self) -> str:
        """The text of a JSON file, with the keys that are not empty."""
        with self._built() as handle:
            return _written("prepare", handle)

    def set_standalone_module_name(self, module_name: str, qconfig_mapping: Any, example_inputs: Any,
                                   prepare_custom_config: Any, backend_config: Any) -> PrepareCustomConfig:
        """The module at a path is prepared and converted by itself.

        Parameters
        ----------
        module_name : str
            Path of the module.
        qconfig_mapping : QConfigMapping or None
            How it is quantized by itself; None: as its parent.
        example_inputs : tuple
            Its inputs; not needed here.
        prepare_custom_config : PrepareCustomConfig or None
            Of its own preparation.
        backend_config : BackendConfig or None
            None: its parent's.
        """
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        return self

    def set_standalone_module_class(self, module_class: Any, qconfig_mapping: Any, example_inputs: Any,
                                    prepare_custom_config: Any, backend_config: Any) -> PrepareCustomConfig:
        """All modules of a class are prepared and converted by themselves.

        Parameters
        ----------
        module_class : type or str
            Class of the modules.
        qconfig_mapping : QConfigMapping or None
            How each is quantized by itself; None: as its parent.
        example_inputs : tuple
            Its inputs; not needed here.
        prepare_custom_config : PrepareCustomConfig or None
            Of its own preparation.
        backend_config : BackendConfig or None
            None: its parent's.
        """
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        return self

    def set_float_to_observed_mapping(self, float_class: Any, observed_class: Any,
                                      quant_type: QuantType = QuantType.STATIC) -> PrepareCustomConfig:
        """Modules of float_class become observed_class.

        Parameters
        ----------
        float_class : type or str
            Class of float modules.
        observed_class : type or str
            What prepare puts in their place.
        quant_type : QuantType
            Static, dynamic or weights only.

        Raises
        ------
        ValueError
            For quantization that is not static.
        """
        if quant_type != QuantType.STATIC:
            raise ValueError("set_float_to_observed_mapping is currently only supported for static quantization")
        self.float_to_observed_mapping.setdefault(QuantType.STATIC, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules, by path, that stay one call and float."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[Any]) -> PrepareCustomConfig:
        """Modules, by class, that stay one call and float."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Inputs that the caller passes quantized."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Outputs that stay quantized."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> PrepareCustomConfig:
        """Attributes of the model that are kept although no node uses them."""
        self.preserved_attributes = attributes
        return self

    @contextlib.contextmanager
    def _built(self) -> Iterator[Any]:
        made = lib.prepare_custom_config_create()
        try:
            for style, table in (("name", self.standalone_module_names), ("class", self.standalone_module_classes)):
                for key, entry in table.items():
                    with _standalone(entry) as how:
                        getattr(lib, f"prepare_custom_config_set_standalone_module_{style}")(
                            made, encode(class_name(key)), how)
            for a, b in self.float_to_observed_mapping.get(QuantType.STATIC, {}).items():
                lib.prepare_custom_config_set_float_to_observed(made, encode(class_name(a)), encode(class_name(b)))
            classes = [class_name(item) for item in self.non_traceable_module_classes]
            for setter, names in (("non_traceable_module_names", self.non_traceable_module_names),
                                  ("non_traceable_module_classes", classes),
                                  ("preserved_attributes", self.preserved_attributes)):
                if names:
                    getattr(lib, f"prepare_custom_config_set_{setter}")(made, texts(names), len(names))
            for setter, indexes in (("input_quantized_indexes", self.input_quantized_indexes),
                                    ("output_quantized_indexes", self.output_quantized_indexes)):
                if indexes:
                    getattr(lib, f"prepare_custom_config_set_{setter}")(made, integers(indexes), len(indexes))
            yield made
        finally:
            lib.prepare_custom_config_destroy(made)


@contextlib.contextmanager
def _standalone(entry: StandaloneModuleConfigEntry) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        how = filled("tare_standalone_module")
        for field, given in (("qconfig_mapping", entry.qconfig_mapping), ("custom_config", entry.prepare_custom_config),
                             ("backend", entry.backend_config)):
            if given is not None:
                setattr(how, field, stack.enter_context(given._built()))
        yield ctypes.byref(how)


class ConvertCustomConfig:
    """Custom modules that convert_fx replaces, and attributes that survive."""

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: dict[QuantType, dict[Any, Any]] = {}
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said(self, "ConvertCustomConfig")

    @classmethod
    def from_json(cls, data: str) -> ConvertCustomConfig:
        """From the text of a JSON file, with the keys of torch's to_dict; MalformedFileError has the JSON path."""
        given, made = _checked("convert", data), cls()
        for key, name in given.get("observed_to_quantized_custom_module_class", {}).get("static", {}).items():
            made.set_observed_to_quantized_mapping(key, name)
        made.preserved_attributes = given.get("preserved_attributes", [])
        return made

    def to_json(self) -> str:
        """The text of a JSON file, with the keys that are not empty."""
        with self._built() as handle:
            return _written("convert", handle)

    def set_observed_to_quantized_mapping(self, observed_class: Any, quantized_class: Any,
                                          quant_type: QuantType = QuantType.STATIC) -> ConvertCustomConfig:
        """Modules of observed_class become quantized_class.

        Parameters
        ----------
        observed_class : type or str
            What prepare made.
        quantized_class : type or str
            What convert puts in its place.
        quant_type : QuantType
            Static, dynamic or weights only.
        """
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> ConvertCustomConfig:
        """Attributes of the model that are kept although no node uses them."""
        self.preserved_attributes = attributes
        return self

    @contextlib.contextmanager
    def _built(self) -> Iterator[Any]:
        made = lib.convert_custom_config_create()
        try:
            for table in self.observed_to_quantized_mapping.values():
                for a, b in table.items():
                    lib.convert_custom_config_set_observed_to_quantized(
                        made, encode(class_name(a)), encode(class_name(b)))
            if self.preserved_attributes:
                lib.convert_custom_config_set_preserved_attributes(
                    made, texts(self.preserved_attributes), len(self.preserved_attributes))
            yield made
        finally:
            lib.convert_custom_config_destroy(made)


class FuseCustomConfig:
    """Attributes that survive fuse_fx."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return _said(self, "FuseCustomConfig")

    @classmethod
    def from_json(cls, data: str) -> FuseCustomConfig:
        """From the text of a JSON file, with the keys of torch's to_dict; MalformedFileError has the JSON path."""
        given, made = _checked("fuse", data), cls()
        made.preserved_attributes = given.get("preserved_attributes", [])
        return made

    def to_json(self) -> str:
        """The text of a JSON file, with the keys that are not empty."""
        with self._built() as handle:
            return _written("fuse", handle)

    def set_preserved_attributes(self, attributes: Sequence[str]) -> FuseCustomConfig:
        """Attributes of the model that are kept although no node uses them."""
        self.preserved_attributes = list(attributes)
        return self

    @contextlib.contextmanager
    def _built(self) -> Iterator[Any]:
        made = lib.fuse_custom_config_create()
        try:
            lib.fuse_custom_config_set_preserved_attributes(
                made, texts(self.preserved_attributes), len(self.preserved_attributes))
            yield made
        finally:
            lib.fuse_custom_config_destroy(made)


